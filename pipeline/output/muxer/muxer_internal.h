// A muxer from the inside: muxer.c has its life, muxer_streams.c what goes in, muxer_header.c how
// it begins.
#pragma once

#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>

#include "pipeline/output/muxer/muxer.h"
#include "pipeline/output/muxer/muxer_files.h"

// Where packets of a source's stream go.
struct route {
    int stream; // of the output; -1: nowhere
    AVRational time_base;
    int64_t shift; // of timestamps, in time_base
    int64_t last_dts;
    bool copied;          // from the source, as it is
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
    bool live; // written so that what a crash leaves can be played, to within a second
    bool published;
    bool begun;                           // and not finished
    char error[AV_ERROR_MAX_STRING_SIZE]; // of a connection
    _Atomic int64_t sent_bytes;           // to an address
};

// Note that a call failed, and log why: what the file system said, if it was that. Of a connection
// the words are kept for muxer_error(), and it is STATUS_EOF.
enum status muxer_failed(struct muxer *muxer, int error, const char *what);
