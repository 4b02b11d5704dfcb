// OP_CONVOLVE: products, sums of lines, or Fourier transforms tile by tile.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/convolve_bytes.h"
#include "cpu/fft.h"
#include "cpu/row_level.h"

struct convolve_state {
    struct op_convolve op; // the stencil with weights as small as they can be
    int32_t *weights;
    struct convolve_tap *taps;
    struct convolve_bytes *form; // (optional) what it is by products of bytes
    const void **pointers;       // to the rows of the window
    int sums;                    // 0: 32 bits, else of real[sums - 1]
    void *columns[2];            // sums of lines
    struct word_lines *lines;    // (optional) as which it is made
    // By transforms: the results of a band of rows, as many as a tile makes.
    struct fft *fft; // NULL: not by these
    uint8_t *band;
    int band_row; // its first; INT_MIN: none
};

static int window_rows(const struct row_pipeline *pipeline, const struct plan_step *step)
{
    int height = step->stencil->convolve.height;
    if (step->transform)
        return op_convolve_transform_side(height, fft_size);
    return height - 1 +
           (step->stencil->convolve.words ? pipeline->rows->vertical_rows + 1
                                          : pipeline->rows->rows_at_once);
}

// ---- lines of words ----

// Rows of t, as many as are made at once, from column -origin_x on.
struct word_lines {
    struct row_taps taps_x[2], taps_y[2];
    int16_t *memory; // taps' lines, and t
    int16_t *t[2][MAX_VERTICAL_ROWS];
    int first; // row of t; INT_MIN: none
};

static void make_t(struct row_pipeline *pipeline, int level, int y)
{
    const struct row_level *here = &pipeline->level[level];
    const struct convolve_state *state = here->state;
    const struct op_convolve *f = &state->op;
    struct word_lines *lines = state->lines;
    int count = pipeline->rows->vertical_rows, rows = (f->height | 1) - 1 + count;
    row_level_window(pipeline, level, y - f->origin_y, rows, state->pointers);
    for (int k = 0; k < rows; k++)
        state->pointers[k] =
            (const uint8_t *)state->pointers[k] - (ptrdiff_t)f->origin_x * here->bytes;
    for (int k = 0; k < count; k++)
        state->pointers[rows + k] = state->pointers[rows - 1];
    for (int r = 0; r < f->rank; r++)
        pipeline->rows->words_y[here->bytes - 1](state->pointers, &lines->taps_y[r],
                                                 f->column_shift, lines->t[r],
                                                 pipeline->width + f->width - 1);
    lines->first = y;
}

static void make_from_lines(struct row_pipeline *pipeline, int level, int y, void *to)
{
    const struct row_level *here = &pipeline->level[level];
    const struct convolve_state *state = here->state;
    const struct word_lines *lines = state->lines;
    if (y < lines->first || y - pipeline->rows->vertical_rows >= lines->first)
        make_t(pipeline, level, y);
    const int16_t *t[2] = {lines->t[0][y - lines->first], lines->t[1][y - lines->first]};
    pipeline->rows->words_x[here->bytes - 1](t, lines->taps_x, &state->op, to, pipeline->width);
}

// Lay a line out between zeros. Returns the end of its memory.
static int16_t *init_word_taps(struct row_taps *taps, const int32_t *line, int count, int16_t *to)
{
    to += ROW_TAPS_MARGIN;
    *taps = (struct row_taps){.radius = count / 2, .line = to};
    for (int k = 0; k < count; k++) {
        to[k] = (int16_t)line[k];
        taps->sum += line[k];
    }
    return to + count + 1 + ROW_TAPS_MARGIN;
}

static enum status init_lines(const struct row_pipeline *pipeline, struct convolve_state *state)
{
    const struct op_convolve *f = &state->op;
    struct word_lines *lines = state->lines = calloc(1, sizeof *lines);
    if (!lines)
        return STATUS_MEMORY;
    int count = pipeline->rows->vertical_rows;
    size_t taps = 2 * (size_t)(f->width + f->height + 2 * (1 + 2 * ROW_TAPS_MARGIN));
    size_t all_taps = row_aligned(taps * sizeof(int16_t)), room = row_aligned(64);
    size_t stride = row_aligned((size_t)(pipeline->columns + f->width) * sizeof(int16_t)) + room;
    lines->memory = row_alloc(all_taps + 2 * (size_t)count * stride);
    lines->first = INT_MIN;
    if (!lines->memory)
        return STATUS_MEMORY;
    int16_t *line = lines->memory;
    uint8_t *t = (uint8_t *)lines->memory + all_taps;
    for (int r = 0; r < f->rank; r++) {
        line = init_word_taps(&lines->taps_x[r], f->line_x[r], f->width, line);
        line = init_word_taps(&lines->taps_y[r], f->line_y[r], f->height, line);
    }
    for (int k = 0; k < 2 * count; k++, t += stride)
        lines->t[k / count][k % count] = (int16_t *)t;
    return STATUS_OK;
}

