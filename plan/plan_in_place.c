// Which plans may write their picture over its source.
#include "plan/plan.h"

// True if a pass makes a row from the same row alone.
static bool keeps_to_rows(const struct plan_pass *pass)
{
    return !pass->mix && !pass->full_frame && !plan_pass_has_stencil(pass);
}

// True if an operand is component `c` of its picture, or has it.
static bool has(const struct plan *plan, struct operand operand, int c)
{
    const struct component *of = plan->program->input.component;
    int index = operand.index % FORMAT_COMPONENTS;
    return index == c || (operand.joined && of[index].plane == of[c].plane);
}

static bool reads(const struct plan *plan, const struct plan_pass *pass, int component)
{
    for (int s = 0; s < pass->sources; s++)
        if (pass->source[s].place == PLACE_INPUT && has(plan, pass->source[s], component))
            return true;
    return false;
}

// True if what pass `k` writes over `component` is not read any more.
static bool may_overwrite(const struct plan *plan, int k, int component)
{
    if (reads(plan, &plan->pass[k], component) && !keeps_to_rows(&plan->pass[k]))
        return false;
    for (int later = k + 1; later < plan->passes; later++)
        if (reads(plan, &plan->pass[later], component))
            return false;
    return true;
}

bool plan_is_in_place(const struct plan *plan)
{
    const struct program *program = plan->program;
    if (program->tees || !format_same_storage(&program->input, &program->output))
        return false;
    for (int p = 0; p < program->output.planes; p++) {
        const struct plan_plane *plane = &plan->picture[0].plane[p];
        if (plane->origin == PLANE_REFERENCE && plane->source != p)
            return false;
    }
    for (int k = 0; k < plan->passes; k++)
        for (int t = 0; t < plan->pass[k].targets; t++) {
            struct operand target = plan->pass[k].target[t];
            for (int c = 0; c < FORMAT_COMPONENTS && target.place == PLACE_OUTPUT; c++)
                if (has(plan, target, c) && !may_overwrite(plan, k, c))
                    return false;
        }
    return true;
}
