#include "pipeline/output/muxer/muxer.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavutil/avstring.h>
#include <libavutil/display.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libavutil/spherical.h>
#include <libavutil/stereo3d.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/muxer/muxer_files.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/session.h"

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

// Where packets of a source's stream go.
struct route {
    int stream; // of the output; -1: nowhere
    AVRational time_base;
    int64_t shift; // of timestamps, in time_base
    int64_t last_dts;
    bool copied;          // from the source, as it is
    AVBSFContext *filter; // of packets; NULL: none
};

static const int64_t goodbye_ns = 500 * INT64_C(1000000); // to part from a server

struct muxer {
    const struct log *log;
    const struct stop *stop;
    const struct destination *destination;
    struct muxer_guard *guard;
    char *name;
    AVFormatContext *format;
    struct muxer_files files;
    struct route *route; // one per stream of the source
    unsigned routes;
    bool live; // written so that what a crash leaves can be played, to within a second
    bool published;
    bool begun;                           // and not finished
    char error[AV_ERROR_MAX_STRING_SIZE]; // of a connection
    _Atomic int64_t sent_bytes;           // to an address
};

// ---- choice ----

bool muxer_has_option(const AVOutputFormat *container, const char *key)
{
    const AVClass *generic = avformat_get_class(), *own = container->priv_class;
    const AVOption *option = av_opt_find(&generic, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
    if (option && option->flags & AV_OPT_FLAG_ENCODING_PARAM)
        return true;
    return own && av_opt_find(&own, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
}

static bool is_isobmff(const AVOutputFormat *container)
{
    return av_match_name(container->name, "mp4,mov,ipod,3gp,3g2,psp,ismv,f4v");
}

bool muxer_carries_rotation(const AVOutputFormat *container)
{
    return is_isobmff(container);
}

// ---- files ----

static int open_file(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                     AVDictionary **options)
{
    (void)options;
    struct muxer *muxer = format->opaque;
    if (!(flags & AVIO_FLAG_WRITE)) // a second look at what was written, as faststart takes it
        return avio_open2(io, muxer->files.whole ? muxer_files_name(url) : url, flags,
                          &format->interrupt_callback, NULL);
    return muxer_files_open(&muxer->files, muxer_files_name(url), io);
}

static int close_file(AVFormatContext *format, AVIOContext *io)
{
    struct muxer *muxer = format->opaque;
    int error = 0;
    return muxer_files_close(&muxer->files, io, &error) ? error : avio_close(io);
}

#if LIBAVFORMAT_VERSION_MAJOR < 60
static void close_file_silently(AVFormatContext *format, AVIOContext *io)
{
    close_file(format, io);
}
#endif

static enum status set_url(struct muxer *muxer, const char *scheme, const char *name)
{
    av_freep(&muxer->format->url);
    muxer->format->url = av_asprintf("%s%s", scheme, name);
    return muxer->format->url ? STATUS_OK : STATUS_MEMORY;
}

static int interrupted(void *guard_)
{
    const struct muxer_guard *guard = guard_;
    return guard->over || (guard->deadline_ns && meter_now_ns() > guard->deadline_ns);
}

static enum status open_files(struct muxer *muxer)
{
    AVFormatContext *format = muxer->format;
    format->opaque = muxer;
    format->io_open = open_file;
#if LIBAVFORMAT_VERSION_MAJOR >= 59
    format->io_close2 = close_file;
#endif
#if LIBAVFORMAT_VERSION_MAJOR < 60
    format->io_close = close_file_silently; // muxer->files.failed tells
#endif
    if (format->oformat->flags & AVFMT_NOFILE) // it opens its files by itself, through open_file()
        return set_url(muxer,
                       destination_is_playlist(muxer->destination) ? "" : "file:", muxer->name);
    if (muxer_files_open(&muxer->files, muxer->name, &format->pb))
        return STATUS_OUTPUT;
    format->flags |= AVFMT_FLAG_CUSTOM_IO;
    return set_url(muxer, "", file_temporary(muxer->files.open[0]));
}

static enum status open_container(struct muxer *muxer)
{
    AVFormatContext *format = muxer->format;
    // Formats that FFmpeg calls experimental (deep y4m) are what the user asked for.
    format->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
    if (muxer->guard)
        format->interrupt_callback = (AVIOInterruptCB){interrupted, muxer->guard};
    return destination_is_live(muxer->destination) ? set_url(muxer, "", muxer->name)
                                                   : open_files(muxer);
}

enum status muxer_create(const struct destination *destination, const char *name,
                         const struct log *log, const struct stop *stop, struct muxer_guard *guard,
                         struct muxer **muxer)
{
    *muxer = calloc(1, sizeof **muxer);
    struct muxer *made = *muxer;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->stop = stop;
    made->destination = destination;
    made->guard = guard;
    made->files = (struct muxer_files){.log = log, .stop = stop, .destination = destination};
    made->name = strdup(name);
    enum status status = STATUS_MEMORY;
    if (made->name && avformat_alloc_output_context2(
                          &made->format, (AVOutputFormat *)destination->container, NULL, name) >= 0)
        status = open_container(made);
    if (status)
        muxer_destroy(muxer);
    return status;
}

void muxer_destroy(struct muxer **muxer)
{
    if (!*muxer)
        return;
    struct muxer *old = *muxer;
    old->files.failed = true; // what the muxer still closes is not kept
    if (old->begun &&
        destination_is_live(old->destination)) { // muxers close their own connections there
        old->guard->deadline_ns = meter_now_ns() + goodbye_ns;
        av_write_trailer(old->format);
    }
    if (old->format && old->destination->kind == DESTINATION_ADDRESS)
        avio_closep(&old->format->pb);
    avformat_free_context(old->format);
    muxer_files_discard(&old->files);
    for (unsigned k = 0; k < old->routes && old->route; k++)
        av_bsf_free(&old->route[k].filter);
    free(old->route);
    free(old->name);
    free(old);
    *muxer = NULL;
}

// ---- streams ----

// Try the header of a container that holds nothing but this stream.
static bool header_takes(const AVOutputFormat *container, const AVStream *stream)
{
    AVFormatContext *trial = NULL;
    uint8_t *bytes = NULL;
    bool takes = false;
    if (avformat_alloc_output_context2(&trial, (AVOutputFormat *)container, NULL, NULL) < 0)
        return false;
    AVStream *copy = avformat_new_stream(trial, NULL);
    if (copy && avcodec_parameters_copy(copy->codecpar, stream->codecpar) >= 0 &&
        avio_open_dyn_buf(&trial->pb) >= 0) {
        copy->codecpar->codec_tag = 0;
        copy->time_base = stream->time_base;
        av_dict_copy(&copy->metadata, stream->metadata, 0);
        takes = avformat_write_header(trial, NULL) >= 0;
        avio_close_dyn_buf(trial->pb, &bytes);
        trial->pb = NULL;
        av_free(bytes);
    }
    avformat_free_context(trial);
    return takes;
}

static bool takes_one_stream(const AVOutputFormat *container)
{
    return av_match_name(container->name, "image2,rtp,mjpeg");
}

// MPEG-TS's muxer takes anything, but what it has no stream type or descriptor for it stores as
// private data that nobody reads (ISO/IEC 13818-1, table 2-34; ETSI EN 300 468).
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

// Muxers that name in the header how each stream is to be decoded, by one of several tables, and
// refuse what is in none; what avformat_query_codec() says of them is by one table only.
static bool header_decides(const AVOutputFormat *container, enum AVMediaType type)
{
    return type != AVMEDIA_TYPE_DATA &&
           (is_isobmff(container) || av_match_name(container->name, "matroska,webm"));
}

static bool muxer_carries(const AVOutputFormat *container, enum AVMediaType type)
{
    return type == AVMEDIA_TYPE_AUDIO      ? container->audio_codec != AV_CODEC_ID_NONE
           : type == AVMEDIA_TYPE_SUBTITLE ? container->subtitle_codec != AV_CODEC_ID_NONE
                                           : true;
}

static bool container_takes(const struct muxer *muxer, const AVStream *stream)
{
    const AVOutputFormat *container = muxer->format->oformat;
    enum AVCodecID id = stream->codecpar->codec_id;
    enum AVMediaType type = stream->codecpar->codec_type;
    bool mpegts = av_match_name(container->name, "mpegts,hls") &&
                  (type == AVMEDIA_TYPE_AUDIO || type == AVMEDIA_TYPE_SUBTITLE);
    if (type == AVMEDIA_TYPE_ATTACHMENT) // files within the file: fonts, pictures
        return av_match_name(container->name, "matroska");
    if (id == AV_CODEC_ID_NONE || takes_one_stream(container))
        return false;
    if (mpegts && !mpegts_has_name(id, muxer->name))
        return false;
    if (container->flags &
        AVFMT_NOFILE) // no header can be tried; packets say what it does not take
        return type == AVMEDIA_TYPE_AUDIO && muxer_carries(container, type);
    if (mpegts || header_decides(container, type))
        return header_takes(container, stream);
    int known = avformat_query_codec(container, id, FF_COMPLIANCE_NORMAL);
    return known != 0 && (known == 1 || muxer_carries(container, type)) &&
           header_takes(container, stream);
}

// The tag that the container knows the codec by, or 0: it finds its own.
static uint32_t fitting_tag(const AVOutputFormat *container, const AVCodecParameters *about)
{
    if (!container->codec_tag)
        return about->codec_tag;
    return av_codec_get_id(container->codec_tag, about->codec_tag) == about->codec_id
               ? about->codec_tag
               : 0;
}

// AAC from MPEG-TS has a header before every frame, which MP4 and Matroska do without. Their muxers
// would see to it themselves, but MP4's not when it writes fragments, and Matroska's spoils its own
// header by it (until FFmpeg 7.1).
static bool wants_bare_aac(const AVOutputFormat *container)
{
    return is_isobmff(container) || av_match_name(container->name, "matroska");
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
    to->codecpar->codec_tag = fitting_tag(muxer->format->oformat, from->codecpar);
    to->time_base = from->time_base;
    to->disposition = from->disposition;
    to->sample_aspect_ratio = from->sample_aspect_ratio;
    to->avg_frame_rate = from->avg_frame_rate;
    to->r_frame_rate = from->r_frame_rate;
    route->stream = to->index;
    route->copied = true;
    bool strip =
        to->codecpar->codec_id == AV_CODEC_ID_AAC && wants_bare_aac(muxer->format->oformat);
    return strip ? add_filter(to, "aac_adtstoasc", route) : STATUS_OK;
}

// What a frame knows of its light goes into the container too.
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

// Side data that says how to show the picture, which filtering does not change.
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

// Tags that describe the input's own encoding.
static void forget_tags(AVStream *to)
{
    static const char *const old[] = {"encoder", "BPS", "NUMBER_OF_FRAMES", "NUMBER_OF_BYTES",
                                      "_STATISTICS_"};
    const AVDictionaryEntry *tag = NULL;
    bool alpha = av_pix_fmt_desc_get(to->codecpar->format)->flags & AV_PIX_FMT_FLAG_ALPHA;
    if (!alpha)
        av_dict_set(&to->metadata, "alpha_mode", NULL, 0);
    while ((tag = av_dict_get(to->metadata, "", tag, AV_DICT_IGNORE_SUFFIX)))
        for (size_t k = 0; k < sizeof old / sizeof *old; k++)
            if (!strncmp(tag->key, old[k], strlen(old[k]))) { // with a language behind, "BPS-eng"
                av_dict_set(&to->metadata, tag->key, NULL, 0);
                tag = NULL; // begin again: the list has changed
                break;
            }
}

// Whoever begins to watch in the middle needs the codec's headers, where the container does not
// keep them apart and the encoder was told to.
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
        av_dict_copy(&to->metadata, from->metadata, 0) < 0)
        return STATUS_MEMORY;
    forget_tags(to);
    to->codecpar->codec_tag = fitting_tag(muxer->format->oformat, streams->codec);
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

// Tracks by which MOV stores what goes along as chapters and as metadata; its muxer makes them
// anew.
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
    // What describes the input file itself, not its content.
    static const char *const of_the_file[] = {"major_brand", "minor_version", "compatible_brands",
                                              "encoder",     "creation_time", "duration"};
    if (av_dict_copy(&muxer->format->metadata, from->metadata, 0) < 0)
        return STATUS_MEMORY;
    for (size_t k = 0; k < sizeof of_the_file / sizeof *of_the_file; k++)
        av_dict_set(&muxer->format->metadata, of_the_file[k], NULL, 0);
    return STATUS_OK;
}

