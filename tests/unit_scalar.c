// The scalar reference itself, against pictures worked out by hand.
#include "tests/unit.h"

#include "cpu/reference/scalar.h"
#include "stages/chain.h"

struct hand {
    const char *chain;
    int width, height;
    const uint8_t *in, *out;
};

static const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};
static const struct format limited = {.range = RANGE_LIMITED, .kr = 0.299, .kb = 0.114};

// Run `chain` on a picture of `format`; both pictures are planes one after another, rows tight.
static void run(const char *chain_text, const struct format *format, int width, int height,
                const uint8_t *in, uint8_t *out, struct format *result)
{
    struct chain chain;
    struct chain_error error;
    struct program program;
    assert_int_equal(chain_parse(chain_text, NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(&program, format), STATUS_OK);
    assert_int_equal(chain_lower(&chain, &program), STATUS_OK);
    assert_int_equal(program_finish(&program, NULL), STATUS_OK);
    struct image images[2] = {{.format = format, .width = width, .height = height},
                              {.format = &program.output, .width = width, .height = height}};
    uint8_t *bytes[2] = {(uint8_t *)in, out};
    for (int k = 0; k < 2; k++)
        for (int p = 0; p < images[k].format->planes; p++) {
            images[k].data[p] = bytes[k];
            images[k].stride[p] = (ptrdiff_t)format_row_bytes(images[k].format, p, width);
            bytes[k] += images[k].stride[p] * format_rows(images[k].format, p, height);
        }
    assert_int_equal(scalar_run(&program, &(struct work){.source = images[0], .target = images[1]}),
                     STATUS_OK);
    if (result)
        *result = program.output;
    program_free(&program);
    chain_free(&chain);
}

static void check_gray(const struct hand *hand)
{
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    uint8_t out[64];
    run(hand->chain, &gray, hand->width, hand->height, hand->in, out, NULL);
    for (int k = 0; k < hand->width * hand->height; k++)
        if (out[k] != hand->out[k])
            fail_msg("%s: sample %d is %d, by hand %d", hand->chain, k, out[k], hand->out[k]);
}

#define B(...) ((const uint8_t[]){__VA_ARGS__})

static void pointwise_by_hand(void **state)
{
    (void)state;
    const struct hand hands[] = {
        {"brightness=20", 4, 1, B(0, 100, 235, 255), B(20, 120, 255, 255)},
        {"brightness=-20", 4, 1, B(0, 19, 20, 255), B(0, 0, 0, 235)},
        {"brightness=0.5", 2, 1, B(7, 255), B(8, 255)},                // ties upward
        {"contrast=2", 4, 1, B(0, 100, 128, 255), B(0, 73, 129, 255)}, // 72.5, 128.5
        {"contrast=0", 2, 1, B(0, 255), B(128, 128)},                  // 127.5
        {"invert", 3, 1, B(0, 1, 255), B(255, 254, 0)},
        {"gamma=2", 4, 1, B(0, 64, 128, 255), B(0, 128, 181, 255)}, // 127.75, 180.67
        {"threshold=20:240", 6, 1, B(0, 19, 20, 240, 241, 255), B(0, 0, 20, 240, 255, 255)},
        {"threshold=19.5:240.5", 4, 1, B(19, 20, 240, 241), B(0, 20, 240, 255)},
        {"binarize=128", 3, 1, B(127, 128, 255), B(0, 255, 255)},
        {"binarize=256", 2, 1, B(0, 255), B(0, 0)},
        {"null", 3, 1, B(1, 2, 3), B(1, 2, 3)},
    };
    for (size_t k = 0; k < sizeof hands / sizeof *hands; k++)
        check_gray(&hands[k]);
}

// The sum of three neighbours along a row, divided by three, shows each border at once.
static void borders_by_hand(void **state)
{
    (void)state;
    const struct hand hands[] = {
        // Rows above and below are the row itself, so the mean of nine is the mean of three.
        {"box=1:replicate", 4, 1, B(10, 20, 30, 90), B(13, 20, 47, 70)},
        {"box=1:reflect", 4, 1, B(10, 20, 30, 90), B(13, 20, 47, 70)},
        {"box=1:mirror", 4, 1, B(10, 20, 30, 90), B(17, 20, 47, 50)},
        {"box=1:wrap", 4, 1, B(10, 20, 30, 90), B(40, 20, 47, 43)},
        // Rows above and below are black: a third of that. 30/9, 60/9, 140/9, 120/9.
        {"box=1:zero", 4, 1, B(10, 20, 30, 90), B(3, 7, 16, 13)},
        // Five wide: replicate and reflect part ways. (10+10+10+20+30)/5 and (20+10+10+20+30)/5.
        {"box=2:replicate", 4, 1, B(10, 20, 30, 90), B(16, 32, 48, 64)},
        {"box=2:reflect", 4, 1, B(10, 20, 30, 90), B(18, 32, 48, 52)},
        // A radius beyond the picture: the same sample for ever.
        {"box=5:mirror", 1, 1, B(77), B(77)},
        {"box=9:wrap", 1, 1, B(77), B(77)},
    };
    for (size_t k = 0; k < sizeof hands / sizeof *hands; k++)
        check_gray(&hands[k]);
}

static void stencils_by_hand(void **state)
{
    (void)state;
#define POINT(v) B(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, v, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define NEAR(a, b, c) B(0, 0, 0, 0, 0, 0, a, b, a, 0, 0, b, c, b, 0, 0, a, b, a, 0, 0, 0, 0, 0, 0)
    const struct hand hands[] = {
        // Convolution: a point of 1 becomes the kernel as it is written, the middle of 2 x 2 being
        // its last; then 1/10 of it and 2, and sums of both lines with a border of black.
        {"convolve=1 2 3/4 5 6/7 8 9:1", 5, 5, POINT(1),
         B(0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 7, 8, 9, 0, 0, 0, 0, 0, 0)},
        {"convolve=1 2/3 4:1", 5, 5, POINT(1),
         B(0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
        {"convolve=1 2/3 4:0.1:2", 5, 5, POINT(10),
         B(2, 2, 2, 2, 2, 2, 3, 4, 2, 2, 2, 5, 6, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)},
        {"sepconvolve=1 2:3 0 1:1:0:zero", 4, 1, B(1, 2, 3, 4), B(0, 0, 0, 0)},
        {"sepconvolve=1 2:3 7 1:1:0:zero", 4, 1, B(1, 2, 3, 4), B(28, 49, 70, 56)},
        // A point of 10: beside it |gx| = 20, at its corners |gx| = |gy| = 10.
        {"sobel", 5, 5, POINT(10), NEAR(20, 20, 0)},
        {"sobel=l2", 5, 5, POINT(10), NEAR(14, 20, 0)}, // sqrt(200) = 14.14
        {"sobel=x", 5, 5, POINT(10),
         B(0, 0, 0, 0, 0, 0, 10, 0, 10, 0, 0, 20, 0, 20, 0, 0, 10, 0, 10, 0, 0, 0, 0, 0, 0)},
        {"sobel=y", 5, 5, POINT(10),
         B(0, 0, 0, 0, 0, 0, 10, 20, 10, 0, 0, 0, 0, 0, 0, 0, 10, 20, 10, 0, 0, 0, 0, 0, 0)},
        {"sobel=l1:2", 5, 5, POINT(100), NEAR(255, 255, 0)},
        {"prewitt", 5, 5, POINT(10), NEAR(20, 10, 0)},
        {"scharr", 5, 5, POINT(10), NEAR(15, 25, 0)}, // (30 + 30) / 4, 100 / 4
        {"laplacian", 5, 5, POINT(10), NEAR(0, 10, 40)},
        {"laplacian=8", 5, 5, POINT(10), NEAR(10, 10, 80)},
        // 128 + l: the rest of the picture is mid-gray.
        {"laplacian=4:1:signed", 1, 1, B(50), B(128)},
        // w = (0.27407, 0.45186, 0.27407): 255 w w' = 19.15, 31.58, 52.07.
        {"gaussian=1:1", 5, 5, POINT(255), NEAR(19, 32, 52)},
        // 100 + (100 - 100 * 0.45186^2) = 179.58, and 100 * -0.12384 clamps to 0.
        {"sharpen=1:1:1", 5, 5, POINT(100), NEAR(0, 0, 180)},
        {"box=1", 3, 3, B(1, 2, 3, 4, 5, 6, 7, 8, 9), B(2, 3, 4, 4, 5, 6, 6, 7, 8)},
        // Light from the right: y = x - gx, gx = (right column - left column) / 3. A point of 90
        // darkens to its left (gx = 30) and lightens to its right (clamped -30 -> +30).
        {"emboss=1:0", 5, 5, POINT(90),
         B(0, 0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 90, 30, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0)},
    };
    for (size_t k = 0; k < sizeof hands / sizeof *hands; k++)
        check_gray(&hands[k]);
}

// Ten bits in units of sixteen: 0xffff, 0x8000 and 1024 read as 1023, the largest sample.
static void samples_above_their_depth_read_as_the_largest(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 10, 0, 0, false, &full);
    const uint16_t in[] = {0xffff, 0x8000, 1024, 1023, 1000, 0};
    const struct {
        const char *chain;
        uint16_t out[6];
    } hands[] = {
        {"brightness=-1", {1019, 1019, 1019, 1019, 996, 0}}, // 1023 / 255 a code of 8 bits
        {"invert", {0, 0, 0, 0, 23, 1023}},
        {"threshold=0:254", {1023, 1023, 1023, 1023, 1000, 0}},
        {"gamma=2", {1023, 1023, 1023, 1023, 1011, 0}}, // 1023 (1000 / 1023)^(1/2) = 1011.4
        {"box=1", {1023, 1023, 1023, 1015, 674, 333}},
    };
    for (size_t k = 0; k < sizeof hands / sizeof *hands; k++) {
        uint16_t out[6];
        run(hands[k].chain, &gray, 6, 1, (const uint8_t *)in, (uint8_t *)out, NULL);
        for (int x = 0; x < 6; x++)
            if (out[x] != hands[k].out[x])
                fail_msg("%s: sample %d is %d, by hand %d", hands[k].chain, x, out[x],
                         hands[k].out[x]);
    }
}

static void gray_expands_limited_luma(void **state)
{
    (void)state;
    struct format yuv = format_planar(MODEL_YUV, 8, 1, 1, false, &limited), result;
    // Black, white, superblack and (126 - 16) * 255 / 219 = 128.08.
    const uint8_t in[] = {16, 235, 0, 126, 200, 50};
    uint8_t out[16];
    run("gray", &yuv, 2, 2, in, out, &result);
    assert_int_equal(result.model, MODEL_GRAY);
    assert_int_equal(result.range, RANGE_FULL);
    assert_memory_equal(out, B(0, 255, 0, 128), 4);
}

static void brightness_is_in_full_range_units(void **state)
{
    (void)state;
    struct format yuv = format_planar(MODEL_YUV, 8, 1, 1, false, &limited);
    const uint8_t in[] = {16, 100, 230, 235, 77, 99};
    uint8_t out[16];
    run("brightness=100", &yuv, 2, 2, in, out, NULL); // 100 * 219 / 255 = 85.88
    assert_memory_equal(out, B(102, 186, 235, 235, 77, 99), 6);
}

static void contrast_and_invert_turn_chroma_about_neutral(void **state)
{
    (void)state;
    struct format yuv = format_planar(MODEL_YUV, 8, 0, 0, false, &limited);
    const uint8_t in[] = {126, 128 + 40, 128 - 40}; // one sample each of Y', Cb, Cr
    uint8_t out[3];
    run("contrast=2", &yuv, 1, 1, in, out, NULL);
    assert_memory_equal(out, B(127, 208, 48), 3); // mid-gray is 125.5: 2 * 126 - 125.5 = 126.5
    run("invert", &yuv, 1, 1, in, out, NULL);
    assert_memory_equal(out, B(125, 88, 168), 3);
}

static void gray_of_rgb_weighs_colours(void **state)
{
    (void)state;
    struct format rgb = format_planar(MODEL_RGB, 8, 0, 0, false, &full);
    const uint8_t in[] = {255, 0, 0, 0, 255, 0, 0, 0, 255}; // rows R, G, B of three pixels
    uint8_t out[9];
    run("gray", &rgb, 3, 1, in, out, NULL); // 76.2, 149.7, 29.1
    assert_memory_equal(out, B(76, 150, 29), 3);
    run("gray=mean", &rgb, 3, 1, in, out, NULL);
    assert_memory_equal(out, B(85, 85, 85), 3);
}

// Pure red of BT.601 in limited range: (R + G + B) / 3 = 85.
static void mean_of_yuv_goes_through_the_matrix(void **state)
{
    (void)state;
    struct format yuv = format_planar(MODEL_YUV, 8, 0, 0, false, &limited);
    const uint8_t red[] = {81, 90, 240};
    uint8_t out[3];
    run("gray=mean", &yuv, 1, 1, red, out, NULL);
    assert_in_range(out[0], 84, 86);
}

static void alpha_passes_through(void **state)
{
    (void)state;
    struct format rgba = format_planar(MODEL_RGB, 8, 0, 0, true, &full);
    const uint8_t in[] = {10, 20, 30, 40, 50, 60, 7, 8};
    uint8_t out[8];
    run("invert,gaussian=3,sobel", &rgba, 2, 1, in, out, NULL);
    assert_memory_equal(out + 6, B(7, 8), 2);
}

static void deep_samples_stay_deep(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 10, 0, 0, false, &full);
    const uint16_t in[] = {0, 500, 1000, 1023};
    uint16_t out[4];
    run("brightness=20", &gray, 4, 1, (const uint8_t *)in, (uint8_t *)out, NULL);
    // 20 * 1023 / 255 = 80.24
    const uint16_t expected[] = {80, 580, 1023, 1023};
    assert_memory_equal(out, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointwise_by_hand),
        cmocka_unit_test(borders_by_hand),
        cmocka_unit_test(stencils_by_hand),
        cmocka_unit_test(samples_above_their_depth_read_as_the_largest),
        cmocka_unit_test(gray_expands_limited_luma),
        cmocka_unit_test(brightness_is_in_full_range_units),
        cmocka_unit_test(contrast_and_invert_turn_chroma_about_neutral),
        cmocka_unit_test(gray_of_rgb_weighs_colours),
        cmocka_unit_test(mean_of_yuv_goes_through_the_matrix),
        cmocka_unit_test(alpha_passes_through),
        cmocka_unit_test(deep_samples_stay_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
