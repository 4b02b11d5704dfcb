// OP_STATISTICS: each band counts its rows, then the counts are added.
#include "cpu/whole.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT, ADD, PHASES };

struct statistics_whole {
    struct whole base;
    struct statistics *part; // of each band
};

static int sample(const void *row, int bytes, int x)
{
    return bytes == 1 ? ((const uint8_t *)row)[x] : ((const uint16_t *)row)[x];
}

// Histograms by turns: a sample need not wait until the one before it, of the same value, is
// counted.
static void count_row(const void *row, int bytes, int width, int shift, struct statistics *part)
{
    uint32_t count[2][STATISTICS_BINS] = {0};
    int low = UINT16_MAX, high = 0;
    uint64_t sum = 0, squares = 0;
    for (int x = 0; x < width; x++) {
        int value = sample(row, bytes, x);
        low = value < low ? value : low;
        high = value > high ? value : high;
        sum += (uint64_t)value;
        squares += (uint64_t)value * (uint64_t)value;
        count[x & 1][value >> shift]++;
    }
    part->low = low < part->low ? low : part->low;
    part->high = high > part->high ? high : part->high;
    part->sum += sum;
    part->squares += squares;
    for (int k = 0; k < STATISTICS_BINS; k++)
        part->bin[k] += (uint64_t)count[0][k] + count[1][k];
}

static void count_band(struct statistics *part, const struct whole_work *work, int first, int last)
{
    int bytes = work->depth > 8 ? 2 : 1;
    *part = (struct statistics){.low = UINT16_MAX};
    for (int y = first; y < last; y++) {
        const uint8_t *row = (const uint8_t *)work->from + y * work->from_stride;
        if (work->side)
            count_row(row, bytes, work->width, work->depth - 8, part);
        if (work->to)
            memcpy((uint8_t *)work->to + y * work->to_stride, row,
                   (size_t)work->width * (size_t)bytes);
    }
}

static void add(struct statistics *to, const struct statistics *part)
{
    to->low = part->low < to->low ? part->low : to->low;
    to->high = part->high > to->high ? part->high : to->high;
    to->sum += part->sum;
    to->squares += part->squares;
    for (int k = 0; k < STATISTICS_BINS; k++)
        to->bin[k] += part->bin[k];
}

static void run(struct whole *whole, const struct whole_work *work, int phase, int band, int bands)
{
    struct statistics_whole *self = (struct statistics_whole *)whole;
    if (phase == COUNT) {
        count_band(&self->part[band], work, whole_band_row(work->height, band, bands),
                   whole_band_row(work->height, band + 1, bands));
    } else if (band == 0 && work->side) {
        struct statistics all = self->part[0];
        for (int k = 1; k < bands; k++)
            add(&all, &self->part[k]);
        memcpy(work->side, &all, sizeof all);
    }
}

static void destroy(struct whole **whole)
{
    free(((struct statistics_whole *)*whole)->part);
    free(*whole);
    *whole = NULL;
}

enum status statistics_create(const struct whole_request *request, struct whole **whole)
{
    struct statistics_whole *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct whole){PHASES, run, destroy};
    self->part = calloc((size_t)request->bands, sizeof *self->part);
    *whole = &self->base;
    if (!self->part)
        destroy(whole);
    return *whole ? STATUS_OK : STATUS_MEMORY;
}
