#include "kernels/executor/dispatch.h"

#include <assert.h>

#include "kernels/executor/direct.h"

// ---- views of a pass's operands ----

// Every member is set by itself, here and below: a whole struct of zeros, and copies of what was just
// written, are a third of what a call of one small kernel takes of the host beside its launch.

void component_view(const struct image *images, int count, const struct component *at,
                    struct view *view)
{
    for (int k = 0; k < FRAMES; k++)
        view->data[k] = NULL;
    for (int k = 0; k < count; k++)
        view->data[k] = images[k].data[at->plane] + at->offset;
    view->stride = (int)images->stride[at->plane];
    view->step = at->step;
    view->bytes = at->bytes;
    view->shift = at->shift;
    view->max = max_sample(images->format->depth);
    view->swapped = at->bytes == 2 && at->big_endian; // the GPU is little-endian
    view->adjacent = view_is_adjacent(view);
    view->plain = view->adjacent && !view->swapped && view->shift == 0;
}

static void view_operand(const struct cuda_executor *self, const struct device_frames *frames,
                         struct operand operand, struct view *view)
{
    if (operand.place == PLACE_INPUT) {
        component_view(frames->source, frames->count, plan_component(self->plan, operand), view);
    } else if (operand.place == PLACE_OUTPUT) {
        component_view(frames->target[operand.index / FORMAT_COMPONENTS], frames->count,
                       plan_component(self->plan, operand), view);
    } else {
        struct region region = self->layout.buffer[operand.index];
        int depth = self->plan->buffer[operand.index].grid.depth;
        *view = view_plain(frames->memory + region.offset, (ptrdiff_t)self->layout.bytes,
                           region.pitch, sample_bytes(depth));
    }
}

// Source `s` of a pass, without a border, and without a lookup.
static void view_source(const struct cuda_executor *self, const struct plan_pass *pass,
                        const struct device_frames *frames, int s, struct source *source)
{
    const struct image *picture = &frames->source[0];
    view_operand(self, frames, pass->source[s], &source->view);
    source->lookup = {};
    source->width = subsampled(picture->width, pass->source_grid[s].shift_x) * pass->together;
    source->height = subsampled(picture->height, pass->source_grid[s].shift_y);
    source->border = BORDER_REPLICATE;
    source->border_value = 0;
}

static void view_sink(const struct cuda_executor *self, const struct plan_pass *pass,
                      const struct device_frames *frames, const struct lookup *lookup,
                      struct sink *sink)
{
    for (int t = 0; t < pass->targets; t++)
        view_operand(self, frames, pass->target[t], &sink->view[t]);
    for (int t = pass->targets; t < FORMAT_COMPONENTS; t++)
        sink->view[t] = {};
    sink->views = pass->targets;
    sink->lookup = *lookup;
    sink->width = plan_pass_columns(pass, frames->source[0].width);
    sink->height = subsampled(frames->source[0].height, pass->grid.shift_y);
    sink->frames = frames->count;
}

// A plane in scratch memory for samples that a pass keeps between its parts.
static struct sink scratch_plane(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct device_frames *frames, size_t at, int depth,
                                 const struct lookup *lookup)
{
    struct sink sink;
    int bytes = sample_bytes(depth);
    view_sink(self, pass, frames, lookup, &sink);
    sink.views = 1;
    sink.view[0] = view_plain(frames->memory + at, (ptrdiff_t)self->layout.bytes,
                              scratch_stride(sink.width, bytes), bytes);
    return sink;
}

static struct source plane_source(const struct sink *plane)
{
    return {.view = plane->view[0], .width = plane->width, .height = plane->height};
}

// ---- passes ----

static cudaError_t mix_async(const struct cuda_executor *self, const struct plan_pass *pass,
                             const struct pass_constants *constants,
                             const struct device_frames *frames, const struct sink *sink,
                             cudaStream_t stream)
{
    struct mix mix = {.sources = pass->sources, .op = pass->mix->mix};
    for (int k = 0; k < pass->sources; k++) {
        struct source source;
        view_source(self, pass, frames, k, &source);
        mix.view[k] = source.view;
        mix.lookup[k] = constants->before[k];
        mix.width[k] = source.width;
        mix.height[k] = source.height;
        mix.up_x[k] = pass->source_grid[k].shift_x - pass->grid.shift_x;
        mix.up_y[k] = pass->source_grid[k].shift_y - pass->grid.shift_y;
    }
    return pointwise_mix_async(&mix, sink, stream);
}

