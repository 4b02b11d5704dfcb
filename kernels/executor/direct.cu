#include "kernels/executor/direct.h"

#include <assert.h>

#include "kernels/executor/transfer.h"
#include "kernels/executor/views.h"

// ---- where planes lie ----

// True if kernels can take the units of plane `p` where they are: those of two bytes at even
// addresses.
static bool units_fit(const struct image *image, int p)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct component *at = &image->format->component[c];
        if (format_has(image->format, c) && at->plane == p && at->bytes == 2)
            return (((uintptr_t)image->data[p] | (uintptr_t)image->stride[p]) & 1) == 0;
    }
    return true;
}

static bool reads_plane(const struct plan *plan, const struct plan_pass *pass, int p)
{
    for (int s = 0; s < pass->sources; s++)
        if (pass->source[s].place == PLACE_INPUT &&
            plan_component(plan, pass->source[s])->plane == p)
            return true;
    return false;
}

// True if each thread of a pass writes picture `n` where it alone reads: a table of single samples
// of plane `p`.
static bool stays_in_place(const struct plan *plan, const struct plan_pass *pass, int n, int p)
{
    if (pass->full_frame || pass->mix || pass_stencils(pass) || pass->targets != 1 ||
        pass->target[0].place != PLACE_OUTPUT || pass->target[0].index / FORMAT_COMPONENTS != n)
        return false;
    const struct component *from = plan_component(plan, pass->source[0]);
    const struct component *to = plan_component(plan, pass->target[0]);
    return from->plane == p && to->plane == p && from->offset == to->offset &&
           from->step == to->step && from->bytes == to->bytes;
}

// True if passes may write plane `p` of picture `n` over the same plane of the source: none reads
// there what another one writes.
static bool works_in_place(const struct plan *plan, int n, int p)
{
    for (int k = 0; k < plan->passes; k++)
        if (reads_plane(plan, &plan->pass[k], p) && !stays_in_place(plan, &plan->pass[k], n, p))
            return false;
    return true;
}

static bool is_in_place(const struct work *work, int n, int p)
{
    return work->source_on_device && p < work->source.format->planes &&
           work->source.data[p] == work_target(work, n)->data[p];
}

// True if plane `p` of picture `n` is made in the slot's memory: passes cannot make it where it is
// wanted, or another plane of the source is to take the place of one that is read.
static bool needs_slot(const struct cuda_executor *self, const struct work *work, int n, int p)
{
    const struct plan_plane *plane = &self->plan->picture[n].plane[p];
    const struct image *target = work_target(work, n);
    if (plane->origin == PLANE_COMPUTED)
        return !work->target_on_device || !target->data[p] || !units_fit(target, p) ||
               (is_in_place(work, n, p) && !works_in_place(self->plan, n, p));
    return plane->origin == PLANE_REFERENCE && plane->source != p && work->target_on_device &&
           target->data[p] && is_in_place(work, n, p);
}

bool direct_place_source(struct cuda_executor *self, const struct cuda_slot *slot,
                         const struct work *work, struct image *source)
{
    bool in_slot = false;
    if (!work->source_on_device || work->source_abroad)
        return in_slot;
    for (int p = 0; p < source->format->planes; p++)
        if (self->plan->reads >> p & 1 && !units_fit(source, p)) {
            transfer_place_plane(source, p, self->layout.input[p], slot->memory);
            in_slot = true;
        }
    return in_slot;
}

bool direct_place_target(struct cuda_executor *self, const struct cuda_slot *slot,
                         const struct work *work, int n, struct image *target)
{
    bool in_slot = false;
    for (int p = 0; p < FORMAT_PLANES; p++) {
        const struct plan_plane *plane = &self->plan->picture[n].plane[p];
        bool there = p < target->format->planes;
        if (there && needs_slot(self, work, n, p)) {
            transfer_place_plane(target, p, self->layout.output[n][p], slot->memory);
            in_slot = true;
        } else if (!there || !work->target_on_device || plane->origin == PLANE_CONSTANT)
            target->data[p] = NULL;
    }
    return in_slot;
}

