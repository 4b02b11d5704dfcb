// libsluice: filter video files at the speed of the hardware.
//
// A job reads one video, runs a chain of stages over every frame and writes the result; all that is
// not the video (audio, subtitles, chapters, tags) goes along untouched. This header is all there
// is to know:
//
//     struct sluice_config config = {
//         .input = "in.mp4", .output.name = "out.mp4", .chain = "gray,gaussian=1.4,sobel",
//     };
//     struct sluice_job *job;
//     enum sluice_status status = sluice_job_create(&config, &job);
//     if (!status)
//         status = sluice_job_run(job);
//     sluice_job_destroy(&job);
//
// In every struct zero or NULL means the default. Several jobs may run in one process; the library
// has no state of its own, never exits, never prints and installs no signal handler. FFmpeg and the
// encoders behind it do print, by FFmpeg's log, whose level is the process's: sluice_ffmpeg_log(-8)
// makes them silent.
//
// Text is UTF-8. Times are seconds unless a name says otherwise.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What came of a call. Zero is success; the log has the sentence that says why.
enum sluice_status {
    SLUICE_STATUS_OK = 0,
    SLUICE_STATUS_END,     // no more of what was asked for; not a failure
    SLUICE_STATUS_STOPPED, // sluice_job_stop() ended it; the output is whole up to there
    SLUICE_STATUS_FAILED,  // none of the others
    SLUICE_STATUS_MEMORY,  // out of memory
    SLUICE_STATUS_USAGE,   // the configuration is wrong; nothing was opened for writing
    SLUICE_STATUS_INPUT,   // the input cannot be read or decoded
    SLUICE_STATUS_OUTPUT,  // the output cannot be encoded or written
    SLUICE_STATUS_DEVICE,  // the GPU that was required failed or is not there
};

enum sluice_log_level { SLUICE_LOG_ERROR, SLUICE_LOG_WARNING, SLUICE_LOG_INFO, SLUICE_LOG_DEBUG };

// What filters: the GPU where there is one that pays, else the CPU; or one of them by name. Scalar
// is the reference of all results, slow and exact.
enum sluice_backend {
    SLUICE_BACKEND_AUTO,
    SLUICE_BACKEND_CUDA,
    SLUICE_BACKEND_CPU,
    SLUICE_BACKEND_SCALAR
};

// Whether the GPU decodes: where it can, or not at all, or nothing else will do.
enum sluice_hwdec { SLUICE_HWDEC_AUTO, SLUICE_HWDEC_OFF, SLUICE_HWDEC_REQUIRE };

// What an output shows while a live source is lost: nothing new (timestamps leap over the gap), the
// last picture again and again, or black.
enum sluice_gap { SLUICE_GAP_SKIP, SLUICE_GAP_FREEZE, SLUICE_GAP_BLACK };

// What code values an output's Y'CbCr and gray are made of: those that the chain and the codec
// leave, or limited (16 to 235), or full (0 to 255).
enum sluice_range { SLUICE_RANGE_ANY, SLUICE_RANGE_LIMITED, SLUICE_RANGE_FULL };

// Numbers for which zero has to be said, because 0 is the default.
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
    // A file, its container by the extension; a numbered sequence of images; a playlist
    // ("live.m3u8") with its segments beside it; "-" for standard output (needs format); an address
    // that is published to (rtsp, rtmp, srt, udp, rtp, tcp); "display:" for a window; "mjpeg:ADDR"
    // to serve browsers over HTTP; "null:" to filter and discard; "hash:FILE" for one line a frame
    // (index, pts, bytes, MD5 of the samples), "hash:-" to standard output.
    const char *name;
    const char *format;         // FFmpeg's name of a muxer
    const char *encoder;        // FFmpeg's name of an encoder
    double crf;                 // quality of encoders that have this option, the lower the better;
                                // 0: the encoder's own, SLUICE_CRF_ZERO: 0
    const char *preset;         // speed, in the words of the encoder
    int64_t bitrate;            // bits a second; 0: the encoder's own, SLUICE_BITRATE_ZERO: 0
    const char *const *options; // "key=value" for encoder or muxer, ended by NULL
    double segment;             // seconds: several files so long, named by time; 0: one
    const char *pixfmt;         // FFmpeg's name of a pixel format; NULL: the nearest that the
                                // encoder takes, but of H.264, HEVC, VP9, AV1 and MPEG-4 one that
                                // every player decodes: 4:2:0, of 8 bits, of HEVC and AV1 up to 10
    enum sluice_range range;
};

