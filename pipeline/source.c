#include "pipeline/source.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/camera.h"
#include "pipeline/check.h"
#include "pipeline/compat.h"
#include "pipeline/devices.h"
#include "pipeline/meter.h"
#include "pipeline/names.h"

enum { IO_BUFFER = 1 << 16, POLL_MS = 100 };

// ---- reading bytes ----

// Whether something has arrived. Regular files always answer at once.
static bool readable_soon(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, POLL_MS) != 0;
}

static bool is_over(const struct source *source)
{
    return atomic_load(source->stop) || source->abandoned;
}

static int io_read(void *opaque, uint8_t *buffer, int size)
{
    struct source *source = opaque;
    while (!is_over(source)) {
        if (!readable_soon(source->fd))
            continue;
        ssize_t got = read(source->fd, buffer, (size_t)size);
        if (got > 0)
            return (int)got;
        if (got == 0)
            return AVERROR_EOF;
        if (errno != EINTR && errno != EAGAIN)
            return AVERROR(errno);
    }
    return AVERROR_EXIT;
}

static int64_t io_seek(void *opaque, int64_t offset, int whence)
{
    const struct source *source = opaque;
    if (whence == AVSEEK_SIZE) {
        struct stat about;
        return fstat(source->fd, &about) ? AVERROR(errno) : about.st_size;
    }
    off_t at = lseek(source->fd, offset, whence & ~AVSEEK_FORCE);
    return at < 0 ? AVERROR(errno) : at;
}

static bool is_late(const struct source *source)
{
    return source->deadline_ns && meter_now_ns() > source->deadline_ns;
}

static int interrupted(void *opaque)
{
    return is_over(opaque) || is_late(opaque);
}

static bool live_is_over(void *opaque)
{
    return is_over(opaque);
}

// Files take the time that they take.
static void set_deadline(struct source *source, int64_t ns)
{
    bool local = source->fd >= 0 || source->is_sequence;
    source->deadline_ns = local ? 0 : meter_now_ns() + ns;
}

// Demuxers open further files through this.
static int refuse_open(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                       AVDictionary **options)
{
    (void)io, (void)flags, (void)options;
    const struct source *source = format->opaque;
    char shown[256];
    name_without_secrets(url, shown, sizeof shown);
    log_print(source->log, LOG_ERROR,
              "%s names another file or address (%.200s); sluice opens only the file it is given",
              source->name, shown);
    return AVERROR(EACCES);
}

// ---- opening ----

static enum status open_fd(struct source *source, const char *name)
{
    struct stat about;
    if (source->is_stdin) {
        source->fd = STDIN_FILENO;
        return STATUS_OK;
    }
    source->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0)
        return fail(source->log, STATUS_INPUT, "%s cannot be opened: %s", name, strerror(errno));
    if (fstat(source->fd, &about))
        return fail(source->log, STATUS_INPUT, "%s cannot be examined: %s", name, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return fail(source->log, STATUS_INPUT,
                    "%s is a folder; name a video, or its pictures as in '%s/*.png'", name, name);
    if (S_ISREG(about.st_mode) && about.st_size == 0)
        return fail(source->log, STATUS_INPUT, "%s is empty (0 bytes); a video was expected", name);
    return STATUS_OK;
}

static bool is_seekable(int fd)
{
    struct stat about;
    return !fstat(fd, &about) && S_ISREG(about.st_mode) && lseek(fd, 0, SEEK_CUR) >= 0;
}

static enum status open_io(struct source *source, const char *name)
{
    enum status status = open_fd(source, name);
    if (status)
        return status;
    unsigned char *buffer = av_malloc(IO_BUFFER);
    if (!buffer)
        return STATUS_MEMORY;
    source->io = avio_alloc_context(buffer, IO_BUFFER, 0, source, io_read, NULL,
                                    is_seekable(source->fd) ? io_seek : NULL);
    if (!source->io) {
        av_free(buffer);
        return STATUS_MEMORY;
    }
    return STATUS_OK;
}

// Demuxers whose "file" is a list of other files.
static bool is_playlist(const AVInputFormat *format)
{
    return av_match_name(format->name,
                         "hls,applehttp,dash,concat,sdp,imf,webm_dash_manifest,vobsub,"
                         "rtsp,rtp,sap,tedcaptions,ffmetadata");
}

