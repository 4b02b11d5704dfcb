// Every operation and random plans on a backend, against the scalar reference, to the bit.
//
//   conformance [--backend cpu|cuda] [--devices N] [--threads N] [--cases N] [--case K] [--large]
//               [--ladder]
//
// A case is a number: format, chain, picture size, strides, alignment and content all follow from
// it, so that `--case K` replays one. Two executors are always busy at once, each with all its
// slots, so that parameters of one cannot reach the other unseen. The bytes around and between the
// rows of the target, and behind analysis, are compared too. --devices makes N backends take
// frames in turn, of GPUs the first N, and leaves out the ladder. The ladder's steps follow
// (plan/ladder.h) unless --case or --first picked some cases; --ladder is these alone. The last
// line is "N passed, N failed".
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/scalar.h"
#include "cpu/scalar_plane.h"
#include "pipeline/engine/multi_gpu.h"
#include "plan/backend.h"
#include "stages/chain.h"
#include "stages/kernel.h"
#include "plan/ladder.h"
#include "tests/patterns.h"

// ---- random numbers: splitmix64, the same everywhere ----

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int random_below(uint64_t *state, int bound)
{
    return (int)(random_next(state) % (uint64_t)bound);
}

// ---- formats ----

static struct format planar(enum model model, int depth, int chroma_x, int chroma_y, bool alpha,
                            enum range range)
{
    struct format meaning = {.range = range, .kr = 0.2126, .kb = 0.0722};
    return format_planar(model, depth, chroma_x, chroma_y, alpha, &meaning);
}

// Packed: components c at the given byte offsets of a pixel, -1 for none.
static struct format packed(enum model model, int bytes, int step, const int *offset, bool alpha)
{
    struct format format = {.model = model,
                            .depth = 8 * bytes,
                            .planes = 1,
                            .alpha = alpha,
                            .filler = !alpha && offset[3] >= 0,
                            .kr = 0.299,
                            .kb = 0.114};
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (offset[c] >= 0)
            format.component[c] =
                (struct component){.offset = offset[c], .step = step, .bytes = bytes};
    return format;
}

static struct format semi_planar(int depth, int shift)
{
    struct format format = planar(MODEL_YUV, depth, 1, 1, false, RANGE_LIMITED);
    int bytes = depth > 8 ? 2 : 1;
    format.planes = 2;
    for (int c = 0; c < 3; c++)
        format.component[c].shift = shift;
    for (int c = 1; c < 3; c++) {
        format.component[c].plane = 1;
        format.component[c].offset = (c - 1) * bytes;
        format.component[c].step = 2 * bytes;
    }
    return format;
}

enum { FORMATS = 24 };

static struct format test_format(int index)
{
    static const int rgb24[4] = {0, 1, 2, -1}, bgra[4] = {2, 1, 0, 3}, rgb0[4] = {0, 1, 2, 3};
    static const int rgb48[4] = {0, 2, 4, -1}, rgba64[4] = {0, 2, 4, 6}, ya8[4] = {0, -1, -1, 1};
    struct format format;
    switch (index) {
    case 1:
        return planar(MODEL_GRAY, 8, 0, 0, false, RANGE_LIMITED);
    case 2:
        return planar(MODEL_GRAY, 10, 0, 0, false, RANGE_FULL);
    case 3:
        return planar(MODEL_GRAY, 16, 0, 0, false, RANGE_FULL);
    case 4:
        return planar(MODEL_YUV, 8, 1, 1, false, RANGE_LIMITED);
    case 5:
        return planar(MODEL_YUV, 8, 1, 0, false, RANGE_FULL);
    case 6:
        return planar(MODEL_YUV, 8, 0, 0, true, RANGE_LIMITED);
    case 7:
        return planar(MODEL_YUV, 8, 0, 1, false, RANGE_LIMITED);
    case 8:
        return planar(MODEL_YUV, 8, 2, 0, false, RANGE_LIMITED);
    case 9:
        return planar(MODEL_YUV, 10, 1, 1, false, RANGE_LIMITED);
    case 10:
        return planar(MODEL_YUV, 12, 1, 0, true, RANGE_LIMITED);
    case 11:
        return planar(MODEL_YUV, 16, 0, 0, false, RANGE_FULL);
    case 12:
        return semi_planar(8, 0);
    case 13:
        return semi_planar(10, 6);
    case 14:
        return packed(MODEL_RGB, 1, 3, rgb24, false);
    case 15:
        return packed(MODEL_RGB, 1, 4, bgra, true);
    case 16:
        return packed(MODEL_RGB, 1, 4, rgb0, false);
    case 17:
        format = packed(MODEL_RGB, 2, 6, rgb48, false);
        for (int c = 0; c < 3; c++)
            format.component[c].big_endian = true;
        return format;
    case 18:
        return packed(MODEL_RGB, 2, 8, rgba64, true);
    case 19:
        return packed(MODEL_GRAY, 1, 2, ya8, true);
    case 20:
        return planar(MODEL_RGB, 8, 0, 0, false, RANGE_FULL);
    case 21:
        return planar(MODEL_RGB, 10, 0, 0, true, RANGE_FULL);
    case 22:
        format = planar(MODEL_YUV, 8, 1, 1, false, RANGE_FULL);
        format.siting = SITING_CENTER;
        return format;
    case 23:
        return planar(MODEL_YUV, 9, 2, 2, false, RANGE_LIMITED);
    default:
        return planar(MODEL_GRAY, 8, 0, 0, false, RANGE_FULL);
    }
}

// ---- chains ----

