// Chain text, as ffmpeg users know it: name=value:value:key=value,name,...
//
// Values come in the order of the stage's option table, or by name after those; where the first
// option takes many, all without a name are its. Spaces around names, values and separators mean
// nothing. An empty chain has no stages. Quotes, '...' or "...", protect what stands between them,
// as in ffmpeg; they are taken off.
//
// Names that are ffmpeg's alone are read as what does the same here to one code value, and refused
// with what to write where nothing does (chain/aliases.h). chain_text() has the names of stages.
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "stages/pattern.h"
#include "stages/stage.h"

// The chain where none is given: an edge video.
#define CHAIN_DEFAULT "gray,gaussian=1.4,sobel,threshold=20:240"

struct chain_link {
    const struct stage *stage;
    void *options;              // of the stage's type; the chain's, with their texts and patterns
    char *given[STAGE_OPTIONS]; // texts that may be read from a file, as they were given
    char *alias;                // "avgblur=3 is box=3": of the first link that a filter of ffmpeg
                                // became; NULL: it was written as it is
};

struct chain {
    struct chain_link *link;
    int links;
    const struct picture_reader *reader; // of what chain_set() names
};

// Why a text is no chain: a sentence, and the part of the text that it is about.
struct chain_error {
    char message[512];
    int position, length; // bytes
};

// Says which texts a stranger's chain may have. Asked of each before anything that it names is opened.
struct chain_guard {
    // True if *text, which is one of those of an option that takes many, may be the option's; false with
    // the sentence `why`. *text may become another one, the guard's, that it stands for.
    bool (*admits)(const struct chain_guard *guard, const struct stage *stage,
                   const struct stage_option *option, const char **text, char *why, size_t size);
};

// Read `text`, and by `reader` (optional: then there can be none) the pictures that it names. On
// success the caller owns *chain; on STATUS_USAGE *error says why, STATUS_MEMORY says itself.
// `error` is not optional. `reader` outlives the chain and its copies.
enum status chain_parse(const char *text, const struct picture_reader *reader, struct chain *chain,
                        struct chain_error *error);

// Readers and guards of a text.
struct chain_source {
    const struct picture_reader *reader; // (optional)
    const struct chain_guard *guard;     // (optional)
    // Pictures that one of these has by the same names are shared with it, not read again. They have the
    // same reader.
    const struct chain *others;
    int count;
};

// The same as chain_parse().
enum status chain_parse_from(const char *text, const struct chain_source *source,
                             struct chain *chain, struct chain_error *error);
void chain_free(struct chain *chain);

// True if the chain does nothing: pictures pass as they are.
bool chain_is_empty(const struct chain *chain);

// Set options of the stages, all or none: "gaussian.sigma=2.5, threshold.t1=30". Of several stages
// with one name the first is meant, or number n of them: "gaussian#2.sigma=1". Refused like a text
// that is no chain.
enum status chain_set(struct chain *chain, const char *text, struct chain_error *error);

// The same for a stranger.
enum status chain_set_guarded(struct chain *chain, const struct chain_guard *guard,
                              const char *text, struct chain_error *error);

// A text that reads as this chain. The caller frees it; NULL without memory.
char *chain_text(const struct chain *chain);

// A line for each of ffmpeg's filters in the text: what it became.
void chain_print_aliases(const struct chain *chain, FILE *to);

// Make *to a copy, which the caller owns.
enum status chain_copy(const struct chain *chain, struct chain *to);

// A file that a stage of the chain writes.
struct chain_file {
    const struct stage *stage;
    const struct stage_option *option;
    const char *name; // the chain's; NULL: the stage records, but into no file
};

// The files of a kind, in the order of the chain. Returns their number; the first `max` of them are
// in `list`.
int chain_files(const struct chain *chain, enum option_writes writes, struct chain_file *list,
                int max);

// Let file number `index` of those that chain_files() lists as records be another one. STATUS_MEMORY
// is the only failure, and leaves it as it was. A record without a file stays without.
enum status chain_redirect(struct chain *chain, int index, const char *name);

// Leave out all links behind the first `links` of them; below 0, or as many as there are: none.
void chain_truncate(struct chain *chain, int links);

// Make the chain write nothing: tees are removed, and records go into no file.
void chain_mute(struct chain *chain);

// True if `chain` writes the same files as `like`, in their order: what is open stays open when one
// takes over from the other. Stages that record into no file come and go. If not, *error says so. Names without their secrets, as a journal has
// them, are the same as those with.
bool chain_writes_alike(const struct chain *chain, const struct chain *like,
                        struct chain_error *error);

// The same as chain_parse(), with CHAIN_DEFAULT for a NULL text and a described error in the log.
enum status chain_parse_logged(const char *text, const struct picture_reader *reader,
                               const struct log *log, struct chain *chain);

// Log the error, described.
void chain_error_log(const struct chain_error *error, const char *text, const struct log *log);

// The message with the text below it and the part marked, three lines without a last newline. Cut
// to `size` bytes. Secrets of the text's addresses are asterisks (secrets.h).
void chain_error_describe(const struct chain_error *error, const char *text, char *buffer,
                          size_t size);

// Decode the templates that its stages look for, where that was not done yet. STATUS_USAGE, with a
// sentence, for what is none, or has more than `max_pixels` (0: any).
enum status chain_load(const struct chain *chain, int64_t max_pixels, const struct log *log);

// The templates that a stage looks for; NULL: none. The chain's.
struct pattern_set *chain_patterns(const struct chain_link *link);

// Lower every link in order, with its templates.
enum status chain_lower(const struct chain *chain, struct program *program);