static enum status probe(struct source *source, const char *name, const AVInputFormat **format)
{
    int error = probe_format(source->io, format, name, source->format);
    // By its extension alone an image is a sequence of one and any text a screen of characters; the
    // content knows better.
    const AVInputFormat *by_name = error >= 0 ? *format : NULL;
    if (by_name && av_match_name(by_name->name, "image2,tty")) {
        *format = NULL;
        error = probe_format(source->io, format, "", source->format);
    }
    if (atomic_load(source->stop))
        return STATUS_STOPPED;
    if (error < 0 || !*format)
        return fail(source->log, STATUS_INPUT,
                    "%s is in no format that this FFmpeg recognises; a video or an image was "
                    "expected (raw video needs -F rawvideo --size WxH)",
                    source->name);
    if (is_playlist(*format))
        return fail(source->log, STATUS_INPUT,
                    "%s is a playlist (%s), a list of other files; sluice opens only the file it "
                    "is given: join or name the video itself",
                    source->name, (*format)->name);
    return STATUS_OK;
}

static void set_option(AVDictionary **options, const char *key, const char *value)
{
    if (value)
        av_dict_set(options, key, value, 0);
}

static const char *option_flag(const char *key)
{
    return !strcmp(key, "video_size")     ? "--size"
           : !strcmp(key, "framerate")    ? "--rate"
           : !strcmp(key, "pixel_format") ? "--pixfmt"
                                          : key;
}

// What is said of raw video and devices, before a demuxer says less about it.
static enum status check_description(const struct source *source,
                                     const struct source_request *request, bool may_be_codec)
{
    int width, height;
    AVRational rate;
    bool codec = may_be_codec && request->pixfmt && avcodec_descriptor_get_by_name(request->pixfmt);
    if (request->size && av_parse_video_size(&width, &height, request->size) < 0)
        return fail(source->log, STATUS_USAGE, "--size is '%s'; it takes WxH, as in 1920x1080",
                    request->size);
    if (request->rate && av_parse_video_rate(&rate, request->rate) < 0)
        return fail(source->log, STATUS_USAGE,
                    "--rate is '%s'; it takes frames a second, as in 25 or 30000/1001",
                    request->rate);
    if (request->pixfmt && !codec && av_get_pix_fmt(request->pixfmt) == AV_PIX_FMT_NONE)
        return fail(source->log, STATUS_USAGE,
                    "--pixfmt is '%s', which is no pixel format; 'ffmpeg -pix_fmts' lists them",
                    request->pixfmt);
    return STATUS_OK;
}

static enum status find_demuxer(const struct source *source, const char *name,
                                const AVInputFormat **demuxer)
{
    *demuxer = NULL;
    if (name && !(*demuxer = av_find_input_format(name_of_format(name))))
        return fail(source->log, STATUS_USAGE,
                    "there is no input format '%s'; 'ffmpeg -demuxers' lists them", name);
    return STATUS_OK;
}

// What libavformat is told of any input: what to open, by which demuxer (NULL: it finds out), and
// what the request says of raw video and devices. On success the caller frees *options.
struct opening {
    bool is_device;
    const char *what;
    const AVInputFormat *demuxer;
    AVDictionary *options;
};

static struct camera_wish camera_wish_of(const struct source_request *request)
{
    return (struct camera_wish){request->size, request->rate, request->pixfmt};
}

// Devices take what is asked of them or nothing. *pixfmt is the format to open it in.
static enum status check_device(const struct source *source, const struct source_request *request,
                                const struct opening *opening, const char **pixfmt)
{
    const struct camera_wish wish = camera_wish_of(request);
    const char *const keys[] = {request->size ? "video_size" : NULL,
                                request->rate ? "framerate" : NULL,
                                request->pixfmt ? "pixel_format" : NULL};
    if (device_is_camera(opening->demuxer))
        return camera_check(opening->what, &wish, source->log, pixfmt);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (keys[k] && !av_opt_find((void *)&opening->demuxer->priv_class, keys[k], NULL, 0,
                                    AV_OPT_SEARCH_FAKE_OBJ))
            return fail(source->log, STATUS_USAGE, "%s is nothing that a device of kind %s takes",
                        option_flag(keys[k]), opening->demuxer->name);
    return STATUS_OK;
}

