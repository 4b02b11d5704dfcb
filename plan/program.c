#include "plan/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct program_block {
    struct program_block *next;
    max_align_t bytes[];
};

enum status program_init(struct program *program, const struct format *input)
{
    assert(input->depth >= 8 && input->depth <= 16);
    *program = (struct program){.input = *input, .record = -1};
    program->picture.meaning = *input;
    program->plane = calloc(FORMAT_COMPONENTS, sizeof *program->plane);
    if (!program->plane)
        return program->status = STATUS_MEMORY;
    program->planes = FORMAT_COMPONENTS;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        program->plane[c] = (struct program_plane){format_shift_x(input, c),
                                                   format_shift_y(input, c), input->depth};
        program->picture.plane[c] = format_has(input, c) ? c : -1;
    }
    return STATUS_OK;
}

void program_free(struct program *program)
{
    while (program->blocks) {
        struct program_block *block = program->blocks;
        program->blocks = block->next;
        free(block);
    }
    free(program->plane);
    free(program->op);
    free(program->analysis);
    *program = (struct program){0};
}

void *program_alloc(struct program *program, size_t bytes)
{
    struct program_block *block = calloc(1, sizeof *block + bytes);
    if (!block) {
        program->status = STATUS_MEMORY;
        return NULL;
    }
    block->next = program->blocks;
    program->blocks = block;
    return block->bytes;
}

// Number the analysis of the operation that was appended last.
static void number_side(struct program *program)
{
    if (!op_analysis_bytes(&program->op[program->ops - 1], 1, 1))
        return;
    int *analyses = realloc(program->analysis, (size_t)(program->analyses + 1) * sizeof *analyses);
    if (!analyses) {
        program->status = STATUS_MEMORY;
        return;
    }
    program->analysis = analyses;
    analyses[program->analyses++] = program->ops - 1;
}

int program_append(struct program *program, const struct op *op, int shift_x, int shift_y,
                   int depth)
{
    if (program->status)
        return 0;
    assert(op->sources >= 1 && op->sources <= 3 && (op->sources == 1 || op_is_mix(op)));
    for (int k = 0; k < op->sources; k++)
        assert(op->source[k] >= 0 && op->source[k] < program->planes);
    assert(!op_is_stencil(op) || depth == program->plane[op->source[0]].depth);
    struct op *ops = realloc(program->op, (size_t)(program->ops + 1) * sizeof *ops);
    if (ops)
        program->op = ops;
    struct program_plane *planes =
        realloc(program->plane, (size_t)(program->planes + 1) * sizeof *planes);
    if (planes)
        program->plane = planes;
    if (!ops || !planes) {
        program->status = STATUS_MEMORY;
        return 0;
    }
    ops[program->ops] = *op;
    ops[program->ops].record = program->record;
    ops[program->ops++].result = program->planes;
    planes[program->planes] = (struct program_plane){shift_x, shift_y, depth};
    number_side(program);
    return program->planes++;
}

int program_analysis(const struct program *program, int op)
{
    for (int k = 0; k < program->analyses; k++)
        if (program->analysis[k] == op)
            return k;
    return -1;
}

size_t program_analysis_bytes(const struct program *program, int analysis, int width, int height)
{
    assert(analysis >= 0 && analysis < program->analyses);
    const struct op *op = &program->op[program->analysis[analysis]];
    struct program_plane grid = program->plane[op->source[0]];
    return op_analysis_bytes(op, subsampled(width, grid.shift_x), subsampled(height, grid.shift_y));
}

static void append_unary(struct program *program, int c, struct op op, int depth)
{
    const struct format *meaning = &program->picture.meaning;
    int shift_x = format_shift_x(meaning, c), shift_y = format_shift_y(meaning, c);
    op.sources = 1;
    op.source[0] = program->picture.plane[c];
    assert(program->status || (program->plane[op.source[0]].shift_x == shift_x &&
                               program->plane[op.source[0]].shift_y == shift_y));
    program->picture.plane[c] = program_append(program, &op, shift_x, shift_y, depth);
}

void program_unary(struct program *program, int c, struct op op)
{
    append_unary(program, c, op, program->picture.meaning.depth);
}