// What to do. Strings are read by sluice_job_create() only and may go afterwards; so may the
// struct.
struct sluice_config {
    // A file; an address; a device; a numbered or globbed sequence of images ("in%04d.png",
    // "*.png"); "-" for standard input. A name that exists as it stands is always that file.
    const char *input;
    struct sluice_output output;
    // More of them, ended by one without a name; NULL: none. Those that can have the same encoding
    // share it. Of live sources none holds up another, nor the source: what is slow or not there
    // leaves out frames, and what has failed is left behind; the job fails when none is left.
    const struct sluice_output *more_outputs;
    // The stages; NULL: "gray,gaussian=1.4,sobel,threshold=20:240". "" or "null": none. Some write
    // files of their own: "tee=bright.mkv" makes the picture as it is there a further output, with
    // the usual encoding; "stats=FILE" tells of each frame. All outputs together are 16 at most.
    const char *chain;

    const char *input_format; // FFmpeg's name of a demuxer, when the content cannot tell
    const char *input_pixfmt; // FFmpeg's name of a pixel format, of raw video and devices; of
                              // cameras also of a codec, "mjpeg"
    int input_width;          // of raw video and devices; 0: the device's own
    int input_height;
    struct sluice_rate input_rate; // frames a second of raw video, devices and image sequences;
                                   // 0/0: 25, or the device's own
    int stream;                    // SLUICE_STREAM(index): filter that stream; 0: the best video
    double start;                  // begin there
    double duration;               // end so much later
    int64_t frames;                // end after so many frames
    int64_t max_pixels;            // refuse larger pictures; 0: 2^28

    // Live sources: rtsp, rtmp, srt, udp and rtp addresses, http ones without an end, and capture
    // devices ("/dev/video0", "v4l2:/dev/video0", "x11grab::0", "lavfi:testsrc"). When they are
    // lost they are connected again; the output goes on, its timestamps with a gap as long as in
    // life.
    bool live;                  // a file plays at its own pace, and is written as if it were live
    const char *rtsp_transport; // "tcp", "udp", ...; NULL: tcp, and udp where that fails
    const char *playlist_hosts; // hosts that an HLS playlist from HTTP may fetch from besides its
                                // own: "cdn.example,*.example.org", "any"; NULL: none
    bool tls_verify;            // of https, rtmps and rtsps: insist on a valid certificate ...
    const char *ca_file;        // signed by those in this file, which insists as well; NULL: the
                                // system's
    enum sluice_gap gap;        // what is shown while a live source is lost
    double open_timeout;        // seconds that opening an address may take; 0: 10
    double stall_timeout;       // seconds without a picture until a source is lost; 0: 5, of
                                // playlists, which come in segments, 30
    double max_latency;         // seconds: frames older than so are dropped before they are
                                // filtered, those of the first two seconds when they are one
                                // second older, and the decoder's threads are limited; 0: 2 of
                                // live sources, any of files and playlists
    int reconnects;             // attempts in a row, at once and then 0.25 s to 10 s apart; 0: for
                                // ever; SLUICE_RECONNECTS_NONE: none
    bool await_start; // tried again so often, too: a live source that is absent at the start, which
                      // sluice_job_create() waits for, and an address that is published to; else
                      // that fails at once
    // Faults on purpose, of any input: "loss=2%,corrupt=1%" (of the filtered stream's packets),
    // "stall=8s@30s,close@40s,ts-jump=-5s@60s,res-change=640x360@90s" (so long after the first
    // packet), and "seed=7" for others of that kind. The same text and file give the same faults.
    const char *simulate;

    bool overwrite; // replace existing files, once the new ones are whole: of every kind

    // Files that whoever runs the job writes beside it (sluice_file_create()), a summary or a
    // journal, ended by NULL; NULL: none. Refused like outputs where the job reads or writes one of
    // them, and where one exists and must not be replaced.
    const char *const *reserved_outputs;
    const char *const *reserved_inputs; // likewise what it reads; refused where the job writes one

