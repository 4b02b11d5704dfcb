// The continuous wavelet transform: its scale factors and the size of its analysis.
#include "plan/op_info.h"

#include <math.h>

#include "base/portable.h"

static double wavelet_norm(const struct op_wavelet *op, double scale)
{
    return op->norm == WAVELET_ARTICLE ? sqrt(scale) : scale;
}

double op_wavelet_factor(const struct op_wavelet *op, double scale)
{
    const double pi = 3.14159265358979323846;
    return op->unit / sqrt(2 * pi) / wavelet_norm(op, scale);
}

// The sum of a column of the wavelet at distance k from its middle, times 1 / factor.
static double wavelet_column(double scale, int reach, int k)
{
    double sum = 0, x2 = k * k / (scale * scale);
    for (int j = -reach; j <= reach; j++) {
        double r = x2 + j * j / (scale * scale);
        sum += (r - 2) * portable_exp(-r / 2);
    }
    return sum;
}

// Large scales: the sum is as good as the integral, whose largest value is at distance s.
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

static size_t analysis_bytes(const struct op *op, int width, int height)
{
    size_t samples = (size_t)width * (size_t)height;
    return (size_t)op->wavelet.scales *
           (sizeof(double) + (op->wavelet.planes ? samples * sizeof(float) : 0));
}

const struct op_info op_wavelet_info = {
    .name = "wavelet", .family = OP_FAMILY_FULL_FRAME, .analysis_bytes = analysis_bytes};
