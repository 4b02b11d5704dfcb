// The plan as text, and the bytes that it moves.
#include "plan/plan.h"

#include "plan/op_info.h"

static size_t operand_bytes(const struct plan *plan, struct operand operand,
                            struct program_plane grid, int together, int width, int height)
{
    size_t samples = (size_t)subsampled(width, grid.shift_x) * (size_t)together *
                     (size_t)subsampled(height, grid.shift_y);
    if (operand.place == PLACE_CONSTANT)
        return 0;
    const struct component *at = plan_component(plan, operand);
    return samples * (size_t)(at ? at->bytes : grid.depth > 8 ? 2 : 1);
}

size_t plan_pass_bytes(const struct plan *plan, const struct plan_pass *pass, int width, int height)
{
    size_t bytes = 0;
    for (int s = 0; s < pass->sources; s++)
        bytes += operand_bytes(plan, pass->source[s], pass->source_grid[s], pass->together, width,
                               height);
    for (int t = 0; t < pass->targets; t++)
        bytes += operand_bytes(plan, pass->target[t], pass->grid, pass->together, width, height);
    return bytes;
}

static const char *component_name(const struct format *format, int c)
{
    static const char *const names[][4] = {
        [MODEL_GRAY] = {"Y", "", "", "A"},
        [MODEL_YUV] = {"Y", "Cb", "Cr", "A"},
        [MODEL_RGB] = {"R", "G", "B", "A"},
    };
    return c == COMPONENT_ALPHA && !format->alpha ? "filler" : names[format->model][c];
}

static const char *picture_name(int n, char *name, size_t size)
{
    if (n)
        snprintf(name, size, "tee %d", n);
    else
        snprintf(name, size, "output");
    return name;
}

// True if component `k` has a place in the pixels of which component `c` is one.
static bool is_beside(const struct format *format, int k, int c)
{
    return format_stores(format, k) && format->component[k].plane == format->component[c].plane;
}

// The name of a component, or of all of its pixel.
static void print_components(const struct format *format, int c, bool joined, FILE *to)
{
    for (int k = 0; k < FORMAT_COMPONENTS; k++)
        if (joined ? is_beside(format, k, c) : k == c)
            fprintf(to, " %s", component_name(format, k));
}

// The components of pixels that do not go through the steps.
static void print_spared(const struct plan *plan, const struct plan_pass *pass, FILE *to)
{
    int n = pass->target[0].index / FORMAT_COMPONENTS,
        c = pass->target[0].index % FORMAT_COMPONENTS;
    const struct format *format = program_format(plan->program, n);
    for (int k = 0; k < FORMAT_COMPONENTS; k++) {
        const struct component *at = &format->component[k];
        if (!is_beside(format, k, c))
            continue;
        if (pass->kept >> at->offset / at->bytes & 1)
            fprintf(to, "    %s stays as it is\n", component_name(format, k));
        if (pass->filled >> at->offset / at->bytes & 1)
            fprintf(to, "    %s: all bits\n", component_name(format, k));
    }
}

static void print_output(const struct plan *plan, struct operand operand, FILE *to)
{
    char name[16];
    int n = operand.index / FORMAT_COMPONENTS;
    fprintf(to, "%s", picture_name(n, name, sizeof name));
    print_components(program_format(plan->program, n), operand.index % FORMAT_COMPONENTS,
                     operand.joined, to);
}

static void print_operand(const struct plan *plan, struct operand operand, FILE *to)
{
    if (operand.place == PLACE_INPUT) {
        fprintf(to, "input");
        print_components(&plan->program->input, operand.index, operand.joined, to);
    } else if (operand.place == PLACE_OUTPUT) {
        print_output(plan, operand, to);
    } else if (operand.place == PLACE_BUFFER) {
        fprintf(to, "buffer %d", operand.index);
    } else {
        fprintf(to, "constant %d", operand.index);
    }
}

static void print_stencil(const struct plan *plan, const struct plan_step *step, FILE *to)
{
    const struct op *op = step->stencil;
    const struct op_info *info = op_info(op);
    struct op_reach reach = op_reach(op);
    fprintf(to, "%s %dx%d", info->name, reach.left + 1 + reach.right,
            reach.above + 1 + reach.below);
    if (info->print)
        info->print(plan, step, to);
    fprintf(to, ", border %s", border_name(op->border));
}