    enum sluice_backend backend;
    enum sluice_hwdec hwdec;
    bool repeatable;    // damaged input gives the same frames in every run: the CPU decodes, in one
                        // thread
    const char *device; // which GPUs: "0", "0,1", which take frames in turn, or "all"; with
                        // SLUICE_BACKEND_AUTO one that is named is required. NULL: "0"
    int threads;        // of the CPU backend; 0: one per usable core
    int ring;           // frames in flight; 0: as many as the backend likes, at most 64
    const char *trace;  // a file for a timeline that ui.perfetto.dev opens; NULL: none
    int verify;         // recompute every Nth frame with scalar and fail on a difference; 0: none

    // Where to show Prometheus how it goes, at /metrics, as long as the job exists: "9464" or
    // ":9464" on this machine only, "HOST:9464", "[::1]:9464", "0.0.0.0:9464" for everyone. NULL:
    // nowhere.
    const char *metrics;

    // Changes made at the first frames from these times on, as `changed` told them of another job;
    // ended by a NULL chain. Addresses of tees may lack their secrets (sluice_public_chain()).
    // NULL: none. Read while the job runs.
    const struct sluice_change *changes;

    // Called when a chain begins to filter, the first one too, with the time of its first frame in
    // microseconds of the input; the outputs are open by then. The chain has the secrets of its
    // addresses. From a thread of the job. NULL: nobody asks.
    void (*changed)(void *opaque, int64_t pts_us, const char *chain);

    // Called with one sentence at a time, from any thread. NULL: silence.
    void (*log)(void *opaque, enum sluice_log_level level, const char *sentence);
    void *opaque;
};

struct sluice_job;

struct sluice_change {
    int64_t pts_us;
    const char *chain;
};

// Check the configuration, open the input, find out how to write the output. On success the caller
// owns *job; on failure it is NULL. Blocks as long as opening the input takes.
enum sluice_status sluice_job_create(const struct sluice_config *config, struct sluice_job **job);

// Do it, once. Blocks until the output is whole or has failed. A failed file output is removed, and
// what stood under its name before still stands. Damaged input is no failure: see the summary.
enum sluice_status sluice_job_run(struct sluice_job *job);

// Whether sluice_job_create() would refuse the chains or the names of the files, so that what it
// reserves may be opened before: SLUICE_STATUS_USAGE if one that is written is written twice, or
// was read; SLUICE_STATUS_OUTPUT if one of `reserved_outputs`, or the trace, exists and must not be
// replaced, or has no folder to be in. Nothing is opened but what a chain names to be read.
enum sluice_status sluice_check_files(const struct sluice_config *config);

// Ask a running job to end early: what was filtered so far and the encoder gives out in time
// becomes a whole output, whose other streams end with its video, within two seconds whatever
// source and encoder do, and sluice_job_run() returns SLUICE_STATUS_STOPPED. Frames that it does
// not give out in time are counted as dropped_stop. Returns at once. Any thread, any time between
// create and destroy; not a signal handler. An encoder that was deep in a frame may then still be
// at it: sluice_job_destroy() waits for that.
void sluice_job_stop(struct sluice_job *job);

// Free everything. Not while sluice_job_run() is running. Leaves NULL, accepts NULL behind it.
void sluice_job_destroy(struct sluice_job **job);

// ---- changes while it runs ----

// Filter by other parameters from the next frame on, all of them at once: "gaussian.sigma=2.5,
// threshold.t1=30", or of the second of two "gaussian#2.sigma=1". Refused, with a sentence in `why`
// (optional), and nothing changes: SLUICE_STATUS_USAGE if they are none of the chain's, would
// change the files that it writes, or are what the start of a job would have refused of the
// pictures that come now, as more memory than there is or a template larger than they are. Any
// thread, any time between create and destroy; what is asked before the first picture came may end
// the run with it.
enum sluice_status sluice_job_set(struct sluice_job *job, const char *options, char *why,
                                  size_t size);

// The same, by another chain.
enum sluice_status sluice_job_set_chain(struct sluice_job *job, const char *chain, char *why,
                                        size_t size);

// The chain, with the changes asked for so far and the secrets of its addresses, as text that the
// caller frees with free(); NULL without memory. Any thread.
char *sluice_job_chain(struct sluice_job *job);

// Write the next filtered picture into an image file, of the kind that its extension says. What is
// there is replaced if `overwrite`, or the job's, says so, but never what the job reads or writes.
// Waits up to two seconds for it, or until the job ends. SLUICE_STATUS_USAGE, SLUICE_STATUS_OUTPUT
// or SLUICE_STATUS_END, with a sentence in `why` (optional). Any thread, any time between create
// and destroy; of a turned picture as players show it.
enum sluice_status sluice_job_snapshot(struct sluice_job *job, const char *file, bool overwrite,
                                       char *why, size_t size);

