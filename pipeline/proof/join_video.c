#include "pipeline/proof/join_video.h"

#include <libavutil/mem.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/seek/cursor.h"
#include "pipeline/output/encoder_options.h"
#include "pipeline/output/muxer/muxer.h"
#include "pipeline/part/manifest_writer.h"
#include "pipeline/proof/join_manifest.h"
#include "pipeline/proof/other_streams.h"
#include "pipeline/proof/part_video.h"

enum { MAX_AHEAD = 4096 }; // packets read ahead to learn of streams

struct joining {
    struct join_video_request request;
    const struct manifest *made; // the first part that has frames
    struct muxer *muxer;
    struct source *source;
    AVFormatContext *described;      // what the source holds
    struct packet *ahead[MAX_AHEAD]; // of the source's, read already
    int ahead_count, ahead_read;
    struct part_video *video;
    int noted; // parts whose frames the manifest has
    AVCodecParameters *codec;
    AVRational frame_rate;
    AVFrame *first;                    // of the source: light and rotation
    struct other_streams theirs, ours; // of the source, that go along; of what was written
    bool truncated;                    // the source
};

static const atomic_bool never;

// ---- the source ----

// Read ahead until all streams are known.
static enum status probe_source(struct joining *join)
{
    enum status status = STATUS_OK;
    while (!status && !source_is_probed(join->source) && join->ahead_count < MAX_AHEAD) {
        struct packet **packet = &join->ahead[join->ahead_count];
        status = source_read(join->source, packet);
        if (!status)
            status = source_probe(join->source, (*packet)->av);
        join->ahead_count += *packet != NULL;
    }
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status open_source(struct joining *join)
{
    const struct join_video_request *request = &join->request;
    enum status status = source_open(request->source, request->log, &never, &join->source);
    if (!status)
        status = probe_source(join);
    if (!status)
        status = cursor_first_frame(request->source, request->log, &never, &join->first);
    if (!status && !(join->described = format_describe(join->source->format)))
        status = STATUS_MEMORY;
    return status;
}

// True if a stream beside the video goes along. Where none does the source is not read through.
static bool has_others(const struct joining *join)
{
    for (int k = 0; k < (int)join->described->nb_streams; k++)
        if (k != join->source->video && muxer_accepts_stream(join->muxer, k))
            return true;
    return false;
}

// The next packet of a stream that goes along; *packet is NULL behind the last.
static enum status read_other(struct joining *join, struct packet **packet)
{
    enum status status = STATUS_OK;
    while (!status) {
        bool kept = join->ahead_read < join->ahead_count;
        *packet = kept ? join->ahead[join->ahead_read] : NULL;
        if (kept)
            join->ahead[join->ahead_read++] = NULL;
        else
            status = source_read(join->source, packet);
        if (status)
            break;
        int stream = (*packet)->av->stream_index;
        if (stream != join->source->video && muxer_accepts_stream(join->muxer, stream))
            return other_streams_add(&join->theirs, (*packet)->av,
                                     join->source->format->streams[stream]);
        packet_destroy(packet);
    }
    join->truncated |= status == STATUS_EOF && source_is_truncated(join->source);
    return status == STATUS_EOF ? STATUS_OK : status;
}

// ---- the output ----

static enum status read_codec(struct joining *join)
{
    const json_t *video = json_object_get(join->made->end, "video");
    join->codec = avcodec_parameters_alloc();
    manifest_ratio(video, "frame_rate", &join->frame_rate);
    if (!join->codec)
        return STATUS_MEMORY;
    enum status status = manifest_video(video, join->codec);
    return status == STATUS_INPUT ? log_fail(join->request.log, status,
                                             "%s: its manifest does not say how the video is "
                                             "encoded",
                                             join->request.set->folder[join->request.set->filled])
                                  : status;
}

// The options of the container, of those that may be the encoder's as well.
static enum status make_options(const struct joining *join, AVDictionary **to)
{
    const json_t *made = json_object_get(join->made->end, "made");
    const char *encoder = json_string_value(json_object_get(made, "encoder"));
    struct sink_request request = {.options = join->request.options};
    struct encoder_options options = {.log = join->request.log,
                                      .codec = avcodec_find_encoder_by_name(encoder ? encoder : ""),
                                      .container = join->request.to->container};
    if (!options.codec)
        options.codec = avcodec_find_encoder(join->codec->codec_id);
    if (!options.codec)
        return STATUS_OK;
    enum status status = encoder_options_add(&options, &request);
    av_dict_free(&options.encoder);
    *to = options.muxer;
    return status;
}

static enum status begin_muxer(struct joining *join)
{
    const json_t *video = json_object_get(join->made->end, "video");
    int64_t first_us =
        av_rescale_q(join->first->pts, source_video(join->source)->time_base, AV_TIME_BASE_Q);
    struct muxer_streams streams = {
        .name = join->source->name,
        .from = join->described,
        .video = join->source->video,
        .codec = join->codec,
        .time_base = part_video_time_base(join->video),
        .frame_rate = join->frame_rate,
        .global_header = json_is_true(json_object_get(video, "global_header")),
        .first = join->first,
        .begin = source_begin_us(join->source, first_us),
        .shift = source_shift_us(join->source, first_us),
        .end = INT64_MAX,
        .rotated = json_is_true(json_object_get(video, "rotated")),
    };
    AVDictionary *options = NULL;
    enum status status = muxer_create(join->request.to, join->request.to->name, join->request.log,
                                      NULL, NULL, &join->muxer);
    if (!status)
        status = make_options(join, &options);
    if (!status)
        status = muxer_add_streams(join->muxer, &streams, options);
    if (!status)
        status = muxer_begin(join->muxer, &options);
    av_dict_free(&options);
    return status;
}

static int64_t us_of(const AVPacket *packet, AVRational time_base)
{
    int64_t at = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    return at == AV_NOPTS_VALUE ? INT64_MIN : av_rescale_q(at, time_base, AV_TIME_BASE_Q);
}

// The next packet of the video; *ended: there is none.
static enum status read_video(struct joining *join, AVPacket *packet, bool *ended)
{
    enum status status = part_video_read(join->video, packet);
    *ended = status == STATUS_EOF;
    if (!status)
        status = join_manifest_add(join->request.set, &join->noted, join->request.manifest);
    return *ended ? STATUS_OK : status;
}

// Write the packets of video and those of the source's other streams in the order of their times.
static enum status copy_packets(struct joining *join)
{
    AVPacket *video = av_packet_alloc();
    struct packet *other = NULL;
    bool ended = false;
    enum status status = video ? read_video(join, video, &ended) : STATUS_MEMORY;
    if (!status && has_others(join))
        status = read_other(join, &other);
    while (!status && (!ended || other)) {
        int64_t at = ended ? INT64_MAX : us_of(video, part_video_time_base(join->video));
        const AVStream *stream =
            other ? join->source->format->streams[other->av->stream_index] : NULL;
        if (other && us_of(other->av, stream->time_base) <= at) {
            status = muxer_write(join->muxer, other->av);
            packet_destroy(&other);
            if (!status)
                status = read_other(join, &other);
            continue;
        }
        video->stream_index = join->source->video;
        status = muxer_write(join->muxer, video);
        av_packet_unref(video);
        if (!status)
            status = read_video(join, video, &ended);
    }
    packet_destroy(&other);
    av_packet_free(&video);
    return status;
}

// ---- all of it ----

static enum status write_video(struct joining *join, struct file **file)
{
    const struct join_video_request *request = &join->request;
    enum status status = read_codec(join);
    if (!status)
        status = part_video_create(request->set, request->log, &join->video);
    if (!status)
        status = open_source(join);
    if (!status)
        status = begin_muxer(join);
    if (!status)
        status = copy_packets(join);
    if (!status)
        status = part_set_finish(request->set);
    if (!status)
        status = join_manifest_add(request->set, &join->noted, request->manifest);
    return status ? status : muxer_hold(join->muxer, file);
}

static enum status note_other(void *join_, const AVPacket *packet, const AVStream *of)
{
    struct joining *join = join_;
    return other_streams_add(&join->ours, packet, of);
}

// Note the packets as they lie in the file.
static enum status note_packets(struct joining *join, const struct file *file, json_t **others)
{
    struct manifest_writer *manifest = join->request.manifest;
    const struct manifest_video_file video = {.name = join->request.to->name,
                                              .url = file_temporary(file),
                                              .time_base = part_video_time_base(join->video),
                                              .other = note_other,
                                              .opaque = join};
    enum status status = manifest_writer_read(manifest, &video);
    if (status)
        return status;
    int64_t shift =
        other_streams_shift(join->made, manifest_writer_first_pts(manifest), video.time_base);
    return other_streams_describe(&join->ours, &join->theirs, shift, others);
}

static void finish(struct joining *join)
{
    muxer_destroy(&join->muxer);
    part_video_destroy(&join->video);
    for (int k = 0; k < join->ahead_count; k++)
        packet_destroy(&join->ahead[k]);
    other_streams_free(&join->theirs);
    other_streams_free(&join->ours);
    av_frame_free(&join->first);
    avformat_free_context(join->described);
    source_close(&join->source);
    avcodec_parameters_free(&join->codec);
    free(join);
}

enum status join_video(const struct join_video_request *request, struct file **file,
                       json_t **others, bool *truncated)
{
    struct joining *join = calloc(1, sizeof *join);
    *file = NULL;
    *others = NULL;
    if (!join)
        return STATUS_MEMORY;
    join->request = *request;
    join->made = &request->set->manifest[request->set->filled];
    enum status status = write_video(join, file);
    if (!status)
        status = note_packets(join, *file, others);
    *truncated |= join->truncated;
    if (status)
        file_discard(file);
    finish(join);
    return status;
}
