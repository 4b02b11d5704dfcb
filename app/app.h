// The program: settings, commands, and the parts of a running job's surroundings.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "app/jobs/figures.h"
#include "app/jobs/jobs.h"
#include "app/json.h"
#include "app/service/exit.h"
#include "page/page.h"
#include "sluice/sluice.h"

// Modes of the sandbox: what becomes of the run where the kernel lacks a part of it.
enum sandbox_mode {
    SANDBOX_AUTO, // it goes on without that part
    SANDBOX_ON,   // it ends
    SANDBOX_OFF,  // there is no sandbox
};

struct option_row;

enum { VERB_OPTIONS = 64 }; // more are not looked at

// Settings: everything that the command line asks for.
struct settings {
    struct sluice_config config;
    struct sluice_chain *parsed; // config.chain and config.changes
    const char *json;            // NULL: none
    const char *chart;           // `sluice bench`: an SVG file; NULL: none
    int jobs;                    // at once, JOBS_AUTO; 0: the output is made in one piece
    bool resume;
    bool quiet, verbose, strict, quick, ladder;
    const char *topic; // the word behind stages, help or ctl; NULL: none
    char **word;       // of commands that take several: those behind the topic, ended by NULL;
                       // farm: those behind "--"
    int words;
    const struct option_row
        *verb_option[VERB_OPTIONS]; // those given that are of some verbs of farm
    int verb_options;
    int64_t samples, seed;                  // `sluice audit`, farm: frames, 0 all; 0 any
    const char *control, *journal, *replay; // NULL: none
    enum sandbox_mode sandbox;
    const char **allowed; // --allow: folders
    int allowed_count;
    const char *page_address, *listen; // addresses: --page's, `sluice serve`'s; NULL: none
    const char *media, *token, *tls_cert, *tls_key; // the page's; NULL: none
    double keep;                                    // likewise; 0: the page's own
    int64_t upload_max;
    char *uploads; // an empty folder for the page, which removes it; NULL: none was made
    const char *reserved_outputs[4]; // the files that a run writes besides, ended by NULL
    const char *reserved_inputs[2];  // likewise that it reads
    struct sluice_file *journal_file;
    struct page *page; // NULL: none
    bool page_told;
    struct log page_log; // takes its own messages
    bool journal_begun, journal_failed;
    bool never;                    // what exists is kept, whatever else is said
    struct sluice_change *changes; // --replay: the journal's
    int change_count;
    struct sluice_output *outputs; // all but the first, ended by one without a name
    int output_count;              // including the first
    const char **options;          // --option: the outputs' lists, each ended by NULL
    int option_count;
    // Options as they were given, with a space before each; NULL: none.
    char *typed, *typed_input, *typed_output;
    const char *page_option; // the last of the control page's that was given; NULL: none
    char **texts;            // arguments read from files and the environment
    int text_count;
    struct {
        int parts, at_once;
        const char *program, *engine, *image, *claim; // NULL: the usual
        bool dry_run;
        char **typed; // names and options of a part's run, in order, ended by NULL
        int count;
    } farm;
    char error[1024]; // the first one logged; "": none
};

// The commands, as commands[] of app/option.h lists them. Each returns the exit code.
enum command {
    COMMAND_FILTER,
    COMMAND_STAGES,
    COMMAND_PLAN,
    COMMAND_DOCTOR,
    COMMAND_BENCH,
    COMMAND_SERVE,
    COMMAND_CTL,
    COMMAND_JOIN,
    COMMAND_AUDIT,
    COMMAND_FARM,
    COMMAND_BISECT,
    COMMAND_HELP,
};
int filter_command(struct settings *settings);
int stages_command(struct settings *settings);
int plan_command(struct settings *settings);
int doctor_command(struct settings *settings);
int bench_command(struct settings *settings);
int help_command(struct settings *settings);
int tutorial_command(struct settings *settings); // `sluice bench --ladder`
int ctl_command(struct settings *settings);
int serve_command(struct settings *settings);
int join_command(struct settings *settings);
int audit_command(struct settings *settings);
int farm_command(struct settings *settings);
int bisect_command(struct settings *settings);

// Check that the options of --jobs go with each other. -1: yes; else the exit code, after a sentence.
int options_check_jobs(const struct settings *settings);

// Make the output in parts by several jobs at once, and join them: `sluice INPUT OUTPUT --jobs N`.
// Returns the exit code.
struct watcher;
int run_jobs(struct settings *settings, struct watcher **watcher);

// Check that the options of the control page go with the command and with each other. -1: yes; else
// the exit code, after a sentence.
int options_check_page(const struct settings *settings, enum command command);

// A copy of the arguments, ended by NULL; the secrets among them are asterisks for `ps` from here
// on. NULL without memory. The caller frees it, behind what refers to it.
char **arguments_take(int argc, char **argv);

// The text that an argument stands for: the one in a file ("@FILE") or in a variable of the
// environment ("env:NAME"), unless there is a file of that very name; any other is itself. NULL,
// with a sentence, if there is no such text. Lives as long as the settings.
const char *argument_text(struct settings *settings, const char *argument);

// Enter the sandbox, where the command has one (app/sandbox_rules.c). Ahead of every other thread, and
// of all that opens what the command line names. -1: go on; else the exit code, after a sentence.
int sandbox_begin(struct settings *settings, enum command command);

