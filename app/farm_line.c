// The command line of `sluice farm`: what of it is its own, and what goes to the parts.
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/option.h"

extern const struct option_section section_filtering, section_input, section_output;

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

// Options of the farm itself, and the verbs on which they have an effect.
static const struct {
    const char *name, *verbs; // NULL: all
} own_options[] = {
    {"parts", "submit print"},
    {"at-once", "submit print"},
    {"program", "submit print"},
    {"samples", "submit print"},
    {"overwrite", "submit"},
    {"no-overwrite", "submit"},
    {"dry-run", "submit resume"},
    {"as", "print"},
    {"image", "print"},
    {"claim", "print"},
    {"json", "status"},
    {"help", NULL},
    {"version", NULL},
};

static bool is_among(const char *verb, const char *verbs)
{
    size_t length = strlen(verb);
    for (const char *at = verbs; (at = strstr(at, verb)); at += length)
        if ((at == verbs || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

// The verbs that take the option; NULL: all. *own: it is the farm's, not its parts'.
static const char *verbs_of(const struct option_row *row, bool *own)
{
    for (size_t k = 0; k < sizeof own_options / sizeof *own_options; k++)
        if (!strcmp(own_options[k].name, row->name)) {
            *own = true;
            return own_options[k].verbs;
        }
    *own = false;
    bool any = !strcmp(row->name, "quiet") || !strcmp(row->name, "verbose");
    return any ? NULL : "submit print";
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

static int refuse(const struct settings *settings, const struct option_row *row, const char *verbs)
{
    const char *dashes = option_has_one_dash(row) ? "-" : "--";
    char verb[4300];
    int first = (int)strcspn(verbs, " ");
    sluice_public_name(settings->topic, verb, sizeof verb);
    const char *second = verbs + first + (verbs[first] == ' ');
    fprintf(stderr, "sluice: farm %s does not take %s%s; farm %.*s%s%s %s\n", settings->topic,
            dashes, row->name, first, verbs, *second ? " and " : "", second,
            *second ? "do" : "does");
    return EXIT_USAGE;
}

int farm_check_options(const struct settings *settings)
{
    bool own;
    for (int k = 0; k < settings->verb_options; k++) {
        const char *verbs = verbs_of(settings->verb_option[k], &own);
        if (!is_among(settings->topic, verbs))
            return refuse(settings, settings->verb_option[k], verbs);
    }
    return -1;
}

int farm_note_option(struct settings *settings, const struct option_row *row, const char *text)
{
    const char *dashes = option_has_one_dash(row) ? "-" : "--";
    bool own;
    const char *verbs = verbs_of(row, &own);
    if (!own && !is_of_parts(row)) {
        fprintf(stderr, "sluice: %s%s is of a run by itself; a farm's parts do not take it\n",
                dashes, row->name);
        return EXIT_USAGE;
    }
    if (verbs && settings->verb_options < VERB_OPTIONS)
        settings->verb_option[settings->verb_options++] = row;
    if (own)
        return -1;
    if (!text || row->implied)
        return note(settings, dashes, row->name, text ? "=" : "", text ? text : "");
    int code = note(settings, dashes, row->name, "", "");
    return code < 0 ? note(settings, "", text, "", "") : code;
}