static const char *const fixed_chains[] = {
    "null",
    "stats",
    "tee=a",
    "brightness=40,tee=a,gray=mean,tee=b,sobel=l1:border=zero,threshold=20:240",
    "gray,gaussian=1.4,tee=a,sobel,tee=b,tee=c,threshold=20:240,tee=d,tee=e,invert",
    "gaussian=1.4,stats,gray=mean,stats,sobel,stats",
    "brightness=20",
    "brightness=-255",
    "brightness=0.5",
    "contrast=1.5",
    "contrast=0",
    "gamma=2.2",
    "gamma=0.45",
    "invert",
    "gray",
    "gray=mean",
    "gaussian=0.3",
    "gaussian=1.4",
    "gaussian=1.4:2",
    "gaussian=2.7:border=zero",
    "gaussian=5:border=reflect",
    "gaussian=5:border=mirror",
    "gaussian=5:border=wrap",
    "gaussian=9",
    "gaussian=11:border=wrap",
    "gaussian=20:border=zero",
    "gaussian=20:border=mirror",
    "gaussian=60",
    "gaussian=250:300:wrap",
    "gaussian=250:100:reflect",
    "gaussian=250:750:reflect",
    "box=1",
    "box=7:zero",
    "box=20:reflect",
    "box=40:mirror",
    "box=300:wrap",
    "sharpen",
    "sharpen=2.5:4:border=zero",
    "sharpen=16:0.5",
    "sharpen=0.7:25:border=wrap",
    "sobel",
    "sobel=l2:border=zero",
    "sobel=x:2:reflect",
    "sobel=y:0.3:mirror",
    "sobel=l2:0.37:wrap",
    "prewitt",
    "prewitt=l2",
    "scharr",
    "scharr=l2:16",
    "laplacian",
    "laplacian=8:0.4:border=wrap",
    "laplacian=4:8:signed:zero",
    "emboss",
    "emboss=3:30:mirror",
    "threshold=20:240",
    "threshold=0:-1",
    "threshold=100.5",
    "binarize",
    "binarize=256",
    "dog",
    "dog=3:1:8:border=mirror",
    "dog=4:8:4:signed:wrap",
    "log",
    "log=0.5:2:signed:zero",
    "log=6:40:border=reflect",
    "convolve=1",
    "convolve=-1:-1",
    "convolve=1 2 1/2 4 2/1 2 1",
    "convolve=0 -1 0/-1 5 -1/0 -1 0:bias=0.5",
    "convolve=1 0:border=zero",
    "convolve=0/0/1:border=wrap",
    "convolve=-1 0 1:bias=127.5",
    "convolve=@2x2,2:border=mirror",
    "convolve=@4x3,2:0.1:20:reflect",
    "convolve=@15x15,15:border=zero",
    "convolve=@16x15,15:border=reflect",
    "convolve=@18x9,1:border=mirror",
    "convolve=@19x20,1:0.001:100:wrap",
    "convolve=@12x33,2:border=reflect",
    "convolve=@21x17,2:border=zero",
    "convolve=@17x18,17:0.0002:127.5",
    "convolve=@22x22,22:border=wrap",
    "convolve=@40x39,9:0.0001:127.5:mirror",
    "convolve=@6x80,6:border=zero",
    "convolve=@27x29,27:border=zero",
    "convolve=@70x61,61:0.00003:127.5:wrap",
    "convolve=@3x3,3:65536:-255",
    "sepconvolve=1 4 6 4 1",
    "sepconvolve=@9x1,1:@66x1,1:border=mirror",
    "sepconvolve=@511x1,1:@2x1,1:border=wrap",
    "sepconvolve=@3x1,1:@300x1,1:0.01:127.5:zero",
    "wavelet=1",
    "wavelet=0.1:0.5:1.4:2.8:4.99:border=zero",
    "wavelet=5:show=signed:norm=article:border=mirror",
    "wavelet=7:12..14/0.5:border=reflect",
    "wavelet=1:4:16:show=scale:border=wrap",
    "wavelet=2:6:30:out=file:border=mirror",
    "wavelet=40:gain=0.5:support=5:border=wrap",
    "wavelet=75:show=signed:out=file:border=zero",
    "gaussian=1,gray=mean,wavelet=3:9:21,invert",
    "wavelet=32:64:100.5:256:500:support=5:out=file",
    "wavelet=32:64:100.5:256:500:support=5:out=file:border=zero:norm=article",
    "wavelet=32:64:100.5:256:500:support=5:show=scale:border=reflect",
    "wavelet=32:64:100.5:256:500:support=5:out=file:show=signed:border=mirror",
    "wavelet=500:256:100.5:64:32:support=5:out=file:show=abs:border=wrap",
    "wavelet=170:90:40:20:10:5:2:1.3:show=scale:gain=3:out=file",
    "match=t4x4.1:min=0.3",
    "match=t3x2m4:min=0.5:max=7",
    "match=t32x32.2:min=0.1:draw=map",
    "match=t5x3m4:t9x9.1:min=0.25:draw=map",
    "match=t17x9.1:t3x3.2:t64x40.3:min=0.05:max=3",
    "match=t1x2.5:min=0.01:max=1000",
    "match=t33x1.5:min=0.15:draw=none",
    "gray,match=t70x5.1:min=0.05",
    "match=t24x80m2:min=0.02:max=4:draw=map",
    "match=t1x40.2:min=0.15:draw=map",
    "match=t40x1.2:t1x3.1:min=0.15:max=9",
    "match=t2x1s3:t1x2s4:min=0.5:max=1000",
    "match=t9x9s1:t2x7s2:min=0.5:max=1000:draw=map",
    "match=t66x3s5:min=0.5:max=500:draw=none",
    "match=t%wx%h.3:min=0.01",
    "match=t%wx%hm2:t%wx%hs1:min=0.01:draw=map",
    "match=t%wx1.2:t1x%h.4:t%wx2m1:min=0.05",
    "gaussian=1,match=t6x6.7:min=0.4,match=t8x2.1:min=0.4,invert",
    "gray,gaussian=1.4,sobel,threshold=20:240",
    "gaussian=1,convolve=@7x6,2:border=wrap,convolve=@19x18,2,sobel",
    "invert,convolve=@33x34,1:border=zero,brightness=9",
    "brightness=10,gray=mean,sobel=l2:border=zero,threshold=30:200",
    "gamma=2,box=3:wrap,contrast=2,sharpen=1:2:border=reflect,invert",
    "gaussian=1:border=wrap,gaussian=2:border=wrap,sobel=border=wrap",
    "invert,gaussian=30,invert",
    "gaussian=25,gaussian=1,emboss,gaussian=25:border=zero",
};

