// libsluice: filter video at the speed of the hardware.
//
// A job reads one video, runs a chain of stages over every frame and writes the result; audio,
// subtitles, chapters and tags pass through untouched. docs/library.md has a whole program:
//
//     struct sluice_config config = {
//         .size = sizeof config, .input = "in.mp4", .output.name = "out.mp4",
//         .chain = "gray,gaussian=1.4,sobel",
//     };
//     struct sluice_job *job;
//     enum sluice_status status = sluice_job_create(&config, &job);
//     if (!status)
//         status = sluice_job_run(job);
//     sluice_job_destroy(&job);
//
// A job may also end in the caller, who takes filtered frames (config->take), and begin there: who
// pushes frames (config->push, sluice_job_push()).
//
// Structs and strings: see sluice/common.h. Times are seconds. Frames filtered without a job, in
// host and device memory: sluice/filter.h.
//
// Errors. A call that fails returns a status, and config->log gets the reason as one sentence of
// level SLUICE_LOG_ERROR (there may be none for SLUICE_STATUS_MEMORY). Requests to a running job
// are no failures of the job: their reason is in `why`, as the requests say.
//
// Threads. Any number of jobs may run at once; they share nothing. sluice_job_create(), _run() and
// _destroy() of one job are called one after another, from any threads; every other call on it is
// safe from any thread in between. Callbacks come from threads of the library, `log` from several
// at once. On its own job a callback may call sluice_job_stop(), nothing else.
//
// The library never exits, prints, or installs a signal handler. FFmpeg and its encoders do print,
// through FFmpeg's log, whose level is the process's: see sluice_ffmpeg_log().
#pragma once

#include "sluice/filter.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whether the GPU decodes: where it can, never, or always (else the job fails).
enum sluice_hwdec { SLUICE_HWDEC_AUTO, SLUICE_HWDEC_OFF, SLUICE_HWDEC_REQUIRE };

// Gaps, while a live source is lost: outputs show nothing (timestamps leap over the gap), the last
// frame again and again, or black.
enum sluice_gap { SLUICE_GAP_SKIP, SLUICE_GAP_FREEZE, SLUICE_GAP_BLACK };

// Where zero is the default, a zero that is meant is one of these.
#define SLUICE_CRF_ZERO (-1.0)
#define SLUICE_BITRATE_ZERO (-1)
#define SLUICE_RECONNECTS_NONE (-1)
#define SLUICE_STREAM(index) ((index) + 1)

// A rate: num / den a second; 0/0: not known, or the default.
struct sluice_rate {
    int num, den;
};

// ---- a job ----

// One output, and how it is encoded.
struct sluice_output {
    // A file, its container by the extension; a numbered sequence of images ("out%04d.png"); a
    // playlist ("live.m3u8") with its segments beside it; "-" for standard output (needs format);
    // an address to publish to (rtsp, rtmp, srt, udp, rtp, tcp); "display:" for a window;
    // "mjpeg:ADDR" to serve browsers over HTTP; "null:" to filter and discard; "hash:FILE" for one
    // line a frame (index, pts, bytes, MD5 of the samples), "hash:-" to standard output; "take:"
    // for config->take, and NULL where that is set.
    const char *name;
    const char *format;         // FFmpeg's name of a muxer
    const char *encoder;        // FFmpeg's name of an encoder
    double crf;                 // quality of encoders that have this option, the lower the better;
                                // 0: the encoder's own, SLUICE_CRF_ZERO: 0
    const char *preset;         // speed, in the words of the encoder
    int64_t bitrate;            // bits a second; 0: the encoder's own, SLUICE_BITRATE_ZERO: 0
    const char *const *options; // "key=value" for encoder or muxer, ended by NULL
    double segment;             // seconds a file: several files, named by time; 0: one file
    const char *pixfmt;         // FFmpeg's name of a pixel format; NULL: the nearest that the
                                // encoder takes, but for H.264, HEVC, VP9, AV1 and MPEG-4 one that
                                // every player decodes: 4:2:0, 8 bits, for HEVC and AV1 up to 10
    enum sluice_range range;
    const void *reserved[8];
};

// A change of the chain: from the first frame at this time on.
struct sluice_change {
    int64_t pts_us; // microseconds of the input
    const char *chain;
    const void *reserved[2];
};

