// Frames for tests of filters: pictures with guarded padding at ugly strides, and what the scalar
// reference makes of them.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "cpu/reference/scalar.h"
#include "filter/pixfmt.h"
#include "sluice/filter.h"
#include "stages/chain.h"
#include "tests/unit.h"

enum { GUARD = 0xa5 };

// How rows lie: side by side, apart by an odd number of bytes from an odd address, or upside down.
enum rows_lie { ROWS_TIGHT, ROWS_ODD, ROWS_UPSIDE_DOWN, ROWS_LIE };

struct test_picture {
    struct format format;
    struct image image;
    struct sluice_frame frame;
    uint8_t *memory;
    size_t bytes;
};

static uint32_t test_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static struct sluice_format test_format(const char *pixfmt, int width, int height)
{
    return (struct sluice_format){
        .size = sizeof(struct sluice_format), .pixfmt = pixfmt, .width = width, .height = height};
}

static void lay_plane(struct test_picture *picture, int p, enum rows_lie lie, size_t *used)
{
    size_t bytes = format_row_bytes(&picture->format, p, picture->image.width);
    size_t rows = (size_t)format_rows(&picture->format, p, picture->image.height);
    size_t stride = lie == ROWS_TIGHT ? bytes : bytes + 13;
    *used += lie == ROWS_TIGHT ? 0 : 7;
    picture->image.data[p] = picture->memory + *used;
    picture->image.stride[p] = (ptrdiff_t)stride;
    if (lie == ROWS_UPSIDE_DOWN) {
        picture->image.data[p] += (rows - 1) * stride;
        picture->image.stride[p] = -(ptrdiff_t)stride;
    }
    *used += rows * stride + 5;
}

// A picture full of guards.
static struct test_picture *test_picture(const struct sluice_format *as, enum rows_lie lie)
{
    struct test_picture *picture = calloc(1, sizeof *picture);
    assert_non_null(picture);
    assert_true(pixfmt_describe(as, &picture->format));
    picture->image =
        (struct image){.format = &picture->format, .width = as->width, .height = as->height};
    for (int p = 0; p < picture->format.planes; p++)
        picture->bytes += (format_row_bytes(&picture->format, p, as->width) + 13) *
                              (size_t)format_rows(&picture->format, p, as->height) +
                          64;
    picture->memory = malloc(picture->bytes);
    assert_non_null(picture->memory);
    memset(picture->memory, GUARD, picture->bytes);
    size_t used = 0;
    picture->frame = (struct sluice_frame){.size = sizeof picture->frame};
    for (int p = 0; p < picture->format.planes; p++) {
        lay_plane(picture, p, lie, &used);
        picture->frame.data[p] = picture->image.data[p];
        picture->frame.stride[p] = picture->image.stride[p];
    }
    assert_true(used <= picture->bytes);
    return picture;
}

static void test_picture_free(struct test_picture *picture)
{
    free(picture->memory);
    free(picture);
}

static void write_sample(const struct image *image, int c, int x, int y, unsigned value)
{
    const struct component *at = &image->format->component[c];
    uint8_t *to = image->data[at->plane] + y * image->stride[at->plane] + at->offset +
                  (ptrdiff_t)x * at->step;
    unsigned unit = value << at->shift;
    to[at->bytes == 2 && at->big_endian] = (uint8_t)unit;
    if (at->bytes == 2)
        to[!at->big_endian] = (uint8_t)(unit >> 8);
}

// Noise, of samples within their depth; fillers are as filters write them.
static void test_picture_fill(struct test_picture *picture, uint32_t seed)
{
    const struct format *format = &picture->format;
    unsigned most = (unsigned)max_sample(format->depth);
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        bool filler = c == COMPONENT_ALPHA && format->filler;
        int width = subsampled(picture->image.width, format_shift_x(format, c));
        int height = subsampled(picture->image.height, format_shift_y(format, c));
        for (int y = 0; y < height && (filler || format_has(format, c)); y++)
            for (int x = 0; x < width; x++)
                write_sample(&picture->image, c, x, y, filler ? most : test_random(&seed) & most);
    }
}

static struct test_picture *test_noise(const struct sluice_format *as, enum rows_lie lie,
                                       uint32_t seed)
{
    struct test_picture *picture = test_picture(as, lie);
    test_picture_fill(picture, seed);
    return picture;
}

// Bytes around the rows that are not guards any more.
static int test_picture_spoilt(const struct test_picture *picture)
{
    uint8_t *is_row = calloc(1, picture->bytes);
    int spoilt = 0;
    assert_non_null(is_row);
    for (int p = 0; p < picture->format.planes; p++)
        for (int y = 0; y < format_rows(&picture->format, p, picture->image.height); y++)
            memset(is_row + (picture->image.data[p] - picture->memory) +
                       y * picture->image.stride[p],
                   1, format_row_bytes(&picture->format, p, picture->image.width));
    for (size_t k = 0; k < picture->bytes; k++)
        spoilt += !is_row[k] && picture->memory[k] != GUARD;
    free(is_row);
    return spoilt;
}

static void test_log(void *opaque, enum sluice_log_level level, const char *sentence)
{
    if (level == SLUICE_LOG_ERROR)
        snprintf(opaque, 1024, "%s", sentence);
}

static char test_sentence[1024]; // the last of level error

static struct sluice_filter_config test_config(const char *chain, const struct sluice_format *input)
{
    return (struct sluice_filter_config){.size = sizeof(struct sluice_filter_config),
                                         .chain = chain,
                                         .input = *input,
                                         .backend = SLUICE_BACKEND_CPU,
                                         .threads = 2,
                                         .log = test_log,
                                         .opaque = test_sentence};
}

static struct sluice_filter *test_filter(const struct sluice_filter_config *config)
{
    struct sluice_filter *filter;
    enum sluice_status status = sluice_filter_create(config, &filter);
    if (status)
        fail_msg("%s of %s: %s", config->chain, config->input.pixfmt, test_sentence);
    assert_non_null(filter);
    return filter;
}

// Filter `source` into `target`, of the output's format, by the reference; fields by themselves if
// `fields`.
static void test_reference(const char *text, const struct test_picture *source, bool fields,
                           struct test_picture *target)
{
    struct chain chain;
    struct chain_error error;
    struct program program;
    assert_int_equal(chain_parse(text, NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(&program, &source->format), STATUS_OK);
    assert_int_equal(chain_lower(&chain, &program), STATUS_OK);
    assert_int_equal(program_finish(&program, &target->format), STATUS_OK);
    const struct work work = {.source = source->image, .target = target->image, .fields = fields};
    assert_int_equal(scalar_run(&program, &work), STATUS_OK);
    program_free(&program);
    chain_free(&chain);
}

static void test_same(const char *what, const struct test_picture *got,
                      const struct test_picture *want)
{
    struct image_difference at;
    if (!image_compare(&got->image, &want->image, &at))
        fail_msg("%s: plane %d, row %d, byte %zu is %d, of the reference %d", what, at.plane,
                 at.row, at.byte, at.got, at.want);
    if (test_picture_spoilt(got))
        fail_msg("%s: %d bytes around the rows were written", what, test_picture_spoilt(got));
}
