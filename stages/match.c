#include "plan/match.h"
#include "stages/stage.h"
#include "stages/pattern.h"

#include <math.h>
#include <string.h>

enum { TEMPLATES, LEAST, MOST, DRAW, REPORT };
enum { DRAW_BOX, DRAW_NONE, DRAW_MAP };

// R, G and B of frames, template by template: bright, and far from each other.
static const double palette[][3] = {
    {0, 255, 0}, {255, 0, 0}, {0, 160, 255}, {255, 220, 0}, {255, 0, 255}, {0, 255, 255},
};
enum { COLORS = sizeof palette / sizeof *palette };

// ---- templates ----

// A copy that lives as long as the program; samples that do not count become MATCH_BIAS.
static struct op_template pattern_of(struct program *program, const struct pattern *from)
{
    size_t samples = (size_t)from->width * (size_t)from->height;
    char *name = program_alloc(program, strlen(from->name) + 1);
    uint8_t *sample = program_alloc(program, samples);
    uint8_t *mask = from->mask ? program_alloc(program, samples) : NULL;
    struct op_template t = {name, from->width, from->height, sample, mask, 0, 0, 0};
    if (program->status)
        return t;
    memcpy(name, from->name, strlen(from->name));
    int64_t squares = 0;
    for (size_t k = 0; k < samples; k++) {
        bool counts = !mask || from->mask[k];
        int value = counts ? from->sample[k] - MATCH_BIAS : 0;
        sample[k] = (uint8_t)(value + MATCH_BIAS);
        if (mask)
            mask[k] = counts;
        t.count += counts;
        t.sum += value;
        squares += value * value;
    }
    t.norm = sqrt(match_difference(t.count, squares, t.sum, t.sum));
    return t;
}

static const struct op_template *copy_templates(struct program *program)
{
    const struct pattern_set *set = program->patterns;
    struct op_template *copy = program_alloc(program, (size_t)set->count * sizeof *copy);
    for (int k = 0; k < set->count && !program->status; k++)
        copy[k] = pattern_of(program, &set->pattern[k]);
    return copy;
}

// ---- marks ----

// What component `c` of a colour is in full-range units; of chroma about 0.
static double component_of(const struct format *meaning, int c, const double rgb[3])
{
    double kr = meaning->kr, kb = meaning->kb;
    double y = kr * rgb[0] + (1 - kr - kb) * rgb[1] + kb * rgb[2];
    if (c == COMPONENT_ALPHA || meaning->model == MODEL_GRAY)
        return 255;
    if (meaning->model == MODEL_RGB)
        return rgb[c];
    return c == COMPONENT_CB   ? (rgb[2] - y) / (2 * (1 - kb))
           : c == COMPONENT_CR ? (rgb[0] - y) / (2 * (1 - kr))
                               : y;
}

static const uint16_t *frame_values(struct program *program, int c, int count)
{
    const struct format *meaning = &program->picture.meaning;
    struct levels levels = format_levels(meaning, c);
    uint16_t *value = program_alloc(program, (size_t)count * sizeof *value);
    for (int k = 0; k < count && value; k++) {
        double v = component_of(meaning, c, palette[k % COLORS]);
        long code = lround(levels.zero + v * levels.scale);
        value[k] = (uint16_t)(code < levels.low    ? levels.low
                              : code > levels.high ? levels.high
                                                   : code);
    }
    return value;
}

static void mark(struct program *program, const struct op_match *match, int number)
{
    const struct format *meaning = &program->picture.meaning;
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (program->picture.plane[c] >= 0 && !program->status)
            program_unary(program, c,
                          (struct op){.kind = OP_MARK,
                                      .mark = {.match = number,
                                               .shift_x = format_shift_x(meaning, c),
                                               .shift_y = format_shift_y(meaning, c),
                                               .templates = match->templates,
                                               .count = match->count,
                                               .most = match->most,
                                               .value = frame_values(program, c, match->count)}});
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    struct picture picture = program->picture;
    struct op op = {.kind = OP_MATCH,
                    .match = {.templates = copy_templates(program),
                              .count = program->patterns->count,
                              .least = (float)value[LEAST],
                              .most = (int)value[MOST],
                              .map = value[DRAW] == DRAW_MAP,
                              .white = (1 << picture.meaning.depth) - 1}};
    if (program->status)
        return;
    program->picture.meaning.alpha = false;
    program->picture.plane[COMPONENT_ALPHA] = -1;
    program_gray(program, 8);
    if (op.match.map) {
        program->picture.meaning.depth = picture.meaning.depth;
        program_unary(program, 0, op);
        program->picture.meaning.alpha = picture.meaning.alpha;
        program->picture.plane[COMPONENT_ALPHA] = picture.plane[COMPONENT_ALPHA];
        return;
    }
    program_watch(program, 0, op);
    program->picture = picture;
    if (value[DRAW] == DRAW_BOX)
        mark(program, &op.match, program->ops - 1);
}

const struct stage stage_match = {
    .name = "match",
    .summary = "finds pictures in the picture, by normalised cross-correlation",
    .formula =
        "score = cov(f, t) / sqrt(var(f) var(t)), of the gray window f under the template t, both "
        "in 8 bits, over samples where the template's alpha is 128 or more; 0 where f is of one "
        "shade; a match is the greatest within half a template, at least min",
    .source = "J. P. Lewis, Fast normalized cross-correlation, Vision Interface 1995",
    .option = {{"template", OPTION_TEXT, "files of pictures, separated by ':'", NAN, 0, 0, NULL,
                NULL, "what is looked for", .many = true, .pictures = true},
               {"min", OPTION_REAL, "", 0.9, 0.01, 1, NULL, NULL,
                "the score from which on a place is a match"},
               {"max", OPTION_INT, "matches", 100, 1, MAX_MATCH, NULL, NULL,
                "how many of a frame are kept, the best of all templates"},
               {"draw", OPTION_CHOICE, "", DRAW_BOX, 0, 2, "box|none|map", NULL,
                "a frame around each match, nothing, or instead of the picture its scores: the "
                "greatest of all templates at their middles, 0 black, 1 white"},
               {"report", OPTION_TEXT, "a file", NAN, 0, 0, NULL, "none",
                "where a line of JSON a match goes", .writes = WRITES_RECORDS}},
    .lower = lower,
};
