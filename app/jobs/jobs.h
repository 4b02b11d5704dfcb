// Jobs: an output made in parts, several at once, in threads of this process.
//
// Each part is an ordinary job (sluice_config.part), made from beginning to end by one seat: a
// thread that takes the next part as long as there is one. Parts are more than seats where that
// pays, so that a seat that is early finds another; see division.h.
//
//   what                 who
//   a part               the seat that took it, until it is made, found, or has failed
//   number of seats      as asked for, or climb.h: a seat beyond it finishes its part and waits
//   GPU, NUMA node       a seat keeps its own (seat k has GPU k mod their number), so that each GPU
//                        always has its share of the seats
//   the output           the joiner, a thread of its own on no node, which takes part 1 when it is
//                        whole, then part 2, ... so that behind the last part little is left
//   cores                shared out: each job's CPU backend, decoder and encoder have the threads
//                        that fall to it when it begins (place_threads())
//
// A part that is there already, made of the same, is used. A part of damaged input is made a second
// time, repeatably. A part that fails stops the others and the joiner, and so does the joiner when it
// fails; parts that are finished stay for the next run in any case.
//
// This is the program's, not the library's: all that it needs is in the interface, so that others
// can do as much with threads of their own, and how many parts and jobs there should be is what
// will change as we measure. A library's call would stay for good.
#pragma once

#include <stdbool.h>

#include "app/jobs/figures.h"
#include "app/jobs/place.h"
#include "sluice/sluice.h"

enum { JOBS_MAX = 256, JOBS_AUTO = -1 };

struct jobs_request {
    const struct sluice_config *config; // of the whole output; outlives the jobs
    int parts;
    int jobs; // at once; JOBS_AUTO: as many as pay, `most` at most
    int most;
    const struct place_machine *machine; // copied
    const int *gpu;                      // (optional) copied: seats have these in turn
    int gpus;
    double media_seconds; // of the whole, about; 0: unknown
    int64_t frames;       // likewise
    bool use_found;       // a part that is there is used; else it is replaced
    bool joins;           // the parts are joined; else they go nowhere
};

struct jobs;

// On success the caller owns *jobs. SLUICE_STATUS_MEMORY is the only failure.
enum sluice_status jobs_create(const struct jobs_request *request, struct jobs **jobs);

// Make the parts and join them, once; blocks. The first failure is returned, after a sentence that
// names the part;
// SLUICE_STATUS_STOPPED after a stop: two seconds after it at the latest, even where a decoder or
// an encoder is deep in a frame. Then the process has to end without jobs_destroy().
enum sluice_status jobs_run(struct jobs *jobs);

// Stop all jobs; any thread, not from a signal handler.
void jobs_stop(struct jobs *jobs);

// True if a seat or the joiner was left alone at its work after a stop.
bool jobs_left_alone(const struct jobs *jobs);

// How many parts are whole now; any thread.
int jobs_parts_done(struct jobs *jobs);

// What the jobs tell, after jobs_run(). All of it is the jobs'; figures->parts, too. The caller may
// set what only the whole has: its bytes, seconds, output's name.
struct figures *jobs_figures(struct jobs *jobs);

// A snapshot: a figures_read; any thread.
figures_read jobs_read;

void jobs_destroy(struct jobs **jobs);