enum status muxer_add_streams(struct muxer *muxer, const struct muxer_streams *streams)
{
    const AVFormatContext *from = streams->from;
    muxer->live = streams->live;
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
        if ((int)k == streams->video)
            status = add_video(muxer, streams, route);
        else if (container_takes(muxer, stream))
            status = copy_stream(muxer, stream, route);
        else if (!is_bookkeeping(from, stream) && !streams->again)
            log_dropped(muxer, stream);
    }
    if (!status)
        status = copy_chapters(muxer, from, streams->shift, streams->end);
    return status ? status : copy_metadata(muxer, from);
}

bool muxer_accepts_stream(const struct muxer *muxer, int stream)
{
    return (unsigned)stream < muxer->routes && muxer->route[stream].stream >= 0;
}

// ---- writing ----

// The sentence for a write that failed: what the file system said, if it was that. Of a connection,
// the words only.
static enum status write_failed(struct muxer *muxer, int error, const char *what)
{
    bool reported = muxer->files.failed;
    muxer->files.failed = true;
    if (destination_is_live(muxer->destination)) {
        bool late = error == AVERROR_EXIT && !muxer->guard->over;
        av_strerror(late ? AVERROR(ETIMEDOUT) : error, muxer->error, sizeof muxer->error);
        return error == AVERROR(ENOMEM) ? STATUS_MEMORY : STATUS_EOF;
    }
    int cause = muxer_files_error(&muxer->files);
    if (cause == EPIPE)
        return STATUS_OUTPUT; // the reader has seen enough
    if (cause == ECANCELED)
        return STATUS_STOPPED; // the reader takes nothing, and it is time to go
    muxer->files.blocked |= cause != 0;
    if (reported)
        return STATUS_OUTPUT;
    if (cause)
        return fail(muxer->log, STATUS_OUTPUT, "%s could not be written: %s", muxer->name,
                    strerror(cause));
    return check_failed(muxer->log, STATUS_OUTPUT, error, "%s: %s", muxer->name, what);
}

