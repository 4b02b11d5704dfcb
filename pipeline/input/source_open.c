#include "pipeline/input/source_open.h"

#include <errno.h>
#include <glob.h>
#include <libavcodec/avcodec.h>
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/devices/camera.h"
#include "pipeline/input/devices/devices.h"
#include "pipeline/input/io/probe.h"
#include "pipeline/input/part_span.h"
#include "pipeline/input/pushed.h"

static bool is_over(void *opaque)
{
    return source_is_over(opaque);
}

static int interrupted(void *opaque)
{
    return source_is_over(opaque) || source_is_late(opaque);
}

bool source_log_refusal(const struct source *source)
{
    char why[512];
    bool refused = reach_take_refusal(source->reach, why, sizeof why);
    if (refused)
        log_print(source->log, LOG_ERROR, "%s %s", source->name, why);
    return refused;
}

// ---- opening ----

static enum status open_io(struct source *source, const char *name)
{
    const struct input_io_request request = {
        .name = name,
        .is_stdin = source->is_stdin,
        .log = source->log,
        .is_over = is_over,
        .opaque = source,
    };
    return input_io_open(&request, &source->io);
}

static enum status probe(struct source *source, const char *name, const AVInputFormat **format)
{
    int error = reach_probe(input_io_context(source->io), name, source->format, format);
    if (atomic_load(source->stop))
        return STATUS_STOPPED;
    if (source_is_empty(source))
        return log_fail(source->log, STATUS_INPUT, "%s is empty (0 bytes); a video was expected",
                        source->name);
    if (error < 0 || !*format)
        return log_fail(source->log, STATUS_INPUT,
                        "%s is in no format that this FFmpeg recognises; a video or an image was "
                        "expected (raw video needs -F rawvideo --size WxH --pix-fmt NAME)",
                        source->name);
    if (!reach_allows(source->reach, *format))
        return log_fail(
            source->log, STATUS_INPUT,
            "%s is a playlist (%s), a list of other files; sluice opens only the file it "
            "is given: join or name the video itself",
            source->name, (*format)->name);
    return STATUS_OK;
}

static enum status set_option(AVDictionary **options, const char *key, const char *value)
{
    return !value || av_dict_set(options, key, value, 0) >= 0 ? STATUS_OK : STATUS_MEMORY;
}

static const char *option_flag(const char *key)
{
    return !strcmp(key, "video_size")     ? "--size"
           : !strcmp(key, "framerate")    ? "--rate"
           : !strcmp(key, "pixel_format") ? "--pix-fmt"
                                          : key;
}

// Check the description of raw video and devices, before a demuxer says less about it.
static enum status check_description(const struct source *source,
                                     const struct source_request *request, bool may_be_codec)
{
    bool codec = may_be_codec && request->pixfmt && avcodec_descriptor_get_by_name(request->pixfmt);
    if (request->pixfmt && !codec && av_get_pix_fmt(request->pixfmt) == AV_PIX_FMT_NONE)
        return log_fail(
            source->log, STATUS_USAGE,
            "--pix-fmt is '%s', which is no pixel format; 'ffmpeg -pix_fmts' lists them",
            request->pixfmt);
    return STATUS_OK;
}

static enum status find_demuxer(const struct source *source, const char *name,
                                const AVInputFormat **demuxer)
{
    *demuxer = NULL;
    if (name && !(*demuxer = av_find_input_format(url_format(name))))
        return log_fail(source->log, STATUS_USAGE,
                        "there is no input format '%s'; 'ffmpeg -demuxers' lists them", name);
    return STATUS_OK;
}

// Arguments for libavformat: what to open, by which demuxer (NULL: it finds out), and the request's
// description of raw video and devices as options. On success the caller frees *options.
struct opening {
    bool is_device;
    const char *what;
    const AVInputFormat *demuxer;
    AVDictionary *options;
};

static struct camera_request camera_request_of(const struct source_request *request)
{
    return (struct camera_request){request->pixfmt, request->width, request->height, request->rate};
}

static enum status set_pair(AVDictionary **options, const char *key, int first, char between,
                            int second)
{
    char text[32];
    snprintf(text, sizeof text, "%d%c%d", first, between, second);
    return set_option(options, key, first ? text : NULL);
}