static enum status prepare(const struct source *source, const struct source_request *request,
                           struct opening *opening)
{
    const char *device, *pixfmt = request->pixfmt;
    *opening = (struct opening){0};
    opening->is_device = name_is_device(request->name, &device, &opening->what);
    bool is_camera = opening->is_device && !strcmp(device, "v4l2");
    enum status status = check_description(source, request, is_camera);
    if (!status)
        status = opening->is_device ? device_find(device, source->log, &opening->demuxer)
                                    : find_demuxer(source, request->format, &opening->demuxer);
    if (!status && opening->is_device)
        status = check_device(source, request, opening, &pixfmt);
    if (status)
        return status;
    set_option(&opening->options, "video_size", request->size);
    set_option(&opening->options, "framerate", request->rate);
    set_option(&opening->options, "pixel_format", pixfmt);
    return STATUS_OK;
}

static enum status open_container(struct source *source, const struct source_request *request)
{
    const char *name = request->name;
    char url[4200];
    struct opening opening;
    enum status status = prepare(source, request, &opening);
    if (status)
        return status;
    const AVInputFormat *demuxer = opening.demuxer;
    AVDictionary *options = opening.options;
    snprintf(url, sizeof url, "%s", opening.what);
    if (source->is_sequence) {
        demuxer = av_find_input_format("image2");
        bool numbered = name_is_numbered(name);
        int first = numbered ? name_first_number(name, &source->images) : -1;
        set_option(&options, "pattern_type", numbered ? "sequence" : "glob");
        if (first >= 0)
            av_dict_set_int(&options, "start_number", first, 0);
        set_option(&options, "protocol_whitelist", "file");
    } else if (!name_is_url(name) && !opening.is_device) {
        snprintf(url, sizeof url, "file:%s", name);
        set_option(&options, "protocol_whitelist", "file");
        status = open_io(source, name);
        if (!status && demuxer && is_playlist(demuxer))
            status = fail(source->log, STATUS_INPUT, "the format %s is a list of other files",
                          demuxer->name);
        source->format->pb = source->io;
        source->format->flags |= AVFMT_FLAG_CUSTOM_IO;
        source->format->io_open = refuse_open;
        if (!status && !demuxer)
            status = probe(source, url, &demuxer);
    }
    if (!status) {
        // FFmpeg frees the context when this fails; the pointer is NULL then.
        set_deadline(source, source->open_ns);
        int error = open_format(&source->format, url, demuxer, &options);
        if (error == AVERROR_EXIT && is_late(source))
            error = AVERROR(ETIMEDOUT);
        if (error == AVERROR_EXIT && is_over(source))
            status = STATUS_STOPPED;
        else if (error < 0)
            status =
                check_failed(source->log, STATUS_INPUT, error, "%s cannot be read%s%s",
                             source->name, demuxer ? " as " : "", demuxer ? demuxer->name : "");
    }
    const AVDictionaryEntry *left = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    if (!status && left)
        status = fail(source->log, STATUS_USAGE, "%s is for raw video; %s is %s",
                      option_flag(left->key), source->name, source->format->iformat->name);
    av_dict_free(&options);
    return status;
}

// ---- streams ----

static bool is_picture(const AVStream *stream)
{
    return stream->disposition & AV_DISPOSITION_ATTACHED_PIC;
}

// "2 audio (aac, mp3), 1 subtitle (ass)", for messages.
static void describe_streams(const AVFormatContext *format, char *text, size_t size)
{
    snprintf(text, size, "%s", format->nb_streams ? "" : "no streams at all");
    for (unsigned k = 0; k < format->nb_streams; k++) {
        const AVCodecParameters *parameters = format->streams[k]->codecpar;
        const char *type = av_get_media_type_string(parameters->codec_type);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s (%s)", k ? ", " : "", type ? type : "unknown",
                 avcodec_get_name(parameters->codec_id));
    }
}

