// A muxer's streams: which of the source it takes, with their parameters, side data and tags.
#include <assert.h>
#include <errno.h>
#include <libavcodec/bsf.h>
#include <libavutil/avstring.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libavutil/spherical.h>
#include <libavutil/stereo3d.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/output/muxer/muxer_internal.h"

void muxer_streams_free(struct muxer_streams *copy)
{
    avformat_free_context((AVFormatContext *)copy->from);
    avcodec_parameters_free((AVCodecParameters **)&copy->codec);
    av_frame_free((AVFrame **)&copy->first);
    *copy = (struct muxer_streams){0};
}

enum status muxer_streams_copy(const struct muxer_streams *streams, struct muxer_streams *copy)
{
    AVCodecParameters *codec = avcodec_parameters_alloc();
    AVFrame *first = av_frame_alloc();
    *copy = *streams;
    copy->from = format_describe(streams->from);
    copy->codec = codec;
    copy->first = first;
    bool whole = copy->from && codec && first &&
                 avcodec_parameters_copy(codec, streams->codec) >= 0 &&
                 av_frame_copy_props(first, streams->first) >= 0;
    return whole ? STATUS_OK : STATUS_MEMORY;
}

// ---- choice ----

// Find out whether the container accepts a header with nothing but this stream.
static enum status header_takes(const AVOutputFormat *container, const AVStream *stream,
                                bool *takes)
{
    AVFormatContext *trial = NULL;
    uint8_t *bytes = NULL;
    int error = AVERROR(ENOMEM);
    if (avformat_alloc_output_context2(&trial, (AVOutputFormat *)container, NULL, NULL) < 0)
        return STATUS_MEMORY;
    AVStream *copy = avformat_new_stream(trial, NULL);
    if (copy && avcodec_parameters_copy(copy->codecpar, stream->codecpar) >= 0 &&
        av_dict_copy(&copy->metadata, stream->metadata, 0) >= 0 &&
        avio_open_dyn_buf(&trial->pb) >= 0) {
        copy->codecpar->codec_tag = 0;
        copy->time_base = stream->time_base;
        error = avformat_write_header(trial, NULL);
        avio_close_dyn_buf(trial->pb, &bytes);
        trial->pb = NULL;
        av_free(bytes);
    }
    avformat_free_context(trial);
    *takes = error >= 0;
    return error == AVERROR(ENOMEM) ? STATUS_MEMORY : STATUS_OK;
}

// Codecs with a stream type or descriptor of MPEG-TS. Its muxer takes others as well, as private
// data that nobody reads (ISO/IEC 13818-1, table 2-34; ETSI EN 300 468).
static bool mpegts_has_name(enum AVCodecID id, const char *file)
{
    static const enum AVCodecID named[] = {
        AV_CODEC_ID_MP2,          AV_CODEC_ID_MP3,          AV_CODEC_ID_AAC,
        AV_CODEC_ID_AAC_LATM,     AV_CODEC_ID_AC3,          AV_CODEC_ID_EAC3,
        AV_CODEC_ID_DTS,          AV_CODEC_ID_TRUEHD,       AV_CODEC_ID_OPUS,
        AV_CODEC_ID_S302M,        AV_CODEC_ID_DVB_SUBTITLE, AV_CODEC_ID_DVB_TELETEXT,
        AV_CODEC_ID_ARIB_CAPTION,
    };
    if (id == AV_CODEC_ID_PCM_BLURAY || id == AV_CODEC_ID_HDMV_PGS_SUBTITLE)
        return av_match_ext(file, "m2ts");
    for (size_t k = 0; k < sizeof named / sizeof *named; k++)
        if (named[k] == id)
            return true;
    return false;
}

static bool has_default_codec(const AVOutputFormat *container, enum AVMediaType type)
{
    return type == AVMEDIA_TYPE_AUDIO      ? container->audio_codec != AV_CODEC_ID_NONE
           : type == AVMEDIA_TYPE_SUBTITLE ? container->subtitle_codec != AV_CODEC_ID_NONE
                                           : true;
}

