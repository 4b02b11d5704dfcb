// Encoder options: those that users give an output, sorted into the encoder's and the muxer's, with
// their values checked.
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
    AVDictionary *encoder, *muxer; // the caller frees them
};

// Add the request's crf, preset, bitrate and options. STATUS_USAGE with a sentence for options that
// neither has, and for values that it does not take.
enum status encoder_options_add(struct encoder_options *options,
                                const struct sink_request *request);
