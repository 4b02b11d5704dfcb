#include "stages/chain.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A part of the text: [begin, end).
struct span {
    const char *begin, *end;
};

struct parser {
    const char *text;
    struct chain_error *error;
};

static int span_length(struct span span)
{
    return (int)(span.end - span.begin);
}

static bool span_is(struct span span, const char *word)
{
    return strlen(word) == (size_t)span_length(span) &&
           !memcmp(word, span.begin, (size_t)span_length(span));
}

static struct span trimmed(struct span span)
{
    while (span.begin < span.end && isspace((unsigned char)*span.begin))
        span.begin++;
    while (span.end > span.begin && isspace((unsigned char)span.end[-1]))
        span.end--;
    return span;
}

// Cut off and return what stands before the first `separator`, or all. `rest` begins after it, or
// is NULL at its begin when there was none.
static struct span cut(struct span *rest, char separator)
{
    const char *at = memchr(rest->begin, separator, (size_t)span_length(*rest));
    struct span part = {rest->begin, at ? at : rest->end};
    rest->begin = at ? at + 1 : NULL;
    return part;
}

__attribute__((format(printf, 3, 4))) static enum status refuse(struct parser *parser,
                                                                struct span span,
                                                                const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->error->message, sizeof parser->error->message, format, arguments);
    va_end(arguments);
    parser->error->position = (int)(span.begin - parser->text);
    parser->error->length = span_length(span);
    return STATUS_USAGE;
}

// ---- the nearest match ----

static int minimum(int a, int b)
{
    return a < b ? a : b;
}

// Levenshtein's distance, of words up to 31 letters; longer ones are far from everything.
static int distance(struct span a, const char *b)
{
    int la = span_length(a), lb = (int)strlen(b), row[32];
    if (la > 31 || lb > 31)
        return 99;
    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int above = row[j];
            bool same = tolower((unsigned char)a.begin[i - 1]) == b[j - 1];
            row[j] = minimum(minimum(row[j] + 1, row[j - 1] + 1), diagonal + !same);
            diagonal = above;
        }
    }
    return row[lb];
}

struct nearest {
    const char *word;
    int distance;
};

static void nearest_offer(struct nearest *best, struct span wrong, const char *word)
{
    int d = distance(wrong, word);
    bool begins =
        span_length(wrong) >= 3 && !strncmp(word, wrong.begin, (size_t)span_length(wrong));
    if (begins)
        d = 1;
    if (d <= 1 + span_length(wrong) / 3 && (!best->word || d < best->distance))
        *best = (struct nearest){word, d};
}

// "did you mean 'x'? " or nothing.
static const char *suggestion(struct nearest best, char *buffer, size_t size)
{
    buffer[0] = 0;
    if (best.word)
        snprintf(buffer, size, "did you mean '%s'? ", best.word);
    return buffer;
}

// ---- values ----

void stage_option_range(const struct stage_option *option, char *buffer, size_t size)
{
    if (option->type == OPTION_CHOICE)
        snprintf(buffer, size, "%s", option->choices);
    else
        snprintf(buffer, size, "%g .. %g", option->min, option->max);
}

static enum status parse_choice(struct parser *parser, struct span span,
                                const struct stage_option *option, double *value)
{
    struct span choices = {option->choices, option->choices + strlen(option->choices)};
    for (int index = 0; choices.begin; index++) {
        struct span choice = cut(&choices, '|');
        if (span_length(choice) == span_length(span) &&
            !memcmp(choice.begin, span.begin, (size_t)span_length(span))) {
            *value = index;
            return STATUS_OK;
        }
    }
    return refuse(parser, span, "%s is '%.*s'; it can be %s", option->name, span_length(span),
                  span.begin, option->choices);
}

static enum status parse_number(struct parser *parser, struct span span,
                                const struct stage_option *option, double *value)
{
    char digits[64], range[64], *end;
    snprintf(digits, sizeof digits, "%.*s", span_length(span), span.begin);
    *value = strtod(digits, &end);
    stage_option_range(option, range, sizeof range);
    const char *unit = *option->unit ? " " : "";
    if (end == digits || *end || !isfinite(*value))
        return refuse(parser, span, "%s is '%.*s'; it takes a number, %s%s%s", option->name,
                      span_length(span), span.begin, range, unit, option->unit);
    if (option->type == OPTION_INT && *value != floor(*value))
        return refuse(parser, span, "%s is %s; it takes a whole number, %s%s%s", option->name,
                      digits, range, unit, option->unit);
    if (*value < option->min || *value > option->max)
        return refuse(parser, span, "%s is %s; the range is %s%s%s", option->name, digits, range,
                      unit, option->unit);
    return STATUS_OK;
}

// ---- options ----

static int options_count(const struct stage *stage)
{
    int count = 0;
    while (count < STAGE_OPTIONS && stage->option[count].name)
        count++;
    return count;
}