// The job's settings.
struct sluice_config {
    size_t size; // sizeof(struct sluice_config)
    // A file; an address; a device; a numbered or globbed sequence of images ("in%04d.png",
    // "*.png"); "-" for standard input. A name that exists as it stands is always that file.
    const char *input;
    struct sluice_output output;
    // More of them, ended by one without a name; NULL: none. Outputs that can have the same
    // encoding share it. Live: no output holds up another, nor the source; a slow or absent one
    // misses frames, a failed one is left behind, and the job fails when none is left.
    const struct sluice_output *more_outputs;
    // The stages; NULL: "gray,gaussian=1.4,sobel,threshold=20:240"; "" or "null": none. Some write
    // files of their own: "tee=bright.mkv" makes the frame as it is there a further output, with
    // the usual encoding; "stats=FILE" writes a line a frame. All outputs together are 16 at most.
    const char *chain;
    const struct sluice_chain *parsed; // (optional) what sluice_chain_parse() made of `chain` and
                                       // `changes`

    const char *input_format; // FFmpeg's name of a demuxer, when the content cannot tell
    const char *input_pixfmt; // raw video, devices: FFmpeg's name of a pixel format; cameras: also
                              // of a codec, "mjpeg"
    int input_width;          // raw video, devices; 0: the device's own
    int input_height;
    struct sluice_rate input_rate; // raw video, devices, image sequences; 0/0: 25, or the device's
    int stream;                    // SLUICE_STREAM(index): filter that stream; 0: the best video
    double start;                  // begin there
    double duration;               // end so much later; 0: at the end
    int64_t frames;                // end after so many frames; 0: at the end
    int64_t max_pixels;            // refuse larger pictures; 0: 2^28

    // Live sources: rtsp, rtmp, srt, udp and rtp addresses, http ones without an end, and capture
    // devices ("/dev/video0", "v4l2:/dev/video0", "x11grab::0", "lavfi:testsrc"). A lost source is
    // reconnected; the output goes on, its timestamps with a gap as long as in life.
    bool live;                  // a file plays at its own pace, and is written as if it were live
    const char *rtsp_transport; // "tcp", "udp", ...; NULL: tcp, and udp where that fails
    const char *playlist_hosts; // hosts that an HLS playlist from HTTP may fetch from besides its
                                // own: "cdn.example,*.example.org", "any"; NULL: none
    bool tls_verify;            // https, rtmps, rtsps: insist on a valid certificate
    const char *ca_file;        // ... signed by those in this file; NULL: the system's
    enum sluice_gap gap;        // what outputs show while the source is lost
    double open_timeout;        // to open an address; 0: 10
    double stall_timeout;       // without a frame until a source counts as lost; 0: 5, and for
                                // playlists, which come in segments, 30
    double max_latency;         // frames older than this are dropped before they are filtered, in
                                // the first two seconds those one second older, and the decoder's
                                // threads are limited; 0: 2 for live sources, else no limit
    int reconnects;             // attempts in a row, at once and then 0.25 s to 10 s apart; 0: for
                                // ever; SLUICE_RECONNECTS_NONE: none
    bool await_start;           // also at the start: wait for an absent live source in
                                // sluice_job_create(), and for an address that is published to
    // Injected faults, for tests: "loss=2%,corrupt=1%" (of the filtered stream's packets),
    // "stall=8s@30s,close@40s,ts-jump=-5s@60s,res-change=640x360@90s" (so long after the first
    // packet), "seed=7" for others of that kind. The same text and file give the same faults.
    const char *simulate;

    bool overwrite; // replace existing files of every kind, each once the new one is whole

    // Files that the caller writes beside the job (sluice_file_create()), ended by NULL; NULL:
    // none. Refused like outputs where the job reads or writes one of them, and where one exists
    // and must not be replaced. Likewise files that the caller reads: refused where the job writes
    // one.
    const char *const *reserved_outputs;
    const char *const *reserved_inputs;

    enum sluice_backend backend;
    enum sluice_hwdec hwdec;
    bool repeatable;    // damaged input decodes to the same frames in every run: on the CPU, in one
                        // thread
    const char *device; // which GPUs: "0", "0,1", which take frames in turn, or "all"; with
                        // SLUICE_BACKEND_AUTO one that is named is required. NULL: "0"
    int threads;        // of the CPU backend; 0: one per usable core
    int ring;           // frames in flight, at most 64; 0: as many as the backend likes
    const char *trace;  // a file for a timeline that ui.perfetto.dev opens; NULL: none
    int verify;         // recompute every Nth frame with scalar and fail on a difference; 0: none

    // Where to serve Prometheus metrics, at /metrics, as long as the job exists: "9464" or ":9464"
    // on this machine only, "HOST:9464", "[::1]:9464", "0.0.0.0:9464" for everyone. NULL: nowhere.
    const char *metrics;

    // Planned changes, as `changed` reported them of another job, ended by a NULL chain; NULL:
    // none. Addresses of tees may lack their secrets (sluice_public_chain()).
    const struct sluice_change *changes;

