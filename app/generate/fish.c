// Completions for fish: a line an option, and the stages of chains.
#include <string.h>

#include "app/app.h"
#include "app/generate/generate.h"
#include "control/verbs.h"
#include "sluice/sluice.h"

// Stages behind commas; behind a stage's "=" and ":" names and values of its options. The token has
// no quote, and no "--filter=", ahead.
static const char chain[] =
    "function __sluice_chain\n"
    "    set -l token (commandline -ct | string replace -r '^(--?[a-z]+=)?[\\'\"]?' '')\n"
    "    set -l link (string replace -r '^.*,' '' -- $token)\n"
    "    set -l stage (string replace -r '=.*' '' -- $link)\n"
    "    set -l piece (string replace -r '^.*[,:]|^[^=]*=' '' -- $link)\n"
    "    if not string match -q '*=*' -- $link\n"
    "        __sluice_ahead $token $link (__sluice_stages)\n"
    "    else if string match -qr '[=:][^:]*=[^:]*$' -- $link\n"
    "        set -l option (string replace -r '.*[=:]([^=:]*)=[^=:]*$' '$1' -- $link)\n"
    "        set -l value (string replace -r '.*=' '' -- $link)\n"
    "        __sluice_ahead $token \"$value\" (__sluice_choices $stage.$option)\n"
    "    else\n"
    "        set -l value (string replace -r '.*[=:]' '' -- $link)\n"
    "        set -l number (string replace -ar '[^:]' '' -- $link | string length)\n"
    "        __sluice_ahead $token \"$value\" (__sluice_choices $stage.$number) (__sluice_options "
    "$stage)\n"
    "    end\n"
    "end\n"
    "\n"
    "# Candidates in place of the last part of a token.\n"
    "function __sluice_ahead -a token part\n"
    "    set -l kept (math (string length -- $token) - (string length -- \"$part\"))\n"
    "    set -l head (string sub -l $kept -- $token)\n"
    "    for candidate in $argv[3..]\n"
    "        printf '%s%s\\n' \"$head\" $candidate\n"
    "    end\n"
    "end\n"
    "\n"
    "# Whether these are the words ahead: __sluice_at COUNT [COMMAND].\n"
    "function __sluice_at -a count command\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -eq $count; and test -z \"$command\" -o \"$words[2]\" = \"$command\"\n"
    "end\n"
    "\n"
    "function __sluice_is -a command\n"
    "    set -l words (commandline -opc)\n"
    "    test \"$words[2]\" = \"$command\"\n"
    "end\n"
    "\n";

static void write_described(FILE *to, const char *name, const char *help)
{
    fprintf(to, "        printf '%%s\\t%%s\\n' %s ", name);
    write_quoted_fish(to, help);
    fputc('\n', to);
}

static void write_stages(FILE *to)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    struct sluice_option_info option = {.size = sizeof option};
    fputs("function __sluice_stages\n", to);
    for (int s = 0; !sluice_stage(s, &stage); s++)
        write_described(to, stage.name, stage.summary);
    fputs("end\n\nfunction __sluice_options -a stage\n    switch $stage\n", to);
    for (int s = 0; !sluice_stage(s, &stage); s++) {
        fprintf(to, "    case %s\n", stage.name);
        for (int k = 0; !sluice_stage_option(s, k, &option); k++) {
            char name[64];
            snprintf(name, sizeof name, "%s=", option.name);
            write_described(to, name, option.help);
        }
    }
    fputs("    end\nend\n\nfunction __sluice_choices -a option\n    switch $option\n", to);
    for (int s = 0; !sluice_stage(s, &stage); s++)
        for (int k = 0; !sluice_stage_option(s, k, &option); k++)
            if (option.type == SLUICE_OPTION_CHOICE) {
                fprintf(to, "    case %s.%s %s.%d\n        string split '|' '%s'\n", stage.name,
                        option.name, stage.name, k, option.choices);
            }
    fputs("    end\nend\n\n", to);
}

static void write_option(FILE *to, const struct option_row *row)
{
    char values[512];
    option_candidates(row, values, sizeof values);
    fputs("complete -c sluice", to);
    if (row->letter)
        fprintf(to, " -s %c", row->letter);
    fprintf(to, " -%c %s", option_has_one_dash(row) ? 'o' : 'l', row->name);
    if (row->completes == COMPLETE_CHAIN)
        fputs(" -x -a '(__sluice_chain)'", to);
    else if (row->completes == COMPLETE_FILES)
        fputs(" -r -F", to);
    else if (row->choices[0].name) {
        fputs(" -x -a \"", to);
        for (const struct choice *choice = row->choices; choice->name; choice++) {
            fprintf(to, "%s\\t", choice->name);
            write_quoted_fish(to, choice->help);
            fputc('\n', to);
        }
        fputc('"', to);
    } else if (row->argument && !row->implied)
        fprintf(to, " -x -a '%s'", values);
    fputs(" -d ", to);
    write_quoted_fish(to, row->help);
    fputc('\n', to);
}

void write_fish(FILE *to)
{
    fputs("# fish completion for sluice; made from its tables of options and stages.\n\n", to);
    fputs(chain, to);
    write_stages(to);
    for (const struct command_row *row = commands; row->help; row++)
        if (row->name) {
            fprintf(to, "complete -c sluice -n '__sluice_at 1' -a %s -d ", row->name);
            write_quoted_fish(to, row->help);
            fputc('\n', to);
        }
    fputs("complete -c sluice -n '__sluice_is stages; or __sluice_is help' -f\n"
          "complete -c sluice -n '__sluice_at 2 stages' -a '(__sluice_stages)'\n"
          "complete -c sluice -n '__sluice_at 2 stages' -a all\n"
          "complete -c sluice -n '__sluice_at 2 help' -a '",
          to);
    write_topics(to);
    fputs("'\ncomplete -c sluice -n '__sluice_at 2 farm' -f -a '", to);
    farm_write_verbs(to);
    fputs("'\ncomplete -c sluice -n '__sluice_at 3 ctl' -f -a '", to);
    verbs_write(to);
    fputs("'\n", to);
    each_option(write_option, to);
}
