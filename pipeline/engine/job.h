// A job from the inside: what its threads share.
//
//   demux --packets--> decode --frames--> submit ==ring==> encode --> sink: its mux threads
//     \______________________ packets of other streams _______________/
//
// Each thread is one file with one loop. A thread that ends finishes what it writes to and cancels
// what it reads from, so that an end or a failure anywhere reaches everyone; the first real failure
// is the job's. sluice_job_run() itself decodes and submits the first frame, because only then is
// the output's geometry known, starts the threads when the output is open, and waits for them.
// After a stop it does not wait for an encoder that is deep in a frame: the output is finished
// without it, and sluice_job_destroy() joins what is left.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/engine/change.h"
#include "pipeline/engine/config.h"
#include "pipeline/input/decoder.h"
#include "pipeline/engine/filter.h"
#include "pipeline/engine/multi_gpu.h"
#include "pipeline/engine/gap.h"
#include "pipeline/engine/latency.h"
#include "base/meter.h"
#include "base/monitor.h"
#include "base/queue.h"
#include "pipeline/report/report_writer.h"
#include "pipeline/engine/ring.h"
#include "pipeline/output/sink.h"
#include "sluice/sluice.h"
#include "pipeline/input/source.h"
#include "pipeline/engine/snapshot.h"
#include "base/stop.h"
#include "pipeline/report/trace.h"

enum { JOB_THREADS = 4 };

struct thread {
    struct sluice_job *job;
    enum status (*run)(struct sluice_job *job);
    pthread_t thread;
    bool started, ended; // ended: guarded by threads_lock
    enum status status;
};

// Where the frames went; see sluice_summary.
struct ledger {
    int64_t frames_in, frames_out, dropped_range, dropped_stop, dropped_clock, dropped_late;
    int64_t dropped_disk;
    int64_t filled; // into gaps: frames_in + filled is what is accounted for
};

struct sluice_job {
    // ---- set at creation, constant afterwards ----
    struct config_log log_target;
    struct log log;
    struct chain chain;
    struct source *source;
    struct sink *sink;
    struct report_writer *report_writer; // NULL: the chain records nothing
    struct backend *backend;
    struct decoder *decoder;
    int64_t max_pixels;              // of a picture
    char *output_name;               // of the first, without secrets
    char *output_names[MAX_OUTPUTS]; // without secrets, in the order of the sink's
    int outputs;
    struct path_conflicts *conflicts;          // the files that are written
    int pictures;                              // of the chain: its result, and its tees
    struct sink_formats formats[MAX_PICTURES]; // of each
    struct trace *trace;                       // NULL: none
    struct metrics *metrics;                   // NULL: none
    int slots, verify;
    bool overwrite;      // what snapshots may do
    int64_t frame_limit; // INT64_MAX: none
    int64_t latency_ns;  // frames older than so are dropped; 0: never
    int64_t end;         // in microseconds of the input; INT64_MAX: none

    // ---- built by sluice_job_run() before the threads start ----
    struct ring *ring;
    struct queue *packets; // struct packet, of the filtered stream
    struct queue *frames;  // AVFrame, decoded and wanted
    struct packet **early; // packets read before the threads began and not dealt with yet
    int earlies;
    int64_t early_bytes;
    struct latency *latency;       // NULL: the source is not live
    struct gap *gap[MAX_PICTURES]; // of each; NULL: the source is not one that can be lost
    enum gap_kind gap_kind;
    struct snapshot *snapshot;
    AVFormatContext *described; // what the source holds, which nothing reads from
    struct sink_video video;
    AVFrame *shape[MAX_PICTURES]; // of each picture: the first frame
    char input_format[32], output_format[32];
    int width, height;  // of the first frame
    int64_t max_memory; // what the job may take, in bytes
    bool alone;         // no other stream goes into the output
    _Atomic int64_t began_ns;
    int64_t began_cpu_ns;

    // ---- the submit thread's ----
    struct filter *filter;
    struct changes *changes; // ... and who asks
    int64_t submitted;       // frames

    // ---- the decode thread's ----
    bool catches_up;   // packets are left out up to a key frame that is fresh
    int64_t behind_ns; // when decoding was last fast enough

    // ---- the encode thread's ----
    int64_t engine_end[MAX_GPUS][SLUICE_PART_COUNT]; // when each GPU's engines were last busy
    int64_t encode_ns;                               // what a frame takes, at most, of late

    // ---- any thread's ----
    struct stop stop;         // asked for from outside
    atomic_bool ends;         // enough frames: what follows is not wanted
    atomic_bool under_way;    // what sluice_job_run() builds is there
    atomic_bool flushing;     // the encoder has the last frame
    atomic_bool finishing;    // the threads have ended, or are left alone
    _Atomic int64_t last_end; // where the last wanted frame ends, in microseconds
    _Atomic int64_t frames_in, frames_out, dropped_range, dropped_stop, dropped_late, filled,
        verified;
    _Atomic int64_t packets_skipped; // not decoded, to catch up
    _Atomic int64_t shown_ns;        // when a frame was last written
    _Atomic int64_t media_us;        // of video handed to the sink, since its first frame
    struct meter meter[SLUICE_PART_COUNT];

    // ---- the threads ----
    struct thread thread[JOB_THREADS];
    struct monitor threads_lock; // also held where `sink` goes, or is asked by other threads
    // ---- guarded by threads_lock ----
    int running;
    struct sink_output output[MAX_OUTPUTS]; // at the end, without names

    // ---- after sluice_job_run() ----
    struct ledger ledger;
    _Atomic double seconds;
    double cores_busy;
    atomic_bool ran;
    bool truncated;
    char verdict[256];
};

// The threads' bodies. Each returns its failure, STATUS_OK or STATUS_EOF.
enum status demux_run(struct sluice_job *job);
enum status decode_run(struct sluice_job *job);
enum status submit_run(struct sluice_job *job);
enum status encode_run(struct sluice_job *job);

// What sluice_job_run() shares with the threads that go on with its work.

// Take the decoder's next frame that is wanted, if it has one: *frame is the caller's then, else
// NULL. STATUS_EOF after the last, or the last wanted.
enum status decode_next(struct sluice_job *job, AVFrame **frame);

// Claim a slot, begin to filter *frame (taken over) in it, and publish it. `before` (optional) is
// called with the filled slot before it is published.
enum status submit_frame(struct sluice_job *job, AVFrame **frame,
                         enum status (*before)(struct sluice_job *job, const struct slot *slot));

// Whether a frame will be older than the job allows when what is ahead of it, which takes
// `ahead_ns`, is done: it makes room for fresher ones, before it is filtered or before it is
// encoded, never after. Not where nothing was shown for long.
bool frame_is_late(const struct sluice_job *job, const AVFrame *frame, int64_t ahead_ns);

// Work out the verdict.
void report_verdict(struct sluice_job *job);

// What the start of the job spent on `name`, since `begin_ns`.
void job_start_span(struct sluice_job *job, const char *name, int64_t begin_ns);

// A part has been busy since `begin_ns`, with this frame or (below 0) with none in particular.
void job_span(struct sluice_job *job, enum sluice_part part, int64_t begin_ns, int64_t frame);

// Queue callback.
void drop_frame(void *frame);
