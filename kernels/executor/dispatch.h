// From passes to kernels: the operands of each pass as views, and the launcher of its operation.
#pragma once

#include "kernels/executor/executor.h"

// Enqueue all passes of the frames, or of both their fields, on the lead's stream, and what direct.h
// has to do before and behind them: one launch a pass for all frames where they lie in memory alike.
// All launches are made as one, by the lead's graph, if there is a recording. `dependent`: a single
// kernel that can be launched dependently (kernels/recording.h) is, which no graph is. The submitting
// thread calls.
enum status dispatch_frames(struct cuda_executor *self, struct cuda_slot *lead,
                            const struct device_frames *frames, bool fields, bool dependent);

// True if passes are nothing but launches that can be recorded: there is no transform, nor an
// operation whose row does not say `launches`, as a search, which clears memory.
bool dispatch_launches_only(const struct cuda_executor *self);
