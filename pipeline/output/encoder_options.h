// The options that users give an output: whether the encoder or the muxer takes each, and its
// value.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/output/sink.h"

struct encoder_options {
    const struct log *log;
    const AVCodec *codec;
    const AVOutputFormat *container;
    AVDictionary *encoder, *muxer; // the caller's to free; what codec and container are to get
};

// Add the request's crf, preset, bitrate and options. STATUS_USAGE with a sentence for what neither
// has, and for values that it does not take.
enum status encoder_options_add(struct encoder_options *options,
                                const struct sink_request *request);
