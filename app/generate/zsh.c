// Completions for zsh: a spec of _arguments an option, and the stages of chains.
#include <string.h>

#include "app/app.h"
#include "app/generate/generate.h"
#include "control/shell.h"
#include "control/verbs.h"
#include "sluice/sluice.h"

// Text of a spec: what separates its parts is escaped, then all stands between quotes.
static void write_spec(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            fputc('\\', to);
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, to);
    }
}

static void write_action(FILE *to, const struct option_row *row)
{
    char values[512];
    option_candidates(row, values, sizeof values);
    if (row->completes == COMPLETE_CHAIN)
        fputs("_sluice_chain", to);
    else if (row->completes == COMPLETE_FILES)
        fputs("_files", to);
    else if (row->choices[0].name) {
        fputs("((", to);
        for (const struct choice *choice = row->choices; choice->name; choice++) {
            fprintf(to, "%s%s\\:\"", choice == row->choices ? "" : " ", choice->name);
            write_spec(to, choice->help);
            fputc('"', to);
        }
        fputs("))", to);
    } else if (*values) {
        fputc('(', to);
        write_spec(to, values);
        fputc(')', to);
    } else
        fputc(' ', to);
}

// `name` with its dashes; `excludes`: the names that do not stand beside it.
static void write_option(FILE *to, const struct option_row *row, const char *name, bool letter)
{
    fputs("        '", to);
    if (row->repeats || row->scope != SCOPE_RUN)
        fputc('*', to);
    else if (row->letter)
        fprintf(to, "(-%c %s%s)", row->letter, dashes(row), row->name);
    write_spec(to, name);
    if (row->implied)
        fputs("=-", to);
    else if (row->argument && !letter && !option_has_one_dash(row))
        fputc('=', to);
    fputc('[', to);
    write_spec(to, row->help);
    fputc(']', to);
    if (row->argument) {
        fputs(row->implied ? "::" : ":", to);
        write_spec(to, row->argument);
        fputc(':', to);
        write_action(to, row);
    }
    fputs("'\n", to);
}

static void write_names(FILE *to, const struct option_row *row)
{
    char name[64];
    if (row->letter) {
        snprintf(name, sizeof name, "-%c", row->letter);
        write_option(to, row, name, true);
    }
    snprintf(name, sizeof name, "%s%s", dashes(row), row->name);
    write_option(to, row, name, false);
}

// "name:help" items of _describe.
static void write_item(FILE *to, const char *name, const char *help)
{
    char text[1024];
    snprintf(text, sizeof text, "%s:%s", name, help);
    fputs("        ", to);
    shell_quote(to, text);
    fputc('\n', to);
}

static void write_stages(FILE *to)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    struct sluice_option_info option = {.size = sizeof option};
    fputs("_sluice_stages()\n{\n    local -a stages=(\n", to);
    for (int s = 0; !sluice_stage(s, &stage); s++)
        write_item(to, stage.name, stage.summary);
    fputs("    )\n    _describe stage stages \"$@\"\n}\n\n"
          "# _sluice_options STAGE: its options and their help.\n"
          "_sluice_options()\n{\n    local -a options\n    case $1 in\n",
          to);
    for (int s = 0; !sluice_stage(s, &stage); s++) {
        fprintf(to, "    %s) options=(\n", stage.name);
        for (int k = 0; !sluice_stage_option(s, k, &option); k++)
            write_item(to, option.name, option.help);
        fputs("    ) ;;\n", to);
    }
    fputs("    esac\n    _describe option options -S =\n}\n\n"
          "# _sluice_choices STAGE.OPTION, by name or number: its values.\n"
          "_sluice_choices()\n{\n    case $1 in\n",
          to);
    for (int s = 0; !sluice_stage(s, &stage); s++)
        for (int k = 0; !sluice_stage_option(s, k, &option); k++)
            if (option.type == SLUICE_OPTION_CHOICE) {
                fprintf(to, "    %s.%s|%s.%d) compadd -S '' --", stage.name, option.name,
                        stage.name, k);
                for (const char *at = option.choices; *at;) {
                    int length = (int)strcspn(at, "|");
                    fprintf(to, " %.*s", length, at);
                    at += length + (at[length] == '|');
                }
                fputs(" ;;\n", to);
            }
    fputs("    esac\n}\n", to);
}

static const char chain[] =
    "\n"
    "# Stages behind commas; behind a stage's \"=\" and \":\" names and values of its options.\n"
    "_sluice_chain()\n"
    "{\n"
    "    local link=${PREFIX##*,} stage values piece\n"
    "    if [[ $link != *=* ]]; then\n"
    "        compset -P '*,'\n"
    "        _sluice_stages -S ''\n"
    "        return\n"
    "    fi\n"
    "    stage=${link%%=*} values=${link#*=}\n"
    "    piece=${values##*:}\n"
    "    if [[ $piece == *=* ]]; then\n"
    "        compset -P '*='\n"
    "        _sluice_choices $stage.${piece%%=*}\n"
    "    else\n"
    "        [[ $values == *:* ]] && compset -P '*:' || compset -P '*='\n"
    "        _sluice_choices $stage.${#${values//[^:]/}}\n"
    "        _sluice_options $stage\n"
    "    fi\n"
    "}\n"
    "\n"
    "_sluice_first()\n"
    "{\n"
    "    (( CURRENT == 2 )) && _sluice_commands\n"
    "    _files\n"
    "}\n"
    "\n"
    "_sluice_rest()\n"
    "{\n"
    "    case $words[2] in\n"
    "    stages) (( CURRENT == 3 )) && { compadd all; _sluice_stages } ;;\n"
    "    help) (( CURRENT == 3 )) && _sluice_topics ;;\n"
    "    farm) (( CURRENT == 3 )) && compadd -- $=_sluice_farm || _files ;;\n"
    "    ctl) (( CURRENT == 4 )) && compadd -- $=_sluice_control || _files ;;\n"
    "    *) _files ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_sluice()\n"
    "{\n"
    "    local -a specs=(\n";

void write_zsh(FILE *to)
{
    fputs("#compdef sluice\n# Made from sluice's tables of options and stages.\n\n", to);
    fputs("_sluice_farm='", to);
    farm_write_verbs(to);
    fputs("'\n_sluice_control='", to);
    verbs_write(to);
    fputs("'\n\n_sluice_topics()\n{\n    compadd -- ", to);
    write_topics(to);
    fputs("\n}\n\n_sluice_commands()\n{\n    local -a commands=(\n", to);
    for (const struct command_row *row = commands; row->help; row++)
        if (row->name)
            write_item(to, row->name, row->help);
    fputs("    )\n    _describe command commands\n}\n\n", to);
    write_stages(to);
    fputs(chain, to);
    each_option(write_names, to);
    fputs("        '1: :_sluice_first'\n        '*: :_sluice_rest'\n    )\n"
          "    if [[ $words[2] == help ]] && (( CURRENT == 3 )); then\n"
          "        _sluice_topics\n"
          "    else\n"
          "        _arguments -s $specs\n"
          "    fi\n}\n\n_sluice \"$@\"\n",
          to);
}
