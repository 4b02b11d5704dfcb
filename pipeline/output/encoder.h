// Encoders: which one suits a container, its options, frames in and packets out.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/output/sink.h"

// Find the encoder of this name, or the best that the container has and this build knows: libx264
// or MPEG-4 in mp4, libvpx-vp9 in webm, the image's own in images. NULL with a sentence in the log
// if there is none, or if the container does not take the one that was named.
const AVCodec *encoder_find(const char *name, const AVOutputFormat *container, const char *file,
                            const struct log *log);

// The ranges of Y'CbCr that survive this codec: any, where streams have a tag for it.
enum sink_range encoder_range(const AVCodec *codec);

// Pixel formats that viewers expect of the codec, and that its encoders insist on.
struct pixel_wishes encoder_wishes(const AVCodec *codec);

// True if the encoder, by itself or by generic options, knows this option.
bool encoder_has_option(const AVCodec *codec, const char *key);

// True if an option has this value, where its values are known, as x264's presets are; if not, they
// are in `wanted`. True for other options.
bool encoder_knows(const AVCodec *codec, const char *key, const char *value, char *wanted,
                   size_t size);

// True if the encoder takes this value of an option that is text, as names of presets are, which
// only its library can judge. True for all other options, and where it cannot be tried.
bool encoder_takes(const AVCodec *codec, const char *key, const char *value);

// The video to be encoded.
struct encoder_video {
    const AVFrame *frame; // size, pixel format, tags; of the first frame
    AVRational time_base; // of the frames' timestamps
    AVRational rate;      // frames a second; {0} if unknown
    bool constant_rate;   // the container counts frames
    bool global_header;   // the container keeps the codec's headers apart
    bool still;           // one picture: latency and threads gain nothing
    int threads;          // 0: as many as the encoder takes
};

struct encoder;

// Open the encoder. *options (av_dict) holds what encoder_has_option() knows; entries that are used
// are taken out. STATUS_OUTPUT with a sentence if it refuses.
enum status encoder_create(const AVCodec *codec, const struct encoder_video *video,
                           AVDictionary **options, const struct log *log, struct encoder **encoder);
void encoder_destroy(struct encoder **encoder);

// Encode a frame, its pts in video.time_base; NULL: the end. The frame stays the caller's. *sent is
// false if it was left out, because the encoder's clock has no tick for it.
enum status encoder_send(struct encoder *encoder, const AVFrame *frame, bool *sent);

// Ask for a key frame next; not every encoder obeys.
void encoder_want_key(struct encoder *encoder);

// Receive the next packet; *got is false if there is none yet. STATUS_EOF after the last.
enum status encoder_receive(struct encoder *encoder, AVPacket *packet, bool *got);

// The codec context: for stream parameters and the time base of packets.
const AVCodecContext *encoder_context(const struct encoder *encoder);