// Whether the header of an MP4 has to wait for the first packets of some stream.
static bool needs_packets(const struct muxer *muxer)
{
    for (unsigned k = 0; k < muxer->format->nb_streams; k++) {
        enum AVCodecID id = muxer->format->streams[k]->codecpar->codec_id;
        if (id == AV_CODEC_ID_AC3 || id == AV_CODEC_ID_EAC3 || id == AV_CODEC_ID_TRUEHD)
            return true;
    }
    return false;
}

// An option of the muxer, if it has such a one and nobody has set it.
static void set_default(const struct muxer *muxer, AVDictionary **options, const char *key,
                        const char *value)
{
    if (muxer_has_option(muxer->format->oformat, key))
        av_dict_set(options, key, value, AV_DICT_DONT_OVERWRITE);
}

// Connect, where the muxer does not do so by itself.
static int connect_to(struct muxer *muxer)
{
    AVFormatContext *format = muxer->format;
    AVDictionary *options = NULL;
    if (muxer->destination->kind != DESTINATION_ADDRESS || format->oformat->flags & AVFMT_NOFILE)
        return 0;
    if (av_strstart(muxer->name, "udp:", NULL)) // whole packets of MPEG-TS in each of UDP
        av_dict_set(&options, "pkt_size", "1316", 0);
    int error = avio_open2(&format->pb, muxer->name, AVIO_FLAG_WRITE, &format->interrupt_callback,
                           &options);
    av_dict_free(&options);
    return error;
}

