#include "kernels/executor/views.h"

// Every member is set by itself: a whole struct of zeros, and copies of what was just written, are a
// third of what a call of one small kernel takes of the host beside its launch.

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
    view->padded = false; // a caller's last row may end with its last sample
}

void operand_view(const struct cuda_executor *self, const struct device_frames *frames,
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

void source_view(const struct cuda_executor *self, const struct plan_pass *pass,
                 const struct device_frames *frames, int s, struct source *source)
{
    const struct image *picture = &frames->source[0];
    operand_view(self, frames, pass->source[s], &source->view);
    source->lookup = {};
    source->width = subsampled(picture->width, pass->source_grid[s].shift_x) * pass->together;
    source->height = subsampled(picture->height, pass->source_grid[s].shift_y);
    source->border = BORDER_REPLICATE;
    source->border_value = 0;
}

void sink_view(const struct cuda_executor *self, const struct plan_pass *pass,
               const struct device_frames *frames, const struct lookup *lookup, struct sink *sink)
{
    for (int t = 0; t < pass->targets; t++)
        operand_view(self, frames, pass->target[t], &sink->view[t]);
    for (int t = pass->targets; t < FORMAT_COMPONENTS; t++)
        sink->view[t] = {};
    sink->views = pass->targets;
    sink->lookup = *lookup;
    sink->width = plan_pass_columns(pass, frames->source[0].width);
    sink->height = subsampled(frames->source[0].height, pass->grid.shift_y);
    sink->frames = frames->count;
}
