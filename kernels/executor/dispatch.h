// From passes to kernels: the operands of each pass as views, and the launcher of its operation.
#pragma once

#include "kernels/executor/executor.h"

// Component `c` of pictures that lie alike.
struct view component_view(const struct image *images, int count, int c);

// Enqueue all passes of the frames, or of both their fields, on `stream`, and what direct.h has to
// do before and behind them: one launch a pass for all frames where they lie in memory alike. The
// submitting thread calls.
enum status dispatch_frames(struct cuda_executor *self, const struct device_frames *frames,
                            bool fields, cudaStream_t stream);