static enum status choose_stream(struct source *source, const char *wanted)
{
    AVFormatContext *format = source->format;
    char found[512];
    describe_streams(format, found, sizeof found);
    if (wanted) {
        char *end;
        long index = strtol(wanted, &end, 10);
        if (end == wanted || *end || index < 0 || index >= (long)format->nb_streams)
            return fail(source->log, STATUS_USAGE, "--stream is '%s'; %s has streams 0 to %d",
                        wanted, source->name, (int)format->nb_streams - 1);
        if (format->streams[index]->codecpar->codec_type != AVMEDIA_TYPE_VIDEO)
            return fail(source->log, STATUS_USAGE, "stream %ld of %s is no video; it has: %s",
                        index, source->name, found);
        source->video = (int)index;
        return STATUS_OK;
    }
    source->video = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (source->video < 0 || is_picture(source_video(source)))
        return fail(source->log, STATUS_INPUT, "%s has no video; it has: %s", source->name, found);
    return STATUS_OK;
}

static bool is_still(const struct source *source)
{
    const char *name = source->format->iformat->name;
    size_t length = strlen(name);
    bool pipe = length > 5 && !strcmp(name + length - 5, "_pipe");
    return pipe && !source->is_stdin && !source->is_sequence;
}

static enum status seek_to_start(struct source *source, double start)
{
    source->start = AV_NOPTS_VALUE;
    if (start <= 0)
        return STATUS_OK;
    int64_t begin = source->format->start_time;
    source->start = (int64_t)(start * AV_TIME_BASE) + (begin == AV_NOPTS_VALUE ? 0 : begin);
    // To the keyframe before, and further where seeking is by estimate. What cannot seek, and what
    // begins within the estimate's error, is read from the beginning.
    set_deadline(source, source->open_ns);
    bool estimates = source->format->iformat->flags & AVFMT_TS_DISCONT;
    int64_t target = source->start - (estimates ? 3 * (int64_t)AV_TIME_BASE : 0);
    if (begin == AV_NOPTS_VALUE || target > begin)
        avformat_seek_file(source->format, -1, INT64_MIN, target, target, 0);
    return STATUS_OK;
}

// ---- live sources ----

// What each protocol may open besides.
static const char protocols[] =
    "rtsp,rtsps,rtp,srtp,rtmp,rtmps,rtmpt,rtmpe,srt,udp,tcp,tls,http,https,httpproxy,crypto,data";

static enum status check_camera(const struct source *source, const struct source_request *request)
{
    const struct camera_wish wish = camera_wish_of(request);
    AVRational given = source->format->streams[0]->avg_frame_rate;
    return camera_check_rate(source->name, &wish, given, source->log);
}

static enum status open_live(struct source *source, const struct source_request *request)
{
    struct opening opening;
    enum status status = prepare(source, request, &opening);
    if (status)
        return status;
    if (!opening.is_device)
        set_option(&opening.options, "protocol_whitelist", protocols);
    if (name_is_url(opening.what) && !strncmp(opening.what, "rtsp", 4)) {
        set_option(&opening.options, "rtsp_transport", request->rtsp_transport);
        if (!request->rtsp_transport)
            set_option(&opening.options, "rtsp_flags", "prefer_tcp");
    }
    struct live_request live = {
        .url = opening.what,
        .name = source->name,
        .demuxer = opening.demuxer,
        .options = opening.options,
        .open_timeout = (double)source->open_ns * 1e-9,
        .stall_timeout = (double)source->stall_ns * 1e-9,
        .reconnects = request->reconnects == 0  ? -1
                      : request->reconnects < 0 ? 0
                                                : request->reconnects,
        .simulate = source->simulate,
        .is_over = live_is_over,
        .opaque = source,
    };
    status = live_open(&live, source->log, &source->live);
    av_dict_free(&opening.options);
    if (status == STATUS_STOPPED && !atomic_load(source->stop))
        return STATUS_EOF;
    if (!status)
        source->format = (AVFormatContext *)live_format(source->live);
    return status || !device_is_camera(opening.demuxer) ? status : check_camera(source, request);
}

// Segments are up to ten seconds long, and late.
static const int64_t playlist_stall_ns = 30 * INT64_C(1000000000);

