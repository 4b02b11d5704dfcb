// Components of packed pixels as the parts of a row.
#include <stdlib.h>

#include "base/minmax.h"
#include "cpu/row_level.h"

// ---- rows ----

void row_parts_resize(struct row_pipeline *pipeline, int width)
{
    struct row_parts *parts = &pipeline->parts;
    parts->width = parts->of_pixels ? subsampled(width, pipeline->pass->grid.shift_x)
                                    : plan_pass_columns(pipeline->pass, width);
    pipeline->width = (parts->count - 1) * parts->step + parts->width;
}

static void *part(const struct row_parts *parts, const void *row, int bytes, int k)
{
    return (uint8_t *)row + (ptrdiff_t)k * parts->step * bytes;
}

void row_parts_extend(const struct row_pipeline *pipeline, void *row, int bytes, int reach,
                      enum border border, int value)
{
    const struct row_parts *parts = &pipeline->parts;
    for (int k = 0; k < parts->count; k++)
        row_extend(part(parts, row, bytes, k), bytes, parts->width, reach, border, value);
}

void row_parts_extend_sums(const struct row_pipeline *pipeline, uint32_t *sum, int reach,
                           enum border border, uint32_t value)
{
    const struct row_parts *parts = &pipeline->parts;
    for (int k = 0; k < parts->count; k++)
        row_extend_sums(sum + (ptrdiff_t)k * parts->step, parts->width, reach, reach, border,
                        value);
}

// Row y of an operand that is pixels.
static const uint8_t *pixels(const struct row_pipeline *pipeline, struct operand operand, int y)
{
    const struct component *at;
    const uint8_t *from = row_operand(pipeline, operand, y, &at);
    return from - at->offset;
}

// Load one component of the source's pixels.
static void load_place(const struct row_pipeline *pipeline, const uint8_t *from, int place,
                       void *to)
{
    const struct component *at = &pipeline->parts.source[place];
    int depth = pipeline->pass->source_grid[0].depth;
    pipeline->rows->load[sample_bytes(depth) - 1](from + at->offset, at, max_sample(depth), to,
                                                  pipeline->parts.width);
}

void row_parts_load(struct row_pipeline *pipeline, int y, void *to)
{
    const struct row_parts *parts = &pipeline->parts;
    const struct row_kernels *rows = pipeline->rows;
    const uint8_t *from = pixels(pipeline, pipeline->pass->source[0], y);
    const struct component *at[FORMAT_COMPONENTS];
    void *row[FORMAT_COMPONENTS];
    int bytes = sample_bytes(pipeline->pass->source_grid[0].depth);
    for (int k = 0; k < parts->count; k++) {
        at[k] = &parts->source[parts->place[k]];
        row[k] = part(parts, to, bytes, k);
    }
    if (bytes == 1 && rows->load_pixels &&
        rows->load_pixels(from, at, parts->count, row, parts->width))
        return;
    for (int k = 0; k < parts->count; k++)
        load_place(pipeline, from, parts->place[k], row[k]);
}

static void load_kept(const struct row_pipeline *pipeline, const struct pixels *f)
{
    for (int k = 0; k < f->count; k++)
        if (f->kept >> k & 1)
            load_place(pipeline, f->source, k, pipeline->parts.spared[k]);
}

static void store_pixels(const struct row_pipeline *pipeline, const struct pixels *f, uint8_t *to)
{
    const struct row_parts *parts = &pipeline->parts;
    const struct row_kernels *rows = pipeline->rows;
    const struct component *at = parts->target;
    int bytes = sample_bytes(pipeline->pass->grid.depth);
    if (bytes == 1 && parts->plain && rows->store_pixels && rows->store_pixels(f, to, parts->width))
        return;
    load_kept(pipeline, f);
    if (bytes == 2 && parts->plain) {
        rows->store_pixels_16(f, (sample16 *)to, parts->width);
        return;
    }
    for (int k = 0; k < f->count; k++)
        rows->store[bytes - 1](f->from[k], &at[k], to + at[k].offset, parts->width);
}

void row_parts_store(struct row_pipeline *pipeline, const void *row, int y)
{
    const struct row_parts *parts = &pipeline->parts;
    const struct plan_pass *pass = pipeline->pass;
    struct pixels f = {.count = pass->together, .kept = pass->kept, .ahead = parts->ahead};
    int bytes = sample_bytes(pass->grid.depth);
    f.source = pixels(pipeline, pass->source[0], y);
    for (int k = 0; k < f.count; k++)
        f.from[k] = parts->spared[k];
    for (int k = 0; k < parts->count; k++)
        f.from[parts->place[k]] = part(parts, row, bytes, k);
    store_pixels(pipeline, &f, (uint8_t *)pixels(pipeline, pass->target[0], y));
}

// ---- construction ----

// How far beyond its ends a step reads a row, at most.
static int largest_reach(const struct plan_pass *pass)
{
    int reach = 0;
    for (int k = 0; k < pass->steps; k++)
        if (pass->step[k].stencil)
            reach = max_int(reach, op_radius_x(pass->step[k].stencil));
    return reach;
}

// A component of pixels by its place.
static struct component component_at(const struct row_pipeline *pipeline, struct operand operand,
                                     int place)
{
    struct component at = *plan_component(pipeline->plan, operand);
    at.offset += place * at.bytes;
    at.step *= pipeline->pass->together;
    return at;
}

static enum status init_places(struct row_pipeline *pipeline)
{
    const struct plan_pass *pass = pipeline->pass;
    struct row_parts *parts = &pipeline->parts;
    int depth = pass->grid.depth;
    int columns = subsampled(pipeline->picture_columns, pass->grid.shift_x);
    for (int k = 0; k < pass->together; k++) {
        parts->source[k] = component_at(pipeline, pass->source[0], k);
        parts->target[k] = component_at(pipeline, pass->target[0], k);
        bool filled = pass->filled >> k & 1;
        if (!filled && !(pass->kept >> k & 1)) {
            parts->place[parts->count++] = k;
            continue;
        }
        parts->spared[k] = row_alloc((size_t)columns * 2);
        if (!parts->spared[k])
            return STATUS_MEMORY;
        row_fill(parts->spared[k], sample_bytes(depth), columns, max_sample(depth));
    }
    parts->plain = component_is_plain(plan_component(pipeline->plan, pass->source[0]),
                                      pass->source_grid[0].depth) &&
                   component_is_plain(plan_component(pipeline->plan, pass->target[0]), depth);
    return STATUS_OK;
}

enum status row_parts_init(struct row_pipeline *pipeline)
{
    const struct plan_pass *pass = pipeline->pass;
    struct row_parts *parts = &pipeline->parts;
    enum status status = STATUS_OK;
    parts->ahead = rows_ahead();
    parts->of_pixels = pass->together > 1 && plan_pass_has_stencil(pass);
    if (parts->of_pixels)
        status = init_places(pipeline);
    else
        parts->count = 1;
    int columns = subsampled(pipeline->picture_columns, pass->grid.shift_x);
    parts->step = (int)row_aligned((size_t)(columns + 2 * largest_reach(pass)));
    row_parts_resize(pipeline, pipeline->picture_columns);
    pipeline->columns = pipeline->width;
    return status;
}

void row_parts_finish(struct row_parts *parts)
{
    for (int k = 0; k < FORMAT_COMPONENTS; k++)
        free(parts->spared[k]);
}
