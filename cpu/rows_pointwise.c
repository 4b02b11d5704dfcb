// Steps that are tables: pointwise operations.
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/row_level.h"

enum { SPARED_AT_ONCE = 8192 }; // samples

struct pointwise_state {
    struct point point;
    uint16_t *loose_table; // (optional) what `point` has for samples above their depth, too
    void *scratch;         // rows of the level below
    bool spares;           // pixels have components that are not looked up
    struct spared spared;
    bool joins; // the level below makes this step with its own
};

static void make_samples(const struct row_pipeline *pipeline, int level, const void *from, void *to,
                         int width)
{
    const struct row_kernels *rows = pipeline->rows;
    const struct row_level *here = &pipeline->level[level];
    const struct pointwise_state *state = here->state;
    int from_bytes = sample_bytes(here->step->depth_in);
    if (from_bytes == here->bytes)
        rows->point[here->bytes - 1](from, &state->point, to, width);
    else if (from_bytes == 1)
        rows->widen(from, state->point.table, to, width);
    else
        rows->narrow(from, state->point.table, to, width);
}

// Components that are spared are so by the step itself, or else looked up with the others and put back
// while they are in the cache.
static void make_row(const struct row_pipeline *pipeline, int level, const void *from, void *to)
{
    const struct pointwise_state *state = pipeline->level[level].state;
    const struct row_kernels *rows = pipeline->rows;
    int bytes = pipeline->level[level].bytes,
        most = state->spares ? SPARED_AT_ONCE : pipeline->width;
    if (state->spares && bytes == 1 && rows->point_spared &&
        rows->point_spared(from, &state->point, &state->spared, to, pipeline->width))
        return;
    for (int x = 0; x < pipeline->width; x += most) {
        int count = min_int(most, pipeline->width - x);
        const uint8_t *here = (const uint8_t *)from + (ptrdiff_t)x * bytes;
        uint8_t *there = (uint8_t *)to + (ptrdiff_t)x * bytes;
        make_samples(pipeline, level, here, there, count);
        if (state->spares)
            rows->spare(here, &state->spared, there, count * bytes);
    }
}

// From rows in memory. One that is to be written over is copied first: kernels that make the last
// samples of a row twice read them twice.
static void make_direct(const struct row_pipeline *pipeline, int y, int count, void *const *to)
{
    const struct row_level *here = &pipeline->level[1];
    const struct pointwise_state *state = here->state;
    const struct component *at;
    for (int k = 0; k < count; k++) {
        const void *from = row_operand(pipeline, pipeline->pass->source[0], y + k, &at);
        if (from == to[k])
            from = memcpy(state->scratch, from,
                          (size_t)pipeline->width * (size_t)sample_bytes(here->step->depth_in));
        make_row(pipeline, 1, from, to[k]);
    }
}

static void make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    const struct row_level *here = &pipeline->level[level];
    const struct pointwise_state *state = here->state;
    if (state->joins) {
        here[-1].family->make_ranges(pipeline, level - 1, &state->point, y, count, to);
        return;
    }
    if (level == 1 && pipeline->direct) {
        make_direct(pipeline, y, count, to);
        return;
    }
    void *below[MAX_ROWS_AT_ONCE] = {NULL};
    for (int k = 0; k < count; k++)
        below[k] = row_scratch(pipeline, state->scratch, k);
    row_level_make(pipeline, level - 1, y, count, below);
    for (int k = 0; k < count; k++)
        make_row(pipeline, level, below[k], to[k]);
}

// Samples that may be above their depth are looked up as they are: in a table of all that 16 bits
// hold, where a minimum for each took a fifth of the speed.
static enum status init_loose_table(const struct row_level *here, struct pointwise_state *state)
{
    int entries = 1 << 16, most = state->point.most;
    state->loose_table = malloc((size_t)entries * sizeof *state->loose_table);
    if (!state->loose_table)
        return STATUS_MEMORY;
    for (int x = 0; x < entries; x++)
        state->loose_table[x] = here->step->table[min_int(x, most)];
    state->point.table = state->loose_table;
    return STATUS_OK;
}

static void init_spared(const struct row_pipeline *pipeline, int bytes,
                        struct pointwise_state *state)
{
    const struct plan_pass *pass = pipeline->pass;
    uint16_t most = (uint16_t)max_sample(pass->grid.depth);
    uint8_t most_of_bytes = (uint8_t)most;
    const void *filler = bytes == 1 ? (const void *)&most_of_bytes : &most;
    state->spares = !pipeline->parts.of_pixels && (pass->kept || pass->filled);
    for (int k = 0; k < SPARED_BYTES / bytes; k++) {
        int place = k % pass->together;
        if (pass->kept >> place & 1)
            memset(&state->spared.kept[k * bytes], 255, (size_t)bytes);
        if (pass->filled >> place & 1)
            memcpy(&state->spared.filled[k * bytes], filler, (size_t)bytes);
    }
}

static enum status init(struct row_pipeline *pipeline, int level)
{
    const struct row_level *here = &pipeline->level[level], *below = here - 1;
    struct pointwise_state *state = pipeline->level[level].state = calloc(1, sizeof *state);
    if (!state)
        return STATUS_MEMORY;
    state->point = point_of_step(here->step);
    state->point.ahead = pipeline->in_place && level == pipeline->levels - 1 ? rows_ahead() : 0;
    init_spared(pipeline, here->bytes, state);
    state->joins = below->family->make_ranges && here->bytes == below->bytes &&
                   state->point.kind == POINT_RANGES;
    if (pipeline->direct && pipeline->loose && level == 1 && init_loose_table(here, state))
        return STATUS_MEMORY;
    state->scratch = row_scratch_alloc(pipeline);
    return state->scratch ? STATUS_OK : STATUS_MEMORY;
}

static void finish(void *state_)
{
    struct pointwise_state *state = state_;
    free(state->loose_table);
    free(state->scratch);
    free(state);
}

const struct row_family rows_pointwise = {.init = init, .finish = finish, .make = make};
