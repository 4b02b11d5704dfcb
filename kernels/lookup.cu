// Arithmetic for tables: the GPU computes what it would have to look up.
#include <assert.h>

#include "kernels/launch.h"

static int table_apply(const struct lookup *lookup, int x)
{
    if (lookup->kind == LOOKUP_THRESHOLD)
        return x < lookup->low ? lookup->below : x > lookup->high ? lookup->above : x;
    int64_t y = ((int64_t)x * lookup->gain + lookup->offset) >> 16;
    return y < lookup->low ? lookup->low : y > lookup->high ? lookup->high : (int)y;
}

static bool gives(const struct lookup *lookup, const uint16_t *host, int entries)
{
    for (int x = 0; x < entries; x++)
        if (table_apply(lookup, x) != host[x])
            return false;
    return true;
}

// One value up to somewhere, another from somewhere on, unchanged between.
static bool fit_threshold(struct lookup *lookup, const uint16_t *host, int entries)
{
    int low = 1, high = entries - 2;
    while (low < entries && host[low] == host[0])
        low++;
    while (high >= low && host[high] == host[entries - 1])
        high--;
    lookup->kind = LOOKUP_THRESHOLD;
    lookup->low = low;
    lookup->high = high;
    lookup->below = host[0];
    lookup->above = host[entries - 1];
    return gives(lookup, host, entries);
}

// The offsets that are right with this gain at the places first .. last.
static void limit_offset(const uint16_t *host, int first, int last, int64_t gain, int64_t *min,
                         int64_t *max)
{
    for (int x = first; x <= last && *min <= *max; x++) {
        int64_t from = ((int64_t)host[x] << 16) - x * gain, to = from + 65535;
        *min = from > *min ? from : *min;
        *max = to < *max ? to : *max;
    }
}

// Gains near the slope between the ends of the part that is not clamped, with an offset each that
// has no more than `bits`.
static bool fit_affine(struct lookup *lookup, const uint16_t *host, int entries, int bits)
{
    int first = 0, last = entries - 1, low = host[0], high = host[0];
    for (int x = 0; x < entries; x++) {
        low = host[x] < low ? host[x] : low;
        high = host[x] > high ? host[x] : high;
    }
    while (first < entries - 2 && host[first + 1] == host[0])
        first++;
    while (last > first + 1 && host[last - 1] == host[entries - 1])
        last--;
    // The ends themselves may be clamped: the slope is that of the inside.
    int inside = last - first > 4 ? 1 : 0, left = first + inside, right = last - inside;
    int64_t slope = ((int64_t)(host[right] - host[left]) * 65536) / (right - left);
    int64_t reach = 65536 / (right - left) + 1;
    lookup->kind = LOOKUP_AFFINE;
    lookup->low = low;
    lookup->high = high;
    for (int64_t k = 0; k <= 2 * reach; k++) {
        int64_t gain = slope + (k % 2 ? (k + 1) / 2 : -k / 2);
        int64_t min = -(INT64_C(1) << bits), max = INT64_C(1) << bits;
        limit_offset(host, left, right, gain, &min, &max);
        if (min > max || gain > 1 << 22 || gain < -(1 << 22))
            continue;
        lookup->gain = (int)gain;
        lookup->offset = min + (max - min) / 2;
        if (gives(lookup, host, entries))
            return true;
    }
    return false;
}

struct lookup lookup_of(const uint16_t *host, int depth_in, int depth_out, const uint16_t *table)
{
    assert(depth_in > 0 && depth_in <= 16 && depth_out > 0 && depth_out <= 16);
    struct lookup lookup = {.table = table};
    int offset_bits = depth_in == 8 && depth_out == 8 ? 30 : 40;
    if (fit_threshold(&lookup, host, 1 << depth_in) ||
        fit_affine(&lookup, host, 1 << depth_in, offset_bits))
        return lookup;
    return {.table = table};
}
