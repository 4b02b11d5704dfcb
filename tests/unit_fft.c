// Fourier transforms of the CPU: what they err by beside what is said to bound it, each library that
// is here.
#include "tests/unit.h"

#include <libavutil/mem.h>
#include <libavutil/tx.h>
#include <libavutil/version.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu/fft_library.h"

static const char *const names[] = {"fftw", "libavutil"};
enum { LIBRARIES = sizeof names / sizeof *names };

static uint32_t noise;

static uint32_t next(void)
{
    noise = noise * 1664525u + 1013904223u;
    return noise >> 8;
}

// ---- the choice ----

static void the_first_library_that_is_there_is_chosen(void **state)
{
    (void)state;
    const struct transform_library *library, *first = NULL;
    const char *why;
    for (int k = 0; k < LIBRARIES; k++)
        if (fft_choose(names[k], &library, &why) && !first)
            first = library;
    assert_true(fft_choose(NULL, &library, &why));
    assert_ptr_equal(library, first);
    assert_true(library && !strcmp(library->name, "FFTW") ? !why : why != NULL);
    assert_true(fft_choose("none", &library, &why));
    assert_null(library);
    assert_non_null(why);
    assert_false(fft_choose("FFTW", &library, &why));
    assert_false(fft_choose("", &library, &why));
}

// This program is linked with libavutil: it is there, and it is this one.
static void libavutil_is_what_its_header_says(void **state)
{
    (void)state;
    const struct transform_library *library;
    const char *why;
    char name[32];
    snprintf(name, sizeof name, "libavutil %d", LIBAVUTIL_VERSION_MAJOR);
    assert_true(fft_choose("libavutil", &library, &why));
    assert_string_equal(library->name, name);
    assert_int_equal(AV_TX_DOUBLE_FFT, 2);
    assert_int_equal(sizeof(enum AVTXType), sizeof(int));
}

// ---- roots of unity ----

// What a dot beside the first place becomes, beside roots in extended precision.
static double worst_root(int length)
{
    AVTXContext *context = NULL;
    av_tx_fn function;
    double(*from)[2] = av_calloc((size_t)length, sizeof *from);
    double(*to)[2] = av_calloc((size_t)length, sizeof *to);
    assert_true(from && to);
    assert_int_equal(av_tx_init(&context, &function, AV_TX_DOUBLE_FFT, 0, length, NULL, 0), 0);
    from[1][0] = 1;
    function(context, to, from, sizeof *to);
    long double worst = 0, turn = -2 * acosl(-1) / length;
    for (int k = 0; k < length; k++)
        worst = fmaxl(worst, hypotl(to[k][0] - cosl(k * turn), to[k][1] - sinl(k * turn)));
    av_tx_uninit(&context);
    av_free(from);
    av_free(to);
    return (double)worst;
}

static void roots_of_libavutil_are_as_near_as_is_said(void **state)
{
    (void)state;
    const struct transform_library *library;
    const char *why;
    double worst = 0;
    assert_true(fft_choose("libavutil", &library, &why));
    for (int length = 16; length <= library->most; length *= 2)
        worst = fmax(worst, worst_root(length));
    print_message("roots of libavutil: %.2f of 2^-53, %.2f said\n", ldexp(worst, 53),
                  library->factor_error);
    assert_true(worst < ldexp(library->factor_error, -53));
    assert_true(sizeof(long double) == sizeof(double) || worst > ldexp(0.1, -53));
}

// ---- sums ----

