#include "stages/design/convolution.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIRECT_BITS = 20, ITERATIONS = 24 };

// The share of weights in the 1/2 code value that the final rounding leaves.
static const double budget = 0.46;

// A form of the sums: their limit, and the costs of a sample, for itself and for each product, in
// products of direct sums of 32 bits, by the instructions of the CPU's kernels with AVX2.
struct form {
    double max;
    double begin, product;
};
static const struct form direct_31 = {2147483647.0, 0, 1}, direct_52 = {4503599627370496.0, 0, 1.5};
static const struct form lines_24 = {16777216.0, 32, 1}, lines_52 = {4503599627370496.0, 40, 1.5};
// Products of 16-bit numbers, whose sums of columns are rounded to as many.
static const struct form lines_words = {2147483647.0, 16, 0.5};
// The same price on the CPU; of the GPU 32 bits are the cheapest after 24.
static const struct form lines_31 = {2147483647.0, 40, 1.5}, lines_41 = {2199023255552.0, 40, 1.5};

static double cost_of(const struct form *form, int products)
{
    return form->begin + form->product * products;
}

// ---- singular vectors ----

static double dot(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++)
        sum += a[k] * b[k];
    return sum;
}

// a -= factor * b.
static void subtract(double *a, const double *b, double factor, int count)
{
    for (int k = 0; k < count; k++)
        a[k] -= factor * b[k];
}

static void scale_by(double *a, double factor, int count)
{
    for (int k = 0; k < count; k++)
        a[k] *= factor;
}

// Make a and b orthogonal and of length 1, or zero where nothing is left.
static void orthonormalise(double *a, double *b, int count)
{
    double length = sqrt(dot(a, a, count));
    scale_by(a, length > 0 ? 1 / length : 0, count);
    double before = sqrt(dot(b, b, count));
    for (int twice = 0; twice < 2; twice++)
        subtract(b, a, dot(a, b, count), count);
    length = sqrt(dot(b, b, count));
    scale_by(b, length > 1e-13 * before ? 1 / length : 0, count);
}

// y = W x, and x = W' y.
static void times(const double *weight, int width, int height, const double *x, double *y)
{
    for (int j = 0; j < height; j++)
        y[j] = dot(weight + (size_t)j * (size_t)width, x, width);
}

static void times_transposed(const double *weight, int width, int height, const double *y,
                             double *x)
{
    memset(x, 0, (size_t)width * sizeof *x);
    for (int j = 0; j < height; j++)
        subtract(x, weight + (size_t)j * (size_t)width, -y[j], width);
}

// Begin with the longest row, and with the one of which most is left beside it: of rank 2 these
// span everything.
static void begin_lines(const double *weight, int width, int height, double *a, double *b)
{
    size_t row = sizeof *a * (size_t)width;
    double most = -1;
    for (int j = 0; j < height; j++) {
        const double *line = weight + (size_t)j * (size_t)width;
        if (dot(line, line, width) > most) {
            most = dot(line, line, width);
            memcpy(a, line, row);
        }
    }
    double length = dot(a, a, width), left = -1;
    for (int j = 0; j < height && length > 0; j++) {
        const double *line = weight + (size_t)j * (size_t)width;
        double along = dot(line, a, width), rest = dot(line, line, width) - along * along / length;
        if (rest > left) {
            left = rest;
            memcpy(b, line, row);
        }
    }
}

// Turn both pairs so that the lines y become orthogonal: one rotation of Jacobi's.
static void rotate(double *x[2], double *y[2], int width, int height)
{
    double a = dot(y[0], y[0], height), b = dot(y[1], y[1], height), c = dot(y[0], y[1], height);
    double angle = 0.5 * atan2(2 * c, a - b), cosine = cos(angle), sine = sin(angle);
    double *const line[2][2] = {{x[0], x[1]}, {y[0], y[1]}};
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < (side ? height : width); k++) {
            double p = line[side][0][k], q = line[side][1][k];
            line[side][0][k] = cosine * p + sine * q;
            line[side][1][k] = cosine * q - sine * p;
        }
}