    // Called when a chain begins to filter, the first one too, with the time of its first frame in
    // microseconds of the input; the outputs are open by then. The chain has the secrets of its
    // addresses. Both texts live until the callback returns. NULL: not called.
    void (*changed)(void *opaque, int64_t pts_us, const char *chain);

    // Called with one sentence at a time, without secrets, which lives until the callback returns. No
    // newline ends it. Behind what is wrong with a chain stand two lines more: the chain, and a mark
    // below the place. NULL: silence.
    void (*log)(void *opaque, enum sluice_log_level level, const char *sentence);
    void *opaque; // for all callbacks

    // ---- since 1.1: ends in the caller ----

    // (optional) Called with every frame of outputs named "take:", in order. `output` says of
    // which: 0 is config->output, then come more_outputs, then the chain's tees ("tee=take:"). The
    // frame is in host memory, may only be read, and lives until the callback returns; its pts is
    // microseconds of the output. The format is that of the output's `pixfmt` and `range`, else what
    // the chain leaves, or beside an encoder what that takes; where the input changes its size, so
    // does it. Without a stage, or behind "null", it is the input's, which may be one that
    // sluice_format_name() does not list: "pal8". One output's frames come from one thread, which
    // waits for the callback: a slow one slows the job down; of live sources it misses frames.
    //
    // SLUICE_STATUS_OK: go on. SLUICE_STATUS_END: this output wants no more; the job goes on while
    // it has others, else it ends as by sluice_job_stop(). Anything else: the output has failed
    // with that status, as one that cannot be written. After sluice_job_stop() frames under way may
    // still come; none do after sluice_job_run(), which waits for the callback always.
    enum sluice_status (*take)(void *opaque, int output, const struct sluice_format *format,
                               const struct sluice_frame *frame);

    // (optional) Frames that come by sluice_job_push(): the format of all of them. `input` and what
    // describes it stay NULL and 0, but for input_rate (0/0: not known); `start`, `duration` and
    // `changes` count from 0 of the frames' clock. With `live` frames are due when their pts says,
    // counted from the first.
    const struct sluice_format *push;
    struct sluice_rate push_clock; // the unit of their pts: ticks a second; 0/0: 1000000/1

    // ---- since 1.1: parts of a file ----

    // (optional) Make one of `parts` parts of the output, number `part` from 1; 0: the whole. The
    // input is a file, cut at key frames, and the part has the frames whose pts lie between two
    // cuts, exactly: all parts together are the whole. The cuts follow from the file and `parts`
    // alone. The part becomes a folder beside the output, "out.mp4.part-3-of-64", with its video,
    // its reports and a manifest of hashes; it is there whole or not at all, and never replaced
    // unless `overwrite` says so. sluice_job_create() returns SLUICE_STATUS_END where it is there
    // already, made of the same. Of output "null:" there is no folder.
    //
    // What a decoder makes of damage depends on all that it saw before: sluice_job_run() returns
    // SLUICE_STATUS_AGAIN where it finds some and `repeatable` is not set. With that the part is
    // decoded from the beginning of the file, and has the frames of the whole made repeatably.
    int part, parts;

    // ---- since 1.1 ----

    // (optional) Threads of the decoder on the CPU, and of each encoder; 0: as many as libavcodec
    // takes, which is about one per usable core. Jobs at once that each start so many hold each
    // other up. An encoder may make other packets with another number, of the same frames.
    int codec_threads;

    // (optional) Bytes of memory that the jobs of this process may take together, and bytes of the
    // GPU's that this one may, beside the program itself. 0: what is available when the job is
    // created, also by the limits of control groups, less a reserve. What a job will take is worked
    // out before it takes it: the frames in flight become fewer until it fits, and where one alone
    // does not, sluice_job_create() or sluice_job_run() returns SLUICE_STATUS_USAGE, of the GPU's
    // memory SLUICE_STATUS_DEVICE, before anything is written. A request to a running job that would
    // take more is refused alike.
    int64_t mem, vram;

    // Raw video of a regular file, also in YUV4MPEG2, is not copied: the CPU filters it where the
    // kernel's cache has it. If another process shortens the file meanwhile, the input counts as
    // damaged, and frames that were being filtered have zeros where it was. For that the process gets
    // a handler of SIGBUS, which leaves what is not its own to the handler before it and stays: the
    // library must not be unloaded then. Not with `verify`, which reads a frame twice.
    bool map_input;

    // With SLUICE_BACKEND_AUTO: wait for the GPU, instead of filtering a file's first frames on the CPU
    // until it is ready.
    bool await_gpu;
};

struct sluice_job;

// Check the configuration, open the input, find out how to write the output. Blocks while the input
// is opened. On success the caller owns *job; on failure it is NULL.
SLUICE_API enum sluice_status sluice_job_create(const struct sluice_config *config,
                                                struct sluice_job **job);

