// Jobs from the inside: jobs.c has all of them, seat.c is one of those at work.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "app/jobs/climb.h"
#include "app/jobs/jobs.h"

// Sentences that every part says are passed on once.
enum { MAX_SAID = 64 };

struct seat {
    struct jobs *jobs;
    int number;
    pthread_t thread;
    char device[16];
    int part;   // from 1; the seat's
    bool quiet; // what is said now is of interest to nobody; the seat's
    // ---- guarded by jobs->lock ----
    bool started, ended;
    bool writes;            // a job of its has written a frame
    struct sluice_job *job; // NULL: none runs
};

struct jobs {
    struct jobs_request request;
    struct place_machine machine;
    int gpu[PLACE_MAX_GPUS];
    int seats;          // at most
    double base_memory; // the process had before, bytes
    double begun, begun_cpu;
    struct figures_parts parts;
    char choice[512], verdict[512];
    bool left_alone;
    pthread_t joiner;
    bool joiner_started;
    atomic_bool stop;

    pthread_mutex_t said_lock;
    // ---- guarded by said_lock ----
    char *said[MAX_SAID];
    int said_count;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- guarded by lock ----
    struct seat seat[JOBS_MAX];
    int wanted;       // seats at work
    int started;      // seats
    int next;         // part, from 1
    int done;         // parts
    bool *whole;      // each of them
    double all_whole; // since when all are, by jobs_now(); 0: they are not
    double stopped;   // when a stop was seen, likewise
    bool joined, joiner_ended;
    bool truncated;            // the source breaks off, as the joiner found
    enum sluice_status status; // the first failure
    struct figures figures;
    struct sluice_progress made; // of parts that are whole
    double work_seconds;         // of all seats, at parts
    struct climb climb;
    double window_begun; // 0: not all jobs of the window write yet
    int64_t window_frames;
};

// CLOCK_MONOTONIC in seconds.
double jobs_now(void);

// The thread of a seat.
void *jobs_seat_run(void *seat);

// The thread that joins.
void *jobs_joiner_run(void *jobs);

// Let all seats and the joiner stop. The caller holds the lock.
void jobs_stop_locked(struct jobs *jobs);

// One of them has ended so: the first failure stops the others. The caller holds the lock.
void jobs_end_locked(struct jobs *jobs, enum sluice_status status);

// A part is whole. The caller holds the lock.
void jobs_note_whole_locked(struct jobs *jobs, int part);

// Add what a job has made to a sum.
void jobs_add_made(struct sluice_progress *to, const struct sluice_progress *more);

void jobs_say(struct jobs *jobs, enum sluice_log_level level, const char *sentence);
