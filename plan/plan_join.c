#include "plan/plan_join.h"

#include <string.h>

#include "plan/op_info.h"

// The components of plane `p` by their place in a pixel, a filler among them, if they fill it with samples of
// one kind and grid. Returns how many there are; 0: the plane is something else, or has one component.
static int find_pixel(const struct format *format, int p, int component[FORMAT_COMPONENTS])
{
    const struct component *first = NULL;
    int count = 0, seen = 0;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct component *at = &format->component[c];
        if (!format_stores(format, c) || at->plane != p)
            continue;
        first = first ? first : at;
        int place = at->offset / at->bytes;
        if (at->bytes != first->bytes || at->shift != first->shift || at->step != first->step ||
            at->big_endian != first->big_endian || at->offset % at->bytes ||
            place >= FORMAT_COMPONENTS)
            return 0;
        component[place] = c;
        seen |= 1 << place;
        count++;
    }
    bool fills = count > 1 && first->step == count * first->bytes && seen == (1 << count) - 1;
    return fills ? count : 0;
}

static void find_in_format(const struct format *format, struct component joined[FORMAT_PLANES])
{
    int component[FORMAT_COMPONENTS];
    for (int p = 0; p < format->planes; p++) {
        if (!find_pixel(format, p, component))
            continue;
        joined[p] = format->component[component[0]];
        joined[p].step = joined[p].bytes;
    }
}

void plan_find_joined(struct plan *plan)
{
    find_in_format(&plan->program->input, plan->joined[0]);
    for (int n = 0; n < program_pictures(plan->program); n++)
        find_in_format(program_format(plan->program, n), plan->joined[1 + n]);
}

static bool same_grid(struct program_plane a, struct program_plane b)
{
    return a.shift_x == b.shift_x && a.shift_y == b.shift_y && a.depth == b.depth;
}

// True if the backend makes all stencils of a pass of pixels, too.
static bool may_join(const struct plan *plan, const struct plan_pass *pass)
{
    for (int k = 0; k < pass->steps; k++)
        if (pass->step[k].stencil && !(plan->limits.joins && plan->limits.joins(&pass->step[k])))
            return false;
    return true;
}

// A pass as a part of one of pixels: none; the steps; a sample that stays; a filler.
enum part { IS_NONE, IS_STEPS, IS_KEPT, IS_FILLED };

// The part that a pass is, if it takes component `from` of the input, or a constant, into one place.
static enum part part_of(const struct plan *plan, const struct plan_pass *pass, int from)
{
    const struct format *input = &plan->program->input;
    if (pass->mix || pass->full_frame || pass->sources != 1 || pass->targets != 1)
        return IS_NONE;
    if (pass->source[0].place == PLACE_CONSTANT)
        return pass->source[0].index == max_sample(pass->grid.depth) ? IS_FILLED : IS_NONE;
    if (pass->source[0].place != PLACE_INPUT || pass->source[0].index != from)
        return IS_NONE;
    if (!pass->steps)
        return component_is_loose(&input->component[from], input->depth) ? IS_NONE : IS_KEPT;
    return may_join(plan, pass) ? IS_STEPS : IS_NONE;
}

static bool same_step(const struct plan_step *a, const struct plan_step *b)
{
    if (a->depth_in != b->depth_in || a->depth_out != b->depth_out || !a->stencil != !b->stencil)
        return false;
    return a->stencil ? op_same_stencil(a->stencil, b->stencil)
                      : !memcmp(a->table, b->table, sizeof *a->table << a->depth_in);
}

static bool same_steps(const struct plan_pass *a, const struct plan_pass *b)
{
    bool same = a->steps == b->steps;
    for (int k = 0; same && k < a->steps; k++)
        same = same_step(&a->step[k], &b->step[k]);
    return same;
}

static bool same_grids(const struct plan_pass *a, const struct plan_pass *b)
{
    return same_grid(a->grid, b->grid) && same_grid(a->source_grid[0], b->source_grid[0]) &&
           a->load_depth == b->load_depth;
}

// The pass that writes component `c` of picture `n` and nothing else; NULL: there is none.
static struct plan_pass *writer(const struct plan *plan, int n, int c)
{
    for (int k = 0; k < plan->passes; k++) {
        struct plan_pass *pass = &plan->pass[k];
        if (pass->targets == 1 && pass->target[0].place == PLACE_OUTPUT &&
            pass->target[0].index == n * FORMAT_COMPONENTS + c)
            return pass;
    }
    return NULL;
}

// Passes that are to be one: those of each place of a pixel, of which `lead` has the steps.
struct group {
    struct plan_pass *pass[FORMAT_COMPONENTS], *lead;
    int count;
    unsigned kept, filled; // by place
};

// Add the pass of place `k`, which takes `from` of the input; false: it does not go with the others.
static bool add(const struct plan *plan, struct group *group, int k, struct plan_pass *pass,
                int from)
{
    enum part part = pass ? part_of(plan, pass, from) : IS_NONE;
    if (part == IS_NONE || (k && !same_grids(pass, group->pass[0])))
        return false;
    if (part == IS_STEPS && group->lead && !same_steps(group->lead, pass))
        return false;
    if (part == IS_STEPS && !group->lead)
        group->lead = pass;
    group->kept |= (unsigned)(part == IS_KEPT) << k;
    group->filled |= (unsigned)(part == IS_FILLED) << k;
    group->pass[k] = pass;
    return true;
}

// The passes from pixels of input plane `p` into plane `q` of picture `n`, if one does instead.
static bool find_group(const struct plan *plan, int p, int n, int q, struct group *group)
{
    int from[FORMAT_COMPONENTS], to[FORMAT_COMPONENTS];
    *group = (struct group){.count = find_pixel(&plan->program->input, p, from)};
    if (!group->count || find_pixel(program_format(plan->program, n), q, to) != group->count)
        return false;
    for (int k = 0; k < group->count; k++)
        if (!add(plan, group, k, writer(plan, n, to[k]), from[k]))
            return false;
    // Samples that a table spares have to come again every four.
    return group->lead && (group->count != 3 || plan_pass_has_stencil(group->lead) ||
                           !(group->kept | group->filled));
}

static void remove_pass(struct plan *plan, struct plan_pass *pass)
{
    size_t behind = (size_t)(&plan->pass[plan->passes] - pass - 1);
    memmove(pass, pass + 1, behind * sizeof *pass);
    plan->passes--;
}

// The first of them becomes all.
static void join(struct plan *plan, const struct group *group)
{
    struct plan_pass *first = group->pass[0], joined = *group->lead;
    joined.together = group->count;
    joined.kept = group->kept;
    joined.filled = group->filled;
    joined.source[0].joined = joined.target[0].joined = true;
    for (int k = 1; k < group->count; k++)
        first = group->pass[k] < first ? group->pass[k] : first;
    *first = joined;
    for (struct plan_pass *pass = &plan->pass[plan->passes - 1]; pass > first; pass--)
        for (int k = 0; k < group->count; k++)
            if (group->pass[k] == pass) {
                remove_pass(plan, pass);
                break;
            }
}

void plan_join_passes(struct plan *plan)
{
    struct group group;
    for (int p = 0; p < plan->program->input.planes; p++)
        for (int n = 0; n < program_pictures(plan->program); n++)
            for (int q = 0; q < program_format(plan->program, n)->planes; q++)
                if (find_group(plan, p, n, q, &group))
                    join(plan, &group);
}
