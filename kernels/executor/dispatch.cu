#include "kernels/executor/dispatch.h"

#include <assert.h>

#include "kernels/executor/direct.h"
#include "kernels/executor/stencils.h"
#include "kernels/executor/views.h"

// ---- passes ----

static cudaError_t pointwise_async(const struct cuda_executor *self, const struct plan_pass *pass,
                                   const struct pass_constants *constants,
                                   const struct device_frames *frames, cudaStream_t stream)
{
    struct sink sink;
    sink_view(self, pass, frames, &constants->lookup[0], &sink);
    if (pass->mix)
        return mix_async(self, pass, constants, frames, &sink, stream);
    if (pass->source[0].place == PLACE_CONSTANT)
        return pointwise_fill_async(pass->source[0].index, &sink, stream);
    struct source source;
    source_view(self, pass, frames, 0, &source);
    unsigned again = pass->together == 2 ? 5 : 1; // pixels of two, twice
    return pointwise_copy_async(&source, &sink, {pass->kept * again, pass->filled * again}, stream);
}

static void *analysis_memory(const struct cuda_executor *self, uint8_t *memory, int analysis)
{
    return analysis < 0 ? NULL : memory + self->layout.analysis[analysis].offset;
}

// True if analysis goes to the host, or to another operation.
static bool analysis_is_wanted(const struct cuda_executor *self, const struct work *work,
                               int analysis)
{
    if (analysis >= 0 && work->analysis && work->analysis[analysis])
        return true;
    for (int p = 0; p < self->plan->passes; p++)
        if (self->plan->pass[p].full_frame && self->plan->pass[p].reads == analysis)
            return true;
    return false;
}

// Frame after frame: scratch memory is each frame's own.
static cudaError_t full_frame_pass_async(const struct cuda_executor *self,
                                         const struct plan_pass *pass,
                                         const struct pass_constants *constants,
                                         const struct device_frames *frames, cudaStream_t stream)
{
    struct source source;
    struct view to = {};
    source_view(self, pass, frames, 0, &source);
    if (pass->targets)
        operand_view(self, frames, pass->target[0], &to);
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < frames->count && !error; k++) {
        uint8_t *memory = frames->memory + (size_t)k * self->layout.bytes;
        struct full_frame frame = {
            .op = pass->full_frame,
            .width = source.width,
            .height = source.height,
            .depth = pass->load_depth,
            .from = source.view.data[k],
            .from_stride = source.view.stride,
            .to = to.data[k],
            .to_stride = to.stride,
            .analysis = analysis_memory(self, memory, pass->analysis),
            .analysis_is_wanted = analysis_is_wanted(self, &frames->work[k], pass->analysis),
            .reads = analysis_memory(self, memory, pass->reads),
            .constants = constants->op[0].full_frame,
            .scratch = memory + self->layout.scratch,
        };
        assert(frame.to || frame.analysis);
        error = op_kernels(frame.op)->full_frame_async(&frame, stream);
    }
    return error;
}

static enum status run_passes(struct cuda_executor *self, const struct device_frames *frames,
                              cudaStream_t stream)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->plan->passes && !status; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        const struct pass_constants *constants = &self->constants[k];
        if (pass->full_frame)
            status = CUDA_CHECK(self->backend,
                                full_frame_pass_async(self, pass, constants, frames, stream));
        else if (pass_stencils(pass))
            status =
                CUDA_CHECK(self->backend, stencils_async(self, pass, constants, frames, stream));
        else
            status =
                CUDA_CHECK(self->backend, pointwise_async(self, pass, constants, frames, stream));
    }
    return status;
}

// ---- frames ----

static enum status run_fields(struct cuda_executor *self, const struct device_frames *frames,
                              bool fields, cudaStream_t stream)
{
    if (!fields)
        return run_passes(self, frames, stream);
    enum status status = STATUS_OK;
    for (int parity = 0; parity < 2 && !status; parity++) {
        struct device_frames field = *frames;
        for (int k = 0; k < frames->count; k++) {
            field.source[k] = image_field(&frames->source[k], parity);
            for (int n = 0; n < program_pictures(self->plan->program); n++)
                field.target[n][k] = image_field(&frames->target[n][k], parity);
        }
        status = run_passes(self, &field, stream);
    }
    return status;
}