static enum status unknown_option(struct parser *parser, struct span key, const struct stage *stage)
{
    char hint[64], names[256] = "";
    struct nearest best = {0};
    for (int k = 0; k < options_count(stage); k++) {
        nearest_offer(&best, key, stage->option[k].name);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "", stage->option[k].name);
    }
    return refuse(parser, key, "%s has no option '%.*s'; %sit has: %s", stage->name,
                  span_length(key), key.begin, suggestion(best, hint, sizeof hint),
                  *names ? names : "none");
}

// Find the option that an argument is for: the one it names, or the next of the table.
static enum status find_option(struct parser *parser, const struct stage *stage,
                               struct span argument, struct span key, bool named, int position,
                               int *index)
{
    int count = options_count(stage);
    if (!named) {
        if (position >= count)
            return refuse(parser, argument, "%s takes %d value%s, this is one more", stage->name,
                          count, count == 1 ? "" : "s");
        *index = position;
        return STATUS_OK;
    }
    for (*index = 0; *index < count; ++*index)
        if (span_is(key, stage->option[*index].name))
            return STATUS_OK;
    return unknown_option(parser, key, stage);
}

static enum status parse_arguments(struct parser *parser, struct span arguments,
                                   struct chain_link *link, bool *given)
{
    const struct stage *stage = link->stage;
    bool names_began = false;
    for (int position = 0; arguments.begin; position++) {
        struct span argument = cut(&arguments, ':'), value = argument;
        struct span key = cut(&value, '=');
        bool named = value.begin != NULL;
        if (!named)
            value = argument;
        key = trimmed(key);
        value = trimmed(value);
        if (value.begin == value.end)
            return refuse(parser, argument, "a value is missing here");
        if (!named && names_began)
            return refuse(parser, argument, "values without a name come before those with one");
        names_began |= named;
        int index = 0;
        enum status status =
            find_option(parser, stage, trimmed(argument), key, named, position, &index);
        if (status)
            return status;
        const struct stage_option *option = &stage->option[index];
        if (given[index])
            return refuse(parser, trimmed(argument), "%s is given twice", option->name);
        given[index] = true;
        status = option->type == OPTION_CHOICE
                     ? parse_choice(parser, value, option, &link->value[index])
                     : parse_number(parser, value, option, &link->value[index]);
        if (status)
            return status;
    }
    return STATUS_OK;
}

// ---- stages ----

static enum status unknown_stage(struct parser *parser, struct span name)
{
    char hint[64], names[384] = "";
    struct nearest best = {0};
    for (const struct stage *const *stage = stages; *stage; stage++) {
        nearest_offer(&best, name, (*stage)->name);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", (*stage)->name);
    }
    return refuse(parser, name, "there is no stage '%.*s'; %sthe stages are: %s", span_length(name),
                  name.begin, suggestion(best, hint, sizeof hint), names);
}

static enum status parse_link(struct parser *parser, struct span span, struct chain_link *link)
{
    struct span arguments = span, name = trimmed(cut(&arguments, '='));
    if (name.begin == name.end)
        return refuse(parser, span, "a stage's name is missing here");
    link->stage = stage_find(name.begin, (size_t)span_length(name));
    if (!link->stage)
        return unknown_stage(parser, name);
    for (int k = 0; k < options_count(link->stage); k++)
        link->value[k] = link->stage->option[k].initial;
    bool given[STAGE_OPTIONS] = {false};
    enum status status = parse_arguments(parser, arguments, link, given);
    if (status)
        return status;
    for (int k = 0; k < options_count(link->stage); k++) {
        const struct stage_option *option = &link->stage->option[k];
        char range[64];
        stage_option_range(option, range, sizeof range);
        if (isnan(option->initial) && !option->derived && !given[k])
            return refuse(parser, name, "%s needs a value: %s=%s, %s%s%s", link->stage->name,
                          link->stage->name, option->name, range, *option->unit ? " " : "",
                          option->unit);
    }
    return STATUS_OK;
}

enum status chain_parse(const char *text, struct chain *chain, struct chain_error *error)
{
    struct parser parser = {text, error};
    struct span rest = {text, text + strlen(text)};
    *chain = (struct chain){0};
    *error = (struct chain_error){0};
    struct span all = trimmed(rest);
    if (all.begin == all.end)
        return STATUS_OK;
    int most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    chain->link = calloc((size_t)most, sizeof *chain->link);
    if (!chain->link) {
        snprintf(error->message, sizeof error->message, "out of memory");
        return STATUS_MEMORY;
    }
    while (rest.begin) {
        struct span part = cut(&rest, ',');
        enum status status = parse_link(&parser, part, &chain->link[chain->links]);
        if (status) {
            chain_free(chain);
            return status;
        }
        chain->links++;
    }
    return STATUS_OK;
}

// ---- changes ----