void convolution_lines(const double *weight, int width, int height, double *line_x[2],
                       double *line_y[2])
{
    begin_lines(weight, width, height, line_x[0], line_x[1]);
    orthonormalise(line_x[0], line_x[1], width);
    for (int n = 0; n < ITERATIONS; n++) {
        for (int r = 0; r < 2; r++)
            times(weight, width, height, line_x[r], line_y[r]);
        orthonormalise(line_y[0], line_y[1], height);
        for (int r = 0; r < 2; r++)
            times_transposed(weight, width, height, line_y[r], line_x[r]);
        orthonormalise(line_x[0], line_x[1], width);
    }
    for (int r = 0; r < 2; r++)
        times(weight, width, height, line_x[r], line_y[r]);
    rotate(line_x, line_y, width, height);
}

// ---- whole numbers ----

static long long common_divisor(long long a, long long b)
{
    while (b) {
        long long rest = a % b;
        a = b;
        b = rest;
    }
    return llabs(a);
}

static bool are_whole(const double *weight, int count)
{
    for (int k = 0; k < count; k++)
        if (weight[k] != floor(weight[k]))
            return false;
    return true;
}

// Whole weights of rank 1 as whole lines: the first row with anything in it, divided by what its
// numbers have in common, goes into every row without a rest. Returns whether it does.
static bool whole_lines(const double *weight, int width, int height, double *x, double *y)
{
    long long common = 0;
    int head = 0, first = 0;
    for (; !common && head < height; head++)
        for (int i = 0; i < width; i++)
            common = common_divisor(llround(weight[head * width + i]), common);
    const double *row = weight + (head - 1) * width;
    for (int i = width - 1; i >= 0 && common; i--) {
        x[i] = row[i] / (double)common;
        first = x[i] != 0 ? i : first;
    }
    for (int j = 0; j < height && common; j++, weight += width) {
        y[j] = weight[first] / x[first];
        for (int i = 0; i < width; i++)
            if (y[j] * x[i] != weight[i])
                return false;
    }
    return common != 0;
}

// ---- candidates ----

// A design under way: the ideal weights, and the cheapest integers so far.
struct design {
    struct program *program;
    int depth, width, height;
    double *weight;                      // ideal, whatever was given
    const double *line_x[2], *line_y[2]; // unit times their products are the weights, about
    int lines;
    double unit;
    int zero;              // code value that samples count from ...
    double begin;          // ... and where the result begins; both 0 where it is absolute
    bool whole;            // the lines are whole numbers
    double *effective;     // scratch: as many as weights
    struct op_convolve op; // weights or lines, bits, and why
    double cost;           // of `op`; HUGE_VAL: there is none yet
};

static double sum_of_sizes(const double *weight, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++)
        sum += fabs(weight[k]);
    return sum;
}

static double largest_of(const double *weight, int count)
{
    double largest = 0;
    for (int k = 0; k < count; k++)
        largest = fmax(largest, fabs(weight[k]));
    return largest;
}

// The error of `effective` weights, in code values of 8 bits, over all pictures.
static double error_of(const struct design *design)
{
    double above = 0, below = 0;
    for (int k = 0; k < design->width * design->height; k++) {
        double difference = design->effective[k] - design->weight[k];
        above += fmax(difference, 0);
        below += fmax(-difference, 0);
    }
    return 255 * fmax(above, below);
}

// The most bits with which sums of weights, whose sizes sum to `gain`, and an offset of as much and
// rounding stay below `most`.
static int bits_within(const struct design *design, double gain, double most)
{
    return (int)floor(log2(most / (ldexp(1, design->depth) * (2 * gain + 2))));
}