static bool lies_alike(const struct image *a, const struct image *b)
{
    for (int p = 0; p < FORMAT_PLANES; p++)
        if (a->data[p] && b->data[p] && a->stride[p] != b->stride[p])
            return false;
    return true;
}

// True if planes of both are where the caller has them, or of both in the slots' memory.
static bool is_placed_alike(const struct image *a, const struct image *callers_a,
                            const struct image *b, const struct image *callers_b)
{
    for (int p = 0; p < FORMAT_PLANES; p++)
        if ((a->data[p] == callers_a->data[p]) != (b->data[p] == callers_b->data[p]))
            return false;
    return lies_alike(a, b);
}

// True if frame `k` lies like the first, where passes find it and where the caller has it.
static bool lies_like_first(const struct cuda_executor *self, const struct device_frames *frames,
                            int k)
{
    const struct work *first = &frames->work[0], *other = &frames->work[k];
    bool alike =
        is_placed_alike(&frames->source[0], &first->source, &frames->source[k], &other->source) &&
        (!first->source_on_device || lies_alike(&first->source, &other->source));
    for (int n = 0; n < program_pictures(self->plan->program); n++)
        alike =
            alike &&
            is_placed_alike(&frames->target[n][0], work_target(first, n), &frames->target[n][k],
                            work_target(other, n)) &&
            (!first->target_on_device || lies_alike(work_target(first, n), work_target(other, n)));
    return alike;
}

// Frames that lie alike.
static enum status run_alike(struct cuda_executor *self, const struct device_frames *frames,
                             bool fields, cudaStream_t stream)
{
    enum status status = CUDA_CHECK(self->backend, direct_begin_async(self, frames, stream));
    if (!status)
        status = run_fields(self, frames, fields, stream);
    if (!status)
        status = CUDA_CHECK(self->backend, direct_finish_async(self, frames, stream));
    return status;
}

// One launch a pass for all frames, unless they lie in memory differently.
static enum status run_frames(struct cuda_executor *self, const struct device_frames *frames,
                              bool fields, cudaStream_t stream)
{
    assert(frames->count >= 1 && frames->count <= FRAMES);
    bool alike = true;
    for (int k = 1; k < frames->count; k++)
        alike = alike && lies_like_first(self, frames, k);
    if (alike)
        return run_alike(self, frames, fields, stream);
    enum status status = STATUS_OK;
    for (int k = 0; k < frames->count && !status; k++) {
        struct device_frames one;
        one.count = 1;
        one.work = &frames->work[k];
        one.memory = frames->memory + (size_t)k * self->layout.bytes;
        one.source[0] = frames->source[k];
        for (int n = 0; n < program_pictures(self->plan->program); n++)
            one.target[n][0] = frames->target[n][k];
        status = run_alike(self, &one, fields, stream);
    }
    return status;
}

enum status dispatch_frames(struct cuda_executor *self, struct cuda_slot *lead,
                            const struct device_frames *frames, bool fields, bool dependent)
{
    lead->by_graph = true;
    if (!self->recording)
        return run_frames(self, frames, fields, lead->work_stream);
    recording_begin(self->recording, lead->work_stream);
    enum status status = run_frames(self, frames, fields, lead->work_stream);
    recording_end();
    if (!status && dependent && recording_is_dependent(self->recording)) {
        lead->by_graph = false;
        return CUDA_CHECK(self->backend,
                          recording_launch_dependent(self->recording, &self->driver));
    }
    return status ? status : graph_launch(&lead->graph, self->backend, self->recording);
}

bool dispatch_launches_only(const struct cuda_executor *self)
{
    for (int k = 0; k < self->plan->passes; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        if (pass->full_frame && !op_kernels(pass->full_frame)->launches)
            return false;
        for (int n = 0; n < pass_stencils(pass); n++)
            if (!op_kernels(pass_stencil(pass, n))->launches || self->constants[k].transform[n])
                return false;
    }
    return true;
}
