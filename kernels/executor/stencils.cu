#include "kernels/executor/stencils.h"

#include <assert.h>

#include "kernels/executor/views.h"
#include "kernels/stencil/compact.h"

// ---- pictures ----

// Pictures that lie alike, which stencils work on in one go, and their scratch memory, that of a
// picture so far behind the one before it.
struct pictures {
    struct source source;
    struct sink sink;
    uint8_t *between, *scratch;
    ptrdiff_t between_step, scratch_step;
};

// Both stencils of a pass in one go, if there is a kernel for that; else they follow each other
// through scratch memory.
static cudaError_t run_stencils(const struct plan_pass *pass,
                                const struct pass_constants *constants,
                                const struct pictures *pictures, cudaStream_t stream)
{
    int stencils = pass_stencils(pass);
    struct source source = pictures->source;
    cudaError_t error = cudaSuccess;
    for (int n = 0; n < stencils && !error; n++) {
        struct stencil stencil = {
            .op = pass_stencil(pass, n),
            .next = constants->lookup[n + 1].table ? NULL : pass_stencil(pass, n + 1),
            .depth = stencil_depth(pass, n),
            .source = source,
            .sink = pictures->sink,
            .constants = {constants->op[n].weight[0], constants->op[n].weight[1]},
            .fragments = {constants->op[n].fragments[0], constants->op[n].fragments[1]},
            .scratch = pictures->scratch,
            .scratch_step = pictures->scratch_step,
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
            int bytes = sample_bytes(stencil.depth);
            stencil.sink.lookup = {};
            stencil.sink.views = 1;
            stencil.sink.view[0] = view_plain(pictures->between, pictures->between_step,
                                              scratch_stride(source.width, bytes), bytes);
            source.view = stencil.sink.view[0];
            source.lookup = constants->lookup[n + 1];
        }
        error = row->stencil_async(&stencil, stream);
    }
    return error;
}

// ---- mixes ----

cudaError_t mix_async(const struct cuda_executor *self, const struct plan_pass *pass,
                      const struct pass_constants *constants, const struct device_frames *frames,
                      const struct sink *sink, cudaStream_t stream)
{
    struct mix mix = {.sources = pass->sources, .op = pass->mix->mix};
    for (int k = 0; k < pass->sources; k++) {
        struct source source;
        source_view(self, pass, frames, k, &source);
        mix.view[k] = source.view;
        mix.lookup[k] = constants->before[k];
        mix.width[k] = source.width;
        mix.height[k] = source.height;
        mix.up_x[k] = pass->source_grid[k].shift_x - pass->grid.shift_x;
        mix.up_y[k] = pass->source_grid[k].shift_y - pass->grid.shift_y;
    }
    return pointwise_mix_async(&mix, sink, stream);
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
        source_view(self, pass, frames, 0, source);
        source->lookup = constants->lookup[0];
        return cudaSuccess;
    }
    struct sink mixed;
    int bytes = sample_bytes(stencil_depth(pass, 0));
    sink_view(self, pass, frames, &constants->lookup[0], &mixed);
    mixed.views = 1;
    mixed.view[0] = view_plain(frames->memory + self->layout.mixed, (ptrdiff_t)self->layout.bytes,
                               scratch_stride(mixed.width, bytes), bytes);
    *source = {.view = mixed.view[0], .width = mixed.width, .height = mixed.height};
    return mix_async(self, pass, constants, frames, &mixed, stream);
}

// ---- pixels ----

struct pass_parts pass_parts(const struct plan_pass *pass)
{
    struct pass_parts parts = {.samples = pass->together};
    for (int k = 0; k < parts.samples; k++)
        parts.plane[k] = (pass->kept | pass->filled) >> k & 1 ? -1 : parts.filtered++;
    parts.planes = parts.filtered;
    for (int k = 0; k < parts.samples; k++)
        if (pass->kept >> k & 1)
            parts.plane[k] = parts.planes++;
    return parts;
}

