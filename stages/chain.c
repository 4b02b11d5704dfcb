#include "stages/chain.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"

// A part of the text: [begin, end).
struct span {
    const char *begin, *end;
};

struct parser {
    const char *text;
    const struct picture_reader *reader;
    struct chain_error *error;
    char *shown; // the text with its secrets blanked, of the same length
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

static enum status parser_init(struct parser *parser, const char *text,
                               const struct picture_reader *reader, struct chain_error *error)
{
    *parser = (struct parser){text, reader, error, strdup(text)};
    *error = (struct chain_error){0};
    if (!parser->shown)
        return STATUS_MEMORY;
    secrets_blank(parser->shown, SECRETS_IN_CHAIN);
    return STATUS_OK;
}

// A span as messages may show it.
static const char *shown(const struct parser *parser, struct span span)
{
    return parser->shown + (span.begin - parser->text);
}

static struct span trimmed(struct span span)
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

// Cut off and return what stands before the first `separator` outside of quotes, or all. `rest`
// begins after it, or is NULL at its begin when there was none.
static struct span cut(struct span *rest, char separator)
{
    const char *at = rest->begin;
    for (char open = 0; at < rest->end && (open || *at != separator); at++)
        open = quote_after(open, *at);
    struct span part = {rest->begin, at};
    rest->begin = at < rest->end ? at + 1 : NULL;
    return part;
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

// A copy without its quotes. The caller frees it; NULL without memory.
static char *unquoted(struct span span)
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
    if (option->type == OPTION_TEXT)
        snprintf(buffer, size, "%s", option->unit);
    else if (option->type == OPTION_CHOICE)
        snprintf(buffer, size, "%s", option->choices);
    else
        snprintf(buffer, size, "%g .. %g%s%s", option->min, option->max, *option->unit ? " " : "",
                 option->unit);
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
                  shown(parser, span), option->choices);
}

static enum status parse_number(struct parser *parser, struct span span,
                                const struct stage_option *option, double *value)
{
    char digits[64], range[64], *end;
    snprintf(digits, sizeof digits, "%.*s", span_length(span), span.begin);
    *value = strtod(digits, &end);
    stage_option_range(option, range, sizeof range);
    if (end == digits || *end || !isfinite(*value))
        return refuse(parser, span, "%s is '%.*s'; it takes a number, %s", option->name,
                      span_length(span), shown(parser, span), range);
    if (option->type == OPTION_INT && *value != floor(*value))
        return refuse(parser, span, "%s is %s; it takes a whole number, %s", option->name, digits,
                      range);
    if (*value < option->min || *value > option->max)
        return refuse(parser, span, "%s is %s; the range is %s", option->name, digits, range);
    return STATUS_OK;
}

static enum status out_of_memory(struct parser *parser)
{
    snprintf(parser->error->message, sizeof parser->error->message, "out of memory");
    return STATUS_MEMORY;
}

// One text as the chain keeps it, which is the caller's.
static enum status resolve_text(struct parser *parser, struct span span,
                                const struct stage_option *option, char **resolved)
{
    char why[256] = "", *given = unquoted(span);
    if (given && !*given && (!option->resolve || span.begin == span.end)) {
        free(given);
        return refuse(parser, span, "a value is missing here");
    }
    *resolved = given;
    if (given && option->resolve) {
        *resolved = option->resolve(given, why, sizeof why);
        free(given);
    }
    if (!*resolved && !*why)
        return out_of_memory(parser);
    if (!*resolved)
        return refuse(parser, span, "%s is %.*s%s; %s", option->name,
                      span_length(span) < 60 ? span_length(span) : 60, shown(parser, span),
                      span_length(span) < 60 ? "" : "...", why);
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
    return refuse(parser, span, "%s is %.*s%s; %s", option->name, minimum(span_length(span), 60),
                  shown(parser, span), span_length(span) < 60 ? "" : "...", why);
}

// *text is the link's: what it was before is freed.
static enum status parse_text(struct parser *parser, struct span span,
                              const struct stage_option *option, char **text)
{
    char *list = NULL;
    struct span all = span;
    while (span.begin) {
        struct span part = trimmed(cut(&span, option->many ? ':' : 0));
        char *resolved = NULL;
        enum status status = resolve_text(parser, part, option, &resolved);
        if (status) {
            free(list);
            return status;
        }
        list = joined(list, resolved);
        if (!list)
            return out_of_memory(parser);
    }
    enum status status = accept_texts(parser, all, option, list);
    if (status)
        return status;
    free(*text);
    *text = list;
    return STATUS_OK;
}