// Check a device against the request, which it fulfils or fails. *pixfmt: the format to open it in.
static enum status check_device(const struct source *source, const struct source_request *request,
                                const struct opening *opening, const char **pixfmt)
{
    const struct camera_request camera = camera_request_of(request);
    const char *const keys[] = {request->width ? "video_size" : NULL,
                                request->rate.num ? "framerate" : NULL,
                                request->pixfmt ? "pixel_format" : NULL};
    if (device_is_camera(opening->demuxer))
        return camera_check(opening->what, &camera, source->log, pixfmt);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (keys[k] && !av_opt_find((void *)&opening->demuxer->priv_class, keys[k], NULL, 0,
                                    AV_OPT_SEARCH_FAKE_OBJ))
            return log_fail(source->log, STATUS_USAGE,
                            "%s is nothing that a device of kind %s takes", option_flag(keys[k]),
                            opening->demuxer->name);
    return STATUS_OK;
}

static enum status prepare(const struct source *source, const struct source_request *request,
                           struct opening *opening)
{
    const char *device, *pixfmt = request->pixfmt;
    *opening = (struct opening){0};
    opening->is_device = url_is_device(request->name, &device, &opening->what);
    bool is_camera = opening->is_device && !strcmp(device, "v4l2");
    enum status status = check_description(source, request, is_camera);
    if (!status)
        status = opening->is_device ? device_find(device, source->log, &opening->demuxer)
                                    : find_demuxer(source, request->format, &opening->demuxer);
    if (!status && opening->is_device)
        status = check_device(source, request, opening, &pixfmt);
    if (status)
        return status;
    AVDictionary **options = &opening->options;
    status = set_pair(options, "video_size", request->width, 'x', request->height);
    if (!status)
        status = set_pair(options, "framerate", request->rate.num, '/', request->rate.den);
    if (!status)
        status = set_option(options, "pixel_format", pixfmt);
    if (status)
        av_dict_free(options);
    return status;
}

// Open images in their order, by number or by name.
static enum status prepare_sequence(struct source *source, const char *name,
                                    struct opening *opening)
{
    bool numbered = url_is_numbered(name);
    int first = numbered ? url_first_number(name, &source->images) : -1;
    if (numbered ? first < 0 : !url_has_matches(name))
        return log_fail(source->log, STATUS_INPUT, "no file matches %s", source->name);
    opening->demuxer = av_find_input_format("image2");
    char number[16];
    snprintf(number, sizeof number, "%d", first);
    const char *const options[][2] = {{"pattern_type", numbered ? "sequence" : "glob"},
                                      {"start_number", first >= 0 ? number : NULL},
                                      {"protocol_whitelist", "file"},
                                      {"format_whitelist", "image2"}};
    enum status status = STATUS_OK;
    for (size_t k = 0; k < sizeof options / sizeof *options && !status; k++)
        status = set_option(&opening->options, options[k][0], options[k][1]);
    return status;
}

// Open a file, of which libavformat gets nothing but its bytes. `what` has room for its name and
// "file:".
static enum status prepare_file(struct source *source, const char *name, char *what, size_t room,
                                struct opening *opening)
{
    snprintf(what, room, "file:%s", name);
    opening->what = what;
    if (reach_bind(source->reach, source->format, &opening->options) < 0)
        return STATUS_MEMORY;
    enum status status = open_io(source, name);
    if (status)
        return status;
    source->format->pb = input_io_context(source->io);
    source->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    return opening->demuxer ? STATUS_OK : probe(source, what, &opening->demuxer);
}

// Whether the input may be in the format that was asked for.
static enum status check_format(const struct source *source, const AVInputFormat *demuxer)
{
    return !demuxer || reach_allows(source->reach, demuxer)
               ? STATUS_OK
               : log_fail(
                     source->log, STATUS_INPUT,
                     "the format %s is a list of other files, or a device; sluice opens only what "
                     "it is given",
                     demuxer->name);
}

