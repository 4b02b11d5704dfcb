#include "kernels/executor/layout.h"

#include <assert.h>
#include <stdlib.h>

#include "kernels/executor/pass.h"
#include "kernels/executor/stencils.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static size_t reserve(size_t *used, size_t bytes)
{
    size_t at = *used;
    *used = at + aligned(bytes);
    return at;
}

static struct region reserve_plane(size_t *used, size_t row_bytes, int rows)
{
    size_t pitch = aligned(row_bytes);
    return {reserve(used, pitch * (size_t)rows), (int)pitch};
}

// True if plane `p` of a picture may be made in the slot's memory: kernels/executor/direct.h says
// which of those that refer to the input.
static bool has_output(const struct plan_plane *plane, int p)
{
    return plane->origin == PLANE_COMPUTED ||
           (plane->origin == PLANE_REFERENCE && plane->source != p);
}

static void lay_out_planes(struct slot_layout *layout, const struct plan *plan, int width,
                           int height)
{
    const struct format *in = &plan->program->input;
    for (int p = 0; p < in->planes; p++)
        if (plan->reads >> p & 1)
            layout->input[p] = reserve_plane(&layout->bytes, format_row_bytes(in, p, width),
                                             format_rows(in, p, height));
    for (int n = 0; n < program_pictures(plan->program); n++) {
        const struct format *out = program_format(plan->program, n);
        for (int p = 0; p < out->planes; p++)
            if (has_output(&plan->picture[n].plane[p], p))
                layout->output[n][p] = reserve_plane(
                    &layout->bytes, format_row_bytes(out, p, width), format_rows(out, p, height));
    }
}

static void lay_out_buffers(struct slot_layout *layout, const struct plan *plan, int width,
                            int height)
{
    for (int b = 0; b < plan->buffers; b++) {
        struct program_plane grid = plan->buffer[b].grid;
        size_t columns = (size_t)subsampled(width, grid.shift_x);
        layout->buffer[b] =
            reserve_plane(&layout->bytes, columns * (size_t)sample_bytes(grid.depth),
                          subsampled(height, grid.shift_y));
    }
}

static void lay_out_analyses(struct slot_layout *layout, const struct program *program, int width,
                             int height)
{
    for (int k = 0; k < program->analyses; k++) {
        size_t bytes = program_analysis_bytes(program, k, width, height);
        layout->analysis[k] = {reserve(&layout->bytes, bytes), bytes};
    }
}

static void enlarge(size_t *max, size_t wanted)
{
    *max = wanted > *max ? wanted : *max;
}

// The bytes of planes of what a pass with stencils has to take apart wherever it lies; 0: nothing.
static size_t planes_bytes(const struct plan *plan, struct operand operand, int planes, int width,
                           int height, int depth)
{
    bool alike = operand.place != PLACE_INPUT && operand.place != PLACE_OUTPUT;
    if (alike || (!operand.joined && plan_is_plain(plan, operand, depth)))
        return 0;
    return (size_t)planes * scratch_bytes(width, height, sample_bytes(depth));
}

static void lay_out_planes_apart(struct slot_layout *layout, const struct plan *plan, int width,
                                 int height)
{
    size_t apart = 0, results = 0;
    for (int k = 0; k < plan->passes; k++) {
        const struct plan_pass *pass = &plan->pass[k];
        const struct pass_parts parts = pass_parts(pass);
        int columns = subsampled(width, pass->grid.shift_x);
        int rows = subsampled(height, pass->grid.shift_y);
        if (!pass_stencils(pass) || pass_is_compact(pass))
            continue;
        if (!pass->mix)
            enlarge(&apart, planes_bytes(plan, pass->source[0], parts.planes, columns, rows,
                                         pass->load_depth));
        if (pass->targets == 1)
            enlarge(&results, planes_bytes(plan, pass->target[0], parts.filtered, columns, rows,
                                           pass->grid.depth));
    }
    layout->apart = reserve(&layout->bytes, apart);
    layout->results = reserve(&layout->bytes, results);
}

// Passes take turns at the scratch memory: it is as large as the most that one of them wants. Those that
// take pixels apart want as much for each part.
static void lay_out_scratch(struct slot_layout *layout, const struct plan *plan,
                            const struct pass_constants *constants, int width, int height)
{
    size_t mixed = 0, between = 0, scratch = 0;
    int most_parts = 0;
    for (int k = 0; k < plan->passes; k++) {
        const struct plan_pass *pass = &plan->pass[k];
        int stencils = pass_stencils(pass);
        int parts = stencils && !pass_is_compact(pass) ? pass_parts(pass).filtered : 1;
        most_parts = parts > most_parts ? parts : most_parts;
        for (int n = 0; n < pass_operations(pass); n++) {
            struct op_use use = pass_use(pass, &constants[k], n, width, height);
            const struct op_kernels *row = op_kernels(use.op);
            size_t plane = scratch_bytes(use.width, use.height, sample_bytes(use.depth));
            size_t own = row->scratch ? aligned(row->scratch(&use)) : 0;
            enlarge(&scratch, own);
            if (parts > 1)
                enlarge(&layout->scratch_step, own);
            if (n == 0 && pass->mix)
                enlarge(&mixed, plane);
            if (n + 1 < stencils)
                enlarge(&between, plane);
            if (n + 1 < stencils && parts > 1)
                enlarge(&layout->between_step, plane);
        }
    }
    enlarge(&between, (size_t)most_parts * layout->between_step);
    enlarge(&scratch, (size_t)most_parts * layout->scratch_step);
    layout->mixed = reserve(&layout->bytes, mixed);
    layout->between = reserve(&layout->bytes, between);
    layout->scratch = reserve(&layout->bytes, scratch);
}

enum status layout_init(struct slot_layout *layout, const struct plan *plan,
                        const struct pass_constants *constants, int width, int height)
{
    *layout = {};
    layout->buffer = (struct region *)calloc((size_t)plan->buffers + 1, sizeof *layout->buffer);
    layout->analysis = (struct analysis_region *)calloc((size_t)plan->program->analyses + 1,
                                                        sizeof *layout->analysis);
    if (!layout->buffer || !layout->analysis)
        return STATUS_MEMORY;
    lay_out_planes(layout, plan, width, height);
    const size_t planes = layout->bytes;
    lay_out_buffers(layout, plan, width, height);
    lay_out_analyses(layout, plan->program, width, height);
    lay_out_planes_apart(layout, plan, width, height);
    lay_out_scratch(layout, plan, constants, width, height);
    layout->works = layout->bytes > planes;
    assert(layout->bytes % 256 == 0);
    return STATUS_OK;
}

void layout_finish(struct slot_layout *layout)
{
    free(layout->buffer);
    free(layout->analysis);
    *layout = {};
}
