// The launches of a submission as a graph, which the slot that leads it keeps: to launch that, with
// new arguments, costs the host half of what one kernel's launch does, and each kernel more a tenth.
//
// A graph has the kernels of one sequence of launches, one after the other. The next launches of the
// same kernels set what has changed in its nodes; runs that are under way keep theirs. A graph runs
// behind its own last run, so each slot has its own. Where kernels change, as frames lie differently,
// the slot has another, up to GRAPH_FORMS; further sequences are launched kernel by kernel. So is a
// sequence that comes for the first time, for a graph costs more to make than it saves one frame, and
// all where the driver makes no graph.
//
// The submitting thread calls, with the device current.
#pragma once

#include "kernels/executor/cuda.h"
#include "kernels/recording.h"

enum { GRAPH_FORMS = 3 };

struct graph_form {
    struct recording *made; // what its nodes have, or what was launched once; NULL: nothing
    cudaGraph_t graph;
    cudaGraphExec_t runs; // NULL: made on the second sight, or `refused`
    bool refused;
    cudaGraphNode_t node[RECORDED_LAUNCHES];
};

// All zeros: no form yet.
struct graph {
    struct graph_form form[GRAPH_FORMS];
};

// Launch what is recorded, on its stream. STATUS_OK, or the failure of the GPU, which was logged. The
// recording may be begun again at once: its arguments have been copied.
enum status graph_launch(struct graph *graph, struct cuda_backend *backend,
                         const struct recording *recording);

// Free it. The runtime keeps what is still running until that has ended.
void graph_finish(struct graph *graph);