// An address that turns out to have no end: a camera's MJPEG, a broadcast's playlist.
static bool has_no_end(const struct source *source, const char *name)
{
    const AVFormatContext *format = source->format;
    bool seekable = format->pb && format->pb->seekable & AVIO_SEEKABLE_NORMAL;
    bool list = av_match_name("hls", format->iformat->name);
    bool sized = format->pb && avio_size(format->pb) > 0;
    return name_is_url(name) && strncmp(name, "file:", 5) != 0 &&
           format->duration == AV_NOPTS_VALUE && (list || (!seekable && !sized));
}

static enum status open_file(struct source *source, const struct source_request *request)
{
    source->format = avformat_alloc_context();
    if (!source->format)
        return STATUS_MEMORY;
    source->format->opaque = source;
    source->format->interrupt_callback = (AVIOInterruptCB){interrupted, source};
    enum status status = open_container(source, request);
    if (status)
        return status;
    int error = avformat_find_stream_info(source->format, NULL);
    if (atomic_load(source->stop))
        return STATUS_STOPPED;
    if (error < 0 && is_late(source))
        error = AVERROR(ETIMEDOUT);
    if (error < 0)
        return check_failed(source->log, STATUS_INPUT, error, "the streams of %s cannot be read",
                            source->name);
    if (!has_no_end(source, request->name))
        return STATUS_OK;
    source->is_playlist = av_match_name("hls", source->format->iformat->name);
    if (source->is_playlist && request->stall_timeout <= 0)
        source->stall_ns = playlist_stall_ns;
    avformat_close_input(&source->format);
    return open_live(source, request);
}

// A picture that FFmpeg generates. It cannot be lost, but takes its time.
static bool is_generator(const char *name)
{
    const char *format, *what;
    return name_is_device(name, &format, &what) && !strcmp(format, "lavfi");
}

static bool is_live(const struct source_request *request)
{
    const char *format, *what;
    if (name_is_device(request->name, &format, &what))
        return !is_generator(request->name);
    bool local = !strncmp(request->name, "file:", 5);
    return name_is_live(request->name) || (request->live && !local && name_is_url(request->name));
}

static enum status open_source(struct source *source, const struct source_request *request)
{
    enum status status = is_live(request) ? open_live(source, request) : open_file(source, request);
    if (!status)
        status = choose_stream(source, request->stream);
    if (!status && source->live && request->start > 0)
        return fail(source->log, STATUS_USAGE, "%s is live: it has no --start but now",
                    source->name);
    if (!status)
        status = seek_to_start(source, request->start);
    if (!status && source->live)
        live_watch(source->live, source->video);
    else if (!status && (request->live || is_generator(request->name)))
        source->paced_ns = meter_now_ns();
    source->is_still = !status && !source->live && is_still(source);
    if (!status)
        status = simulate_begin(source->simulate, source_video(source), source->name, source->log);
    return status;
}

enum status source_open(const struct source_request *request, const struct log *log,
                        const atomic_bool *stop, struct source **source)
{
    *source = calloc(1, sizeof **source);
    struct source *made = *source;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->stop = stop;
    made->fd = -1;
    made->video = -1;
    made->open_ns = (int64_t)((request->open_timeout > 0 ? request->open_timeout : 10) * 1e9);
    made->stall_ns = (int64_t)((request->stall_timeout > 0 ? request->stall_timeout : 5) * 1e9);
    made->is_stdin = !strcmp(request->name, "-");
    bool may_be_sequence = !request->format || !strcmp(request->format, "image2");
    const char *format, *what;
    made->is_sequence = !made->is_stdin && !name_is_device(request->name, &format, &what) &&
                        !name_is_url(request->name) && may_be_sequence &&
                        (name_is_numbered(request->name) || name_is_globbed(request->name));
    size_t room = strlen(request->name) + 64;
    made->name = malloc(room);
    enum status status = made->name ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        status = simulate_create(request->simulate, log, &made->simulate);
    if (!status) {
        name_without_secrets(made->is_stdin ? "standard input" : request->name, made->name, room);
        status = open_source(made, request);
    }
    if (status)
        source_close(source);
    return status;
}

