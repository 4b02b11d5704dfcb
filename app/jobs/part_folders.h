// Part folders: what parts of an output leave beside it until they are joined, "out.mp4.part-3-of-64"
// (sluice_config.part).
#pragma once

#include <stdbool.h>

#include "sluice/sluice.h"

// The file that the folders of an output's parts stand beside: "hash:FILE" is FILE. Part of `output`.
const char *part_folder_base(const char *output);

// The name of the folder of part `part` from 1, of output `output`, a file or "hash:FILE". The
// caller frees it; NULL without memory.
char *part_folder_name(const char *output, int part, int parts);

// The names of all folders, ended by NULL. The caller frees the list; NULL without memory.
char **part_folder_names(const char *output, int parts);

// Leaves NULL, accepts NULL behind it.
void part_folder_names_free(char ***list);

// The parts of an output that are there.
struct part_folders {
    int parts;  // into how many the output was divided; of several such numbers that of which most
                // parts are there; 0: none is
    int there;  // how many of them are there
    int others; // folders of parts of other numbers
};

void part_folders_find(const char *output, struct part_folders *found);

// Tell of each file that a part has a report for, as its manifest's first line names it.
void part_folder_reports(const char *folder, void (*tell)(void *opaque, const char *file),
                         void *opaque);

// Read the counts of a part that is there from the end of its manifest: true, and *ledger, if they
// can be read.
bool part_folder_ledger(const char *folder, struct sluice_ledger *ledger);