// Run it, once. Blocks until the output is whole or has failed. A failed file output is removed,
// and what stood under its name before still stands. Damaged input is no failure: see the ledger.
SLUICE_API enum sluice_status sluice_job_run(struct sluice_job *job);

// A chain that was read, and those of planned changes, with the files that they name: configurations
// of these chains with it as `parsed` do not read them again. It may be destroyed when the call that takes the configuration
// has returned. It never changes: any number of threads may use it.
struct sluice_chain;

// Read config->chain and config->changes; of the rest only `log` counts. On success the caller owns
// *chain; SLUICE_STATUS_USAGE, with the place marked in the log, if one of them is no chain.
SLUICE_API enum sluice_status sluice_chain_parse(const struct sluice_config *config,
                                                 struct sluice_chain **chain);

// Leaves NULL, accepts NULL behind it.
SLUICE_API void sluice_chain_destroy(struct sluice_chain **chain);

// Call `note` with the files that the chains name, each as it is written there: pictures and kernels
// that are read, and what is written, outputs (tees) included, which may be addresses. For callers
// that say beforehand what a job may open, as `sluice --sandbox` does.
SLUICE_API void sluice_chain_files(const struct sluice_chain *chain,
                                   void (*note)(void *opaque, const char *name, bool is_written),
                                   void *opaque);

// Whether sluice_job_create() would refuse the chains or the names of the files, so that reserved
// files may be opened before: SLUICE_STATUS_USAGE if one that is written is written twice, or read;
// SLUICE_STATUS_OUTPUT if one of `reserved_outputs`, or the trace, exists and must not be replaced,
// or has no folder to be in. Opens nothing but files that a chain reads.
SLUICE_API enum sluice_status sluice_check_files(const struct sluice_config *config);

// End a job early, without waiting: frames that were filtered so far and that the encoder returns
// in time become a whole output, whose other streams end with its video, within two seconds
// whatever source and encoder do, and sluice_job_run() returns SLUICE_STATUS_STOPPED. Frames that
// come too late for that count as dropped_stop. Not from a signal handler. An encoder that was deep
// in a frame may still be at it afterwards: sluice_job_destroy() waits for that.
SLUICE_API void sluice_job_stop(struct sluice_job *job);

// Free everything. Not while sluice_job_run() is running. Leaves NULL, accepts NULL behind it.
SLUICE_API void sluice_job_destroy(struct sluice_job **job);

// ---- pushed frames, since 1.1 ----

// Give a job with config->push its next frame, in host memory. It is copied before the call
// returns; `opaque` does not ride along. Waits while the job has enough to do, and so for
// sluice_job_run() in another thread: before that runs there is room for two frames. pts rise from
// frame to frame.
//
// SLUICE_STATUS_USAGE: the frame is wrong, nothing was taken, and the job goes on. The others are
// final: SLUICE_STATUS_END if the job wants no more frames, or the end was pushed;
// SLUICE_STATUS_STOPPED after a stop; what sluice_job_run() returns if the job has failed, and not
// before it returns.
//
// Thread-safety: one thread, which is not in sluice_job_run() nor in a callback of this job.
SLUICE_API enum sluice_status sluice_job_push(struct sluice_job *job,
                                              const struct sluice_frame *frame);

// End the stream: sluice_job_run() returns when the output is whole. The pushing thread; once or
// more. A job that is stopped needs no end.
SLUICE_API void sluice_job_push_end(struct sluice_job *job);

// ---- requests to a running job ----

// Filter with other options from the next frame on, all of them at once: "gaussian.sigma=2.5,
// threshold.t1=30", or of the second of two, "gaussian#2.sigma=1". SLUICE_STATUS_USAGE, with a
// sentence in `why` (optional) and nothing changed, if the chain has no such options, if they would
// change the files that it writes, or if a job would not have started so with the present frames.
// Before the first frame a request may end the run with it.
SLUICE_API enum sluice_status sluice_job_set(struct sluice_job *job, const char *options, char *why,
                                             size_t size);

// The same, by another chain.
SLUICE_API enum sluice_status sluice_job_set_chain(struct sluice_job *job, const char *chain,
                                                   char *why, size_t size);

// The chain, with the changes requested so far and the secrets of its addresses. The caller frees
// it with free(); NULL without memory.
SLUICE_API char *sluice_job_chain(struct sluice_job *job);

