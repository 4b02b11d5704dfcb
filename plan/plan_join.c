#include "plan/plan_join.h"

#include <string.h>

// The components of plane `p` by their place in a pixel, if they fill it with samples of one kind and
// grid. Returns how many there are; 0: the plane is something else, or has one component.
static int find_pixel(const struct format *format, int p, int component[FORMAT_COMPONENTS])
{
    const struct component *first = NULL;
    int count = 0, seen = 0;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct component *at = &format->component[c];
        bool filler = c == COMPONENT_ALPHA && format->filler;
        if ((!format_has(format, c) && !filler) || at->plane != p)
            continue;
        first = first ? first : at;
        int place = at->offset / at->bytes;
        if (filler || at->bytes != first->bytes || at->shift != first->shift ||
            at->step != first->step || at->big_endian != first->big_endian ||
            at->offset % at->bytes || place >= FORMAT_COMPONENTS)
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

// True if a pass is a table of one component of the input, into one of an output.
static bool is_table(const struct plan_pass *pass)
{
    return !pass->mix && !pass->full_frame && pass->sources == 1 && pass->targets == 1 &&
           pass->source[0].place == PLACE_INPUT && pass->target[0].place == PLACE_OUTPUT &&
           pass->steps == 1 && pass->step[0].table;
}

// True if two such passes differ in their components alone.
static bool are_alike(const struct plan_pass *a, const struct plan_pass *b)
{
    const struct plan_step *x = &a->step[0], *y = &b->step[0];
    return same_grid(a->grid, b->grid) && same_grid(a->source_grid[0], b->source_grid[0]) &&
           a->load_depth == b->load_depth && x->depth_in == y->depth_in &&
           x->depth_out == y->depth_out &&
           a->target[0].index / FORMAT_COMPONENTS == b->target[0].index / FORMAT_COMPONENTS &&
           !memcmp(x->table, y->table, sizeof *x->table << x->depth_in);
}

static bool reads(const struct plan_pass *pass, int component)
{
    for (int s = 0; s < pass->sources; s++)
        if (pass->source[s].place == PLACE_INPUT && pass->source[s].index == component)
            return true;
    return false;
}

// The only pass that reads a component of the input; -1: there is none, or another one.
static int only_reader(const struct plan *plan, int component)
{
    int found = -1;
    for (int k = 0; k < plan->passes; k++)
        if (reads(&plan->pass[k], component)) {
            if (found >= 0)
                return -1;
            found = k;
        }
    return found;
}

// The passes of the pixels of input plane `p`, by place; their number, or 0 where one pass does not do.
static int find_passes(const struct plan *plan, int p, int pass[FORMAT_COMPONENTS])
{
    int from[FORMAT_COMPONENTS], to[FORMAT_COMPONENTS];
    int count = find_pixel(&plan->program->input, p, from);
    for (int k = 0; k < count; k++) {
        pass[k] = only_reader(plan, from[k]);
        if (pass[k] < 0 || !is_table(&plan->pass[pass[k]]) ||
            !are_alike(&plan->pass[pass[0]], &plan->pass[pass[k]]))
            return 0;
    }
    if (!count)
        return 0;
    int index = plan->pass[pass[0]].target[0].index;
    const struct format *out = program_format(plan->program, index / FORMAT_COMPONENTS);
    if (find_pixel(out, out->component[index % FORMAT_COMPONENTS].plane, to) != count)
        return 0;
    for (int k = 0; k < count; k++)
        if (plan->pass[pass[k]].target[0].index % FORMAT_COMPONENTS != to[k])
            return 0;
    return count;
}

static void remove_pass(struct plan *plan, int k)
{
    plan->passes--;
    memmove(&plan->pass[k], &plan->pass[k + 1], (size_t)(plan->passes - k) * sizeof plan->pass[0]);
}

// The first of them stays.
static void join(struct plan *plan, const int pass[FORMAT_COMPONENTS], int count)
{
    struct plan_pass joined = plan->pass[pass[0]];
    joined.together = count;
    joined.source[0].joined = joined.target[0].joined = true;
    int first = pass[0];
    for (int k = 1; k < count; k++)
        first = pass[k] < first ? pass[k] : first;
    plan->pass[first] = joined;
    for (int k = plan->passes - 1; k > first; k--)
        for (int n = 0; n < count; n++)
            if (pass[n] == k) {
                remove_pass(plan, k);
                break;
            }
}

void plan_join_passes(struct plan *plan)
{
    for (int p = 0; p < plan->program->input.planes; p++) {
        int pass[FORMAT_COMPONENTS];
        int count = find_passes(plan, p, pass);
        if (count)
            join(plan, pass, count);
    }
}