void program_watch(struct program *program, int c, struct op op)
{
    int plane = program->picture.plane[c];
    program_unary(program, c, op);
    program->picture.plane[c] = plane;
}

static int64_t q16(double value)
{
    return llround(value * 65536);
}

void program_affine(struct program *program, int c, double gain, double offset)
{
    bool chroma = format_is_chroma(&program->picture.meaning, c);
    if (chroma)
        offset = 0;
    if (gain == 1 && offset == 0)
        return;
    struct levels levels = format_levels(&program->picture.meaning, c);
    // About `zero`, so that neutral and black stay exact: y - zero = gain (x - zero) + offset.
    int64_t gain_q16 = q16(gain);
    program_unary(program, c,
                  (struct op){.kind = OP_AFFINE,
                              .affine = {.gain = gain_q16,
                                         .offset = levels.zero * (65536 - gain_q16) +
                                                   q16(offset * levels.scale),
                                         .low = levels.low,
                                         .high = levels.high}});
}

void program_curve(struct program *program, int c, double (*curve)(double value, double parameter),
                   double parameter)
{
    assert(!format_is_chroma(&program->picture.meaning, c));
    struct levels levels = format_levels(&program->picture.meaning, c);
    size_t entries = (size_t)1 << program->picture.meaning.depth;
    uint16_t *entry = program_alloc(program, entries * sizeof *entry);
    if (!entry)
        return;
    for (size_t x = 0; x < entries; x++) {
        double value = fmin(fmax(((double)x - levels.zero) / levels.scale, 0), 255);
        value = fmin(fmax(curve(value, parameter), 0), 255);
        entry[x] = (uint16_t)lround(levels.zero + value * levels.scale);
    }
    program_unary(program, c, (struct op){.kind = OP_TABLE, .table.entry = entry});
}

// The first code whose value is not below `value`. The slack absorbs the rounding of the scale, far
// below the distance between two codes.
static int code_at_least(struct levels levels, double value)
{
    return (int)ceil(levels.zero + value * levels.scale - 1e-6);
}

// The last code whose value is not above `value`.
static int code_at_most(struct levels levels, double value)
{
    return (int)floor(levels.zero + value * levels.scale + 1e-6);
}

void program_threshold(struct program *program, int c, double low, double high)
{
    struct levels levels = format_levels(&program->picture.meaning, c);
    program_unary(program, c,
                  (struct op){.kind = OP_THRESHOLD,
                              .threshold = {.low = code_at_least(levels, low),
                                            .high = code_at_most(levels, high),
                                            .below = levels.low,
                                            .above = levels.high}});
}

void program_binarize(struct program *program, int c, double level)
{
    struct levels levels = format_levels(&program->picture.meaning, c);
    int first = code_at_least(levels, level);
    program_unary(program, c,
                  (struct op){.kind = OP_THRESHOLD,
                              .threshold = {.low = first,
                                            .high = first - 1,
                                            .below = levels.low,
                                            .above = levels.high}});
}

void program_stencil(struct program *program, int c, enum border border, struct op op)
{
    op.border = border;
    op.border_value = format_levels(&program->picture.meaning, c).zero;
    program_unary(program, c, op);
}

int program_convolve_bits(const struct program *program, double weights)
{
    double room = 2147483647.0 / (ldexp(1, program->picture.meaning.depth) * (weights + 1));
    int bits = (int)floor(log2(room));
    return bits < 0 ? 0 : bits > 20 ? 20 : bits;
}

// The picture has one colour now: what was chroma, or green and blue, is nobody's.
static void keep_first(struct program *program)
{
    program->picture.plane[COMPONENT_CB] = program->picture.plane[COMPONENT_CR] = -1;
}

void program_keep_luma(struct program *program)
{
    struct format *meaning = &program->picture.meaning;
    if (meaning->model != MODEL_YUV)
        return;
    meaning->model = MODEL_GRAY;
    meaning->chroma_x = meaning->chroma_y = 0;
    keep_first(program);
}

// ---- conversions ----

