// Reports: the analysis that operations make of each frame beside pictures, on its way into files
// and figures.
//
// A recording belongs to one stage of the chain that records, with a file or without. It lives as
// long as the job, whatever changes meanwhile: stages with a file are in every chain, those without
// one come and go, and what comes again goes on. Each file has a thread and a bounded queue
// of its own (async_file.h). Live: a file that is slow leaves out records of some frames and holds
// up nothing; else all are waited for. The figures are of every frame in either case.
//
//   kind         what is written                              file
//   statistics   a line of JSON; means of mean and deviation   report_statistics.c
//   wavelet      planes of float32, beside them JSON; means of  report_wavelet.c
//                the energies
//   match        a line of JSON a match; the mean number       report_match.c
#pragma once

#include <libavutil/rational.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/stop.h"
#include "pipeline/report/async_file.h"
#include "stages/chain.h"

struct report_writer;

struct report_writer_request {
    const struct chain *chain; // must outlive report_writer_create() only
    bool overwrite;
    bool unchecked; // the folder of the files is yet to be made
    const struct log *log;
    const struct stop *stop; // (optional) as of file_create()
};

// Refuse files that cannot be written, unless that is `unchecked`; nothing is created yet.
enum status report_writer_create(const struct report_writer_request *request,
                                 struct report_writer **report_writer);

// Free it: what was not finished leaves no trace. Accepts NULL behind the pointer, leaves NULL.
void report_writer_destroy(struct report_writer **report_writer);

// Open the files, when the first frame is being filtered. Those of a `live` source grow in place.
enum status report_writer_open(struct report_writer *report_writer, AVRational time_base,
                               bool live);

// Records are from now on of this chain, which writes the files of the first (chain_writes_alike()),
// when none of another is under way. Any thread.
enum status report_writer_bind(struct report_writer *report_writer, const struct chain *chain);

struct report_writer_frame {
    int64_t index, pts;
    int width, height;
    const struct program *program;
    void *const *analysis; // of the program
};

// Record a frame's analysis. One thread. A file that cannot be written is given up, the others and
// the job go on; report_writer_finish() reports it. After that nothing happens.
enum status report_writer_write(struct report_writer *report_writer,
                                const struct report_writer_frame *frame);

// There are no more: make the files whole, waiting for readers of pipes until `until_ns` of
// CLOCK_MONOTONIC. Any thread.
enum status report_writer_finish(struct report_writer *report_writer, int64_t until_ns);

// No output came of the job: leave nothing behind. Any thread.
void report_writer_cancel(struct report_writer *report_writer);

// How much memory it may take, at most, when a frame has so many bytes of analysis. After
// report_writer_open().
int64_t report_writer_memory(const struct report_writer *report_writer, int64_t analysis_bytes);

// ---- figures, after report_writer_finish() or without any other thread ----

enum { MAX_FIGURES = 16 };

// A figure that every frame's record has, as the mean over all of them.
struct figure {
    char name[32];
    double *sum;
    int values;
    int64_t frames;
};

struct recording {
    const struct stage *stage;
    char *name;               // of the file; NULL: none
    char *beside_name;        // NULL: no second one
    struct async_file *async; // NULL: no file, or not open
    bool bound;               // to a stage of the present chain
    int64_t frames;           // recorded
    int64_t next;             // index behind that of the last of them
    int64_t bytes;            // of the file, at the end
    int64_t dropped;          // frames without a record in the file, at the end
    struct figure figure[MAX_FIGURES];
    int figures;
    // ---- of its kind ----
    const char *tail; // (optional) what comes last, in the last of its files
    void *state;      // (optional) freed by free()
};

// Recording number `index` from 0; NULL past the last.
const struct recording *report_writer_recording(const struct report_writer *report_writer,
                                                int index);

// ---- for kinds ----

// The analysis of one operation and frame. Sizes are of the operation's source plane.
struct record {
    const struct op *op;
    const void *analysis;
    int width, height;
    int64_t frame, pts;
    double seconds;
    int64_t bytes; // of the analysis
};

// Where the frame's record goes in the file, or in the one beside it; NULL: nowhere. Asked only for
// what is written then.
enum recording_file { RECORDING_FILE, RECORDING_BESIDE };
AVIOContext *recording_io(const struct recording *recording, enum recording_file file,
                          const struct record *record);

// Note something of a frame; figures whose number of values changes begin anew.
enum status recording_note(struct recording *recording, const char *name, const double *value,
                           int values);

enum status report_statistics(struct recording *recording, const struct record *record);
enum status report_wavelet(struct recording *recording, const struct record *record);
enum status report_match(struct recording *recording, const struct record *record);