static int32_t *rounded(struct program *program, const double *from, double factor, int count)
{
    int32_t *to = program_alloc(program, (size_t)count * sizeof *to);
    for (int k = 0; to && k < count; k++)
        to[k] = (int32_t)lround(from[k] * factor);
    return to;
}

static double direct_error(struct design *design, int bits)
{
    double factor = ldexp(1, bits), unit = ldexp(1, -bits);
    for (int k = 0; k < design->width * design->height; k++)
        design->effective[k] = unit * round(factor * design->weight[k]);
    return error_of(design);
}

// Every weight by itself. Of 52 bits no more than are needed, which leaves room for transforms.
static void try_direct(struct design *design, const struct form *form)
{
    int count = design->width * design->height;
    int bits = bits_within(design, sum_of_sizes(design->weight, count), form->max);
    bool wide = form == &direct_52;
    while (bits > 0 && ldexp(largest_of(design->weight, count), bits) >= 1 << 30)
        bits--;
    if (bits > DIRECT_BITS && !wide)
        bits = DIRECT_BITS;
    if (bits < 0 || cost_of(form, count) >= design->cost)
        return;
    for (int fewer = 0; fewer < bits && wide; fewer++)
        if (direct_error(design, fewer) <= budget / 2)
            bits = fewer;
    bool last = wide && design->cost == HUGE_VAL;
    if (direct_error(design, bits) > budget && !last)
        return;
    design->op = (struct op_convolve){
        .weight = rounded(design->program, design->weight, ldexp(1, bits), count), .bits = bits};
    design->cost = cost_of(form, count);
}

// Factors for the lines of pair r, so that integers of them have `bits` bits. Whole ones share one
// factor, others are rounded so that the errors of both are alike. Returns whether 32 bits hold
// them.
static bool line_factors(const struct design *design, int r, int bits, double *of_x, double *of_y)
{
    const double *x = design->line_x[r], *y = design->line_y[r];
    int width = design->width, height = design->height;
    double both = ldexp(design->unit, bits);
    double size_x = sum_of_sizes(x, width), size_y = sum_of_sizes(y, height);
    *of_x = 1;
    if (!design->whole && size_x * size_y > 0)
        *of_x = sqrt(fabs(both) * width * size_y / (height * size_x));
    *of_y = design->whole ? round(both) : both / *of_x;
    return fabs(*of_x) * largest_of(x, width) < INT32_MAX &&
           fabs(*of_y) * largest_of(y, height) < INT32_MAX;
}

static void clear_effective(struct design *design)
{
    memset(design->effective, 0,
           (size_t)design->width * (size_t)design->height * sizeof *design->effective);
}

static void add_effective(struct design *design, const int32_t *x, const int32_t *y, int bits)
{
    double *effective = design->effective, unit = ldexp(1, -bits);
    for (int j = 0; j < design->height; j++)
        for (int i = 0; i < design->width; i++)
            *effective++ += unit * ((double)y[j] * x[i]);
}

// The first `rank` pairs of lines.
static void try_lines(struct design *design, int rank, const struct form *form)
{
    int width = design->width, height = design->height;
    double gain = 0, cost = cost_of(form, rank * (width + height)), of_x[2], of_y[2];
    for (int r = 0; r < rank; r++)
        gain += fabs(design->unit) * sum_of_sizes(design->line_x[r], width) *
                sum_of_sizes(design->line_y[r], height);
    struct op_convolve op = {.rank = rank, .bits = bits_within(design, gain, form->max)};
    for (int r = 0; r < rank; r++)
        while (op.bits >= 0 && !line_factors(design, r, op.bits, &of_x[r], &of_y[r]))
            op.bits--;
    if (op.bits < 0 || cost >= design->cost)
        return;
    clear_effective(design);
    for (int r = 0; r < rank; r++) {
        line_factors(design, r, op.bits, &of_x[r], &of_y[r]);
        op.line_x[r] = rounded(design->program, design->line_x[r], of_x[r], width);
        op.line_y[r] = rounded(design->program, design->line_y[r], of_y[r], height);
        if (design->program->status)
            return;
        add_effective(design, op.line_x[r], op.line_y[r], op.bits);
    }
    if (error_of(design) > budget)
        return;
    design->op = op;
    design->cost = cost;
}

