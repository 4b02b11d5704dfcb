#include "cpu/scalar.h"

#include <stdlib.h>

#include "cpu/sample.h"
#include "cpu/scalar_plane.h"

static enum status plane_init(struct plane *plane, int width, int height)
{
    plane->width = width;
    plane->height = height;
    plane->sample = malloc((size_t)width * (size_t)height * sizeof *plane->sample + 1);
    return plane->sample ? STATUS_OK : STATUS_MEMORY;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t rounded_shift(int64_t value, int bits)
{
    return bits ? (value + (INT64_C(1) << (bits - 1))) >> bits : value;
}

static void run_pointwise(const struct op *op, const struct plane *from, struct plane *to)
{
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++)
            *plane_at(to, x, y) = (uint16_t)op_apply(op, *plane_at(from, x, y));
}

// ---- mix ----

// Along one axis: which source samples make result sample `i`, and how many quarters of each.
struct taps {
    int first, count;
    int weight[4];
};

// The source's grid is 2^up times coarser than the result's (finer when negative).
static struct taps resampling_taps(int i, int up, bool cosited)
{
    if (up < 0) {
        int width = 1 << -up, each = 4 >> -up;
        return (struct taps){i * width, width, {each, each, each, each}};
    }
    // (i - s) / width in quarters, s = 0 or (width - 1) / 2, rounded down.
    int width = 1 << up;
    int position = (8 * i - (cosited ? 0 : 4 * (width - 1))) >> (up + 1);
    return (struct taps){position >> 2, 2, {4 - (position & 3), position & 3}};
}

// v_k of OP_MIX.
static int resampled_q4(const struct op *op, const struct plane *from,
                        const struct program_plane *a, const struct program_plane *b, int x, int y)
{
    struct taps tx = resampling_taps(x, a->shift_x - b->shift_x, op->mix.siting != SITING_CENTER);
    struct taps ty = resampling_taps(y, a->shift_y - b->shift_y, op->mix.siting == SITING_TOP_LEFT);
    int sum = 0;
    for (int j = 0; j < ty.count; j++)
        for (int i = 0; i < tx.count; i++)
            sum += tx.weight[i] * ty.weight[j] *
                   *plane_at(from, border_index(BORDER_REPLICATE, tx.first + i, from->width),
                             border_index(BORDER_REPLICATE, ty.first + j, from->height));
    return sum;
}

static void run_mix(const struct program *program, const struct op *op, const struct plane *planes)
{
    const struct plane *to = &planes[op->result];
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++) {
            int64_t sum = op->mix.offset;
            for (int k = 0; k < op->sources; k++)
                sum += (int64_t)op->mix.weight[k] * resampled_q4(op, &planes[op->source[k]],
                                                                 &program->plane[op->source[k]],
                                                                 &program->plane[op->result], x, y);
            *plane_at(to, x, y) =
                (uint16_t)clamp(rounded_shift(sum, 20), op->mix.low, op->mix.high);
        }
}

// ---- separable ----

// A grid of values that reaches beyond the picture: columns first_x .. , rows first_y ..
struct grid {
    int first_x, first_y, width, height;
    int64_t *value;
};

static enum status grid_init(struct grid *grid, int first_x, int last_x, int first_y, int last_y)
{
    *grid = (struct grid){first_x, first_y, last_x - first_x + 1, last_y - first_y + 1, NULL};
    grid->value = malloc((size_t)grid->width * (size_t)grid->height * sizeof *grid->value);
    return grid->value ? STATUS_OK : STATUS_MEMORY;
}

static int64_t *grid_at(const struct grid *grid, int x, int y)
{
    return &grid->value[(size_t)(y - grid->first_y) * (size_t)grid->width +
                        (size_t)(x - grid->first_x)];
}

// c of OP_SEPARABLE at (m, n): the tent-weighted sum around a grid point.
static int64_t tent_sum(const struct op *op, const struct plane *from, int m, int n)
{
    const struct op_separable *f = &op->separable;
    int dx = 1 << f->decimate_x, dy = 1 << f->decimate_y;
    int64_t sum = 0;
    for (int b = 1 - dy; b < dy; b++)
        for (int a = 1 - dx; a < dx; a++)
            sum += (int64_t)(dx - abs(a)) * (dy - abs(b)) *
                   plane_extended(from, op, m * dx + a, n * dy + b);
    return sum;
}

// The four grid samples around picture column x and row y, linearly interpolated; times Dx Dy.
static int64_t interpolated(const struct op_separable *f, const struct grid *grid, int x, int y)
{
    int dx = 1 << f->decimate_x, dy = 1 << f->decimate_y;
    int m = x >> f->decimate_x, n = y >> f->decimate_y, fx = x & (dx - 1), fy = y & (dy - 1);
    int64_t sum = 0;
    for (int b = 0; b < (fy ? 2 : 1); b++)
        for (int a = 0; a < (fx ? 2 : 1); a++)
            sum += (int64_t)(a ? fx : dx - fx) * (b ? fy : dy - fy) * *grid_at(grid, m + a, n + b);
    return sum;
}

