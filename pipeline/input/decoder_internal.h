// The decoder's state, and what its files share; for decoder*.c only.
#pragma once

#include <libavcodec/avcodec.h>
#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/history.h"

// The decode thread's, but for what is guarded and the counts.
struct decoder {
    const struct source *source;
    const struct log *log;
    struct backend *backend;
    struct decoder_request request;
    AVCodecParameters *about; // of the stream, now
    AVCodecContext *codec;
    void *stream;          // of the GPU
    AVBufferRef *hardware; // NULL: software
    bool awaits;           // request.later: it is not known yet whether the GPU is coming
    bool copies;           // frames leave the GPU's decoder for memory of their own:
    AVBufferRef *memory;   // of frames as the last one; NULL: there was none
    char name[64];
    int64_t next_pts; // for frames without a timestamp

    // Packets that the GPU was given, for software to get again: all until the first frame shows that
    // it can decode them, and then those that rescues need. Or those that software was given, for a GPU
    // that comes later. NULL: they are nobody's.
    struct history *history;
    int replayed; // of them
    bool began, draining, replaying;
    int64_t given_pts;  // of the frame that was given out last; AV_NOPTS_VALUE: none
    int64_t resume_pts; // frames up to this time were given out before; AV_NOPTS_VALUE: none were
    bool is_judged;     // the damage of the packet that was sent last is counted, or was shown
    // Refusals of a GPU that has given no frame yet, which may say nothing of the packets.
    struct {
        int counted, marked;
    } untried;
    struct rescue *rescue;

    // The frame that is kept for its time (decoder_times.c), and the one that was given before.
    struct {
        AVFrame *kept;        // NULL: none
        bool waits;           // for the next frame to show whether its time is right
        bool by_pts;          // a frame's pts comes before libavcodec's guess
        int64_t last, length; // AV_NOPTS_VALUE, 0: unknown
    } times;

    struct packet *pending; // a restart: what is in the decoder comes out before; NULL: none

    int64_t packets;  // given to libavcodec
    int64_t last_pts; // of the packet that was given last
    int last_error;   // that it returned; 0: none
    int marked;       // packets that came with the mark of damage, less those refused since

    // ---- any thread's ----
    _Atomic int64_t damaged_packets, damaged_frames;
    pthread_mutex_t pool_lock;
    // ---- guarded by pool_lock: frame threads ask for memory at once. So is what they read of `backend`,
    // while another one may take its place ----
    AVBufferPool *pool;
    size_t pool_size;
};

// decoder_create() for a stream that is not as its header says any more.
enum status decoder_create_for(const struct decoder_request *request, const struct source *source,
                               const AVCodecParameters *about, struct backend *backend,
                               struct decoder **decoder);

// Decode on the GPU from now on, decoder->hardware, by the packets of the history, which have to reach
// the frame that was given out last.
enum status decoder_enter_gpu(struct decoder *decoder);

// ---- decoder_open.c ----

// Check that the stream, as decoder->about has it, is in the clear, of a known codec and not too
// large. STATUS_INPUT with a sentence.
enum status decoder_check_stream(const struct decoder *decoder);

// Check pictures of this size against the request. STATUS_INPUT with a sentence.
enum status decoder_check_pixels(const struct decoder *decoder, int width, int height);

// Set decoder->hardware if the GPU is to decode the stream. STATUS_DEVICE with a sentence where the
// request insists on that and it cannot be.
enum status decoder_choose_hardware(struct decoder *decoder);

// True if a GPU, once there is one, decodes the stream unless it turns out unable to.
bool decoder_likes_hardware(const struct decoder *decoder);

// Open a codec for the stream in the place of the one that there is, on the GPU if
// decoder->hardware is set.
enum status decoder_open_codec(struct decoder *decoder);

// ---- decoder_surfaces.c ----

// Choose codec->extra_hw_frames, from within its get_format(), and whether frames are copied: where the
// decoder has too few surfaces for all that the pipeline holds, and for several GPUs, as only its own
// can read a surface.
void decoder_choose_surfaces(struct decoder *decoder, AVCodecContext *codec);

// Give a frame that the GPU decoded memory of its own if it is to have that. Nothing waits: it is
// valid on decoder->stream, as before. STATUS_MEMORY, or STATUS_DEVICE with a sentence.
enum status decoder_copy_surface(struct decoder *decoder, AVFrame *frame);

// ---- decoder_memory.c ----

// AVCodecContext.get_buffer2, with the decoder as the context's `opaque`: frames in memory of the
// backend. Any of libavcodec's threads.
int decoder_get_buffer(AVCodecContext *codec, AVFrame *frame, int flags);

// The same with zeros: some decoders leave what they cannot decode of a picture as memory had it,
// and which earlier picture that was depends on the pace of the rest.
int decoder_get_clear_buffer(AVCodecContext *codec, AVFrame *frame, int flags);

// Take memory of frames from this backend from now on.
void decoder_change_backend(struct decoder *decoder, struct backend *backend);

// ---- decoder_times.c ----

// Give the frame that is kept, once its time is certain; at the codec's end in any case. False: there is none.
bool decoder_times_give(struct decoder *decoder, bool ended, AVFrame *frame);

// Take the next frame of the codec. *gives: `frame` is to be given now, this one or the one that was kept;
// else it is kept, and `frame` empty.
enum status decoder_times_take(struct decoder *decoder, AVFrame *frame, bool *gives);

// Frames from here on have nothing to do with those before; one that is kept is dropped.
void decoder_times_forget(struct decoder *decoder);

// ---- decoder_rescue.c ----

enum status rescue_create(struct rescue **rescue);
void rescue_destroy(struct rescue **rescue);