// Append the mix that makes one plane of `result` (component `c`) from the picture's components as
// value = sum of weight[k] * value[k], and return its number.
static int append_mix(struct program *program, const double weight[3], const struct format *result,
                      int c)
{
    const struct picture *from = &program->picture;
    struct levels to = format_levels(result, c);
    struct op op = {.kind = OP_MIX,
                    .mix = {.offset = (int64_t)to.zero << 20,
                            .low = to.low,
                            .high = to.high,
                            .siting = format_colors(&from->meaning) == 3 ? from->meaning.siting
                                                                         : result->siting}};
    for (int k = 0; k < format_colors(&from->meaning); k++) {
        struct levels levels = format_levels(&from->meaning, k);
        int64_t q = q16(weight[k] * to.scale / levels.scale);
        if (q == 0)
            continue;
        op.mix.weight[op.sources] = (int)q;
        op.mix.offset -= q * levels.zero * 16;
        op.source[op.sources++] = from->plane[k];
    }
    return program_append(program, &op, format_shift_x(result, c), format_shift_y(result, c),
                          result->depth);
}

void program_weigh(struct program *program, const double weight[3])
{
    struct format gray = program->picture.meaning;
    gray.model = MODEL_GRAY;
    gray.range = RANGE_FULL;
    gray.chroma_x = gray.chroma_y = 0;
    program->picture.plane[0] = append_mix(program, weight, &gray, 0);
    program->picture.meaning = gray;
    keep_first(program);
}

// R'G'B' in terms of Y'CbCr, values as in struct levels (chroma 127.5 at its strongest).
static void yuv_to_rgb(const struct format *yuv, double m[3][3])
{
    double kr = yuv->kr, kb = yuv->kb, kg = 1 - kr - kb;
    double rows[3][3] = {
        {1, 0, 2 * (1 - kr)},
        {1, -2 * kb * (1 - kb) / kg, -2 * kr * (1 - kr) / kg},
        {1, 2 * (1 - kb), 0},
    };
    memcpy(m, rows, sizeof rows);
}

static void rgb_to_yuv(const struct format *yuv, double m[3][3])
{
    double kr = yuv->kr, kb = yuv->kb, kg = 1 - kr - kb;
    double rows[3][3] = {
        {kr, kg, kb},
        {-kr / (2 * (1 - kb)), -kg / (2 * (1 - kb)), 0.5},
        {0.5, -kg / (2 * (1 - kr)), -kb / (2 * (1 - kr))},
    };
    memcpy(m, rows, sizeof rows);
}

