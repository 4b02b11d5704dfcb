// The encode thread: filtered frames out of the ring, in order, to the sink; frames of the gap
// while a live source is lost.
//
// After a stop the job does not wait for it where it is deep in an encoder: what it owns then stays
// until the job is destroyed, which joins it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "pipeline/engine/threads/gap.h"

struct latency;
struct part;
struct report_writer;
struct ring;
struct selection;
struct sink;
struct sink_video;
struct sluice_ledger;
struct snapshot;
struct source;
struct stop;
struct trace;

struct encode;

// All outlive the thread.
struct encode_ports {
    struct ring *ring;
    struct sink *sink;
    struct source *source;               // asked whether it is lost; cancelled after a failure
    const struct selection *selection;   // nothing fills gaps once it is complete
    struct stop *stop;                   // asked for where nobody watches any more
    struct report_writer *report_writer; // (optional)
    struct snapshot *snapshot;
    struct latency *latency; // (optional) frames that will be late are dropped
    struct trace *trace;     // (optional)
    struct part *part;       // (optional) notes every frame
    int pictures;            // of each frame: the chain's result, and its tees
    int verify;              // every so many frames is compared with the reference; 0: none
    int gpus;                // that slots go round; 0 or 1: all are one's
    int threads;             // CPU threads that filter frames at once; 0: one
    enum gap_kind gap_kind;
};

enum status encode_create(const struct encode_ports *ports, struct encode **encode);
void encode_destroy(struct encode **encode);

// ---- the thread that prepares the job ----

// The sink is open for `video`, which outlives the thread. Once, before the thread is started.
enum status encode_open(struct encode *encode, const struct sink_video *video);

// ---- the encode thread ----

// The thread's body. Returns its failure, STATUS_OK or STATUS_STOPPED; all slots are released.
enum status encode_run(void *encode);

// Take slots and release them instead, where the thread could not be started.
void encode_skip(void *encode);

// ---- any thread ----

// Add to *ledger what this thread counts: frames_out, frames_filled, verified, and what it dropped
// late or at a stop.
void encode_count(const struct encode *encode, struct sluice_ledger *ledger);

struct encode_figures {
    int64_t frames_out;
    int64_t media_us; // of video handed to the sink, since its first frame
    bool flushing;    // the sink has the last frame
    // Busy times: of slots, and of a sink that encodes in this thread.
    // The CPU's threads are one that filters, and so are several GPUs.
    int64_t upload_ns, filter_ns, download_ns, encode_ns;
};

void encode_figures(const struct encode *encode, struct encode_figures *figures);
