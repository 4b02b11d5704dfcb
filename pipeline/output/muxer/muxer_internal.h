// A muxer from the inside: muxer.c creates, writes and finishes it, muxer_streams.c chooses its
// streams, muxer_header.c begins it.
#pragma once

#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>

#include "pipeline/output/muxer/muxer.h"
#include "pipeline/output/muxer/muxer_files.h"

// Route: where packets of a source's stream go.
struct route {
    int stream; // of the muxer; -1: nowhere
    AVRational time_base;
    int64_t shift; // of timestamps, in time_base
    int64_t last_dts;
    bool copied;          // passthrough
    AVBSFContext *filter; // of packets; NULL: none
};

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
    bool live; // after a crash the output plays, up to a second before
    bool published;
    bool begun;                           // and not finished
    char error[AV_ERROR_MAX_STRING_SIZE]; // of a connection
    _Atomic int64_t sent_bytes;           // to an address
};

// Take the ADTS headers off AAC that is copied. Between muxer_add_streams() and the header.
enum status muxer_strip_aac(struct muxer *muxer);

// Note that a call failed, and log why: the file system's error, if it was that. For a connection
// muxer_error() keeps the reason, nothing is logged, and it is STATUS_EOF.
enum status muxer_failed(struct muxer *muxer, int error, const char *what);
