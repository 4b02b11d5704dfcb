// The decoder of the video stream: software into memory that the backend prefers, or the GPU's.
//
// Thread-safety: one thread at a time; the counts any thread.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdatomic.h>

#include "pipeline/input/source.h"
#include "plan/backend.h"

enum hwdec { HWDEC_AUTO, HWDEC_OFF, HWDEC_REQUIRE };

struct decoder_request {
    enum hwdec hwdec;             // not REQUIRE with `repeatable`
    bool repeatable;              // damaged packets give the same frames in every run
    int64_t max_pixels;           // of a picture; larger ones fail
    int threads;                  // on the CPU, at most; 0: as many as the codec takes
    double max_latency;           // seconds that a frame may take through all; 0: any
    const struct part_span *part; // (optional) damage of other packets and frames does not count;
                                  // outlives the decoder
    int frames_held;              // how many decoded frames the rest of the pipeline keeps at once
    bool rescues;                 // the job goes on without the GPU, should that fail
    // (optional) A GPU that is not there yet: software decodes until then. Not with REQUIRE, only with
    // `rescues`.
    struct backend_later later;
};

struct decoder;
struct part_span;

// Open a decoder for the source's video. With hwdec AUTO the GPU decodes when the backend can read
// its surfaces and the driver takes the stream; what it does not take falls back to software with
// one sentence. REQUIRE makes that STATUS_DEVICE. A codec that this FFmpeg does not know is
// STATUS_INPUT. A GPU that comes later begins at the last key frame: what it decodes again is not given
// again. `source` and the backends must outlive the decoder.
enum status decoder_create(const struct decoder_request *request, const struct source *source,
                           struct backend *backend, struct decoder **decoder);
void decoder_destroy(struct decoder **decoder);

// Decode one packet of the stream; NULL: there are no more. The packet stays the caller's. A packet
// that the demuxer marks as damaged, or that cannot be decoded, is counted, not a failure. Ahead of
// a restart all that is in the decoder comes out; then it begins anew, with another codec if need
// be.
enum status decoder_send(struct decoder *decoder, const struct packet *packet);

// Take the next frame if there is one: *got says so. Its pts is set, in the stream's time base,
// never AV_NOPTS_VALUE; one that is damaged, far ahead of those around it, is put right (but of what plays
// in its own time). STATUS_EOF after the last frame.
enum status decoder_receive(struct decoder *decoder, AVFrame *frame, bool *got);

// Decode a frame of the GPU's again, in software, as the GPU is lost and the frame with it: `pts` is the
// frame's time, `frame` (empty) becomes it, in the host's memory. The decoder itself goes on in software
// from its next frame on. Frames may be asked for in any order, as long as they are among the last
// `frames_held`, each once or more. STATUS_DEVICE, without a sentence: it cannot be had, since
// `rescues` was not asked for, or its packets were too many to keep, or the stream has no times. Any
// thread, while the decoder lives.
enum status decoder_rescue(struct decoder *decoder, int64_t pts, AVFrame *frame);

// True if it was given no packet.
bool decoder_is_idle(const struct decoder *decoder);

// A sentence, of at most `size` bytes, on why there was no frame.
void decoder_explain(const struct decoder *decoder, char *text, size_t size);

// Packets that came damaged or could not be decoded, and frames that were decoded with errors, so
// far. Any thread.
int64_t decoder_damaged_packets(const struct decoder *decoder);
int64_t decoder_damaged_frames(const struct decoder *decoder);

// "h264", "h264 on the GPU".
const char *decoder_name(const struct decoder *decoder);

// The software pixel format of the frames, also where they lie on the GPU in another.
enum AVPixelFormat decoder_pixel(const struct decoder *decoder);

// The backend that its frames are for: as given, or the later one, once it uses that. The decoder's
// thread.
struct backend *decoder_backend(const struct decoder *decoder);

// The stream on which surfaces of the GPU become valid; NULL in software.
void *decoder_stream(const struct decoder *decoder);

// The reason why AUTO leaves this codec to the CPU, whatever the GPU; NULL: it need not.
const char *decoder_stays_on_cpu(enum AVCodecID id);

// True if some GPU of NVIDIA's could decode this codec through this FFmpeg.
bool decoder_has_hardware(enum AVCodecID id);

// Name the codec of a stream for people: "vvc (H.266 / VVC (Versatile Video Coding))", and where this
// FFmpeg has no name for it "an unknown codec, tag zz99".
void decoder_name_codec(const AVCodecParameters *about, char *to, size_t size);

// Check that the video is in the clear, and that this FFmpeg has a decoder for it. STATUS_INPUT with a
// sentence. `about`: the parameters of source's video, or newer ones.
enum status decoder_check_codec(const struct source *source, const AVCodecParameters *about,
                                const struct log *log);