// Whether segments of an earlier run, or strangers, have numbers that would be given in time: that
// is better said now. Where numbers begin elsewhere each is looked at when it comes.
static enum status check_segments(const struct muxer *muxer, const AVDictionary *options)
{
    static const char *const others[] = {"start_number", "hls_start_number_source", "strftime"};
    const AVDictionaryEntry *given = av_dict_get(options, "hls_segment_filename", NULL, 0);
    const AVDictionaryEntry *type = av_dict_get(options, "hls_segment_type", NULL, 0);
    const char *dot = strrchr(muxer->name, '.');
    char pattern[4096], name[4096];
    int count;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (av_dict_get(options, others[k], NULL, 0))
            return STATUS_OK;
    if (strcmp(muxer->format->oformat->name, "hls") != 0)
        return STATUS_OK;
    snprintf(pattern, sizeof pattern, "%.*s%%d.%s", (int)(dot ? dot - muxer->name : 0), muxer->name,
             type && !strcmp(type->value, "fmp4") ? "m4s" : "ts");
    const char *names = given ? given->value : pattern;
    int number = url_first_number(names, &count);
    if (number < 0 || av_get_frame_filename(name, sizeof name, names, number) < 0)
        return STATUS_OK;
    return file_check(name, muxer->destination->overwrite, muxer->log);
}

