// OP_STATISTICS: each band counts its rows, then the counts are added.
#include "cpu/full_frame.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT, ADD, PHASES };

struct statistics_full_frame {
    struct full_frame base;
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

static inline void count_limited(const sample16 *row, int width, int depth, uint32_t most,
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
static void count_words(const struct full_frame_work *work, const sample16 *row,
                        struct counts *counts, struct statistics *part)
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

// Bytes: everything else follows from the histogram.
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

static void count_rows(const struct full_frame_work *work, int first, int last,
                       struct statistics *part)
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

static void make_band(struct statistics *part, const struct full_frame_work *work, int first,
                      int last)
{
    *part = (struct statistics){.low = UINT16_MAX};
    if (work->analysis)
        count_rows(work, first, last, part);
    for (int y = first; y < last && work->to; y++)
        full_frame_copy_row(work, y);
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

static void run(struct full_frame *full_frame, const struct full_frame_work *work, int phase,
                int band, int bands)
{
    struct statistics_full_frame *self = (struct statistics_full_frame *)full_frame;
    if (phase == COUNT) {
        make_band(&self->part[band], work, full_frame_band_row(work->height, band, bands),
                  full_frame_band_row(work->height, band + 1, bands));
    } else if (band == 0 && work->analysis) {
        struct statistics all = self->part[0];
        for (int k = 1; k < bands; k++)
            add(&all, &self->part[k]);
        memcpy(work->analysis, &all, sizeof all);
    }
}

static void destroy(struct full_frame **full_frame)
{
    free(((struct statistics_full_frame *)*full_frame)->part);
    free(*full_frame);
    *full_frame = NULL;
}

enum status statistics_create(const struct full_frame_request *request,
                              struct full_frame **full_frame)
{
    struct statistics_full_frame *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct full_frame){PHASES, run, destroy};
    self->part = calloc((size_t)request->bands, sizeof *self->part);
    *full_frame = &self->base;
    if (!self->part)
        destroy(full_frame);
    return *full_frame ? STATUS_OK : STATUS_MEMORY;
}