// Write the next filtered frame into an image file, of the kind that its extension says, rotated as
// players show it. An existing file is replaced if `overwrite`, or the job's, says so, but never a
// file that the job reads or writes. Waits for a frame, up to two seconds or until the job ends.
// SLUICE_STATUS_USAGE, SLUICE_STATUS_OUTPUT or SLUICE_STATUS_END, with a sentence in `why`
// (optional).
SLUICE_API enum sluice_status sluice_job_snapshot(struct sluice_job *job, const char *file,
                                                  bool overwrite, char *why, size_t size);

// ---- files beside a job ----

// A file that is written by the rules of outputs: an existing one stands until the new one is
// whole, and for good unless config->overwrite.
struct sluice_file;

// Begin one; "-" is standard output. It has its name only when it is whole. The config's `log` is
// called until the end. On success the caller owns *file. One thread at a time, as all calls on it.
SLUICE_API enum sluice_status sluice_file_create(const struct sluice_config *config,
                                                 const char *name, struct sluice_file **file);

// Let nobody but the owner read it, unless it replaces a file: that one's permissions are kept.
SLUICE_API void sluice_file_hide(struct sluice_file *file);

// Append. sluice_file_commit() reports failures.
SLUICE_API void sluice_file_write(struct sluice_file *file, const char *data, size_t size);

// Give it its name now, for one that grows while others read it.
SLUICE_API enum sluice_status sluice_file_publish(struct sluice_file *file);

// Finish: SLUICE_STATUS_OUTPUT unless every byte is safely stored. Frees it either way.
SLUICE_API enum sluice_status sluice_file_commit(struct sluice_file **file);

// Remove it, unless it was published, and free it. Accepts NULL behind the pointer.
SLUICE_API void sluice_file_discard(struct sluice_file **file);

// ---- figures ----

// The parts of a job, one of which all others wait for.
enum sluice_part {
    SLUICE_PART_DEMUX,
    SLUICE_PART_DECODE,
    SLUICE_PART_UPLOAD,
    SLUICE_PART_FILTER,
    SLUICE_PART_DOWNLOAD,
    SLUICE_PART_ENCODE,
    SLUICE_PART_MUX,
    SLUICE_PART_COUNT,
};
enum { SLUICE_MAX_PARTS = 16 }; // arrays have room for more

// Words for a part of a job: "decoding", and the advice that would let it do that faster, "a faster
// disk". Since 1.1; static, NULL for none of them.
SLUICE_API const char *sluice_part_name(enum sluice_part part);
SLUICE_API const char *sluice_part_advice(enum sluice_part part);

// Latency of a live source: from a packet's arrival (and that of the packets of frames shown before
// it) to the writing of its frame. All zero while nothing was written.
enum { SLUICE_LATENCY_LIMITS = 16 };
struct sluice_latency {
    int limits;                            // how many of `limit` and `within` are in use
    double limit[SLUICE_LATENCY_LIMITS];   // seconds, rising
    int64_t within[SLUICE_LATENCY_LIMITS]; // frames that took no longer
    int64_t frames;                        // all
    double seconds;                        // sum over all frames
    double quantile[3];                    // seconds that 50, 95 and 99 % of the frames kept within
    int64_t reserved[4];
};

// The frame ledger. When a job ends frames_in + frames_filled is frames_out plus all that was
// dropped, or the job has failed; while it runs the difference is under way. Counts never fall.
struct sluice_ledger {
    int64_t frames_in;          // decoded
    int64_t frames_filled;      // shown while a live source was lost
    int64_t frames_out;         // written
    int64_t dropped_range;      // outside start, duration or frames
    int64_t dropped_stop;       // decoded when the job was stopped, and not encoded in time
    int64_t dropped_late;       // live: older than max_latency before they were filtered
    int64_t dropped_clock;      // two or more frames in one tick of the output's clock
    int64_t dropped_disk;       // recording in segments as the only output: the disk was full
    int64_t frames_damaged;     // of frames_in: decoded with errors, shown as the decoder left them
    int64_t packets_damaged;    // came with a part missing, or could not be decoded at all
    int64_t packets_skipped;    // live: not decoded, because decoding was too slow
    int64_t verified;           // frames recomputed and found equal
    int64_t losses, reconnects; // times that a live source went away, and came back
    double lost_seconds;        // time without it
    // ---- since 1.1 ----
    int64_t frames_taken_over; // of frames_in: filtered by the CPU, since the GPU failed before
    int64_t reserved[7];
};

