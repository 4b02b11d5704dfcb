// Operations: the small vocabulary that every stage lowers to, and the exact arithmetic of each.
//
// An operation makes one plane from one plane (mix: from up to three). Operations on the full
// frame may also have analysis: what they deliver with each frame besides the plane. Samples are
// unsigned integers of the plane's depth, 8 to 16 bits. Everything below is arithmetic that no
// implementation may round differently, of integers but for OP_WAVELET: the scalar, cpu and cuda
// backends agree to the bit.
//
// Input is not trusted. Nine to fifteen bits lie in units of sixteen, and a damaged or hostile file
// sets the bits above: such a sample of the input reads as the largest there is, 2^depth - 1, in
// every operation. Backends see to it where they load samples, so that planes between operations
// never hold one. Planes of the input that no operation makes pass as they are, byte for byte; the
// engine limits such samples there (image_limit_plane()), because encoders index with them, too.
//
// Notation: x is a sample of the source, y of the result, x(i, j) the source at column i, row j,
// extended beyond its edges by the operation's border rule. `>>` is an arithmetic shift, so
// (v + half) >> n rounds to nearest with ties upward. clamp(v, low, high) limits v.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/format.h"
#include "plan/match.h"

// The version of this arithmetic: another number where any result of any stage changes in a bit.
enum { ARITHMETIC_VERSION = 1 };

// Samples beyond the edge, for a row of samples a b c d:
enum border {
    BORDER_REPLICATE, // a a a | a b c d | d d d    the edge sample, for ever
    BORDER_ZERO,      // z z z | a b c d | z z z    black (neutral for chroma)
    BORDER_REFLECT,   // c b a | a b c d | d c b    mirrored between two samples
    BORDER_MIRROR,    // d c b | a b c d | c b a    mirrored on the edge sample
    BORDER_WRAP,      // b c d | a b c d | a b c    the other side
    BORDER_COUNT,
};

enum op_kind {
    // Pointwise: y depends on the sample at the same place only.
    OP_AFFINE,
    OP_THRESHOLD,
    OP_TABLE,
    // Several planes into one, resampled to the result's size.
    OP_MIX,
    // Stencils: y depends on a neighbourhood.
    OP_SEPARABLE,
    OP_BOX,
    OP_CONVOLVE,
    OP_GRADIENT,
    // Full frames: what is made depends on all of x.
    OP_STATISTICS,
    OP_WAVELET,
    OP_MATCH,
    OP_MARK,
    OP_KINDS,
};

// y = clamp((x * gain + offset + 2^15) >> 16, low, high), in 64 bits. The result may have another
// depth than the source: this is also how depth and range change.
struct op_affine {
    int64_t gain, offset; // 1.0 = 65536
    int low, high;
};

// y = below if x < low, above if x > high, else x.
struct op_threshold {
    int low, high;
    int below, above;
};

// y = entry[x]; 2^depth entries.
struct op_table {
    const uint16_t *entry; // the program's
};

// y = clamp((sum_k weight[k] * v_k + offset + 2^19) >> 20, low, high), in 64 bits, where v_k is 16
// times source k resampled to the result's grid (weights are Q16, samples Q4). Along each axis by
// itself, in quarters, the picture's last samples repeating beyond its edges:
//
//   source coarser by w = 2, 4   linear between two samples: 4 - f of x(m) and f of x(m + 1), where
//   or equal, w = 1              4 m + f is the place (i - s) / w in quarters, rounded down; s = 0
//                                where chroma is co-sited, (w - 1) / 2 where it is centred
//   source finer by w = 2, 4     the mean: 4 / w of each of the w samples from x(i w) on
struct op_mix {
    int weight[3];
    int64_t offset;
    int low, high;
    enum siting siting;
};

