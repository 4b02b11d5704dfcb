// The options of the command line, a row each: the parser, `sluice help`, the manual pages and the
// completions of shells read nothing else. A section of them is a file, options_*.c.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"

struct option_row;

enum value_type {
    VALUE_TEXT,    // const char *
    VALUE_FLAG,    // bool, set by an option without a value
    VALUE_INT,     // int in min .. max
    VALUE_INT64,   // int64_t in min .. max
    VALUE_SECONDS, // double: "5", "120ms", "10m", "1:30"
    VALUE_RATE,    // struct sluice_rate
    VALUE_CHOICE,  // an enum of the interface, one of `choices`
};

// The one thing that an option describes.
enum option_scope {
    SCOPE_RUN,    // the run, wherever the option stands
    SCOPE_OUTPUT, // the output named last before it, or the first output
    SCOPE_SIDE,   // the input before INPUT, the output behind it
};

// The files that shells offer for a value.
enum value_completion { COMPLETE_NOTHING, COMPLETE_FILES, COMPLETE_CHAIN };

enum { MAX_CHOICES = 5, MAX_OPTIONS = 128 };

// Sets of commands, of enum command in app/app.h: `FOR(PLAN) | FOR(DOCTOR)`.
#define FOR(command) (1U << COMMAND_##command)
#define FOR_ALL (~0U)
#define FOR_A_RUN (FOR(FILTER) | FOR(PLAN))                      // plan takes the line of a run
#define FOR_RUNS (FOR_A_RUN | FOR(BENCH) | FOR(SERVE))           // they filter INPUT
#define FOR_INPUTS (FOR_RUNS | FOR(DOCTOR))                      // they open INPUT
#define FOR_PROOFS (FOR(JOIN) | FOR(AUDIT) | FOR(BISECT))        // they read manifests
#define FOR_FILES (FOR_RUNS | FOR(CTL) | FOR(JOIN) | FOR(AUDIT)) // they write files
#define FOR_SANDBOXED (FOR_A_RUN | FOR(SERVE) | FOR_PROOFS)

struct choice {
    const char *name; // NULL ends the list
    unsigned value;   // VALUE_CHOICE: the enumerator
    const char *help;
};

// One option. Zero is the usual: all but name and help is optional.
struct option_row {
    const char *name;    // behind "--", and behind "-" if there is a colon in it, as ffmpeg's "c:v"
    char letter;         // behind "-"
    unsigned commands;   // those on which it has an effect; 0: its section's. Others refuse it
    const char *instead; // what they have for it: "serve has --listen ADDRESS"
    enum value_type type;
    enum option_scope scope;
    size_t offset;        // the member, in struct settings or, but for SCOPE_RUN, in sluice_output
    size_t input_offset;  // SCOPE_SIDE: the member in struct settings, before INPUT
    const char *argument; // the value's name; NULL: the option takes no value
    const char *implied;  // the value when it is left out; NULL: it must not be
    double min, max;      // inclusive, of VALUE_INT and VALUE_INT64
    bool positive;        // VALUE_SECONDS: more than 0
    struct choice choices[MAX_CHOICES + 1]; // the only values; of VALUE_TEXT, too
    const char *wanted;    // what the value is, in messages; NULL: as type, range or choices say
    const char *initial;   // what holds without the option, for people
    const char *help;      // a line; NULL: a former name, which is parsed but not shown
    const char *details;   // the manual's: sentences, paragraphs between newlines
    const char *suggested; // values that shells offer, among others
    enum value_completion completes;
    bool indirect; // "@FILE" and "env:NAME" stand for the value
    bool secret;   // the value is shown nowhere
    bool repeats;  // may be given several times
    // Instead of reading the value by type: do something with it. -1: go on; else the exit code.
    int (*set)(struct settings *settings, const struct option_row *row, const char *text);
};

// The row's members `type` and `offset`, for a member of struct settings or of struct
// sluice_output.
#define VALUE_TYPE(structure, member) \
    _Generic(((struct structure *)0)->member,            \
                 const char *: VALUE_TEXT,               \
                 bool: VALUE_FLAG,                       \
                 int: VALUE_INT,                         \
                 int64_t: VALUE_INT64,                   \
                 double: VALUE_SECONDS,                  \
                 struct sluice_rate: VALUE_RATE,         \
                 unsigned: VALUE_CHOICE /* any enum */)
