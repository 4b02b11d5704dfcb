#include "cpu/stream.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/fft.h"

// Rows of one level, held for the level above. Slot v mod `rows` holds row v of the extended plane.
struct window {
    int rows;
    int *row;             // which row each slot holds, INT_MIN: none
    const void **pointer; // to the sample of column 0
    uint8_t *memory;      // NULL while rows are only pointed at
    size_t stride;
    int reach;    // samples beyond both ends that the border rule fills
    size_t apron; // room for them, in bytes
};

// What a stencil computes from its window, besides its result.
struct separable {
    struct row_taps taps_x, taps_y;
    int16_t *lines;                // of both
    int first;                     // of the rows in t; INT_MIN: none
    int16_t *t[MAX_VERTICAL_ROWS]; // of OP_SEPARABLE less the bias, as many as are made at once
    uint16_t *blurred;             // what sharpening starts from
};

struct coarse {
    struct window grid;    // c of OP_SEPARABLE, 16 bits
    struct window blurred; // u, two rows
    uint32_t *sum;
};

struct box_state {
    int row; // that `sum` is for; INT_MIN: none
};

struct convolve_state {
    struct op_convolve op; // the stencil with weights as small as they can be
    int32_t *weights;
    struct convolve_tap *taps;
    int sums;         // 0: 32 bits, else of real[sums - 1]
    void *columns[2]; // sums of lines
    // By transforms: the results of a band of rows, as many as a tile makes.
    struct fft *fft; // NULL: not by these
    uint8_t *band;
    int band_row; // its first; INT_MIN: none
};

struct level {
    const struct plan_step *step; // NULL: the load
    int bytes;                    // of a sample of the result
    struct window window;         // of the level below; stencils only
    bool peeks;                   // it points into memory at rows without samples above their depth
    const void **pointers;        // scratch: one per window row
    void *scratch;                // aligned rows, laid out by the stencil
    size_t apron;                 // of scratch rows, in samples
    struct point point;           // steps that are tables
    uint16_t *loose_table;        // (optional) what `point` has for samples above their depth, too
    struct separable separable;
    struct coarse coarse;
    struct box_state box;
    struct convolve_state convolve;
};

struct stream {
    const struct plan *plan;
    const struct plan_pass *pass;
    const struct row_kernels *rows;
    int columns; // of the result, at most
    struct level *level;
    int levels;
    bool direct;        // level 0 points into memory ...
    bool loose;         // ... whose units may hold more than samples: pointwise steps limit them
    void *spare;        // rows of any sample type: results on their way to memory
    uint32_t *vertical; // mix: a source row resampled vertically
    int64_t *mixed;
    void *mix_rows[4];
    bool is_near; // the mix is one of rows that lie side by side, and fits 32 bits
    struct op_mix near;
    const void *constant_row;

    // ---- set by stream_run() ----
    const struct stream_memory *memory;
    int width, height; // of the result
};

static const size_t row_alignment = 64;

static size_t aligned(size_t bytes)
{
    return (bytes + row_alignment - 1) / row_alignment * row_alignment;
}

static void *row_alloc(size_t bytes)
{
    void *memory = NULL;
    // Kernels read whole vectors: up to one beyond the last sample.
    if (posix_memalign(&memory, row_alignment, aligned(bytes) + row_alignment))
        return NULL;
    memset(memory, 0, aligned(bytes) + row_alignment);
    return memory;
}

// Row k of memory for as many as are made at once, of any sample type.
static size_t scratch_stride(const struct stream *stream)
{
    return aligned((size_t)stream->columns * 2);
}

static void *scratch_row(const struct stream *stream, void *memory, int k)
{
    return (uint8_t *)memory + (size_t)k * scratch_stride(stream);
}

static void *scratch_alloc(const struct stream *stream)
{
    return row_alloc(scratch_stride(stream) * (size_t)stream->rows->rows_at_once);
}

static int sample_bytes(int depth)
{
    return depth > 8 ? 2 : 1;
}

// ---- windows ----

static enum status window_init(struct window *window, int rows, int columns, int bytes, int reach,
                               bool with_memory)
{
    window->rows = rows;
    window->reach = reach;
    window->apron = aligned((size_t)(reach * bytes));
    window->row = malloc((size_t)rows * sizeof *window->row);
    window->pointer = malloc((size_t)rows * sizeof *window->pointer);
    if (!window->row || !window->pointer)
        return STATUS_MEMORY;
    if (!with_memory)
        return STATUS_OK;
    window->stride = aligned((size_t)columns * (size_t)bytes + 2 * window->apron);
    window->memory = row_alloc(window->stride * (size_t)rows);
    return window->memory ? STATUS_OK : STATUS_MEMORY;
}

static size_t window_bytes(const struct window *window)
{
    return window->stride * (size_t)window->rows;
}

static void window_finish(struct window *window)
{
    free(window->row);
    free(window->pointer);
    free(window->memory);
}

static void window_forget(struct window *window)
{
    for (int k = 0; k < window->rows; k++)
        window->row[k] = INT_MIN;
}

static int window_slot(const struct window *window, int v)
{
    int slot = v % window->rows;
    return slot < 0 ? slot + window->rows : slot;
}

static void *window_memory(const struct window *window, int slot)
{
    return window->memory + (size_t)slot * window->stride + window->apron;
}

static void fill_row(void *row, int bytes, int width, int value)
{
    uint16_t *row16 = row;
    if (bytes == 1)
        memset(row, value, (size_t)width);
    else
        for (int x = 0; x < width; x++)
            row16[x] = (uint16_t)value;
}