// Two one-dimensional symmetric filters, first down the columns, then along the rows:
//
//   t(i, j) = (sum_k tap_y[|k|] x(i, j + k) + half) >> (bits - fraction)        |k| <= radius_y
//   y(i, j) = (sum_k tap_x[|k|] t(i + k, j) + half) >> (bits + fraction)        |k| <= radius_x
//
// Taps are 2^bits times the real weights and sum to 2^bits exactly, so t has `fraction` bits
// below the sample and neither can overflow its range: no clamp.
//
// A large filter runs on a coarser grid. With decimate_x = dx > 0 (alike in y) and D = 2^dx, the
// taps act on samples D apart, made by a tent and put back by linear interpolation:
//
//   s(m, n) = sum_{|a| < Dx, |b| < Dy} (Dx - |a|) (Dy - |b|) x(m Dx + a, n Dy + b)
//   c       = (s * 2^fraction + half) >> (2 dx + 2 dy)
//   t, u    = as t and y above on the grid c, both keeping `fraction` bits (shifts of `bits`)
//   y(i, j) = (sum over the four grid samples around (i, j) of
//                (Dx - |i - m Dx|) (Dy - |j - n Dy|) u(m, n)) + half) >> (fraction + dx + dy)
//
// with fraction = 16 - depth. The grid reaches past the picture as far as the taps ask; there c is
// made from the extended x. Where D = 1 the tent is the sample itself. The tent is the linear
// B-spline; filtering a decimated signal this way: P. J. Burt, "Fast filter transforms for image
// processing", CGIP 16 (1981).
//
// With amount > 0 the result sharpens instead (unsharp mask), from the blurred value at 16 bits,
// b = y's sum shifted to keep 16 - depth fraction bits:
//
//   y = clamp((x * 2^(16 - depth) * (256 + amount) - b * amount + half) >> (24 - depth), low, high)
struct op_separable {
    const int32_t *tap_x, *tap_y; // the program's; index 0 is the centre
    int radius_x, radius_y;
    int bits;
    int fraction;
    int decimate_x, decimate_y;
    int amount; // 256 = 1.0; 0 for a plain filter
    int low, high;
};

// The mean of n = (2 radius_x + 1)(2 radius_y + 1) samples, rounded exactly:
// y = (2 sum + n) / (2 n), in 64 bits.
struct op_box {
    int radius_x, radius_y;
};

// s = sum over the kernel of weight[row][column] x(i + column - origin_x, j + row - origin_y):
// correlation, the kernel lies on the picture as it is written, the origin on the result's place.
// y = clamp(base + ((s or |s| if absolute) + offset >> bits), low, high): offset also rounds.
//
// With rank 1 or 2 the weights are those of one or two pairs of lines,
//
//   weight[row][column] = sum_r line_y[r][row] * line_x[r][column]
//
// which are summed column by column and then row by row:
//
//   t_r(i, j) = (sum_row line_y[r][row] x(i, j + row - origin_y) + half) >> column_shift
//   s(i, j)   = sum_r sum_column line_x[r][column] t_r(i + column - origin_x, j)
//
// Where column_shift is 0 nothing is rounded between, and s is the sum of the weights' products.
// Where it is not, op_convolve_in_words() holds. Other sums of products stay below 2^52, whatever the
// picture and their order, so that 32 bits, single or double precision give the same wherever
// op_convolve_max() fits them.
enum { KERNEL_SIDE = 511 };

struct op_convolve {
    const int32_t *weight;                // the program's, row by row; rank 0 only
    const int32_t *line_x[2], *line_y[2]; // the program's; as many as `rank` says
    int rank;
    int column_shift;  // rank 1 and 2: bits that t loses
    bool words;        // op_convolve_in_words() of the samples that it sees
    int width, height; // up to KERNEL_SIDE
    int origin_x, origin_y;
    int bits;
    int64_t offset;
    bool absolute;
    int base;
    int low, high;
    const char *why; // (optional) it has this form, for people; a static string
};

