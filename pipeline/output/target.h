// Where an output goes, and in which container.
//
//   kind       names                                                         how it is written
//   FILE       a file, a sequence ("out%04d.png"), "-", "live.m3u8"          see file.h
//   SEGMENTS   a file, when a length of segments is given                    several, by time
//   ADDRESS    rtsp, rtmp, srt, udp, rtp and tcp addresses                   connected again
//   DISPLAY    "display:", "display:TITLE"                                   a window
//   PAGE       "mjpeg:ADDR"                                                  to browsers, over HTTP
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

enum target_kind { TARGET_FILE, TARGET_SEGMENTS, TARGET_ADDRESS, TARGET_DISPLAY, TARGET_PAGE };

struct path_conflicts;

struct target_request {
    const char *name;
    const char *format; // (optional) FFmpeg's name of a muxer
    bool overwrite;
    double segment;                         // seconds; 0: one file
    const struct path_conflicts *conflicts; // (optional) of what else the job reads and writes
};

struct target {
    enum target_kind kind;
    char *name;  // what follows a prefix like "display:"
    char *shown; // the name as it was given, without secrets
    const AVOutputFormat *container;
    bool overwrite;
    int64_t segment_us;
    const struct path_conflicts *conflicts; // (optional)
};

// Find out. STATUS_USAGE with a sentence for what does not exist or does not fit. Creates nothing.
// target_finish() in either case.
enum status target_init(const struct target_request *request, const struct log *log,
                        struct target *target);

// Whether it may be written: STATUS_OUTPUT with a sentence for folders that are not there and files
// that must not be replaced. Makes the folders of segments, no file.
enum status target_check(const struct target *target, const struct log *log);

void target_finish(struct target *target);

// Whether it is somewhere that others watch while it is written, so that nothing may wait and all
// goes at the source's own pace.
static inline bool target_is_live(const struct target *target)
{
    return target->kind >= TARGET_ADDRESS;
}

// Whether the muxer writes images, one a file; and whether a name stands for several.
bool target_is_images(const struct target *target);
bool name_is_sequence(const char *name);

// Whether a file that the target turns out to be made of is nothing else that the job reads or
// writes; else STATUS_USAGE with a sentence.
enum status target_check_conflicts(const struct target *target, const char *name,
                                   const struct log *log);

// Whether a playlist is written, of segments beside it.
bool target_is_playlist(const struct target *target);

// The name of a segment, freed by the caller (free()); NULL without memory. A name with strftime(3)
// conversions is filled in, another gets "-20261121-173000" before its extension: the local time
// `wall_s`, or "-001000" for `media_us` when `wall_s` is negative. `number` above 0 is added behind
// that, where the name is taken.
char *target_segment_name(const struct target *target, int64_t wall_s, int64_t media_us,
                          int number);

// Make the folders of a segment's name, where the time is part of them. What fails is told where
// the file is made.
void target_make_folders(const struct target *target, const char *name);
