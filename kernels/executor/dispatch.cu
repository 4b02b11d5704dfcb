#include "kernels/executor/dispatch.h"

#include <assert.h>

#include "kernels/executor/direct.h"

// ---- views of a pass's operands ----

struct view component_view(const struct image *images, int count, int c)
{
    const struct component *at = &images->format->component[c];
    struct view view = {
        .stride = (int)images->stride[at->plane],
        .step = at->step,
        .bytes = at->bytes,
        .shift = at->shift,
        .max = max_sample(images->format->depth),
        .swapped = at->bytes == 2 && at->big_endian, // the GPU is little-endian
    };
    for (int k = 0; k < count; k++)
        view.data[k] = images[k].data[at->plane] + at->offset;
    view.adjacent = view_is_adjacent(&view);
    view.plain = view.adjacent && !view.swapped && view.shift == 0;
    return view;
}

static struct view operand_view(const struct cuda_executor *self,
                                const struct device_frames *frames, struct operand operand)
{
    if (operand.place == PLACE_INPUT)
        return component_view(frames->source, frames->count, operand.index);
    if (operand.place == PLACE_OUTPUT)
        return component_view(frames->target[operand.index / FORMAT_COMPONENTS], frames->count,
                              operand.index % FORMAT_COMPONENTS);
    struct region region = self->layout.buffer[operand.index];
    int depth = self->plan->buffer[operand.index].grid.depth;
    return view_plain(frames->memory + region.offset, (ptrdiff_t)self->layout.bytes, region.pitch,
                      sample_bytes(depth));
}

// Source `s` of a pass, without a border.
static struct source pass_source(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct device_frames *frames, int s)
{
    const struct image *picture = &frames->source[0];
    return {
        .view = operand_view(self, frames, pass->source[s]),
        .width = subsampled(picture->width, pass->source_grid[s].shift_x),
        .height = subsampled(picture->height, pass->source_grid[s].shift_y),
    };
}

static struct sink pass_sink(const struct cuda_executor *self, const struct plan_pass *pass,
                             const struct device_frames *frames, const struct lookup *lookup)
{
    struct sink sink = {
        .views = pass->targets,
        .lookup = *lookup,
        .width = subsampled(frames->source[0].width, pass->grid.shift_x),
        .height = subsampled(frames->source[0].height, pass->grid.shift_y),
        .frames = frames->count,
    };
    for (int t = 0; t < pass->targets; t++)
        sink.view[t] = operand_view(self, frames, pass->target[t]);
    return sink;
}

// A plane in scratch memory for samples that a pass keeps between its parts.
static struct sink scratch_plane(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct device_frames *frames, size_t at, int depth,
                                 const struct lookup *lookup)
{
    struct sink sink = pass_sink(self, pass, frames, lookup);
    int bytes = sample_bytes(depth);
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
        struct source source = pass_source(self, pass, frames, k);
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
    struct sink sink = pass_sink(self, pass, frames, &constants->lookup[0]);
    if (pass->mix)
        return mix_async(self, pass, constants, frames, &sink, stream);
    if (pass->source[0].place == PLACE_CONSTANT)
        return pointwise_fill_async(pass->source[0].index, &sink, stream);
    struct source source = pass_source(self, pass, frames, 0);
    return pointwise_copy_async(&source, &sink, stream);
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
        *source = pass_source(self, pass, frames, 0);
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
            .sink = pass_sink(self, pass, frames, &constants->lookup[stencils]),
            .constants = {constants->op[n].weight[0], constants->op[n].weight[1]},
            .fragments = {constants->op[n].fragments[0], constants->op[n].fragments[1]},
            .scratch = frames->memory + self->layout.scratch,
            .scratch_step = (ptrdiff_t)self->layout.bytes,
            .transform = constants->transform[n],
        };
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
    struct source source = pass_source(self, pass, frames, 0);
    struct view to = {};
    if (pass->targets)
        to = operand_view(self, frames, pass->target[0]);
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
    if (!self->recording)
        return run_frames(self, frames, fields, lead->work_stream);
    recording_begin(self->recording, lead->work_stream);
    enum status status = run_frames(self, frames, fields, lead->work_stream);
    recording_end();
    if (!status && dependent && recording_is_dependent(self->recording))
        return CUDA_CHECK(self->backend, recording_launch_dependent(self->recording));
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