// Explain a sentence about a file that cannot be opened, where the sandbox is the reason: a sentence to
// follow it; NULL: it is not.
const char *sandbox_explain(const char *sentence);

// Print what the kernel has for the sandbox, a line.
void sandbox_print(FILE *to);

// Print the capture devices. Returns the exit code.
int list_devices(void);

// Read the command line. Returns -1 to go on, else the exit code: after --help, --version and
// mistakes everything is said already. settings_finish() frees.
int settings_parse(int argc, char **argv, enum command *command, struct settings *settings);
void settings_finish(struct settings *settings);

// ---- help ----

// The command lines that there are, a line each.
void print_usage(FILE *to);

// Print words on standard output, in lines of 80 columns that begin behind `indent` spaces; the
// cursor is at `column`.
void print_wrapped(int column, int indent, const char *text);

// Print a stage in full, or "all" of them; false: there is none of that name.
bool print_stages(const char *name);

// Texts about stages, from the library's tables: "gaussian=sigma:[radius]:[border]"; the values
// that an option takes, "0.1 .. 250 pixels" or "luma|mean"; its default, "" where it is required.
void stage_signature(int index, char *to, size_t size);
void stage_values(const struct sluice_option_info *option, char *to, size_t size);
void stage_default(const struct sluice_option_info *option, char *to, size_t size);

// ---- many machines ----

struct farm;

// Add a name, or an option, of `sluice farm` to the command line of its parts. -1: go on; else the
// exit code: an option that parts do not take is refused with a sentence.
int farm_note_name(struct settings *settings, const char *name);
int farm_note_option(struct settings *settings, const struct option_row *row, const char *text);
// -1; or the exit code, with a sentence, where an option is of other verbs than settings->topic.
int farm_check_options(const struct settings *settings);

// Write the words that may stand behind `sluice farm`, separated by spaces.
void farm_write_verbs(FILE *to);

// Print how a farm stands. Returns the exit code.
int farm_print_status(const struct settings *settings, const struct farm *farm);

// ---- a running job ----

// Write settings->journal, read settings->replay; false with a sentence. journal_changed() is the
// job's callback, with the settings: the first line gives the file its name, and journal_close()
// leaves nothing where none came.
bool journal_open(struct settings *settings);

// The run begins anew: what was written so far does not count.
bool journal_begin_again(struct settings *settings);

bool journal_close(struct settings *settings);
bool journal_read(struct settings *settings);
void journal_changed(void *settings, int64_t pts_us, const char *chain);

// Open the control page, settings->page, if `address` is not NULL. A failure was told. Signals are blocked by
// then. show_stop() closes it.
//
// show_tell() prints where the page is on `to`, flushed; nothing without a page, or once it was told.
enum sluice_status show_start(struct settings *settings, const char *address);
void show_tell(struct settings *settings, FILE *to);
void show_stop(struct settings *settings);

// True if the input is a file, there or not: it is opened before the page is told of, so that a mistake in
// its name is all that is told. Addresses, devices and pipes may keep a run waiting, which the page shows.
bool show_opens_first(const struct settings *settings);

// The callbacks of a job that may be shown, with the settings: to the terminal or the journal, and
// to the page.
void show_log(void *settings, enum sluice_log_level level, const char *sentence);
void show_changed(void *settings, int64_t pts_us, const char *chain);

// The end of a run: its exit code; and its summary, printed and written as JSON as the settings say,
// which returns `code`, or EXIT_OUTPUT where the JSON cannot be written. `signal` is the one that
// has stopped it, 0 without.
extern const char strict_failure[]; // the sentence behind exit code 1 of a run that is whole
int run_exit_code(const struct figures *figures, enum sluice_status status,
                  const struct settings *settings, int signal);
int run_report(const struct figures *figures, enum sluice_status status,
               const struct settings *settings, int code);

// ---- the terminal ----

// Take the first error logged so far, "" without, so that the next one is the first again.
void terminal_take_error(struct settings *settings, char *to, size_t size);

// The log callback; `opaque` is a struct settings. Also clears a progress line that stands there,
// and remembers the first error.
void terminal_log(void *opaque, enum sluice_log_level level, const char *sentence);

// A line about a running job on standard error, from a thread of its own: every half second in
// place on a terminal that takes escape codes, every second as a new line elsewhere. NULL
// settings->quiet: none.
// read() tells of `run`; any thread may call it.
struct progress;
struct progress *progress_start(figures_read *read, const void *run,
                                const struct settings *settings);
void progress_stop(struct progress **progress);

// The closing summary, for people and, into settings->json, for machines; `figures` is NULL if the
// run never began. write_json() returns false, with a sentence on standard error, if the file
// cannot be written.
void print_summary(const struct figures *figures, const struct settings *settings, FILE *to);
bool write_json(const struct settings *settings, const struct figures *figures,
                enum sluice_status status, int exit_code);

// Write JSON to settings->json, "-" being standard output, and free it. False with a sentence if
// that fails, or if *root is NULL, without memory.
bool dump_json(json_t **root, const struct settings *settings);

// Write a whole file, by the rules of outputs; false with a sentence if that fails.
bool write_file(const struct settings *settings, const char *file, const char *text, size_t size);

// End a chart and write it to settings->chart; false with a sentence if that fails.
struct svg;
bool write_chart(struct svg *svg, const struct settings *settings);