void source_close(struct source **source)
{
    if (!*source)
        return;
    struct source *old = *source;
    if (old->live)
        live_close(&old->live);
    else
        avformat_close_input(&old->format);
    if (old->io)
        av_freep(&old->io->buffer);
    avio_context_free(&old->io);
    if (old->fd >= 0 && !old->is_stdin)
        close(old->fd);
    simulate_unref(&old->simulate);
    free(old->next_us);
    free(old->name);
    free(old);
    *source = NULL;
}

// ---- packets ----

static enum status know_streams(struct source *source)
{
    unsigned count = source->format->nb_streams;
    if (source->clocks >= count)
        return STATUS_OK;
    int64_t *next = realloc(source->next_us, count * sizeof *next);
    if (!next)
        return STATUS_MEMORY;
    source->next_us = next;
    while (source->clocks < count)
        next[source->clocks++] = AV_NOPTS_VALUE;
    return STATUS_OK;
}

// Join the clock after a jump to the one before it.
static enum status mend_clock(struct source *source, AVPacket *packet)
{
    const int64_t back_most = AV_TIME_BASE / 10, ahead_most = 10 * (int64_t)AV_TIME_BASE;
    const AVStream *stream = source->format->streams[packet->stream_index];
    enum AVMediaType type = stream->codecpar->codec_type;
    if (!(source->format->iformat->flags & AVFMT_TS_DISCONT) && !simulate_jumps(source->simulate))
        return STATUS_OK;
    if (know_streams(source))
        return STATUS_MEMORY;
    int64_t *next = &source->next_us[packet->stream_index];
    if (packet->dts != AV_NOPTS_VALUE &&
        (type == AVMEDIA_TYPE_VIDEO || type == AVMEDIA_TYPE_AUDIO)) {
        int64_t at = av_rescale_q(packet->dts, stream->time_base, AV_TIME_BASE_Q);
        int64_t jump = *next == AV_NOPTS_VALUE ? 0 : at + source->clock_offset - *next;
        if (jump < -back_most || jump > ahead_most) {
            log_print(source->log, LOG_INFO, "the clock of %s jumps by %.1f s; it goes on evenly",
                      source->name, (double)jump / AV_TIME_BASE);
            source->clock_offset -= jump;
        }
        *next = at + source->clock_offset +
                av_rescale_q(packet->duration, stream->time_base, AV_TIME_BASE_Q);
    }
    int64_t offset = av_rescale_q(source->clock_offset, AV_TIME_BASE_Q, stream->time_base);
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts += offset;
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts += offset;
    return STATUS_OK;
}

static void note_end(struct source *source, const AVPacket *packet)
{
    AVRational base = source->format->streams[packet->stream_index]->time_base;
    if (packet->pts == AV_NOPTS_VALUE)
        return;
    int64_t end = av_rescale_q(packet->pts + packet->duration, base, AV_TIME_BASE_Q);
    if (end > source->end_us)
        source->end_us = end;
}

// Wait until it is time for this packet, in a file that plays at its own pace.
static void keep_pace(const struct source *source, const AVPacket *packet)
{
    const AVStream *stream = source->format->streams[packet->stream_index];
    int64_t begin = source->format->start_time, dts = packet->dts;
    if (!source->paced_ns || dts == AV_NOPTS_VALUE)
        return;
    int64_t at = av_rescale_q(dts, stream->time_base, AV_TIME_BASE_Q);
    if (source->start != AV_NOPTS_VALUE)
        begin = source->start;
    int64_t due = source->paced_ns + (at - (begin == AV_NOPTS_VALUE ? 0 : begin)) * 1000;
    while (!is_over(source) && meter_now_ns() < due) {
        int64_t left = due - meter_now_ns();
        nanosleep(
            &(struct timespec){.tv_nsec = left < POLL_MS * 1000000 ? left : POLL_MS * 1000000},
            NULL);
    }
}

static enum status read_live(struct source *source, AVPacket *packet)
{
    enum status status = live_read(source->live, packet);
    if (status == STATUS_STOPPED && !atomic_load(source->stop))
        return STATUS_EOF; // abandoned
    source->broken |= status == STATUS_EOF;
    return status;
}