// A snapshot. Bytes and seconds never fall, either.
struct sluice_progress {
    size_t size;            // sizeof(struct sluice_progress)
    int64_t frames;         // filtered and handed to the encoder
    int64_t frames_pending; // of these, still inside the slowest encoder
    int64_t frames_total;   // about how many there will be; 0: unknown
    double seconds;         // since sluice_job_run() began
    double media_seconds;   // of video written
    double media_total;     // 0: unknown
    bool flushing;          // the last frame is through: encoders are flushed, files are ended
    bool stopping;          // a stop was asked for, or the last frame is through and the output is
                            // being made whole
    bool lost;              // the live source is away, for a quarter of a second or more
    bool connecting;        // ... and attempts to reconnect go on
    struct sluice_ledger ledger;
    struct sluice_latency latency;
    double busy_seconds[SLUICE_MAX_PARTS]; // that each part was working; the CPU's threads are one
    int ring, ring_used;                   // slots, and how many of them hold a frame now
    double ring_occupancy;                 // mean share of the slots in use
    int64_t bytes_out;                     // of all outputs
};

// SLUICE_STATUS_USAGE, here and below, if progress->size is not set.
SLUICE_API enum sluice_status sluice_job_progress(const struct sluice_job *job,
                                                  struct sluice_progress *progress);

// One output, while the job runs and after it.
struct sluice_output_figures {
    size_t size;
    const char *name;      // without secrets
    const char *encoder;   // NULL: none
    const char *container; // as FFmpeg calls it; "hash", "null"
    int64_t frames;        // written
    int64_t dropped;       // left out because it was too slow, or not there
    int64_t missing;       // of those: the disk had no room for them
    int64_t unwatched;     // not encoded, because nobody watched
    int64_t bytes;
    int64_t files;    // segments begun
    int64_t connects; // times that its address was reached
    bool connected;   // it is now
    bool failed;
    bool tee; // it has the frames at a tee of the chain
};

// Output number `index` from 0. SLUICE_STATUS_END past the last.
SLUICE_API enum sluice_status sluice_job_output(const struct sluice_job *job, int index,
                                                struct sluice_output_figures *figures);

// The report of a stage that writes one, after sluice_job_run().
struct sluice_record {
    size_t size;
    const char *stage; // its name
    const char *file;  // NULL: none
    int64_t frames;    // in the file
    int64_t dropped;   // left out of the file, not of the figures, because it was too slow
    int64_t bytes;
    int figures;
};

// A mean over all frames of the report: sum[k] / frames.
struct sluice_figure {
    size_t size;
    const char *name;
    const double *sum;
    int values;
    int64_t frames;
};

// Report number `index` from 0, and figure number `figure` of it. SLUICE_STATUS_END past the last.
SLUICE_API enum sluice_status sluice_job_record(const struct sluice_job *job, int index,
                                                struct sluice_record *record);
SLUICE_API enum sluice_status sluice_job_figure(const struct sluice_job *job, int index, int figure,
                                                struct sluice_figure *figures);

// Everything about a job after sluice_job_run(), whatever came of it.
struct sluice_summary {
    size_t size;
    struct sluice_ledger ledger;
    struct sluice_latency latency;
    bool stopped;   // sluice_job_stop() ended it before its source did
    bool truncated; // the file ends before its own header or index says so, or a live source was
                    // lost for good
    // Faults that config->simulate made.
    struct sluice_simulated {
        int64_t packets_lost, packets_corrupted;
        int64_t stalls, closes, ts_jumps, res_changes;
        int64_t reserved[4];
    } simulated;

    double seconds;       // wall time of sluice_job_run()
    double media_seconds; // of video written
    int64_t bytes_out;    // of all outputs

    const char *input, *input_codec, *input_format; // name, codec, pixel format
    const char *input_tls; // whether the server is known: "verified", "unverified"; NULL: no TLS
    const char *output, *encoder, *output_format; // of the first; encoder NULL when there is none
    const char *backend, *device, *decoder;       // names, for people
    int width, height;

    double busy[SLUICE_MAX_PARTS]; // share of the time that each part was working, 0 to 1
    int64_t max_memory;            // bound of the process's memory, worked out at the start; 0: it
                                   // never began
    double cores_busy;             // share of the processor's time that the process used, 0 to 1
    double ring_occupancy;         // mean share of the ring's slots in use
    int ring;                      // slots
    enum sluice_part bottleneck;
    const char *verdict; // one or two sentences: what set the pace, and what would change it

    // ---- since 1.1 ----
    // Bytes of memory, the host's and the GPU's, that the job was found to need, and that it might
    // take; 0: it was not found out.
    int64_t need_mem, need_vram, mem, vram;
    bool gpu_pending; // the GPU is still being made ready: sluice_job_destroy() waits for that
};

SLUICE_API enum sluice_status sluice_job_summary(const struct sluice_job *job,
                                                 struct sluice_summary *summary);

// ---- parts of an output, since 1.1 ----