// ---- offsets ----

static int64_t sum_of(const int32_t *weight, int count)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += weight[k];
    return sum;
}

// s where all samples are `level`.
static int64_t sum_of_flat(const struct op_convolve *op, int level)
{
    int64_t sum = op->rank ? 0 : level * sum_of(op->weight, op->width * op->height);
    int64_t half = INT64_C(1) << op->column_shift >> 1;
    for (int r = 0; r < op->rank; r++)
        sum += sum_of(op->line_x[r], op->width) *
               ((level * sum_of(op->line_y[r], op->height) + half) >> op->column_shift);
    return sum;
}

// Where sums begin: samples count from their zero, and so does the result.
static int64_t offset_of(const struct design *design, const struct op_convolve *op)
{
    int64_t half = INT64_C(1) << op->bits >> 1;
    return half + llround(ldexp(design->begin, op->bits)) - sum_of_flat(op, design->zero);
}

// ---- candidates: lines in words ----

// How much the weights may make of white, or black: sums of both signs.
static double gain_of(const struct design *design)
{
    double above = 0, below = 0;
    for (int k = 0; k < design->width * design->height; k++) {
        above += fmax(design->weight[k], 0);
        below += fmax(-design->weight[k], 0);
    }
    return fmax(above, below);
}

// How much the lines of columns are multiplied by, so that they and their sums of samples fit, and by
// how much these sums are shifted to 16 bits: t of all lines has the same range, all that there is,
// which may leave taps a bit less than they have room for. Whole lines stay as they are.
static int word_columns(const struct design *design, int rank, double of_y[2])
{
    int height = design->height, shift = 0;
    double white = ldexp(1, design->depth) - 1, slack = 0.5 * height + 1, whole = 0;
    double most = floor(INT32_MAX / white) - slack; // that sizes of taps may add up to
    for (int r = 0; r < rank; r++) {
        double size = sum_of_sizes(design->line_y[r], height);
        whole = fmax(whole, size);
        if (size > 0)
            most = fmin(most, (INT16_MAX - 0.5) * size / largest_of(design->line_y[r], height));
    }
    double wanted = design->whole ? whole * white : (most + slack) * white;
    while (ldexp(wanted, -shift) > (INT16_MAX - 1) * (design->whole ? 1 : 2))
        shift++;
    most = fmin(most, ldexp(INT16_MAX - 1, shift) / white - slack);
    for (int r = 0; r < rank; r++) {
        double size = sum_of_sizes(design->line_y[r], height);
        of_y[r] = design->whole || size == 0 ? 1 : most / size;
    }
    return shift;
}

// The most bits of sums with which the lines of rows fit, and what these are multiplied by. Returns
// them; negative: none.
static int word_rows(const struct design *design, int rank, int bits, int shift,
                     const double of_y[2], double of_x[2])
{
    for (bool fits = false; bits >= 0 && !fits; bits -= !fits) {
        fits = true;
        for (int r = 0; r < rank; r++) {
            of_x[r] = ldexp(design->unit, bits + shift) / of_y[r];
            if (design->whole)
                of_x[r] = round(of_x[r]);
            fits &= fabs(of_x[r]) * largest_of(design->line_x[r], design->width) < INT16_MAX;
        }
    }
    return bits;
}

