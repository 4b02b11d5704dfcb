#include "cpu/rows/point.h"

// Entries in a row, from `first` in direction `step`, that equal the first of them.
static int equal_run(const uint16_t *table, int first, int step, int entries)
{
    int count = 1;
    while (count < entries && table[first + count * step] == table[first])
        count++;
    return count;
}

// True if entries low .. high go up (down) by one each.
static bool has_slope(const uint16_t *table, int low, int high, int slope)
{
    for (int x = low + 1; x <= high; x++)
        if (table[x] != table[x - 1] + slope)
            return false;
    return true;
}

// A constant at both ends and a slope of 1 or -1 between them.
static bool find_ranges(const struct plan_step *step, struct point *point)
{
    if (step->depth_in != step->depth_out)
        return false;
    int entries = 1 << step->depth_in, last = entries - 1;
    const uint16_t *table = step->table;
    int low = equal_run(table, 0, 1, last),
        high = last - equal_run(table, last, -1, last - low + 1);
    bool up = has_slope(table, low, high, 1);
    if (!up && !has_slope(table, low, high, -1))
        return false;
    int flip = up ? 0 : last;
    *point = (struct point){.kind = POINT_RANGES,
                            .low = low,
                            .high = high,
                            .below = table[0],
                            .above = table[last],
                            .flip = flip,
                            .add = high < low ? 0 : table[low] - (low ^ flip)};
    return true;
}

static bool find_affine(const struct plan_step *step, struct point *point)
{
    const struct op_affine *f = &step->folded[0]->affine;
    int64_t most = ((int64_t)1 << step->depth_in) - 1, offset = f->offset + 32768;
    if (step->folded_count != 1 || step->folded[0]->kind != OP_AFFINE || offset > INT32_MAX ||
        offset < INT32_MIN || f->gain > INT32_MAX || f->gain < INT32_MIN ||
        most * f->gain + offset > INT32_MAX || most * f->gain + offset < INT32_MIN)
        return false;
    *point = (struct point){.kind = POINT_AFFINE,
                            .low = f->low,
                            .high = f->high,
                            .gain = (int)f->gain,
                            .offset = (int)offset};
    return true;
}

struct point point_of_step(const struct plan_step *step)
{
    struct point point = {.kind = POINT_TABLE};
    if (!find_ranges(step, &point))
        find_affine(step, &point);
    point.table = step->table;
    point.most = max_sample(step->depth_in);
    return point;
}
