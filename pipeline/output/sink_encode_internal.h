// The sink that encodes, from the inside: sink_encode.c encodes frames and hands packets on,
// sink_encode_prepare.c chooses formats and encoder, and lets outputs share an encoding.
#pragma once

#include "pipeline/output/converter.h"
#include "pipeline/output/encoder.h"
#include "pipeline/output/encoder_options.h"
#include "pipeline/output/sink.h"

struct encode_sink {
    struct sink base;
    const struct log *log;
    const struct stop *stop;
    const AVCodec *codec;
    bool codec_named;
    AVDictionary *encoder_options;
    const AVOutputFormat *container; // of the first output
    bool one_a_file;                 // it writes images
    int threads;                     // of the encoder; 0: as many as it takes
    struct mux_thread *mux[MAX_OUTPUTS];
    int muxes;
    struct destination whole; // what the output is a part of; zero: it is whole
    struct encoder *encoder;
    struct sink_video video;
    int stream; // of the source: the filtered one
    struct converter converter;
    _Atomic int64_t taken; // frames
    bool await_start;      // an address not reached at first is tried again
    int64_t seen_ns;       // when something was encoded though nobody watched
};

// The destination that the encoding follows.
static inline const struct destination *encode_sink_followed(const struct encode_sink *self,
                                                             int mux)
{
    return self->whole.container ? &self->whole : mux_thread_destination(self->mux[mux]);
}

// True if the container counts frames instead of timing them.
static inline bool encode_sink_counts_frames(const struct encode_sink *self)
{
    return encode_sink_followed(self, 0)->quirks->counts_frames;
}

// Create the mux thread, and choose what to encode by.
enum status encode_sink_prepare(struct encode_sink *self, const struct sink_request *request);