// Fill `reach` samples on both sides of a row by the border rule.
static void extend_row(void *row_, int bytes, int width, int reach, enum border border, int value)
{
    uint8_t *row8 = row_;
    uint16_t *row16 = row_;
    if (border == BORDER_REPLICATE || border == BORDER_ZERO) {
        bool zero = border == BORDER_ZERO;
        int first = zero ? value : bytes == 1 ? row8[0] : row16[0];
        int last = zero ? value : bytes == 1 ? row8[width - 1] : row16[width - 1];
        fill_row(row8 - (ptrdiff_t)reach * bytes, bytes, reach, first);
        fill_row(row8 + (ptrdiff_t)width * bytes, bytes, reach, last);
        return;
    }
    for (int k = 0; k < 2 * reach; k++) {
        int x = k < reach ? k - reach : width + k - reach;
        int from = border_index(border, x, width);
        if (bytes == 1)
            row8[x] = row8[from];
        else
            row16[x] = row16[from];
    }
}

// Alike for sums of columns, `before` and `after` them.
static void extend_sums(uint32_t *sum, int width, int before, int after, enum border border,
                        uint32_t value)
{
    bool constant = border == BORDER_REPLICATE || border == BORDER_ZERO;
    uint32_t first = border == BORDER_ZERO ? value : sum[0];
    uint32_t last = border == BORDER_ZERO ? value : sum[width - 1];
    for (int x = -before; x < 0; x++)
        sum[x] = constant ? first : sum[border_index(border, x, width)];
    for (int x = width; x < width + after; x++)
        sum[x] = constant ? last : sum[border_index(border, x, width)];
}

// ---- level 0 ----

