#include "plan/plan_buffers.h"

#include <stdlib.h>

static int last_read(const struct plan *plan, int buffer)
{
    int last = -1;
    for (int k = 0; k < plan->passes; k++)
        for (int s = 0; s < plan->pass[k].sources; s++)
            if (plan->pass[k].source[s].place == PLACE_BUFFER &&
                plan->pass[k].source[s].index == buffer)
                last = k;
    return last;
}

static void rename_buffers(struct plan *plan, const int *name)
{
    for (int k = 0; k < plan->passes; k++) {
        struct plan_pass *pass = &plan->pass[k];
        for (int s = 0; s < pass->sources; s++)
            if (pass->source[s].place == PLACE_BUFFER)
                pass->source[s].index = name[pass->source[s].index];
        for (int t = 0; t < pass->targets; t++)
            if (pass->target[t].place == PLACE_BUFFER)
                pass->target[t].index = name[pass->target[t].index];
    }
}

// Where a buffer goes: one that is kept, and the last pass that reads it.
struct share {
    struct plan_buffer kept;
    int busy_until;
};

static bool fits(const struct share *share, struct program_plane grid, int pass)
{
    struct program_plane kept = share->kept.grid;
    return share->busy_until < pass && kept.shift_x == grid.shift_x &&
           kept.shift_y == grid.shift_y && (kept.depth > 8) == (grid.depth > 8);
}

// The number of the kept buffer that takes `buffer`, which `pass` writes.
static int find_share(const struct plan *plan, struct share *share, int *shares, int buffer,
                      int pass)
{
    struct program_plane grid = plan->buffer[buffer].grid;
    int n = 0;
    while (n < *shares && !fits(&share[n], grid, pass))
        n++;
    if (n == *shares)
        share[(*shares)++].kept = plan->buffer[buffer];
    if (grid.depth > share[n].kept.grid.depth)
        share[n].kept.grid.depth = grid.depth;
    share[n].busy_until = last_read(plan, buffer);
    return n;
}

enum status plan_share_buffers(struct plan *plan)
{
    int shares = 0;
    struct share *share = calloc((size_t)plan->buffers + 1, sizeof *share);
    int *name = calloc((size_t)plan->buffers + 1, sizeof *name);
    enum status status = share && name ? STATUS_OK : STATUS_MEMORY;
    for (int k = 0; k < plan->passes && !status; k++) {
        const struct operand *target = plan->pass[k].target;
        if (plan->pass[k].targets && target->place == PLACE_BUFFER)
            name[target->index] = find_share(plan, share, &shares, target->index, k);
    }
    if (!status)
        rename_buffers(plan, name);
    for (int n = 0; n < shares; n++)
        plan->buffer[n] = share[n].kept;
    plan->buffers = status ? plan->buffers : shares;
    free(share);
    free(name);
    return status;
}