enum { FIXED = sizeof fixed_chains / sizeof *fixed_chains };

// ---- kernels ----

// A kernel of random numbers: the sum of `rank` products of a column and a row, whole numbers or
// not, positive or not.
static void random_kernel(uint64_t *state, int width, int height, int rank, FILE *to)
{
    static double row[KERNEL_SIDE], kernel[KERNEL_SIDE * KERNEL_SIDE];
    double step = random_below(state, 2) ? 1 : 0.37;
    int low = random_below(state, 2) ? 0 : -9;
    memset(kernel, 0, sizeof kernel);
    for (int r = 0; r < rank; r++) {
        for (int i = 0; i < width; i++)
            row[i] = step * (low + random_below(state, 20));
        for (int j = 0; j < height; j++) {
            int factor = height > 1 ? low + random_below(state, 20) : 1;
            for (int i = 0; i < width; i++)
                kernel[j * width + i] += factor * row[i];
        }
    }
    kernel[0] += kernel[0] == 0; // not nothing but zeros
    for (int k = 0; k < width * height; k++)
        fprintf(to, "%s%.10g", !k ? "" : k % width ? " " : "/", kernel[k]);
}

static int at_least(int least, int value)
{
    return value > least ? value : least;
}

// Append the chain with random kernels in place of "@WIDTHxHEIGHT,RANK", and how large the picture
// is in place of "%w" and "%h": 2 of one that is smaller, as a template of one sample is none.
static void expand(uint64_t *state, const char *chain, int picture_width, int picture_height,
                   FILE *to)
{
    int width, height, rank, length;
    for (; *chain; chain++) {
        if (sscanf(chain, "@%dx%d,%d%n", &width, &height, &rank, &length) == 3) {
            random_kernel(state, width, height, rank, to);
            chain += length - 1;
        } else if (*chain == '%') {
            fprintf(to, "%d", at_least(2, *++chain == 'w' ? picture_width : picture_height));
        } else {
            fputc(*chain, to);
        }
    }
}

static void random_scales(uint64_t *state, FILE *to)
{
    for (int count = 1 + random_below(state, 4); count > 0; count--)
        fprintf(to, "%.3g%s", 0.1 + random_below(state, 500) / 10.0 / count, count > 1 ? ":" : "");
}

static void random_text(uint64_t *state, const struct stage_option *option, FILE *to)
{
    int width = 1 + random_below(state, 20), height = 1 + random_below(state, 20);
    if (option->writes) { // which nothing does here
        fprintf(to, "%s=file", option->name);
        return;
    }
    if (option->pictures) {
        fprintf(to, "t%dx%d%c%d", 1 + width, 1 + height, random_below(state, 3) ? '.' : 'm',
                random_below(state, 9));
        return;
    }
    if (option->accept) {
        random_scales(state, to);
        return;
    }
    if (option->resolve == kernel_resolve_line)
        height = 1;
    fprintf(to, "%s=", option->name);
    random_kernel(state, width, height, 1 + random_below(state, 3), to);
}

// Append a random value of an option, in text.
static void random_value(uint64_t *state, const struct stage_option *option, FILE *to)
{
    if (option->type == OPTION_TEXT) {
        random_text(state, option, to);
        return;
    }
    if (option->type == OPTION_CHOICE) {
        int pick = random_below(state, (int)option->max + 1);
        const char *choice = option->choices;
        while (pick--)
            choice = strchr(choice, '|') + 1;
        fprintf(to, "%s=%.*s", option->name, (int)strcspn(choice, "|"), choice);
        return;
    }
    // Small values mostly: neighbourhoods of thousands on a 33 x 33 picture teach nothing more.
    double most = random_below(state, 4) ? 12 : 120;
    double high = option->max < most ? option->max : most;
    double low = option->min > -most ? option->min : -most;
    double value = low + (high - low) * (double)(random_next(state) >> 11) / 9007199254740992.0;
    if (option->type == OPTION_INT || !random_below(state, 3))
        value = (double)(long)value;
    if (value < option->min)
        value = option->min;
    fprintf(to, "%s=%.6g", option->name, value);
}

static bool is_begin(FILE *to)
{
    return ftell(to) == 0;
}

static void random_link(uint64_t *state, const struct stage *stage, FILE *to)
{
    int given = 0;
    fputs(stage->name, to);
    for (const struct stage_option *option = stage->option; option->name; option++) {
        bool required = isnan(option->initial) && !option->derived;
        if (required || random_below(state, 2)) {
            fputc(given++ ? ':' : '=', to);
            random_value(state, option, to);
        }
    }
}

// The same of a stage some of whose values do not go with others.
static void random_fitting_link(uint64_t *state, const struct stage *stage, FILE *to)
{
    struct chain chain;
    struct chain_error error;
    char text[256];
    enum status status;
    do {
        FILE *link = fmemopen(text, sizeof text, "w");
        random_link(state, stage, link);
        fclose(link);
        status = chain_parse(text, &noise_reader, &chain, &error);
        if (!status)
            chain_free(&chain);
    } while (status);
    fputs(text, to);
}

static void random_chain(uint64_t *state, FILE *to)
{
    int count = 0, links = 1 + random_below(state, 5);
    while (stages[count])
        count++;
    for (int k = 0; k < links; k++) {
        const struct stage *stage = stages[random_below(state, count)];
        fputs(is_begin(to) ? "" : ",", to);
        if (stage->fits)
            random_fitting_link(state, stage, to);
        else
            random_link(state, stage, to);
    }
}

// ---- pictures with guards around ----

enum { GUARD = 0xa5, MARGIN = 512 };

struct picture_memory {
    struct image image;
    uint8_t *memory;
    size_t size;
};

