#include "tests/conformance/chains.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/minmax.h"
#include "stages/chain.h"
#include "stages/design/kernel.h"
#include "tests/conformance/random.h"
#include "tests/patterns.h"

const char *const fixed_chains[] = {
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
    "brightness=30,gray=mean,sobel=l1:border=zero,threshold=60:200",
    "gamma=2.2,invert,gray",
    "gaussian=0.3",
    "gaussian=1.4",
    "gaussian=1.4:2",
    "gaussian=2.7:border=zero",
    "gaussian=5:border=reflect",
    "gaussian=5:border=mirror",
    "gaussian=5:border=wrap",
    "gaussian=9",
    "gaussian=11:border=wrap",
    "gaussian=13",
    "gaussian=14:40:mirror",
    "gaussian=40:30", // outer taps of two bytes
    "gaussian=60:45:reflect",
    "gaussian=20:border=zero",
    "gaussian=20:border=mirror",
    "gaussian=60",
    "gaussian=250:300:wrap",
    "gaussian=250:100:reflect",
    "gaussian=250:750:reflect",
    "box=1",
    "box=2:wrap",
    "box=5:mirror",
    "box=7:zero",
    "box=10",
    "box=20:reflect",
    "box=40:mirror",
    "box=150:reflect",
    "box=300:wrap",
    "box=700",
    "sharpen",
    "sharpen=2.5:4:border=zero",
    "sharpen=1.5:40:30",
    "sharpen=16:0.5",
    "sharpen=0.7:25:border=wrap",
    "sharpen=1:9:border=mirror",
    "brightness=9,sharpen=1.5:12:border=zero,invert",
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
    "dog=2:8:2:signed:reflect",
    "log=11:100:signed:mirror",
    "dog=3:20:6:border=zero",
    "log=13:30:border=wrap",
    "log=40:2000:signed",
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
    "convolve=@17x17,17:border=wrap",
    "convolve=@5x4,4:0.0123:20:zero",
    "convolve=@9x5,5:0.001:128:mirror",
    "convolve=1 -2 1/3 4 -5/6 -7 8:0.3:20:reflect",
    "sepconvolve=1 4 6 4 1",
    "sepconvolve=@40x1,1:@33x1,1:border=zero",
    "sepconvolve=@150x1,1:@3x1,1:border=wrap",
    "sepconvolve=@4x1,1:@202x1,1:0.001:127.5:mirror",
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
    "match=t32x32.4:min=0.02",
    "match=t64x64.1:t63x64.2:min=0.01:max=1000",
    "match=t16x16.6:t2x64.3:min=0.1:max=200:draw=none",
    "match=t20x3.1:min=0.01:max=1000",
    "match=t49x7.2:t34x33.5:t18x31.1:min=0.01:max=1000:draw=none",
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
    NULL,
};

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

void chain_expand(uint64_t *state, const char *chain, int picture_width, int picture_height,
                  FILE *to)
{
    int width, height, rank, length;
    for (; *chain; chain++) {
        if (sscanf(chain, "@%dx%d,%d%n", &width, &height, &rank, &length) == 3) {
            random_kernel(state, width, height, rank, to);
            chain += length - 1;
        } else if (*chain == '%') {
            fprintf(to, "%d", max_int(2, *++chain == 'w' ? picture_width : picture_height));
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
    if (option->patterns) {
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
        int pick = random_below(state, stage_option_choices(option));
        const char *choice = option->choices;
        while (pick--)
            choice = strchr(choice, '|') + 1;
        fprintf(to, "%s=%.*s", option->name, (int)strcspn(choice, "|"), choice);
        return;
    }
    // Mostly small values: neighbourhoods of thousands on a 33 x 33 picture teach nothing more.
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
        if (option->required || random_below(state, 2)) {
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

void chain_draw(uint64_t *state, FILE *to)
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
