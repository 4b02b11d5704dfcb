// Completions for bash: tables as functions of `case`, and a fixed part that reads them.
#include "app/app.h"
#include "app/generate/generate.h"
#include "control/verbs.h"

#include "sluice/sluice.h"

// The words so far, without quotes, the last one being completed: bash's own list breaks them at
// "=" and ":", which stand in chains and in -c:v. Candidates lose what stands ahead of the part
// that readline replaces ($2).
static const char head[] =
    "# bash completion for sluice; made from its tables of options and stages.\n"
    "\n"
    "_sluice_words()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} quote= word= c k\n"
    "    words=()\n"
    "    for ((k = 0; k < ${#line}; k++)); do\n"
    "        c=${line:k:1}\n"
    "        case $quote$c in\n"
    "            \\'\\' | \\\"\\\") quote= ;;\n"
    "            \\'* | \\\"*) if [[ $quote ]]; then word+=$c; else quote=$c; fi ;;\n"
    "            \\\\) word+=${line:++k:1} ;;\n"
    "            ' ' | $'\\t') [[ ! $word ]] || words+=(\"$word\"); word= ;;\n"
    "            *) word+=$c ;;\n"
    "        esac\n"
    "    done\n"
    "    words+=(\"$word\")\n"
    "}\n"
    "\n"
    "# _sluice_offer HEAD CANDIDATES: those that begin as the word behind HEAD does.\n"
    "_sluice_offer()\n"
    "{\n"
    "    local candidate whole=$option$cur kept\n"
    "    kept=${whole%\"$replaced\"}\n"
    "    for candidate in $2; do\n"
    "        whole=$option$1$candidate\n"
    "        [[ $1$candidate != \"$cur\"* ]] || COMPREPLY+=(\"${whole#\"$kept\"}\")\n"
    "    done\n"
    "}\n";

static const char tail[] =
    "\n"
    "# Stages behind commas; behind a stage's \"=\" and \":\" names and values of its options.\n"
    "_sluice_chain()\n"
    "{\n"
    "    local link=${cur##*,} stage values piece colons\n"
    "    compopt -o nospace\n"
    "    if [[ $link != *=* ]]; then\n"
    "        _sluice_offer \"${cur%\"$link\"}\" \"$_sluice_stages\"\n"
    "        # readline closes the quote behind the only candidate: let there be two\n"
    "        [[ ${#COMPREPLY[@]} != 1 ]] || COMPREPLY+=(\"${COMPREPLY[0]}=\")\n"
    "        return\n"
    "    fi\n"
    "    stage=${link%%=*} values=${link#*=}\n"
    "    piece=${values##*:} colons=${values//[!:]/}\n"
    "    if [[ $piece == *=* ]]; then\n"
    "        _sluice_offer \"${cur%\"${piece#*=}\"}\" \"$(_sluice_choices "
    "\"$stage.${piece%%=*}\")\"\n"
    "    else\n"
    "        _sluice_offer \"${cur%\"$piece\"}\" \"$(_sluice_choices \"$stage.${#colons}\") "
    "$(_sluice_names \"$stage\")\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "_sluice_files()\n"
    "{\n"
    "    compopt -o filenames -o default\n"
    "}\n"
    "\n"
    "_sluice()\n"
    "{\n"
    "    local words cur prev option= replaced=$2\n"
    "    COMPREPLY=()\n"
    "    _sluice_words\n"
    "    cur=${words[${#words[@]} - 1]} prev=${words[${#words[@]} - 2]}\n"
    "    if [[ $cur == --*=* ]]; then\n"
    "        prev=${cur%%=*} option=$prev= cur=${cur#*=}\n"
    "    fi\n"
    "    if _sluice_value \"$prev\"; then\n"
    "        return\n"
    "    elif [[ ${words[1]} == help || ${words[1]} == stages ]] && ((${#words[@]} == 3)); then\n"
    "        [[ ${words[1]} == stages ]] && _sluice_offer '' \"all $_sluice_stages\"\n"
    "        [[ ${words[1]} == help ]] && _sluice_offer '' \"$_sluice_topics\"\n"
    "    elif [[ ${words[1]} == farm ]] && ((${#words[@]} == 3)); then\n"
    "        _sluice_offer '' \"$_sluice_farm\"\n"
    "    elif [[ ${words[1]} == ctl ]] && ((${#words[@]} == 4)); then\n"
    "        _sluice_offer '' \"$_sluice_control\"\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _sluice_offer '' \"$_sluice_options\"\n"
    "    else\n"
    "        ((${#words[@]} == 2)) && _sluice_offer '' \"$_sluice_commands\"\n"
    "        [[ $prev == stages || $prev == help ]] || _sluice_files\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _sluice sluice\n";

static void write_name(FILE *to, const struct option_row *row)
{
    if (row->letter)
        fprintf(to, "-%c ", row->letter);
    fprintf(to, "%s%s ", dashes(row), row->name);
}

static void write_value(FILE *to, const struct option_row *row)
{
    char values[512];
    option_candidates(row, values, sizeof values);
    if (!row->argument || row->implied)
        return;
    fprintf(to, "        ");
    if (row->letter)
        fprintf(to, "-%c | ", row->letter);
    fprintf(to, "%s%s) ", dashes(row), row->name);
    if (row->completes == COMPLETE_CHAIN)
        fputs("_sluice_chain", to);
    else if (row->completes == COMPLETE_FILES)
        fputs("_sluice_files", to);
    else
        fprintf(to, "_sluice_offer '' '%s'", values);
    fputs(" ;;\n", to);
}

static void write_lists(FILE *to)
{
    fputs("\n_sluice_options='", to);
    each_option(write_name, to);
    fputs("'\n_sluice_commands='", to);
    for (const struct command_row *row = commands; row->help; row++)
        if (row->name)
            fprintf(to, "%s ", row->name);
    fputs("'\n_sluice_stages='", to);
    write_stage_names(to);
    fputs("'\n_sluice_topics='", to);
    write_topics(to);
    fputs("'\n_sluice_farm='", to);
    farm_write_verbs(to);
    fputs("'\n_sluice_control='", to);
    verbs_write(to);
    fputs("'\n", to);
}

static void write_stage_tables(FILE *to)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    struct sluice_option_info option = {.size = sizeof option};
    fputs("\n_sluice_names()\n{\n    case $1 in\n", to);
    for (int s = 0; !sluice_stage(s, &stage); s++) {
        fprintf(to, "        %s) echo '", stage.name);
        for (int k = 0; !sluice_stage_option(s, k, &option); k++)
            fprintf(to, "%s= ", option.name);
        fputs("' ;;\n", to);
    }
    fputs("    esac\n}\n\n_sluice_choices()\n{\n    case $1 in\n", to);
    for (int s = 0; !sluice_stage(s, &stage); s++)
        for (int k = 0; !sluice_stage_option(s, k, &option); k++)
            if (option.type == SLUICE_OPTION_CHOICE) {
                fprintf(to, "        %s.%s | %s.%d) echo '", stage.name, option.name, stage.name,
                        k);
                for (const char *at = option.choices; *at; at++)
                    fputc(*at == '|' ? ' ' : *at, to);
                fputs("' ;;\n", to);
            }
    fputs("    esac\n}\n", to);
}

void write_bash(FILE *to)
{
    fputs(head, to);
    write_lists(to);
    write_stage_tables(to);
    fputs("\n# The value of an option; false: it takes none.\n_sluice_value()\n{\n    case $1 in\n",
          to);
    each_option(write_value, to);
    fputs("        *) return 1 ;;\n    esac\n}\n", to);
    fputs(tail, to);
}
