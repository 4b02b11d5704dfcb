// A stage: what users name in a chain (`gaussian=1.4`). Its table is the one source of the parser,
// the help, the documentation and the tests; `lower` says what it means, in operations.
//
// A stage file holds one `const struct stage`, listed in stages.c, and nothing else is needed.
#pragma once

#include <math.h>

#include "plan/program.h"

enum { STAGE_OPTIONS = 8 };

enum option_type {
    OPTION_REAL,   // any number in min .. max
    OPTION_INT,    // a whole number in min .. max
    OPTION_CHOICE, // one of `choices`; the value is its index
    OPTION_TEXT,   // any text, in quotes where it holds what separates
};

// What a stage writes into a file of its own while frames are filtered.
enum option_writes {
    WRITES_NOTHING,
    WRITES_RECORDS,  // what its operations tell of each frame: their analysis
    WRITES_PICTURES, // the picture as it is there: a further output
};

// One row of a stage's option table. Values are doubles, except texts.
struct stage_option {
    const char *name; // NULL ends the table
    enum option_type type;
    const char *unit; // "code values", "pixels", or "" for a plain number; of a text what it says
    double initial;   // when not given; NAN: required, or derived if `derived` says how
    double min, max;  // inclusive
    const char *choices; // "luma|mean"
    const char *derived; // what stands for the initial value when it follows from other options
    const char *help;    // one sentence without a full stop

    // (optional) Of texts: turn what was given into what the chain keeps, which reads as the same
    // everywhere and for ever: a file becomes what is in it. The caller frees it. NULL when the
    // text is none, with the reason in `why`, as "it has no rows"; when memory ran out, without.
    char *(*resolve)(const char *text, char *why, size_t size);

    // Of a text that is the table's first row: it takes all the values without a name, each
    // resolved by itself. They reach lower() joined by newlines.
    bool many;

    // Of a text that names a file which the stage writes: what goes into it. One row a stage. The
    // job opens it and keeps it open; where none is given the stage's records go into none.
    enum option_writes writes;
    const char *beside; // (optional) there is a second file, its name with this behind

    // (optional) Of one that takes many: whether all together may be, as they reach lower(). If
    // not, the reason is in `why`, as resolve() has it.
    bool (*accept)(const char *texts, char *why, size_t size);

    // Of a text: it names files of pictures, which are read at once and are the program's
    // `templates` when lower() is called.
    bool pictures;
};

struct stage {
    const char *name;
    const char *alias;   // (optional) a former name, which is parsed alike
    const char *summary; // one line for the list of stages
    const char *formula; // what it computes, in full-range 8-bit code values
    const char *source;  // paper, standard or book; NULL when the formula says all
    struct stage_option option[STAGE_OPTIONS + 1];

    // (optional) Whether values that are valid by their rows fit each other. If not, the reason is
    // in `why`, as a sentence.
    bool (*fits)(const double *value, char *why, size_t size);

    // Append the operations that the stage stands for. `value` holds one number per option, in the
    // order of the table, valid by it; a derived one that was not given is NAN. `text` holds the
    // texts alike, resolved; of other options, and where none was given, NULL.
    void (*lower)(const double *value, const char *const *text, struct program *program);
};

// Every stage, in the order of the help, ended by NULL.
extern const struct stage *const stages[];

// The stage of this name, or NULL.
const struct stage *stage_find(const char *name, size_t length);

// The last row of every stage with a neighbourhood.
#define STAGE_BORDER                                                                 \
    {                                                                                \
        "border", OPTION_CHOICE, "", BORDER_REPLICATE, 0, BORDER_COUNT - 1,          \
            "replicate|zero|reflect|mirror|wrap", NULL, "what lies beyond the edges" \
    }