// Find out whether a stream goes along. Where no header can be tried, packets fail that the muxer
// does not take.
static enum status container_takes(const struct muxer *muxer, const AVDictionary *options,
                                   const AVStream *stream, bool *takes)
{
    const AVOutputFormat *container = muxer->format->oformat;
    const struct muxer_quirks *quirks = muxer->destination->quirks;
    const char *segments = muxer_inner(quirks, options);
    enum AVCodecID id = stream->codecpar->codec_id;
    enum AVMediaType type = stream->codecpar->codec_type;
    bool named = quirks->mpegts_names && !segments &&
                 (type == AVMEDIA_TYPE_AUDIO || type == AVMEDIA_TYPE_SUBTITLE);
    *takes = type == AVMEDIA_TYPE_ATTACHMENT && quirks->attachments;
    if (type == AVMEDIA_TYPE_ATTACHMENT || id == AV_CODEC_ID_NONE || quirks->one_stream)
        return STATUS_OK;
    if (named && !mpegts_has_name(id, muxer->name))
        return STATUS_OK;
    if (container->flags & AVFMT_NOFILE) {
        const AVOutputFormat *inner = segments ? av_guess_format(segments, NULL, NULL) : NULL;
        *takes = type == AVMEDIA_TYPE_AUDIO && has_default_codec(container, type);
        return *takes && inner ? header_takes(inner, stream, takes) : STATUS_OK;
    }
    int known = avformat_query_codec(container, id, FF_COMPLIANCE_NORMAL);
    bool tried = named || (quirks->header_decides && type != AVMEDIA_TYPE_DATA) || known == 1 ||
                 (known && has_default_codec(container, type));
    return tried ? header_takes(container, stream, takes) : STATUS_OK;
}

// ---- streams that are copied ----

// The source's tag for the codec, if the container knows it; 0: the muxer finds its own. Playlists
// have no table of tags; the muxers of their segments do, and refuse what is not in it.
static uint32_t fitting_tag(const struct muxer *muxer, const AVCodecParameters *about)
{
    const AVOutputFormat *container = muxer->format->oformat;
    if (!container->codec_tag)
        return destination_is_playlist(muxer->destination) ? 0 : about->codec_tag;
    return av_codec_get_id(container->codec_tag, about->codec_tag) == about->codec_id
               ? about->codec_tag
               : 0;
}

// The tag of a codec that the container's table lacks, and MOV's has; 0: neither does. NUT's reader
// knows both.
static uint32_t tag_of_mov(const AVOutputFormat *container, enum AVCodecID id)
{
    const struct AVCodecTag *const mov[] = {avformat_get_mov_video_tags(), NULL};
    uint32_t tag = av_codec_get_tag(mov, id);
    bool free = av_codec_get_id(container->codec_tag, tag) == AV_CODEC_ID_NONE;
    return free && !av_codec_get_tag(container->codec_tag, id) ? tag : 0;
}

bool muxer_takes_alone(const AVOutputFormat *container, enum AVCodecID id)
{
    return av_codec_get_tag(container->codec_tag, id) || tag_of_mov(container, id);
}

static enum status add_filter(const AVStream *to, const char *name, struct route *route)
{
    const AVBitStreamFilter *kind = av_bsf_get_by_name(name);
    if (!kind)
        return STATUS_OK;
    if (av_bsf_alloc(kind, &route->filter) < 0 ||
        avcodec_parameters_copy(route->filter->par_in, to->codecpar) < 0)
        return STATUS_MEMORY;
    route->filter->time_base_in = to->time_base;
    return av_bsf_init(route->filter) < 0 ? STATUS_MEMORY : STATUS_OK;
}

