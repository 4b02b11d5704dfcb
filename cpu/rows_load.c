// Level 0: rows of a source, as they are, or mixed of several.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/row_level.h"

// ---- rows in memory ----

const uint8_t *row_operand(const struct row_pipeline *pipeline, struct operand operand, int y,
                           const struct component **at)
{
    const struct row_memory *memory = pipeline->memory;
    if (operand.place == PLACE_BUFFER) {
        *at = component_plain(pipeline->plan->buffer[operand.index].grid.depth);
        return memory->buffer[operand.index] + y * memory->buffer_stride[operand.index];
    }
    const struct image *image = operand.place == PLACE_INPUT
                                    ? memory->source
                                    : &memory->target[operand.index / FORMAT_COMPONENTS];
    *at = plan_component(pipeline->plan, operand);
    return image->data[(*at)->plane] + y * image->stride[(*at)->plane] + (*at)->offset;
}

bool row_is_loose(const struct row_pipeline *pipeline, struct operand operand)
{
    return operand.place == PLACE_INPUT &&
           component_is_loose(plan_component(pipeline->plan, operand),
                              pipeline->plan->program->input.depth);
}

void row_load(const struct row_pipeline *pipeline, int s, int y, void *to, int width)
{
    const struct plan_pass *pass = pipeline->pass;
    int bytes = sample_bytes(pass->source_grid[s].depth);
    if (pass->source[s].place == PLACE_CONSTANT) {
        row_fill(to, bytes, width, pass->source[s].index);
        return;
    }
    const struct component *at;
    const uint8_t *from = row_operand(pipeline, pass->source[s], y, &at);
    pipeline->rows->load[bytes - 1](from, at, max_sample(pass->source_grid[s].depth), to, width);
}

static void load_make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    (void)level;
    for (int k = 0; k < count; k++)
        if (pipeline->parts.of_pixels)
            row_parts_load(pipeline, y + k, to[k]);
        else
            row_load(pipeline, 0, y + k, to[k], pipeline->width);
}

const struct row_family rows_load = {.make = load_make};

// ---- mixes ----

struct mix_state {
    uint32_t *vertical; // a source row resampled vertically
    int64_t *sum;
    void *row[4];
    struct point before[3]; // of sources that have a table
    void *looked_up[3];
    bool is_near; // the sources' rows lie side by side, and sums fit 32 bits
    struct op_mix near;
};

// Row `row` of source `s` through its table, if it has one. The result lies elsewhere: kernels make
// the last samples of a row twice.
static const void *look_up_row(const struct row_pipeline *pipeline, const struct mix_state *state,
                               int s, const void *row, int width)
{
    const struct plan_step *table = &pipeline->pass->before[s];
    if (!table->table)
        return row;
    pipeline->rows->point[sample_bytes(table->depth_in) - 1](row, &state->before[s],
                                                             state->looked_up[s], width);
    return state->looked_up[s];
}

static int clamp_row(int y, int height)
{
    return y < 0 ? 0 : y >= height ? height - 1 : y;
}

// One source of a mix: the rows that make result row y, weighted in quarters, then the columns.
static void mix_source(struct row_pipeline *pipeline, struct mix_state *state, int s, int y)
{
    const struct plan_pass *pass = pipeline->pass;
    const struct op_mix *mix = &pass->mix->mix;
    struct program_plane from = pass->source_grid[s], to = pass->grid;
    int up_x = from.shift_x - to.shift_x, up_y = from.shift_y - to.shift_y;
    const struct image *picture = pipeline->memory->source;
    int width = subsampled(picture->width, from.shift_x);
    int height = subsampled(picture->height, from.shift_y);
    int bytes = sample_bytes(from.depth), count = 2, first, weight[4];
    if (up_y >= 0) {
        int siting = mix->siting == SITING_TOP_LEFT ? 0 : 4 * ((1 << up_y) - 1);
        int position = (8 * y - siting) >> (up_y + 1);
        first = position >> 2;
        weight[0] = 4 - (position & 3);
        weight[1] = position & 3;
        count = weight[1] ? 2 : 1;
    } else {
        first = y << -up_y;
        count = 1 << -up_y;
        for (int k = 0; k < count; k++)
            weight[k] = 4 >> -up_y;
    }
    const void *row[4];
    for (int k = 0; k < count; k++) {
        row_load(pipeline, s, clamp_row(first + k, height), state->row[k], width);
        row[k] = look_up_row(pipeline, state, s, state->row[k],
                             width); // a table means one grid, and so one row
    }
    pipeline->rows->weigh[bytes - 1](row, weight, count, state->vertical, width);
    pipeline->rows->mix_add(state->vertical, width, up_x, mix->siting != SITING_CENTER,
                            mix->weight[s], state->sum, pipeline->width);
}

