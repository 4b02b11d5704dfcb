// Sums of products of OP_MATCH: directly, or by Fourier transforms.
#include <assert.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/match.h"

// ---- the rows of a picture ----

void match_band_places(const struct match_full_frame *self, const struct match_pattern *pattern,
                       int band, int *first, int *end)
{
    int middle = pattern->template->height / 2;
    *first = max_int(full_frame_band_row(self->height, band, self->bands) - middle, 0);
    *end =
        min_int(full_frame_band_row(self->height, band + 1, self->bands) - middle, pattern->rows);
    if (band == self->bands - 1)
        *end = pattern->rows;
}

static void load_squares(const uint8_t *from, uint8_t *high, uint8_t *low, int width)
{
    for (int x = 0; x < width; x++) {
        high[x] = (uint8_t)(from[x] * from[x] >> 8);
        low[x] = (uint8_t)(from[x] * from[x]);
    }
}

static void load_row(const struct match_full_frame *self, struct match_band *band,
                     const uint8_t *from, int row)
{
    uint8_t *at[PARTS];
    for (int p = 0; p < PARTS; p++)
        at[p] = band->part[p] ? band->part[p] + row * self->part_stride : NULL;
    self->rows->match_load(from, at[PART_SAMPLES], self->width);
    if (!at[PART_HIGH])
        return;
    uint8_t *high = (uint8_t *)band->scores, *low = high + self->width;
    load_squares(from, high, low, self->width);
    self->rows->match_load(high, at[PART_HIGH], self->width);
    self->rows->match_load(low, at[PART_LOW], self->width);
}

void match_load_rows(const struct match_full_frame *self, const struct full_frame_work *work,
                     int number)
{
    struct match_band *band = &self->band[number];
    int first = self->height, end = 0;
    for (int k = 0; k < self->op->count; k++) {
        int begin, stop;
        match_band_places(self, &self->pattern[k], number, &begin, &stop);
        if (begin >= stop)
            continue;
        first = min_int(first, begin);
        end = max_int(end, stop - 1 + self->pattern[k].template->height);
    }
    band->first = first;
    for (int y = first; y < end && band->part[PART_SAMPLES]; y++)
        load_row(self, band, match_row(work, y), y - first);
}

// ---- sums of products ----

// MATCH_ROWS rows of places from y on, of one slab.
static void slab_products(const struct match_full_frame *self, struct match_band *band,
                          const struct match_pattern *pattern, enum match_sum sum,
                          enum match_part part, int slab, int y)
{
    const struct match_correlation *how = &pattern->correlation[sum];
    int rows = min_int(how->slab_rows, pattern->template->height - slab * how->slab_rows);
    const uint8_t *from = band->part[part];
    for (int j = 0; j < rows + MATCH_ROWS - 1; j++) {
        int row = min_int(y + slab * how->slab_rows + j, self->height - 1);
        band->row[j] = from + (row - band->first) * self->part_stride;
    }
    const int32_t *taps =
        how->taps + (ptrdiff_t)slab * (how->slab_rows + 2 * MATCH_ROWS - 2) * how->words;
    self->rows->match_products(band->row, taps, how->words, rows, band->products, pattern->columns);
}

// Add `factor` times what slabs give to rows of sums.
static void add_slabs(const struct match_full_frame *self, struct match_band *band,
                      const struct match_pattern *pattern, enum match_sum sum, enum match_part part,
                      double factor, int y)
{
    const struct match_correlation *how = &pattern->correlation[sum];
    for (int slab = 0; slab < how->slabs; slab++) {
        slab_products(self, band, pattern, sum, part, slab, y);
        for (int r = 0; r < MATCH_ROWS; r++) {
            double *to = band->sums[sum] + (size_t)r * self->sums_stride;
            for (int x = 0; x < pattern->columns; x++)
                to[x] += factor * band->products[r][x];
        }
    }
}

static void sum_slabs(const struct match_full_frame *self, struct match_band *band,
                      const struct match_pattern *pattern, enum match_sum sum, int y)
{
    memset(band->sums[sum], 0, MATCH_ROWS * self->sums_stride * sizeof *band->sums[sum]);
    if (sum == SUM_SQUARES) {
        add_slabs(self, band, pattern, sum, PART_HIGH, 256, y);
        add_slabs(self, band, pattern, sum, PART_LOW, 1, y);
    } else {
        add_slabs(self, band, pattern, sum, PART_SAMPLES, 1, y);
    }
}

// One tile of samples, or of their squares, zeros beyond the picture.
static void fill_tile(const struct match_full_frame *self, const struct full_frame_work *work,
                      struct fft *fft, bool squares, int x, int y)
{
    int columns = fft_sample_columns(fft), inside = min_int(columns, self->width - x);
    for (int j = 0; j < fft_sample_rows(fft); j++) {
        double *to = fft_sample(fft, 0, j);
        const uint8_t *from = match_row(work, y + j) + x;
        int count = y + j < self->height ? inside : 0;
        for (int i = 0; i < count; i++)
            to[i] = squares ? from[i] * from[i] : from[i];
        memset(to + count, 0, (size_t)(columns - count) * sizeof *to);
    }
}

// As many rows of sums as a tile gives, tile by tile.
static void sum_tiles(const struct match_full_frame *self, const struct full_frame_work *work,
                      struct match_band *band, int number, enum match_sum sum, int y)
{
    struct fft *fft = band->fft[number * SUMS + (int)sum];
    int columns = self->pattern[number].columns;
    for (int x = 0; x < columns; x += fft_columns(fft)) {
        fill_tile(self, work, fft, sum == SUM_SQUARES, x, y);
        fft_run(fft);
        size_t count = (size_t)min_int(fft_columns(fft), columns - x);
        for (int j = 0; j < fft_rows(fft); j++)
            memcpy(band->sums[sum] + (size_t)j * self->sums_stride + x, fft_sample(fft, 0, j),
                   count * sizeof(double));
    }
}

int match_rows_together(const struct match_full_frame *self, const struct match_band *band,
                        int number)
{
    const struct match_pattern *pattern = &self->pattern[number];
    return pattern->transforms ? fft_rows(band->fft[number * SUMS]) : MATCH_ROWS;
}

void match_make_sums(const struct match_full_frame *self, const struct full_frame_work *work,
                     struct match_band *band, int number, int y)
{
    const struct match_pattern *pattern = &self->pattern[number];
    assert(y >= 0 && y < pattern->rows);
    if (pattern->narrow && !pattern->transforms) {
        slab_products(self, band, pattern, SUM_PRODUCTS, PART_SAMPLES, 0, y);
        return;
    }
    for (int s = 0; s < (pattern->template->mask ? SUMS : 1); s++) {
        if (pattern->transforms)
            sum_tiles(self, work, band, number, (enum match_sum)s, y);
        else
            sum_slabs(self, band, pattern, (enum match_sum)s, y);
    }
}