static enum status copy_stream(struct muxer *muxer, const AVStream *from, struct route *route)
{
    AVStream *to = avformat_new_stream(muxer->format, NULL);
    if (!to || avcodec_parameters_copy(to->codecpar, from->codecpar) < 0 ||
        stream_data_copy(to, from) < 0 || av_dict_copy(&to->metadata, from->metadata, 0) < 0)
        return STATUS_MEMORY;
    to->codecpar->codec_tag = fitting_tag(muxer, from->codecpar);
    to->time_base = from->time_base;
    to->disposition = from->disposition;
    to->sample_aspect_ratio = from->sample_aspect_ratio;
    to->avg_frame_rate = from->avg_frame_rate;
    to->r_frame_rate = from->r_frame_rate;
    route->stream = to->index;
    route->copied = true;
    return STATUS_OK;
}

enum status muxer_strip_aac(struct muxer *muxer)
{
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < muxer->routes && !status; k++) {
        struct route *route = &muxer->route[k];
        const AVStream *to = route->copied ? muxer->format->streams[route->stream] : NULL;
        if (to && to->codecpar->codec_id == AV_CODEC_ID_AAC)
            status = add_filter(to, "aac_adtstoasc", route);
    }
    return status;
}

// ---- the filtered stream ----

// Copy the HDR data of a frame to the stream.
static enum status add_light(AVStream *stream, const AVFrame *first)
{
    static const struct {
        enum AVFrameSideDataType frame;
        enum AVPacketSideDataType stream;
    } kinds[] = {
        {AV_FRAME_DATA_MASTERING_DISPLAY_METADATA, AV_PKT_DATA_MASTERING_DISPLAY_METADATA},
        {AV_FRAME_DATA_CONTENT_LIGHT_LEVEL, AV_PKT_DATA_CONTENT_LIGHT_LEVEL},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const AVFrameSideData *data = av_frame_get_side_data(first, kinds[k].frame);
        if (!data || stream_data(stream, kinds[k].stream))
            continue;
        uint8_t *room = stream_data_add(stream, kinds[k].stream, data->size);
        if (!room)
            return STATUS_MEMORY;
        memcpy(room, data->data, data->size);
    }
    return STATUS_OK;
}

// Copy side data for showing the picture, which filtering does not change.
static enum status copy_picture_data(AVStream *to, const AVStream *from, const AVFrame *first,
                                     bool rotated)
{
    static const struct {
        enum AVPacketSideDataType type;
        size_t size;
    } kinds[] = {
        {AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t)},
        {AV_PKT_DATA_CONTENT_LIGHT_LEVEL, sizeof(AVContentLightMetadata)},
        {AV_PKT_DATA_MASTERING_DISPLAY_METADATA, sizeof(AVMasteringDisplayMetadata)},
        {AV_PKT_DATA_SPHERICAL, sizeof(AVSphericalMapping)},
        {AV_PKT_DATA_STEREO3D, sizeof(AVStereo3D)},
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 19, 100)
        {AV_PKT_DATA_FRAME_CROPPING, 4 * sizeof(uint32_t)}, // the last: not of rotated pictures
#endif
    };
    const bool crops = LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 19, 100);
    const size_t count = sizeof kinds / sizeof *kinds - (crops && rotated);
    for (size_t k = 0; k < count; k++) {
        bool rotation = kinds[k].type == AV_PKT_DATA_DISPLAYMATRIX;
        const void *data =
            rotation ? (const void *)display_matrix(from, first) : stream_data(from, kinds[k].type);
        if (!data || stream_data(to, kinds[k].type) || (rotation && rotated))
            continue;
        uint8_t *room = stream_data_add(to, kinds[k].type, kinds[k].size);
        if (!room)
            return STATUS_MEMORY;
        memcpy(room, data, kinds[k].size);
    }
    return STATUS_OK;
}

