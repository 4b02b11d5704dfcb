#include "plan/op.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/portable.h"

static int64_t clamp(int64_t value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

int op_apply(const struct op *op, int x)
{
    switch (op->kind) {
    case OP_AFFINE:
        return (int)clamp((x * op->affine.gain + op->affine.offset + 32768) >> 16, op->affine.low,
                          op->affine.high);
    case OP_THRESHOLD:
        return x < op->threshold.low    ? op->threshold.below
               : x > op->threshold.high ? op->threshold.above
                                        : x;
    case OP_TABLE:
        return op->table.entry[x];
    default:
        assert(!"pointwise");
        return 0;
    }
}

// The reach of a separable filter along one axis. On a grid D apart, the taps reach radius * D from
// a grid point, a grid point is less than D from the place, and its tent less than D wide.
static int separable_reach(int radius, int decimate)
{
    return decimate ? ((radius + 2) << decimate) - 2 : radius;
}

static int greater(int a, int b)
{
    return a > b ? a : b;
}

int op_radius_x(const struct op *op)
{
    switch (op->kind) {
    case OP_SEPARABLE:
        return separable_reach(op->separable.radius_x, op->separable.decimate_x);
    case OP_BOX:
        return op->box.radius_x;
    case OP_CONVOLVE:
        return greater(op->convolve.origin_x, op->convolve.width - 1 - op->convolve.origin_x);
    case OP_GRADIENT:
        return 1;
    default:
        return 0;
    }
}

int op_radius_y(const struct op *op)
{
    switch (op->kind) {
    case OP_SEPARABLE:
        return separable_reach(op->separable.radius_y, op->separable.decimate_y);
    case OP_BOX:
        return op->box.radius_y;
    case OP_CONVOLVE:
        return greater(op->convolve.origin_y, op->convolve.height - 1 - op->convolve.origin_y);
    case OP_GRADIENT:
        return 1;
    default:
        return 0;
    }
}

static double wavelet_norm(const struct op_wavelet *op, double scale)
{
    return op->norm == WAVELET_ARTICLE ? sqrt(scale) : scale;
}

double op_wavelet_factor(const struct op_wavelet *op, double scale)
{
    const double pi = 3.14159265358979323846;
    return op->unit / sqrt(2 * pi) / wavelet_norm(op, scale);
}

// What a column of the wavelet at distance k from its middle sums to, times 1 / factor.
static double wavelet_column(double scale, int reach, int k)
{
    double sum = 0, x2 = k * k / (scale * scale);
    for (int j = -reach; j <= reach; j++) {
        double r = x2 + j * j / (scale * scale);
        sum += (r - 2) * portable_exp(-r / 2);
    }
    return sum;
}

// Of large scales the sum is as good as the integral, whose largest value is at distance s.
double op_wavelet_edge(const struct op_wavelet *op, double scale)
{
    const double pi = 3.14159265358979323846;
    double factor = 255 * op_wavelet_factor(op, scale) / op->unit;
    if (scale > 16)
        return factor * scale * scale * sqrt(2 * pi) * portable_exp(-0.5);
    int reach = (int)ceil(6 * scale);
    double sum = 0, most = 0;
    for (int k = reach; k >= -reach; k--) {
        sum += wavelet_column(scale, reach, k);
        most = fmax(most, fabs(sum));
    }
    return factor * most;
}

static int64_t sum_of_sizes(const int32_t *weight, int count)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += llabs((long long)weight[k]);
    return sum;
}

int64_t op_convolve_max(const struct op_convolve *op, int depth)
{
    int64_t sum = 0;
    if (!op->rank)
        sum = sum_of_sizes(op->weight, op->width * op->height);
    for (int r = 0; r < op->rank; r++)
        sum += sum_of_sizes(op->line_x[r], op->width) * sum_of_sizes(op->line_y[r], op->height);
    return sum * ((1 << depth) - 1) + llabs(op->offset);
}

int op_convolve_products(const struct op_convolve *op)
{
    return op->rank ? op->rank * (op->width + op->height) : op->width * op->height;
}

int op_convolve_transform_side(int side, struct transform_size size)
{
    int power = 64;
    while (power < size.times * side && (power < size.most || power < 2 * side))
        power *= 2;
    return power;
}

double op_convolve_transform_error(const struct op_convolve *op, struct transform_size size,
                                   int depth)
{
    double samples = (double)op_convolve_transform_side(op->width, size) *
                     op_convolve_transform_side(op->height, size);
    double n = log2(samples), e = ldexp(1, -53), squares = 0;
    for (int k = 0; k < op->width * op->height; k++)
        squares += (double)op->weight[k] * op->weight[k];
    double each = expm1(6 * n * log1p(e) + (3 * n + 1) * log1p(e * sqrt(5)));
    return ldexp(1, depth - 1) * sqrt(samples) * sqrt(squares) * each;
}

static int modulo(int i, int length)
{
    int rest = i % length;
    return rest < 0 ? rest + length : rest;
}

int border_index(enum border border, int i, int length)
{
    if (i >= 0 && i < length)
        return i;
    switch (border) {
    case BORDER_REPLICATE:
        return i < 0 ? 0 : length - 1;
    case BORDER_REFLECT:
        i = modulo(i, 2 * length);
        return i < length ? i : 2 * length - 1 - i;
    case BORDER_MIRROR:
        if (length == 1)
            return 0;
        i = modulo(i, 2 * length - 2);
        return i < length ? i : 2 * length - 2 - i;
    case BORDER_WRAP:
        return modulo(i, length);
    default:
        return -1;
    }
}

size_t op_analysis_bytes(const struct op *op, int width, int height)
{
    size_t samples = (size_t)width * (size_t)height;
    switch (op->kind) {
    case OP_STATISTICS:
        return sizeof(struct statistics);
    case OP_WAVELET:
        return (size_t)op->wavelet.scales *
               (sizeof(double) + (op->wavelet.planes ? samples * sizeof(float) : 0));
    case OP_MATCH:
        return match_analysis_bytes(&op->match);
    default:
        return 0;
    }
}

int op_reads_analysis(const struct op *op)
{
    switch (op->kind) {
    case OP_MARK:
        return op->mark.match;
    default:
        return -1;
    }
}

const char *op_name(const struct op *op)
{
    static const char *const names[] = {
        [OP_AFFINE] = "affine",     [OP_THRESHOLD] = "threshold", [OP_TABLE] = "table",
        [OP_MIX] = "mix",           [OP_SEPARABLE] = "separable", [OP_BOX] = "box",
        [OP_CONVOLVE] = "convolve", [OP_GRADIENT] = "gradient",   [OP_STATISTICS] = "statistics",
        [OP_WAVELET] = "wavelet",   [OP_MATCH] = "match",         [OP_MARK] = "mark",
    };
    return names[op->kind];
}

const char *border_name(enum border border)
{
    static const char *const names[] = {"replicate", "zero", "reflect", "mirror", "wrap"};
    return names[border];
}
