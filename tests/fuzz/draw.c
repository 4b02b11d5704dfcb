#include "tests/fuzz/draw.h"

#include <string.h>

#include "stages/design/kernel.h"
#include "stages/stage.h"

enum { LINKS = 4, SIDE = 9 };

static void draw_kernel(struct fuzz_bytes *bytes, int width, int height, FILE *to)
{
    for (int k = 0; k < width * height; k++)
        fprintf(to, "%s%d", !k ? "" : k % width ? " " : "/", fuzz_below(bytes, 256) - 100 + !k);
}

static void draw_text(struct fuzz_bytes *bytes, const struct stage_option *option, FILE *to)
{
    int width = 1 + fuzz_below(bytes, SIDE), height = 1 + fuzz_below(bytes, SIDE);
    if (option->writes)
        fprintf(to, "%s=file", option->name);
    else if (option->patterns)
        fprintf(to, "t%dx%d%c%d", 1 + width, 1 + height, ".ms"[fuzz_below(bytes, 3)],
                fuzz_below(bytes, 9));
    else if (option->accept)
        fprintf(to, "%d.%d", fuzz_below(bytes, 12), 1 + fuzz_below(bytes, 9));
    else {
        fprintf(to, "%s=", option->name);
        draw_kernel(bytes, width, option->resolve == kernel_resolve_line ? 1 : height, to);
    }
}

// A number of the option's range that is not far from 0, among them the range's ends.
static double draw_number(struct fuzz_bytes *bytes, const struct stage_option *option)
{
    const double most = option->type == OPTION_INT ? 24 : 40;
    double high = option->max < most ? option->max : most;
    double low = option->min > -most ? option->min : -most;
    int step = fuzz_below(bytes, 65536);
    double value = low + (high - low) * step / 65535;
    if (option->type == OPTION_INT || step % 3 == 0)
        value = (double)(long)value;
    return value < option->min ? option->min : value;
}

static void draw_value(struct fuzz_bytes *bytes, const struct stage_option *option, FILE *to)
{
    const char *choice = option->choices;
    if (option->type == OPTION_TEXT) {
        draw_text(bytes, option, to);
    } else if (option->type == OPTION_CHOICE) {
        for (int pick = fuzz_below(bytes, stage_option_choices(option)); pick > 0; pick--)
            choice = strchr(choice, '|') + 1;
        fprintf(to, "%s=%.*s", option->name, (int)strcspn(choice, "|"), choice);
    } else {
        fprintf(to, "%s=%.6g", option->name, draw_number(bytes, option));
    }
}

static void draw_link(struct fuzz_bytes *bytes, const struct stage *stage, FILE *to)
{
    int given = 0, wanted = fuzz_byte(bytes);
    fputs(stage->name, to);
    for (int k = 0; stage->option[k].name; k++)
        if (stage->option[k].required || wanted >> k & 1) {
            fputc(given++ ? ':' : '=', to);
            draw_value(bytes, &stage->option[k], to);
        }
}

void draw_chain(struct fuzz_bytes *bytes, FILE *to)
{
    int count = 0, links = 1 + fuzz_below(bytes, LINKS);
    while (stages[count])
        count++;
    for (int k = 0; k < links; k++) {
        fputs(k ? "," : "", to);
        draw_link(bytes, stages[fuzz_below(bytes, count)], to);
    }
}
