#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/parser.h"

static enum status parse_choice(struct parser *parser, struct span span,
                                const struct stage_option *option, double *value)
{
    struct span choices = span_of(option->choices);
    for (int index = 0; choices.begin; index++) {
        struct span choice = span_cut(&choices, '|');
        bool same = span_length(choice) == span_length(span) &&
                    !memcmp(choice.begin, span.begin, (size_t)span_length(span));
        if (same) {
            *value = index;
            return STATUS_OK;
        }
    }
    return parser_refuse(parser, span, "%s is '%.*s'; it can be %s", option->name,
                         span_length(span), parser_shown(parser, span), option->choices);
}

static enum status parse_number(struct parser *parser, struct span span,
                                const struct stage_option *option, double *value)
{
    char digits[64], range[64], *end;
    snprintf(digits, sizeof digits, "%.*s", span_length(span), span.begin);
    *value = strtod(digits, &end);
    stage_option_range(option, range, sizeof range);
    if (end == digits || *end || !isfinite(*value))
        return parser_refuse(parser, span, "%s is '%.*s'; it takes a number, %s", option->name,
                             span_length(span), parser_shown(parser, span), range);
    if (option->type == OPTION_INT && *value != floor(*value))
        return parser_refuse(parser, span, "%s is %s; it takes a whole number, %s", option->name,
                             digits, range);
    if (*value < option->min || *value > option->max)
        return parser_refuse(parser, span, "%s is %s; the range is %s", option->name, digits,
                             range);
    return STATUS_OK;
}

// A text as messages show it: up to 60 bytes, and dots where it is longer.
static int shown_length(struct span span)
{
    return span_length(span) < 60 ? span_length(span) : 60;
}

static const char *dots(struct span span)
{
    return span_length(span) < 60 ? "" : "...";
}

// Let the guard, if there is one, look at a text, or put another one in its place. Frees the text where that is refused.
static enum status guard_text(struct parser *parser, struct span span, const struct stage *stage,
                              const struct stage_option *option, char **given)
{
    char why[512] = "";
    const struct chain_guard *guard = parser->source.guard;
    const char *text = *given;
    if (!guard || !*given)
        return STATUS_OK;
    bool admitted = guard->admits(guard, stage, option, &text, why, sizeof why);
    if (admitted && text == *given)
        return STATUS_OK;
    free(*given);
    *given = admitted ? strdup(text) : NULL;
    return admitted ? STATUS_OK : parser_refuse(parser, span, "%s", why);
}

// One text as the chain keeps it, which is the caller's.
static enum status resolve_text(struct parser *parser, struct span span, const struct stage *stage,
                                const struct stage_option *option, char **resolved)
{
    char why[256] = "", *given = span_unquoted(span);
    if (given && !*given && (!option->resolve || span.begin == span.end)) {
        free(given);
        return parser_refuse(parser, span, "a value is missing here");
    }
    enum status status = guard_text(parser, span, stage, option, &given);
    if (status)
        return status;
    *resolved = given;
    if (given && option->resolve) {
        *resolved = option->resolve(given, why, sizeof why);
        free(given);
    }
    if (!*resolved && !*why)
        return parser_out_of_memory(parser);
    if (!*resolved)
        return parser_refuse(parser, span, "%s is %.*s%s; %s", option->name, shown_length(span),
                             parser_shown(parser, span), dots(span), why);
    return STATUS_OK;
}

// "a" and "b" become "a\nb". Takes both; NULL without memory.
static char *joined(char *list, char *more)
{
    if (!list)
        return more;
    size_t length = strlen(list), added = strlen(more);
    char *both = realloc(list, length + added + 2);
    if (both) {
        both[length] = '\n';
        memcpy(both + length + 1, more, added + 1);
    } else {
        free(list);
    }
    free(more);
    return both;
}

