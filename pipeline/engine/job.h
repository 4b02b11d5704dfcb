// A job from the inside: its threads, and what they share.
//
//   source           decoder          chain, filter          sink
//     |                 |                   |                  |
//   demux ==packets==> decode ==frames==> submit ==ring==> encode ==> mux threads
//     \_______________ packets of other streams ______________________/
//
//   struct        is the state of        counts                             file
//   demux         demux_run()                                               demux.c
//   decode        decode_run()           frames_in, dropped_range, skipped  decode.c
//   submit        submit_run()           dropped_late                       submit.c
//   encode        encode_run()           frames_out, filled, verified, ...  encode.c
//   sluice_job    sluice_job_run(), which prepares the others and waits     job_start.c, job.c
//
// Each thread is one file with one loop, and its struct is defined there: no other thread sees its
// members. They meet at ports only, which struct demux_ports and its likes list:
//
//   shared             who writes                             who reads
//   packets, frames    guarded (base/queue.h)                 the thread behind it
//   ring               guarded, a slot has one owner (ring.h) submit, encode
//   selection          `complete`, atomic: decode             demux, encode, sluice_job_run()
//   decoded_kind       atomics: decode                        submit, reports
//   ceiling            guarded (need.h); `device`, atomic:    all
//                      the thread that makes the GPU ready
//   stop               atomics: who asks, encode              all
//   tap                its owner, in calls of demux and submit
//   latency, trace,    guarded by their own locks             all
//   snapshot, changes
//   sink               each call says which thread may make it (pipeline/output/sink.h)
//
// A thread that ends finishes what it writes to and cancels what it reads from, so that an end or a
// failure anywhere reaches everyone; the first real failure is the job's. Progress reads the parts'
// counters, which are atomic; the ledger is their sum once the threads have ended.
//
// Preroll: sluice_job_run() itself decodes and submits the first frame, because only then are the
// output's properties known, opens the sink, starts the threads and waits for them. Until it starts
// a thread that thread's struct is its own (owner.h). After a stop it does not wait for an encoder
// that is deep in a frame: the output is finished without it, and sluice_job_destroy() joins what
// is left.
#pragma once

#include "base/meter.h"
#include "base/monitor.h"
#include "base/stop.h"
#include "pipeline/engine/filter/need.h"
#include "pipeline/engine/config_log.h"
#include "pipeline/engine/filter/schedule.h"
#include "pipeline/engine/threads/decode.h"
#include "pipeline/engine/threads/selection.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/input/part_span.h"
#include "pipeline/output/sink.h"
#include "sluice/sluice.h"
#include "stages/chain.h"

struct changes;
struct demux;
struct device_start;
struct encode;
struct metrics;
struct part;
struct ring;
struct snapshot;
struct submit;

enum { JOB_THREADS = 4 };

// One of the job's threads.
struct job_thread {
    enum status (*run)(void *part);
    void (*skip)(void *part); // instead, where the thread could not be started
    void *part;
    struct source *source; // cancelled if it fails
    struct job_threads *all;
    pthread_t id;
    bool started; // and not joined yet; sluice_job_run()'s and sluice_job_destroy()'s
    // ---- guarded by all->lock ----
    bool ended;
    enum status status;
};

struct job_threads {
    struct job_thread thread[JOB_THREADS]; // demux first
    struct monitor lock;
    // ---- guarded by lock ----
    int running;
};

// A watch of frames in the sink: called in the first output's mux thread, and behind an encoder
// that is one of several. Constant but for the meter.
struct sink_watch {
    struct latency *latency;
    struct trace *trace;
    AVRational time_base;
    struct meter muxing; // the mux thread's
};

