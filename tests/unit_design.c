// Borders and filter design: from real weights to the integers of operations.
#include "tests/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/parser.h"
#include "stages/design/convolution.h"
#include "stages/design/separable.h"

static const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};

// ---- borders ----

static void borders_reach_any_distance(void **state)
{
    (void)state;
    static const struct {
        enum border border;
        int index[13]; // samples -5 .. 7 of a row of 3
    } rows[] = {
        {BORDER_REPLICATE, {0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2}},
        {BORDER_ZERO, {-1, -1, -1, -1, -1, 0, 1, 2, -1, -1, -1, -1, -1}},
        {BORDER_REFLECT, {1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1}},
        {BORDER_MIRROR, {1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1}},
        {BORDER_WRAP, {1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int i = -5; i <= 7; i++)
            assert_int_equal(border_index(rows[k].border, i, 3), rows[k].index[i + 5]);
}

// ---- filter design ----

static double ideal[4096];

// The truncated, normalised Gaussian, zero from radius + 1 on.
static void ideal_weights(double sigma, int radius, double *weight)
{
    double sum = 0;
    memset(weight, 0, sizeof ideal);
    for (int i = -radius; i <= radius; i++)
        sum += exp(-(double)i * i / (2 * sigma * sigma));
    for (int i = 0; i <= radius; i++)
        weight[i] = exp(-(double)i * i / (2 * sigma * sigma)) / sum;
}

// The response to a row of zeros with one sample of a million: the filter's effect, exact enough.
static double effect_at(const struct op_separable *f, int i, int impulse)
{
    int d = 1 << f->decimate_x, m = i >> f->decimate_x, phase = i & (d - 1);
    double sum = 0;
    for (int side = 0; side < 2; side++)
        for (int k = -f->radius_x; k <= f->radius_x; k++) {
            int from = abs(impulse - (m + side + k) * d);
            double tent = from < d ? (d - from) / ((double)d * d) : 0;
            sum +=
                (side ? phase : d - phase) / (double)d * ldexp(f->tap_x[abs(k)], -f->bits) * tent;
        }
    return sum;
}

// The contract of stages/design/separable.h: no picture can differ by more than 1 code value. The
// worst picture is white where the effect is too large and black where it is too small.
static void gaussians_stay_within_one_code(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    for (double sigma = 0.1; sigma <= 250; sigma *= sigma > 30 ? 1.5 : 1.15) {
        int radii[] = {-1, 1, (int)ceil(sigma), (int)(2 * sigma) + 1, 5000};
        for (int r = 0; r < 5; r++) {
            struct program program;
            assert_int_equal(program_init(&program, &gray), STATUS_OK);
            program_gaussian(&program, 0, sigma, radii[r], BORDER_REPLICATE, 0);
            int radius = radii[r] < 0 ? gaussian_radius(sigma) : radii[r];
            radius = radius < 1700 ? radius : 1700;
            if (program.ops) {
                const struct op_separable *f = &program.op[0].separable;
                int64_t sum = f->tap_x[0];
                for (int k = 1; k <= f->radius_x; k++)
                    sum += 2 * (int64_t)f->tap_x[k];
                assert_int_equal(sum, INT64_C(1) << f->bits);
                int d = 1 << f->decimate_x, reach = radius + 3 * d;
                double worst = 0;
                ideal_weights(sigma, radius, ideal);
                for (int i = 0; i<d; i += d> 4 ? d / 4 : 1) {
                    double half = 0;
                    for (int k = -reach; k <= reach; k++)
                        half += 127.5 * fabs(effect_at(f, i, i + k) - ideal[abs(k)]);
                    worst = half > worst ? half : worst;
                }
                double rounding = 0.5 + ldexp(0.5, -f->fraction);
                if (2 * worst + rounding > 1)
                    fail_msg("sigma %g radius %d: error %g", sigma, radii[r], 2 * worst + rounding);
            } else {
                ideal_weights(sigma, radius, ideal);
                assert_true(127.5 * 2 * (1 - ideal[0]) < 0.25);
            }
            program_free(&program);
        }
    }
}

// ---- convolutions ----

enum { WIDTH = 23, HEIGHT = 17 };

// Lines whose products sum to `weight` within `tolerance`, the larger pair first.
static void expect_lines(const double *weight, double tolerance)
{
    double memory_x[2][WIDTH], memory_y[2][HEIGHT], size[2] = {0};
    double *x[2] = {memory_x[0], memory_x[1]}, *y[2] = {memory_y[0], memory_y[1]};
    convolution_lines(weight, WIDTH, HEIGHT, x, y);
    for (int j = 0; j < HEIGHT; j++)
        for (int i = 0; i < WIDTH; i++) {
            double sum = y[0][j] * x[0][i] + y[1][j] * x[1][i];
            assert_true(fabs(sum - weight[j * WIDTH + i]) <= tolerance);
        }
    for (int r = 0; r < 2; r++)
        for (int j = 0; j < HEIGHT; j++)
            size[r] += y[r][j] * y[r][j];
    assert_true(size[0] >= size[1]);
}

static void lines_are_the_best_of_a_kernel(void **state)
{
    (void)state;
    double weight[HEIGHT * WIDTH], small = 1e-3;
    for (int rank = 1; rank <= 3; rank++) {
        for (int k = 0; k < HEIGHT * WIDTH; k++) {
            double i = k % WIDTH, j = k / WIDTH;
            weight[k] = sin(j + 1) * cos(0.3 * i);
            weight[k] += rank > 1 ? 7 * (j - 8) * (i + 1) : 0;
            weight[k] += rank > 2 ? small * cos(2 * j) * sin(5 * i + 1) : 0;
        }
        // Two pairs leave no more than the third was, by its Frobenius norm.
        expect_lines(weight, rank < 3 ? 1e-9 : small * sqrt(HEIGHT * WIDTH));
    }
    memset(weight, 0, sizeof weight);
    weight[5 * WIDTH + 3] = 1;
    expect_lines(weight, 0);
}

static void lower_text(const char *text, const struct format *format, struct program *program)
{
    struct chain chain;
    struct chain_error error;
    assert_int_equal(chain_parse(text, NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(program, format), STATUS_OK);
    assert_int_equal(chain_lower(&chain, program), STATUS_OK);
    chain_free(&chain);
}

// The operation that a chain of one convolution comes to, and how far its weights are from
// `wanted`.
static void expect_weights(const char *text, const struct format *format, int rank,
                           const double *wanted)
{
    struct program program;
    lower_text(text, format, &program);
    const struct op_convolve *f = &program.op[0].convolve;
    double above = 0, below = 0;
    assert_int_equal(f->rank, rank);
    assert_true(op_convolve_max(f, format->depth) < INT64_C(1) << 52);
    for (int k = 0; k < f->width * f->height; k++) {
        double weight = rank ? 0 : f->weight[k];
        for (int r = 0; r < rank; r++)
            weight += (double)f->line_y[r][k / f->width] * f->line_x[r][k % f->width];
        weight = ldexp(weight, -f->bits - f->column_shift) - wanted[k];
        above += fmax(weight, 0);
        below += fmax(-weight, 0);
    }
    double rounding = 0; // of sums of columns, in code values of 8 bits
    for (int r = 0; r < rank && f->column_shift; r++)
        for (int k = 0; k < f->width; k++)
            rounding += ldexp(abs(f->line_x[r][k]), 7 - f->bits - format->depth);
    assert_true(!f->column_shift || op_convolve_in_words(f, format->depth));
    assert_true(255 * fmax(above, below) + rounding <= 0.47);
    program_free(&program);
}

static void convolutions_stay_within_one_code(void **state)
{
    (void)state;
    static const char even[] = "convolve=1 2 3 4/5 6 7 9:0.3";
    double wanted[81], turned[8] = {9, 7, 6, 5, 4, 3, 2, 1};
    for (int depth = 8; depth <= 16; depth += 4) {
        struct format gray = format_planar(MODEL_GRAY, depth, 0, 0, false, &full);
        for (int k = 0; k < 8; k++)
            wanted[k] = 0.3 * turned[k];
        expect_weights(even, &gray, 0, wanted);
        for (int k = 0; k < 81; k++)
            wanted[k] = 1.0 / 81;
        expect_weights("sepconvolve=1 1 1 1 1 1 1 1 1", &gray, 1, wanted);
        for (int k = 0; k < 81; k++)
            wanted[k] = exp(-0.1 * (k % 9)) * sin(k / 9 + 1.0);
        char text[4096] = "convolve=";
        for (int k = 80; k >= 0; k--)
            sprintf(text + strlen(text), "%.17g%s", wanted[k], !k ? "" : k % 9 ? " " : "/");
        strcat(text, ":1");
        expect_weights(text, &gray, 1, wanted);
    }
}

// Sums of columns are rounded only where lines are not whole.
static void lines_are_rounded_where_they_must(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rank; // in words, whose t is rounded; 0: nothing is
    } cases[] = {{"log=2", 2},
                 {"dog=1:3:8:signed", 2},
                 {"sepconvolve=1 1 1 1 1 1 1", 0},
                 {"sepconvolve=1 2 3 4 5 4 3 2 1:1 2 3 2 1", 0},
                 {"sepconvolve=0.1 0.25 0.3 0.25 0.1:0.1 0.25 0.3 0.25 0.1", 1}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int depth = 8; depth <= 16; depth += 2) {
            struct format gray = format_planar(MODEL_GRAY, depth, 0, 0, false, &full);
            struct program program;
            lower_text(cases[n].text, &gray, &program);
            const struct op_convolve *f = &program.op[0].convolve;
            assert_int_equal(f->column_shift ? f->rank : 0, cases[n].rank);
            assert_int_equal(f->words, f->rank && op_convolve_in_words(f, depth));
            assert_true(f->words || !f->column_shift);
            program_free(&program);
        }
}

// Rounded t is only where sums fit, however small a kernel's gain is, at each depth, of luma and chroma:
// rounding may add more than the gain.
static void sums_in_words_fit(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "convolve=0 0 1 0 0/0 0 1 0 0/1 1 1 1 1/0 0 1 0 0/0 0 1 0 0:0.0001",
        "dog=0.5:1:0.01",
        "dog=1:1.001:16384",
        "log=85:0.01:signed",
        "log=0.3:16384",
        "sepconvolve=0.77 0.56 0.55 0.74 0.77:0.6 0.65 0.62 0.29 0.2:8.11",
        "convolve=1e-310",
        "sepconvolve=1e-300:1e-300",
        "sepconvolve=0.1 0.7:0.3 0.2 0.9:1:-255"};
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        for (int depth = 8; depth <= 16; depth += 2)
            for (int limited = 0; limited < 2; limited++) {
                struct format meaning = full;
                meaning.range = limited ? RANGE_LIMITED : RANGE_FULL;
                struct format format = format_planar(MODEL_YUV, depth, 1, 1, false, &meaning);
                struct program program;
                lower_text(texts[n], &format, &program);
                for (int k = 0; k < program.ops; k++) {
                    const struct op_convolve *f = &program.op[k].convolve;
                    if (program.op[k].kind == OP_CONVOLVE)
                        assert_true(f->words || !f->column_shift);
                }
                program_free(&program);
            }
}

// A transform of zeros and ones errs by next to nothing, one of the largest weights by more than
// what rounding forgives.
static void transforms_err_by_what_weights_ask(void **state)
{
    (void)state;
    static int32_t weight[31 * 31];
    struct op_convolve op = {.weight = weight, .width = 31, .height = 31};
    struct transform_size sides = {.times = 4, .most = 1024};
    static const struct transform_library rounded = {.factor_error = 1, .products = 1};
    assert_true(op_convolve_transform_error(&op, sides, &rounded, 16) == 0);
    double before = 0;
    for (int32_t size = 1; size < 1 << 30; size *= 8) {
        for (int k = 0; k < 31 * 31; k++)
            weight[k] = k % 2 ? size : -size;
        double error = op_convolve_transform_error(&op, sides, &rounded, 8);
        assert_true(error > 7.9 * before);
        before = error;
    }
    assert_true(before > 0.5);
    struct transform_size small = {4, 64};
    assert_true(op_convolve_transform_error(&op, small, &rounded, 8) < before);
    for (int side = 1; side <= 511; side++)
        for (sides.most = 64; sides.most <= 4096; sides.most *= 8)
            assert_true(op_convolve_transform_side(side, sides) >= 2 * side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_reach_any_distance),
        cmocka_unit_test(gaussians_stay_within_one_code),
        cmocka_unit_test(lines_are_the_best_of_a_kernel),
        cmocka_unit_test(convolutions_stay_within_one_code),
        cmocka_unit_test(lines_are_rounded_where_they_must),
        cmocka_unit_test(sums_in_words_fit),
        cmocka_unit_test(transforms_err_by_what_weights_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