// Without the quotes around it, if there are.
static struct span bare(struct span span)
{
    bool quoted = span_length(span) > 1 && quote_after(0, *span.begin) == span.end[-1];
    return quoted ? (struct span){span.begin + 1, span.end - 1} : span;
}

// The pictures that a text names, instead of those from before.
static enum status read_pictures(struct parser *parser, struct span span,
                                 const struct stage_option *option, const char *names,
                                 struct pattern_set **patterns)
{
    struct pattern_set *fresh = NULL;
    char why[384] = "";
    if (!parser->reader)
        return refuse(parser, span, "%s is a file, and no pictures can be read here", option->name);
    enum status status = pattern_set_read(names, parser->reader, &fresh, why, sizeof why);
    if (status == STATUS_MEMORY)
        return out_of_memory(parser);
    if (status)
        return refuse(parser, span, "%s is %s", option->name, why);
    pattern_set_unref(patterns);
    *patterns = fresh;
    return STATUS_OK;
}

static enum status parse_texts(struct parser *parser, struct span span, struct chain_link *link,
                               int index)
{
    const struct stage_option *option = &link->stage->option[index];
    enum status status = parse_text(parser, span, option, &link->text[index]);
    if (!status && option->resolve && !option->many) {
        free(link->given[index]);
        link->given[index] = unquoted(trimmed(span));
    }
    if (status || !option->pictures)
        return status;
    return read_pictures(parser, span, option, link->text[index], &link->patterns);
}

static enum status parse_value(struct parser *parser, struct span span, struct chain_link *link,
                               int index)
{
    const struct stage_option *option = &link->stage->option[index];
    if (option->type != OPTION_TEXT)
        span = bare(span);
    switch (option->type) {
    case OPTION_TEXT:
        return parse_texts(parser, span, link, index);
    case OPTION_CHOICE:
        return parse_choice(parser, span, option, &link->value[index]);
    default:
        return parse_number(parser, span, option, &link->value[index]);
    }
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
                  span_length(key), shown(parser, key), suggestion(best, hint, sizeof hint),
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

// Cut off and return the arguments up to the first that has a name.
static struct span cut_unnamed(struct span *arguments)
{
    struct span unnamed = {arguments->begin, arguments->begin};
    while (arguments->begin) {
        struct span after = *arguments, value = cut(&after, ':');
        cut(&value, '=');
        if (value.begin)
            break;
        unnamed.end = after.begin ? after.begin - 1 : arguments->end;
        *arguments = after;
    }
    return unnamed;
}

// Whether colons are the text's own, as in tee=rtsp://server/edges: there is nothing else to say.
static bool takes_all(const struct stage *stage)
{
    return options_count(stage) == 1 && stage->option[0].type == OPTION_TEXT &&
           !stage->option[0].many;
}

static enum status parse_all(struct parser *parser, struct span arguments, struct chain_link *link,
                             bool *given)
{
    struct span value = arguments, key = cut(&value, '=');
    if (!value.begin || !span_is(trimmed(key), link->stage->option[0].name))
        value = arguments;
    given[0] = true;
    return parse_value(parser, trimmed(value), link, 0);
}

static enum status parse_arguments(struct parser *parser, struct span arguments,
                                   struct chain_link *link, bool *given)
{
    const struct stage *stage = link->stage;
    bool names_began = false;
    if (arguments.begin && takes_all(stage))
        return parse_all(parser, arguments, link, given);
    if (stage->option[0].many) {
        struct span values = trimmed(cut_unnamed(&arguments));
        given[0] = names_began = values.begin < values.end;
        enum status status = given[0] ? parse_value(parser, values, link, 0) : STATUS_OK;
        if (status)
            return status;
    }
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
        status = parse_value(parser, value, link, index);
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
                  shown(parser, name), suggestion(best, hint, sizeof hint), names);
}