// By how much rounding of t errs at most, in s: by a half in each place, times the size of the line
// that follows, and by what it does to the zero that samples count from.
static double rounding_of(const struct design *design, const struct op_convolve *op)
{
    double error = 0, exact = 0;
    for (int r = 0; r < op->rank; r++) {
        exact += ldexp(design->zero * (double)sum_of(op->line_x[r], op->width) *
                           (double)sum_of(op->line_y[r], op->height),
                       -op->column_shift);
        for (int i = 0; i < op->width; i++)
            error += 0.5 * abs(op->line_x[r][i]);
    }
    return op->column_shift ? error + fabs((double)sum_of_flat(op, design->zero) - exact) : 0;
}

// Lines of integers of op->bits, or of fewer, as many as sums leave room for.
static void set_words(struct design *design, struct op_convolve *op, const double of_y[2])
{
    double of_x[2];
    for (bool fits = false; !fits && op->bits >= 0; op->bits -= !fits) {
        op->bits = word_rows(design, op->rank, op->bits, op->column_shift, of_y, of_x);
        for (int r = 0; r < op->rank && op->bits >= 0; r++) {
            op->line_x[r] = rounded(design->program, design->line_x[r], of_x[r], design->width);
            op->line_y[r] = rounded(design->program, design->line_y[r], of_y[r], design->height);
        }
        if (design->program->status || op->bits < 0)
            return;
        op->offset = offset_of(design, op);
        fits = op_convolve_in_words(op, design->depth);
    }
}

// The first `rank` pairs of lines in 16 bits.
static void try_words(struct design *design, int rank)
{
    double cost = cost_of(&lines_words, rank * (design->width + design->height)), of_y[2];
    double most =
        gain_of(design) * (ldexp(1, design->depth) + design->zero) + fabs(design->begin) + 1;
    struct op_convolve op = {.width = design->width,
                             .height = design->height,
                             .rank = rank,
                             .column_shift = word_columns(design, rank, of_y)};
    op.bits = (int)floor(log2(lines_words.max / most));
    if (cost >= design->cost || fmin(of_y[0], of_y[rank - 1]) <= 0 ||
        (design->whole && op.column_shift))
        return;
    set_words(design, &op, of_y);
    if (design->program->status || op.bits < 0)
        return;
    clear_effective(design);
    for (int r = 0; r < rank; r++)
        add_effective(design, op.line_x[r], op.line_y[r], op.bits + op.column_shift);
    double error = ldexp(rounding_of(design, &op), 8 - op.bits - design->depth);
    if (error_of(design) + error > budget)
        return;
    design->op = op;
    design->cost = cost;
}

// ---- the design ----

// The ideal weights. Sums that would not fit anything are made smaller: such gains leave black and
// white of any picture.
static void set_weights(struct design *design, const struct convolution *convolution)
{
    int width = design->width, count = width * design->height;
    for (int k = 0; k < count; k++) {
        design->weight[k] = convolution->weight ? convolution->weight[k] : 0;
        for (int r = 0; r < convolution->lines; r++)
            design->weight[k] +=
                convolution->line_y[r][k / width] * convolution->line_x[r][k % width];
    }
    double gain = sum_of_sizes(design->weight, count) * fabs(design->unit);
    double room = direct_52.max / 8 / ldexp(1, design->depth);
    double largest = largest_of(design->weight, count) * fabs(design->unit);
    design->unit *= fmin(1, fmin(room / gain, (1 << 30) / largest / 2));
    scale_by(design->weight, design->unit, count);
}

// Lines of weights that came without.
static void find_lines(struct design *design, const struct convolution *convolution)
{
    int width = design->width, height = design->height;
    double *x[2], *y[2];
    x[0] = program_alloc(design->program, 2 * (size_t)width * sizeof(double));
    y[0] = program_alloc(design->program, 2 * (size_t)height * sizeof(double));
    if (!x[0] || !y[0])
        return;
    x[1] = x[0] + width;
    y[1] = y[0] + height;
    design->whole = are_whole(convolution->weight, width * height) &&
                    whole_lines(convolution->weight, width, height, x[0], y[0]);
    if (!design->whole)
        convolution_lines(convolution->weight, width, height, x, y);
    design->lines = design->whole ? 1 : 2;
    for (int r = 0; r < 2; r++) {
        design->line_x[r] = x[r];
        design->line_y[r] = y[r];
    }
}