// ---- copies and constants ----

// Planes that are copied by one launch, byte for byte. Nothing is set but `frames` while that is 0:
// most frames copy none.
struct copies {
    struct view to, from;
    int frames;
    size_t bytes; // of a row
    int rows;
};

// Add plane `q` of one picture, and where it goes: plane `p` of another.
static void add_copy(struct copies *copies, const struct image *to, int p, const struct image *from,
                     int q)
{
    assert(copies->frames < FRAMES);
    if (!copies->frames)
        *copies = {};
    copies->to.data[copies->frames] = to->data[p];
    copies->from.data[copies->frames++] = from->data[q];
    copies->to.stride = (int)to->stride[p];
    copies->from.stride = (int)from->stride[q];
    copies->bytes = format_row_bytes(to->format, p, to->width);
    copies->rows = format_rows(to->format, p, to->height);
}

static struct view bytes_view(struct view view)
{
    view.step = view.bytes = 1;
    view.max = UINT8_MAX;
    view.plain = view.adjacent = view_is_adjacent(&view);
    return view;
}

static cudaError_t copies_async(const struct copies *copies, cudaStream_t stream)
{
    if (!copies->frames)
        return cudaSuccess;
    const struct source source = {
        .view = bytes_view(copies->from), .width = (int)copies->bytes, .height = copies->rows};
    const struct sink sink = {.view = {bytes_view(copies->to)},
                              .views = 1,
                              .width = source.width,
                              .height = source.height,
                              .frames = copies->frames};
    return pointwise_copy_async(&source, &sink, {}, stream);
}

// One value in all samples of component `c`; of units at odd addresses byte by byte.
static cudaError_t fill_async(const struct image *images, int count, int c, int value,
                              cudaStream_t stream)
{
    const struct format *format = images->format;
    struct sink sink = {.views = 1,
                        .width = subsampled(images->width, format_shift_x(format, c)),
                        .height = subsampled(images->height, format_shift_y(format, c)),
                        .frames = count};
    struct view *view = &sink.view[0];
    component_view(images, count, &format->component[c], view);
    if (view->bytes == 1 || view_is_aligned(view, 2))
        return pointwise_fill_async(value, &sink, stream);
    int unit = value << view->shift, low = view->swapped ? unit >> 8 & 0xff : unit & 0xff;
    int high = view->swapped ? unit & 0xff : unit >> 8 & 0xff;
    view->bytes = 1;
    view->shift = 0;
    view->adjacent = view->plain = view->swapped = false;
    cudaError_t error = pointwise_fill_async(low, &sink, stream);
    for (int k = 0; k < count; k++)
        view->data[k]++;
    return error ? error : pointwise_fill_async(high, &sink, stream);
}

// Zeros in the gap of plane `p` of pictures that lie alike, where they have it.
static cudaError_t clear_gap_async(const struct image *images, int count, int p,
                                   cudaStream_t stream)
{
    size_t offset, bytes = format_gap(images->format, p, images->width, &offset);
    if (!bytes || !images->data[p])
        return cudaSuccess;
    const int luma = 0;
    const ptrdiff_t first = images->format->component[luma].offset;
    struct image column[FRAMES]; // as wide as the gap, which lies as one luma more
    for (int k = 0; k < count; k++) {
        column[k] = images[k];
        column[k].width = 1;
        column[k].data[p] += (ptrdiff_t)offset - first;
    }
    return fill_async(column, count, luma, 0, stream);
}