// Planes in the slots' memory that stand for an operand of a pass: `step` bytes apart.
struct planes {
    uint8_t *memory;
    ptrdiff_t step;
    int stride, bytes;
};

// Pixels, and units that are no samples, have planes from `at` on. Those of a plane at another address
// take the place that it has for frames of the host: this one is the caller's.
static struct planes planes_for(const struct cuda_executor *self,
                                const struct device_frames *frames, struct operand operand,
                                size_t at, const struct sink *size, int depth)
{
    const struct slot_layout *layout = &self->layout;
    const struct component *component = plan_component(self->plan, operand);
    int bytes = sample_bytes(depth), n = operand.index / FORMAT_COMPONENTS;
    if (operand.joined || !plan_is_plain(self->plan, operand, depth))
        return {frames->memory + at, (ptrdiff_t)scratch_bytes(size->width, size->height, bytes),
                scratch_stride(size->width, bytes), bytes};
    struct region region = operand.place == PLACE_INPUT ? layout->input[component->plane]
                                                        : layout->output[n][component->plane];
    return {frames->memory + region.offset, 0, region.pitch, bytes};
}

// Plane `k` of all frames; all planes of the first frame as pictures.
static struct view plane_of_frames(const struct cuda_executor *self, const struct planes *planes,
                                   int k)
{
    return view_plain(planes->memory + k * planes->step, (ptrdiff_t)self->layout.bytes,
                      planes->stride, planes->bytes);
}

static struct view planes_as_pictures(const struct planes *planes)
{
    return view_plain(planes->memory, planes->step, planes->stride, planes->bytes);
}

bool pass_is_compact(const struct plan_pass *pass)
{
    return pass->steps == 1 && pass->targets == 1 && pass->load_depth == 8 &&
           pass->grid.depth == 8 &&
           compact_takes(pass_stencil(pass, 0), pass->together, pass->kept | pass->filled);
}

static bool lies_side_by_side(const struct view *view)
{
    return view->step == view->bytes;
}

// True if samples lie side by side, but not as stencils want them.
static bool wants_planes(const struct view *view)
{
    return lies_side_by_side(view) && !(view->plain && view_is_aligned(view, 16));
}

// Source and sink of a pass with stencils, and the planes that stand for them.
struct ends {
    struct source source;
    struct sink sink;
    bool splits, merges;         // the source is taken apart, the result put together
    struct planes source_planes; // if so
    struct planes sink_planes;
};

static void find_planes(const struct cuda_executor *self, const struct plan_pass *pass,
                        const struct device_frames *frames, struct ends *ends)
{
    const struct slot_layout *layout = &self->layout;
    struct operand source = pass->source[0], target = pass->target[0];
    bool joined = pass->together > 1;
    ends->source.width /= pass->together;
    ends->sink.width /= pass->together;
    ends->splits =
        joined || (!pass->mix && source.place == PLACE_INPUT && wants_planes(&ends->source.view));
    ends->merges = joined || (pass->targets == 1 && target.place == PLACE_OUTPUT &&
                              wants_planes(&ends->sink.view[0]));
    if (ends->splits)
        ends->source_planes =
            planes_for(self, frames, source, layout->apart, &ends->sink, pass->load_depth);
    if (ends->merges)
        ends->sink_planes =
            planes_for(self, frames, target, layout->results, &ends->sink, pass->grid.depth);
}

static cudaError_t split_async(const struct cuda_executor *self, const struct plan_pass *pass,
                               const struct pass_parts *parts, const struct ends *ends,
                               cudaStream_t stream)
{
    struct pixels pixels = {.row = ends->source.view,
                            .samples = parts->samples,
                            .filled = pass->filled,
                            .width = ends->source.width,
                            .height = ends->source.height,
                            .frames = ends->sink.frames};
    for (int k = 0; k < parts->samples; k++)
        if (parts->plane[k] >= 0)
            pixels.plane[k] = plane_of_frames(self, &ends->source_planes, parts->plane[k]);
    return pixels_split_async(&pixels, stream);
}