// ---- files beside a job ----

// A file that is written by the rules of outputs: what is there under its name stands until the new
// one is whole, and for good unless config->overwrite.
struct sluice_file;

// Begin one; "-" is standard output. Nothing is seen of it yet. SLUICE_STATUS_OUTPUT with a
// sentence in the config's log, which is needed until the end. On success the caller owns *file.
enum sluice_status sluice_file_create(const struct sluice_config *config, const char *name,
                                      struct sluice_file **file);

// Let nobody but the owner read it, unless it replaces a file: that one's permissions are kept.
void sluice_file_hide(struct sluice_file *file);

// Append. What fails is told by sluice_file_commit().
void sluice_file_write(struct sluice_file *file, const char *data, size_t size);

// Give it its name now, for one that grows while others read it.
enum sluice_status sluice_file_publish(struct sluice_file *file);

// Finish: SLUICE_STATUS_OUTPUT with a sentence unless every byte is safely stored. Frees it either
// way.
enum sluice_status sluice_file_commit(struct sluice_file **file);

// Give up: nothing is left of it, unless it was published. Accepts NULL behind the pointer.
void sluice_file_discard(struct sluice_file **file);

// ---- how it goes ----

// The parts of a job that can be the one that all others wait for.
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
enum { SLUICE_MAX_PARTS = 16 }; // room for more of them in the arrays below

// Latency of a live source: the time from a packet's arrival (of the packets of frames shown before
// it, too) to the writing of its frame. All zero while nothing was written.
enum { SLUICE_LATENCY_LIMITS = 16 };
struct sluice_latency {
    int limits;                            // how many of `limit` and `within` are in use
    double limit[SLUICE_LATENCY_LIMITS];   // seconds, rising
    int64_t within[SLUICE_LATENCY_LIMITS]; // frames that took no longer
    int64_t frames;                        // all
    double seconds;                        // sum over all frames
    double quantile[3];                    // seconds that 50, 95 and 99 % of the frames kept within
};

// The frame ledger. When a job ends frames_in + frames_filled is frames_out plus all that was
// dropped, or the job has failed; while it runs the difference is under way. Counts never fall.
struct sluice_ledger {
    int64_t frames_in;          // decoded
    int64_t frames_filled;      // shown while a live source was lost
    int64_t frames_out;         // written
    int64_t dropped_range;      // outside start, duration or frames
    int64_t dropped_stop;       // decoded when the job was stopped, and not encoded in time
    int64_t dropped_late;       // live source: older than max_latency before they were filtered
    int64_t dropped_clock;      // two or more frames in one tick of the output's clock
    int64_t dropped_disk;       // recording in segments as the only output: the disk was full
    int64_t frames_damaged;     // of frames_in: decoded with errors, shown as the decoder left them
    int64_t packets_damaged;    // came with a part missing, or could not be decoded at all
    int64_t packets_skipped;    // live source: not decoded, because decoding was too slow
    int64_t verified;           // frames recomputed and found equal
    int64_t losses, reconnects; // times that a live source went away, and came back
    double lost_seconds;        // time without it
    int64_t reserved[8];        // zero
};

// A snapshot, from any thread while the job exists. Bytes and seconds never fall, either.
struct sluice_progress {
    int64_t frames;         // filtered and handed to the encoder
    int64_t frames_pending; // of these, those that have not come out of the slowest encoder yet
    int64_t frames_total;   // about how many there will be; 0: unknown
    double seconds;         // since sluice_job_run() began
    double media_seconds;   // of video written
    double media_total;     // 0: unknown
    bool flushing; // the last frame is through: encoders give what they hold, files are ended
    bool stopping; // nothing more comes: a stop was asked for, or the last frame is through
                   // and the output is being made whole

    struct sluice_ledger ledger;

    bool lost;       // live source: away for a quarter of a second or more, now
    bool connecting; // ... and attempts to reconnect go on
    struct sluice_latency latency;

    double busy_seconds[SLUICE_MAX_PARTS]; // that each part was working; the CPU's threads are one
    int ring, ring_used;                   // slots, and how many of them hold a frame now
    double ring_occupancy;                 // mean share of the slots in use
    int64_t bytes_out;                     // of the output
};