static void picture_init(struct picture_memory *picture, const struct format *format, int width,
                         int height, uint64_t *state, const struct backend *backend_)
{
    struct backend *backend = (struct backend *)backend_;
    *picture =
        (struct picture_memory){.image = {.format = format, .width = width, .height = height}};
    size_t offset[FORMAT_PLANES];
    picture->size = MARGIN;
    for (int p = 0; p < format->planes; p++) {
        size_t unit = format->depth > 8 ? 2 : 1;
        size_t row = format_row_bytes(format, p, width) + unit * (size_t)random_below(state, 40);
        offset[p] = picture->size + unit * (size_t)random_below(state, 33);
        picture->image.stride[p] = (ptrdiff_t)row;
        picture->size = offset[p] + row * (size_t)format_rows(format, p, height) + MARGIN;
    }
    picture->memory = backend->alloc(backend, picture->size);
    if (!picture->memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(picture->memory, GUARD, picture->size);
    bool upside_down = !random_below(state, 5);
    for (int p = 0; p < format->planes; p++) {
        picture->image.data[p] = picture->memory + offset[p];
        if (upside_down) {
            int last = format_rows(format, p, height) - 1;
            picture->image.data[p] += last * picture->image.stride[p];
            picture->image.stride[p] = -picture->image.stride[p];
        }
    }
}

static void picture_free(struct picture_memory *picture, struct backend *backend)
{
    backend->free(backend, picture->memory, picture->size);
}

static void write_sample(const struct image *image, int c, int x, int y, int value)
{
    const struct component *at = &image->format->component[c];
    uint8_t *to = image->data[at->plane] + y * image->stride[at->plane] + at->offset + x * at->step;
    unsigned unit = (unsigned)value << at->shift;
    if (at->bytes == 1)
        to[0] = (uint8_t)unit;
    else
        to[at->big_endian] = (uint8_t)unit, to[!at->big_endian] = (uint8_t)(unit >> 8);
}

// Contents that are hard on arithmetic, not likely ones.
static int fill_value(int pattern, int x, int y, int maximum, uint64_t *state)
{
    switch (pattern) {
    case 0:
        return 0;
    case 1:
        return maximum;
    case 2:
        return (x + y) % 2 * maximum;
    case 3:
        return x / 3 % 2 * maximum;
    case 4:
        return (int)((int64_t)x * 7 + y * 3) % (maximum + 1);
    case 5:
        return x == 4 && y == 2 ? maximum : 0;
    case 6:
        return random_below(state, 2) * maximum;
    default:
        return random_below(state, maximum + 1);
    }
}

static void picture_fill(const struct picture_memory *picture, uint64_t *state)
{
    const struct format *format = picture->image.format;
    int pattern = random_below(state, 12), maximum = (1 << format->depth) - 1;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        if (!format_has(format, c))
            continue;
        int width = subsampled(picture->image.width, format_shift_x(format, c));
        int height = subsampled(picture->image.height, format_shift_y(format, c));
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                write_sample(&picture->image, c, x, y, fill_value(pattern, x, y, maximum, state));
    }
}

// Set bits above the samples of a format that has room for them, and below: in one of three units,
// or in all. Those of other formats stay as they are.
static void picture_overflow(const struct picture_memory *picture, uint64_t state)
{
    const struct format *format = picture->image.format;
    int every = random_below(&state, 2) ? 3 : 1;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        if (!format_has(format, c) || 8 * format->component[c].bytes == format->depth)
            continue;
        struct component whole = format->component[c];
        struct format unit = *format;
        struct image image = picture->image;
        whole.shift = 0;
        unit.component[c] = whole;
        image.format = &unit;
        for (int y = 0; y < subsampled(image.height, format_shift_y(format, c)); y++)
            for (int x = 0; x < subsampled(image.width, format_shift_x(format, c)); x++)
                if (!random_below(&state, every))
                    write_sample(&image, c, x, y,
                                 random_below(&state, 2) ? UINT16_MAX
                                                         : random_below(&state, UINT16_MAX + 1));
    }
}

// ---- cases ----

enum { SLOTS = 3, OVERFLOWING = 1 }; // the slot whose samples are above their depth

struct test_case {
    int number;
    char chain[1 << 17];
    int width, height;
    bool fields;
    bool
        on_device; // the source is given as device memory, which may be any that the device reaches
    void *stream;
    struct format format, wanted;
    bool convert;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    struct format tap_wanted[MAX_PICTURES];
    struct picture_memory source[SLOTS];
    // Of each picture that the program makes.
    struct picture_memory target[SLOTS][MAX_PICTURES], expected[SLOTS][MAX_PICTURES];
    struct image tee[SLOTS][MAX_PICTURES];
    void **analysis[SLOTS], **expected_analysis[SLOTS]; // NULL: not wanted
};

static void describe(const struct test_case *test)
{
    printf("case %d: '%s' on %s%s %d bits, %d planes, chroma %d %d%s, %dx%d%s%s\n", test->number,
           test->chain,
           test->format.model == MODEL_GRAY  ? "gray"
           : test->format.model == MODEL_YUV ? "yuv"
                                             : "rgb",
           test->format.alpha ? " + alpha" : "", test->format.depth, test->format.planes,
           test->format.chroma_x, test->format.chroma_y, test->convert ? ", converted" : "",
           test->width, test->height, test->fields ? ", by fields" : "",
           test->on_device ? ", on the device" : "");
}

static int ugly_size(uint64_t *state, bool large)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 255, 257};
    static const int large_sizes[] = {480, 641, 1023, 1080, 1920, 2049};
    if (large)
        return large_sizes[random_below(state, 6)];
    return sizes[random_below(state, sizeof sizes / sizeof *sizes)];
}

static void fatal(const struct test_case *test, const char *what)
{
    describe(test);
    printf("    %s\n", what);
    exit(1);
}

// ---- analysis ----

static size_t analysis_bytes(const struct test_case *test, int analysis)
{
    const struct op *op = &test->program.op[test->program.analysis[analysis]];
    struct program_plane grid = test->program.plane[op->source[0]];
    return op_analysis_bytes(op, subsampled(test->width, grid.shift_x),
                             subsampled(test->height, grid.shift_y));
}