// Read what the demuxer has next.
static enum status read_packet(struct source *source, AVPacket *packet)
{
    if (source->live)
        return read_live(source, packet);
    set_deadline(source, source->stall_ns);
    int error = simulate_read(source->simulate, source->format, source->video, packet);
    if (atomic_load(source->stop)) {
        av_packet_unref(packet);
        return STATUS_STOPPED;
    }
    if (source->abandoned) {
        av_packet_unref(packet);
        return STATUS_EOF;
    }
    if (error == AVERROR(ENOMEM))
        return STATUS_MEMORY;
    if (error == AVERROR_EOF)
        return STATUS_EOF;
    if (error < 0) {
        char words[AV_ERROR_MAX_STRING_SIZE];
        av_strerror(is_late(source) ? AVERROR(ETIMEDOUT) : error, words, sizeof words);
        log_print(source->log, LOG_WARNING, "%s breaks off: %s", source->name, words);
        source->broken = true;
        return STATUS_EOF;
    }
    source->images_read += packet->stream_index == source->video;
    enum status status = mend_clock(source, packet);
    note_end(source, packet);
    if (!status)
        keep_pace(source, packet);
    packet->pos = meter_now_ns();
    return status;
}

// The same, with the faults of packets.
static enum status read_simulated(struct source *source, AVPacket *packet)
{
    for (;;) {
        bool got;
        enum status status = simulate_receive(source->simulate, packet, &got);
        if (status || got)
            return status;
        status = read_packet(source, packet);
        bool ended = status == STATUS_EOF;
        if ((status && !ended) || (!ended && packet->stream_index != source->video))
            return status;
        status = simulate_send(source->simulate, ended ? NULL : packet);
        if (status)
            return status;
    }
}

enum status source_read(struct source *source, AVPacket *packet)
{
    return source->simulate ? read_simulated(source, packet) : read_packet(source, packet);
}

// ---- what only packets tell ----

static bool lacks_configuration(const AVStream *stream)
{
    return stream->codecpar->codec_id == AV_CODEC_ID_AAC && !stream->codecpar->extradata_size;
}

bool source_is_learned(const struct source *source)
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

enum status source_learn(struct source *source, const AVPacket *packet)
{
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

// Matroska's reader skips what it cannot parse without a word, but the header knows how long it
// should be.
static bool is_short(const struct source *source)
{
    const AVFormatContext *format = source->format;
    return (av_match_name("matroska", format->iformat->name) ||
            av_match_name("flv", format->iformat->name)) &&
           format->duration_estimation_method == AVFMT_DURATION_FROM_STREAM &&
           source->end_us < format->duration - AV_TIME_BASE / 2;
}

// The file's index points behind its end.
static bool is_cut(const struct source *source)
{
    struct stat about;
    if (source->fd < 0 || fstat(source->fd, &about) || !S_ISREG(about.st_mode))
        return false;
    const AVIndexEntry *last = last_index_entry(source_video(source));
    return last && last->pos + last->size > about.st_size;
}

void source_abandon(struct source *source)
{
    source->abandoned = true;
}

// A number is missing: what comes behind it was not read.
static bool has_gap(const struct source *source)
{
    if (!source->is_sequence || source->images_read >= source->images)
        return false;
    log_print(source->log, LOG_WARNING,
              "%s has a gap: of %d images the first %d were read, up to the missing number",
              source->name, source->images, source->images_read);
    return true;
}

bool source_is_truncated(const struct source *source)
{
    return source->broken ||
           (!source->live && (is_cut(source) || is_short(source) || has_gap(source)));
}

int64_t source_frames(const struct source *source)
{
    const AVStream *video = source_video(source);
    if (source->is_still)
        return 1;
    if (video->nb_frames > 0)
        return video->nb_frames;
    AVRational rate = video->avg_frame_rate;
    return rate.num > 0 && rate.den > 0 ? (int64_t)(source_seconds(source) * av_q2d(rate) + 0.5)
                                        : 0;
}

double source_seconds(const struct source *source)
{
    const AVStream *video = source_video(source);
    if (video->duration > 0)
        return (double)video->duration * av_q2d(video->time_base);
    return source->format->duration > 0 ? (double)source->format->duration / AV_TIME_BASE : 0;
}