// ---- rows ----

static void make_convolve_row(struct row_pipeline *pipeline, const struct row_level *here,
                              const void *const *row, void *to)
{
    const struct convolve_state *state = here->state;
    const struct row_kernels *rows = pipeline->rows;
    const struct op_convolve *f = &state->op;
    int b = here->bytes - 1, real = state->sums - 1, width = pipeline->width;
    if (state->form && width >= rows->convolve_bytes_width)
        rows->convolve_bytes(row, state->form, to, width);
    else if (!state->sums)
        rows->convolve[b](row, f, state->taps, to, width);
    else if (!f->rank)
        rows->convolve_real[real][b](row, f, to, width);
    for (int r = 0; r < f->rank; r++)
        rows->line_y[real][b](row, f->line_y[r], f->height, -f->origin_x, state->columns[r],
                              width + f->width - 1);
    if (f->rank)
        rows->line_x[real][b]((const void *const *)state->columns, f, to, width);
}

// Lay the samples of a tile whose first result is column `first`, of rows that reach as far as the
// kernel does; zeros beyond. They count from the middle of their range, which halves errors.
static void lay_tile(const struct row_pipeline *pipeline, const struct row_level *here, int first,
                     int rows)
{
    const struct convolve_state *state = here->state;
    struct fft *fft = state->fft;
    int begin = first - state->op.origin_x, bytes = here->bytes;
    int end = pipeline->width + state->op.width - 1 - state->op.origin_x;
    int columns = min_int(fft_sample_columns(fft), end - begin);
    int middle = 1 << (here->step->depth_in - 1);
    for (int j = 0; j < fft_sample_rows(fft); j++) {
        double *to = fft_sample(fft, 0, j);
        const uint8_t *row8 = j < rows ? state->pointers[j] : NULL;
        const sample16 *row16 = j < rows ? state->pointers[j] : NULL;
        memset(to, 0, (size_t)fft_sample_columns(fft) * sizeof *to);
        for (int i = 0; i < columns && j < rows; i++)
            to[i] = (bytes == 1 ? row8[begin + i] : row16[begin + i]) - middle;
    }
}

static void take_tile(const struct row_pipeline *pipeline, const struct row_level *here, int first,
                      int rows)
{
    const struct convolve_state *state = here->state;
    const struct op_convolve *f = &state->op;
    int columns = min_int(fft_columns(state->fft), pipeline->width - first);
    int64_t middle = 0;
    for (int k = 0; k < f->width * f->height; k++)
        middle += f->weight[k];
    middle *= 1 << (here->step->depth_in - 1);
    for (int j = 0; j < rows; j++) {
        const double *from = fft_sample(state->fft, 0, j);
        uint8_t *to = state->band + (size_t)j * row_scratch_stride(pipeline);
        for (int i = 0; i < columns; i++) {
            int64_t s = (int64_t)from[i] + middle, y;
            s = f->absolute && s < 0 ? -s : s;
            y = f->base + ((s + f->offset) >> f->bits);
            y = y < f->low ? f->low : y > f->high ? f->high : y;
            if (here->bytes == 1)
                to[first + i] = (uint8_t)y;
            else
                ((sample16 *)to)[first + i] = (uint16_t)y;
        }
    }
}

// Make the band of rows that begins at y, tile by tile.
static void make_band(struct row_pipeline *pipeline, int level, int y)
{
    const struct row_level *here = &pipeline->level[level];
    struct convolve_state *state = here->state;
    const struct op_convolve *f = &state->op;
    int rows = min_int(fft_rows(state->fft), pipeline->height - y);
    row_level_window(pipeline, level, y - f->origin_y, rows + f->height - 1, state->pointers);
    for (int x = 0; x < pipeline->width; x += fft_columns(state->fft)) {
        lay_tile(pipeline, here, x, rows + f->height - 1);
        fft_run(state->fft);
        take_tile(pipeline, here, x, rows);
    }
    state->band_row = y;
}

static void make_transform(struct row_pipeline *pipeline, int level, int y, void *to)
{
    const struct row_level *here = &pipeline->level[level];
    struct convolve_state *state = here->state;
    if (state->band_row == INT_MIN || y < state->band_row ||
        y - state->band_row >= fft_rows(state->fft))
        make_band(pipeline, level, y);
    memcpy(to, state->band + (size_t)(y - state->band_row) * row_scratch_stride(pipeline),
           (size_t)pipeline->width * (size_t)here->bytes);
}

