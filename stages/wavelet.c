#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/stage.h"

struct wavelet {
    char *scales;
    enum wavelet_show show;
    enum wavelet_norm norm;
    double gain, support;
    char *out;
    enum border border;
};

// ---- lists of scales ----

// first, first + step, ... up to last. A scale alone is a range of one.
struct scales {
    double first, last, step;
};

static int range_count(const struct scales *range)
{
    double count = floor((range->last - range->first) / range->step + 1e-9) + 1;
    return count > WAVELET_SCALES ? WAVELET_SCALES + 1 : (int)count;
}

// A number that ends at `end`.
static bool read_number(const char *text, const char *end, double *number)
{
    char copy[64], *rest;
    size_t length = (size_t)(end - text);
    if (!length || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *number = strtod(copy, &rest);
    return !*rest && isfinite(*number);
}

// "4", "1..64" or "1..64/2", up to `end`.
static bool read_range(const char *text, const char *end, struct scales *range)
{
    const char *dots = strstr(text, "..");
    *range = (struct scales){.step = 1};
    if (!dots || dots >= end)
        return read_number(text, end, &range->first) && read_number(text, end, &range->last);
    const char *slash = memchr(dots, '/', (size_t)(end - dots));
    if (slash && !read_number(slash + 1, end, &range->step))
        return false;
    return read_number(text, dots, &range->first) &&
           read_number(dots + 2, slash ? slash : end, &range->last);
}

static const char *why_not(const struct scales *range)
{
    if (range->first < 0.01)
        return "a scale is at least 0.01";
    if (range->last < range->first)
        return "a range goes from the smaller scale to the larger one";
    if (range->step <= 0)
        return "a range's step is greater than 0";
    if (range->last > MAX_WAVELET_SCALE)
        return "a scale is at most 65536";
    return NULL;
}

static char *resolve_range(const char *text, char *why, size_t size)
{
    struct scales range;
    const char *reason = "a scale is a number as 2.8, or some as 1..64 or 1..64/0.5";
    if (read_range(text, text + strlen(text), &range))
        reason = why_not(&range);
    if (!reason)
        return strdup(text);
    snprintf(why, size, "%s", reason);
    return NULL;
}

// The scales of a list of ranges, of which the first WAVELET_SCALES go to `scale` (optional).
static int read_scales(const char *texts, double *scale)
{
    int count = 0;
    while (*texts && count <= WAVELET_SCALES) {
        const char *end = texts + strcspn(texts, "\n");
        struct scales range;
        read_range(texts, end, &range);
        for (int k = 0; k < range_count(&range) && count <= WAVELET_SCALES; k++, count++)
            if (scale && count < WAVELET_SCALES)
                scale[count] = range.first + k * range.step;
        texts = end + (*end == '\n');
    }
    return count;
}

static bool accept_scales(const char *texts, char *why, size_t size)
{
    if (read_scales(texts, NULL) <= WAVELET_SCALES)
        return true;
    snprintf(why, size, "these are more than %d scales: a step as in 1..1000/10 makes them fewer",
             WAVELET_SCALES);
    return false;
}

// ---- lowering ----

static void make_gray(struct program *program)
{
    struct format gray = program->picture.meaning;
    program_keep_luma(program);
    if (gray.model != MODEL_RGB)
        return;
    gray.model = MODEL_GRAY;
    gray.range = RANGE_FULL;
    program_convert(program, &gray);
}

// The largest of what edges give on the scales that are shown.
static double edge_of(const struct op_wavelet *op)
{
    double most = op_wavelet_edge(op, op->scale[0]);
    bool one = op->show == WAVELET_ABS || op->show == WAVELET_SIGNED;
    for (int k = 1; k < op->scales && !one; k++)
        most = fmax(most, op_wavelet_edge(op, op->scale[k]));
    return most;
}

// One of red, green and blue at 0 .. 1 of a rainbow from blue to red, 0 .. 1.
static double rainbow(int component, double place)
{
    double distance = fabs(4 * place - (3 - component));
    return fmin(fmax(1.5 - distance, 0), 1);
}

// Code 1 + k becomes the colour of scale k; 0 stays black.
static uint16_t *colour_table(struct program *program, int component, const struct op_wavelet *op)
{
    uint16_t *entry = program_alloc(program, ((size_t)op->high + 1) * sizeof *entry);
    for (int x = 1; entry && x <= op->high; x++) {
        double place = op->scales > 1 ? fmin((x - 1.0) / (op->scales - 1), 1) : 0;
        entry[x] = (uint16_t)lround(rainbow(component, place) * op->high);
    }
    return entry;
}

static void colour(struct program *program, const struct op_wavelet *op)
{
    struct picture *picture = &program->picture;
    int winners = picture->plane[0];
    picture->meaning.model = MODEL_RGB;
    for (int c = 0; c < 3; c++) {
        struct op table = {.kind = OP_TABLE, .sources = 1, .source = {winners}};
        table.table.entry = colour_table(program, c, op);
        picture->plane[c] = program_append(program, &table, 0, 0, picture->meaning.depth);
    }
}

// Where no choice was made: one scale is shown by itself, of several the largest.
static enum wavelet_show show_of(const struct wavelet *wavelet, int scales)
{
    enum wavelet_show usual = scales > 1 ? WAVELET_MAX : WAVELET_ABS;
    return (int)wavelet->show < 0 ? usual : wavelet->show;
}

static void lower(const void *options, struct program *program)
{
    const struct wavelet *wavelet = options;
    int count = read_scales(wavelet->scales, NULL);
    double *scale = program_alloc(program, WAVELET_SCALES * sizeof *scale);
    if (!scale)
        return;
    read_scales(wavelet->scales, scale);
    make_gray(program);
    struct format *meaning = &program->picture.meaning;
    struct levels levels = format_levels(meaning, 0);
    struct op op = {.kind = OP_WAVELET,
                    .wavelet = {.scale = scale,
                                .scales = count,
                                .norm = wavelet->norm,
                                .black = levels.zero,
                                .unit = 1 / levels.scale,
                                .show = show_of(wavelet, count),
                                .high = (1 << meaning->depth) - 1,
                                .planes = wavelet->out != NULL}};
    double white = op.wavelet.show == WAVELET_SIGNED ? op.wavelet.high / 2.0 : op.wavelet.high;
    op.wavelet.gain = wavelet->gain * white / edge_of(&op.wavelet);
    program_stencil(program, 0, wavelet->border, op);
    meaning->range = RANGE_FULL;
    if (op.wavelet.show == WAVELET_SHOW_SCALE)
        colour(program, &op.wavelet);
}

const struct stage stage_wavelet = {
    .name = "wavelet",
    .summary =
        "continuous wavelet transform with the Mexican hat at some scales, as a gray picture",
    .formula =
        "W_s(b) = C / N(s) sum of f(k) (|u|^2 - 2) exp(-|u|^2 / 2), u = (k - b) / s, f the gray "
        "picture 0..255, C = 1 / sqrt(2 pi), N(s) = s (norm=l2) or sqrt(s) (article), to 1e-4 of "
        "the largest |W_s| there is, and the same bits on every backend; bright spots are "
        "negative. With E(s) = what an edge from black to white gives: abs: 255 gain |W| / E of "
        "the first scale; signed: 127.5 + 127.5 gain W / E; max: the same as abs of the largest "
        "|W_s|, E being that of the scale where it is largest; scale: its scale as a colour from "
        "blue, the first, to red, the last, and black where max shows none; in 8 bits the last two "
        "of 256 scales share theirs",
    .source = "J.-P. Antoine et al., Two-Dimensional Wavelets and their Relatives, Cambridge 2004",
    .size = sizeof(struct wavelet),
    .option = {OPTION(struct wavelet, scales,
                      .unit = "numbers and ranges as 1:4:8, 1..64, 1..64/0.5", .required = true,
                      .many = true, .resolve = resolve_range, .accept = accept_scales,
                      .help = "deviation of the hat's Gaussian in pixels, up to 256 of them"),
               OPTION(struct wavelet, show, .choices = "abs|signed|max|scale",
                      .derived = "abs of one scale, max of several",
                      .help = "what the picture becomes"),
               OPTION(struct wavelet, norm, .initial = WAVELET_L2, .choices = "l2|article",
                      .help = "how scales are weighed against each other"),
               OPTION(struct wavelet, gain, .initial = 1, .min = 0, .max = 65536,
                      .help = "1 shows an edge from black to white as white"),
               OPTION(struct wavelet, support, .unit = "scales", .initial = 6, .min = 5, .max = 10,
                      .help = "taken from older command lines: sums reach as far as anything "
                              "counts"),
               OPTION(struct wavelet, out, .unit = "a file", .derived = "none",
                      .writes = WRITES_RECORDS, .beside = ".json",
                      .help = "where W goes as planes of float32, and beside it FILE.json, which "
                              "describes them; each frame in flight keeps 4 bytes a pixel and "
                              "scale, which --mem limits"),
               OPTION_BORDER(struct wavelet, border)},
    .lower = lower,
};