static cudaError_t fill_plane_async(const struct cuda_executor *self,
                                    const struct device_frames *frames, int n, int p,
                                    cudaStream_t stream)
{
    const struct program *program = self->plan->program;
    const struct format *format = program_format(program, n);
    const int filler = max_sample(format->depth);
    struct image wanted[FRAMES];
    int count = 0;
    for (int k = 0; k < frames->count; k++)
        if (work_target(&frames->work[k], n)->data[p])
            wanted[count++] = *work_target(&frames->work[k], n);
    cudaError_t error = cudaSuccess;
    for (int c = 0; c < FORMAT_COMPONENTS && count && !error; c++) {
        bool has = format_has(format, c);
        if (format_stores(format, c) && format->component[c].plane == p)
            error = fill_async(wanted, count, c, has ? program_out(program, n)[c].value : filler,
                               stream);
    }
    if (count && !error)
        error = clear_gap_async(wanted, count, p, stream);
    return error;
}

// ---- before and behind the passes ----

// Plane `p` of the sources, where it lies in the slots' memory.
static cudaError_t fetch_async(const struct device_frames *frames, int p, cudaStream_t stream)
{
    struct copies copies;
    copies.frames = 0;
    for (int k = 0; k < frames->count; k++)
        if (frames->source[k].data[p] != frames->work[k].source.data[p])
            add_copy(&copies, &frames->source[k], p, &frames->work[k].source, p);
    return copies_async(&copies, stream);
}

// Plane `p` of picture `n`, which is plane `q` of the source.
static cudaError_t refer_async(const struct device_frames *frames, int n, int p, int q,
                               cudaStream_t stream)
{
    struct copies copies;
    copies.frames = 0;
    for (int k = 0; k < frames->count; k++) {
        const struct image *source = &frames->work[k].source, *target = &frames->target[n][k];
        if (target->data[p] && target->data[p] != source->data[q])
            add_copy(&copies, target, p, source, q);
    }
    return copies_async(&copies, stream);
}

cudaError_t direct_begin_async(const struct cuda_executor *self, const struct device_frames *frames,
                               cudaStream_t stream)
{
    const struct work *work = frames->work;
    const struct plan *plan = self->plan;
    cudaError_t error = cudaSuccess;
    if (!work->source_on_device || work->source_abroad)
        return error;
    for (int p = 0; p < plan->program->input.planes && !error; p++)
        if (plan->reads >> p & 1)
            error = fetch_async(frames, p, stream);
    for (int n = 0; n < program_pictures(plan->program) && work->target_on_device; n++)
        for (int p = 0; p < program_format(plan->program, n)->planes && !error; p++)
            if (plan->picture[n].plane[p].origin == PLANE_REFERENCE)
                error = refer_async(frames, n, p, plan->picture[n].plane[p].source, stream);
    return error;
}

// Plane `p` of picture `n`, where it was made in the slots' memory.
static cudaError_t deliver_async(const struct device_frames *frames, int n, int p,
                                 cudaStream_t stream)
{
    struct copies copies;
    copies.frames = 0;
    for (int k = 0; k < frames->count; k++) {
        const struct image *target = work_target(&frames->work[k], n);
        if (target->data[p] && target->data[p] != frames->target[n][k].data[p])
            add_copy(&copies, target, p, &frames->target[n][k], p);
    }
    return copies_async(&copies, stream);
}

cudaError_t direct_finish_async(const struct cuda_executor *self,
                                const struct device_frames *frames, cudaStream_t stream)
{
    const struct plan *plan = self->plan;
    cudaError_t error = cudaSuccess;
    for (int n = 0; n < program_pictures(plan->program); n++)
        for (int p = 0; p < program_format(plan->program, n)->planes && !error; p++) {
            const enum plane_origin origin = plan->picture[n].plane[p].origin;
            if (origin == PLANE_COMPUTED)
                error = clear_gap_async(frames->target[n], frames->count, p, stream);
            if (error || !frames->work->target_on_device)
                continue;
            error = origin == PLANE_CONSTANT ? fill_plane_async(self, frames, n, p, stream)
                                             : deliver_async(frames, n, p, stream);
        }
    return error;
}
