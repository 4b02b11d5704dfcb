// A stage: what users name in a chain (`gaussian=1.4`). Its table of options is the one source of
// the parser, the help, the documents and the tests; `lower` says what it means, in operations.
//
// A stage file holds the stage's options as a struct, functions on it, and one `const struct
// stage`, which stages.c lists:
//
//     struct gaussian { double sigma; int radius; enum border border; };
//
//     .size = sizeof(struct gaussian),
//     .option = {OPTION(struct gaussian, sigma, .unit = "pixels", .min = 0.1, ...), ...},
#pragma once

#include <math.h>
#include <stddef.h>

#include "plan/program.h"

enum { STAGE_OPTIONS = 8 };

enum option_type {
    OPTION_REAL,   // double: any number in min .. max
    OPTION_INT,    // int: a whole number in min .. max
    OPTION_CHOICE, // an enumeration from 0 on: one of `choices`
    OPTION_TEXT,   // char *: any text, in quotes where it holds separators; the chain's
};

// A file that a stage writes while frames are filtered.
enum option_writes {
    WRITES_NOTHING,
    WRITES_RECORDS,  // the analysis of each frame by the stage's operations
    WRITES_PICTURES, // the picture at this place: a further output
};

// A row of a stage's option table, of which OPTION() sets the first three members.
//
// An option that was not given has its initial value. One that is `derived` has none: it is NAN,
// -1 or NULL, by its type, and the stage computes it. Texts have none either.
struct stage_option {
    const char *name; // NULL ends the table
    enum option_type type;
    size_t offset; // of the member

    const char *help;    // one sentence without a full stop
    const char *unit;    // "code values", "pixels"; of a text its content; NULL: a plain number
    bool required;       // it has to be given
    double initial;      // of a choice its number
    double min, max;     // inclusive; not of choices
    const char *choices; // "luma|mean"
    const char *derived; // the initial value in words, when it follows from other options

    // (optional) Texts: turn the given text into the one that the chain keeps, which means the same
    // everywhere and for ever: a file becomes its content. The caller frees the result. NULL, with
    // the reason in `why`, as "it has no rows", if the text is wrong; NULL without one if memory
    // ran out.
    char *(*resolve)(const char *text, char *why, size_t size);

    // Texts, first row only: the option takes all values without a name, each resolved by itself,
    // and has them joined by newlines.
    bool many;

    // (optional) Texts that are `many`: whether all of them together are right. If not, the reason
    // is in `why`, as above.
    bool (*accept)(const char *texts, char *why, size_t size);

    // Texts that name a file which the stage writes: its content. One row a stage. The job opens
    // the file and keeps it open; records without a file are dropped.
    enum option_writes writes;
    const char *beside; // (optional) there is a second file, of this name with this suffix

    // Texts that name files of pictures: the offset of a `struct pattern_set *` (pattern.h), which
    // is read with the text and decoded before lower() is called; the chain's. 0: no pictures.
    size_t patterns;
};

// A row for member `m` of the options `s`, whose type is the member's:
//
//     OPTION(struct box, radius, .unit = "pixels", .required = true, .min = 1, .max = 16384, ...)
#define OPTION(s, m, ...) OPTION_AS(s, m, #m, __VA_ARGS__)

// The same, of another name than the member's.
#define OPTION_AS(s, m, name_, ...)                                                            \
    {                                                                                          \
        .name = name_, .type = OPTION_TYPE(((s *)0)->m), .offset = offsetof(s, m), __VA_ARGS__ \
    }
#define OPTION_TYPE(member) \
    _Generic((member), double: OPTION_REAL, int: OPTION_INT, char *: OPTION_TEXT, \
             default: OPTION_CHOICE)

// The last row of every stage with a neighbourhood, an enum border.
#define OPTION_BORDER(s, m)                                    \
    OPTION_AS(s, m, "border", .initial = BORDER_REPLICATE,     \
              .choices = "replicate|zero|reflect|mirror|wrap", \
              .help = "what lies beyond the edges")

// A row for an enum sign.
enum sign { SIGN_ABSOLUTE, SIGN_SIGNED };
#define OPTION_SIGN(s, m)                                                           \
    OPTION_AS(s, m, "sign", .initial = SIGN_ABSOLUTE, .choices = "absolute|signed", \
              .help = "the size alone, or about mid-gray")

struct stage {
    const char *name;
    const char *alias;   // (optional) a former name, which is parsed alike
    const char *summary; // one line for the list of stages
    const char *formula; // its arithmetic, in full-range 8-bit code values
    const char *source;  // paper, standard or book; NULL when the formula says all
    size_t size;         // of the options; 0: there are none
    struct stage_option option[STAGE_OPTIONS + 1];

    // (optional) Whether options that are right by their rows fit each other. If not, the reason is
    // in `why`, as a sentence.
    bool (*fits)(const void *options, char *why, size_t size);

    // Append the operations that the stage stands for. The options are right by the table, and
    // belong to the chain, which the program may outlive.
    void (*lower)(const void *options, struct program *program);
};

// Every stage, in the order of the help, ended by NULL.
extern const struct stage *const stages[];

// The stage of this name, or NULL.
const struct stage *stage_find(const char *name, size_t length);

// How many options a stage has, and how many choices an option.
int stage_options(const struct stage *stage);
int stage_option_choices(const struct stage_option *option);

// The value before one is given, as a number: NAN where it is required or derived, and for texts.
double stage_option_initial(const struct stage_option *option);

// "0 .. 255 pixels", "luma|mean", "rows of numbers": what an option takes, for help and messages.
void stage_option_range(const struct stage_option *option, char *buffer, size_t size);
