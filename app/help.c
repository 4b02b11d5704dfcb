// `sluice --help` and `sluice help TOPIC`, from the tables.
#include <assert.h>
#include <string.h>

#include "app/app.h"
#include "app/hints.h"
#include "app/option.h"

enum { WIDTH = 80, NAMES = 28 };

// Print words from this column on, wrapped; lines begin behind `indent` spaces.
void print_wrapped(int column, int indent, const char *text)
{
    assert(indent < WIDTH / 2);
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " \n");
        if (!first && column + 1 + (int)length > WIDTH) {
            printf("\n");
            column = 0;
            first = true;
        }
        int space = column <= indent ? indent - column : !first;
        printf("%*s%.*s", space, "", (int)length, text);
        column += space + (int)length;
        text += length + (text[length] == ' ');
        if (*text == '\n') {
            text++;
            printf("\n\n");
            column = 0;
        }
    }
    printf("\n");
}

void print_usage(FILE *to)
{
    for (const struct command_row *row = commands; row->help; row++) {
        char line[80];
        snprintf(line, sizeof line, "%s%s%s", row->name ? row->name : "", row->name ? " " : "",
                 row->arguments);
        fprintf(to, "%s sluice %-31s  %s\n", row == commands ? "usage:" : "      ", line,
                row->help);
    }
}

static void print_rows(const char *title, const struct manual_row *row, int column)
{
    printf("\n%s\n", title);
    for (; row->name; row++) {
        int length = printf("  %s", row->name);
        if (length >= column)
            length = printf("\n") - 1;
        print_wrapped(length, column, row->help);
    }
}

// ---- options ----

// `none`: what stands in place of a letter.
static int print_names(const struct option_row *row, const char *none)
{
    char letter[8];
    snprintf(letter, sizeof letter, "-%c, ", row->letter);
    return printf("%s%s%s%s%s%s", row->letter ? letter : none,
                  option_has_one_dash(row) ? "-" : "--", row->name,
                  !row->argument ? ""
                  : row->implied ? "[="
                                 : " ",
                  row->argument ? row->argument : "", row->implied ? "]" : "");
}

static void print_option_line(const struct option_row *row)
{
    char text[512];
    snprintf(text, sizeof text, row->initial ? "%s (default: %s)" : "%s", row->help, row->initial);
    printf("  ");
    int length = 2 + print_names(row, "    ");
    if (length >= NAMES)
        length = printf("\n") - 1;
    print_wrapped(length, NAMES, text);
}

static void print_option(const struct option_row *row)
{
    char notes[512];
    print_names(row, "");
    printf("\n");
    print_wrapped(0, 8, row->help);
    for (const struct choice *choice = row->choices; choice->name; choice++)
        print_wrapped(printf("          %-8s ", choice->name), 20, choice->help);
    if (row->details)
        print_wrapped(0, 8, row->details);
    option_notes(row, notes, sizeof notes);
    if (*notes)
        print_wrapped(0, 8, notes);
}

static void print_section(const struct option_section *section)
{
    printf("%s\n", section->title);
    for (const struct option_row *row = section->rows; row->name; row++)
        if (row->help)
            print_option_line(row);
    if (section->about) {
        printf("\n");
        print_wrapped(0, 2, section->about);
    }
}

// ---- the overview ----

// The names of a section's options, in the space of the overview.
static void print_section_names(const struct option_section *section)
{
    char names[512];
    int length = 0;
    for (const struct option_row *row = section->rows; row->name; row++) {
        if (!row->help)
            continue;
        if (row->letter)
            length += snprintf(names + length, sizeof names - (size_t)length, " -%c", row->letter);
        length += snprintf(names + length, sizeof names - (size_t)length, " %s%s",
                           option_has_one_dash(row) ? "-" : "--", row->name);
        assert(length < (int)sizeof names);
    }
    print_wrapped(printf("  %-10s", section->name), 13, names + 1);
}

static void print_exit_codes(void)
{
    char text[512];
    int length = 0;
    for (const struct manual_row *row = manual_exit_codes; row->name; row++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%s %s",
                           length ? ", " : "Exit codes: ", row->name, row->brief);
    assert(length < (int)sizeof text);
    printf("\n");
    print_wrapped(0, 0, text);
}

static void print_overview(void)
{
    print_usage(stdout);
    printf("\n");
    print_wrapped(0, 0, manual_about);
    print_rows("Names", manual_operands, 10);
    printf("\nOptions by section; 'sluice help SECTION', 'sluice help OPTION' show more\n");
    for (int s = 0; option_sections[s]; s++)
        print_section_names(option_sections[s]);
    print_exit_codes();
}

int show_help(struct settings *settings, const struct option_row *row, const char *text)
{
    (void)settings, (void)row, (void)text;
    print_overview();
    return EXIT_WHOLE;
}

// ---- topics ----

static void print_command(const struct command_row *row)
{
    printf("sluice %s %s\n", row->name, row->arguments);
    print_wrapped(0, 4, row->help);
    if (row->details)
        print_wrapped(0, 4, row->details);
}

static void print_all(void)
{
    print_overview();
    for (int s = 0; option_sections[s]; s++) {
        printf("\n");
        print_section(option_sections[s]);
    }
    print_rows("Exit codes", manual_exit_codes, 18);
    print_rows("Environment", manual_environment, 18);
    print_rows("Examples", manual_examples, NAMES);
    printf("\nStages\n\n");
    print_stages("all");
}

static const struct option_section *find_section(const char *name)
{
    for (int s = 0; option_sections[s]; s++)
        if (!strcmp(option_sections[s]->name, name))
            return option_sections[s];
    return NULL;
}

// All that a name without dashes names: a section, or a command, or a stage, or an option; with
// dashes an option alone. False: there is nothing.
static bool print_topic(const char *topic)
{
    const struct option_section *section = find_section(topic);
    const struct command_row *command = command_find(topic);
    const struct option_row *option = option_find(topic);
    if (section)
        print_section(section);
    else if (command)
        print_command(command);
    else if (option && option->help)
        print_option(option);
    else
        return print_stages(topic);
    return true;
}

int help_command(struct settings *settings)
{
    const char *topic = settings->topic;
    if (!topic)
        print_overview();
    else if (!strcmp(topic, "all"))
        print_all();
    else if (!print_topic(topic)) {
        refuse_topic(topic);
        return EXIT_USAGE;
    }
    return EXIT_WHOLE;
}
