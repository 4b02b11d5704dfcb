// The command line of `sluice farm`: what of it is its own, and what goes to the parts.
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/option.h"

extern const struct option_section section_filtering, section_input, section_output, section_farm;

static bool is_named(const struct option_row *row, const char *const *names)
{
    while (*names && strcmp(*names, row->name) != 0)
        names++;
    return *names;
}

static bool is_of(const struct option_section *section, const struct option_row *row)
{
    const struct option_row *each = section->rows;
    while (each->name && each != row)
        each++;
    return each->name;
}

// True if every part is made with the option.
static bool is_of_parts(const struct option_row *row)
{
    static const char *const others[] = {"start",     "duration",     "frames",
                                         "simulate",  "output",       "segment",
                                         "overwrite", "no-overwrite", NULL};
    static const char *const more[] = {"sandbox", "allow", "quiet", "verbose", NULL};
    bool is_usual =
        is_of(&section_filtering, row) || is_of(&section_input, row) || is_of(&section_output, row);
    return is_named(row, more) || (is_usual && !is_named(row, others));
}

// True if the option is the farm's own.
static bool is_of_farm(const struct settings *settings, const struct option_row *row)
{
    static const char *const own[] = {"overwrite", "no-overwrite", "help",
                                      "version",   "samples",      NULL};
    bool status = settings->topic && !strcmp(settings->topic, "status");
    return is_of(&section_farm, row) || is_named(row, own) ||
           (status && !strcmp(row->name, "json"));
}

// One argument may be many options, "-qqq": the list grows with its words.
static bool append(struct settings *settings, char *word)
{
    size_t count = (size_t)settings->farm.count;
    char **list = realloc(settings->farm.typed, (count + 2) * sizeof *list);
    if (!list)
        return false;
    settings->farm.typed = list;
    list[count] = word;
    list[count + 1] = NULL;
    settings->farm.count++;
    return true;
}

static int note(struct settings *settings, const char *before, const char *name,
                const char *between, const char *text)
{
    size_t size = strlen(before) + strlen(name) + strlen(between) + strlen(text) + 1;
    char *word = malloc(size);
    if (!word || !append(settings, word)) {
        free(word);
        return fprintf(stderr, "sluice: out of memory\n"), EXIT_OTHER;
    }
    snprintf(word, size, "%s%s%s%s", before, name, between, text);
    return -1;
}

int farm_note_name(struct settings *settings, const char *name)
{
    bool is_command = !settings->farm.count && command_find(name);
    return note(settings, is_command ? "./" : "", name, "", "");
}

int farm_note_option(struct settings *settings, const struct option_row *row, const char *text)
{
    const char *dashes = option_has_one_dash(row) ? "-" : "--";
    if (is_of_farm(settings, row))
        return -1;
    if (!is_of_parts(row)) {
        fprintf(stderr, "sluice: %s%s is of a run by itself; a farm's parts do not take it\n",
                dashes, row->name);
        return EXIT_USAGE;
    }
    if (!text || row->implied)
        return note(settings, dashes, row->name, text ? "=" : "", text ? text : "");
    int code = note(settings, dashes, row->name, "", "");
    return code < 0 ? note(settings, "", text, "", "") : code;
}