static const uint8_t *operand_row(const struct stream *stream, struct operand operand, int y,
                                  const struct component **at)
{
    const struct stream_memory *memory = stream->memory;
    static const struct component bytes = {.step = 1, .bytes = 1};
    static const struct component words = {
        .step = 2, .bytes = 2, .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    if (operand.place == PLACE_BUFFER) {
        *at = stream->plan->buffer[operand.index].grid.depth > 8 ? &words : &bytes;
        return memory->buffer[operand.index] + y * memory->buffer_stride[operand.index];
    }
    const struct image *image = operand.place == PLACE_INPUT
                                    ? memory->source
                                    : &memory->target[operand.index / FORMAT_COMPONENTS];
    *at = &image->format->component[operand.index % FORMAT_COMPONENTS];
    return image->data[(*at)->plane] + y * image->stride[(*at)->plane] + (*at)->offset;
}

// The shape that rows have between levels, so that they can be pointed at.
static bool is_plain(const struct stream *stream, struct operand operand, int depth)
{
    const struct component *at;
    switch (operand.place) {
    case PLACE_BUFFER:
        return (stream->plan->buffer[operand.index].grid.depth > 8) == (depth > 8);
    case PLACE_INPUT:
        at = &stream->plan->program->input.component[operand.index];
        break;
    case PLACE_OUTPUT:
        at = &program_format(stream->plan->program, operand.index / FORMAT_COMPONENTS)
                  ->component[operand.index % FORMAT_COMPONENTS];
        break;
    default:
        return false;
    }
    return component_is_plain(at, depth);
}

// Whether samples may be larger than their depth has them: those of the input only.
static bool is_loose(const struct stream *stream, struct operand operand)
{
    const struct format *input = &stream->plan->program->input;
    return operand.place == PLACE_INPUT &&
           component_is_loose(&input->component[operand.index], input->depth);
}

static void load_row(const struct stream *stream, int s, int y, void *to, int width)
{
    const struct plan_pass *pass = stream->pass;
    int bytes = sample_bytes(pass->source_grid[s].depth);
    if (pass->source[s].place == PLACE_CONSTANT) {
        fill_row(to, bytes, width, pass->source[s].index);
        return;
    }
    const struct component *at;
    const uint8_t *from = operand_row(stream, pass->source[s], y, &at);
    stream->rows->load[bytes - 1](from, at, max_sample(pass->source_grid[s].depth), to, width);
}

static int clamp_row(int y, int height)
{
    return y < 0 ? 0 : y >= height ? height - 1 : y;
}

// One source of a mix: the rows that make result row y, weighted in quarters, then the columns.
static void mix_source(struct stream *stream, int s, int y)
{
    const struct plan_pass *pass = stream->pass;
    const struct op_mix *mix = &pass->mix->mix;
    struct program_plane from = pass->source_grid[s], to = pass->grid;
    int up_x = from.shift_x - to.shift_x, up_y = from.shift_y - to.shift_y;
    const struct image *picture = stream->memory->source;
    int width = subsampled(picture->width, from.shift_x);
    int height = subsampled(picture->height, from.shift_y);
    int bytes = sample_bytes(from.depth), count = 2, first, weight[4];
    if (up_y >= 0) {
        int siting = mix->siting == SITING_TOP_LEFT ? 0 : 4 * ((1 << up_y) - 1);
        int position = (8 * y - siting) >> (up_y + 1);
        first = position >> 2;
        weight[0] = 4 - (position & 3);
        weight[1] = position & 3;
        count = weight[1] ? 2 : 1;
    } else {
        first = y << -up_y;
        count = 1 << -up_y;
        for (int k = 0; k < count; k++)
            weight[k] = 4 >> -up_y;
    }
    const void *row[4];
    for (int k = 0; k < count; k++) {
        load_row(stream, s, clamp_row(first + k, height), stream->mix_rows[k], width);
        row[k] = stream->mix_rows[k];
    }
    stream->rows->weigh[bytes - 1](row, weight, count, stream->vertical, width);
    stream->rows->mix_add(stream->vertical, width, up_x, mix->siting != SITING_CENTER,
                          mix->weight[s], stream->mixed, stream->width);
}

// Rows of the sources where all lie on the result's own grid.
static void mix_near_row(struct stream *stream, int y, void *to)
{
    const struct plan_pass *pass = stream->pass;
    const void *row[3] = {NULL};
    for (int s = 0; s < pass->sources; s++) {
        const struct component *at;
        if (is_plain(stream, pass->source[s], pass->source_grid[s].depth) &&
            !is_loose(stream, pass->source[s])) {
            row[s] = operand_row(stream, pass->source[s], y, &at);
        } else {
            load_row(stream, s, y, stream->mix_rows[s], stream->width);
            row[s] = stream->mix_rows[s];
        }
    }
    for (int s = pass->sources; s < 3; s++)
        row[s] = row[0];
    stream->rows->mix_near[sample_bytes(pass->load_depth) - 1](row, &stream->near, to,
                                                               stream->width);
}

static void mix_row(struct stream *stream, int y, void *to)
{
    const struct plan_pass *pass = stream->pass;
    if (stream->is_near) {
        mix_near_row(stream, y, to);
        return;
    }
    memset(stream->mixed, 0, (size_t)stream->width * sizeof *stream->mixed);
    for (int s = 0; s < pass->sources; s++)
        mix_source(stream, s, y);
    stream->rows->mix_finish[sample_bytes(pass->load_depth) - 1](stream->mixed, &pass->mix->mix, to,
                                                                 stream->width);
}

// ---- levels ----

static void make_rows(struct stream *stream, int level, int y, int count, void *const *to);

// Where rows first .. first + count - 1 of a window that only points are.
static void memory_rows(const struct stream *stream, const struct op *op, int first, int count,
                        const void **row)
{
    const struct component *at;
    struct operand source = stream->pass->source[0];
    const uint8_t *top = operand_row(stream, source, 0, &at);
    ptrdiff_t stride = operand_row(stream, source, 1, &at) - top;
    for (int k = 0; k < count; k++) {
        int y = first + k;
        if (y < 0 || y >= stream->height)
            y = border_index(op->border, y, stream->height);
        row[k] = y < 0 ? stream->constant_row : top + y * stride;
    }
}

// Row y as it lies in memory, or limited in `to` where a sample is above its depth.
static const void *peek_row(const struct stream *stream, int y, void *to)
{
    const struct component *at;
    const void *from = operand_row(stream, stream->pass->source[0], y, &at);
    uint16_t above = (uint16_t)~max_sample(stream->pass->load_depth);
    if (!stream->rows->any_bit(from, above, stream->width))
        return from;
    load_row(stream, 0, y, to, stream->width);
    return to;
}

// Make row v of the extended result of the level below and, within the picture, those of the
// `count` from it on that are best made with it.
static void fill_window(struct stream *stream, int level, int v, int count)
{
    struct level *here = &stream->level[level];
    struct window *window = &here->window;
    const struct op *op = here->step->stencil;
    int most = v >= 0 && v < stream->height ? min_int(count, stream->height - v) : 1;
    void *row[MAX_ROWS_AT_ONCE] = {NULL};
    count = min_int(most, stream->rows->rows_at_once);
    for (int k = 0; k < count; k++) {
        int slot = window_slot(window, v + k);
        row[k] = window_memory(window, slot);
        window->pointer[slot] = row[k];
        window->row[slot] = v + k;
    }
    int y = border_index(op->border, v, stream->height);
    if (y < 0) {
        fill_row(row[0], here->bytes, stream->width, op->border_value);
    } else if (here->peeks) {
        for (int k = 0; k < count; k++)
            window->pointer[window_slot(window, v + k)] = peek_row(stream, y + k, row[k]);
        return;
    } else {
        make_rows(stream, level - 1, y, count, row);
    }
    for (int k = 0; k < count; k++)
        extend_row(row[k], here->bytes, stream->width, window->reach, op->border, op->border_value);
}

// Rows first .. first + count - 1 of the extended result of the level below, from the window.
static void window_rows(struct stream *stream, int level, int first, int count, const void **row)
{
    struct window *window = &stream->level[level].window;
    if (!window->memory) {
        memory_rows(stream, stream->level[level].step->stencil, first, count, row);
        return;
    }
    int slot = window_slot(window, first);
    for (int k = 0; k < count; k++) {
        if (window->row[slot] != first + k)
            fill_window(stream, level, first + k, count - k);
        row[k] = window->pointer[slot];
        slot = slot + 1 == window->rows ? 0 : slot + 1;
    }
}

static const void *window_row(struct stream *stream, int level, int v)
{
    const void *row;
    window_rows(stream, level, v, 1, &row);
    return row;
}

// Rows that a vertical filter reads: of the window of the level below, or of the coarse grid.
typedef void row_source(struct stream *stream, int level, int first, int count, const void **row);

// t of OP_SEPARABLE for row y of a plane of `columns`, not extended. Rows are made several at once.
static int16_t *column_row(struct stream *stream, int level, int y, row_source *source, int columns)
{
    struct level *here = &stream->level[level];
    const struct op_separable *f = &here->step->stencil->separable;
    struct separable *made = &here->separable;
    bool coarse = f->decimate_x || f->decimate_y;
    int count = stream->rows->vertical_rows, b = coarse ? 1 : here->bytes - 1;
    if (y >= made->first && y - count < made->first)
        return made->t[y - made->first];
    int needed = 2 * f->radius_y + count;
    source(stream, level, y - f->radius_y, needed, here->pointers);
    for (int k = 0; k < count; k++)
        here->pointers[needed + k] = here->pointers[needed - 1];
    if (!coarse && !here->window.memory)
        memory_rows(stream, here->step->stencil, y + f->radius_y + count, count,
                    here->pointers + needed);
    stream->rows->vertical[b](here->pointers, &made->taps_y,
                              coarse ? f->bits : f->bits - f->fraction, made->t, columns);
    made->first = y;
    return made->t[0];
}

static void make_separable(struct stream *stream, int level, int y, void *to)
{
    struct level *here = &stream->level[level];
    const struct op *op = here->step->stencil;
    const struct op_separable *f = &op->separable;
    const struct row_kernels *rows = stream->rows;
    struct separable *made = &here->separable;
    int b = here->bytes - 1, width = stream->width, depth = here->step->depth_in;
    int16_t *t = column_row(stream, level, y, window_rows, width);
    extend_row(t, 2, width, f->radius_x, op->border,
               (op->border_value << f->fraction) - made->taps_x.bias);
    if (!f->amount) {
        rows->horizontal[b](t, &made->taps_x, f->bits + f->fraction, to, width);
        return;
    }
    rows->horizontal[1](t, &made->taps_x, f->bits + f->fraction - (16 - depth), made->blurred,
                        width);
    rows->sharpen[b](made->blurred, f, depth, window_row(stream, level, y), to, width);
}

static int last_on_grid(int length, int decimate)
{
    int d = 1 << decimate;
    return (length - 1 + d - 1) / d;
}

// Columns of the grid, from -radius_x to radius_x beyond the last one of the picture.
static int grid_columns(const struct stream *stream, const struct op_separable *f)
{
    return last_on_grid(stream->width, f->decimate_x) + 2 * f->radius_x + 1;
}

// Row n of the grid: tents around picture row n D. Its window begins at grid column -radius_x.
static const void *coarse_row(struct stream *stream, int level, int n)
{
    struct level *here = &stream->level[level];
    const struct op *op = here->step->stencil;
    const struct op_separable *f = &op->separable;
    int columns = grid_columns(stream, f);
    struct window *grid = &here->coarse.grid;
    int slot = window_slot(grid, n), dy = 1 << f->decimate_y, width = stream->width;
    uint16_t *to = window_memory(grid, slot);
    if (grid->row[slot] == n)
        return to;
    grid->row[slot] = n;
    // Columns from (-radius_x - 1) D on, which tent_finish() reads, to beyond the last one's tent.
    int apron = (f->radius_x + 1) << f->decimate_x;
    int reach = ((columns + 1) << f->decimate_x) - apron;
    uint32_t *sum = here->coarse.sum + apron;
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int b = 1 - dy; b < dy; b++)
        stream->rows->tent_add[here->bytes - 1](window_row(stream, level, n * dy + b),
                                                (uint32_t)(dy - abs(b)), sum, width);
    uint32_t beyond = (uint32_t)op->border_value * (uint32_t)(dy * dy);
    extend_sums(sum, width, apron, reach - width, op->border, beyond);
    stream->rows->tent_finish(here->coarse.sum, f->decimate_x, f->fraction,
                              2 * (f->decimate_x + f->decimate_y), to, columns);
    return to;
}