// Numbers of size `most`, of one kind of picture or kernel.
static const char *const kinds[] = {"flat",  "noise", "signs", "columns", "rows",
                                    "board", "dot",   "ramp",  "waves"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int number(int kind, int i, int j, int most)
{
    switch (kind) {
    case 0:
        return most;
    case 1:
        return (int)(next() % (2u * (unsigned)most + 1)) - most;
    case 2:
        return next() & 1 ? most : -most;
    case 3:
        return i & 1 ? most : -most;
    case 4:
        return j & 1 ? most : -most;
    case 5:
        return (i ^ j) & 1 ? most : -most;
    case 6:
        return i == 7 && j == 2 ? most : 0;
    case 7:
        return most - (i + 3 * j) * 97 % most;
    default:
        return (int)(most * sin(0.7 * i) * cos(1.9 * j));
    }
}

// Sums up to 2^52, which both ways to add hold: samples of 16 bits, weights by their number.
enum { DEPTH = 16 };

static int64_t exact(struct fft *fft, const struct op_convolve *op, const double *sample,
                     int column, int row)
{
    int64_t sum = 0;
    int columns = fft_sample_columns(fft);
    for (int j = 0; j < op->height; j++)
        for (int i = 0; i < op->width; i++)
            sum += op->weight[j * op->width + i] *
                   (int64_t)sample[(size_t)(row + j) * (size_t)columns + (size_t)(column + i)];
    return sum;
}

// The greatest error of `places` sums, and of those in the corners.
static double worst_sum(struct fft *fft, const struct op_convolve *op, int kind, int places)
{
    int columns = fft_sample_columns(fft), rows = fft_sample_rows(fft);
    double *sample = malloc((size_t)columns * (size_t)rows * sizeof *sample), worst = 0;
    assert_non_null(sample);
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < columns; i++)
            *fft_sample(fft, i, j) = sample[(size_t)j * (size_t)columns + (size_t)i] =
                number(kind, i, j, (1 << (DEPTH - 1)) - 1);
    fft->library->run(fft);
    for (int k = 0; k < places + 4; k++) {
        bool corner = k < 4;
        int x =
            corner ? (k & 1) * (fft_columns(fft) - 1) : (int)(next() % (unsigned)fft_columns(fft));
        int y = corner ? (k >> 1) * (fft_rows(fft) - 1) : (int)(next() % (unsigned)fft_rows(fft));
        worst = fmax(worst, fabs(*fft_sample(fft, x, y) - (double)exact(fft, op, sample, x, y)));
    }
    free(sample);
    return worst;
}

// The greatest error of all kinds of pictures by kernels, as a part of its bound.
static double worst_part(const struct transform_library *library, int width, int height, int kind)
{
    static int32_t weight[511 * 511];
    struct op_convolve op = {.weight = weight, .width = width, .height = height};
    struct fft *fft;
    int count = width * height, most = (int)fmin(ldexp(1, 37) / count, 1 << 30);
    for (int k = 0; k < count; k++)
        weight[k] = number(kind, k % width, k / width, most);
    double bound = op_convolve_transform_error(&op, fft_size, library, DEPTH), worst = 0;
    assert_int_equal(fft_create(library, &op, 5000, &fft), STATUS_OK);
    int places = count > 1 << 16 ? 20 : 200;
    for (int picture = 0; picture < KINDS; picture++)
        worst = fmax(worst, worst_sum(fft, &op, picture, places) / bound);
    assert_true(fft_bytes(fft) > fft_values(fft) * sizeof *fft->tile);
    fft_destroy(&fft);
    assert_null(fft);
    return worst;
}

static void sums_err_by_less_than_their_bound(void **state)
{
    (void)state;
    static const int sides[][2] = {{31, 31}, {20, 64}, {3, 200}, {200, 3}, {65, 65}, {511, 511}};
    const struct transform_library *library;
    const char *why;
    for (int l = 0; l < LIBRARIES; l++) {
        if (!fft_choose(names[l], &library, &why)) {
            print_message("%s is not there\n", names[l]);
            continue;
        }
        for (size_t s = 0; s < sizeof sides / sizeof *sides; s++) {
            double worst = 0;
            int width = sides[s][0], height = sides[s][1], worst_kind = 0;
            for (int kind = 0; kind < KINDS; kind++) {
                double part = worst_part(library, width, height, kind);
                worst_kind = part > worst ? kind : worst_kind;
                worst = fmax(worst, part);
            }
            print_message("%s, %dx%d: up to %.4f of the bound, by a kernel of %s\n", library->name,
                          width, height, worst, kinds[worst_kind]);
            assert_true(worst < 1);
            assert_true(worst > 1e-5);
        }
    }
}

// Pictures narrower than a tile have narrower ones.
static void narrow_pictures_have_the_same_sums(void **state)
{
    (void)state;
    static int32_t weight[9 * 50];
    struct op_convolve op = {.weight = weight, .width = 9, .height = 50};
    const struct transform_library *library;
    const char *why;
    for (int k = 0; k < 9 * 50; k++)
        weight[k] = number(1, k, 0, 100);
    for (int l = 0; l < LIBRARIES; l++)
        for (int columns = 1; columns < 50 && fft_choose(names[l], &library, &why); columns += 7) {
            struct fft *fft;
            assert_int_equal(fft_create(library, &op, columns, &fft), STATUS_OK);
            assert_true(fft_columns(fft) >= columns && fft_sample_columns(fft) <= 128);
            for (int kind = 0; kind < KINDS; kind++)
                assert_true(worst_sum(fft, &op, kind, 50) < 0.01);
            fft_destroy(&fft);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_library_that_is_there_is_chosen),
        cmocka_unit_test(libavutil_is_what_its_header_says),
        cmocka_unit_test(roots_of_libavutil_are_as_near_as_is_said),
        cmocka_unit_test(sums_err_by_less_than_their_bound),
        cmocka_unit_test(narrow_pictures_have_the_same_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
