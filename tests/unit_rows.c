// Row kernels of every level that this processor runs, where they go ways that it would not choose.
#include <stdlib.h>

#include "cpu/rows/rows.h"
#include "tests/unit.h"

enum { WIDTH = 9000, AHEAD = 2048, GUARD = 128 };

static const char *const levels[] = {"vnni", "v4", "v3", "v2", "neon", "base"};

// Sample x by the ranges of a point, as point.h defines them.
static uint8_t ranged(const struct point *f, uint8_t x)
{
    if (x < f->low)
        return (uint8_t)f->below;
    return (uint8_t)(x > f->high ? f->above : (x ^ f->flip) + f->add);
}

static void check_row(const struct row_kernels *rows, const struct point *f, int offset, int width)
{
    static uint8_t from[WIDTH + GUARD], to[WIDTH + 3 * GUARD];
    for (int x = 0; x < WIDTH + GUARD; x++)
        from[x] = (uint8_t)(x * 31 + x / 256);
    memset(to, 77, sizeof to);
    rows->point[0](from + offset, f, to + GUARD + offset, width);
    for (int x = 0; x < width; x++)
        assert_int_equal(to[GUARD + offset + x], ranged(f, from[offset + x]));
    for (int x = 0; x < GUARD; x++) {
        assert_int_equal(to[offset + x], 77);
        assert_int_equal(to[GUARD + offset + width + x], 77);
    }
}

static void lines_asked_for_ahead_change_nothing(void **state)
{
    (void)state;
    const struct point points[] = {
        // brightness=20, invert, threshold=20:240
        {.most = 255, .low = 0, .high = 235, .below = 20, .above = 255, .add = 20},
        {.most = 255, .low = 0, .high = 255, .below = 255, .above = 0, .flip = 255},
        {.most = 255, .low = 20, .high = 240, .below = 0, .above = 255},
    };
    const int widths[] = {1, 63, 300, AHEAD, AHEAD + 64, AHEAD + 255, AHEAD + 257, 5000, WIDTH};
    int found = 0;
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        const struct row_kernels *rows = rows_select(levels[k]);
        for (size_t p = 0; rows && p < sizeof points / sizeof *points; p++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                for (int offset = 0; offset < GUARD; offset += 13) {
                    struct point point = points[p];
                    check_row(rows, &point, offset, widths[w]);
                    point.ahead = AHEAD;
                    check_row(rows, &point, offset, widths[w]);
                }
        found += rows != NULL;
    }
    assert_true(found > 0);
}

static void what_is_spared_is_put_back(void **state)
{
    (void)state;
    struct spared spared = {0};
    uint8_t from[300], to[300];
    for (int k = 0; k < SPARED_BYTES; k++) {
        spared.kept[k] = k % 4 == 3 ? 255 : 0;
        spared.filled[k] = k % 4 == 1 ? 63 : 0;
    }
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
        for (int bytes = 0; rows_select(levels[k]) && bytes < 290; bytes++) {
            for (int x = 0; x < 300; x++) {
                from[x] = (uint8_t)(x * 7);
                to[x] = 128;
            }
            rows_select(levels[k])->spare(from, &spared, to, bytes);
            for (int x = 0; x < 300; x++)
                assert_int_equal(to[x], x >= bytes   ? 128
                                        : x % 4 == 3 ? from[x]
                                        : x % 4 == 1 ? (128 | 63)
                                                     : 128);
        }
}

// Samples of pixels of `samples` bytes: those of the places `kept` stay, those of `filled` have all bits.
static void check_point_spared(const struct row_kernels *rows, const struct point *f, int samples,
                               unsigned kept, unsigned filled, int offset, int width)
{
    static uint8_t from[WIDTH + GUARD], to[WIDTH + 3 * GUARD];
    struct spared spared;
    for (int k = 0; k < SPARED_BYTES; k++) {
        spared.kept[k] = kept >> k % samples & 1 ? 255 : 0;
        spared.filled[k] = filled >> k % samples & 1 ? 255 : 0;
    }
    for (int x = 0; x < WIDTH + GUARD; x++)
        from[x] = (uint8_t)(x * 31 + x / 256);
    memset(to, 77, sizeof to);
    bool made = rows->point_spared &&
                rows->point_spared(from + offset, f, &spared, to + GUARD + offset, width);
    assert_true(made || !rows->point_spared || width < 2 * SPARED_BYTES);
    for (int x = 0; x < width; x++) {
        uint8_t sample = from[offset + x];
        assert_int_equal(to[GUARD + offset + x], !made                       ? 77
                                                 : filled >> x % samples & 1 ? 255
                                                 : kept >> x % samples & 1   ? sample
                                                                             : ranged(f, sample));
    }
    for (int x = 0; x < GUARD; x++) {
        assert_int_equal(to[offset + x], 77);
        assert_int_equal(to[GUARD + offset + width + x], 77);
    }
}

static void samples_of_pixels_are_spared_by_the_step(void **state)
{
    (void)state;
    const struct point points[] = {
        // brightness=20, invert
        {.most = 255, .low = 0, .high = 235, .below = 20, .above = 255, .add = 20},
        {.most = 255, .low = 0, .high = 255, .below = 255, .above = 0, .flip = 255, .ahead = AHEAD},
    };
    const int widths[] = {4, 60, 64, 128, 132, 300, 1000, 5000};
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        const struct row_kernels *rows = rows_select(levels[k]);
        for (int w = 0; rows && w < 8; w++)
            for (int offset = 0; offset < GUARD; offset += 7)
                for (unsigned spared = 1; spared < 8; spared++) {
                    const struct point *f = &points[offset & 1];
                    check_point_spared(rows, f, 4, spared, 0, offset, widths[w]);
                    check_point_spared(rows, f, 4, spared, 8, offset, widths[w]);
                    check_point_spared(rows, f, 2, spared & 1, ~spared & 1, offset, widths[w]);
                }
    }
}