static void coarse_rows(struct stream *stream, int level, int first, int count, const void **row)
{
    for (int k = 0; k < count; k++)
        row[k] = coarse_row(stream, level, first + k);
}

// Row n of u, columns 0 to last_x.
static const uint16_t *blurred_row(struct stream *stream, int level, int n)
{
    struct level *here = &stream->level[level];
    const struct op_separable *f = &here->step->stencil->separable;
    struct window *blurred = &here->coarse.blurred;
    int slot = window_slot(blurred, n);
    uint16_t *to = window_memory(blurred, slot);
    if (blurred->row[slot] == n)
        return to;
    blurred->row[slot] = n;
    const int16_t *t = column_row(stream, level, n, coarse_rows, grid_columns(stream, f));
    stream->rows->horizontal[1](t + f->radius_x, &here->separable.taps_x, f->bits, to,
                                last_on_grid(stream->width, f->decimate_x) + 1);
    return to;
}

static void make_coarse(struct stream *stream, int level, int y, void *to)
{
    struct level *here = &stream->level[level];
    const struct op_separable *f = &here->step->stencil->separable;
    const struct row_kernels *rows = stream->rows;
    int n = y >> f->decimate_y, dy = 1 << f->decimate_y, fy = y & (dy - 1);
    int b = here->bytes - 1, width = stream->width, depth = here->step->depth_in;
    const uint16_t *above = blurred_row(stream, level, n);
    const uint16_t *below = fy ? blurred_row(stream, level, n + 1) : above;
    uint32_t *blended = here->coarse.sum;
    rows->blend(above, below, (uint32_t)(dy - fy), (uint32_t)fy, blended,
                last_on_grid(width, f->decimate_x) + 1);
    int shift = f->fraction + f->decimate_x + f->decimate_y;
    if (!f->amount) {
        rows->interpolate[b](blended, f->decimate_x, shift, to, width);
        return;
    }
    uint16_t *blurred = here->separable.blurred;
    rows->interpolate[1](blended, f->decimate_x, shift - (16 - depth), blurred, width);
    rows->sharpen[b](blurred, f, depth, window_row(stream, level, y), to, width);
}

static void make_box(struct stream *stream, int level, int y, void *to)
{
    struct level *here = &stream->level[level];
    const struct op *op = here->step->stencil;
    int rx = op->box.radius_x, ry = op->box.radius_y, width = stream->width;
    uint32_t *sum = (uint32_t *)here->scratch + here->apron;
    void (*slide)(const void *, const void *, uint32_t *, int) =
        stream->rows->box_slide[here->bytes - 1];
    if (here->box.row == y - 1) {
        const void *leaving = window_row(stream, level, y - ry - 1);
        slide(window_row(stream, level, y + ry), leaving, sum, width);
    } else {
        memset(sum, 0, (size_t)width * sizeof *sum);
        for (int v = y - ry; v <= y + ry; v++)
            slide(window_row(stream, level, v), NULL, sum, width);
    }
    here->box.row = y;
    extend_sums(sum, width, rx, rx, op->border,
                (uint32_t)op->border_value * (uint32_t)(2 * ry + 1));
    stream->rows->box_finish[here->bytes - 1](
        sum, rx, (2 * (int64_t)rx + 1) * (2 * (int64_t)ry + 1), to, width);
}