// The sources' rows at once, where they are bytes of the same pixels.
static bool load_pixels(struct row_pipeline *pipeline, struct mix_state *state, int y)
{
    const struct plan_pass *pass = pipeline->pass;
    const struct component *at[3];
    const uint8_t *from[3];
    if (pass->sources != 3 || !pipeline->rows->load_pixels)
        return false;
    for (int s = 0; s < 3; s++) {
        if (pass->source[s].place != PLACE_INPUT)
            return false;
        from[s] = row_operand(pipeline, pass->source[s], y, &at[s]) - at[s]->offset;
    }
    return from[1] == from[0] && from[2] == from[0] &&
           pipeline->rows->load_pixels(from[0], at, 3, state->row, pipeline->width);
}

// Rows of the sources where all lie on the result's own grid.
static void mix_near_row(struct row_pipeline *pipeline, struct mix_state *state, int y, void *to)
{
    const struct plan_pass *pass = pipeline->pass;
    const void *row[3] = {NULL};
    bool loaded = load_pixels(pipeline, state, y);
    for (int s = 0; s < pass->sources; s++) {
        const struct component *at;
        if (loaded) {
            row[s] = state->row[s];
        } else if (plan_is_plain(pipeline->plan, pass->source[s], pass->source_grid[s].depth) &&
                   !row_is_loose(pipeline, pass->source[s])) {
            row[s] = row_operand(pipeline, pass->source[s], y, &at);
        } else {
            row_load(pipeline, s, y, state->row[s], pipeline->width);
            row[s] = state->row[s];
        }
        row[s] = look_up_row(pipeline, state, s, row[s], pipeline->width);
    }
    for (int s = pass->sources; s < 3; s++)
        row[s] = row[0];
    pipeline->rows->mix_near[sample_bytes(pass->load_depth) - 1](row, &state->near, to,
                                                                 pipeline->width);
}

static void mix_row(struct row_pipeline *pipeline, struct mix_state *state, int y, void *to)
{
    const struct plan_pass *pass = pipeline->pass;
    if (state->is_near) {
        mix_near_row(pipeline, state, y, to);
        return;
    }
    memset(state->sum, 0, (size_t)pipeline->width * sizeof *state->sum);
    for (int s = 0; s < pass->sources; s++)
        mix_source(pipeline, state, s, y);
    pipeline->rows->mix_finish[sample_bytes(pass->load_depth) - 1](state->sum, &pass->mix->mix, to,
                                                                   pipeline->width);
}

static void mix_make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    for (int k = 0; k < count; k++)
        mix_row(pipeline, pipeline->level[level].state, y + k, to[k]);
}

static bool is_near(const struct row_pipeline *pipeline)
{
    const struct plan_pass *pass = pipeline->pass;
    const struct op_mix *mix = &pass->mix->mix;
    int64_t most = llabs(mix->offset) / 16 + (1 << 16);
    for (int s = 0; s < pass->sources; s++) {
        struct program_plane from = pass->source_grid[s];
        if (from.shift_x != pass->grid.shift_x || from.shift_y != pass->grid.shift_y ||
            sample_bytes(from.depth) != sample_bytes(pass->load_depth))
            return false;
        most += (int64_t)abs(mix->weight[s]) << from.depth;
    }
    return most <= INT32_MAX;
}

static enum status mix_init(struct row_pipeline *pipeline, int level)
{
    size_t width = (size_t)pipeline->picture_columns;
    struct mix_state *state = pipeline->level[level].state = calloc(1, sizeof *state);
    if (!state)
        return STATUS_MEMORY;
    state->is_near = is_near(pipeline);
    state->near = pipeline->pass->mix->mix;
    for (int s = pipeline->pass->sources; s < 3; s++)
        state->near.weight[s] = 0;
    state->vertical = row_alloc(width * sizeof *state->vertical);
    state->sum = row_alloc(width * sizeof *state->sum);
    if (!state->vertical || !state->sum)
        return STATUS_MEMORY;
    for (int k = 0; k < 4; k++)
        if (!(state->row[k] = row_alloc(width * 2)))
            return STATUS_MEMORY;
    for (int s = 0; s < pipeline->pass->sources; s++) {
        if (!pipeline->pass->before[s].table)
            continue;
        state->before[s] = point_of_step(&pipeline->pass->before[s]);
        if (!(state->looked_up[s] = row_alloc(width * 2)))
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static void mix_finish(void *state_)
{
    struct mix_state *state = state_;
    free(state->vertical);
    free(state->sum);
    for (int k = 0; k < 4; k++)
        free(state->row[k]);
    for (int s = 0; s < 3; s++)
        free(state->looked_up[s]);
    free(state);
}

const struct row_family rows_mix = {.init = mix_init, .finish = mix_finish, .make = mix_make};