// Memory with a guard behind it; of some analysis none, where `some`.
static void **analyses_alloc(const struct test_case *test, struct backend *backend, bool some,
                             uint64_t *state)
{
    void **analysis = calloc((size_t)test->program.analyses + 1, sizeof *analysis);
    for (int k = 0; analysis && k < test->program.analyses; k++) {
        if (some && !random_below(state, 4))
            continue;
        analysis[k] = backend->alloc(backend, analysis_bytes(test, k) + MARGIN);
        if (!analysis[k])
            fatal(test, "no memory for analysis");
        memset(analysis[k], GUARD, analysis_bytes(test, k) + MARGIN);
    }
    return analysis;
}

static void analyses_free(const struct test_case *test, struct backend *backend, void **analysis)
{
    for (int k = 0; k < test->program.analyses; k++)
        if (analysis[k])
            backend->free(backend, analysis[k], analysis_bytes(test, k) + MARGIN);
    free(analysis);
}

// Which analysis of a slot is wrong; -1: none.
static int wrong_analysis(const struct test_case *test, int slot)
{
    for (int k = 0; k < test->program.analyses; k++) {
        const uint8_t *got = test->analysis[slot][k], *want = test->expected_analysis[slot][k];
        size_t bytes = analysis_bytes(test, k);
        if (got && (memcmp(got, want, bytes) || memcmp(got + bytes, want + bytes, MARGIN)))
            return k;
    }
    return -1;
}

// Statistics leave what they look at as it is: let their results be used in its place.
static void use_results(struct program *program)
{
    for (int k = 0; k < program->ops; k++)
        for (int c = 0; c < FORMAT_COMPONENTS && op_is_full_frame(&program->op[k]); c++)
            if (program->op[k].kind == OP_STATISTICS &&
                program->picture.plane[c] == program->op[k].source[0])
                program->picture.plane[c] = program->op[k].result;
}

// Half of the tees in a format that is not their own.
static void choose_tees(struct test_case *test, uint64_t *state)
{
    for (int k = 0; k < test->program.tees; k++) {
        test->tap_wanted[k] = test_format(random_below(state, FORMATS));
        if (random_below(state, 2))
            program_choose_tee(&test->program, k, &test->tap_wanted[k]);
    }
}

static bool has_fields(const struct test_case *test)
{
    bool has = image_has_fields(&test->source[0].image);
    for (int n = 0; n < program_pictures(&test->program); n++)
        has = has && image_has_fields(&test->target[0][n].image);
    return has;
}

static bool has_fillers(const struct program *program)
{
    bool has = false;
    for (int n = 0; n < program_pictures(program); n++)
        has |= program_format(program, n)->filler;
    return has;
}

static bool has_whole(const struct program *program)
{
    for (int k = 0; k < program->ops; k++)
        if (op_is_full_frame(&program->op[k]))
            return true;
    return false;
}

// Whether planes of the source go byte for byte from one device memory to another.
static bool has_references(const struct test_case *test)
{
    bool has = false;
    for (int n = 0; n < program_pictures(&test->program); n++)
        for (int p = 0; p < program_format(&test->program, n)->planes; p++)
            has |= test->plan->picture[n].plane[p].origin == PLANE_REFERENCE;
    return has;
}

static void case_prepare(struct test_case *test, int number, bool large, struct backend *backend)
{
    uint64_t state = (uint64_t)number * 1000003 + 17;
    *test = (struct test_case){.number = number};
    bool fixed = number < FIXED * FORMATS;
    test->format = test_format(fixed ? number / FIXED : random_below(&state, FORMATS));
    test->width = ugly_size(&state, large);
    test->height = ugly_size(&state, large);
    FILE *to = fmemopen(test->chain, sizeof test->chain, "w");
    if (fixed)
        expand(&state, fixed_chains[number % FIXED], test->width, test->height, to);
    else
        random_chain(&state, to);
    fclose(to);
    test->convert = !random_below(&state, 3);
    test->wanted = test_format(random_below(&state, FORMATS));

    struct chain chain;
    struct chain_error error;
    if (chain_parse(test->chain, &noise_reader, &chain, &error))
        fatal(test, error.message);
    if (program_init(&test->program, &test->format) || chain_lower(&chain, &test->program))
        fatal(test, "no program");
    if (number % 3 == 0)
        use_results(&test->program);
    choose_tees(test, &state);
    if (program_finish(&test->program, test->convert ? &test->wanted : NULL) ||
        plan_create(&test->program, backend->limits, &test->plan))
        fatal(test, "no plan");
    chain_free(&chain);
    if (backend->executor_create(backend, test->plan, test->width, test->height, SLOTS, number % 2,
                                 &test->executor))
        fatal(test, "no executor");
    for (int k = 0; k < SLOTS; k++) {
        picture_init(&test->source[k], &test->program.input, test->width, test->height, &state,
                     backend);
        picture_fill(&test->source[k], &state);
        for (int n = 0; n < program_pictures(&test->program); n++) {
            uint64_t shape = random_next(&state), again = shape;
            const struct format *format = program_format(&test->program, n);
            picture_init(&test->target[k][n], format, test->width, test->height, &shape, backend);
            picture_init(&test->expected[k][n], format, test->width, test->height, &again, backend);
        }
        test->analysis[k] = analyses_alloc(test, backend, true, &state);
        test->expected_analysis[k] = analyses_alloc(test, backend, false, &state);
    }
    test->fields = !has_whole(&test->program) && !random_below(&state, 4) && has_fields(test);
    // A filler that is taken over keeps its bytes, the scalar reference writes its own.
    test->on_device =
        backend->has_device_memory && !has_fillers(&test->program) && !random_below(&state, 4);
    if (test->on_device && backend->stream_create(backend, &test->stream))
        fatal(test, "no stream");
    // The scalar reference writes samples where a reference keeps bytes.
    if (!(test->on_device && has_references(test)))
        picture_overflow(&test->source[OVERFLOWING], random_next(&state));
}

// Leave out, in a copy, the planes that the backend does not write.
static struct image wanted_planes(const struct test_case *test, int n, const struct image *image)
{
    struct image wanted = *image;
    for (int p = 0; p < FORMAT_PLANES; p++)
        if (!plan_writes(test->plan, n, p, test->on_device))
            wanted.data[p] = NULL;
    return wanted;
}

