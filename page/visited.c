#include "page/visited.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "pipeline/input/picture.h"

// ---- pieces of a text, cut as stages/chain/ does ----

struct piece {
    const char *begin, *end;
};

static struct piece trimmed(struct piece piece)
{
    while (piece.begin < piece.end && isspace((unsigned char)*piece.begin))
        piece.begin++;
    while (piece.end > piece.begin && isspace((unsigned char)piece.end[-1]))
        piece.end--;
    return piece;
}

static struct piece bare(struct piece piece)
{
    piece = trimmed(piece);
    bool quoted =
        piece.end - piece.begin > 1 && strchr("'\"", *piece.begin) && piece.end[-1] == *piece.begin;
    return quoted ? (struct piece){piece.begin + 1, piece.end - 1} : piece;
}

// Cut off what stands before the next separator outside of quotes; false: there is nothing more.
static bool cut(struct piece *rest, char separator, struct piece *part)
{
    if (!rest->begin)
        return false;
    const char *at = rest->begin;
    for (char open = 0; at < rest->end && (open || *at != separator); at++)
        open = open ? (*at == open ? 0 : open) : strchr("'\"", *at) ? *at : 0;
    *part = (struct piece){rest->begin, at};
    rest->begin = at < rest->end ? at + 1 : NULL;
    return true;
}

static bool equals(struct piece a, struct piece b)
{
    return a.end - a.begin == b.end - b.begin &&
           !memcmp(a.begin, b.begin, (size_t)(a.end - a.begin));
}

static bool is_word(struct piece piece, const char *word, size_t length)
{
    return equals(piece, (struct piece){word, word + length});
}

// ---- values ----

// A value of a link or of an option, and whose it is.
struct value {
    const struct stage *stage;
    const struct stage_option *option; // NULL: the stage has none there, which the parser refuses
    struct piece text;
};

// The values of "stage=value:name=value", or those of "stage#2.option=value".
struct values {
    const struct stage *stage;         // NULL: there is none of this name, which the parser refuses
    const struct stage_option *option; // all values'; NULL: each has its own
    struct piece rest;
    int position;
};

static const struct stage_option *find_option(const struct stage *stage, struct piece name)
{
    for (int k = 0; k < stage_options(stage); k++)
        if (is_word(name, stage->option[k].name, strlen(stage->option[k].name)))
            return &stage->option[k];
    return NULL;
}

static struct values values_of(struct piece part)
{
    struct piece name, rest = part;
    cut(&rest, '=', &name);
    name = trimmed(name);
    const char *end = name.begin, *dot = name.begin;
    while (end < name.end && *end != '#' && *end != '.')
        end++;
    while (dot < name.end && *dot != '.')
        dot++;
    struct values values = {.stage = stage_find(name.begin, (size_t)(end - name.begin)),
                            .rest = rest};
    if (values.stage && dot < name.end)
        values.option = find_option(values.stage, trimmed((struct piece){dot + 1, name.end}));
    return values;
}

// True if colons are the text's own, as in tee=rtsp://server/edges.
static bool takes_all(const struct stage *stage)
{
    return stage_options(stage) == 1 && stage->option[0].type == OPTION_TEXT &&
           !stage->option[0].many;
}

// The option of an argument without a name.
static const struct stage_option *next_option(struct values *values)
{
    int index = values->stage->option[0].many ? 0 : values->position++;
    return index < stage_options(values->stage) ? &values->stage->option[index] : NULL;
}

// The next value; false: there is none.
static bool next_value(struct values *values, struct value *value)
{
    struct piece argument, rest, name;
    if (!values->stage || !cut(&values->rest, takes_all(values->stage) ? 0 : ':', &argument))
        return false;
    *value = (struct value){values->stage, values->option, bare(argument)};
    if (values->option)
        return true;
    rest = argument;
    cut(&rest, '=', &name);
    value->option = rest.begin ? find_option(values->stage, trimmed(name)) : next_option(values);
    if (rest.begin && (value->option || !takes_all(values->stage)))
        value->text = bare(rest);
    else if (rest.begin)
        value->option = values->stage->option; // the text's own sign
    return true;
}

// ---- what names no file ----

// Rows of weights and the like. What begins so and is none of them is no file that matters.
static bool is_numbers(struct piece text)
{
    while (text.begin < text.end && *text.begin && strchr("0123456789.+-eE/ \t", *text.begin))
        text.begin++;
    return text.begin == text.end;
}

static bool is_same(struct value a, struct value b)
{
    return a.stage == b.stage && a.option == b.option && equals(a.text, b.text);
}

// True if a chain has this value at this option.
static bool has_value(const char *chain, struct value wanted)
{
    struct piece rest = {chain, chain + strlen(chain)}, part;
    struct value value;
    while (cut(&rest, ',', &part)) {
        struct values values = values_of(part);
        while (next_value(&values, &value))
            if (is_same(value, wanted))
                return true;
    }
    return false;
}

static bool is_known(const struct chains *chains, struct value value)
{
    char *shown = chains->text ? secrets_dup(chains->text, SECRETS_IN_CHAIN) : NULL;
    bool known = shown && (has_value(chains->text, value) || has_value(shown, value));
    free(shown);
    return known;
}

// True if a visitor may give this value: numbers and choices, texts that are numbers, and what the
// present chain has.
static bool is_fine(const struct chains *chains, struct value value)
{
    const struct stage_option *option = value.option;
    if (!option || option->type != OPTION_TEXT)
        return true;
    bool file = option->writes != WRITES_NOTHING || option->patterns;
    return (!file && is_numbers(value.text)) || is_known(chains, value);
}

static enum status check_part(const struct chains *chains, struct piece part, char *why,
                              size_t size)
{
    struct values values = values_of(part);
    struct value value;
    while (next_value(&values, &value)) {
        if (is_fine(chains, value))
            continue;
        int length = (int)(value.text.end - value.text.begin);
        snprintf(why, size,
                 "the page may not name files, and '%.*s' of %s may be one; name it where sluice "
                 "is started",
                 length > 100 ? 100 : length, value.text.begin, value.stage->name);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status visited_names(const struct chains *chains, const char *text, char *why, size_t size)
{
    struct piece rest = {text, text + strlen(text)}, part;
    enum status status = STATUS_OK;
    while (!status && cut(&rest, ',', &part))
        status = check_part(chains, part, why, size);
    return status;
}

enum status visited_check(const struct chains *chains, const char *text, char *why, size_t size)
{
    enum status status = visited_names(chains, text, why, size);
    if (status)
        return status;
    struct chain_error error = {.length = (int)strlen(text)};
    struct chain chain = {0};
    status = chain_parse_among(text, &picture_reader, &chains->chain, chains->text != NULL, &chain,
                               &error);
    chain_free(&chain);
    if (status == STATUS_USAGE)
        chain_error_describe(&error, text, why, size);
    else if (status)
        snprintf(why, size, "%s", sluice_status_name((enum sluice_status)status));
    return status;
}