void sluice_job_progress(const struct sluice_job *job, struct sluice_progress *progress);

// How one output went, while the job runs and after it.
struct sluice_output_figures {
    const char *name;      // without secrets
    const char *encoder;   // NULL: none
    const char *container; // as FFmpeg calls it; "hash", "null"
    int64_t frames;        // written
    int64_t dropped;       // left out because it was too slow, or not there
    int64_t missing;       // of those: the disk had no room for them
    int64_t bytes;
    int64_t files;    // segments begun
    int64_t connects; // times that its address was reached
    bool connected;   // it is now
    bool failed;
    int64_t unwatched; // not encoded, because nobody watched
    bool tee;          // it has the picture at a tee of the chain
};

// Output number `index` from 0. SLUICE_STATUS_END past the last. Any thread while the job exists.
enum sluice_status sluice_job_output(const struct sluice_job *job, int index,
                                     struct sluice_output_figures *figures);

// What a stage that records told of the frames, after sluice_job_run(). Strings and figures live as
// long as the job.
struct sluice_record {
    const char *stage; // its name
    const char *file;  // NULL: none
    int64_t frames;    // that it tells of
    int64_t dropped;   // left out of the file because it was too slow, not of the figures
    int64_t bytes;
    int figures;
};

// The mean over all frames that it was told of: sum[k] / frames.
struct sluice_figure {
    const char *name;
    const double *sum;
    int values;
    int64_t frames;
};

// Record number `index` from 0, and figure number `figure` of it. SLUICE_STATUS_END past the last.
enum sluice_status sluice_job_record(const struct sluice_job *job, int index,
                                     struct sluice_record *record);
enum sluice_status sluice_job_figure(const struct sluice_job *job, int index, int figure,
                                     struct sluice_figure *figures);

// Everything about a job that has run, whatever came of it. Strings live as long as the job.
struct sluice_summary {
    struct sluice_ledger ledger;
    struct sluice_latency latency;
    bool stopped;   // sluice_job_stop() ended it before its source did
    bool truncated; // the file ends before its own header or index says so, or a live source was
                    // lost for good
    // What config->simulate did.
    struct sluice_simulated {
        int64_t packets_lost, packets_corrupted;
        int64_t stalls, closes, ts_jumps, res_changes;
        int64_t reserved[4]; // zero
    } simulated;

    double seconds;       // wall time of sluice_job_run()
    double media_seconds; // of video written
    int64_t bytes_out;    // of the output, 0 if it has none

    const char *input, *input_codec, *input_format; // name, codec, pixel format
    const char *input_tls; // whether the server is known: "verified", "unverified"; NULL: no TLS
    const char *output, *encoder, *output_format; // encoder NULL when there is none
    const char *backend, *device, *decoder;       // names, for people
    int width, height;

    double busy[SLUICE_MAX_PARTS]; // share of the time that each part was working, 0 to 1
    int64_t max_memory;    // bytes of memory that the process stays below, as it was told at
                           // the start; 0: it never began
    double cores_busy;     // share of the processor's time that the process used, 0 to 1
    double ring_occupancy; // mean share of the ring's slots in use
    int ring;              // slots
    enum sluice_part bottleneck;
    const char *verdict; // one or two sentences: what set the pace, and what would change it
};

void sluice_job_summary(const struct sluice_job *job, struct sluice_summary *summary);

// ---- stages ----

enum sluice_option_type {
    SLUICE_OPTION_REAL,
    SLUICE_OPTION_INT,
    SLUICE_OPTION_CHOICE,
    SLUICE_OPTION_TEXT
};

// One option of a stage. Strings are static.
struct sluice_option_info {
    const char *name;
    enum sluice_option_type type;
    const char *unit;    // "" for a plain number; of SLUICE_OPTION_TEXT what the text says
    const char *choices; // "luma|mean", of SLUICE_OPTION_CHOICE
    const char *derived; // how the default follows from other options; NULL: it does not
    bool required;
    bool many;      // of the first option: it takes all values that have no name
    double initial; // the default; of SLUICE_OPTION_CHOICE its index
    double min, max;
    const char *help;
};

struct sluice_stage_info {
    const char *name, *summary, *formula;
    const char *source; // literature; NULL: none
    int options;
};