// The blurred value, its sum still `bits_below` bits above the code value.
static int finished(const struct op_separable *f, int64_t sum, int bits_below, int x, int depth)
{
    if (!f->amount)
        return (int)rounded_shift(sum, bits_below);
    int fraction = 16 - depth;
    int64_t blurred = rounded_shift(sum, bits_below - fraction);
    int64_t sharp = ((int64_t)x << fraction) * (256 + f->amount) - blurred * f->amount;
    return (int)clamp(rounded_shift(sharp, 8 + fraction), f->low, f->high);
}

static int last_on_grid(int length, int decimate)
{
    int d = 1 << decimate;
    return (length - 1 + d - 1) / d;
}

static enum status run_separable(const struct op *op, const struct plane *from, struct plane *to,
                                 int depth)
{
    const struct op_separable *f = &op->separable;
    bool coarse = f->decimate_x || f->decimate_y;
    int last_x = last_on_grid(to->width, f->decimate_x);
    int last_y = last_on_grid(to->height, f->decimate_y);
    int rx = f->radius_x, ry = f->radius_y;
    struct grid samples = {0}, columns = {0}, both = {0};
    enum status status = STATUS_MEMORY;
    if (grid_init(&samples, -rx, last_x + rx, -ry, last_y + ry) ||
        grid_init(&columns, -rx, last_x + rx, 0, last_y) || grid_init(&both, 0, last_x, 0, last_y))
        goto fail;
    for (int y = -ry; y <= last_y + ry; y++)
        for (int x = -rx; x <= last_x + rx; x++)
            *grid_at(&samples, x, y) = coarse
                                           ? rounded_shift(tent_sum(op, from, x, y) << f->fraction,
                                                           2 * (f->decimate_x + f->decimate_y))
                                           : plane_extended(from, op, x, y);
    for (int y = 0; y <= last_y; y++)
        for (int x = -rx; x <= last_x + rx; x++) {
            int64_t sum = 0;
            for (int k = -ry; k <= ry; k++)
                sum += f->tap_y[abs(k)] * *grid_at(&samples, x, y + k);
            *grid_at(&columns, x, y) = rounded_shift(sum, coarse ? f->bits : f->bits - f->fraction);
        }
    for (int y = 0; y <= last_y; y++)
        for (int x = 0; x <= last_x; x++) {
            int64_t sum = 0;
            for (int k = -rx; k <= rx; k++)
                sum += f->tap_x[abs(k)] * *grid_at(&columns, x + k, y);
            *grid_at(&both, x, y) = coarse ? rounded_shift(sum, f->bits) : sum;
        }
    int bits_below = f->fraction + (coarse ? f->decimate_x + f->decimate_y : f->bits);
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++)
            *plane_at(to, x, y) = (uint16_t)finished(f, interpolated(f, &both, x, y), bits_below,
                                                     *plane_at(from, x, y), depth);
    status = STATUS_OK;
fail:
    free(samples.value);
    free(columns.value);
    free(both.value);
    return status;
}

// ---- the other stencils ----

// The sum over the box is made of sums of columns, or a radius of thousands would never end.
static enum status run_box(const struct op *op, const struct plane *from, struct plane *to)
{
    int rx = op->box.radius_x, ry = op->box.radius_y;
    int64_t n = (2 * (int64_t)rx + 1) * (2 * (int64_t)ry + 1);
    size_t columns = (size_t)to->width + 2 * (size_t)rx;
    int64_t *column = malloc(columns * sizeof *column);
    if (!column)
        return STATUS_MEMORY;
    for (int y = 0; y < to->height; y++) {
        for (size_t i = 0; i < columns; i++) {
            int x = (int)i - rx;
            if (y == 0) {
                column[i] = 0;
                for (int k = -ry; k <= ry; k++)
                    column[i] += plane_extended(from, op, x, k);
            } else {
                column[i] +=
                    plane_extended(from, op, x, y + ry) - plane_extended(from, op, x, y - ry - 1);
            }
        }
        int64_t sum = 0;
        for (size_t i = 0; i < 2 * (size_t)rx; i++)
            sum += column[i];
        for (int x = 0; x < to->width; x++) {
            sum += column[x + 2 * rx];
            *plane_at(to, x, y) = (uint16_t)((2 * sum + n) / (2 * n));
            sum -= column[x];
        }
    }
    free(column);
    return STATUS_OK;
}

static int convolved(const struct op_convolve *f, int64_t sum)
{
    if (f->absolute && sum < 0)
        sum = -sum;
    return (int)clamp(f->base + ((sum + f->offset) >> f->bits), f->low, f->high);
}

