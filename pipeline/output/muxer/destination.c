#define _GNU_SOURCE
#include "pipeline/output/muxer/destination.h"

#include <assert.h>
#include <libavutil/avstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/file/folder.h"
#include "pipeline/output/file/path_conflicts.h"

static const int64_t segment_least_us = 100000;

// ---- containers ----

static enum status find_container(struct destination *destination, const char *format,
                                  const char *file, const struct log *log)
{
    if (!format && !strcmp(file, "-"))
        return log_fail(log, STATUS_USAGE,
                        "standard output needs a format: -F y4m, -F matroska, ...");
    format = url_format(format);
    if (url_has_long_numbers(file))
        return log_fail(log, STATUS_USAGE,
                        "%s asks for numbers of more digits than a file's name has letters",
                        destination->shown);
    destination->container = av_guess_format(format, format ? NULL : file, NULL);
    if (destination->container) {
        destination->quirks = muxer_quirks_of(destination->container);
        return STATUS_OK;
    }
    struct stat about;
    if (!format && !stat(file, &about) && S_ISDIR(about.st_mode))
        return log_fail(log, STATUS_USAGE, "%s is a folder; name a file in it, as in %s%sout.mp4",
                        file, file, file[strlen(file) - 1] == '/' ? "" : "/");
    if (!format && (!strcmp(file, "null") || !strcmp(file, "hash") || !strcmp(file, "display")))
        return log_fail(log, STATUS_USAGE, "the output '%s' has no extension; did you mean %s:%s?",
                        file, file, *file == 'h' ? "-" : "");
    if (format)
        return log_fail(log, STATUS_USAGE,
                        "there is no output format '%s'; 'ffmpeg -muxers' lists them", format);
    return log_fail(log, STATUS_USAGE,
                    "the extension of %s says no format that this FFmpeg writes; "
                    "name one by -F, as in -F matroska",
                    file);
}

// The format that servers expect at an address of this scheme; NULL: nothing is published there.
static const char *format_of_scheme(const char *name)
{
    static const struct {
        const char *schemes, *format;
    } known[] = {
        {"rtsp,rtsps", "rtsp"},
        {"rtmp,rtmps,rtmpt,rtmpe,rtmpte,rtmpts", "flv"},
        {"srt,udp,tcp", "mpegts"},
        {"rtp", "rtp_mpegts"},
    };
    char scheme[16];
    snprintf(scheme, sizeof scheme, "%.*s", (int)strcspn(name, ":"), name);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (av_match_name(scheme, known[k].schemes))
            return known[k].format;
    return NULL;
}

// ---- kinds ----

static enum status find_address(struct destination *destination,
                                const struct destination_request *request, const struct log *log)
{
    const char *usual = format_of_scheme(request->name);
    destination->kind = DESTINATION_ADDRESS;
    if (!usual)
        return log_fail(
            log, STATUS_USAGE,
            "%s cannot be published to; rtsp, rtmp, srt, udp, rtp and tcp addresses can",
            destination->shown);
    return find_container(destination, request->format ? request->format : usual, request->name,
                          log);
}

static enum status find_display(struct destination *destination, const struct log *log)
{
    destination->kind = DESTINATION_DISPLAY;
    return find_container(destination, "rawvideo", "", log);
}

static enum status find_page(struct destination *destination, const struct log *log)
{
    destination->kind = DESTINATION_PAGE;
    if (!*destination->name)
        return log_fail(log, STATUS_USAGE,
                        "mjpeg: needs an address to listen on, as in mjpeg:8080");
    return find_container(destination, "mjpeg", "", log);
}

static enum status check_file(const struct destination *destination, const struct log *log)
{
    char first[4096];
    int count;
    if (!destination_is_images(destination) || !name_is_sequence(destination->name))
        return file_check(destination->name, destination->overwrite, log);
    // The first image: one that exists already would be in the way once its number comes.
    int number = url_first_number(destination->name, &count);
    url_numbered_name(first, sizeof first, destination->name, number < 0 ? 1 : number,
                      AV_FRAME_FILENAME_FLAGS_MULTIPLE);
    return file_check(first, destination->overwrite, log);
}

static enum status check_segments(const struct destination *destination, const struct log *log)
{
    if (destination->segment_us < segment_least_us)
        return log_fail(log, STATUS_USAGE,
                        "segments of %s would be too short; they take %g s or more",
                        destination->shown, (double)segment_least_us / AV_TIME_BASE);
    if (destination_is_playlist(destination))
        return log_fail(
            log, STATUS_USAGE,
            "--segment: the playlist %s has segments already; --option %s=SECONDS says how "
            "long they are",
            destination->shown, destination->quirks->segment_time);
    if (!strcmp(destination->name, "-") || destination_is_images(destination) ||
        destination_is_playlist(destination))
        return log_fail(log, STATUS_USAGE, "%s cannot be written in segments", destination->shown);
    if (name_is_sequence(destination->name))
        return log_fail(log, STATUS_USAGE,
                        "%s numbers images; segments are named by the time, as in out-%%H%%M.mkv",
                        destination->shown);
    return STATUS_OK;
}