enum norm {
    NORM_L1, // |gx| + |gy|
    NORM_L2, // sqrt(gx^2 + gy^2)
    NORM_X,  // |gx|
    NORM_Y,  // |gy|
};

// The length of the gradient by a 3x3 pair of derivative filters,
//
//        -side   0  side              -side -center -side
//   gx = -center 0  center       gy =   0      0      0
//        -side   0  side               side  center  side
//
//   L1, X, Y:  y = base + min(limit, (m * scale + 2^15) >> 16),        m the norm above
//   L2:        y = base + min(limit, (r * scale + 2^23) >> 24),        r = floor(256 sqrt(m)),
//                                                                      m = gx^2 + gy^2
struct op_gradient {
    int side, center;
    enum norm norm;
    int64_t scale; // 1.0 = 65536
    int base, limit;
};

// y = x. Analysis: struct statistics.
struct op_statistics {
    int depth;             // of x
    const char *component; // "Y", "Cb", "R"; static
    double zero, scale;    // of its codes, see struct levels
};

enum { STATISTICS_BINS = 256 };

// A plane's samples x: the least and the greatest, the sums of x and of x^2, and how many
// there are of each value of their upper 8 bits.
struct statistics {
    int64_t low, high;
    uint64_t sum, squares;
    uint64_t bin[STATISTICS_BINS];
};

// Moments in full-range 8-bit code values; chroma about 0.
struct moments {
    double low, high, mean, deviation;
};
struct moments statistics_moments(const struct op_statistics *op, const struct statistics *found,
                                  double samples);

// The two-dimensional continuous wavelet transform with the Mexican hat, at each of some scales s:
//
//   W_s(i, j) = C / N(s) sum over all a, b of
//               f(i + a, j + b) (r - 2) exp(-r / 2),   r = (a^2 + b^2) / s^2
//
// with f = (x - black) * unit, C = 1 / sqrt(2 pi), which makes the wavelet's norm 1 with N(s) = s.
// A bright spot gives a negative W, as the factor r - 2 says. What is made is this sum to 1e-4 of
// the full scale F(s), the largest |W_s| that a picture can give far from its edges,
//
//   F(s) = 255 C / N(s) sum of max(0, (r - 2) exp(-r / 2)),   or of its negative if that is more
//
// (terms beyond |a|, |b| = 5 s add less than that), and it is defined to the bit by the grids, taps
// and weights of plan/wavelet_grid.h and the order of sums. All numbers are of IEEE single
// precision. Every result is rounded to nearest, ties to even, nothing is contracted, and
//
//   S_k(t_k, v_k)   is a chain: s = 0, then s = fma(t_k, v_k, s) for one k after another,
//   ascending,
//                   fma rounding once
//
// On the first level, D = 1, cells are the samples less black, extended by the border. On others,
// of a cell at column i, whose taps along the rows are tap_x, and row j, tap_y down the columns:
//
//   down     q_r(x) = S_y(tap_y, x(x, y) - black) over the rows y of the picture with y % 8 = r
//            q(x)   = q_0(x) + q_1(x) + ... + q_7(x), from the left
//   along    cell   = S_x(tap_x, q(x)) if D <= 4, or if D <= 32 and the cell is an inner one; else
//            p_m    = S_k(tap_x, q(first + k)) over the k with k % 32 = m, tap 0 being that of
//            first;
//                     p_m += p_(m + 16) for all m < 16, the same with 8, 4, 2, 1; cell = p_0
//
// Values of a scale, with its taps smooth and bent, n = 2 radius + 1 of each, of cells c:
//
//   down     s(i, j) = S_b(smooth[b], c(i, j + b)),   t(i, j) = S_b(bent[b], c(i, j + b))
//   along    value(i, j) = the chain of bent[a], s(i + a, j) and smooth[a], t(i + a, j) for each a
//
// which are W where D = 1. On others, at phase px = x % D, py = y % D, between the six values along
// each axis from x / D, y / D on, with w = the level's spline:
//
//   along    h_n = S_m(w[m][px], value(x / D + m, y / D + n)),  0 <= n < 6
//   down     D > 32:       W = S_n(w[n][py], h_n)
//            py = 0:       W = the chain of w[0][0], h_0 + h_4; w[1][0], h_1 + h_3; w[2][0], h_2
//            else, with e(p) = S_n(even[p][n], h_n + h_(5 - n)),
//                       o(p) = S_n(odd[p][n], h_n - h_(5 - n)), n = 0, 1, 2:
//            py < D / 2:   W = e(py) + o(py)
//            py = D / 2:   W = e(py)
//            py > D / 2:   W = e(D - py) - o(D - py)
//
// The result, from W_k of scale[k], with limit(v) = v limited to 0 .. high, + 1/2, rounded down:
//
//   ABS     y = limit(|W_0| gain)
//   SIGNED  y = limit(fma(W_0, gain, high / 2))
//   MAX     y = limit(max over k of |W_k|, times gain)
//   SCALE   y = 0 if that maximum times gain is below 1/2, else min(high, 1 + the first k of it)
//
// Analysis: a double for each scale, its energy, the mean of W_k^2 over the picture, W_k in whole
// steps: the sum of the squares of W_k step, rounded to integers, which is exact, divided by step^2
// and by the number of samples. Then, if `planes`, all W_k as float, scale by scale, row by row.
// J.-P. Antoine, R. Murenzi, P. Vandergheynst, S. T. Ali, Two-Dimensional Wavelets and their
// Relatives, Cambridge 2004, section 3.3.
enum wavelet_norm {
    WAVELET_L2,      // N(s) = s
    WAVELET_ARTICLE, // N(s) = sqrt(s)
};

