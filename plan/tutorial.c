#include "plan/tutorial.h"

#include <assert.h>
#include <stdlib.h>

void tutorial_filter_init(struct tutorial_filter *filter, const struct op_separable *op)
{
    assert(op->radius_x <= TUTORIAL_RADIUS && op->radius_y == op->radius_x);
    assert(2 * op->bits - 2 == TUTORIAL_SQUARE_BITS && !op->decimate_x && !op->amount);
    *filter = (struct tutorial_filter){.column_shift = op->bits - op->fraction,
                                       .row_shift = op->bits + op->fraction};
    for (int k = -op->radius_x; k <= op->radius_x; k++)
        filter->tap[TUTORIAL_RADIUS + k] = (uint32_t)op->tap_x[abs(k)];
    uint32_t rest = 1u << TUTORIAL_SQUARE_BITS;
    for (int b = 0; b < TUTORIAL_TAPS; b++)
        for (int a = 0; a < TUTORIAL_TAPS; a++) {
            filter->weight[b][a] = (filter->tap[b] * filter->tap[a] + 2) >> 2;
            rest -= filter->weight[b][a];
        }
    filter->weight[TUTORIAL_RADIUS][TUTORIAL_RADIUS] += rest;
}