// Make the folder of a playlist, which its segments fill: the last part of the path only.
static enum status make_folder(const char *name, const struct log *log)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", name);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return STATUS_OK;
    *slash = 0;
    return folder_make(folder, log);
}

static enum status check_segment(const struct destination *destination, const struct log *log)
{
    char *name = destination_segment_name(destination, (int64_t)time(NULL), 0, 0);
    enum status status = name ? destination_make_folders(destination, name, log) : STATUS_MEMORY;
    if (!status)
        status = file_check(name, true, log);
    free(name);
    return status;
}

enum status destination_check(const struct destination *destination, const struct log *log)
{
    assert(destination->container);
    if (destination->kind == DESTINATION_SEGMENTS)
        return check_segment(destination, log);
    if (destination->kind != DESTINATION_FILE)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (destination_is_playlist(destination))
        status = make_folder(destination->name, log);
    return status ? status : check_file(destination, log);
}

static enum status find_file(struct destination *destination,
                             const struct destination_request *request, const struct log *log)
{
    destination->kind = request->segment > 0 ? DESTINATION_SEGMENTS : DESTINATION_FILE;
    destination->segment_us = (int64_t)(request->segment * AV_TIME_BASE);
    enum status status = find_container(destination, request->format, destination->name, log);
    if (status)
        return status;
    return destination->kind == DESTINATION_FILE ? STATUS_OK : check_segments(destination, log);
}

enum status destination_init(const struct destination_request *request, const struct log *log,
                             struct destination *destination)
{
    const char *name = request->name;
    char shown[4300];
    bool display = av_strstart(request->name, "display:", &name);
    bool page = !display && av_strstart(request->name, "mjpeg:", &name);
    url_without_secrets(request->name, shown, sizeof shown);
    *destination = (struct destination){.name = strdup(name),
                                        .shown = strdup(shown),
                                        .overwrite = request->overwrite,
                                        .conflicts = request->conflicts};
    if (!destination->name || !destination->shown)
        return STATUS_MEMORY;
    if ((display || page) && request->format)
        return log_fail(log, STATUS_USAGE, "-F is for files and addresses; %s has its own format",
                        destination->shown);
    bool address = !display && !page && url_has_scheme(request->name);
    if ((display || page || address) && request->segment > 0)
        return log_fail(log, STATUS_USAGE, "--segment is for files; %s is none",
                        destination->shown);
    if (display)
        return find_display(destination, log);
    if (page)
        return find_page(destination, log);
    return address ? find_address(destination, request, log) : find_file(destination, request, log);
}

void destination_finish(struct destination *destination)
{
    free(destination->name);
    free(destination->shown);
    *destination = (struct destination){0};
}

enum status destination_check_conflicts(const struct destination *destination, const char *name,
                                        const struct log *log)
{
    return destination->conflicts && !urls_are_same(name, destination->name)
               ? path_conflicts_check_file(destination->conflicts, name, log)
               : STATUS_OK;
}

bool name_is_sequence(const char *name)
{
    char first[4096];
    return url_numbered_name(first, sizeof first, name, 1, AV_FRAME_FILENAME_FLAGS_MULTIPLE) >= 0;
}

// ---- segments ----

char *destination_segment_name(const struct destination *destination, int64_t wall_s,
                               int64_t media_us, int number)
{
    assert(destination->kind == DESTINATION_SEGMENTS);
    char pattern[4096], stamped[4096], *made;
    const char *slash = strrchr(destination->name, '/'), *dot = strrchr(destination->name, '.');
    size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - destination->name)
                                                     : strlen(destination->name);
    int64_t media_s = media_us / AV_TIME_BASE;
    time_t at = (time_t)(wall_s < 0 ? media_s : wall_s);
    struct tm broken = {0};
    if (wall_s < 0)
        gmtime_r(&at, &broken);
    else
        localtime_r(&at, &broken);
    if (strchr(destination->name, '%'))
        snprintf(pattern, sizeof pattern, "%.*s", (int)stem, destination->name);
    else if (wall_s < 0)
        snprintf(pattern, sizeof pattern, "%.*s-%02lld%02d%02d", (int)stem, destination->name,
                 (long long)(media_s / 3600), (int)(media_s / 60 % 60), (int)(media_s % 60));
    else
        snprintf(pattern, sizeof pattern, "%.*s-%%Y%%m%%d-%%H%%M%%S", (int)stem, destination->name);
    if (!strftime(stamped, sizeof stamped, pattern, &broken))
        return NULL;
    bool failed = number > 0
                      ? asprintf(&made, "%s-%d%s", stamped, number, destination->name + stem) < 0
                      : asprintf(&made, "%s%s", stamped, destination->name + stem) < 0;
    return failed ? NULL : made;
}

enum status destination_make_folders(const struct destination *destination, const char *name,
                                     const struct log *log)
{
    enum status status = STATUS_OK;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", name);
    char *slash = strchr(destination->name, '%') && *folder ? strchr(folder + 1, '/') : NULL;
    for (; slash && !status; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        status = folder_make(folder, log);
        *slash = '/';
    }
    return status;
}
