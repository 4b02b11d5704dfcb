#include "kernels/executor/pass_constants.h"

#include <stdlib.h>
#include <string.h>

// What cannot be had is made without.
static enum status create_transforms(const struct plan *plan, int width, int height,
                                     const struct log *log, struct pass_constants *constants)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < plan->passes; k++) {
        const struct plan_pass *pass = &plan->pass[k];
        for (int n = 0; n < pass_stencils(pass) && status != STATUS_MEMORY; n++) {
            const struct plan_step *step = pass_step(pass, n);
            const struct op_convolve *op = &step->stencil->convolve;
            const struct transform_request request = {
                .weight = op->weight,
                .width = op->width,
                .height = op->height,
                .columns = subsampled(width, pass->grid.shift_x),
                .rows = subsampled(height, pass->grid.shift_y),
                .depth = step->depth_in,
            };
            if (step->transform)
                status = transform_create(&request, log, &constants[k].transform[n]);
        }
    }
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

// Constants gathered on the host as they will lie on the device. Without host memory they are only
// measured.
struct constants {
    uint8_t *host, *device;
    size_t used;
};

// Reserve `bytes`. *host is where to write them, NULL to leave it.
static const void *constants_take(struct constants *constants, size_t bytes, void **host)
{
    size_t at = constants->used;
    constants->used += (bytes + 255) / 256 * 256;
    *host = constants->host ? constants->host + at : NULL;
    return constants->device + at;
}

static const void *constants_put(struct constants *constants, const void *from, size_t bytes)
{
    void *host;
    const void *device = constants_take(constants, bytes, &host);
    if (host)
        memcpy(host, from, bytes);
    return device;
}

static struct lookup put_table(struct constants *constants, const struct plan_step *step)
{
    if (!step)
        return {};
    size_t bytes = sizeof *step->table << step->depth_in;
    const uint16_t *device = (const uint16_t *)constants_put(constants, step->table, bytes);
    return lookup_of(step->table, step->depth_in, step->depth_out, device);
}

// The taps of an axis from the first to the last, between zeros.
static const int32_t *put_taps(struct constants *constants, const int32_t *tap, int radius)
{
    size_t count = 2 * (size_t)radius + 1 + 2 * TAP_MARGIN;
    void *host;
    const void *device = constants_take(constants, count * sizeof *tap, &host);
    if (host)
        for (int k = -radius; k <= radius; k++)
            ((int32_t *)host)[TAP_MARGIN + radius + k] = tap[abs(k)];
    return (const int32_t *)device + TAP_MARGIN;
}

static const uint32_t *put_fragments(struct constants *constants, const struct op *op,
                                     const struct op *next)
{
    size_t count = fused_fragments(op, next, NULL);
    if (!count)
        return NULL;
    void *host;
    const void *device = constants_take(constants, count * sizeof(uint32_t), &host);
    if (host)
        fused_fragments(op, next, (uint32_t *)host);
    return (const uint32_t *)device;
}

// Rows of weights, with `margin` zeros behind each.
static const int32_t *put_rows(struct constants *constants, const int32_t *const *row, int rows,
                               int length, int margin)
{
    void *host;
    size_t stride = (size_t)(length + margin);
    const void *device = constants_take(constants, (size_t)rows * stride * sizeof **row, &host);
    for (int k = 0; k < rows && host; k++)
        memcpy((int32_t *)host + (size_t)k * stride, row[k], (size_t)length * sizeof **row);
    return (const int32_t *)device;
}

static void put_convolve(struct constants *constants, const struct op_convolve *op, int depth,
                         const int32_t *to[2])
{
    const int32_t *row[KERNEL_SIDE];
    if (op->rank) {
        to[0] = put_rows(constants, op->line_x, op->rank, op->width, TAP_MARGIN);
        to[1] = put_rows(constants, op->line_y, op->rank, op->height, TAP_MARGIN);
        return;
    }
    for (int k = 0; k < op->height; k++)
        row[k] = op->weight + k * op->width;
    to[0] = put_rows(constants, row, op->height, op->width,
                     convolve_fits_tile(op, depth) ? 0 : TAP_MARGIN);
}

static void put_stencil(struct constants *constants, const struct plan_pass *pass,
                        struct pass_constants *to, int n)
{
    const struct op *op = pass_stencil(pass, n), *next = pass_stencil(pass, n + 1);
    if (op->kind == OP_SEPARABLE) {
        to->stencil[n][0] = put_taps(constants, op->separable.tap_x, op->separable.radius_x);
        to->stencil[n][1] = put_taps(constants, op->separable.tap_y, op->separable.radius_y);
        to->fragments[n][0] = put_fragments(constants, op, NULL);
        to->fragments[n][1] = next ? put_fragments(constants, op, next) : NULL;
    } else if (op->kind == OP_CONVOLVE && !to->transform[n]) {
        put_convolve(constants, &op->convolve, stencil_depth(pass, n), to->stencil[n]);
    }
}

static const void *put_full_frame(struct constants *constants, const struct plan_pass *pass,
                                  int width, int height)
{
    size_t bytes = full_frame_constants(pass->full_frame, width, height, NULL);
    void *host;
    const void *device = constants_take(constants, bytes, &host);
    if (host && bytes)
        full_frame_constants(pass->full_frame, width, height, host);
    return device;
}

size_t pass_constants_put(struct pass_constants *constants, const struct plan *plan, int width,
                          int height, uint8_t *device, uint8_t *host)
{
    struct constants memory = {.host = host, .device = device};
    for (int k = 0; k < plan->passes; k++) {
        const struct plan_pass *pass = &plan->pass[k];
        struct pass_constants *to = &constants[k];
        for (int n = 0; n <= STENCILS; n++)
            to->lookup[n] = put_table(&memory, pass_table(pass, n));
        for (int n = 0; n < pass_stencils(pass); n++)
            put_stencil(&memory, pass, to, n);
        if (pass->full_frame)
            to->full_frame = put_full_frame(&memory, pass, subsampled(width, pass->grid.shift_x),
                                            subsampled(height, pass->grid.shift_y));
    }
    return memory.used;
}

enum status pass_constants_create(const struct plan *plan, int width, int height,
                                  const struct log *log, struct pass_constants **constants)
{
    *constants = (struct pass_constants *)calloc((size_t)plan->passes + 1, sizeof **constants);
    return *constants ? create_transforms(plan, width, height, log, *constants) : STATUS_MEMORY;
}

void pass_constants_destroy(const struct plan *plan, struct pass_constants **constants)
{
    for (int k = 0; *constants && k < plan->passes; k++)
        for (int n = 0; n < STENCILS; n++)
            transform_destroy(&(*constants)[k].transform[n]);
    free(*constants);
    *constants = NULL;
}
