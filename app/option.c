#include "app/option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

extern const struct option_section section_filtering, section_input, section_live, section_output,
    section_page, section_parts, section_farm, section_running, section_benchmark;

const struct option_section *const option_sections[] = {
    &section_filtering, &section_input, &section_live,    &section_output,    &section_page,
    &section_parts,     &section_farm,  &section_running, &section_benchmark, NULL,
};

const struct option_row *option_at(int index)
{
    static const struct option_row *all[MAX_OPTIONS]; // by the first call: there are no threads yet
    static bool filled;
    int count = 0;
    assert(index >= 0);
    for (int s = 0; !filled && option_sections[s]; s++)
        for (const struct option_row *row = option_sections[s]->rows; row->name; row++) {
            assert(count < MAX_OPTIONS);
            all[count++] = row;
        }
    filled = true;
    return index < MAX_OPTIONS ? all[index] : NULL;
}

const struct option_row *option_find(const char *name)
{
    const struct option_row *row;
    const char *bare = name + strspn(name, "-");
    for (int k = 0; (row = option_at(k)); k++)
        if (!strcmp(row->name, bare) || (row->letter && bare[0] == row->letter && !bare[1]))
            return row;
    return NULL;
}

// ---- commands ----

static unsigned commands_of(const struct option_row *row)
{
    for (int s = 0; !row->commands && option_sections[s]; s++)
        for (const struct option_row *each = option_sections[s]->rows; each->name; each++)
            if (each == row)
                return option_sections[s]->commands;
    return row->commands;
}

bool option_is_for(const struct option_row *row, enum command command)
{
    return command == COMMAND_FARM || commands_of(row) & 1U << command;
}

static const char *name_of(int command)
{
    return commands[command].name ? commands[command].name : "a run";
}

// "a run, bench and serve"
static void name_commands(unsigned which, char *to, size_t size)
{
    size_t length = 0;
    for (int k = 0; which; k++, which &= which - 1) {
        bool last = !(which & (which - 1));
        length += (size_t)snprintf(to + length, size - length, "%s%s",
                                   !k     ? ""
                                   : last ? " and "
                                          : ", ",
                                   name_of(__builtin_ctz(which)));
        assert(length < size);
    }
}

int option_refuse(const struct option_row *row, enum command command)
{
    char names[160];
    unsigned others = commands_of(row);
    assert(others && !(others & 1U << command));
    name_commands(others, names, sizeof names);
    fprintf(stderr, "sluice: %s does not take %s%s; %s %s", name_of((int)command),
            option_has_one_dash(row) ? "-" : "--", row->name, names,
            others & (others - 1) ? "do" : "does");
    fprintf(stderr, row->instead ? ", and %s\n" : "\n", row->instead);
    return EXIT_USAGE;
}

bool option_has_one_dash(const struct option_row *row)
{
    return strchr(row->name, ':');
}

void option_notes(const struct option_row *row, char *to, size_t size)
{
    const char *scope =
        row->scope == SCOPE_OUTPUT ? "Describes the output named last before it, or the first one."
        : row->scope == SCOPE_SIDE ? "Before INPUT it describes the input, behind INPUT the output."
                                   : "";
    char initial[128] = "", range[128] = "", names[160], whose[176] = "";
    if (commands_of(row) != FOR_ALL) {
        name_commands(commands_of(row), names, sizeof names);
        snprintf(whose, sizeof whose, "For %s.", names);
    }
    if (row->initial)
        snprintf(initial, sizeof initial, "Default: %s.", row->initial);
    if (row->type == VALUE_INT) {
        option_wanted(row, range, sizeof range);
        range[0] = 'A'; // "a whole number" begins a sentence
        strcat(range, ".");
    }
    const char *const notes[] = {
        whose,
        initial,
        range,
        scope,
        row->repeats ? "May be repeated." : "",
        row->indirect ? "@FILE and env:NAME stand for the text in a file or a variable." : ""};
    int length = 0;
    *to = 0;
    for (size_t k = 0; k < sizeof notes / sizeof *notes; k++)
        if (*notes[k] && length < (int)size)
            length +=
                snprintf(to + length, size - (size_t)length, "%s%s", length ? " " : "", notes[k]);
}