#define OF_RUN(member) \
    .type = VALUE_TYPE(settings, member), .offset = offsetof(struct settings, member)
#define OF_OUTPUT(member)                                             \
    .type = VALUE_TYPE(sluice_output, member), .scope = SCOPE_OUTPUT, \
    .offset = offsetof(struct sluice_output, member)
#define OF_SIDE(input, output)                                      \
    .type = VALUE_TYPE(sluice_output, output), .scope = SCOPE_SIDE, \
    .offset = offsetof(struct sluice_output, output),               \
    .input_offset = offsetof(struct settings, input)

struct option_section {
    const char *name;              // `sluice help NAME` shows it
    unsigned commands;             // those of options that do not name theirs; not 0
    const char *title;             // a heading
    const char *about;             // (optional) sentences below it
    const struct option_row *rows; // ended by one without a name
};

// The sections, in the order of the help, ended by NULL.
extern const struct option_section *const option_sections[];

// Option number `index` from 0, of all sections; NULL past the last.
const struct option_row *option_at(int index);

// The option of this name or letter, with or without dashes; NULL: there is none.
const struct option_row *option_find(const char *name);

// True if the option has an effect on the command. `sluice farm` looks for itself (app/farm_line.c), as
// its parts have options, too.
bool option_is_for(const struct option_row *row, enum command command);

// Refuse an option that has no effect on the command: a sentence that says which commands have it.
// Returns the exit code.
int option_refuse(const struct option_row *row, enum command command);

// True if the option is spelled with one dash: "-c:v".
bool option_has_one_dash(const struct option_row *row);

// Store `text` (NULL: the implied value) where the row says. -1: go on; else the exit code, after a
// sentence on standard error.
int option_set(const struct option_row *row, struct settings *settings, const char *text);

// Add an option that says how frames are read, filtered or written to settings->typed, as a shell
// would read it and without secrets; others are left out. Called with the options in their order.
void option_note_typed(const struct option_row *row, struct settings *settings, const char *text);

// The values that the option takes, for messages: "auto, cuda, cpu or scalar".
void option_wanted(const struct option_row *row, char *to, size_t size);

// Notes beside the option's help and details: its scope, its range, whether it repeats, whose it is;
// sentences, "" where there is nothing to say.
void option_notes(const struct option_row *row, char *to, size_t size);

// The rows' own setters.
int set_bitrate(struct settings *settings, const struct option_row *row, const char *text);
int set_bytes(struct settings *settings, const struct option_row *row, const char *text);
int set_crf(struct settings *settings, const struct option_row *row, const char *text);
int set_jobs(struct settings *settings, const struct option_row *row, const char *text);
int set_memory(struct settings *settings, const struct option_row *row, const char *text);
int set_reconnect(struct settings *settings, const struct option_row *row, const char *text);
int set_shard(struct settings *settings, const struct option_row *row, const char *text);
int set_size(struct settings *settings, const struct option_row *row, const char *text);
int set_stream(struct settings *settings, const struct option_row *row, const char *text);
int set_token(struct settings *settings, const struct option_row *row, const char *text);
int add_allowed(struct settings *settings, const struct option_row *row, const char *text);
int add_output(struct settings *settings, const struct option_row *row, const char *text);
int add_output_option(struct settings *settings, const struct option_row *row, const char *text);
int show_devices(struct settings *settings, const struct option_row *row, const char *text);
int show_version(struct settings *settings, const struct option_row *row, const char *text);
int show_help(struct settings *settings, const struct option_row *row, const char *text);

// ---- what the command line says besides options ----

struct command_row {
    const char *name; // NULL: `sluice INPUT OUTPUT`
    const char *arguments;
    const char *help;
    const char *details;
    bool topical;   // its first word is settings->topic, no input
    bool wordy;     // ... and further ones are settings->word
    bool no_output; // INPUT is the only other name
    int (*run)(struct settings *settings);
};

// By enum command, ended by a row without help.
extern const struct command_row commands[];

// The command of this name, or NULL.
const struct command_row *command_find(const char *name);

// Texts of the help and the manual.
struct manual_row {
    const char *name, *help;
    const char *brief; // (optional) a word or two
};
extern const char manual_about[], stages_about[];
extern const struct manual_row manual_operands[], manual_exit_codes[], manual_environment[],
    manual_examples[]; // each ended by a row without a name
