#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "stages/chain/parser.h"

int span_length(struct span span)
{
    return (int)(span.end - span.begin);
}

struct span span_of(const char *text)
{
    return (struct span){text, text + strlen(text)};
}

bool span_is(struct span span, const char *word)
{
    return strlen(word) == (size_t)span_length(span) &&
           !memcmp(word, span.begin, (size_t)span_length(span));
}

struct span span_trimmed(struct span span)
{
    while (span.begin < span.end && isspace((unsigned char)*span.begin))
        span.begin++;
    while (span.end > span.begin && isspace((unsigned char)span.end[-1]))
        span.end--;
    return span;
}

// The quote that a character leaves open: `open` before it, 0 for none.
static char quote_after(char open, char character)
{
    if (open)
        return character == open ? 0 : open;
    return character == '\'' || character == '"' ? character : 0;
}

struct span span_bare(struct span span)
{
    bool quoted = span_length(span) > 1 && quote_after(0, *span.begin) == span.end[-1];
    return quoted ? (struct span){span.begin + 1, span.end - 1} : span;
}

struct span span_cut(struct span *rest, char separator)
{
    assert(rest->begin && rest->begin <= rest->end);
    const char *at = rest->begin;
    for (char open = 0; at < rest->end && (open || *at != separator); at++)
        open = quote_after(open, *at);
    struct span part = {rest->begin, at};
    rest->begin = at < rest->end ? at + 1 : NULL;
    return part;
}

char *span_unquoted(struct span span)
{
    char *copy = malloc((size_t)span_length(span) + 1), *to = copy, open = 0;
    if (!copy)
        return NULL;
    for (const char *at = span.begin; at < span.end; at++) {
        char next = quote_after(open, *at);
        if (next == open)
            *to++ = *at;
        open = next;
    }
    *to = 0;
    return copy;
}

// ---- the parser ----

enum status parser_init(struct parser *parser, const char *text, const struct chain_source *source,
                        struct chain_error *error)
{
    *parser = (struct parser){text, *source, error, strdup(text)};
    *error = (struct chain_error){0};
    if (!parser->shown)
        return STATUS_MEMORY;
    secrets_blank(parser->shown, SECRETS_IN_CHAIN);
    return STATUS_OK;
}

void parser_finish(struct parser *parser)
{
    free(parser->shown);
    parser->shown = NULL;
}

const char *parser_shown(const struct parser *parser, struct span span)
{
    return parser->shown + (span.begin - parser->text);
}

enum status parser_refuse(struct parser *parser, struct span span, const char *format, ...)
{
    assert(span.begin >= parser->text && span.end >= span.begin);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->error->message, sizeof parser->error->message, format, arguments);
    va_end(arguments);
    parser->error->position = (int)(span.begin - parser->text);
    parser->error->length = span_length(span);
    return STATUS_USAGE;
}

enum status parser_out_of_memory(struct parser *parser)
{
    snprintf(parser->error->message, sizeof parser->error->message, "out of memory");
    return STATUS_MEMORY;
}

// The quote that never ends, or NULL.
static const char *find_open_quote(const char *text)
{
    const char *begin = NULL;
    char open = 0;
    for (; *text; text++) {
        char next = quote_after(open, *text);
        if (next && !open)
            begin = text;
        open = next;
    }
    return open ? begin : NULL;
}

enum status parser_check_quotes(struct parser *parser)
{
    const char *open = find_open_quote(parser->text);
    if (!open)
        return STATUS_OK;
    return parser_refuse(parser, (struct span){open, open + strlen(open)},
                         "the quote that begins here does not end");
}
