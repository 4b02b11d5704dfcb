// The ring: as many frames in flight as it has slots, in order.
//
// A slot is one frame's seat. Exactly one party owns it at any moment:
//
//   state     owner           leaves this state when
//   FREE      ring            the submit thread claims it
//   FILLING   submit thread   the frame's work is enqueued, and it is published
//   RUNNING   backend         the encode thread has taken it and waited for the work
//   DRAINING  encode thread   the sink needs the output no more, and it is released
//
// Slots are claimed, published, taken and released in order, so frames never reorder.
#pragma once

#include <libavutil/frame.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/program.h"

struct filter;

struct slot {
    int number;
    struct filter *filter; // whose work it is
    // The ring's; empty while FREE. `out` is one for each picture: the chain's result, and its
    // tees.
    AVFrame *in, *out[MAX_PICTURES];
};

struct ring;

// For frames that become so many pictures.
enum status ring_create(int slots, int pictures, struct ring **ring);

// Free it. No thread may be using it. Leaves NULL.
void ring_destroy(struct ring **ring);

// ---- the submit thread ----

// Wait for a free slot. STATUS_EOF: the encode thread has gone.
enum status ring_claim(struct ring *ring, struct slot **slot);

// The claimed slot's work is enqueued.
void ring_publish(struct ring *ring, struct slot *slot);

// Wait until all slots are free. STATUS_EOF: the encode thread has gone.
enum status ring_drain(struct ring *ring);

// There will be no more. Must be called once, whatever happened.
void ring_finish(struct ring *ring);

// ---- the encode thread ----

// Wait for the oldest published slot. STATUS_EOF after the last.
enum status ring_take(struct ring *ring, struct slot **slot);

// The same, but wait until `until_ns` of CLOCK_MONOTONIC only: *slot is NULL if none came by then.
enum status ring_take_until(struct ring *ring, struct slot **slot, int64_t until_ns);

// The slot's frames are unreferenced here.
void ring_release(struct ring *ring, struct slot *slot);

// Take no more: the submit thread gets STATUS_EOF from now on. Slots that are published still have
// to be taken, waited for and released.
void ring_cancel(struct ring *ring);

// ---- any thread ----

// The mean share of the slots in use when one was claimed, and how many are now.
double ring_occupancy(struct ring *ring);
int ring_used(struct ring *ring);
