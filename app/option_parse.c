// The command line: getopt's tables from ours, names, commands.
#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/hints.h"
#include "app/option.h"

// ---- getopt's tables, from ours ----

enum { ID_FIRST = 256 }; // option_at(0) has it; below are getopt's characters

struct tables {
    struct option option[MAX_OPTIONS + 1];
    char letters[2 * MAX_OPTIONS + 3];
};

static void make_tables(struct tables *tables)
{
    const struct option_row *row;
    int length = 0;
    *tables = (struct tables){0};
    tables->letters[length++] = '-'; // names come in order, for -F
    tables->letters[length++] = ':';
    for (int k = 0; (row = option_at(k)); k++) {
        assert(k < MAX_OPTIONS && !row->argument == (row->type == VALUE_FLAG));
        int argument = !row->argument ? no_argument
                       : row->implied ? optional_argument
                                      : required_argument;
        tables->option[k] = (struct option){row->name, argument, NULL, ID_FIRST + k};
        if (row->letter) {
            tables->letters[length++] = row->letter;
            if (argument == required_argument)
                tables->letters[length++] = ':';
        }
    }
}

// The option that getopt has found, by its id or its letter.
static const struct option_row *found_option(int found)
{
    const char letter[] = {(char)found, 0};
    const struct option_row *row =
        found >= ID_FIRST ? option_at(found - ID_FIRST) : option_find(letter);
    assert(row);
    return row;
}

// ---- names and commands ----

static int refuse_name(const char *name, enum command command)
{
    const struct command_row *row = &commands[command];
    char shown[4300];
    sluice_public_name(name, shown, sizeof shown);
    if (option_is_for(option_find("output"), command))
        fprintf(stderr,
                "sluice: '%s' is one name too many; further outputs are named by -o, and a pattern "
                "of images stands in quotes: 'frames/*.png'\n",
                shown);
    else
        fprintf(stderr, "sluice: '%s' is one name too many: 'sluice %s %s'\n", shown, row->name,
                row->arguments);
    return EXIT_USAGE;
}

static int add_name(struct settings *settings, enum command command, const char *name)
{
    struct sluice_config *config = &settings->config;
    if (commands[command].wordy && settings->topic) {
        settings->word[settings->words++] = (char *)name;
        return -1;
    }
    bool topical = commands[command].topical && (command != COMMAND_FARM || !settings->topic);
    const char **place = topical                ? &settings->topic
                         : !config->input       ? &config->input
                         : !config->output.name ? &config->output.name
                                                : NULL;
    bool spare = place == &config->output.name && commands[command].no_output;
    if (!place || *place || spare)
        return refuse_name(name, command);
    *place = topical ? name : argument_text(settings, name);
    if (!*place)
        return EXIT_USAGE;
    if (place == &config->output.name)
        settings->output_count = 1;
    return command == COMMAND_FARM && !topical ? farm_note_name(settings, name) : -1;
}

// The command, which goes from the list of arguments. `sluice --help TOPIC` is `sluice help TOPIC`.
static enum command find_command(int *argc, char ***argv)
{
    const char *name = *argc > 1 ? (*argv)[1] : "";
    if (*argc == 3 && (!strcmp(name, "--help") || !strcmp(name, "-h")))
        name = "help";
    const struct command_row *row = command_find(name);
    if (!row)
        return COMMAND_FILTER;
    ++*argv, --*argc;
    return (enum command)(row - commands);
}

// ---- mistakes ----

static int unknown_option(const char *text)
{
    const char *names[MAX_OPTIONS + 1];
    const struct option_row *row;
    int count = 0;
    for (; (row = option_at(count)); count++)
        names[count] = row->name;
    names[count] = NULL;
    refuse_option(text, names);
    return EXIT_USAGE;
}

// True if getopt will find a long option in "-name" or "--name=value", which may be shortened.
static bool is_long(const char *text)
{
    const struct option_row *row;
    const char *name = text + strspn(text, "-");
    for (int k = 0; (row = option_at(k)); k++)
        if (!strncmp(row->name, name, strcspn(name, "=")))
            return true;
    return false;
}

// An option that getopt did not take: it has no value to give, may be several, or is none.
static int refused_option(const char *text)
{
    if (optopt >= ID_FIRST)
        fprintf(stderr, "sluice: --%s takes no value; it is '%s'\n", found_option(optopt)->name,
                text);
    else if (is_long(text))
        fprintf(stderr,
                "sluice: '%s' is the beginning of several options; 'sluice --help' lists them\n",
                text);
    else
        return unknown_option(text);
    return EXIT_USAGE;
}

// Words that getopt would take apart letter by letter: -nostdin as -n -o stdin, -hwaccel as -h.
static int check_argument(const struct tables *tables, const char *text, const char *next)
{
    if (text[0] != '-' || !text[1] || !strcmp(text, "--"))
        return -1;
    if (hint_at_ffmpeg_option(text, next))
        return EXIT_USAGE;
    bool known = text[1] == '-' || is_long(text) || is_letter_group(text, tables->letters);
    return known ? -1 : unknown_option(text);
}

static int missing_value(const char *text)
{
    fprintf(stderr, "sluice: %s needs a value; 'sluice --help' says which\n", text);
    return EXIT_USAGE;
}