// A film's files get their names together, unless the muxer is asked to give segments other names
// when they are done.
static enum status prepare_playlist(struct muxer *muxer, const AVDictionary *options)
{
    const AVDictionaryEntry *flags = av_dict_get(options, "hls_flags", NULL, 0);
    bool renames = flags && strstr(flags->value, "second_level");
    // DASH's muxer opens its single file by itself.
    bool opens = av_dict_get(options, "single_file", NULL, 0);
    muxer->files.whole = !muxer->live && !renames && !opens;
    av_freep(&muxer->format->url);
    muxer->format->url = muxer_files_url(&muxer->files, muxer->name);
    return muxer->format->url ? check_segments(muxer, options) : STATUS_MEMORY;
}

enum status muxer_begin(struct muxer *muxer, AVDictionary **options)
{
    const AVOutputFormat *container = muxer->format->oformat;
    int error = connect_to(muxer);
    if (error < 0)
        return write_failed(muxer, error, "it is not reached");
    bool seekable = muxer->format->pb && muxer->format->pb->seekable;
    if (muxer->live) {
        muxer->format->flags |= AVFMT_FLAG_FLUSH_PACKETS;
        if (is_isobmff(container)) // of others it is in seconds
            set_default(muxer, options, "frag_duration", "1000000");
        set_default(muxer, options, "cluster_time_limit", "1000");
    }
    // What cannot be gone back to, or may break off at any time, is written in fragments.
    if (is_isobmff(container) && (!seekable || muxer->live))
        av_dict_set(options, "movflags",
                    muxer->live && !needs_packets(muxer)
                        ? "+frag_keyframe+empty_moov+default_base_moof"
                        : "+frag_keyframe+delay_moov+default_base_moof",
                    AV_DICT_APPEND);
    if (destination_is_images(muxer->destination) && !name_is_sequence(muxer->name))
        av_dict_set(options, "update", "1", AV_DICT_DONT_OVERWRITE);
    // MPEG-TS moves all timestamps by its buffering delay unless told to keep them.
    if (!strcmp(container->name, "mpegts"))
        av_dict_set(options, "mpegts_copyts", "1", AV_DICT_DONT_OVERWRITE);
    if (muxer->destination->kind == DESTINATION_ADDRESS) { // nothing waits to be sent together
        muxer->format->flags |= AVFMT_FLAG_FLUSH_PACKETS;
        set_default(muxer, options, "rtsp_transport", "tcp");
        set_default(muxer, options, "flvflags", "no_duration_filesize");
    }
    enum status status =
        destination_is_playlist(muxer->destination) ? prepare_playlist(muxer, *options) : STATUS_OK;
    if (status)
        return status;
    if (destination_is_playlist(muxer->destination)) { // of what is live the newest, of a film all
        set_default(muxer, options, "hls_list_size", muxer->live ? "6" : "0");
        if (muxer->live)
            set_default(muxer, options, "hls_flags", "delete_segments");
    }
    error = avformat_write_header(muxer->format, options);
    if (error < 0)
        return write_failed(muxer, error, "the header could not be written");
    muxer->begun = true;
    return STATUS_OK;
}