static void make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    const struct row_level *here = &pipeline->level[level];
    struct convolve_state *state = here->state;
    const struct op_convolve *f = &state->op;
    for (int k = 0; k < count && state->fft; k++)
        make_transform(pipeline, level, y + k, to[k]);
    for (int k = 0; k < count && state->lines; k++)
        make_from_lines(pipeline, level, y + k, to[k]);
    if (state->fft || state->lines)
        return;
    row_level_window(pipeline, level, y - f->origin_y, f->height - 1 + count, state->pointers);
    for (int k = 0; k < count; k++)
        make_convolve_row(pipeline, here, state->pointers + k, to[k]);
}

// ---- construction ----

// Weights that all divide by 2 say the same with a bit less of fraction, and smaller sums.
static enum status init_weights(struct convolve_state *state, const struct op_convolve *f)
{
    int count = f->width * f->height, shift = 0;
    int32_t all = 0;
    for (int k = 0; k < count; k++)
        all |= f->weight[k];
    while (shift < f->bits && !(all >> shift & 1))
        shift++;
    state->weights = malloc((size_t)count * sizeof *state->weights);
    state->taps = malloc((size_t)(count + 1) * sizeof *state->taps);
    if (!state->weights || !state->taps)
        return STATUS_MEMORY;
    for (int k = 0; k < count; k++)
        state->weights[k] = f->weight[k] >> shift;
    state->op.weight = state->weights;
    state->op.bits -= shift;
    state->op.offset >>= shift;
    return STATUS_OK;
}

static enum status init_form(struct convolve_state *state)
{
    state->form = malloc(sizeof *state->form);
    if (!state->form)
        return STATUS_MEMORY;
    if (!convolve_bytes_find(&state->op, state->form)) {
        free(state->form);
        state->form = NULL;
    }
    return STATUS_OK;
}

static enum status init_transform(struct row_pipeline *pipeline, struct convolve_state *state)
{
    enum status status = fft_create(pipeline->plan->limits.transform_library, &state->op,
                                    pipeline->columns, &state->fft);
    if (status)
        return status;
    state->band = row_alloc(row_scratch_stride(pipeline) * (size_t)fft_rows(state->fft));
    return state->band ? STATUS_OK : STATUS_MEMORY;
}

// Lines are made of words where these do. Weights one by one are summed in 32 bits where these do,
// other lines in single precision where that does, the rest in double.
static enum status init(struct row_pipeline *pipeline, int level)
{
    struct row_level *here = &pipeline->level[level];
    const struct op_convolve *f = &here->step->stencil->convolve;
    struct convolve_state *state = here->state = calloc(1, sizeof *state);
    if (!state)
        return STATUS_MEMORY;
    state->op = *f;
    size_t pointers = (size_t)(window_rows(pipeline, here->step) + pipeline->rows->vertical_rows);
    state->pointers = malloc(pointers * sizeof *state->pointers);
    if (!state->pointers)
        return STATUS_MEMORY;
    if (here->step->transform)
        return init_transform(pipeline, state);
    if (f->words)
        return init_lines(pipeline, state);
    enum status status = f->rank ? STATUS_OK : init_weights(state, f);
    if (status)
        return status;
    int64_t most = op_convolve_max(&state->op, here->step->depth_in);
    bool in_words = !f->rank && most <= INT32_MAX;
    if (most < 1 << 24 && !in_words)
        state->sums = 1;
    else if (!in_words)
        state->sums = 2;
    if (!state->sums && here->bytes == 1 && pipeline->rows->convolve_bytes && init_form(state))
        return STATUS_MEMORY;
    for (int r = 0; r < f->rank; r++) {
        state->columns[r] = row_alloc((size_t)(pipeline->columns + f->width) * sizeof(double));
        if (!state->columns[r])
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static void restart(void *state_)
{
    struct convolve_state *state = state_;
    state->band_row = INT_MIN;
    if (state->lines)
        state->lines->first = INT_MIN;
}

static void finish(void *state_)
{
    struct convolve_state *state = state_;
    fft_destroy(&state->fft);
    free(state->band);
    free(state->weights);
    free(state->taps);
    free(state->form);
    free(state->pointers);
    if (state->lines)
        free(state->lines->memory);
    free(state->lines);
    for (int r = 0; r < 2; r++)
        free(state->columns[r]);
    free(state);
}

static size_t bytes(const struct row_pipeline *pipeline, const void *state_)
{
    const struct convolve_state *state = state_;
    return state->fft
               ? fft_bytes(state->fft) + row_scratch_stride(pipeline) * (size_t)fft_rows(state->fft)
               : 0;
}

const struct row_family rows_convolve = {.reads_along = true,
                                         .window_rows = window_rows,
                                         .init = init,
                                         .finish = finish,
                                         .restart = restart,
                                         .make = make,
                                         .bytes = bytes};
