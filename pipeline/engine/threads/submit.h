// The submit thread: frames into slots of the ring, their filtering begun.
//
// It owns the chain that filters and the filter that was made of it, both made anew when another
// chain takes over or another kind of frame comes.
#pragma once

#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <stdbool.h>

#include "base/status.h"
#include "pipeline/engine/filter/filter.h"

struct changes;
struct decoded_kind;
struct latency;
struct report_writer;
struct queue;
struct ring;
struct slot;
struct sluice_ledger;
struct spare;
struct stop;
struct tap;
struct trace;

struct submit;

// All outlive the thread.
struct submit_ports {
    struct queue *frames;                // in: AVFrame
    struct ring *ring;                   // out: filled slots
    struct changes *changes;             // the chains that take over
    struct filter_request filter;        // every filter's, but for its chain and what frames decide
    const struct need_job *later_need;   // need of filters on the GPU that comes later
    struct spare *spare;                 // the later GPU's, told of its first frame
    struct report_writer *report_writer; // (optional) hears of the chains that take over
    const struct decoded_kind *kind;
    AVRational time_base;   // the frames'
    const AVStream *stream; // the source's, for what frames do not say themselves
    const struct stop *stop;
    struct latency *latency; // (optional) frames that are late are dropped
    struct trace *trace;     // (optional)
    const struct tap *tap;   // sees the frames that will be filtered (tap.h)
};

// *chain, which the first frame is filtered by, is taken over on success, and empty then.
enum status submit_create(const struct submit_ports *ports, struct chain *chain,
                          struct submit **submit);
void submit_destroy(struct submit **submit);

// ---- preroll, before submit_run(), in the thread that prepares the job; then the submit thread
// ----

// Claim a slot and begin to filter *frame, taken over, in it. On success *slot is filled and has to
// be published. STATUS_EOF: the encode thread has gone.
enum status submit_fill(struct submit *submit, AVFrame **frame, struct slot **slot);

// Hand the filled slot to the encode thread, whatever happened since: its work is running and must
// be waited for. `reports`: whoever wants to know of changes hears of one that came with the frame.
void submit_publish(struct submit *submit, struct slot *slot, bool reports);

// The filter that the last frame was filtered by.
const struct filter *submit_filter(const struct submit *submit);

// ---- the submit thread ----

// The thread's body. Returns its failure, STATUS_OK or STATUS_EOF; `frames` is cancelled and `ring`
// finished.
enum status submit_run(void *submit);

// Cancel `frames` and finish `ring` instead, where the thread could not be started.
void submit_skip(void *submit);

// ---- any thread ----

// Add to *ledger what this thread drops: late frames, and frames at a stop.
void submit_count(const struct submit *submit, struct sluice_ledger *ledger);