// Most containers want decoding times to grow; damaged sources do not always oblige.
static void fix_dts(const struct muxer *muxer, AVPacket *packet, struct route *route)
{
    bool strict = !(muxer->format->oformat->flags & AVFMT_TS_NONSTRICT);
    if (muxer->format->oformat->flags & AVFMT_NOTIMESTAMPS || packet->dts == AV_NOPTS_VALUE)
        return;
    if (route->last_dts != AV_NOPTS_VALUE && packet->dts < route->last_dts + strict) {
        packet->dts = route->last_dts + strict;
        if (packet->pts != AV_NOPTS_VALUE && packet->pts < packet->dts)
            packet->pts = packet->dts;
    }
    route->last_dts = packet->dts;
}

// What the header has been told already is not told again.
static int filter_packet(const struct route *route, AVPacket *packet)
{
    AVBSFContext *filter = route->filter;
    int error = av_bsf_send_packet(filter, packet);
    if (error >= 0)
        error = av_bsf_receive_packet(filter, packet);
    for (int k = 0; route->copied && k < packet->side_data_elems && filter->par_in->extradata_size;
         k++) {
        AVPacketSideData *data = &packet->side_data[k];
        if (data->type != AV_PKT_DATA_NEW_EXTRADATA)
            continue;
        av_freep(&data->data);
        *data = packet->side_data[--packet->side_data_elems];
        break;
    }
    return error;
}

// Give a live output's files their names, now that there is something to be seen in them.
static enum status publish(struct muxer *muxer)
{
    bool wanted = muxer->live && !muxer->published && !destination_is_images(muxer->destination);
    muxer->published = true;
    return wanted ? muxer_files_publish(&muxer->files) : STATUS_OK;
}

enum status muxer_write(struct muxer *muxer, AVPacket *packet, int stream)
{
    int size = packet->size;
    struct route *route = &muxer->route[stream];
    enum status status = route->copied ? STATUS_OK : publish(muxer);
    if (status)
        return status;
    AVStream *to = muxer->format->streams[route->stream];
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts -= route->shift;
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts -= route->shift;
    packet->stream_index = route->stream;
    packet->pos = -1;
    av_packet_rescale_ts(packet, route->time_base, to->time_base);
    fix_dts(muxer, packet, route);
    int error = route->filter ? filter_packet(route, packet) : 0;
    if (!error)
        error = av_interleaved_write_frame(muxer->format, packet);
    if (error >= 0 && destination_is_live(muxer->destination) && interrupted(muxer->guard))
        error = AVERROR_EXIT; // RTSP's muxer does not say so
    muxer_files_note_size(&muxer->files);
    if (muxer->destination->kind == DESTINATION_ADDRESS)
        muxer->sent_bytes = muxer->format->pb ? muxer->format->pb->bytes_written
                                              : muxer->sent_bytes + size; // RTSP keeps its own
    if (muxer->files.failed)                                              // said where it happened
        return STATUS_OUTPUT;
    if (error == AVERROR_INVALIDDATA && route->copied) {
        log_print(muxer->log, LOG_WARNING, "a damaged packet of stream %d is left out", stream);
        return STATUS_OK;
    }
    return error < 0 ? write_failed(muxer, error, "a packet could not be written") : STATUS_OK;
}

enum status muxer_finish(struct muxer *muxer)
{
    int error = av_write_trailer(muxer->format);
    muxer->begun = false;
    if (error >= 0 && muxer->format->pb && muxer->format->pb->error < 0)
        error = muxer->format->pb->error;
    if (error < 0)
        return write_failed(muxer, error, "the end could not be written");
    if (muxer->files.open[0])
        muxer->format->pb = NULL;
    return muxer_files_finish(&muxer->files);
}

bool muxer_is_blocked(const struct muxer *muxer)
{
    return muxer->files.blocked;
}

int64_t muxer_size(const struct muxer *muxer)
{
    return muxer_files_size(&muxer->files) + muxer->sent_bytes;
}

const char *muxer_error(const struct muxer *muxer)
{
    return muxer->error;
}