enum wavelet_show { WAVELET_ABS, WAVELET_SIGNED, WAVELET_MAX, WAVELET_SHOW_SCALE };

// 2.5 2^15 is the first scale that no grid is coarse enough for (wavelet_grid.h).
enum { WAVELET_SCALES = 256, MAX_WAVELET_SCALE = 65536 };

struct op_wavelet {
    const double *scale; // the program's
    int scales;
    enum wavelet_norm norm;
    double black, unit; // f in full-range 8-bit code values
    enum wavelet_show show;
    double gain; // code values of the result per unit of W
    int high;    // its largest code
    bool planes; // analysis holds W, too
};
// struct op_match and struct op_mark: plan/match.h.

// One operation. Sources and result are plane numbers of the program.
struct op {
    enum op_kind kind;
    const char *stage; // what the user wrote that it stands for; NULL: it was added by itself
    int record; // which of the chain's stages that record it belongs to, see chain_files(); -1:
                // none
    int sources;
    int source[3];
    int result;
    enum border border; // stencils only
    int border_value;   // BORDER_ZERO: the code of black or neutral
    union {
        struct op_affine affine;
        struct op_threshold threshold;
        struct op_table table;
        struct op_mix mix;
        struct op_separable separable;
        struct op_box box;
        struct op_convolve convolve;
        struct op_gradient gradient;
        struct op_statistics statistics;
        struct op_wavelet wavelet;
        struct op_match match;
        struct op_mark mark;
    };
};

// The family of an operation: what it may do in a pass. One of these four holds.
bool op_is_pointwise(const struct op *op);
bool op_is_mix(const struct op *op);
bool op_is_stencil(const struct op *op);

// An operation on the full frame needs all of it at once: it is a pass by itself, from memory to
// memory, and pictures of programs that hold one are not filtered field by field.
bool op_is_full_frame(const struct op *op);

// The bytes of its analysis, for a source plane of this size; 0: there is none.
size_t op_analysis_bytes(const struct op *op, int width, int height);

// The number of the operation, an earlier one, whose analysis it reads; -1: none.
int op_reads_analysis(const struct op *op);