struct sluice_job {
    // ---- set by sluice_job_create(), constant afterwards ----
    struct log log;
    struct config_log log_target;
    struct source *source;
    const char *input_codec;           // as it was opened: reading may change what the source holds
    struct spare *spare;               // for a GPU that fails
    struct backend *backend;           // that the job begins with; job_backend() says which works
    struct device_start *device_start; // a GPU that comes later; NULL: there will be none
    struct decoder *decoder;
    struct report_writer *report_writer;
    struct trace *trace;              // always there; its file is optional
    struct metrics *metrics;          // NULL: none
    struct path_conflicts *conflicts; // the files that are written
    char *output_name;                // of the first, without secrets
    char *output_names[MAX_OUTPUTS];  // without secrets, in the order of the sink's
    int outputs;
    int pictures;                              // of the chain: its result, and its tees
    struct sink_formats formats[MAX_PICTURES]; // of each
    int slots;
    struct ceiling ceiling;        // what it may take of memory
    struct need_job need;          // ... beside its stages
    struct need_job gpu_need;      // ... on the GPU that comes later; zeroed: there will be none
    int codec_threads;             // 0: as many as codecs take
    bool overwrite;                // what snapshots may do
    bool is_part;                  // ... of the output: the frames of `span`
    bool part_made;                // ... and it has its name
    bool repeatable;               // ... from the beginning of the file, in one thread
    int whole_width, whole_height; // ... of pictures; 0: as the part's first
    struct part_span span;
    struct part *part;          // its folder; NULL: it has none
    char *part_output;          // the output in it
    char *part_input;           // the input, by its full name
    struct json_t *part_source; // what it was when the part was begun
    struct tap tap;             // set before sluice_job_run(); zeroed: none

    // ---- what the threads share ----
    struct chain chain;       // until submit takes it over, in sluice_job_create()
    struct schedule schedule; // until changes take it over, in sluice_job_create()
    struct ring *ring;
    struct queue *packets; // struct packet, of the filtered stream
    struct queue *frames;  // AVFrame, decoded and wanted
    struct selection selection;
    struct decoded_kind decoded;
    struct latency *latency; // NULL: the source is not live
    struct changes *changes;
    struct snapshot *snapshot;
    struct stop stop;
    struct sink_watch watch;
    struct meter sink_meter; // the sink's, where it has threads that encode

    // ---- the threads ----
    struct demux *demux;
    struct decode *decode;
    struct submit *submit;
    struct encode *encode;
    struct job_threads threads;

    // ---- set by preroll, constant while the threads run ----
    AVFormatContext *described; // what the source holds, which nothing reads from
    struct sink_video video;
    AVFrame *first_props[MAX_PICTURES]; // of each picture: the first frame
    char input_format[32], output_format[32];
    int width, height;  // of the first frame
    int64_t max_memory; // what the job may take, in bytes

    // ---- sluice_job_run()'s; any thread reads the atomics, and the others once `ran` is set ----
    _Atomic int64_t began_ns;
    atomic_bool output_open;
    atomic_bool finishing; // the threads have ended, or are left alone
    atomic_bool ran;
    enum status result;
    struct sluice_ledger ledger; // of frames; decoder and source have counters of their own
    _Atomic double seconds;
    double cores_busy;
    bool truncated;
    char verdict[256];

    // ---- guarded by *sink_lock, but for sluice_job_run(), which alone writes `sink` ----
    struct sink *sink;                      // NULL: it was destroyed after a failure
    struct sink_output output[MAX_OUTPUTS]; // at the end, without names
    struct monitor sink_monitor, *sink_lock;
};

// ---- job.c ----

// A callback while a job is created: it gets the job, which may be stopped from then on, before
// anything is opened; and NULL before it is destroyed where that failed.
struct job_begun {
    void (*note)(void *opaque, struct sluice_job *job);
    void *opaque;
};

// sluice_job_create(); `begun` (optional) is called in its thread.
enum sluice_status job_create(const struct sluice_config *config, const struct job_begun *begun,
                              struct sluice_job **job);

// ---- job_create.c ----

// Check the configuration and open everything but the output. On failure sluice_job_destroy() frees
// what there is.
enum status job_open(struct sluice_job *job, const struct sluice_config *config);

// ---- job_start.c ----

// Preroll: read up to the first frame, submit it, and open the sink.
enum status job_preroll(struct sluice_job *job);

// A span of the start of the job, since `begin_ns`.
void job_start_span(struct sluice_job *job, const char *name, int64_t begin_ns);

// ---- job_threads.c ----

// Start the threads. After a failure those that were started end by themselves.
enum status job_threads_start(struct sluice_job *job);

// Wait for them. Returns how many are left alone: after a stop an encoder may be deep in a frame.
int job_threads_await(struct sluice_job *job);

// Join those that were started. Returns the first real failure, if any had one.
enum status job_threads_join(struct sluice_job *job);

// ---- job_report.c ----

// Add up what the threads have counted so far.
void job_count(const struct sluice_job *job, struct sluice_ledger *ledger);

// Work out the verdict.
void job_find_verdict(struct sluice_job *job);
