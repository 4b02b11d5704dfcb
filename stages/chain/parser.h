// Parts of a chain text, and why they are wrong: what the files of this folder share.
//
// Functions that return enum status have filled in the parser's error when that is STATUS_USAGE.
#pragma once

#include "stages/chain.h"

// A part of the text: [begin, end). A `begin` of NULL: there is none.
struct span {
    const char *begin, *end;
};

struct parser {
    const char *text;
    struct chain_source source;
    struct chain_error *error;
    char *shown; // the text with its secrets blanked, of the same length
    bool gray;   // what was read so far leaves one plane of full range, whatever comes in
};

// ---- spans.c ----

enum status parser_init(struct parser *parser, const char *text, const struct chain_source *source,
                        struct chain_error *error);
void parser_finish(struct parser *parser);

// Set the error: this part of the text is wrong. Returns STATUS_USAGE.
__attribute__((format(printf, 3, 4))) enum status parser_refuse(struct parser *parser,
                                                                struct span span,
                                                                const char *format, ...);

// Set the error, and return STATUS_MEMORY.
enum status parser_out_of_memory(struct parser *parser);

// STATUS_USAGE if a quote of the text has no end.
enum status parser_check_quotes(struct parser *parser);

// A span as messages may show it, of the same length.
const char *parser_shown(const struct parser *parser, struct span span);

struct span span_of(const char *text);
int span_length(struct span span);
bool span_is(struct span span, const char *word);

// Without the spaces around it.
struct span span_trimmed(struct span span);

// Without the quotes around it, if it has any.
struct span span_bare(struct span span);

// Cut off and return the part before the first `separator` outside of quotes, or all. `rest` begins
// after it, or is NULL at its begin when there was none.
struct span span_cut(struct span *rest, char separator);

// A copy without its quotes. The caller frees it; NULL without memory.
char *span_unquoted(struct span span);

// ---- suggest.c ----

// "did you mean 'gaussian'? ": the nearest of the words that were offered.
struct nearest {
    const char *word;
    int distance;
};

void nearest_offer(struct nearest *best, struct span wrong, const char *word);

// The question, or "", in `buffer`, which is returned.
const char *nearest_question(struct nearest best, char *buffer, size_t size);

// ---- aliases.c: ffmpeg's filters ----

// True if a name is one of ffmpeg's that is known here. Stages of that name come first.
bool alias_is(struct span name);

// The text of the chain that does what a filter of ffmpeg does, which the caller frees.
// STATUS_USAGE where none does the same: the error says what to write. Sets parser->gray.
enum status alias_translate(struct parser *parser, struct span filter, char **text);

// Say what parser->gray is behind a stage, when it was `gray` before.
bool alias_gray_behind(struct span stage, bool gray);

// The words to write instead of an option which a stage has in ffmpeg only; NULL: it is none.
const char *alias_foreign_option(const struct stage *stage, struct span key);

// ---- values.c ----

// Read a value of option number `index` into the link. What it had before is freed.
enum status parse_value(struct parser *parser, struct span span, struct chain_link *link,
                        int index);

// ---- files.c ----

// True if the stage writes files of this kind.
bool link_writes(const struct chain_link *link, enum option_writes writes);

// ---- link.c ----

// The number of a row as a double, NAN while it is derived; and its set. Not of texts.
double member_value(const struct stage_option *option, const void *options);
void member_set(const struct stage_option *option, void *options, double value);

// The member that holds a text, and the one that holds its pictures.
char **member_text(const struct stage_option *option, void *options);
struct pattern_set **member_patterns(const struct stage_option *option, void *options);

// Options of a stage with their initial values. STATUS_MEMORY is the only failure.
enum status link_init(struct chain_link *link, const struct stage *stage);
void link_finish(struct chain_link *link);
enum status link_copy(const struct chain_link *from, struct chain_link *to);