static cudaError_t merge_async(const struct cuda_executor *self, const struct plan_pass *pass,
                               const struct pass_parts *parts, const struct ends *ends,
                               cudaStream_t stream)
{
    struct pixels pixels = {.row = ends->sink.view[0],
                            .samples = parts->samples,
                            .filled = pass->filled,
                            .width = ends->sink.width,
                            .height = ends->sink.height,
                            .frames = ends->sink.frames};
    for (int k = 0; k < parts->samples; k++)
        if (parts->plane[k] >= 0)
            pixels.plane[k] = plane_of_frames(
                self, pass->kept >> k & 1 ? &ends->source_planes : &ends->sink_planes,
                parts->plane[k]);
    return pixels_merge_async(&pixels, stream);
}

// The pictures of part `k` of all frames; of one frame, all its parts are.
static struct pictures pictures_of(const struct cuda_executor *self,
                                   const struct device_frames *frames,
                                   const struct pass_parts *parts, const struct ends *ends, int k)
{
    const struct slot_layout *layout = &self->layout;
    bool one = frames->count == 1;
    ptrdiff_t slot = (ptrdiff_t)layout->bytes;
    struct pictures pictures = {
        .source = ends->source,
        .sink = ends->sink,
        .between = frames->memory + layout->between + (size_t)k * layout->between_step,
        .scratch = frames->memory + layout->scratch + (size_t)k * layout->scratch_step,
        .between_step = one ? (ptrdiff_t)layout->between_step : slot,
        .scratch_step = one ? (ptrdiff_t)layout->scratch_step : slot,
    };
    if (one)
        pictures.sink.frames = parts->filtered;
    if (ends->splits)
        pictures.source.view = one ? planes_as_pictures(&ends->source_planes)
                                   : plane_of_frames(self, &ends->source_planes, k);
    if (ends->merges)
        pictures.sink.view[0] = one ? planes_as_pictures(&ends->sink_planes)
                                    : plane_of_frames(self, &ends->sink_planes, k);
    return pictures;
}

// The only stencil of a pass on bytes as they lie.
static struct compact_stencil compact_of(const struct plan_pass *pass,
                                         const struct pass_constants *constants,
                                         const struct ends *ends)
{
    struct compact_stencil compact = {
        .stencil = {.op = pass_stencil(pass, 0),
                    .depth = stencil_depth(pass, 0),
                    .source = ends->source,
                    .sink = ends->sink,
                    .constants = {constants->op[0].weight[0], constants->op[0].weight[1]},
                    .transform = constants->transform[0]},
        .samples = pass->together,
        .kept = pass->kept,
        .filled = pass->filled};
    compact.stencil.source.border = compact.stencil.op->border;
    compact.stencil.source.border_value = compact.stencil.op->border_value;
    return compact;
}

cudaError_t stencils_async(const struct cuda_executor *self, const struct plan_pass *pass,
                           const struct pass_constants *constants,
                           const struct device_frames *frames, cudaStream_t stream)
{
    const struct pass_parts parts = pass_parts(pass);
    struct ends ends;
    cudaError_t error = first_source_async(self, pass, constants, frames, &ends.source, stream);
    sink_view(self, pass, frames, &constants->lookup[pass_stencils(pass)], &ends.sink);
    find_planes(self, pass, frames, &ends);
    if (!error && (ends.splits || ends.merges) && pass_is_compact(pass) &&
        lies_side_by_side(&ends.source.view) && lies_side_by_side(&ends.sink.view[0])) {
        const struct compact_stencil compact = compact_of(pass, constants, &ends);
        return compact_async(&compact, stream);
    }
    if (!error && ends.splits)
        error = split_async(self, pass, &parts, &ends, stream);
    int launches = frames->count == 1 ? 1 : parts.filtered;
    for (int k = 0; k < launches && !error; k++) {
        const struct pictures pictures = pictures_of(self, frames, &parts, &ends, k);
        error = run_stencils(pass, constants, &pictures, stream);
    }
    return error || !ends.merges ? error : merge_async(self, pass, &parts, &ends, stream);
}
