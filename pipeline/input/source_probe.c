// Parameters of streams that only their packets hold.
#include <assert.h>
#include <libavcodec/bsf.h>
#include <libavutil/mem.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/source.h"

static bool lacks_configuration(const AVStream *stream)
{
    return stream->codecpar->codec_id == AV_CODEC_ID_AAC && !stream->codecpar->extradata_size;
}

bool source_is_probed(const struct source *source)
{
    for (unsigned k = 0; k < source->format->nb_streams; k++)
        if (lacks_configuration(source->format->streams[k]))
            return false;
    return true;
}

static enum status set_extradata(AVCodecParameters *about, const uint8_t *data, size_t size)
{
    about->extradata = av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!about->extradata)
        return STATUS_MEMORY;
    memcpy(about->extradata, data, size);
    about->extradata_size = (int)size;
    return STATUS_OK;
}

enum status source_probe(struct source *source, const AVPacket *packet)
{
    assert((unsigned)packet->stream_index < source->format->nb_streams);
    AVStream *stream = source->format->streams[packet->stream_index];
    AVBSFContext *filter = NULL;
    AVPacket *copy = NULL;
    enum status status = STATUS_OK;
    const AVBitStreamFilter *kind = av_bsf_get_by_name("aac_adtstoasc");
    if (!lacks_configuration(stream) || !kind || av_bsf_alloc(kind, &filter) < 0)
        return STATUS_OK;
    if (avcodec_parameters_copy(filter->par_in, stream->codecpar) >= 0 && av_bsf_init(filter) >= 0)
        copy = av_packet_clone(packet);
    if (copy && av_bsf_send_packet(filter, copy) >= 0 && av_bsf_receive_packet(filter, copy) >= 0) {
        buffer_size size;
        const uint8_t *data = av_packet_get_side_data(copy, AV_PKT_DATA_NEW_EXTRADATA, &size);
        if (data)
            status = set_extradata(stream->codecpar, data, (size_t)size);
    }
    av_packet_free(&copy);
    av_bsf_free(&filter);
    return status;
}
