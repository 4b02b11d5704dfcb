#include "plan/ladder.h"

#include <assert.h>
#include <stdlib.h>

void ladder_filter_init(struct ladder_filter *filter, const struct op_separable *op)
{
    assert(op->radius_x <= LADDER_RADIUS && op->radius_y == op->radius_x);
    assert(2 * op->bits - 2 == LADDER_SQUARE_BITS && !op->decimate_x && !op->amount);
    *filter = (struct ladder_filter){.column_shift = op->bits - op->fraction,
                                     .row_shift = op->bits + op->fraction};
    for (int k = -op->radius_x; k <= op->radius_x; k++)
        filter->tap[LADDER_RADIUS + k] = (uint32_t)op->tap_x[abs(k)];
    uint32_t rest = 1u << LADDER_SQUARE_BITS;
    for (int b = 0; b < LADDER_TAPS; b++)
        for (int a = 0; a < LADDER_TAPS; a++) {
            filter->weight[b][a] = (filter->tap[b] * filter->tap[a] + 2) >> 2;
            rest -= filter->weight[b][a];
        }
    filter->weight[LADDER_RADIUS][LADDER_RADIUS] += rest;
}