// Remove tags that describe the input's encoding. Returns an AVERROR without memory, which
// libavutil takes for removing, too.
static int forget_tags(AVStream *to)
{
    static const char *const old[] = {"encoder", "BPS", "NUMBER_OF_FRAMES", "NUMBER_OF_BYTES",
                                      "_STATISTICS_"};
    const AVDictionaryEntry *tag = NULL;
    bool alpha = av_pix_fmt_desc_get(to->codecpar->format)->flags & AV_PIX_FMT_FLAG_ALPHA;
    int error = alpha ? 0 : av_dict_set(&to->metadata, "alpha_mode", NULL, 0);
    while (error >= 0 && (tag = av_dict_get(to->metadata, "", tag, AV_DICT_IGNORE_SUFFIX)))
        for (size_t k = 0; k < sizeof old / sizeof *old; k++)
            if (!strncmp(tag->key, old[k], strlen(old[k]))) { // with a language behind, "BPS-eng"
                error = av_dict_set(&to->metadata, tag->key, NULL, 0);
                tag = NULL; // begin again: the list has changed
                break;
            }
    return error;
}

// True if key frames repeat the codec's headers: they are in the parameters only, and the container
// has no place for them, so viewers who join later would miss them.
static bool repeats_headers(const struct muxer *muxer, const struct muxer_streams *streams)
{
    return streams->global_header && streams->codec->extradata_size > 0 &&
           !(muxer->format->oformat->flags & AVFMT_GLOBALHEADER);
}

static enum status add_video(struct muxer *muxer, const struct muxer_streams *streams,
                             struct route *route)
{
    const AVStream *from = streams->from->streams[streams->video];
    AVStream *to = avformat_new_stream(muxer->format, NULL);
    if (!to || avcodec_parameters_copy(to->codecpar, streams->codec) < 0 ||
        av_dict_copy(&to->metadata, from->metadata, 0) < 0 || forget_tags(to) < 0)
        return STATUS_MEMORY;
    to->codecpar->codec_tag = fitting_tag(muxer, streams->codec);
    if (streams->alone && !to->codecpar->codec_tag)
        to->codecpar->codec_tag = tag_of_mov(muxer->format->oformat, streams->codec->codec_id);
    to->time_base = streams->time_base;
    to->avg_frame_rate = streams->frame_rate;
    to->sample_aspect_ratio = streams->codec->sample_aspect_ratio;
    to->disposition = from->disposition;
    *route =
        (struct route){.stream = to->index,
                       .time_base = streams->time_base,
                       .shift = av_rescale_q(streams->shift, AV_TIME_BASE_Q, streams->time_base),
                       .last_dts = AV_NOPTS_VALUE};
    enum status status =
        repeats_headers(muxer, streams) ? add_filter(to, "dump_extra", route) : STATUS_OK;
    if (!status)
        status = copy_picture_data(to, from, streams->first, streams->rotated);
    return status ? status : add_light(to, streams->first);
}

// ---- all of them ----

// True if a stream stores chapters or metadata, as tracks of MOV do; the muxer makes them anew.
static bool is_bookkeeping(const AVFormatContext *from, const AVStream *stream)
{
    bool chapters = stream->codecpar->codec_tag == MKTAG('t', 'e', 'x', 't') && from->nb_chapters;
    bool timecode = stream->codecpar->codec_tag == MKTAG('t', 'm', 'c', 'd') &&
                    av_dict_get(stream->metadata, "timecode", NULL, 0);
    return stream->codecpar->codec_type == AVMEDIA_TYPE_DATA && (chapters || timecode);
}

static void log_dropped(const struct muxer *muxer, const AVStream *stream)
{
    const char *type = av_get_media_type_string(stream->codecpar->codec_type);
    bool unknown = stream->codecpar->codec_id == AV_CODEC_ID_NONE &&
                   stream->codecpar->codec_type != AVMEDIA_TYPE_ATTACHMENT;
    log_print(muxer->log, LOG_INFO, "stream %d (%s, %s) is left out: %s", stream->index,
              type ? type : "unknown", avcodec_get_name(stream->codecpar->codec_id),
              unknown ? "this FFmpeg does not know what it is"
                      : "the output's format does not take it");
}