static void take_lines(struct design *design, const struct convolution *convolution)
{
    design->lines = convolution->lines;
    design->whole = design->lines == 1 && are_whole(convolution->line_x[0], design->width) &&
                    are_whole(convolution->line_y[0], design->height);
    for (int r = 0; r < design->lines; r++) {
        design->line_x[r] = convolution->line_x[r];
        design->line_y[r] = convolution->line_y[r];
    }
}

static const char *reason(const struct design *design, const struct convolution *convolution)
{
    int count = design->width * design->height, least = design->width + design->height;
    if (design->op.rank)
        return convolution->lines ? "made of lines"
               : design->whole    ? "whole numbers that are products of lines"
                                  : "by its singular values";
    return count <= cost_of(&lines_words, least) ? "too few to be worth lines"
                                                 : "lines come not near enough, or cost as much";
}

static void choose(struct design *design, const struct convolution *convolution)
{
    try_direct(design, &direct_31);
    for (int rank = 1; rank <= design->lines; rank++) {
        try_words(design, rank);
        try_lines(design, rank, &lines_24);
        try_lines(design, rank, &lines_31);
        try_lines(design, rank, &lines_41);
        try_lines(design, rank, &lines_52);
    }
    try_direct(design, &direct_52);
    design->op.why = reason(design, convolution);
}

void program_convolution(struct program *program, int c, const struct convolution *convolution)
{
    assert(convolution->width >= 1 && convolution->width <= KERNEL_SIDE);
    assert(convolution->height >= 1 && convolution->height <= KERNEL_SIDE);
    assert(convolution->origin_x >= 0 && convolution->origin_x < convolution->width);
    assert(convolution->origin_y >= 0 && convolution->origin_y < convolution->height);
    assert(convolution->lines ? convolution->lines <= 2 && convolution->line_x[0]
                              : convolution->weight != NULL);
    assert(!convolution->absolute || convolution->bias == 0);
    const struct format *meaning = &program->picture.meaning;
    size_t count = (size_t)convolution->width * (size_t)convolution->height;
    struct levels levels = format_levels(meaning, c);
    double bias = format_is_chroma(meaning, c) ? 0 : convolution->bias;
    bool absolute = convolution->absolute;
    struct design design = {.program = program,
                            .depth = meaning->depth,
                            .width = convolution->width,
                            .height = convolution->height,
                            .weight = malloc(count * sizeof(double)),
                            .effective = malloc(count * sizeof(double)),
                            .unit = convolution->scale,
                            .zero = absolute ? 0 : levels.zero,
                            .begin = absolute ? 0 : levels.zero + bias * levels.scale,
                            .cost = HUGE_VAL};
    if (!design.weight || !design.effective)
        program->status = STATUS_MEMORY;
    if (!program->status) {
        set_weights(&design, convolution);
        if (convolution->lines)
            take_lines(&design, convolution);
        else
            find_lines(&design, convolution);
    }
    if (!program->status)
        choose(&design, convolution);
    free(design.weight);
    free(design.effective);
    if (program->status)
        return;
    struct op_convolve op = design.op;
    op.width = convolution->width;
    op.height = convolution->height;
    op.origin_x = convolution->origin_x;
    op.origin_y = convolution->origin_y;
    op.absolute = absolute;
    op.base = absolute ? levels.low : 0;
    op.low = levels.low;
    op.high = levels.high;
    op.offset = offset_of(&design, &op);
    op.words = op_convolve_in_words(&op, meaning->depth);
    assert(op.words || !op.column_shift);
    program_stencil(program, c, convolution->border,
                    (struct op){.kind = OP_CONVOLVE, .convolve = op});
}