static struct work describe_work(struct test_case *test, int slot,
                                 const struct picture_memory *target)
{
    for (int n = 1; n < program_pictures(&test->program); n++)
        test->tee[slot][n - 1] = wanted_planes(test, n, &target[n].image);
    return (struct work){.source = test->source[slot].image,
                         .target = wanted_planes(test, 0, &target[0].image),
                         .tee = test->tee[slot],
                         .fields = test->fields};
}

// One by one, or all at once.
static void case_submit(struct test_case *test)
{
    struct work work[SLOTS];
    bool together = test->number / 2 % 2;
    for (int k = 0; k < SLOTS; k++) {
        work[k] = describe_work(test, k, test->target[k]);
        work[k].source_on_device = test->on_device;
        work[k].source_stream = test->stream;
        work[k].analysis = test->analysis[k];
    }
    if (together && executor_submit_many_async(test->executor, 0, work, SLOTS))
        fatal(test, "submit failed");
    for (int k = 0; k < SLOTS && !together; k++)
        if (test->executor->submit_async(test->executor, k, &work[k]))
            fatal(test, "submit failed");
}

static void first_difference(const struct test_case *test, int slot, int n)
{
    const struct picture_memory *got = &test->target[slot][n], *want = &test->expected[slot][n];
    size_t at = 0;
    while (got->memory[at] == want->memory[at])
        at++;
    printf("    slot %d, picture %d: ", slot, n);
    for (int p = 0; p < got->image.format->planes; p++) {
        ptrdiff_t stride = got->image.stride[p];
        int rows = format_rows(got->image.format, p, test->height);
        const uint8_t *begin =
            stride < 0 ? got->image.data[p] + (rows - 1) * stride : got->image.data[p];
        size_t size = (size_t)labs(stride) * (size_t)rows;
        if (got->memory + at >= begin && got->memory + at < begin + size) {
            size_t offset = (size_t)(got->memory + at - begin);
            size_t row = offset / (size_t)labs(stride);
            printf("plane %d, row %zu, byte %zu of %zu: ", p,
                   stride < 0 ? (size_t)rows - 1 - row : row, offset % (size_t)labs(stride),
                   format_row_bytes(got->image.format, p, test->width));
        }
    }
    printf("got %d, scalar says %d\n", got->memory[at], want->memory[at]);
}

// Say what is wrong with a slot's results, if anything is.
static bool slot_is_right(const struct test_case *test, int slot)
{
    int analysis = wrong_analysis(test, slot);
    for (int n = 0; n < program_pictures(&test->program); n++) {
        const struct picture_memory *got = &test->target[slot][n];
        if (!memcmp(got->memory, test->expected[slot][n].memory, got->size))
            continue;
        describe(test);
        first_difference(test, slot, n);
        return false;
    }
    if (analysis >= 0) {
        describe(test);
        printf("    slot %d: analysis %d, of %s, differs\n", slot, analysis,
               op_name(&test->program.op[test->program.analysis[analysis]]));
    }
    return analysis < 0;
}

static void slot_free(struct test_case *test, int slot, struct backend *backend)
{
    picture_free(&test->source[slot], backend);
    for (int n = 0; n < program_pictures(&test->program); n++) {
        picture_free(&test->target[slot][n], backend);
        picture_free(&test->expected[slot][n], backend);
    }
    analyses_free(test, backend, test->analysis[slot]);
    analyses_free(test, backend, test->expected_analysis[slot]);
}

static bool case_finish(struct test_case *test, struct backend *backend)
{
    bool equal = true;
    for (int k = 0; k < SLOTS; k++) {
        if (test->executor->wait(test->executor, k, NULL))
            fatal(test, "wait failed");
        struct work work = describe_work(test, k, test->expected[k]);
        work.analysis = test->expected_analysis[k];
        if (scalar_run(&test->program, &work))
            fatal(test, "scalar failed");
        equal = equal && slot_is_right(test, k);
        slot_free(test, k, backend);
    }
    if (!equal)
        printf("    replay: conformance --backend %s --case %d\n", backend->name, test->number);
    executor_destroy(&test->executor);
    if (test->stream)
        backend->stream_destroy(backend, &test->stream);
    plan_destroy(&test->plan);
    program_free(&test->program);
    return equal;
}

struct settings {
    const char *backend;
    int threads, first, count;
    int devices;
    bool large, ladder;
};

// ---- the ladder: the steps of a lesson on one filter ----

struct ladder_case {
    int number, width, height;
    struct program program;
    struct picture_memory source, target;
    struct picture_memory scalar, square; // both references of the target
};

// The ladder knows no pictures that lie upside down.
static void ladder_picture_init(struct picture_memory *picture, const struct ladder_case *test,
                                uint64_t shape, const struct backend *backend)
{
    picture_init(picture, &test->program.input, test->width, test->height, &shape, backend);
    struct image *image = &picture->image;
    if (image->stride[0] < 0) {
        image->data[0] += (test->height - 1) * image->stride[0];
        image->stride[0] = -image->stride[0];
    }
}

static bool lower_ladder(struct program *program, const char *text)
{
    static struct format gray;
    struct chain chain;
    struct chain_error error;
    gray = test_format(0);
    bool fine = !chain_parse(text, &noise_reader, &chain, &error) &&
                !program_init(program, &gray) && !chain_lower(&chain, program) &&
                !program_finish(program, NULL);
    chain_free(&chain);
    return fine;
}

static void ladder_prepare(struct ladder_case *test, int number, bool large,
                           const struct backend *backend)
{
    static const int sizes[] = {1, 2, 3, 31, 32, 33, 255, 257};
    uint64_t state = (uint64_t)number * 1000003 + 29, shape = random_next(&state);
    *test = (struct ladder_case){.number = number,
                                 .width = large ? ugly_size(&state, true) : sizes[number / 8],
                                 .height = large ? ugly_size(&state, true) : sizes[number % 8]};
    if (!lower_ladder(&test->program, number % 3 ? "gaussian=2.5:8:zero" : "gaussian=0.9:3:zero")) {
        fprintf(stderr, "no program for the ladder\n");
        exit(1);
    }
    ladder_picture_init(&test->source, test, random_next(&state), backend);
    ladder_picture_init(&test->target, test, shape, backend);
    ladder_picture_init(&test->scalar, test, shape, backend);
    ladder_picture_init(&test->square, test, shape, backend);
    picture_fill(&test->source, &state);
}

