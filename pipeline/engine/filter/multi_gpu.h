// Several GPUs of one machine as one backend: they take frames in turn.
//
// Slot k of an executor is slot k / n of the executor of part k % n, each of which has the plan,
// the streams and the memory of a whole one. A ring uses its slots in turn, and so the parts; it
// takes results in the order of the slots, whichever part was done first, so frames stay in order
// and are the same as one part alone makes.
//
// Host memory is pinned for every GPU. Decoders are on the first: the others copy its frames, from
// device to device.
#pragma once

#include "plan/backend.h"

enum { MAX_GPUS = 16 };

// Make one backend of `count` (2 to MAX_GPUS) of one kind, which it owns on success: *parts are
// NULL then. A plan holds for all of them, its limits being those that suit each. STATUS_MEMORY is
// the only failure; the parts stay the caller's.
enum status multi_gpu_create(struct backend **parts, int count, struct backend **backend);
