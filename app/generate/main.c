// generate NAME DATE: print a document or a completion. The Makefile calls it.
#include <assert.h>
#include <string.h>

#include "app/generate/generate.h"
#include "sluice/sluice.h"

void each_option(void (*each)(FILE *to, const struct option_row *row), FILE *to)
{
    const struct option_row *row;
    for (int k = 0; (row = option_at(k)); k++)
        if (row->help)
            each(to, row);
}

const char *dashes(const struct option_row *row)
{
    return option_has_one_dash(row) ? "-" : "--";
}

void write_quoted_fish(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++) {
        if (strchr("'\\", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
    fputc('\'', to);
}

void option_candidates(const struct option_row *row, char *to, size_t size)
{
    int length = 0;
    *to = 0;
    for (const struct choice *choice = row->choices; choice->name; choice++)
        length +=
            snprintf(to + length, size - (size_t)length, "%s%s", length ? " " : "", choice->name);
    if (!length && row->suggested)
        length = snprintf(to, size, "%s", row->suggested);
    assert(length < (int)size);
}

void write_stage_names(FILE *to)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    for (int k = 0; !sluice_stage(k, &stage); k++)
        fprintf(to, "%s%s", k ? " " : "", stage.name);
}

void write_topics(FILE *to)
{
    const struct option_row *option;
    fputs("all", to);
    for (int s = 0; option_sections[s]; s++)
        fprintf(to, " %s", option_sections[s]->name);
    for (const struct command_row *row = commands; row->help; row++)
        if (row->name)
            fprintf(to, " %s", row->name);
    for (int k = 0; (option = option_at(k)); k++)
        if (option->help)
            fprintf(to, " %s%s", dashes(option), option->name);
    fputc(' ', to);
    write_stage_names(to);
}

int main(int argc, char **argv)
{
    const char *name = argc == 3 ? argv[1] : "";
    if (!strcmp(name, "sluice.1"))
        write_manual(stdout, argv[2]);
    else if (!strcmp(name, "sluice-stages.7"))
        write_stages_manual(stdout, argv[2]);
    else if (!strcmp(name, "stages.md"))
        write_stages_document(stdout);
    else if (!strcmp(name, "sluice.bash"))
        write_bash(stdout);
    else if (!strcmp(name, "_sluice"))
        write_zsh(stdout);
    else if (!strcmp(name, "sluice.fish"))
        write_fish(stdout);
    else {
        fprintf(stderr, "generate sluice.1|sluice-stages.7|stages.md|sluice.bash|_sluice|"
                        "sluice.fish DATE\n");
        return 2;
    }
    return fflush(stdout) || ferror(stdout);
}