// Put the parts of an output together, which jobs with config->part have made, without encoding
// again. `parts` are their folders, in any order, ended by NULL. Of config count `output` (its name,
// and its format and options where they are the container's), `overwrite`, `log`, and `input`: the
// source, from which everything but the video is copied; NULL: the file that the parts were made
// of, where it was then.
//
// The output is whole or absent. Beside it is its manifest, "out.mp4.manifest". An output
// "hash:FILE" has the lines of all parts; the chain's reports are put together likewise, under the
// names that the chain gives them.
//
// SLUICE_STATUS_INPUT, with a sentence that names the part, if the parts are not one whole: one is
// missing, there twice, altered, of another source or chain, or its frames are not what its
// neighbours say. SLUICE_STATUS_OUTPUT: it could not be written, or is there.
// *joined (optional) gets what there is to say of an output that was joined.
struct sluice_joined {
    size_t size;
    int64_t frames;
    int64_t frames_damaged, packets_damaged; // as of struct sluice_ledger
    bool truncated;                          // as of struct sluice_summary
    int64_t reserved[4];
};

SLUICE_API enum sluice_status sluice_join(const struct sluice_config *config,
                                          const char *const *parts, struct sluice_joined *joined);

// The same, while the parts are being made: each is read when it is whole, so that behind the last
// one only its own packets are left to copy. `parts` are in order. `await` is called in this thread,
// for parts from 0 on: it blocks until that part is whole, and stays as it is, and returns true; or
// gives up and returns false, whereupon nothing is left and SLUICE_STATUS_STOPPED is returned. It is
// called again for the part that is read, before each packet, so that it may still give up. NULL:
// all parts are there, as for sluice_join().
//
// Files are the same to the byte. Parts are found not to be one whole as soon as they are read;
// nothing has its name before all are. Lists of hashes and reports are read when all parts are there;
// so is all of a video of which a later part needs what the first did not show, which is rare.
//
// Thread-safety: jobs may make the parts meanwhile, in other threads.
SLUICE_API enum sluice_status sluice_join_following(const struct sluice_config *config,
                                                    const char *const *parts,
                                                    bool (*await)(void *opaque, int part),
                                                    void *opaque, struct sluice_joined *joined);

// What an audit has found.
struct sluice_audit {
    size_t size;
    int64_t frames;   // that the output has
    int64_t samples;  // of them: computed again, and equal
    int64_t packets;  // of its video: read, and those that were written
    int64_t pts;      // of the first frame that differs, in the unit of the manifest; 0: none does
    unsigned seed;    // by which the samples were drawn
    unsigned streams; // beside its video: with the packets that were written
    unsigned copied;  // of these: with those of a stream of the source
    unsigned reserved[5];
};

// Audit an output that has a manifest: its packets are those that were written, its source is the
// one that it was made of, and `samples` frames, drawn at random (0: all), are computed again from
// the source, on any machine, and are equal to the bit. Streams beside the video have the packets of
// the source, unless the container stores them otherwise. The source has no frames that are left
// out: at both ends, behind those that are drawn, or anywhere if all are. Of config count
// `output.name`, `chain` never, `input` as for sluice_join(), `backend` (SLUICE_BACKEND_AUTO is the
// CPU, SLUICE_BACKEND_CUDA is refused), `threads`, `max_pixels` and `log`. `seed` 0: any.
//
// SLUICE_STATUS_FAILED, with a sentence that names the frame or packet: it is not what the manifest
// says. SLUICE_STATUS_INPUT: the manifest, output or source cannot be read, or is altered. *found
// has what was found up to there.
SLUICE_API enum sluice_status sluice_audit(const struct sluice_config *config, int64_t samples,
                                           unsigned seed, struct sluice_audit *found);

// Check a part, whose folder this is, by itself: that its manifest is whole, and, with `files`,
// that the files beside it are those that were written. Of config counts `log`. Any thread.
//
// SLUICE_STATUS_INPUT, with a sentence that names the file, if it is not so. Whether it is the part
// that a job would make, sluice_job_create() tells, which returns SLUICE_STATUS_END if it is.
SLUICE_API enum sluice_status sluice_check_part(const struct sluice_config *config,
                                                const char *folder, bool files);

// Remove a part: its folder, and the files in it. False where something of it stays. Any thread.
SLUICE_API bool sluice_remove_part(const char *folder);

// Find where two outputs of one source that have manifests begin to differ: the first frame, and,
// by computing it again with both chains, the first stage and sample. Of config count `input`,
// `backend`, `threads`, `max_pixels` and `log`, as for sluice_audit().
//
// SLUICE_STATUS_OK: all frames are the same. SLUICE_STATUS_FAILED: *text says where they differ.
// Either way the caller frees *text with free(); on other failures it is NULL.
SLUICE_API enum sluice_status sluice_bisect(const struct sluice_config *config, const char *a,
                                            const char *b, char **text);