static int missing_names(const struct settings *settings, enum command command)
{
    const struct sluice_config *config = &settings->config;
    if (command != COMMAND_FILTER || (config->input && config->output.name))
        return -1;
    char shown[4300];
    if (config->input) {
        sluice_public_name(config->input, shown, sizeof shown);
        fprintf(stderr, "sluice: an output is missing; 'sluice %s out.mp4'\n", shown);
    } else
        print_usage(stderr), fprintf(stderr, "'sluice --help' says more\n");
    return EXIT_USAGE;
}

// Files beside the output must be none that the run reads or writes otherwise, and may replace
// files only where that was asked for.
static int check_reports(struct settings *settings, enum command command)
{
    if (command != COMMAND_FILTER && command != COMMAND_BENCH && command != COMMAND_SERVE)
        return -1;
    const char *const files[] = {settings->json, settings->chart, settings->journal};
    int count = 0;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        if (files[k])
            settings->reserved_outputs[count++] = files[k];
    settings->config.reserved_outputs = settings->reserved_outputs;
    settings->reserved_inputs[0] = settings->replay;
    settings->config.reserved_inputs = settings->reserved_inputs;
    enum sluice_status status = sluice_chain_parse(&settings->config, &settings->parsed);
    settings->config.parsed = settings->parsed;
    if (!status)
        status = sluice_check_files(&settings->config);
    return status ? exit_code_of(status) : -1;
}

static int set_found(const struct option_row *row, struct settings *settings, enum command command,
                     const char *text)
{
    if (!option_is_for(row, command))
        return option_refuse(row, command);
    int code = command == COMMAND_FARM ? farm_note_option(settings, row, text) : -1;
    if (code >= 0)
        return code;
    option_note_typed(row, settings, text);
    return option_set(row, settings, text);
}

// A word behind "--": a name, or an option of another program.
static int add_last(struct settings *settings, enum command command, char *word)
{
    if (command != COMMAND_FARM)
        return add_name(settings, command, word);
    settings->word[settings->words++] = word;
    return -1;
}

// All that stands on the command line. -1: go on; else the exit code.
static int parse_arguments(struct settings *settings, enum command command, int argc, char **argv)
{
    struct tables tables;
    int code = -1, found;
    make_tables(&tables);
    opterr = optind = 0; // getopt begins again, at 1, also if it was here before
    getopt_long_only(1, argv, tables.letters, tables.option, NULL);
    while (code < 0 && command != COMMAND_HELP) { // whose words may be names of options
        int at = optind;
        char shown[4300], next[4300];
        sluice_public_name(at < argc ? argv[at] : "", shown, sizeof shown);
        sluice_public_name(at + 1 < argc ? argv[at + 1] : "", next, sizeof next);
        if (at < argc)
            code = check_argument(&tables, shown, at + 1 < argc ? next : NULL);
        if (code >= 0)
            break;
        found = getopt_long_only(argc, argv, tables.letters, tables.option, NULL);
        if (found == -1)
            break;
        if (found == '?')
            code = refused_option(shown);
        else if (found == ':')
            code = missing_value(shown);
        else if (found == 1)
            code = add_name(settings, command, optarg);
        else
            code = set_found(found_option(found), settings, command, optarg);
    }
    for (; code < 0 && optind < argc; optind++) // after --
        code = add_last(settings, command, argv[optind]);
    return code;
}

int settings_parse(int argc, char **argv, enum command *command, struct settings *settings)
{
    *settings = (struct settings){.config.size = sizeof settings->config,
                                  .config.map_input = true,
                                  .samples = 100,
                                  .outputs = calloc((size_t)argc + 1, sizeof *settings->outputs),
                                  .options = calloc(2 * (size_t)argc + 1, sizeof(char *)),
                                  .allowed = calloc((size_t)argc + 1, sizeof(char *)),
                                  .word = calloc((size_t)argc + 1, sizeof(char *)),
                                  .farm.typed = calloc(1, sizeof(char *))};
    settings->config.more_outputs = settings->outputs;
    settings->config.log = show_log;
    settings->config.opaque = settings;
    *command = find_command(&argc, &argv);
    settings->config.changed = show_changed;
    if (!settings->outputs || !settings->options || !settings->allowed || !settings->word ||
        !settings->farm.typed)
        return fprintf(stderr, "sluice: out of memory\n"), EXIT_OTHER;
    int code = parse_arguments(settings, *command, argc, argv);
    settings->config.overwrite &= !settings->never;
    if (code < 0)
        code = options_check_page(settings, *command);
    if (code < 0)
        code = options_check_jobs(settings);
    if (code < 0 && *command == COMMAND_FILTER && !journal_read(settings))
        code = EXIT_USAGE;
    if (code < 0)
        code = check_reports(settings, *command);
    return code < 0 ? missing_names(settings, *command) : code;
}

void settings_finish(struct settings *settings)
{
    sluice_chain_destroy(&settings->parsed);
    free(settings->outputs);
    free(settings->options);
    free(settings->allowed);
    free(settings->word);
    for (int k = 0; k < settings->text_count; k++)
        free(settings->texts[k]);
    free(settings->texts);
    for (int k = 0; k < settings->farm.count; k++)
        free(settings->farm.typed[k]);
    free(settings->farm.typed);
    if (settings->uploads) // there still where there was no page
        rmdir(settings->uploads);
    free(settings->uploads);
    free(settings->typed);
    free(settings->typed_input);
    free(settings->typed_output);
    for (int k = 0; k < settings->change_count; k++)
        free((char *)settings->changes[k].chain);
    free(settings->changes);
}