static void make_convolve_row(struct stream *stream, struct level *here, const void *const *row,
                              void *to)
{
    const struct row_kernels *rows = stream->rows;
    const struct op_convolve *f = &here->convolve.op;
    int b = here->bytes - 1, real = here->convolve.sums - 1, width = stream->width;
    if (!here->convolve.sums)
        rows->convolve[b](row, f, here->convolve.taps, to, width);
    else if (!f->rank)
        rows->convolve_real[real][b](row, f, to, width);
    for (int r = 0; r < f->rank; r++)
        rows->line_y[real][b](row, f->line_y[r], f->height, -f->origin_x, here->convolve.columns[r],
                              width + f->width - 1);
    if (f->rank)
        rows->line_x[real][b]((const void *const *)here->convolve.columns, f, to, width);
}

// Lay the samples of a tile whose first result is column `first`, of rows that reach as far as the
// kernel does; zeros beyond. They count from the middle of their range, which halves errors.
static void lay_tile(const struct stream *stream, struct level *here, int first, int rows)
{
    struct fft *fft = here->convolve.fft;
    int begin = first - here->convolve.op.origin_x, bytes = here->bytes;
    int end = stream->width + here->convolve.op.width - 1 - here->convolve.op.origin_x;
    int columns = min_int(fft_sample_columns(fft), end - begin);
    int middle = 1 << (here->step->depth_in - 1);
    for (int j = 0; j < fft_sample_rows(fft); j++) {
        double *to = fft_sample(fft, 0, j);
        const uint8_t *row8 = j < rows ? here->pointers[j] : NULL;
        const uint16_t *row16 = j < rows ? here->pointers[j] : NULL;
        memset(to, 0, (size_t)fft_sample_columns(fft) * sizeof *to);
        for (int i = 0; i < columns && j < rows; i++)
            to[i] = (bytes == 1 ? row8[begin + i] : row16[begin + i]) - middle;
    }
}

static void take_tile(const struct stream *stream, struct level *here, int first, int rows)
{
    const struct op_convolve *f = &here->convolve.op;
    int columns = min_int(fft_columns(here->convolve.fft), stream->width - first);
    int64_t middle = 0;
    for (int k = 0; k < f->width * f->height; k++)
        middle += f->weight[k];
    middle *= 1 << (here->step->depth_in - 1);
    for (int j = 0; j < rows; j++) {
        const double *from = fft_sample(here->convolve.fft, 0, j);
        uint8_t *to = here->convolve.band + (size_t)j * scratch_stride(stream);
        for (int i = 0; i < columns; i++) {
            int64_t s = (int64_t)from[i] + middle, y;
            s = f->absolute && s < 0 ? -s : s;
            y = f->base + ((s + f->offset) >> f->bits);
            y = y < f->low ? f->low : y > f->high ? f->high : y;
            if (here->bytes == 1)
                to[first + i] = (uint8_t)y;
            else
                ((uint16_t *)to)[first + i] = (uint16_t)y;
        }
    }
}

// Make the band of rows that begins at y, tile by tile.
static void make_band(struct stream *stream, int level, int y)
{
    struct level *here = &stream->level[level];
    const struct op_convolve *f = &here->convolve.op;
    int rows = min_int(fft_rows(here->convolve.fft), stream->height - y);
    window_rows(stream, level, y - f->origin_y, rows + f->height - 1, here->pointers);
    for (int x = 0; x < stream->width; x += fft_columns(here->convolve.fft)) {
        lay_tile(stream, here, x, rows + f->height - 1);
        fft_run(here->convolve.fft);
        take_tile(stream, here, x, rows);
    }
    here->convolve.band_row = y;
}

static void make_transform(struct stream *stream, int level, int y, void *to)
{
    struct level *here = &stream->level[level];
    struct convolve_state *state = &here->convolve;
    if (state->band_row == INT_MIN || y < state->band_row ||
        y - state->band_row >= fft_rows(state->fft))
        make_band(stream, level, y);
    memcpy(to, state->band + (size_t)(y - state->band_row) * scratch_stride(stream),
           (size_t)stream->width * (size_t)here->bytes);
}

static void make_convolve(struct stream *stream, int level, int y, int count, void *const *to)
{
    struct level *here = &stream->level[level];
    const struct op_convolve *f = &here->convolve.op;
    for (int k = 0; k < count && here->convolve.fft; k++)
        make_transform(stream, level, y + k, to[k]);
    if (here->convolve.fft)
        return;
    window_rows(stream, level, y - f->origin_y, f->height - 1 + count, here->pointers);
    for (int k = 0; k < count; k++)
        make_convolve_row(stream, here, here->pointers + k, to[k]);
}

// With the step `after` (optional) of POINT_RANGES on it.
static void make_gradient(struct stream *stream, int level, const struct point *after, int y,
                          int count, void *const *to)
{
    struct level *here = &stream->level[level];
    const struct op_gradient *f = &here->step->stencil->gradient;
    window_rows(stream, level, y - 1, 2 + count, here->pointers);
    stream->rows->gradient[here->bytes - 1](here->pointers, f, after, to, count, stream->width);
}

