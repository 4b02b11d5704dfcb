// docs/stages.md.
#include <string.h>

#include "app/app.h"
#include "app/generate/generate.h"

// Text of a table's cell.
static void write_cell(FILE *to, const char *text)
{
    fputc(' ', to);
    for (; *text; text++) {
        if (strchr("|*_\\`<>[]", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
    fputs(" |", to);
}

// Lines of up to 100 columns.
static void write_wrapped(FILE *to, const char *text)
{
    enum { WIDTH = 100 };
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        bool breaks = column && column + 1 + length > WIDTH;
        fprintf(to, "%s%.*s", breaks ? "\n" : column ? " " : "", length, text);
        column = breaks ? length : column + !!column + length;
        text += length;
        if (*text == '\n') {
            fputs("\n\n", to);
            column = 0;
        }
        text += *text != 0;
    }
    fputc('\n', to);
}

static void write_options(FILE *to, int index)
{
    struct sluice_option_info option = {.size = sizeof option};
    fputs("\n| option | values | default | |\n|---|---|---|---|\n", to);
    for (int k = 0; !sluice_stage_option(index, k, &option); k++) {
        char values[256], standard[128];
        stage_values(&option, values, sizeof values);
        stage_default(&option, standard, sizeof standard);
        fprintf(to, "| `%s%s` |", option.name, option.many ? "..." : "");
        write_cell(to, values);
        write_cell(to, *standard ? standard : "required");
        write_cell(to, option.help);
        fputc('\n', to);
    }
}

static void write_stage(FILE *to, int index, const struct sluice_stage_info *stage)
{
    char signature[256];
    stage_signature(index, signature, sizeof signature);
    fprintf(to, "\n## %s\n\n`%s`: %s.\n\n```text\n", stage->name, signature, stage->summary);
    write_wrapped(to, stage->formula);
    fputs("```\n", to);
    if (stage->options)
        write_options(to, index);
    if (stage->alias)
        fprintf(to, "\nThe former name `%s` is read alike.\n", stage->alias);
    if (stage->source) {
        fputs("\nSource: ", to);
        write_wrapped(to, stage->source);
    }
}

void write_stages_document(FILE *to)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    fputs("<!-- Made from the stages' tables: `make docs/stages.md` writes it anew. -->\n\n"
          "# Stages\n\n",
          to);
    write_wrapped(to, stages_about);
    fputs("\n    sluice in.mp4 out.mp4 -f 'gray,gaussian=1.4:border=mirror,sobel'\n"
          "    sluice help gaussian\n\n"
          "[The arithmetic](arithmetic.md) says more on rounding and on the larger stages.\n\n"
          "| stage | |\n|---|---|\n",
          to);
    for (int k = 0; !sluice_stage(k, &stage); k++) {
        fprintf(to, "| [%s](#%s) |", stage.name, stage.name);
        write_cell(to, stage.summary);
        fputc('\n', to);
    }
    for (int k = 0; !sluice_stage(k, &stage); k++)
        write_stage(to, k, &stage);
}