// Whether the link's values fit each other; `span` is what to blame.
static enum status check_link(struct parser *parser, struct span span,
                              const struct chain_link *link)
{
    char why[256];
    bool fits = !link->stage->fits || link->stage->fits(link->value, why, sizeof why);
    return fits ? STATUS_OK : refuse(parser, span, "%s: %s", link->stage->name, why);
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
            return refuse(parser, name, "%s needs a value: %s=%s, %s", link->stage->name,
                          link->stage->name, option->name, range);
    }
    return check_link(parser, trimmed(span), link);
}

static enum status check_quotes(struct parser *parser)
{
    const char *open = find_open_quote(parser->text);
    if (!open)
        return STATUS_OK;
    return refuse(parser, (struct span){open, open + strlen(open)},
                  "the quote that begins here does not end");
}

static enum status parse_links(struct parser *parser, struct span rest, struct chain *chain)
{
    int most = 1;
    for (const char *at = rest.begin; *at; at++)
        most += *at == ',';
    chain->link = calloc((size_t)most, sizeof *chain->link);
    enum status status = chain->link ? STATUS_OK : out_of_memory(parser);
    while (rest.begin && !status) {
        struct span part = cut(&rest, ',');
        status = parse_link(parser, part, &chain->link[chain->links++]);
        if (!status && chain_files(chain, WRITES_PICTURES, NULL, 0) >= MAX_PICTURES)
            status = refuse(parser, trimmed(part), "a chain has up to %d tees", MAX_PICTURES - 1);
    }
    return status;
}

enum status chain_parse(const char *text, const struct picture_reader *reader, struct chain *chain,
                        struct chain_error *error)
{
    struct parser parser;
    struct span rest = {text, text + strlen(text)};
    struct span all = trimmed(rest);
    *chain = (struct chain){.reader = reader};
    enum status status = parser_init(&parser, text, reader, error);
    if (!status)
        status = check_quotes(&parser);
    if (!status && all.begin < all.end)
        status = parse_links(&parser, rest, chain);
    free(parser.shown);
    if (status)
        chain_free(chain);
    return status;
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
                      span_length(name), shown(parser, name));
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
    return parse_value(parser, value, link, index);
}

static bool copy_link(const struct chain_link *from, struct chain_link *to)
{
    bool whole = true;
    *to = *from;
    pattern_set_ref(to->patterns);
    for (int k = 0; k < STAGE_OPTIONS; k++) {
        to->text[k] = from->text[k] ? strdup(from->text[k]) : NULL;
        to->given[k] = from->given[k] ? strdup(from->given[k]) : NULL;
        whole = whole && !to->text[k] == !from->text[k] && !to->given[k] == !from->given[k];
    }
    return whole;
}

enum status chain_copy(const struct chain *chain, struct chain *to)
{
    *to = (struct chain){calloc((size_t)chain->links + 1, sizeof *to->link), chain->links,
                         chain->reader};
    if (!to->link)
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    for (int k = 0; k < chain->links; k++)
        if (!copy_link(&chain->link[k], &to->link[k]))
            status = STATUS_MEMORY;
    if (status)
        chain_free(to);
    return status;
}

enum status chain_set(struct chain *chain, const char *text, struct chain_error *error)
{
    struct parser parser;
    struct span rest = {text, text + strlen(text)};
    struct chain changed = {0};
    enum status status = parser_init(&parser, text, chain->reader, error);
    if (!status)
        status = chain_copy(chain, &changed);
    if (!status)
        status = check_quotes(&parser);
    while (!status && rest.begin)
        status = set_option(&parser, trimmed(cut(&rest, ',')), &changed);
    for (int k = 0; k < changed.links && !status; k++)
        status = check_link(&parser, (struct span){text, text + strlen(text)}, &changed.link[k]);
    free(parser.shown);
    if (status) {
        chain_free(&changed);
        return status;
    }
    chain_free(chain);
    *chain = changed;
    return STATUS_OK;
}

// The shortest digits that read as this number, 20 rather than 2e+01.
static void print_number(double value, char *to, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(to, size, "%.*g", digits, value);
        bool shorter = fabs(value) < 1e15 && strstr(to, "e+");
        if (!shorter && strtod(to, NULL) == value)
            return;
    }
}

// In quotes that the text does not hold itself; where it holds both, piece by piece.
static void print_text(struct span text, FILE *to)
{
    do {
        char quote = *text.begin == '\'' ? '"' : '\'';
        const char *at = text.begin;
        while (at < text.end && (*at == '\'') == (quote == '"'))
            at++;
        fprintf(to, "%c%.*s%c", quote, (int)(at - text.begin), text.begin, quote);
        text.begin = at;
    } while (text.begin < text.end);
}

