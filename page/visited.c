#include "page/visited.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
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

// ---- what names no file ----

static bool takes_files(const struct stage *stage)
{
    bool takes = false;
    for (int k = 0; k < stage_options(stage); k++)
        takes |= stage->option[k].type == OPTION_TEXT;
    return takes;
}

static bool is_numbers(struct piece value)
{
    while (value.begin < value.end && strchr("0123456789.+-eE/ \t", *value.begin) && *value.begin)
        value.begin++;
    return value.begin == value.end;
}

static bool is_choice(const struct stage *stage, struct piece value)
{
    for (int k = 0; k < stage_options(stage); k++)
        for (const char *at = stage->option[k].choices; at && *at;) {
            size_t length = strcspn(at, "|");
            if (is_word(value, at, length))
                return true;
            at += length + (at[length] == '|');
        }
    return false;
}

// A value without the name of its option.
static struct piece value_of(const struct stage *stage, struct piece argument)
{
    struct piece value = argument, key;
    cut(&value, '=', &key);
    key = trimmed(key);
    for (int k = 0; value.begin && k < stage_options(stage); k++)
        if (is_word(key, stage->option[k].name, strlen(stage->option[k].name)))
            return bare(value);
    return bare(argument);
}

// The stage of "name=..." or "name#2.option=..."; *arguments is what follows, empty where there is
// nothing.
static const struct stage *stage_of(struct piece part, struct piece *arguments)
{
    struct piece name;
    *arguments = part;
    cut(arguments, '=', &name);
    if (!arguments->begin)
        *arguments = (struct piece){part.end, part.end};
    name = trimmed(name);
    const char *end = name.begin;
    while (end < name.end && *end != '#' && *end != '.')
        end++;
    return stage_find(name.begin, (size_t)(end - name.begin));
}

// ---- what the present chain names ----

// Whether a stage of the text has this value.
static bool has_value(const char *text, const struct stage *stage, struct piece value)
{
    struct piece rest = {text, text + strlen(text)}, part, arguments, argument;
    while (cut(&rest, ',', &part)) {
        if (stage_of(part, &arguments) != stage)
            continue;
        while (cut(&arguments, ':', &argument))
            if (equals(value_of(stage, argument), value))
                return true;
    }
    return false;
}

static bool is_known(const struct chains *chains, const struct stage *stage, struct piece value)
{
    char shown[4096];
    if (!chains->text)
        return false;
    secrets_copy(chains->text, SECRETS_IN_CHAIN, shown, sizeof shown);
    return has_value(chains->text, stage, value) || has_value(shown, stage, value);
}

static enum status check_part(const struct chains *chains, struct piece part, char *why,
                              size_t size)
{
    struct piece arguments, argument;
    const struct stage *stage = stage_of(part, &arguments);
    if (!stage || !takes_files(stage))
        return STATUS_OK;
    while (cut(&arguments, ':', &argument)) {
        struct piece value = value_of(stage, argument);
        if (is_numbers(value) || is_choice(stage, value) || is_known(chains, stage, value))
            continue;
        snprintf(why, size,
                 "the page may not name files, and '%.*s' of %s may be one; name it where sluice "
                 "is started",
                 (int)(value.end - value.begin > 100 ? 100 : value.end - value.begin), value.begin,
                 stage->name);
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