static void run_convolve(const struct op *op, const struct plane *from, struct plane *to)
{
    const struct op_convolve *f = &op->convolve;
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++) {
            int64_t sum = 0;
            for (int j = 0; j < f->height; j++)
                for (int i = 0; i < f->width; i++)
                    sum += (int64_t)f->weight[j * f->width + i] *
                           plane_extended(from, op, x + i - f->origin_x, y + j - f->origin_y);
            *plane_at(to, x, y) = (uint16_t)convolved(f, sum);
        }
}

// Lines instead of weights: sums of a column of each picture column, then of a row of those.
static enum status run_convolve_lines(const struct op *op, const struct plane *from,
                                      struct plane *to)
{
    const struct op_convolve *f = &op->convolve;
    struct grid columns = {0}, sums = {0};
    enum status status = STATUS_MEMORY;
    if (grid_init(&columns, -f->origin_x, to->width + f->width - 2 - f->origin_x, 0, 0) ||
        grid_init(&sums, 0, to->width - 1, 0, 0))
        goto fail;
    for (int y = 0; y < to->height; y++) {
        for (int x = 0; x < to->width; x++)
            *grid_at(&sums, x, 0) = 0;
        for (int r = 0; r < f->rank; r++) {
            for (int k = 0; k < columns.width; k++) {
                columns.value[k] = 0;
                for (int j = 0; j < f->height; j++)
                    columns.value[k] +=
                        (int64_t)f->line_y[r][j] *
                        plane_extended(from, op, k - f->origin_x, y + j - f->origin_y);
            }
            for (int x = 0; x < to->width; x++)
                for (int i = 0; i < f->width; i++)
                    *grid_at(&sums, x, 0) += f->line_x[r][i] * columns.value[x + i];
        }
        for (int x = 0; x < to->width; x++)
            *plane_at(to, x, y) = (uint16_t)convolved(f, *grid_at(&sums, x, 0));
    }
    status = STATUS_OK;
fail:
    free(columns.value);
    free(sums.value);
    return status;
}

// floor(sqrt(value)), bit by bit.
static int64_t square_root(int64_t value)
{
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 31; bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    return root;
}

static int64_t gradient_length(const struct op_gradient *f, int64_t gx, int64_t gy)
{
    switch (f->norm) {
    case NORM_L1:
        return rounded_shift((llabs(gx) + llabs(gy)) * f->scale, 16);
    case NORM_L2:
        return rounded_shift(square_root((gx * gx + gy * gy) * 65536) * f->scale, 24);
    case NORM_X:
        return rounded_shift(llabs(gx) * f->scale, 16);
    case NORM_Y:
        return rounded_shift(llabs(gy) * f->scale, 16);
    }
    return 0;
}

static void run_gradient(const struct op *op, const struct plane *from, struct plane *to)
{
    const struct op_gradient *f = &op->gradient;
    const int smooth[3] = {f->side, f->center, f->side};
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++) {
            int64_t gx = 0, gy = 0;
            for (int k = -1; k <= 1; k++) {
                gx += smooth[k + 1] * (plane_extended(from, op, x + 1, y + k) -
                                       plane_extended(from, op, x - 1, y + k));
                gy += smooth[k + 1] * (plane_extended(from, op, x + k, y + 1) -
                                       plane_extended(from, op, x + k, y - 1));
            }
            *plane_at(to, x, y) =
                (uint16_t)(f->base + clamp(gradient_length(f, gx, gy), 0, f->limit));
        }
}

// ---- programs ----

static enum status run_full_frame(const struct program *program, const struct op *op,
                                  struct plane *planes, void *const *analysis)
{
    int own = program_analysis(program, (int)(op - program->op)), reads = op_reads_analysis(op);
    struct scalar_full_frame work = {
        .op = op,
        .from = &planes[op->source[0]],
        .to = &planes[op->result],
        .depth = program->plane[op->source[0]].depth,
        .analysis = own < 0 ? NULL : analysis[own],
        .reads = reads < 0 ? NULL : analysis[program_analysis(program, reads)],
    };
    switch (op->kind) {
    case OP_STATISTICS:
        return statistics_scalar(&work);
    case OP_WAVELET:
        return wavelet_scalar(&work);
    case OP_MATCH:
        return match_scalar(&work);
    case OP_MARK:
        return mark_scalar(&work);
    default:
        return STATUS_FAILED;
    }
}