static void print_table(const struct plan_step *step, FILE *to)
{
    fprintf(to, "table of");
    for (int k = 0; k < step->folded_count; k++)
        fprintf(to, "%s %s", k ? "," : "",
                step->folded[k]->stage ? step->folded[k]->stage : op_name(step->folded[k]));
    if (step->depth_in != step->depth_out)
        fprintf(to, ", %d to %d bits", step->depth_in, step->depth_out);
}

static void print_pass(const struct plan *plan, const struct plan_pass *pass, int number, int width,
                       int height, FILE *to)
{
    fprintf(to, "pass %d: ", number);
    for (int s = 0; s < pass->sources; s++) {
        fprintf(to, "%s", s ? " + " : "");
        print_operand(plan, pass->source[s], to);
    }
    fprintf(to, " -> ");
    for (int t = 0; t < pass->targets; t++) {
        fprintf(to, "%s", t ? ", " : "");
        print_operand(plan, pass->target[t], to);
    }
    if (pass->analysis >= 0)
        fprintf(to, "%sanalysis %d", pass->targets ? ", " : "", pass->analysis);
    fprintf(to, "  %dx%d, %d bits, halo %dx%d, %zu bytes\n", plan_pass_columns(pass, width),
            subsampled(height, pass->grid.shift_y), pass->grid.depth, pass->halo_x, pass->halo_y,
            plan_pass_bytes(plan, pass, width, height));
    if (pass->together > 1 && pass->halo_x)
        fprintf(to, "    components of pixels, each by itself: the halo is one of pixels\n");
    if (pass->full_frame)
        fprintf(to, "    %s of the full frame, %zu bytes of analysis\n", op_name(pass->full_frame),
                op_analysis_bytes(pass->full_frame, subsampled(width, pass->grid.shift_x),
                                  subsampled(height, pass->grid.shift_y)));
    for (int s = 0; s < pass->sources; s++) {
        if (!pass->before[s].table)
            continue;
        fprintf(to, "    ");
        print_operand(plan, pass->source[s], to);
        fprintf(to, " by ");
        print_table(&pass->before[s], to);
        fprintf(to, "\n");
    }
    if (pass->kept || pass->filled)
        print_spared(plan, pass, to);
    if (pass->mix)
        fprintf(to, "    convert: mix of %d component%s\n", pass->sources,
                pass->sources == 1 ? "" : "s");
    for (int k = 0; k < pass->steps; k++) {
        fprintf(to, "    ");
        if (pass->step[k].stencil)
            print_stencil(plan, &pass->step[k], to);
        else
            print_table(&pass->step[k], to);
        fprintf(to, "\n");
    }
}

static void print_origins(const struct plan *plan, int n, FILE *to)
{
    char name[16];
    picture_name(n, name, sizeof name);
    for (int p = 0; p < program_format(plan->program, n)->planes; p++) {
        const struct plan_plane *plane = &plan->picture[n].plane[p];
        if (plane->origin == PLANE_REFERENCE)
            fprintf(to, "%s plane %d: plane %d of the input, untouched\n", name, p, plane->source);
        else if (plane->origin == PLANE_CONSTANT)
            fprintf(to, "%s plane %d: constant, filled once\n", name, p);
    }
}

void plan_print(const struct plan *plan, int width, int height, FILE *to)
{
    size_t bytes = 0;
    for (int k = 0; k < plan->passes; k++) {
        print_pass(plan, &plan->pass[k], k + 1, width, height, to);
        bytes += plan_pass_bytes(plan, &plan->pass[k], width, height);
    }
    for (int n = 0; n < program_pictures(plan->program); n++)
        print_origins(plan, n, to);
    fprintf(to, "%d pass%s, %d buffer%s, %zu bytes moved a frame\n", plan->passes,
            plan->passes == 1 ? "" : "es", plan->buffers, plan->buffers == 1 ? "" : "s", bytes);
}
