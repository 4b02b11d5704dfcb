// The edge filter of the tutorial in plain C: a stage after another, rows of each by itself.
#pragma once

#include "plan/tutorial.h"

enum { EDGE_PASSES = 4 };

// Planes that passes leave for the next: rows without gaps, of three samples a pixel and of one. They own
// their memory.
struct edge_planes {
    uint8_t *bright, *gray, *edge;
};

// STATUS_MEMORY leaves planes for edge_planes_finish() all the same, as zeros are.
enum status edge_planes_init(struct edge_planes *planes, const struct tutorial_task *task);
void edge_planes_finish(struct edge_planes *planes);

// Make row `y` of a pass, which counts from 0: all rows of the pass before are there.
void edge_row(const struct tutorial_task *task, const struct edge_planes *planes, int pass, int y);