// Those of an option that takes many.
static void print_texts(const char *list, FILE *to)
{
    for (const char *separator = ""; *list; separator = ":") {
        size_t length = strcspn(list, "\n");
        fputs(separator, to);
        print_text((struct span){list, list + length}, to);
        list += length + (list[length] == '\n');
    }
}

static void print_choice(const struct stage_option *option, double value, FILE *to)
{
    struct span choices = {option->choices, option->choices + strlen(option->choices)};
    struct span choice = cut(&choices, '|');
    for (int k = 0; k < (int)value; k++)
        choice = cut(&choices, '|');
    fprintf(to, "%.*s", span_length(choice), choice.begin);
}

static void print_value(const struct chain_link *link, int index, FILE *to)
{
    const struct stage_option *option = &link->stage->option[index];
    const char *text = link->text[index];
    char number[64];
    if (!option->many)
        fprintf(to, "%s=", option->name);
    if (option->many) {
        print_texts(text, to);
    } else if (option->type == OPTION_TEXT) {
        print_text((struct span){text, text + strlen(text)}, to);
    } else if (option->type == OPTION_CHOICE) {
        print_choice(option, link->value[index], to);
    } else {
        print_number(link->value[index], number, sizeof number);
        fputs(number, to);
    }
}

static void print_link(const struct chain_link *link, FILE *to)
{
    char separator = '=';
    fputs(link->stage->name, to);
    for (int n = 0; n < options_count(link->stage); n++) {
        bool given = !isnan(link->value[n]) && link->value[n] != link->stage->option[n].initial;
        if (!given && !link->text[n])
            continue;
        fputc(separator, to);
        print_value(link, n, to);
        separator = ':';
    }
}

char *chain_text(const struct chain *chain)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (int k = 0; k < chain->links; k++) {
        fputs(k ? "," : "", to);
        print_link(&chain->link[k], to);
    }
    bool whole = !ferror(to);
    if (!fclose(to) && whole)
        return text;
    free(text);
    return NULL;
}

enum status chain_parse_logged(const char *text, const struct picture_reader *reader,
                               const struct log *log, struct chain *chain)
{
    struct chain_error error = {0};
    char described[1024];
    text = text ? text : CHAIN_DEFAULT;
    enum status status = chain_parse(text, reader, chain, &error);
    if (status) {
        chain_error_describe(&error, text, described, sizeof described);
        log_print(log, LOG_ERROR, "%s", described);
    }
    return status;
}

void chain_free(struct chain *chain)
{
    for (int k = 0; k < chain->links; k++) {
        pattern_set_unref(&chain->link[k].patterns);
        for (int n = 0; n < STAGE_OPTIONS; n++)
            free(chain->link[k].text[n]), free(chain->link[k].given[n]);
    }
    free(chain->link);
    *chain = (struct chain){0};
}

bool chain_is_empty(const struct chain *chain)
{
    for (int k = 0; k < chain->links; k++)
        if (strcmp(chain->link[k].stage->name, "null"))
            return false;
    return true;
}

void chain_error_describe(const struct chain_error *error, const char *text, char *buffer,
                          size_t size)
{
    char marks[256], *shown = strdup(text);
    int length = error->length > 0 ? error->length : 1;
    if (length > (int)sizeof marks - 1)
        length = (int)sizeof marks - 1;
    memset(marks, '^', (size_t)length);
    marks[length] = 0;
    if (shown)
        secrets_blank(shown, SECRETS_IN_CHAIN);
    snprintf(buffer, size, "%s\n  %s\n  %*s%s", error->message, shown ? shown : "", error->position,
             "", marks);
    free(shown);
}

// ---- files ----

// The option of a stage that names a file to be written; -1: there is none.
static int written_option(const struct stage *stage)
{
    for (int n = 0; n < options_count(stage); n++)
        if (stage->option[n].writes)
            return n;
    return -1;
}

static bool writes_file(const struct chain_link *link, enum option_writes writes)
{
    int n = written_option(link->stage);
    return n >= 0 && link->stage->option[n].writes == writes;
}