static enum status copy_chapters(struct muxer *muxer, const AVFormatContext *from, int64_t shift,
                                 int64_t end)
{
    AVFormatContext *to = muxer->format;
    if (!from->nb_chapters)
        return STATUS_OK;
    to->chapters = av_calloc(from->nb_chapters, sizeof *to->chapters);
    if (!to->chapters)
        return STATUS_MEMORY;
    for (unsigned k = 0; k < from->nb_chapters; k++) {
        const AVChapter *old = from->chapters[k];
        int64_t back = av_rescale_q(shift, AV_TIME_BASE_Q, old->time_base);
        int64_t last =
            end == INT64_MAX ? old->end : av_rescale_q(end, AV_TIME_BASE_Q, old->time_base);
        if (old->end <= back || old->start >= last)
            continue;
        AVChapter *chapter = av_mallocz(sizeof *chapter);
        if (!chapter)
            return STATUS_MEMORY;
        chapter->id = old->id;
        chapter->time_base = old->time_base;
        chapter->start = old->start > back ? old->start - back : 0;
        chapter->end = (old->end < last ? old->end : last) - back;
        to->chapters[to->nb_chapters++] = chapter;
        if (av_dict_copy(&chapter->metadata, old->metadata, 0) < 0)
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static enum status copy_metadata(struct muxer *muxer, const AVFormatContext *from)
{
    // Tags of the input file, not of its content.
    static const char *const of_the_file[] = {"major_brand", "minor_version", "compatible_brands",
                                              "encoder",     "creation_time", "duration"};
    if (av_dict_copy(&muxer->format->metadata, from->metadata, 0) < 0)
        return STATUS_MEMORY;
    for (size_t k = 0; k < sizeof of_the_file / sizeof *of_the_file; k++)
        if (av_dict_set(&muxer->format->metadata, of_the_file[k], NULL, 0) < 0)
            return STATUS_MEMORY;
    return STATUS_OK;
}

enum status muxer_add_streams(struct muxer *muxer, const struct muxer_streams *streams,
                              const AVDictionary *options)
{
    assert(!muxer->route);
    assert((unsigned)streams->video < streams->from->nb_streams);
    const AVFormatContext *from = streams->from;
    muxer->live = streams->live;
    if (streams->alone)
        muxer->format->avoid_negative_ts = 0;
    muxer->routes = from->nb_streams;
    muxer->route = calloc(from->nb_streams, sizeof *muxer->route);
    if (!muxer->route)
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < from->nb_streams && !status; k++) {
        const AVStream *stream = from->streams[k];
        struct route *route = &muxer->route[k];
        *route =
            (struct route){.stream = -1,
                           .time_base = stream->time_base,
                           .shift = av_rescale_q(streams->shift, AV_TIME_BASE_Q, stream->time_base),
                           .last_dts = AV_NOPTS_VALUE};
        bool video = (int)k == streams->video, takes = false;
        if (!video && !streams->alone)
            status = container_takes(muxer, options, stream, &takes);
        if (status)
            break;
        if (video)
            status = add_video(muxer, streams, route);
        else if (takes)
            status = copy_stream(muxer, stream, route);
        else if (!is_bookkeeping(from, stream) && !streams->again && !streams->alone)
            log_dropped(muxer, stream);
    }
    if (!status && !streams->alone)
        status = copy_chapters(muxer, from, streams->shift, streams->end);
    return status ? status : copy_metadata(muxer, from);
}

bool muxer_accepts_stream(const struct muxer *muxer, int stream)
{
    return (unsigned)stream < muxer->routes && muxer->route[stream].stream >= 0;
}