static void make_stencil(struct stream *stream, int level, int y, int count, void *const *to)
{
    const struct op *op = stream->level[level].step->stencil;
    bool coarse =
        op->kind == OP_SEPARABLE && (op->separable.decimate_x || op->separable.decimate_y);
    if (op->kind == OP_CONVOLVE)
        make_convolve(stream, level, y, count, to);
    else if (op->kind == OP_GRADIENT)
        make_gradient(stream, level, NULL, y, count, to);
    else
        for (int k = 0; k < count; k++)
            if (op->kind == OP_BOX)
                make_box(stream, level, y + k, to[k]);
            else if (coarse)
                make_coarse(stream, level, y + k, to[k]);
            else
                make_separable(stream, level, y + k, to[k]);
}

// Whether the step of a level is made with the one below it: what is not worth a row of its own.
static bool joins_gradient(const struct stream *stream, int level)
{
    const struct level *here = &stream->level[level];
    const struct op *below = level > 1 ? here[-1].step->stencil : NULL;
    return below && below->kind == OP_GRADIENT && here->bytes == here[-1].bytes &&
           here->point.kind == POINT_RANGES;
}

static void make_points(struct stream *stream, int level, int y, int count, void *const *to)
{
    struct level *here = &stream->level[level];
    if (joins_gradient(stream, level)) {
        make_gradient(stream, level - 1, &here->point, y, count, to);
        return;
    }
    const struct row_kernels *rows = stream->rows;
    int from_bytes = sample_bytes(here->step->depth_in);
    const struct component *at;
    const void *from[MAX_ROWS_AT_ONCE] = {NULL};
    void *made[MAX_ROWS_AT_ONCE] = {NULL};
    bool points = level == 1 && stream->direct;
    for (int k = 0; k < count; k++) {
        made[k] = scratch_row(stream, here->scratch, k);
        from[k] = points ? operand_row(stream, stream->pass->source[0], y + k, &at) : made[k];
    }
    if (!points)
        make_rows(stream, level - 1, y, count, made);
    for (int k = 0; k < count; k++)
        if (from_bytes == here->bytes)
            rows->point[here->bytes - 1](from[k], &here->point, to[k], stream->width);
        else if (from_bytes == 1)
            rows->widen(from[k], here->point.table, to[k], stream->width);
        else
            rows->narrow(from[k], here->point.table, to[k], stream->width);
}

// Make rows y .. y + count - 1 of a level's result, all within the picture, at most as many as the
// kernels make at once.
static void make_rows(struct stream *stream, int level, int y, int count, void *const *to)
{
    if (level > 0 && stream->level[level].step->stencil)
        make_stencil(stream, level, y, count, to);
    else if (level > 0)
        make_points(stream, level, y, count, to);
    else
        for (int k = 0; k < count; k++)
            if (stream->pass->mix)
                mix_row(stream, y + k, to[k]);
            else
                load_row(stream, 0, y + k, to[k], stream->width);
}

static void store_row(struct stream *stream, const void *row, int y)
{
    const struct plan_pass *pass = stream->pass;
    int bytes = sample_bytes(pass->grid.depth);
    for (int t = 0; t < pass->targets; t++) {
        const struct component *at;
        uint8_t *to = (uint8_t *)operand_row(stream, pass->target[t], y, &at);
        stream->rows->store[bytes - 1](row, at, to, stream->width);
    }
}

void stream_run(struct stream *stream, const struct stream_memory *memory, int first, int last)
{
    const struct plan_pass *pass = stream->pass;
    stream->memory = memory;
    stream->width = subsampled(memory->source->width, pass->grid.shift_x);
    stream->height = subsampled(memory->source->height, pass->grid.shift_y);
    for (int k = 0; k < stream->levels; k++) {
        window_forget(&stream->level[k].window);
        window_forget(&stream->level[k].coarse.grid);
        window_forget(&stream->level[k].coarse.blurred);
        stream->level[k].separable.first = INT_MIN;
        stream->level[k].box.row = INT_MIN;
        stream->level[k].convolve.band_row = INT_MIN;
    }
    bool in_place = pass->targets == 1 && is_plain(stream, pass->target[0], pass->grid.depth);
    // Without a stencil rows cost so little that they are best written one by one.
    int most = pass->halo_y > 0 ? stream->rows->rows_at_once : 1;
    for (int y = first; y < last; y += most) {
        const struct component *at;
        int count = min_int(most, last - y);
        void *row[MAX_ROWS_AT_ONCE];
        for (int k = 0; k < count; k++)
            row[k] = in_place ? (void *)operand_row(stream, pass->target[0], y + k, &at)
                              : scratch_row(stream, stream->spare, k);
        make_rows(stream, stream->levels - 1, y, count, row);
        for (int k = 0; k < count && !in_place; k++)
            store_row(stream, row[k], y + k);
    }
}

// ---- construction ----

// Lay the taps out as a line, where they fit. Returns the end of its memory.
static int16_t *init_taps(struct row_taps *taps, const int32_t *tap, int radius, int bits, int bias,
                          int16_t *line)
{
    *taps = (struct row_taps){.tap = tap, .radius = radius, .bits = bits, .bias = bias};
    line += ROW_TAPS_MARGIN;
    for (int k = -radius; k <= radius && bits <= 15; k++)
        line[radius + k] = (int16_t)tap[abs(k)];
    if (bits <= 15 && tap[0] <= INT16_MAX)
        taps->line = line;
    return line + 2 * radius + 1 + ROW_TAPS_MARGIN;
}