enum { PIXELS = 300, MOST_COMPONENTS = 4 };

// What is around a row on both sides stays as it is.
static void check_guards(const uint8_t *memory, int bytes)
{
    for (int x = 0; x < GUARD; x++) {
        assert_int_equal(memory[x], 77);
        assert_int_equal(memory[GUARD + bytes + x], 77);
    }
}

// Kernels may leave short rows to others.
static void check_store_pixels(const struct row_kernels *rows, struct pixels f, int width)
{
    static uint8_t from[MOST_COMPONENTS][PIXELS], to[2 * GUARD + MOST_COMPONENTS * PIXELS];
    uint8_t *source = malloc((size_t)(f.count * width)); // reads behind it are errors to Valgrind
    for (int c = 0; c < f.count; c++) {
        f.from[c] = from[c];
        for (int x = 0; x < PIXELS; x++)
            from[c][x] = (uint8_t)(x * 7 + x / 64 + c * 91);
    }
    for (int k = 0; k < f.count * width; k++)
        source[k] = (uint8_t)(k * 3 + k / 256);
    f.source = source;
    memset(to, 77, sizeof to);
    bool stored = rows->store_pixels(&f, to + GUARD, width);
    assert_true(stored || width < GUARD);
    for (int k = 0; k < f.count * width; k++) {
        int c = k % f.count, wanted = f.kept >> c & 1 ? source[k] : from[c][k / f.count];
        assert_int_equal(to[GUARD + k], stored ? wanted : 77);
    }
    check_guards(to, f.count * width);
    free(source);
}

static void check_store_pixels_16(const struct row_kernels *rows, int count, int width)
{
    static uint16_t from[MOST_COMPONENTS][PIXELS];
    static uint8_t to[2 * GUARD + 2 * MOST_COMPONENTS * PIXELS + 1];
    struct pixels f = {.count = count};
    uint8_t *first = to + GUARD + width % 2; // at odd addresses, too
    for (int c = 0; c < count; c++) {
        f.from[c] = from[c];
        for (int x = 0; x < PIXELS; x++)
            from[c][x] = (uint16_t)(x * 777 + c * 9001);
    }
    memset(to, 77, sizeof to);
    rows->store_pixels_16(&f, (sample16 *)first, width);
    for (int k = 0; k < count * width; k++)
        assert_memory_equal(first + 2 * k, &from[k % count][k / count], 2);
    check_guards(first - GUARD, 2 * count * width);
}

static void pixels_are_put_together(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        const struct row_kernels *rows = rows_select(levels[k]);
        for (int count = 2; rows && count <= MOST_COMPONENTS; count++)
            for (int width = 1; width < PIXELS; width++)
                check_store_pixels_16(rows, count, width);
        for (int count = 2; rows && rows->store_pixels && count <= MOST_COMPONENTS; count++)
            for (int width = 1; width < PIXELS; width++)
                for (unsigned kept = 0; kept < 1u << count; kept += width % 3 ? 1 : 2)
                    check_store_pixels(
                        rows,
                        (struct pixels){.count = count, .kept = kept, .ahead = width % 2 * 256},
                        width);
    }
}

// `count` components of pixels of `step` bytes, the last place's first.
static void check_load_pixels(const struct row_kernels *rows, int step, int count, int width)
{
    static uint8_t to[MOST_COMPONENTS][2 * GUARD + PIXELS];
    struct component component[MOST_COMPONENTS];
    const struct component *at[MOST_COMPONENTS];
    void *row[MOST_COMPONENTS];
    uint8_t *from = malloc((size_t)(step * width)); // reads behind it are errors to Valgrind
    for (int k = 0; k < step * width; k++)
        from[k] = (uint8_t)(k * 5 + k / 256);
    memset(to, 77, sizeof to);
    for (int c = 0; c < count; c++) {
        component[c] = (struct component){.offset = step - 1 - c, .step = step, .bytes = 1};
        at[c] = &component[c];
        row[c] = to[c] + GUARD;
    }
    bool loaded = rows->load_pixels(from, at, count, row, width);
    for (int c = 0; c < count; c++) {
        for (int x = 0; x < width; x++)
            assert_int_equal(to[c][GUARD + x], loaded ? from[step * x + step - 1 - c] : 77);
        check_guards(to[c], width);
    }
    free(from);
}

static void pixels_are_taken_apart(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        const struct row_kernels *rows = rows_select(levels[k]);
        for (int step = 2; rows && rows->load_pixels && step <= MOST_COMPONENTS; step++)
            for (int count = 2; count <= step; count++)
                for (int width = 1; width < PIXELS; width++)
                    check_load_pixels(rows, step, count, width);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_asked_for_ahead_change_nothing),
                                       cmocka_unit_test(what_is_spared_is_put_back),
                                       cmocka_unit_test(samples_of_pixels_are_spared_by_the_step),
                                       cmocka_unit_test(pixels_are_put_together),
                                       cmocka_unit_test(pixels_are_taken_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