// Whether what an option took may be; refuses it, and frees it, if not.
static enum status accept_texts(struct parser *parser, struct span span,
                                const struct stage_option *option, char *list)
{
    char why[256] = "";
    if (!option->accept || option->accept(list, why, sizeof why))
        return STATUS_OK;
    free(list);
    return parser_refuse(parser, span, "%s is %.*s%s; %s", option->name, shown_length(span),
                         parser_shown(parser, span), dots(span), why);
}

// *text is the link's: what it was before is freed.
static enum status parse_text(struct parser *parser, struct span span, const struct stage *stage,
                              const struct stage_option *option, char **text)
{
    char *list = NULL;
    struct span all = span;
    while (span.begin) {
        struct span part = span_trimmed(span_cut(&span, option->many ? ':' : 0));
        char *resolved = NULL;
        enum status status = resolve_text(parser, part, stage, option, &resolved);
        if (status) {
            free(list);
            return status;
        }
        list = joined(list, resolved);
        if (!list)
            return parser_out_of_memory(parser);
    }
    enum status status = accept_texts(parser, all, option, list);
    if (status)
        return status;
    free(*text);
    *text = list;
    return STATUS_OK;
}

// The set that a chain has by these names; NULL: none.
static struct pattern_set *find_pictures(const struct chain *chain, const char *names)
{
    for (int k = 0; k < chain->links; k++) {
        const struct chain_link *link = &chain->link[k];
        for (int index = 0; index < stage_options(link->stage); index++) {
            const struct stage_option *option = &link->stage->option[index];
            const char *text = option->patterns ? *member_text(option, link->options) : NULL;
            if (text && !strcmp(text, names))
                return *member_patterns(option, link->options);
        }
    }
    return NULL;
}

// Count one more user of the set that another chain has by these names; NULL: none has it.
static struct pattern_set *share_pictures(const struct parser *parser, const char *names)
{
    struct pattern_set *set = NULL;
    for (int k = parser->source.count - 1; k >= 0 && !set; k--)
        set = find_pictures(&parser->source.others[k], names);
    return pattern_set_ref(set);
}

// The pictures that a text names, instead of those from before.
static enum status read_pictures(struct parser *parser, struct span span,
                                 const struct stage_option *option, const char *names,
                                 struct pattern_set **patterns)
{
    char why[384] = "";
    if (!parser->source.reader)
        return parser_refuse(parser, span, "%s is a file, and no pictures can be read here",
                             option->name);
    struct pattern_set *fresh = share_pictures(parser, names);
    enum status status =
        fresh ? STATUS_OK : pattern_set_read(names, parser->source.reader, &fresh, why, sizeof why);
    if (status == STATUS_MEMORY)
        return parser_out_of_memory(parser);
    if (status)
        return parser_refuse(parser, span, "%s is %s", option->name, why);
    pattern_set_unref(patterns);
    *patterns = fresh;
    return STATUS_OK;
}

static enum status parse_texts(struct parser *parser, struct span span, struct chain_link *link,
                               int index)
{
    const struct stage_option *option = &link->stage->option[index];
    char **text = member_text(option, link->options);
    enum status status = parse_text(parser, span, link->stage, option, text);
    if (!status && option->resolve && !option->many) {
        free(link->given[index]);
        link->given[index] = span_unquoted(span_trimmed(span));
    }
    if (status || !option->patterns)
        return status;
    return read_pictures(parser, span, option, *text, member_patterns(option, link->options));
}

enum status parse_value(struct parser *parser, struct span span, struct chain_link *link, int index)
{
    const struct stage_option *option = &link->stage->option[index];
    double value = 0;
    assert(index < stage_options(link->stage));
    if (option->type == OPTION_TEXT)
        return parse_texts(parser, span, link, index);
    enum status status = option->type == OPTION_CHOICE
                             ? parse_choice(parser, span_bare(span), option, &value)
                             : parse_number(parser, span_bare(span), option, &value);
    if (!status)
        member_set(option, link->options, value);
    return status;
}
