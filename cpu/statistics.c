// OP_STATISTICS: each band counts its rows, then the counts are added.
#include "cpu/whole.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT, ADD, PHASES };

struct statistics_whole {
    struct whole base;
    struct statistics *part; // of each band
};

// Histograms by turns: a sample need not wait until the one before it, of the same value, is
// counted.
enum { TURNS = 4 };

struct counts {
    uint32_t bin[TURNS][STATISTICS_BINS];
};

static void count_bytes(const uint8_t *row, int width, struct counts *counts)
{
    int x = 0;
    for (; x + TURNS <= width; x += TURNS)
        for (int k = 0; k < TURNS; k++)
            counts->bin[k][row[x + k]]++;
    for (; x < width; x++)
        counts->bin[0][row[x]]++;
}

static inline void count_limited(const uint16_t *row, int width, int depth, uint32_t most,
                                 struct counts *counts, struct statistics *part)
{
    const int shift = depth - 8;
    uint32_t low = UINT16_MAX, high = 0;
    uint64_t sum = 0, squares = 0;
    for (int x = 0; x < width; x++) {
        uint32_t value = most == UINT16_MAX || row[x] < most ? row[x] : most;
        low = value < low ? value : low;
        high = value > high ? value : high;
        sum += value;
        squares += (uint64_t)value * value;
        counts->bin[x % TURNS][value >> shift]++;
    }
    part->low = low < part->low ? low : part->low;
    part->high = high > part->high ? high : part->high;
    part->sum += sum;
    part->squares += squares;
}

// Samples are limited in rows that have some above their depth: looking costs less.
static void count_words(const struct whole_work *work, const uint16_t *row, struct counts *counts,
                        struct statistics *part)
{
    uint16_t most = (uint16_t)max_sample(work->depth);
    if (work->rows->any_bit(row, (uint16_t)~most, work->width))
        count_limited(row, work->width, work->depth, most, counts, part);
    else
        count_limited(row, work->width, work->depth, UINT16_MAX, counts, part);
}

static void add_counts(const struct counts *counts, struct statistics *part)
{
    for (int k = 0; k < STATISTICS_BINS; k++)
        for (int turn = 0; turn < TURNS; turn++)
            part->bin[k] += counts->bin[turn][k];
}

// Of bytes the histogram tells everything else.
static void read_histogram(struct statistics *part)
{
    for (int k = 0; k < STATISTICS_BINS; k++) {
        uint64_t samples = part->bin[k], value = (uint64_t)k;
        if (!samples)
            continue;
        part->low = k < part->low ? k : part->low;
        part->high = k;
        part->sum += samples * value;
        part->squares += samples * value * value;
    }
}

static void count_rows(const struct whole_work *work, int first, int last, struct statistics *part)
{
    struct counts counts = {0};
    for (int y = first; y < last; y++) {
        const void *row = (const uint8_t *)work->from + y * work->from_stride;
        if (work->depth > 8)
            count_words(work, row, &counts, part);
        else
            count_bytes(row, work->width, &counts);
    }
    add_counts(&counts, part);
    if (work->depth <= 8)
        read_histogram(part);
}

static void make_band(struct statistics *part, const struct whole_work *work, int first, int last)
{
    *part = (struct statistics){.low = UINT16_MAX};
    if (work->analysis)
        count_rows(work, first, last, part);
    for (int y = first; y < last && work->to; y++)
        whole_copy_row(work, y);
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
        make_band(&self->part[band], work, whole_band_row(work->height, band, bands),
                  whole_band_row(work->height, band + 1, bands));
    } else if (band == 0 && work->analysis) {
        struct statistics all = self->part[0];
        for (int k = 1; k < bands; k++)
            add(&all, &self->part[k]);
        memcpy(work->analysis, &all, sizeof all);
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
