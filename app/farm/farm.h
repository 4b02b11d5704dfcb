// Farm: one output that is made in parts, by tasks of an engine that there is, then joined and
// audited. What is to be done stands in a folder beside the output, for whoever asks later how it
// stands, or goes on with it:
//
//   out.mp4.farm/
//     farm.json                  what is made of what, and how its jobs are called
//     part.sh, join.sh, audit.sh what tasks run
//     part-17.log, join.log ...  what they have said
//     part-17.exit, join.exit    the exit code of the last try; of a part only if it failed
//     refused/                   parts that were there, and were not what they should be
//
// The engine schedules; a farm only says what is to be run, and looks at what came of it. That a
// part is done says its folder (OUT.part-17-of-64), and nothing else.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "sluice/sluice.h"

enum { FARM_PATH = 4400, FARM_NAME = 4000 }; // bytes of a path beside OUT, and of OUT itself

// What is made. Zero is the usual of all but the names.
struct farm_request {
    const char *program; // as tasks call sluice
    const char *folder;  // where tasks run: absolute; other names count from it
    const char *input, *output;
    const char *const *word;   // the command line of a part but for --shard, ended by NULL
    const char *const *option; // for the engine, ended by NULL
    int parts;
    int at_once;     // tasks; 0: no limit
    int64_t samples; // of the audit; 0: all frames
};

// The names are of farm.json, and live as long as it does.
struct farm {
    json_t *root;
    const char *program, *folder, *input, *output;
    const char *file; // the output, without what says how it is written ("hash:", "file:")
    const json_t *words, *options;
    int parts, at_once;
    json_int_t samples;
    const char *tag; // in the names of its jobs, and of no other farm's
};

// Describe one, with a tag of its own. SLUICE_STATUS_USAGE, with a sentence: its output is no file. farm_finish() in
// either case.
enum sluice_status farm_init(const struct farm_request *request, struct farm *farm);
void farm_finish(struct farm *farm);

// Read the farm of an output, and go to the folder in which its tasks run: SLUICE_STATUS_END if
// there is none, without a word; SLUICE_STATUS_INPUT, with a sentence, if it cannot be read.
enum sluice_status farm_load(const char *output, struct farm *farm);

// A farm of which only the folders of parts are known, by their names: SLUICE_STATUS_INPUT, with a
// sentence, if there are none, or parts of several numbers.
enum sluice_status farm_guess(const char *output, struct farm *farm);

// Write farm.json, whole or not at all; farm_write() another text, over what is there. Of config
// count `log` and `opaque`.
enum sluice_status farm_store(const struct farm *farm, const struct sluice_config *config);
enum sluice_status farm_write(const struct sluice_config *config, const char *name,
                              const char *text);

// "OUT.farm/NAME", of a name printed as by printf. Returns `to`.
__attribute__((format(printf, 3, 4))) char *farm_path(const struct farm *farm, char to[FARM_PATH],
                                                      const char *name, ...);

// "OUT.part-17-of-64". Returns `to`.
char *farm_part(const struct farm *farm, int part, char to[FARM_PATH]);

// The file that an output is: "hash:out.txt" is out.txt.
const char *farm_file_of(const char *output);
