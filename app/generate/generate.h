// The documents and completions that are made of the tables of options and stages when sluice is
// built: a program of its own, so that sluice itself does not carry their text.
#pragma once

#include <stdio.h>

#include "app/option.h"

// ---- a file each ----

void write_manual(FILE *to, const char *date);        // sluice(1), in mdoc
void write_stages_manual(FILE *to, const char *date); // sluice-stages(7), in mdoc
void write_stages_document(FILE *to);                 // docs/stages.md
void write_bash(FILE *to);
void write_zsh(FILE *to);
void write_fish(FILE *to);

// ---- what they share ----

// Call each() for every option that is shown, in the order of the help.
void each_option(void (*each)(FILE *to, const struct option_row *row), FILE *to);

// The dashes of an option's name: "-" or "--".
const char *dashes(const struct option_row *row);

// Text between single quotes, as fish reads it; shell_quote() (control/shell.h) is for others.
void write_quoted_fish(FILE *to, const char *text);

// The values that shells offer for an option, separated by spaces: choices or suggestions; "":
// none.
void option_candidates(const struct option_row *row, char *to, size_t size);

// Names, separated by spaces: of all stages, and of what `sluice help` takes.
void write_stage_names(FILE *to);
void write_topics(FILE *to);
