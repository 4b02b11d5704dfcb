#include "kernels/executor/pass_constants.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct op_use pass_use(const struct plan_pass *pass, const struct pass_constants *constants, int n,
                       int width, int height)
{
    assert(n < pass_operations(pass));
    return {
        .op = pass->full_frame ? pass->full_frame : pass_stencil(pass, n),
        .next = pass_stencil(pass, n + 1),
        .depth = pass->full_frame ? pass->load_depth : stencil_depth(pass, n),
        .width = subsampled(width, pass->grid.shift_x),
        .height = subsampled(height, pass->grid.shift_y),
        .transform = constants->transform[n],
    };
}

// A stencil whose transform cannot be had is made without.
static enum status create_transforms(const struct plan *plan, int width, int height,
                                     const struct log *log, struct pass_constants *constants)
{
    for (int k = 0; k < plan->passes; k++)
        for (int n = 0; n < pass_stencils(&plan->pass[k]); n++) {
            struct op_use use = pass_use(&plan->pass[k], &constants[k], n, width, height);
            if (pass_step(&plan->pass[k], n)->transform &&
                op_kernels(use.op)->prepare(&use, log, &constants[k].transform[n]) == STATUS_MEMORY)
                return STATUS_MEMORY;
        }
    return STATUS_OK;
}

static struct lookup put_table(struct constants *constants, const struct plan_step *step)
{
    if (!step || !step->table)
        return {};
    size_t bytes = sizeof *step->table << step->depth_in;
    const uint16_t *device = (const uint16_t *)constants_put(constants, step->table, bytes);
    return lookup_of(step->table, step->depth_in, step->depth_out, device);
}

// The tables of a mix's sources, equal ones once: kernels may look up whole pixels by these.
static void put_before(struct constants *memory, const struct plan_pass *pass,
                       struct lookup before[3])
{
    for (int s = 0; s < pass->sources; s++) {
        const struct plan_step *own = &pass->before[s], *first = &pass->before[0];
        bool again = s > 0 && own->table && first->table && own->depth_in == first->depth_in &&
                     !memcmp(own->table, first->table, sizeof *own->table << own->depth_in);
        before[s] = again ? before[0] : put_table(memory, own);
    }
}

static void put_operation(struct constants *memory, const struct op_use *use,
                          struct op_constants *to)
{
    const struct op_kernels *row = op_kernels(use->op);
    *to = {};
    if (row->constants)
        row->constants(use, memory, to);
}

size_t pass_constants_put(struct pass_constants *constants, const struct plan *plan, int width,
                          int height, struct constants memory)
{
    for (int k = 0; k < plan->passes; k++) {
        const struct plan_pass *pass = &plan->pass[k];
        for (int n = 0; n <= STENCILS; n++)
            constants[k].lookup[n] = put_table(&memory, pass_table(pass, n));
        put_before(&memory, pass, constants[k].before);
        for (int n = 0; n < pass_operations(pass); n++) {
            struct op_use use = pass_use(pass, &constants[k], n, width, height);
            put_operation(&memory, &use, &constants[k].op[n]);
        }
    }
    return memory.used;
}

enum status pass_constants_create(const struct plan *plan, int width, int height,
                                  const struct log *log, struct pass_constants **constants)
{
    *constants = (struct pass_constants *)calloc((size_t)plan->passes + 1, sizeof **constants);
    return *constants ? create_transforms(plan, width, height, log, *constants) : STATUS_MEMORY;
}

void pass_constants_destroy(const struct plan *plan, struct pass_constants **constants)
{
    for (int k = 0; *constants && k < plan->passes; k++)
        for (int n = 0; n < STENCILS; n++)
            transform_destroy(&(*constants)[k].transform[n]);
    free(*constants);
    *constants = NULL;
}