// `columns` of t, with `apron` samples on both sides and room for kernels that read whole vectors.
static enum status init_columns(struct stream *stream, struct level *here, int columns,
                                size_t apron)
{
    const struct op_separable *f = &here->step->stencil->separable;
    struct separable *made = &here->separable;
    size_t taps = 2 * (size_t)(f->radius_x + f->radius_y + 1 + 2 * ROW_TAPS_MARGIN);
    size_t stride = aligned(((size_t)columns + 2 * apron + 1) * sizeof(int16_t));
    int rows = stream->rows->vertical_rows;
    made->lines = row_alloc(taps * sizeof(int16_t));
    made->blurred = row_alloc((size_t)stream->columns * sizeof(uint16_t));
    here->scratch = row_alloc(stride * (size_t)rows);
    if (!made->lines || !made->blurred || !here->scratch)
        return STATUS_MEMORY;
    for (int k = 0; k < rows; k++)
        made->t[k] = (int16_t *)((uint8_t *)here->scratch + (size_t)k * stride) + apron;
    bool coarse = f->decimate_x || f->decimate_y;
    int bias = coarse || here->step->depth_in + f->fraction > 14 ? 32768 : 0;
    int16_t *rest = init_taps(&made->taps_x, f->tap_x, f->radius_x, f->bits, bias, made->lines);
    init_taps(&made->taps_y, f->tap_y, f->radius_y, f->bits, bias, rest);
    return STATUS_OK;
}

static enum status init_separable(struct stream *stream, struct level *here)
{
    const struct op_separable *f = &here->step->stencil->separable;
    return init_columns(stream, here, stream->columns, aligned((size_t)f->radius_x));
}

static enum status init_coarse(struct stream *stream, struct level *here)
{
    const struct op_separable *f = &here->step->stencil->separable;
    int columns = last_on_grid(stream->columns, f->decimate_x) + 2 * f->radius_x + 1;
    size_t sums = ((size_t)columns + 2) << f->decimate_x;
    if (sums < (size_t)stream->columns)
        sums = (size_t)stream->columns;
    sums += (size_t)(f->radius_x + 1) << f->decimate_x;
    here->coarse.sum = row_alloc(sums * sizeof *here->coarse.sum);
    if (!here->coarse.sum)
        return STATUS_MEMORY;
    int rows = 2 * f->radius_y + stream->rows->vertical_rows;
    enum status status = window_init(&here->coarse.grid, rows, columns, 2, 0, true);
    if (!status)
        status = window_init(&here->coarse.blurred, 2, columns, 2, 0, true);
    return status ? status : init_columns(stream, here, columns, 0);
}

static enum status init_box(struct stream *stream, struct level *here)
{
    here->apron = aligned((size_t)here->step->stencil->box.radius_x);
    here->scratch = row_alloc(((size_t)stream->columns + 2 * here->apron) * sizeof(uint32_t));
    return here->scratch ? STATUS_OK : STATUS_MEMORY;
}

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

static enum status init_transform(struct stream *stream, struct convolve_state *state)
{
    enum status status = fft_create(&state->op, stream->columns, &state->fft);
    if (status)
        return status;
    state->band = row_alloc(scratch_stride(stream) * (size_t)fft_rows(state->fft));
    return state->band ? STATUS_OK : STATUS_MEMORY;
}