static void multiply(const double a[3][3], const double b[3][3], double m[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
}

// How the components of `to` follow from those of `from`, which is not gray.
static void conversion_matrix(const struct format *from, const struct format *to, double m[3][3])
{
    static const double identity[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    double decode[3][3], encode[3][3];
    memcpy(decode, identity, sizeof decode);
    memcpy(encode, identity, sizeof encode);
    bool same = from->model == to->model && from->kr == to->kr && from->kb == to->kb;
    if (from->model == MODEL_YUV && !same)
        yuv_to_rgb(from, decode);
    if (to->model != MODEL_RGB && !same)
        rgb_to_yuv(to, encode); // of gray: the first row
    multiply((const double(*)[3])encode, (const double(*)[3])decode, m);
}

// Component `c` needs only other code values: one affine operation about its zero.
static void convert_levels(struct program *program, int c, const struct format *to)
{
    struct levels a = format_levels(&program->picture.meaning, c), b = format_levels(to, c);
    if (a.zero == b.zero && a.scale == b.scale && program->picture.meaning.depth == to->depth)
        return;
    int64_t gain = q16(b.scale / a.scale);
    append_unary(program, c,
                 (struct op){.kind = OP_AFFINE,
                             .affine = {.gain = gain,
                                        .offset = ((int64_t)b.zero << 16) - gain * a.zero,
                                        .low = b.low,
                                        .high = b.high}},
                 to->depth);
}

void program_convert(struct program *program, const struct format *to)
{
    struct format *from = &program->picture.meaning;
    bool same_matrix = to->model != MODEL_YUV || (from->kr == to->kr && from->kb == to->kb);
    int plane[3] = {-1, -1, -1};
    if (from->model == MODEL_YUV && to->model == MODEL_GRAY)
        program_keep_luma(program);
    if (from->model == to->model && same_matrix) {
        for (int c = 0; c < format_colors(to); c++) {
            static const double weight[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
            bool same_grid = format_shift_x(from, c) == format_shift_x(to, c) &&
                             format_shift_y(from, c) == format_shift_y(to, c);
            if (same_grid)
                convert_levels(program, c, to);
            plane[c] =
                same_grid ? program->picture.plane[c] : append_mix(program, weight[c], to, c);
        }
    } else if (from->model == MODEL_GRAY) {
        // One plane serves all of R, G and B; neutral chroma is a constant of the output.
        convert_levels(program, 0, to);
        for (int c = 0; c < 3; c++)
            plane[c] = to->model == MODEL_RGB || c == 0 ? program->picture.plane[0] : -1;
    } else {
        double m[3][3];
        conversion_matrix(from, to, m);
        for (int c = 0; c < format_colors(to); c++)
            plane[c] = append_mix(program, m[c], to, c);
    }
    bool alpha = program->picture.plane[COMPONENT_ALPHA] >= 0 && to->alpha;
    if (alpha)
        convert_levels(program, COMPONENT_ALPHA, to);
    else
        program->picture.plane[COMPONENT_ALPHA] = -1;
    memcpy(program->picture.plane, plane, sizeof plane);
    program->picture.meaning = *to;
}

void program_gray(struct program *program, int depth)
{
    const struct format *meaning = &program->picture.meaning;
    if (meaning->model == MODEL_RGB)
        program_weigh(program, (const double[3]){[COMPONENT_R] = meaning->kr,
                                                 [COMPONENT_G] = 1 - meaning->kr - meaning->kb,
                                                 [COMPONENT_B] = meaning->kb});
    program_keep_luma(program);
    struct format gray = program->picture.meaning;
    gray.range = RANGE_FULL;
    gray.depth = depth;
    program_convert(program, &gray);
}

// ---- the end ----

static bool same_meaning(const struct format *a, const struct format *b)
{
    return a->model == b->model && a->depth == b->depth && a->alpha == b->alpha &&
           a->range == b->range && a->chroma_x == b->chroma_x && a->chroma_y == b->chroma_y;
}

struct format program_natural_format(const struct program *program, const struct picture *picture)
{
    const struct format *meaning = &picture->meaning;
    if (same_meaning(meaning, &program->input))
        return program->input;
    return format_planar(meaning->model, meaning->depth, meaning->chroma_x, meaning->chroma_y,
                         meaning->alpha, meaning);
}

// Convert the picture to `format`, and say which plane of it goes where.
static void finish_picture(struct program *program, const struct format *format,
                           struct program_output *out)
{
    program_convert(program, format);
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        struct levels levels = format_levels(format, c);
        bool opaque = c == COMPONENT_ALPHA;
        out[c] = (struct program_output){.plane = program->picture.plane[c],
                                         .value = opaque ? levels.high : levels.zero};
    }
}

void program_tee(struct program *program)
{
    assert(program->tees < MAX_PICTURES - 1);
    program->tee[program->tees++] = (struct program_tee){.picture = program->picture};
}

void program_choose_tee(struct program *program, int tee, const struct format *output)
{
    assert(tee >= 0 && tee < program->tees);
    program->tee[tee].output = *output;
    program->tee[tee].chosen = true;
}

enum status program_finish(struct program *program, const struct format *output)
{
    struct picture picture = program->picture;
    for (int k = 0; k < program->tees; k++) {
        struct program_tee *tee = &program->tee[k];
        if (!tee->chosen)
            tee->output = program_natural_format(program, &tee->picture);
        program->picture = tee->picture;
        finish_picture(program, &tee->output, tee->out);
    }
    program->output = output ? *output : program_natural_format(program, &picture);
    program->picture = picture;
    finish_picture(program, &program->output, program->out);
    return program->status;
}

bool program_is_identity(const struct program *program)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(&program->output, c) && program->out[c].plane != c)
            return false;
    return format_same_storage(&program->input, &program->output);
}

bool program_keeps_fields(const struct program *program)
{
    bool stencils = false;
    for (int k = 0; k < program->ops; k++) {
        stencils |= op_is_stencil(&program->op[k]);
        if (op_is_full_frame(&program->op[k]))
            return false;
    }
    return stencils;
}