// Stage number `index` from 0, and option `option` of it. SLUICE_STATUS_END past the last.
enum sluice_status sluice_stage(int index, struct sluice_stage_info *info);
enum sluice_status sluice_stage_option(int index, int option, struct sluice_option_info *info);

// ---- capture devices ----

// What a camera gives: pictures of one format, of one size or of any size in a range.
struct sluice_mode {
    const char *pixfmt;          // what input_pixfmt takes; NULL: FFmpeg does not read it. Static
    char description[32];        // the format in the driver's words
    unsigned fourcc;             // ... and in V4L2's code
    int width, height;           // 0: the driver does not say
    int max_width, max_height;   // 0: one size; else width, height are the least
    int width_step, height_step; // of a range, from the least on
    struct sluice_rate rate[32];
    int rates;     // of rate[], as the driver orders them; 0: it does not say
    bool any_rate; // from rate[0], the slowest, to rate[1], the fastest
};

// A device as it is now.
struct sluice_device {
    const char *input;   // what sluice_config.input takes
    const char *name;    // what it is called, for people
    const char *trouble; // why it cannot be used, a sentence; NULL: it can
    const struct sluice_mode *modes;
    int mode_count; // 0 of what is not a camera
};

// Call device() with each capture device that this machine has: cameras, and the X11 screen that
// the environment's DISPLAY names. What it is given is gone when it returns. Blocks while drivers
// answer, and for two seconds at most for the screen.
enum sluice_status sluice_devices(void (*device)(void *opaque, const struct sluice_device *device),
                                  void *opaque);

// A mode's sizes and rates for people: "640x480", "16x16 to 1920x1080 in steps of 2x2"; "30, 15",
// "1 to 60"; "" where the driver does not say.
void sluice_mode_size(const struct sluice_mode *mode, char *to, size_t size);
void sluice_mode_rates(const struct sluice_mode *mode, char *to, size_t size);

// A kind of device that the installed libavdevice knows, and an input of that kind. Strings are
// static.
struct sluice_device_kind {
    const char *name, *description, *example;
};

// Kind number `index` from 0. SLUICE_STATUS_END past the last, and always if there is no
// libavdevice.
enum sluice_status sluice_device_kind(int index, struct sluice_device_kind *kind);

// ---- reports ----

// What a chain comes to, as text: passes, halos, bytes, conversions. With config->input the plan is
// for that file, and refused as a job would refuse it: a template larger than its pictures, more
// memory than there is. Without it the plan is for 8-bit 4:2:0 of 1920x1080. On success the caller
// frees *text with free().
enum sluice_status sluice_plan(const struct sluice_config *config, char **text);

// What this machine has and what a job would use, with the reason for each choice; with
// config->input for that file. On success the caller frees *text with free().
enum sluice_status sluice_doctor(const struct sluice_config *config, char **text);

// ---- numbers as FFmpeg's tools take them ----

// Sizes "1920x1080" and "hd720"; rates "25", "30000/1001" and "ntsc"; bits a second "2M" and
// "500k". SLUICE_STATUS_USAGE for anything else, and nothing is set then. Nothing is logged.
enum sluice_status sluice_parse_size(const char *text, int *width, int *height);
enum sluice_status sluice_parse_rate(const char *text, struct sluice_rate *rate);
enum sluice_status sluice_parse_bitrate(const char *text, int64_t *bitrate);

// ---- small ----

// "sluice 0.1.0 (libavformat 59.27.100, ..., CUDA 13.0)". Static.
const char *sluice_version(void);

// A name as it may be shown: without passwords and other secrets of an address.
void sluice_public_name(const char *name, char *to, size_t size);

// Put asterisks in place of the secrets of an argument of a command line: of an address or a chain
// with addresses, or of KEY=VALUE with a key that is called like a secret.
void sluice_blank_secrets(char *argument);

// A chain as it may be shown, alike; the caller frees it with free(). NULL without memory.
char *sluice_public_chain(const char *chain);

// What a status is called in a sentence.
const char *sluice_status_name(enum sluice_status status);

// Let FFmpeg write its own messages to standard error, without the secrets of addresses, from this
// level on (AV_LOG_QUIET -8 .. AV_LOG_DEBUG 48). This is the one setting that holds for the whole
// process; jobs do not touch it.
void sluice_ffmpeg_log(int level);

#ifdef __cplusplus
}
#endif