// ---- capture devices ----

// A mode of a camera: one pixel format in one size, or in any size of a range.
struct sluice_mode {
    const char *pixfmt;          // for config->input_pixfmt; NULL: FFmpeg does not read it. Static
    char description[32];        // the format in the driver's words
    unsigned fourcc;             // ... and in V4L2's code
    int width, height;           // 0: the driver does not say
    int max_width, max_height;   // 0: one size; else width, height are the smallest
    int width_step, height_step; // of a range, from the smallest on
    struct sluice_rate rate[32];
    int rates;     // of rate[], as the driver orders them; 0: it does not say
    bool any_rate; // from rate[0], the slowest, to rate[1], the fastest
    int reserved[8];
};

// A device as it is now. Made by the library only.
struct sluice_device {
    const char *input;   // for config->input
    const char *name;    // for people
    const char *trouble; // why it cannot be used, a sentence; NULL: it can
    const struct sluice_mode *modes;
    int mode_count; // 0 for what is not a camera
};

// Call device() with each capture device of this machine: cameras, and the X11 screen that the
// environment's DISPLAY names. Its arguments live until it returns. Blocks while drivers answer,
// and two seconds at most for the screen.
SLUICE_API enum sluice_status sluice_devices(void (*device)(void *opaque,
                                                            const struct sluice_device *device),
                                             void *opaque);

// A mode's sizes and rates for people: "640x480", "16x16 to 1920x1080 in steps of 2x2"; "30, 15",
// "1 to 60"; "" where the driver does not say.
SLUICE_API void sluice_mode_size(const struct sluice_mode *mode, char *to, size_t size);
SLUICE_API void sluice_mode_rates(const struct sluice_mode *mode, char *to, size_t size);

// A kind of device that the installed libavdevice knows, and an input of that kind. Strings are
// static.
struct sluice_device_kind {
    size_t size;
    const char *name, *description, *example;
};

// Kind number `index` from 0. SLUICE_STATUS_END past the last, and always without libavdevice.
SLUICE_API enum sluice_status sluice_device_kind(int index, struct sluice_device_kind *kind);

// ---- reports ----

// A chain's plan as text: passes, halos, bytes, conversions. With config->input the plan is for
// that file, and refused as a job would refuse it: a pattern larger than its frames, more memory
// than there is. Without it the plan is for pictures of input_width, input_height and input_pixfmt, or
// 8-bit 4:2:0 of 1920x1080. On success the caller frees *text with free(); on failure it is NULL, here
// and below.
SLUICE_API enum sluice_status sluice_plan(const struct sluice_config *config, char **text);

// The machine's devices and the choices that a job would make, with their reasons; with
// config->input for that file.
SLUICE_API enum sluice_status sluice_doctor(const struct sluice_config *config, char **text);

// The number of GPUs that CUDA shows this process, numbered from 0 on as in config->device; 0
// without a driver. Since 1.1.
SLUICE_API int sluice_gpus(void);

// Bytes of the host's memory that can be taken now without ending somebody: what the system says is
// available, or what the limits of this process's control groups leave, whichever is less. 0: nobody
// says; 1: nothing is left. Since 1.1.
SLUICE_API int64_t sluice_memory_available(void);

// ---- texts ----

// Numbers as FFmpeg's tools take them: sizes "1920x1080" and "hd720"; rates "25", "30000/1001" and
// "ntsc"; bits a second "2M" and "500k". SLUICE_STATUS_USAGE for anything else, with nothing set
// and nothing logged.
SLUICE_API enum sluice_status sluice_parse_size(const char *text, int *width, int *height);
SLUICE_API enum sluice_status sluice_parse_rate(const char *text, struct sluice_rate *rate);
SLUICE_API enum sluice_status sluice_parse_bitrate(const char *text, int64_t *bitrate);

// A name as it may be shown: without passwords and other secrets of an address.
SLUICE_API void sluice_public_name(const char *name, char *to, size_t size);

// Put asterisks in place of the secrets of a command line's argument: of an address or a chain with
// addresses, or of KEY=VALUE where the key is that of a secret.
SLUICE_API void sluice_blank_secrets(char *argument);

// A chain as it may be shown, alike; the caller frees it with free(). NULL without memory.
SLUICE_API char *sluice_public_chain(const char *chain);

// Let FFmpeg write its own messages to standard error, without the secrets of addresses, from this
// level on (AV_LOG_QUIET -8 .. AV_LOG_DEBUG 48). The one setting that holds for the whole process;
// jobs do not touch it.
SLUICE_API void sluice_ffmpeg_log(int level);

#ifdef __cplusplus
}
#endif
