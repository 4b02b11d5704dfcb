#include "stages/match.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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
    assert(from->sample); // chain_load() was called
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

static const struct op_template *copy_patterns(struct program *program,
                                               const struct pattern_set *set)
{
    struct op_template *copy = program_alloc(program, (size_t)set->count * sizeof *copy);
    for (int k = 0; k < set->count && !program->status; k++)
        copy[k] = pattern_of(program, &set->pattern[k]);
    return copy;
}

// ---- marks ----

// Component `c` of a colour in full-range units; chroma about 0.
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

static void lower(const void *options, struct program *program)
{
    const struct match *match = options;
    assert(match->patterns && match->patterns->count <= MATCH_TEMPLATES);
    struct picture picture = program->picture;
    struct op op = {.kind = OP_MATCH,
                    .match = {.templates = copy_patterns(program, match->patterns),
                              .count = match->patterns->count,
                              .least = (float)match->min,
                              .most = match->max,
                              .map = match->draw == MATCH_DRAW_MAP,
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
    if (match->draw == MATCH_DRAW_BOX)
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
    .size = sizeof(struct match),
    .option = {OPTION_AS(struct match, names, "template",
                         .unit = "files of pictures, separated by ':'", .required = true,
                         .many = true, .patterns = offsetof(struct match, patterns),
                         .help = "what is looked for"),
               OPTION(struct match, min, .initial = 0.9, .min = 0.01, .max = 1,
                      .help = "the score from which on a place is a match"),
               OPTION(struct match, max, .unit = "matches", .initial = 100, .min = 1,
                      .max = MAX_MATCH,
                      .help = "how many of a frame are kept, the best of all templates"),
               OPTION(struct match, draw, .initial = MATCH_DRAW_BOX, .choices = "box|none|map",
                      .help = "a frame around each match, nothing, or instead of the picture its "
                              "scores: the greatest of all templates at their middles, 0 black, 1 "
                              "white"),
               OPTION(struct match, report, .unit = "a file", .derived = "none",
                      .writes = WRITES_RECORDS, .help = "where a line of JSON a match goes")},
    .lower = lower,
};
