// sluice(1) and sluice-stages(7), in the language of mdoc(7).
#include <ctype.h>
#include <string.h>

#include "app/app.h"
#include "app/generate/generate.h"

// ---- text ----

// One character, so that it looks like itself wherever it stands.
static void roff_char(FILE *to, char c)
{
    static const struct {
        char c;
        const char *name;
    } names[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'"', "\\(dq"},
                 {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].c == c) {
            fputs(names[k].name, to);
            return;
        }
    fputc(c, to);
}

static bool ends_sentence(const char *text, const char *at)
{
    bool end = *at == '.' || *at == ';';
    return end && at > text && at[1] == ' ' && (*at == ';' || !isupper((unsigned char)at[-1])) &&
           (*at == ';' || isupper((unsigned char)at[2]) || strchr("'@-", at[2]));
}

// Lines of text, one a sentence; newlines separate paragraphs. `end` stands behind the last.
static void roff(FILE *to, const char *text, const char *end)
{
    bool begins = true;
    for (const char *at = text; *at; at++) {
        if (begins && *at == '.')
            fputs("\\&", to);
        begins = false;
        if (*at == '\n')
            fputs("\n.Pp\n", to);
        else
            roff_char(to, *at);
        if (*at == ',' && at[1] != ' ')
            fputs("\\:", to); // a line may break there
        if (*at == '\n' || ends_sentence(text, at)) {
            at += *at != '\n';
            if (*at == ' ')
                fputc('\n', to);
            begins = true;
        }
    }
    fprintf(to, "%s\n", end);
}

// A sentence of a phrase: with a capital and a full stop.
static void roff_sentence(FILE *to, const char *phrase)
{
    size_t length = strlen(phrase);
    char begin[2] = {(char)toupper((unsigned char)phrase[0]), 0};
    bool formula = strchr("=^(", phrase[1]) || !strncmp(phrase + 1, " =", 2);
    fputs(formula ? (char[]){phrase[0], 0} : begin, to);
    roff(to, phrase + 1, length && phrase[length - 1] == '.' ? "" : ".");
}

// A word among a macro's arguments.
static void roff_word(FILE *to, const char *word)
{
    for (; *word; word++)
        roff_char(to, *word);
}

// "[INPUT] [-f CHAIN]" as macros.
static void roff_arguments(FILE *to, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, " []");
        if (*text == '[')
            fputs(".Oo\n", to);
        if (*text == ']')
            fputs(".Oc\n", to);
        if (length) {
            bool option = *text == '-', more = length > 3 && !strncmp(text + length - 3, "...", 3);
            fprintf(to, ".%s %.*s%s\n", option ? "Fl" : "Ar", (int)length - option - 3 * more,
                    text + option, more ? " ..." : "");
        }
        text += length ? length : 1;
    }
}

static void write_head(FILE *to, const char *title, const char *date, const char *name,
                       const char *about)
{
    const char *version = sluice_version();
    int length = (int)strcspn(version, "(") - 1;
    fprintf(to,
            ".\\\" Made from the tables of options and stages by app/generate.\n"
            ".Dd %s\n.Dt %s\n.Os %.*s\n.Sh NAME\n.Nm %s\n.Nd %s\n",
            date, title, length, version, name, about);
}

static void write_rows(FILE *to, const struct manual_row *row)
{
    fputs(".Bl -tag -width Ds\n", to);
    for (; row->name; row++) {
        fputs(".It ", to);
        roff_word(to, row->name);
        fputc('\n', to);
        roff_sentence(to, row->help);
    }
    fputs(".El\n", to);
}

// ---- sluice(1) ----

static void write_synopsis(FILE *to)
{
    fputs(".Sh SYNOPSIS\n", to);
    for (const struct command_row *row = commands; row->help; row++) {
        fputs(".Nm\n", to);
        if (row->name)
            fprintf(to, ".Cm %s\n", row->name);
        roff_arguments(to, row->arguments);
    }
}

static void write_commands(FILE *to)
{
    fputs(".Sh COMMANDS\n.Bl -tag -width Ds\n", to);
    for (const struct command_row *row = commands; row->help; row++) {
        if (!row->name)
            continue;
        fprintf(to, ".It Cm %s\n", row->name);
        roff_sentence(to, row->help);
        if (row->details)
            roff(to, row->details, "");
    }
    fputs(".El\n", to);
}

static void write_option_value(FILE *to, const struct option_row *row)
{
    if (row->implied)
        fprintf(to, " Ns Oo = Ns Ar %s Oc", row->argument);
    else if (row->argument)
        fprintf(to, " Ar %s", row->argument);
}

