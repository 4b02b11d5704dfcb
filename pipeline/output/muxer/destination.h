// Destination: where an output goes, and in which container.
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
#include "pipeline/output/muxer/muxer_quirks.h"

enum destination_kind {
    DESTINATION_FILE,
    DESTINATION_SEGMENTS,
    DESTINATION_ADDRESS,
    DESTINATION_DISPLAY,
    DESTINATION_PAGE
};

struct path_conflicts;

struct destination_request {
    const char *name;
    const char *format; // (optional) FFmpeg's name of a muxer
    bool overwrite;
    double segment;                         // seconds; 0: one file
    const struct path_conflicts *conflicts; // (optional) with what else the job reads and writes
};

struct destination {
    enum destination_kind kind;
    char *name;  // without a prefix like "display:"
    char *shown; // the name as it was given, without secrets
    const AVOutputFormat *container;
    const struct muxer_quirks *quirks; // of the container
    bool overwrite;
    int64_t segment_us;
    const struct path_conflicts *conflicts; // (optional)
};

// Parse a request. STATUS_USAGE with a sentence for formats that do not exist or do not fit.
// Creates nothing. destination_finish() in either case.
enum status destination_init(const struct destination_request *request, const struct log *log,
                             struct destination *destination);

// Check that the destination may be written: STATUS_OUTPUT with a sentence for folders that do not
// exist and files that must not be replaced. Makes the folders of segments, no file.
enum status destination_check(const struct destination *destination, const struct log *log);

void destination_finish(struct destination *destination);

// True if somebody watches while it is written, so that nothing may wait and all goes at the
// source's pace.
static inline bool destination_is_live(const struct destination *destination)
{
    return destination->kind >= DESTINATION_ADDRESS;
}

// True if the muxer writes images, one a file.
static inline bool destination_is_images(const struct destination *destination)
{
    return destination->quirks->images;
}

// True if a playlist is written, of segments beside it.
static inline bool destination_is_playlist(const struct destination *destination)
{
    return destination->quirks->segment_time;
}

// True if a name stands for several images.
bool name_is_sequence(const char *name);

// Check that a file which the destination turns out to need is none that the job reads or writes
// otherwise; else STATUS_USAGE with a sentence.
enum status destination_check_conflicts(const struct destination *destination, const char *name,
                                        const struct log *log);

// The name of a segment, freed by the caller (free()); NULL without memory. A name with strftime(3)
// conversions is filled in, another gets "-20261121-173000" before its extension: the local time
// `wall_s`, or "-001000" for `media_us` when `wall_s` is negative. `number` above 0 is added behind
// that, where the name is taken.
char *destination_segment_name(const struct destination *destination, int64_t wall_s,
                               int64_t media_us, int number);

// Make the folders of a segment's name, where the time is part of them. One that cannot be made is
// reported where the file is made, one whose name is not safe here: STATUS_OUTPUT with a sentence.
enum status destination_make_folders(const struct destination *destination, const char *name,
                                     const struct log *log);
