// Frames that a unit test sends through an executor as the ring does: gray pictures, in turn.
#pragma once

#include <stdint.h>
#include <string.h>

#include "cpu/reference/scalar.h"
#include "plan/backend.h"
#include "stages/chain.h"
#include "tests/unit.h"

enum { WIDTH = 67, HEIGHT = 45, FRAMES_SENT = 11 };

static struct format gray;

struct shot {
    uint8_t sample[HEIGHT][WIDTH];
};

static inline struct image image_of(struct shot *picture)
{
    return (struct image){.format = &gray,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .data = {picture->sample[0]},
                          .stride = {WIDTH}};
}

// `format` NULL: gray.
static inline void lower_in(const char *text, const struct format *format, struct program *program)
{
    struct chain chain;
    struct chain_error error;
    const struct format meaning = {.range = RANGE_FULL, .kr = 0.2126, .kb = 0.0722};
    gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &meaning);
    assert_int_equal(chain_parse(text, NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(program, format ? format : &gray), STATUS_OK);
    assert_int_equal(chain_lower(&chain, program), STATUS_OK);
    assert_int_equal(program_finish(program, NULL), STATUS_OK);
    chain_free(&chain);
}

static inline void lower(const char *text, struct program *program)
{
    lower_in(text, NULL, program);
}

// Send frames through the ring's pattern: in turn, each slot waited for before it is used again.
static inline void run_frames(struct executor *executor, int slots, struct shot *source,
                              struct shot *target)
{
    for (int k = 0; k < FRAMES_SENT + slots; k++) {
        if (k >= slots)
            assert_int_equal(executor->wait(executor, k % slots, NULL), STATUS_OK);
        struct work work = {0};
        if (k >= FRAMES_SENT)
            continue;
        work.source = image_of(&source[k]);
        work.target = image_of(&target[k]);
        assert_int_equal(executor->submit_async(executor, k % slots, &work), STATUS_OK);
    }
}

// Fill the frames that are sent, and what the scalar reference makes of each.
static inline void make_shots(const struct program *program, struct shot *source,
                              struct shot *expected)
{
    for (int k = 0; k < FRAMES_SENT; k++) {
        for (int i = 0; i < WIDTH * HEIGHT; i++)
            source[k].sample[i / WIDTH][i % WIDTH] = (uint8_t)(i * (k + 3) + i / 7 * k);
        struct image from = image_of(&source[k]), to = image_of(&expected[k]);
        assert_int_equal(scalar_run(program, &(struct work){.source = from, .target = to}),
                         STATUS_OK);
        assert_true(k == 0 || memcmp(&expected[k], &expected[k - 1], sizeof *expected));
    }
}