static void write_option(FILE *to, const struct option_row *row)
{
    char notes[512];
    fputs(".It", to);
    if (row->letter) {
        fprintf(to, " Fl %c", row->letter);
        write_option_value(to, row);
        fputs(" ,", to);
    }
    fputs(" Fl ", to);
    roff_word(to, dashes(row) + 1);
    roff_word(to, row->name);
    write_option_value(to, row);
    fputc('\n', to);
    roff_sentence(to, row->help);
    if (row->details)
        roff(to, row->details, "");
    option_notes(row, notes, sizeof notes);
    if (*notes)
        roff(to, notes, "");
    if (!row->choices[0].name)
        return;
    fputs(".Bl -tag -width Ds -compact\n", to);
    for (const struct choice *choice = row->choices; choice->name; choice++) {
        fprintf(to, ".It Cm %s\n", choice->name);
        roff_sentence(to, choice->help);
    }
    fputs(".El\n", to);
}

static void write_section(FILE *to, const struct option_section *section)
{
    fputs(".Ss ", to);
    roff_word(to, section->title);
    fputc('\n', to);
    if (section->about)
        roff(to, section->about, "");
    fputs(".Bl -tag -width Ds\n", to);
    for (const struct option_row *row = section->rows; row->name; row++)
        if (row->help)
            write_option(to, row);
    fputs(".El\n", to);
}

static void write_examples(FILE *to)
{
    fputs(".Sh EXAMPLES\n", to);
    for (const struct manual_row *row = manual_examples; row->name; row++) {
        roff_sentence(to, row->help);
        fputs(".Pp\n.Dl ", to);
        roff_word(to, row->name);
        fprintf(to, "\n%s", row[1].name ? ".Pp\n" : "");
    }
}

void write_manual(FILE *to, const char *date)
{
    write_head(to, "SLUICE 1", date, "sluice", "filter video exactly, on CPUs and GPUs");
    write_synopsis(to);
    fputs(".Sh DESCRIPTION\n", to);
    roff(to, manual_about, "");
    write_rows(to, manual_operands);
    fputs(".Pp\nStages are described in\n.Xr sluice-stages 7 .\n", to);
    write_commands(to);
    fputs(".Sh OPTIONS\nOptions may be shortened as long as they are unambiguous, and spelled with "
          "one dash.\n",
          to);
    for (int s = 0; option_sections[s]; s++)
        write_section(to, option_sections[s]);
    fputs(".Sh ENVIRONMENT\n", to);
    write_rows(to, manual_environment);
    fputs(".Sh EXIT STATUS\n", to);
    write_rows(to, manual_exit_codes);
    write_examples(to);
    fputs(".Sh SEE ALSO\n.Xr ffmpeg 1 ,\n.Xr sluice-stages 7\n", to);
}

// ---- sluice-stages(7) ----

static void write_stage_option(FILE *to, const struct sluice_option_info *option)
{
    char values[256], standard[128];
    stage_values(option, values, sizeof values);
    stage_default(option, standard, sizeof standard);
    fprintf(to, ".It Cm %s%s\n", option->name, option->many ? " ..." : "");
    roff_sentence(to, option->help);
    fputs("Values:\n", to);
    roff(to, values, *standard ? "," : ", required.");
    if (*standard) {
        fputs("default\n", to);
        roff(to, standard, ".");
    }
}

static void write_stage(FILE *to, int index, const struct sluice_stage_info *stage)
{
    char signature[256];
    struct sluice_option_info option = {.size = sizeof option};
    stage_signature(index, signature, sizeof signature);
    fprintf(to, ".Ss %s\n.Dl ", stage->name);
    roff_word(to, signature);
    fputs("\n.Pp\n", to);
    roff_sentence(to, stage->summary);
    fputs(".Pp\n", to);
    roff(to, stage->formula, "");
    if (stage->options)
        fputs(".Bl -tag -width Ds\n", to);
    for (int k = 0; !sluice_stage_option(index, k, &option); k++)
        write_stage_option(to, &option);
    if (stage->options)
        fputs(".El\n", to);
    if (stage->alias)
        fprintf(to, ".Pp\nThe former name\n.Cm %s\nis read alike.\n", stage->alias);
    if (stage->source) {
        fputs(".Pp\nSource:\n", to);
        roff(to, stage->source, ".");
    }
}

void write_stages_manual(FILE *to, const char *date)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    write_head(to, "SLUICE-STAGES 7", date, "sluice-stages",
               "stages of the filter chains of sluice");
    fputs(".Sh DESCRIPTION\n", to);
    roff(to, stages_about, "");
    for (int k = 0; !sluice_stage(k, &stage); k++)
        write_stage(to, k, &stage);
    fputs(".Sh SEE ALSO\n.Xr sluice 1\n", to);
}