// Stencils: how many columns (rows) around a place the result depends on, on the farther side.
int op_radius_x(const struct op *op);
int op_radius_y(const struct op *op);

// How large |s| + |offset| of OP_CONVOLVE, and every sum on the way there, may become of samples of
// `depth` bits.
int64_t op_convolve_max(const struct op_convolve *op, int depth);

// True if the lines of OP_CONVOLVE and t, of samples of `depth` bits, fit 16 bits with their sign,
// sums of columns 32, and |s| + |offset| 32, whatever sums on the way there are modulo 2^32. Kernels
// multiply 16-bit numbers then.
bool op_convolve_in_words(const struct op_convolve *op, int depth);

// How many products make one sample of OP_CONVOLVE.
int op_convolve_products(const struct op_convolve *op);

// How large transforms pay: up to so many times the kernel's side, and up to `most`, or more where
// the kernel asks for it.
struct transform_size {
    int times, most;
};

// The largest side of the transforms that a kernel of this side is made with, where it is made so.
int op_convolve_transform_side(int side, struct transform_size size);

// A library of Fourier transforms in double precision, and what bounds its errors. A level is that
// from transforms of N / 2 to those of N.
struct transform_library {
    const char *name;    // for people
    double factor_error; // of its roots of unity, at most, in units of 2^-53
    double products;     // with these that a value goes through on a level, at most and on average
    int additions;       // of a transform, one after another, besides one on each level
    int most;            // the largest side that it transforms; 0: any
};

// The error of such transforms in s, at most, of samples of `depth` bits about the middle of their
// range: |x| |w| ((1 + e)^(3n + 3a) ((1 + e sqrt 5) (1 + b))^(3np) (1 + e sqrt 5) - 1) for those of
// 2^n samples; e = 2^-53, b is the error of the roots of unity, p the number of products and a that
// of additions. It is that of C. Percival, "Rapid multiplication modulo the sum and difference of
// highly composite numbers", Math. Comp. 72 (2003), theorem 5.1, where p = 1 and a = 0; the proof
// multiplies these terms as a value goes through additions and products. Those err by e sqrt 5: R.
// Brent, C. Percival, P. Zimmermann, "Error bounds on complex floating-point multiplication", Math.
// Comp. 76 (2007), and by less where they are fused. In first order it is n (e + p (b + e sqrt 5))
// a transform, as in N. Higham, "Accuracy and Stability of Numerical Algorithms", theorem 24.2.
double op_convolve_transform_error(const struct op_convolve *op, struct transform_size size,
                                   const struct transform_library *library, int depth);

// True if rounding gives s itself, of these transforms: the error stays below 1/2, by some margin.
bool op_convolve_transform_is_exact(const struct op_convolve *op, struct transform_size size,
                                    const struct transform_library *library, int depth);

// Where in the analysis of OP_WAVELET the planes begin.
static inline void *op_wavelet_planes(const struct op_wavelet *op, void *analysis)
{
    return (uint8_t *)analysis + (size_t)op->scales * sizeof(double);
}

// C / N(s) times `unit` of OP_WAVELET.
double op_wavelet_factor(const struct op_wavelet *op, double scale);

// The largest |W_s| that an upright edge from black to white gives.
double op_wavelet_edge(const struct op_wavelet *op, double scale);

// The value of a pointwise operation at sample `x`: its definition, and how tables are folded.
int op_apply(const struct op *op, int x);

// The same of each of `count` samples, in their places.
void op_apply_all(const struct op *op, uint16_t *sample, size_t count);

// The index in 0 .. length - 1 that stands for index `i` of a row of `length` samples, any distance
// outside; -1 where the border value stands.
int border_index(enum border border, int i, int length);

// Short names for messages and plans ("separable", "replicate").
const char *op_name(const struct op *op);
const char *border_name(enum border border);
