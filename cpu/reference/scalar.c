#include "cpu/reference/scalar.h"

#include <assert.h>
#include <stdlib.h>

#include "cpu/reference/sample.h"
#include "cpu/reference/scalar_op.h"

static scalar_op *const ops[OP_KINDS] = {
    [OP_AFFINE] = pointwise_scalar,      [OP_THRESHOLD] = pointwise_scalar,
    [OP_TABLE] = pointwise_scalar,       [OP_MIX] = mix_scalar,
    [OP_SEPARABLE] = separable_scalar,   [OP_BOX] = box_scalar,
    [OP_CONVOLVE] = convolve_scalar,     [OP_GRADIENT] = gradient_scalar,
    [OP_STATISTICS] = statistics_scalar, [OP_WAVELET] = wavelet_scalar,
    [OP_MATCH] = match_scalar,           [OP_MARK] = mark_scalar,
};

static enum status run_op(const struct program *program, const struct op *op, struct plane *planes,
                          void *const *analysis)
{
    int own = program_analysis(program, (int)(op - program->op)), reads = op_reads_analysis(op);
    struct scalar_work work = {
        .op = op,
        .from = &planes[op->source[0]],
        .to = &planes[op->result],
        .depth = program->plane[op->source[0]].depth,
        .analysis = own < 0 ? NULL : analysis[own],
        .reads = reads < 0 ? NULL : analysis[program_analysis(program, reads)],
        .program = program,
        .planes = planes,
    };
    assert(ops[op->kind]);
    return ops[op->kind](&work);
}

static enum status plane_init(struct plane *plane, int width, int height)
{
    plane->width = width;
    plane->height = height;
    plane->sample = malloc((size_t)width * (size_t)height * sizeof *plane->sample + 1);
    return plane->sample ? STATUS_OK : STATUS_MEMORY;
}

static void load(const struct image *source, int c, struct plane *plane)
{
    const struct component *at = &source->format->component[c];
    int most = max_sample(source->format->depth);
    for (int y = 0; y < plane->height; y++)
        for (int x = 0; x < plane->width; x++)
            *plane_at(plane, x, y) =
                (uint16_t)clamp(sample_read(sample_at(source, c, x, y), at), 0, most);
}

// Write plane, or one value everywhere when it is NULL.
static void store(const struct image *target, int c, const struct plane *plane, int value)
{
    const struct format *format = target->format;
    if (!target->data[format->component[c].plane])
        return;
    int width = subsampled(target->width, format_shift_x(format, c));
    int height = subsampled(target->height, format_shift_y(format, c));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            sample_write(sample_at(target, c, x, y), &format->component[c],
                         plane ? *plane_at(plane, x, y) : value);
}

static enum status init_planes(const struct program *program, const struct image *source,
                               struct plane *planes)
{
    for (int p = 0; p < program->planes; p++) {
        if (p < FORMAT_COMPONENTS && !format_has(source->format, p))
            continue;
        if (plane_init(&planes[p], subsampled(source->width, program->plane[p].shift_x),
                       subsampled(source->height, program->plane[p].shift_y)))
            return STATUS_MEMORY;
        if (p < FORMAT_COMPONENTS)
            load(source, p, &planes[p]);
    }
    return STATUS_OK;
}

// Picture number `n`.
static void store_picture(const struct program *program, const struct plane *planes, int n,
                          const struct image *target)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct program_output *out = &program_out(program, n)[c];
        if (format_has(target->format, c))
            store(target, c, out->plane < 0 ? NULL : &planes[out->plane], out->value);
        else if (c == COMPONENT_ALPHA && target->format->filler)
            store(target, c, NULL, (1 << target->format->depth) - 1);
    }
    for (int p = 0; p < target->format->planes; p++)
        image_clear_gap(target, p);
}

// Memory for the analysis that the caller does not want.
static enum status init_analyses(const struct program *program, const struct plane *planes,
                                 void *const *wanted, void **analysis)
{
    for (int k = 0; k < program->analyses; k++) {
        const struct op *op = &program->op[program->analysis[k]];
        const struct plane *from = &planes[op->source[0]];
        analysis[k] = wanted ? wanted[k] : NULL;
        if (!analysis[k] &&
            !(analysis[k] = malloc(op_analysis_bytes(op, from->width, from->height))))
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static void free_all(const struct program *program, struct plane *planes, void *const *wanted,
                     void **analysis)
{
    for (int p = 0; p < program->planes && planes; p++)
        free(planes[p].sample);
    for (int k = 0; k < program->analyses && analysis; k++)
        if (!wanted || !wanted[k])
            free(analysis[k]);
    free(planes);
    free(analysis);
}

static enum status run_picture(const struct program *program, const struct image *source,
                               const struct image *target, void *const *wanted)
{
    struct plane *planes = calloc((size_t)program->planes, sizeof *planes);
    void **analysis = calloc((size_t)program->analyses + 1, sizeof *analysis);
    enum status status = planes && analysis ? init_planes(program, source, planes) : STATUS_MEMORY;
    if (!status)
        status = init_analyses(program, planes, wanted, analysis);
    for (int k = 0; k < program->ops && !status; k++)
        status = run_op(program, &program->op[k], planes, analysis);
    for (int n = 0; n < program_pictures(program) && !status; n++)
        store_picture(program, planes, n, &target[n]);
    free_all(program, planes, wanted, analysis);
    return status;
}

enum status scalar_run(const struct program *program, const struct work *work)
{
    assert(format_same_storage(work->source.format, &program->input));
    assert(!work->fields || !program->analyses);
    struct image target[MAX_PICTURES], field[MAX_PICTURES];
    enum status status = STATUS_OK;
    for (int n = 0; n < program_pictures(program); n++)
        target[n] = *work_target(work, n);
    if (!work->fields)
        return run_picture(program, &work->source, target, work->analysis);
    for (int parity = 0; parity < 2 && !status; parity++) {
        struct image source = image_field(&work->source, parity);
        for (int n = 0; n < program_pictures(program); n++)
            field[n] = image_field(&target[n], parity);
        status = run_picture(program, &source, field, work->analysis);
    }
    return status;
}