int chain_files(const struct chain *chain, enum option_writes writes, struct chain_file *list,
                int most)
{
    int count = 0;
    for (int k = 0; k < chain->links; k++) {
        const struct chain_link *link = &chain->link[k];
        int n = written_option(link->stage);
        if (!writes_file(link, writes))
            continue;
        if (count < most)
            list[count] = (struct chain_file){link->stage, &link->stage->option[n], link->text[n]};
        count++;
    }
    return count;
}

void chain_mute(struct chain *chain)
{
    int kept = 0;
    for (int k = 0; k < chain->links; k++) {
        struct chain_link *link = &chain->link[k];
        int n = written_option(link->stage);
        if (n >= 0) {
            free(link->text[n]);
            link->text[n] = NULL;
        }
        if (!writes_file(link, WRITES_PICTURES))
            chain->link[kept++] = *link;
    }
    chain->links = kept;
}

// The next stage from number *k on that writes something, with the name of its file or "".
static const struct stage *next_writer(const struct chain *chain, int *k, const char **name)
{
    for (; *k < chain->links; ++*k) {
        const struct chain_link *link = &chain->link[*k];
        int n = written_option(link->stage);
        if (n < 0)
            continue;
        *name = link->text[n] ? link->text[n] : "";
        ++*k;
        return link->stage;
    }
    return NULL;
}

// Whether `shown` is the name without its secrets.
static bool is_shown_as(const char *name, const char *shown)
{
    char *made = secrets_dup(name, SECRETS_IN_NAME);
    bool same = made && !strcmp(made, shown);
    free(made);
    return same;
}

// Whether two names are one, where one of them may have been shown without its secrets.
static bool is_same_file(const char *a, const char *b)
{
    return !strcmp(a, b) || is_shown_as(a, b) || is_shown_as(b, a);
}

bool chain_writes_alike(const struct chain *chain, const struct chain *like,
                        struct chain_error *error)
{
    const struct stage *a, *b;
    const char *name = "", *other = "";
    int k = 0, n = 0;
    do {
        a = next_writer(chain, &k, &name);
        b = next_writer(like, &n, &other);
    } while (a && a == b && is_same_file(name, other));
    if (!a && !b)
        return true;
    const struct stage *named = a ? a : b;
    const char *file = a ? name : other;
    char public_name[256];
    secrets_copy(file, SECRETS_IN_NAME, public_name, sizeof public_name);
    *error = (struct chain_error){0};
    snprintf(error->message, sizeof error->message,
             "%s%s%s cannot be %s while a job runs, as it writes a file; begin another job",
             named->name, *file ? "=" : "", public_name,
             a == b ? "changed"
             : a    ? "added"
                    : "left out");
    return false;
}

static enum status check_sizes(const struct pattern_set *set, int64_t max_pixels, char *why,
                               size_t size)
{
    for (int k = 0; max_pixels && k < set->count; k++) {
        const struct pattern *t = &set->pattern[k];
        if ((int64_t)t->width * t->height <= max_pixels)
            continue;
        snprintf(why, size, "%s; it is %dx%d, and the limit is %lld pixels: see --max-pixels",
                 t->name, t->width, t->height, (long long)max_pixels);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status chain_load(const struct chain *chain, int64_t max_pixels, const struct log *log)
{
    char why[384] = "";
    enum status status = STATUS_OK;
    for (int k = 0; k < chain->links && !status; k++) {
        const struct chain_link *link = &chain->link[k];
        if (link->patterns)
            status = check_sizes(link->patterns, max_pixels, why, sizeof why);
        if (link->patterns && !status)
            status = pattern_set_load(link->patterns, why, sizeof why);
        if (status == STATUS_USAGE)
            log_print(log, LOG_ERROR, "%s: %s", link->stage->name, why);
    }
    return status;
}

enum status chain_lower(const struct chain *chain, struct program *program)
{
    const struct log silent = {0};
    int records = 0;
    if (!program->status)
        program->status = chain_load(chain, 0, &silent);
    for (int k = 0; k < chain->links && !program->status; k++) {
        const struct chain_link *link = &chain->link[k];
        int before = program->ops;
        program->record = writes_file(link, WRITES_RECORDS) ? records++ : -1;
        program->patterns = link->patterns;
        link->stage->lower(link->value, (const char *const *)link->text, program);
        for (int n = before; n < program->ops; n++)
            program->op[n].stage = link->stage->name;
    }
    program->record = -1;
    program->patterns = NULL;
    return program->status;
}