// Check that raw video is described: it says nothing of itself, and a wrong guess would not show.
static enum status check_raw(const struct source *source, const struct source_request *request,
                             const AVInputFormat *demuxer)
{
    bool sized = demuxer && av_match_name(demuxer->name, "rawvideo,bitpacked,v210,v210x");
    bool typed = demuxer && av_match_name(demuxer->name, "rawvideo,bitpacked");
    if ((!sized || request->width) && (!typed || request->pixfmt))
        return STATUS_OK;
    return log_fail(source->log, STATUS_USAGE,
                    "%s is raw video, which does not say what it holds: give %s%s%s", source->name,
                    request->width ? "" : "--size WxH",
                    !request->width && typed && !request->pixfmt ? " and " : "",
                    typed && !request->pixfmt
                        ? "--pix-fmt NAME, as in --pix-fmt yuv420p ('ffmpeg -pix_fmts' lists them)"
                        : "");
}

// Read the header. FFmpeg frees the context when this fails; the pointer is NULL then.
static enum status read_header(struct source *source, struct opening *opening)
{
    const AVInputFormat *demuxer = opening->demuxer;
    source_set_deadline(source, source->open_ns);
    int error = open_format(&source->format, opening->what, demuxer, &opening->options);
    if (error == AVERROR_EXIT && source_is_late(source))
        error = AVERROR(ETIMEDOUT);
    if (error == AVERROR_EXIT && source_is_over(source))
        return STATUS_STOPPED;
    char host[256];
    const char *trouble =
        error == AVERROR(EIO) ? url_host_trouble(opening->what, host, sizeof host) : NULL;
    if (trouble)
        return log_fail(source->log, STATUS_INPUT, "%s cannot be read: the host %s %s",
                        source->name, host, trouble);
    source->broken |= source_log_refusal(source);
    if (error == AVERROR(EINVAL) && !demuxer && !source->io) // the whitelist refused it
        return log_fail(
            source->log, STATUS_INPUT,
            "%s cannot be read: it is no video, but a list of other files or addresses; "
            "of those from HTTP sluice follows HLS only",
            source->name);
    if (error < 0)
        return check_failed(source->log, STATUS_INPUT, error, "%s cannot be read%s%s%s",
                            source->name, demuxer ? " as " : "", demuxer ? demuxer->name : "",
                            error == AVERROR(EIO) ? reach_doubt(source->reach) : "");
    const AVDictionaryEntry *left = av_dict_get(opening->options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    if (!left)
        return STATUS_OK;
    return log_fail(source->log, STATUS_USAGE, "%s is for raw video; %s is %s%s",
                    option_flag(left->key), source->name, source->format->iformat->name,
                    !strcmp(left->key, "video_size") ? " (sluice does not resize)"
                    : !strcmp(left->key, "pixel_format")
                        ? " (the output's is --pix-fmt behind INPUT)"
                        : "");
}

static enum status open_container(struct source *source, const struct source_request *request)
{
    const char *name = request->name;
    char what[4200];
    struct opening opening;
    enum status status = prepare(source, request, &opening);
    if (status)
        return status;
    if (!source->is_sequence && !opening.is_device)
        status = check_format(source, opening.demuxer);
    if (status)
        goto done;
    if (source->is_sequence)
        status = prepare_sequence(source, name, &opening);
    else if (url_has_scheme(name))
        status = reach_bind(source->reach, source->format, &opening.options) < 0 ? STATUS_MEMORY
                                                                                 : STATUS_OK;
    else if (!opening.is_device)
        status = prepare_file(source, name, what, sizeof what, &opening);
    if (!status)
        status = check_raw(source, request, opening.demuxer);
    if (!status)
        status = read_header(source, &opening);
done:
    av_dict_free(&opening.options);
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

static enum status choose_stream(struct source *source, int wanted)
{
    AVFormatContext *format = source->format;
    char found[512];
    describe_streams(format, found, sizeof found);
    if (wanted) {
        int index = wanted - 1;
        if (index < 0 || index >= (int)format->nb_streams)
            return log_fail(source->log, STATUS_USAGE, "--stream is '%d'; %s has streams 0 to %d",
                            index, source->name, (int)format->nb_streams - 1);
        if (format->streams[index]->codecpar->codec_type != AVMEDIA_TYPE_VIDEO)
            return log_fail(source->log, STATUS_USAGE, "stream %d of %s is no video; it has: %s",
                            index, source->name, found);
        source->video = index;
        return STATUS_OK;
    }
    source->video = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (source->video < 0 || is_picture(source_video(source)))
        return log_fail(source->log, STATUS_INPUT, "%s has no video; it has: %s", source->name,
                        found);
    return STATUS_OK;
}

static bool is_still(const struct source *source)
{
    const char *name = source->format->iformat->name;
    size_t length = strlen(name);
    bool pipe = length > 5 && !strcmp(name + length - 5, "_pipe");
    return pipe && !source->is_stdin && !source->is_sequence;
}

static void seek_to_start(struct source *source, double start)
{
    source->start = AV_NOPTS_VALUE;
    if (start <= 0)
        return;
    int64_t begin = source->format->start_time;
    source->start = (int64_t)(start * AV_TIME_BASE) + (begin == AV_NOPTS_VALUE ? 0 : begin);
    // Seek to the keyframe before, and further where seeking is by estimate. A file that cannot
    // seek, or begins within the estimate's error, is read from the beginning.
    source_set_deadline(source, source->open_ns);
    bool estimates = source->format->iformat->flags & AVFMT_TS_DISCONT;
    int64_t target = source->start - (estimates ? 3 * (int64_t)AV_TIME_BASE : 0);
    if (!source->pushed && (begin == AV_NOPTS_VALUE || target > begin))
        avformat_seek_file(source->format, -1, INT64_MIN, target, target, 0);
}

// Go to where a part's packets begin.
static enum status seek_to_part(struct source *source, const struct part_span *part)
{
    for (unsigned k = 0; part && k < source->format->nb_streams; k++)
        if ((int)k != source->video)
            source->format->streams[k]->discard = AVDISCARD_ALL;
    if (!part || part->seek_us == INT64_MIN)
        return STATUS_OK;
    source->awaits_key = true;
    enum status status = source_seek(source, part->seek_us);
    if (!status)
        return STATUS_OK;
    return log_fail(source->log, status, "%s cannot be sought to %.3f s, where a part begins",
                    source->name, (double)part->seek_us * 1e-6);
}

// ---- live sources ----

static enum status check_camera(const struct source *source, const struct source_request *request)
{
    const struct camera_request camera = camera_request_of(request);
    AVRational given = source->format->streams[0]->avg_frame_rate;
    return camera_check_rate(source->name, &camera, given, source->log);
}

static enum status open_live(struct source *source, const struct source_request *request)
{
    struct opening opening;
    enum status status = prepare(source, request, &opening);
    if (status)
        return status;
    if (!opening.is_device)
        status = check_format(source, opening.demuxer);
    if (status)
        goto done;
    if (url_has_scheme(opening.what) && !strncmp(opening.what, "rtsp", 4)) {
        const char *transport = request->rtsp_transport;
        status = transport ? set_option(&opening.options, "rtsp_transport", transport)
                           : set_option(&opening.options, "rtsp_flags", "prefer_tcp");
    }
    if (status)
        goto done;
    struct live_request live = {
        .url = opening.what,
        .name = source->name,
        .demuxer = opening.demuxer,
        .options = opening.options,
        .open_timeout = (double)source->open_ns * 1e-9,
        .stall_timeout = (double)source->stall_ns * 1e-9,
        .reconnects = request->reconnects,
        .simulate = source->simulate,
        .reach = opening.is_device ? NULL : source->reach,
        .max_pixels = request->max_pixels,
        .is_over = is_over,
        .opaque = source,
    };
    status = live_open(&live, source->log, &source->live);
    if (status == STATUS_STOPPED && !atomic_load(source->stop))
        status = STATUS_EOF;
    if (!status)
        source->format = (AVFormatContext *)live_format(source->live);
    if (!status && device_is_camera(opening.demuxer))
        status = check_camera(source, request);
done:
    av_dict_free(&opening.options);
    return status;
}

// The stall limit of playlists: segments are up to ten seconds long, and late.
static const int64_t playlist_stall_ns = 30 * INT64_C(1000000000);

// True if an address turns out to have no end: a camera's MJPEG, a broadcast's playlist.
static bool has_no_end(const struct source *source, const char *name)
{
    const AVFormatContext *format = source->format;
    bool seekable = format->pb && format->pb->seekable & AVIO_SEEKABLE_NORMAL;
    bool list = av_match_name("hls", format->iformat->name);
    bool sized = format->pb && avio_size(format->pb) > 0;
    return url_has_scheme(name) && strncmp(name, "file:", 5) != 0 &&
           format->duration == AV_NOPTS_VALUE && (list || (!seekable && !sized));
}

static enum status open_file(struct source *source, const struct source_request *request)
{
    source->format = avformat_alloc_context();
    if (!source->format)
        return STATUS_MEMORY;
    source->format->interrupt_callback = (AVIOInterruptCB){interrupted, source};
    enum status status = open_container(source, request);
    if (status)
        return status;
    int error = probe_streams(source->format, request->max_pixels);
    source->broken |= source_log_refusal(source);
    if (atomic_load(source->stop))
        return STATUS_STOPPED;
    if (error < 0 && source_is_late(source))
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

// True if FFmpeg generates the picture: it cannot be lost, but has a pace.
static bool is_generator(const char *name)
{
    const char *format, *what;
    return url_is_device(name, &format, &what) && !strcmp(format, "lavfi");
}

static bool is_live(const struct source_request *request)
{
    const char *format, *what;
    if (url_is_device(request->name, &format, &what))
        return !is_generator(request->name);
    bool local = !strncmp(request->name, "file:", 5);
    return url_is_live(request->name) || (request->live && !local && url_has_scheme(request->name));
}

// Decide what the input may reach, and whether it is opened at all.
static enum status make_reach(struct source *source, const struct source_request *request)
{
    const char *format, *what;
    bool address = url_has_scheme(request->name) && !url_is_device(request->name, &format, &what);
    const struct reach_request reach = {.url = address ? request->name : NULL,
                                        .hosts = request->playlist_hosts,
                                        .tls_verify = request->tls_verify || request->ca_file,
                                        .ca_file = request->ca_file};
    if (address && !reach_protocols(request->name))
        return log_fail(
            source->log, STATUS_INPUT,
            "%s is no address that sluice opens; rtsp, rtmp, srt, udp, rtp, tcp, http and "
            "https ones are",
            source->name);
    if (address && reach.tls_verify && !reach_can_verify(request->name)) {
        bool rtsp = !strncmp(request->name, "rtsp", 4);
        return log_fail(source->log, STATUS_INPUT,
                        "--tls-verify: this FFmpeg (libavformat %d) cannot verify %s servers; %s",
                        LIBAVFORMAT_VERSION_MAJOR, rtsp ? "rtsps" : "rtmpts",
                        rtsp ? "a newer one can" : "those of rtmps it can");
    }
    if (address && reach.ca_file && access(reach.ca_file, R_OK))
        return log_fail(source->log, STATUS_USAGE, "--ca-file: %s cannot be read: %s",
                        reach.ca_file, strerror(errno));
    source->reach = reach_create(&reach);
    return source->reach ? STATUS_OK : STATUS_MEMORY;
}

static void log_peer(const struct source *source)
{
    enum reach_peer peer = reach_peer(source->reach);
    if (peer == REACH_PEER_VERIFIED)
        log_print(source->log, LOG_INFO, "%s: the server's certificate is valid", source->name);
    if (peer == REACH_PEER_UNVERIFIED)
        log_print(source->log, LOG_INFO,
                  "%s: encrypted, but whose server it is was not verified; --tls-verify does",
                  source->name);
}

enum status source_begin(struct source *source, const struct source_request *request)
{
    enum status status = make_reach(source, request);
    if (!status && request->push)
        status = pushed_open(source, request);
    else if (!status)
        status = source_await(source, request, is_live(request) ? open_live : open_file);
    if (status)
        return status;
    log_peer(source);
    if (!request->push)
        status = choose_stream(source, request->stream);
    if (status)
        return status;
    if (source->live && request->start > 0)
        return log_fail(source->log, STATUS_USAGE, "%s is live: it has no --start but now",
                        source->name);
    seek_to_start(source, request->start);
    status = seek_to_part(source, request->part);
    if (status)
        return status;
    if (source->live)
        live_watch(source->live, source->video);
    else if (request->live || is_generator(request->name))
        source->paced_ns = meter_now_ns();
    source->is_still = !source->live && is_still(source);
    return simulate_begin(source->simulate, source_video(source), source->name, source->log);
}