static void ladder_finish(struct ladder_case *test, struct backend *backend)
{
    picture_free(&test->source, backend);
    picture_free(&test->target, backend);
    picture_free(&test->scalar, backend);
    picture_free(&test->square, backend);
    program_free(&test->program);
}

static struct ladder_task ladder_task_of(const struct ladder_case *test,
                                         const struct picture_memory *target)
{
    const struct image *from = &test->source.image, *to = &target->image;
    struct ladder_task task = {.source = from->data[0],
                               .target = to->data[0],
                               .source_stride = from->stride[0],
                               .target_stride = to->stride[0],
                               .width = test->width,
                               .height = test->height};
    ladder_filter_init(&task.filter, &test->program.op[0].separable);
    return task;
}

// The sum of a step in two dimensions with the taps as they are: 2^26 times a sample.
static double exact_square(const struct ladder_task *task, int x, int y)
{
    int64_t sum = 0;
    for (int b = -LADDER_RADIUS; b <= LADDER_RADIUS; b++)
        for (int a = -LADDER_RADIUS; a <= LADDER_RADIUS; a++)
            if (x + a >= 0 && x + a < task->width && y + b >= 0 && y + b < task->height)
                sum += (int64_t)task->filter.tap[LADDER_RADIUS + a] *
                       task->filter.tap[LADDER_RADIUS + b] *
                       task->source[(y + b) * task->source_stride + x + a];
    return ldexp((double)sum, -26);
}

static int sample_at(const struct picture_memory *picture, int x, int y)
{
    return picture->image.data[0][y * picture->image.stride[0] + x];
}

static bool ladder_fails(const struct ladder_case *test, const char *step, int x, int y,
                         const char *what)
{
    printf("ladder %d, %dx%d, %s: column %d, row %d %s\n", test->number, test->width, test->height,
           step, x, y, what);
    return false;
}

// The reference in two dimensions rounds the exact sums, but for what the rounding of its weights
// may add, and is within 1 of the scalar one.
static bool square_is_right(const struct ladder_case *test, const struct ladder_task *task)
{
    const double most = 0.5 + LADDER_TAPS * LADDER_TAPS * 255 / ldexp(2, LADDER_SQUARE_BITS);
    for (int y = 0; y < test->height; y++)
        for (int x = 0; x < test->width; x++) {
            int value = sample_at(&test->square, x, y);
            if (fabs(value - exact_square(task, x, y)) > most)
                return ladder_fails(test, "reference in 2-D", x, y, "is not the rounded sum");
            if (abs(value - sample_at(&test->scalar, x, y)) > 1)
                return ladder_fails(test, "reference in 2-D", x, y, "is far from scalar");
        }
    return true;
}

static bool step_is_right(const struct ladder_case *test, struct ladder *ladder,
                          enum ladder_step step)
{
    static const char *const names[LADDER_STEPS] = {"plain",  "2-D",       "naive",
                                                    "shared", "separable", "unrolled"};
    const struct picture_memory *wanted = ladder_is_square(step) ? &test->square : &test->scalar;
    memset(test->target.memory, GUARD, test->target.size);
    if (ladder->make(ladder, step))
        return ladder_fails(test, names[step], 0, 0, "could not be made");
    for (int y = 0; y < test->height; y++)
        for (int x = 0; x < test->width; x++)
            if (sample_at(&test->target, x, y) != sample_at(wanted, x, y))
                return ladder_fails(test, names[step], x, y, "differs from its reference");
    if (memcmp(test->target.memory, wanted->memory, wanted->size))
        return ladder_fails(test, names[step], test->width, test->height, "or beside was written");
    return true;
}

// The plain steps make the reference in two dimensions, and are right themselves.
static int climb_plain(const struct ladder_case *test, int threads, const struct log *log)
{
    struct ladder_task square = ladder_task_of(test, &test->square),
                       task = ladder_task_of(test, &test->target);
    struct ladder *ladder = NULL;
    int passed = 0;
    if (!ladder_cpu_create(&square, 1, log, &ladder) && !ladder->make(ladder, LADDER_SQUARE))
        passed += square_is_right(test, &square);
    ladder_destroy(&ladder);
    if (!ladder_cpu_create(&task, threads, log, &ladder))
        passed +=
            step_is_right(test, ladder, LADDER_PLAIN) && step_is_right(test, ladder, LADDER_SQUARE);
    ladder_destroy(&ladder);
    return passed;
}

static int climb_cuda(const struct ladder_case *test, struct backend *backend)
{
    struct ladder_task task = ladder_task_of(test, &test->target);
    struct ladder *ladder;
    int passed = 0;
    if (ladder_cuda_create(backend, &task, &ladder))
        return 0;
    for (enum ladder_step step = LADDER_NAIVE; step < LADDER_STEPS; step++)
        passed += step_is_right(test, ladder, step);
    ladder_destroy(&ladder);
    return passed;
}

// All sizes with all others, or a few large ones.
// ---- the steps of template matching ----

enum { MATCH_LADDER_WIDTH = 75, MATCH_LADDER_HEIGHT = 53 };

