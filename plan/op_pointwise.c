// Pointwise operations: a line, a threshold, a table.
#include "plan/op_info.h"

static int64_t clamp(int64_t value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static int apply_affine(const struct op *op, int x)
{
    const struct op_affine *f = &op->affine;
    return (int)clamp((x * f->gain + f->offset + 32768) >> 16, f->low, f->high);
}

static void apply_affine_all(const struct op *op, uint16_t *sample, size_t count)
{
    for (size_t k = 0; k < count; k++)
        sample[k] = (uint16_t)apply_affine(op, sample[k]);
}

static int apply_threshold(const struct op *op, int x)
{
    const struct op_threshold *f = &op->threshold;
    return x < f->low ? f->below : x > f->high ? f->above : x;
}

static void apply_threshold_all(const struct op *op, uint16_t *sample, size_t count)
{
    for (size_t k = 0; k < count; k++)
        sample[k] = (uint16_t)apply_threshold(op, sample[k]);
}

static int apply_table(const struct op *op, int x)
{
    return op->table.entry[x];
}

static void apply_table_all(const struct op *op, uint16_t *sample, size_t count)
{
    for (size_t k = 0; k < count; k++)
        sample[k] = (uint16_t)apply_table(op, sample[k]);
}

const struct op_info op_affine_info = {.name = "affine",
                                       .family = OP_FAMILY_POINTWISE,
                                       .apply = apply_affine,
                                       .apply_all = apply_affine_all};
const struct op_info op_threshold_info = {.name = "threshold",
                                          .family = OP_FAMILY_POINTWISE,
                                          .apply = apply_threshold,
                                          .apply_all = apply_threshold_all};
const struct op_info op_table_info = {.name = "table",
                                      .family = OP_FAMILY_POINTWISE,
                                      .apply = apply_table,
                                      .apply_all = apply_table_all};