static cudaError_t pointwise_async(const struct cuda_executor *self, const struct plan_pass *pass,
                                   const struct pass_constants *constants,
                                   const struct device_frames *frames, cudaStream_t stream)
{
    struct sink sink;
    view_sink(self, pass, frames, &constants->lookup[0], &sink);
    if (pass->mix)
        return mix_async(self, pass, constants, frames, &sink, stream);
    if (pass->source[0].place == PLACE_CONSTANT)
        return pointwise_fill_async(pass->source[0].index, &sink, stream);
    struct source source;
    view_source(self, pass, frames, 0, &source);
    unsigned again = pass->together == 2 ? 5 : 1; // pixels of two, twice
    return pointwise_copy_async(&source, &sink, {pass->kept * again, pass->filled * again}, stream);
}

// The source of the first stencil. Neighbourhoods would make a mix many times over: it goes to
// scratch first.
static cudaError_t first_source_async(const struct cuda_executor *self,
                                      const struct plan_pass *pass,
                                      const struct pass_constants *constants,
                                      const struct device_frames *frames, struct source *source,
                                      cudaStream_t stream)
{
    if (!pass->mix) {
        view_source(self, pass, frames, 0, source);
        source->lookup = constants->lookup[0];
        return cudaSuccess;
    }
    struct sink mixed = scratch_plane(self, pass, frames, self->layout.mixed,
                                      stencil_depth(pass, 0), &constants->lookup[0]);
    *source = plane_source(&mixed);
    return mix_async(self, pass, constants, frames, &mixed, stream);
}

// Both stencils of a pass in one go, if there is a kernel for that; else they follow each other
// through scratch memory.
static cudaError_t stencils_async(const struct cuda_executor *self, const struct plan_pass *pass,
                                  const struct pass_constants *constants,
                                  const struct device_frames *frames, cudaStream_t stream)
{
    int stencils = pass_stencils(pass);
    struct source source;
    cudaError_t error = first_source_async(self, pass, constants, frames, &source, stream);
    for (int n = 0; n < stencils && !error; n++) {
        struct stencil stencil = {
            .op = pass_stencil(pass, n),
            .next = constants->lookup[n + 1].table ? NULL : pass_stencil(pass, n + 1),
            .depth = stencil_depth(pass, n),
            .source = source,
            .constants = {constants->op[n].weight[0], constants->op[n].weight[1]},
            .fragments = {constants->op[n].fragments[0], constants->op[n].fragments[1]},
            .scratch = frames->memory + self->layout.scratch,
            .scratch_step = (ptrdiff_t)self->layout.bytes,
            .transform = constants->transform[n],
        };
        view_sink(self, pass, frames, &constants->lookup[stencils], &stencil.sink);
        stencil.source.border = stencil.op->border;
        stencil.source.border_value = stencil.op->border_value;
        const struct op_kernels *row = op_kernels(stencil.op);
        assert(source.width == stencil.sink.width && source.height == stencil.sink.height);
        if (stencil.next && row->fits && row->fits(&stencil))
            return row->stencil_async(&stencil, stream);
        stencil.next = NULL;
        if (n + 1 < stencils) {
            struct lookup none = {};
            stencil.sink =
                scratch_plane(self, pass, frames, self->layout.between, stencil.depth, &none);
            source = plane_source(&stencil.sink);
            source.lookup = constants->lookup[n + 1];
        }
        error = row->stencil_async(&stencil, stream);
    }
    return error;
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
    view_source(self, pass, frames, 0, &source);
    if (pass->targets)
        view_operand(self, frames, pass->target[0], &to);
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

// True if frame `k` lies like the first, where passes find it and where the caller has it.
static bool lies_like_first(const struct cuda_executor *self, const struct device_frames *frames,
                            int k)
{
    const struct work *first = &frames->work[0], *other = &frames->work[k];
    bool alike = lies_alike(&frames->source[0], &frames->source[k]) &&
                 (!first->source_on_device || lies_alike(&first->source, &other->source));
    for (int n = 0; n < program_pictures(self->plan->program); n++)
        alike =
            alike && lies_alike(&frames->target[n][0], &frames->target[n][k]) &&
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