// The link that "gaussian" or "gaussian#2" means.
static enum status find_link(struct parser *parser, struct span where, const struct chain *chain,
                             struct chain_link **link)
{
    struct span number = where, name = cut(&number, '#');
    char digits[16] = "1", *end;
    if (number.begin)
        snprintf(digits, sizeof digits, "%.*s", span_length(number), number.begin);
    long wanted = strtol(digits, &end, 10);
    if (*end || wanted < 1)
        return refuse(parser, where, "which of them is a whole number from 1 on: %.*s#2",
                      span_length(name), name.begin);
    for (int k = 0; k < chain->links; k++) {
        *link = &chain->link[k];
        if (span_is(name, chain->link[k].stage->name) && --wanted == 0)
            return STATUS_OK;
    }
    return refuse(parser, where, "the chain has no such stage");
}

static enum status set_option(struct parser *parser, struct span span, const struct chain *chain)
{
    struct span value = span, key = cut(&value, '=');
    struct span name = trimmed(key), stage = trimmed(cut(&name, '.'));
    if (!value.begin || !name.begin)
        return refuse(parser, span, "this is not STAGE.OPTION=VALUE");
    struct chain_link *link = NULL;
    int index = 0;
    value = trimmed(value);
    name = trimmed(name);
    enum status status = find_link(parser, stage, chain, &link);
    if (!status)
        status = find_option(parser, link->stage, name, name, true, 0, &index);
    if (status)
        return status;
    const struct stage_option *option = &link->stage->option[index];
    return option->type == OPTION_CHOICE ? parse_choice(parser, value, option, &link->value[index])
                                         : parse_number(parser, value, option, &link->value[index]);
}

enum status chain_copy(const struct chain *chain, struct chain *to)
{
    *to = (struct chain){calloc((size_t)chain->links + 1, sizeof *to->link), chain->links};
    if (!to->link)
        return STATUS_MEMORY;
    if (chain->links)
        memcpy(to->link, chain->link, (size_t)chain->links * sizeof *to->link);
    return STATUS_OK;
}

enum status chain_set(struct chain *chain, const char *text, struct chain_error *error)
{
    struct parser parser = {text, error};
    struct span rest = {text, text + strlen(text)};
    struct chain changed;
    *error = (struct chain_error){0};
    enum status status = chain_copy(chain, &changed);
    while (!status && rest.begin)
        status = set_option(&parser, trimmed(cut(&rest, ',')), &changed);
    if (status) {
        chain_free(&changed);
        return status;
    }
    chain_free(chain);
    *chain = changed;
    return STATUS_OK;
}

// The shortest digits that read as this number.
static void print_number(double value, char *to, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(to, size, "%.*g", digits, value);
        if (strtod(to, NULL) == value)
            return;
    }
}

static void print_value(const struct stage_option *option, double value, char *to, size_t size)
{
    struct span choices = {option->choices, NULL};
    if (option->type != OPTION_CHOICE) {
        print_number(value, to, size);
        return;
    }
    choices.end = option->choices + strlen(option->choices);
    struct span choice = cut(&choices, '|');
    for (int k = 0; k < (int)value; k++)
        choice = cut(&choices, '|');
    snprintf(to, size, "%.*s", span_length(choice), choice.begin);
}

char *chain_text(const struct chain *chain)
{
    enum { LINK = 48 + STAGE_OPTIONS * 64 };
    size_t room = (size_t)chain->links * LINK + 1, used = 0;
    char *text = calloc(room, 1);
    for (int k = 0; text && k < chain->links; k++) {
        const struct stage *stage = chain->link[k].stage;
        char separator = '=';
        used += (size_t)snprintf(text + used, room - used, "%s%s", k ? "," : "", stage->name);
        for (int n = 0; n < options_count(stage); n++) {
            double value = chain->link[k].value[n];
            char number[64];
            if (isnan(value) || value == stage->option[n].initial)
                continue;
            print_value(&stage->option[n], value, number, sizeof number);
            used += (size_t)snprintf(text + used, room - used, "%c%s=%s", separator,
                                     stage->option[n].name, number);
            separator = ':';
        }
    }
    return text;
}

enum status chain_parse_logged(const char *text, const struct log *log, struct chain *chain)
{
    struct chain_error error = {0};
    char described[1024];
    text = text ? text : CHAIN_DEFAULT;
    enum status status = chain_parse(text, chain, &error);
    if (status) {
        chain_error_describe(&error, text, described, sizeof described);
        log_print(log, LOG_ERROR, "%s", described);
    }
    return status;
}

void chain_free(struct chain *chain)
{
    free(chain->link);
    *chain = (struct chain){0};
}

void chain_error_describe(const struct chain_error *error, const char *text, char *buffer,
                          size_t size)
{
    char marks[256];
    int length = error->length > 0 ? error->length : 1;
    if (length > (int)sizeof marks - 1)
        length = (int)sizeof marks - 1;
    memset(marks, '^', (size_t)length);
    marks[length] = 0;
    snprintf(buffer, size, "%s\n  %s\n  %*s%s", error->message, text, error->position, "", marks);
}

enum status chain_lower(const struct chain *chain, struct program *program)
{
    for (int k = 0; k < chain->links && !program->status; k++)
        chain->link[k].stage->lower(chain->link[k].value, program);
    return program->status;
}
