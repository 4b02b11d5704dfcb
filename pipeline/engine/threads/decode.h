// The decode thread: packets to frames, and which of them are wanted.
//
// It owns the decoder.
#pragma once

#include <libavutil/frame.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct decoder;
struct latency;
struct packet;
struct part;
struct queue;
struct selection;
struct sluice_ledger;
struct source;
struct stop;
struct part;
struct trace;

struct decode;

// Decoded frames: the backend that filters them; the stream on which they become valid (NULL: they are not
// on the GPU); and the software format of the same video. The decode thread writes, any thread reads.
struct decoded_kind {
    _Atomic(struct backend *) backend; // NULL: the one that the job began with
    _Atomic(void *) device_stream;
    _Atomic int software_pixel; // enum AVPixelFormat
};

// All outlive the thread.
struct decode_ports {
    struct decoder *decoder;
    struct source *source;       // cancelled once nothing more of it is wanted
    struct queue *packets;       // in: struct packet
    struct queue *frames;        // out: AVFrame, decoded and wanted
    struct selection *selection; // completed here
    struct decoded_kind *kind;
    const struct stop *stop;
    struct latency *latency;      // (optional) how old packets are
    struct trace *trace;          // (optional)
    struct part *part;            // (optional) notes the frames at its cuts
    const struct part_span *span; // of a part; NULL: it is none
};

enum status decode_create(const struct decode_ports *ports, struct decode **decode);
void decode_destroy(struct decode **decode);

// ---- preroll, before decode_run(), in the thread that prepares the job; then the decode thread
// ----

// Give the decoder a packet, which stays the caller's; NULL: there are no more.
enum status decode_send(struct decode *decode, const struct packet *packet);

// Take the decoder's next frame that is wanted, if it has one: *frame is the caller's then, else
// NULL. STATUS_EOF after the last, or the last wanted.
enum status decode_next(struct decode *decode, AVFrame **frame);

// ---- the decode thread ----

// The thread's body. Returns its failure, STATUS_OK or STATUS_EOF; `packets` is cancelled and
// `frames` finished.
enum status decode_run(void *decode);

// Cancel `packets` and finish `frames` instead, where the thread could not be started.
void decode_skip(void *decode);

// ---- any thread ----

// True if the decoder has given a frame, wanted or not. The decode thread.
bool decode_saw_frames(const struct decode *decode);

// Add to *ledger what this thread counts: frames_in, dropped_range, packets_skipped, and what it
// dropped at a stop.
void decode_count(const struct decode *decode, struct sluice_ledger *ledger);
int64_t decode_busy_ns(const struct decode *decode);