static enum status run_op(const struct program *program, const struct op *op, struct plane *planes,
                          void *const *analysis)
{
    const struct plane *from = &planes[op->source[0]];
    struct plane *to = &planes[op->result];
    switch (op->kind) {
    case OP_AFFINE:
    case OP_THRESHOLD:
    case OP_TABLE:
        run_pointwise(op, from, to);
        return STATUS_OK;
    case OP_MIX:
        run_mix(program, op, planes);
        return STATUS_OK;
    case OP_SEPARABLE:
        return run_separable(op, from, to, program->plane[op->result].depth);
    case OP_BOX:
        return run_box(op, from, to);
    case OP_CONVOLVE:
        if (op->convolve.rank)
            return run_convolve_lines(op, from, to);
        run_convolve(op, from, to);
        return STATUS_OK;
    case OP_GRADIENT:
        run_gradient(op, from, to);
        return STATUS_OK;
    default:
        return run_full_frame(program, op, planes, analysis);
    }
}

static void load(const struct image *source, int c, struct plane *plane)
{
    const struct component *at = &source->format->component[c];
    int most = max_sample(source->format->depth);
    for (int y = 0; y < plane->height; y++)
        for (int x = 0; x < plane->width; x++)
            *plane_at(plane, x, y) =
                (uint16_t)clamp(sample_read(sample_at(source, c, x, y), at), 0, most);
}

// Write plane, or one value everywhere when it is NULL.
static void store(const struct image *target, int c, const struct plane *plane, int value)
{
    const struct format *format = target->format;
    if (!target->data[format->component[c].plane])
        return;
    int width = subsampled(target->width, format_shift_x(format, c));
    int height = subsampled(target->height, format_shift_y(format, c));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            sample_write(sample_at(target, c, x, y), &format->component[c],
                         plane ? *plane_at(plane, x, y) : value);
}

static enum status init_planes(const struct program *program, const struct image *source,
                               struct plane *planes)
{
    for (int p = 0; p < program->planes; p++) {
        if (p < FORMAT_COMPONENTS && !format_has(source->format, p))
            continue;
        if (plane_init(&planes[p], subsampled(source->width, program->plane[p].shift_x),
                       subsampled(source->height, program->plane[p].shift_y)))
            return STATUS_MEMORY;
        if (p < FORMAT_COMPONENTS)
            load(source, p, &planes[p]);
    }
    return STATUS_OK;
}

// Picture number `n`.
static void store_picture(const struct program *program, const struct plane *planes, int n,
                          const struct image *target)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct program_output *out = &program_out(program, n)[c];
        if (format_has(target->format, c))
            store(target, c, out->plane < 0 ? NULL : &planes[out->plane], out->value);
        else if (c == COMPONENT_ALPHA && target->format->filler)
            store(target, c, NULL, (1 << target->format->depth) - 1);
    }
}

// Memory for the analysis that the caller does not want.
static enum status init_analyses(const struct program *program, const struct plane *planes,
                                 void *const *wanted, void **analysis)
{
    for (int k = 0; k < program->analyses; k++) {
        const struct op *op = &program->op[program->analysis[k]];
        const struct plane *from = &planes[op->source[0]];
        analysis[k] = wanted ? wanted[k] : NULL;
        if (!analysis[k] &&
            !(analysis[k] = malloc(op_analysis_bytes(op, from->width, from->height))))
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static void free_all(const struct program *program, struct plane *planes, void *const *wanted,
                     void **analysis)
{
    for (int p = 0; p < program->planes && planes; p++)
        free(planes[p].sample);
    for (int k = 0; k < program->analyses && analysis; k++)
        if (!wanted || !wanted[k])
            free(analysis[k]);
    free(planes);
    free(analysis);
}

static enum status run_picture(const struct program *program, const struct image *source,
                               const struct image *target, void *const *wanted)
{
    struct plane *planes = calloc((size_t)program->planes, sizeof *planes);
    void **analysis = calloc((size_t)program->analyses + 1, sizeof *analysis);
    enum status status = planes && analysis ? init_planes(program, source, planes) : STATUS_MEMORY;
    if (!status)
        status = init_analyses(program, planes, wanted, analysis);
    for (int k = 0; k < program->ops && !status; k++)
        status = run_op(program, &program->op[k], planes, analysis);
    for (int n = 0; n < program_pictures(program) && !status; n++)
        store_picture(program, planes, n, &target[n]);
    free_all(program, planes, wanted, analysis);
    return status;
}

enum status scalar_run(const struct program *program, const struct work *work)
{
    struct image target[MAX_PICTURES], field[MAX_PICTURES];
    enum status status = STATUS_OK;
    for (int n = 0; n < program_pictures(program); n++)
        target[n] = *work_target(work, n);
    if (!work->fields)
        return run_picture(program, &work->source, target, work->analysis);
    for (int parity = 0; parity < 2 && !status; parity++) {
        struct image source = image_field(&work->source, parity);
        for (int n = 0; n < program_pictures(program); n++)
            field[n] = image_field(&target[n], parity);
        status = run_picture(program, &source, field, work->analysis);
    }
    return status;
}