// Bytes are summed in 32 bits where these do, others in single precision where that does, which
// multiplies faster.
static enum status init_convolve(struct stream *stream, struct level *here)
{
    const struct op_convolve *f = &here->step->stencil->convolve;
    struct convolve_state *state = &here->convolve;
    state->op = *f;
    if (here->step->transform)
        return init_transform(stream, state);
    enum status status = f->rank ? STATUS_OK : init_weights(state, f);
    if (status)
        return status;
    int64_t most = op_convolve_max(&state->op, here->step->depth_in);
    bool in_words = !f->rank && most <= INT32_MAX;
    if (most < 1 << 24 && !(in_words && here->bytes == 1))
        state->sums = 1;
    else if (!in_words)
        state->sums = 2;
    for (int r = 0; r < f->rank; r++) {
        state->columns[r] = row_alloc((size_t)(stream->columns + f->width) * sizeof(double));
        if (!state->columns[r])
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static void finish_convolve(struct convolve_state *state)
{
    fft_destroy(&state->fft);
    free(state->band);
    free(state->weights);
    free(state->taps);
    for (int r = 0; r < 2; r++)
        free(state->columns[r]);
}

// How many rows of the level below a stencil holds at once.
static int window_height(const struct stream *stream, const struct plan_step *step)
{
    const struct op *op = step->stencil;
    if (step->transform)
        return op_convolve_transform_side(op->convolve.height, fft_size);
    switch (op->kind) {
    case OP_SEPARABLE:
        if (op->separable.decimate_x || op->separable.decimate_y)
            return 2 << op->separable.decimate_y;
        return 2 * op->separable.radius_y + stream->rows->vertical_rows;
    case OP_BOX:
        return 2 * op->box.radius_y + 2;
    case OP_CONVOLVE:
        return op->convolve.height - 1 + stream->rows->rows_at_once;
    default:
        return 2 * op_radius_y(op) + stream->rows->rows_at_once;
    }
}

static enum status init_stencil(struct stream *stream, int level)
{
    struct level *here = &stream->level[level];
    const struct op *op = here->step->stencil;
    // Stencils that read neighbours along the row need its ends extended.
    int reach = op->kind == OP_CONVOLVE || op->kind == OP_GRADIENT ? op_radius_x(op) : 0;
    bool direct = level == 1 && stream->direct && reach == 0;
    bool points = direct && !stream->loose;
    int rows = window_height(stream, here->step), pointers = rows;
    bool coarse =
        op->kind == OP_SEPARABLE && (op->separable.decimate_x || op->separable.decimate_y);
    if (coarse)
        pointers = 2 * op->separable.radius_y + stream->rows->vertical_rows;
    pointers += stream->rows->vertical_rows;
    here->peeks = direct && stream->loose;
    here->pointers = malloc((size_t)pointers * sizeof *here->pointers);
    if (!here->pointers ||
        window_init(&here->window, rows, stream->columns, here->bytes, reach, !points))
        return STATUS_MEMORY;
    switch (op->kind) {
    case OP_SEPARABLE:
        return coarse ? init_coarse(stream, here) : init_separable(stream, here);
    case OP_BOX:
        return init_box(stream, here);
    case OP_CONVOLVE:
        return init_convolve(stream, here);
    default:
        return STATUS_OK;
    }
}

// Samples that may be above their depth are looked up as they are: in a table of all that 16 bits
// hold, where a minimum for each took a fifth of the speed.
static enum status init_loose_table(struct level *here)
{
    int entries = 1 << 16, most = here->point.most;
    here->loose_table = malloc((size_t)entries * sizeof *here->loose_table);
    if (!here->loose_table)
        return STATUS_MEMORY;
    for (int x = 0; x < entries; x++)
        here->loose_table[x] = here->step->table[min_int(x, most)];
    here->point.table = here->loose_table;
    return STATUS_OK;
}

static enum status init_point(struct stream *stream, struct level *here)
{
    here->point = point_of_step(here->step);
    if (stream->direct && stream->loose && here == &stream->level[1] && init_loose_table(here))
        return STATUS_MEMORY;
    here->scratch = scratch_alloc(stream);
    return here->scratch ? STATUS_OK : STATUS_MEMORY;
}

static enum status init_levels(struct stream *stream)
{
    const struct plan_pass *pass = stream->pass;
    stream->level[0].bytes = sample_bytes(pass->load_depth);
    for (int k = 1; k < stream->levels; k++) {
        struct level *here = &stream->level[k];
        here->step = &pass->step[k - 1];
        here->bytes = sample_bytes(here->step->depth_out);
        enum status status = STATUS_OK;
        if (here->step->stencil)
            status = init_stencil(stream, k);
        else
            status = init_point(stream, here);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static bool is_near(const struct stream *stream)
{
    const struct plan_pass *pass = stream->pass;
    const struct op_mix *mix = &pass->mix->mix;
    int64_t most = llabs(mix->offset) / 16 + (1 << 16);
    for (int s = 0; s < pass->sources; s++) {
        struct program_plane from = pass->source_grid[s];
        if (from.shift_x != pass->grid.shift_x || from.shift_y != pass->grid.shift_y ||
            sample_bytes(from.depth) != sample_bytes(pass->load_depth))
            return false;
        most += (int64_t)abs(mix->weight[s]) << from.depth;
    }
    return most <= INT32_MAX;
}

static enum status init_mix(struct stream *stream, int width)
{
    stream->is_near = is_near(stream);
    stream->near = stream->pass->mix->mix;
    for (int s = stream->pass->sources; s < 3; s++)
        stream->near.weight[s] = 0;
    stream->vertical = row_alloc((size_t)width * sizeof *stream->vertical);
    stream->mixed = row_alloc((size_t)width * sizeof *stream->mixed);
    if (!stream->vertical || !stream->mixed)
        return STATUS_MEMORY;
    for (int k = 0; k < 4; k++)
        if (!(stream->mix_rows[k] = row_alloc((size_t)width * 2)))
            return STATUS_MEMORY;
    return STATUS_OK;
}

// A row of the border value of the first stencil, for windows that only point.
static enum status init_constant_row(struct stream *stream)
{
    const struct plan_step *step = stream->levels > 1 ? stream->level[1].step : NULL;
    void *row = row_alloc((size_t)stream->columns * 2);
    if (!row)
        return STATUS_MEMORY;
    if (step && step->stencil)
        fill_row(row, sample_bytes(step->depth_in), stream->columns, step->stencil->border_value);
    stream->constant_row = row;
    return STATUS_OK;
}

enum status stream_create(const struct plan *plan, const struct plan_pass *pass, int width,
                          const struct row_kernels *rows, struct stream **stream)
{
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return STATUS_MEMORY;
    struct stream *made = *stream;
    made->plan = plan;
    made->pass = pass;
    made->rows = rows;
    made->columns = subsampled(width, pass->grid.shift_x);
    made->levels = pass->steps + 1;
    made->direct = !pass->mix && is_plain(made, pass->source[0], pass->load_depth);
    made->loose = is_loose(made, pass->source[0]);
    made->level = calloc((size_t)made->levels, sizeof *made->level);
    made->spare = scratch_alloc(made);
    if (!made->level || !made->spare || init_levels(made) || init_constant_row(made) ||
        (pass->mix && init_mix(made, width))) {
        stream_destroy(stream);
        return STATUS_MEMORY;
    }
    return STATUS_OK;
}

void stream_destroy(struct stream **stream)
{
    if (!*stream)
        return;
    for (int k = 0; (*stream)->level && k < (*stream)->levels; k++) {
        struct level *level = &(*stream)->level[k];
        window_finish(&level->window);
        window_finish(&level->coarse.grid);
        window_finish(&level->coarse.blurred);
        free(level->separable.lines);
        free(level->separable.blurred);
        free(level->loose_table);
        free(level->pointers);
        finish_convolve(&level->convolve);
        free(level->scratch);
        free(level->coarse.sum);
    }
    free((*stream)->level);
    free((*stream)->spare);
    free((*stream)->vertical);
    free((*stream)->mixed);
    for (int k = 0; k < 4; k++)
        free((*stream)->mix_rows[k]);
    free((void *)(*stream)->constant_row);
    free(*stream);
    *stream = NULL;
}

size_t stream_bytes(const struct stream *stream)
{
    size_t bytes = sizeof *stream;
    for (int k = 0; k < stream->levels; k++) {
        const struct level *here = &stream->level[k];
        bytes += window_bytes(&here->window) + window_bytes(&here->coarse.grid) +
                 window_bytes(&here->coarse.blurred);
        if (here->convolve.fft)
            bytes += fft_bytes(here->convolve.fft) +
                     scratch_stride(stream) * (size_t)fft_rows(here->convolve.fft);
    }
    return bytes;
}