// Both score maps are of one picture and one template, of random sizes.
static bool match_step_is_right(int number, struct backend *backend, enum ladder_match_step step)
{
    static const char *const names[] = {"match naive", "match tiles"};
    static uint16_t samples[MATCH_LADDER_HEIGHT * MATCH_LADDER_WIDTH], map[sizeof samples / 2];
    static uint8_t bytes[sizeof samples / 2], made[sizeof samples / 2];
    uint64_t state = (uint64_t)number + 1;
    struct plane from = {32 + random_below(&state, MATCH_LADDER_WIDTH - 31),
                         32 + random_below(&state, MATCH_LADDER_HEIGHT - 31), samples};
    struct plane to = {from.width, from.height, map};
    int analysis = number % 3 ? 2 + random_below(&state, 31) : 32, count = from.width * from.height;
    for (int k = 0; k < count; k++)
        bytes[k] = (uint8_t)(samples[k] = (uint16_t)random_below(&state, number % 2 ? 256 : 3));
    struct op_template pattern = {.width = analysis, .height = analysis, .sample = bytes};
    int64_t squares = 0;
    for (int k = 0; k < analysis * analysis; k++) {
        int value = bytes[k] - MATCH_BIAS;
        pattern.sum += value;
        squares += value * value;
    }
    pattern.count = analysis * analysis;
    pattern.norm = sqrt(match_difference(pattern.count, squares, pattern.sum, pattern.sum));
    if (!(pattern.norm > 0))
        return true;
    struct op op = {.kind = OP_MATCH,
                    .match = {&pattern, 1, .least = 0.9f, .most = 1, .map = true, .white = 255}};
    struct op_matches *matches = malloc(match_analysis_bytes(&op.match));
    struct scalar_full_frame work = {&op, &from, &to, 8, matches, NULL};
    struct ladder_match_task task = {&pattern, bytes, made, from.width, from.height};
    struct ladder_match *ladder = NULL;
    bool right = matches && !match_scalar(&work) && !ladder_match_create(backend, &task, &ladder) &&
                 !ladder_match_make(ladder, step);
    for (int k = 0; k < count && right; k++)
        right = made[k] == map[k];
    ladder_match_destroy(&ladder);
    free(matches);
    if (!right)
        printf("FAILED ladder %d, %s, %dx%d\n", number, names[step], from.width, from.height);
    return right;
}

static void climb_match_ladder(struct backend *backend, int *passed, int *failed)
{
    for (int k = 0; k < 30; k++)
        for (int step = 0; step < LADDER_MATCH_STEPS; step++)
            ++*(match_step_is_right(k, backend, (enum ladder_match_step)step) ? passed : failed);
}

static void climb_ladder(const struct settings *settings, const struct log *log,
                         struct backend *backend, int *passed, int *failed)
{
    const int cases = settings->large ? 2 : 64, plain = 2, cuda = LADDER_STEPS - LADDER_NAIVE;
    for (int k = 0; k < cases; k++) {
        struct ladder_case test;
        ladder_prepare(&test, k, settings->large, backend);
        int right = 0, tried = plain;
        if (!scalar_run(&test.program,
                        &(struct work){.source = test.source.image, .target = test.scalar.image}))
            right = climb_plain(&test, settings->threads > 0 ? settings->threads : 1, log);
        if (backend->has_device_memory) {
            right += climb_cuda(&test, backend);
            tried += cuda;
        }
        *passed += right;
        *failed += tried - right;
        ladder_finish(&test, backend);
    }
}

// ---- the whole ----

static void print_message(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

static enum status create_backend(const struct settings *settings, int device,
                                  const struct log *log, struct backend **backend, char *reason,
                                  size_t size)
{
    return strcmp(settings->backend, "cuda")
               ? backend_cpu_create(settings->threads, log, backend)
               : backend_cuda_create(device, log, backend, reason, size);
}

// One, or several as one.
static enum status create_backends(const struct settings *settings, const struct log *log,
                                   struct backend **backend, char *reason, size_t size)
{
    struct backend *part[MAX_GPUS] = {NULL};
    int count = settings->devices < MAX_GPUS ? settings->devices : MAX_GPUS;
    if (count < 2)
        return create_backend(settings, 0, log, backend, reason, size);
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++)
        status = create_backend(settings, k, log, &part[k], reason, size);
    if (!status)
        status = multi_gpu_create(part, count, backend);
    for (int k = 0; k < count; k++)
        backend_destroy(&part[k]);
    return status;
}

static int run(const struct settings *settings)
{
    struct log log = {print_message, NULL};
    struct backend *backend = NULL;
    char reason[256] = "";
    enum status status = create_backends(settings, &log, &backend, reason, sizeof reason);
    if (status) {
        printf("conformance %s: skipped, %s\n0 passed, 0 failed\n", settings->backend, reason);
        return 0;
    }
    printf("conformance %s (%s) against scalar\n", backend->name, backend->description);
    int passed = 0, failed = 0;
    static struct test_case test[2];
    for (int k = 0; k <= settings->count; k++) {
        if (k < settings->count) {
            case_prepare(&test[k % 2], settings->first + k, settings->large, backend);
            case_submit(&test[k % 2]);
        }
        if (k > 0) {
            if (case_finish(&test[(k - 1) % 2], backend))
                passed++;
            else
                failed++;
        }
    }
    if (settings->ladder)
        climb_ladder(settings, &log, backend, &passed, &failed);
    if (settings->ladder && !strcmp(backend->name, "cuda"))
        climb_match_ladder(backend, &passed, &failed);
    backend_destroy(&backend);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},
        {"cases", required_argument, NULL, 'n'},
        {"case", required_argument, NULL, 'c'},
        {"first", required_argument, NULL, 'f'},
        {"large", no_argument, NULL, 'l'},
        {"ladder", no_argument, NULL, 'L'},
        {"devices", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    struct settings settings = {
        .backend = "cpu", .threads = 3, .count = FIXED * FORMATS + 1500, .ladder = true};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'b':
            settings.backend = optarg;
            break;
        case 't':
            settings.threads = atoi(optarg);
            break;
        case 'n':
            settings.count = atoi(optarg);
            break;
        case 'c':
            settings.first = atoi(optarg);
            settings.count = 1;
            settings.ladder = false;
            break;
        case 'f':
            settings.first = atoi(optarg);
            settings.ladder = false;
            break;
        case 'd':
            settings.devices = atoi(optarg);
            settings.ladder = false;
            break;
        case 'L':
            settings.count = 0;
            break;
        case 'l':
            settings.large = true;
            break;
        default:
            return 2;
        }
    }
    return run(&settings);
}
