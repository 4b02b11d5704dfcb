#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/parser.h"

// ---- options ----

static enum status unknown_option(struct parser *parser, struct span key, const struct stage *stage)
{
    char hint[64], names[256] = "";
    struct nearest best = {0};
    const char *instead = alias_foreign_option(stage, key);
    if (instead)
        return parser_refuse(parser, key,
                             "%s is sluice's own, and has no option '%.*s' as ffmpeg's "
                             "has; %s",
                             stage->name, span_length(key), key.begin, instead);
    for (int k = 0; k < stage_options(stage); k++) {
        nearest_offer(&best, key, stage->option[k].name);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "", stage->option[k].name);
    }
    return parser_refuse(parser, key, "%s has no option '%.*s'; %sit has: %s", stage->name,
                         span_length(key), parser_shown(parser, key),
                         nearest_question(best, hint, sizeof hint), *names ? names : "none");
}

// Find the option that an argument is for: the one it names, or the next of the table.
static enum status find_option(struct parser *parser, const struct stage *stage,
                               struct span argument, struct span key, bool named, int position,
                               int *index)
{
    int count = stage_options(stage);
    if (!named) {
        if (position >= count)
            return parser_refuse(parser, argument, "%s takes %d value%s, this is one more",
                                 stage->name, count, count == 1 ? "" : "s");
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
        struct span after = *arguments, value = span_cut(&after, ':');
        span_cut(&value, '=');
        if (value.begin)
            break;
        unnamed.end = after.begin ? after.begin - 1 : arguments->end;
        *arguments = after;
    }
    return unnamed;
}

// True if colons are the text's own, as in tee=rtsp://server/edges: there is nothing else to say.
static bool takes_all(const struct stage *stage)
{
    return stage_options(stage) == 1 && stage->option[0].type == OPTION_TEXT &&
           !stage->option[0].many;
}

static enum status parse_all(struct parser *parser, struct span arguments, struct chain_link *link,
                             bool *given)
{
    struct span value = arguments, key = span_cut(&value, '=');
    if (!value.begin || !span_is(span_trimmed(key), link->stage->option[0].name))
        value = arguments;
    given[0] = true;
    return parse_value(parser, span_trimmed(value), link, 0);
}

static enum status parse_arguments(struct parser *parser, struct span arguments,
                                   struct chain_link *link, bool *given)
{
    const struct stage *stage = link->stage;
    bool names_began = false;
    if (arguments.begin && takes_all(stage))
        return parse_all(parser, arguments, link, given);
    if (stage->option[0].many) {
        struct span values = span_trimmed(cut_unnamed(&arguments));
        given[0] = names_began = values.begin < values.end;
        enum status status = given[0] ? parse_value(parser, values, link, 0) : STATUS_OK;
        if (status)
            return status;
    }
    for (int position = 0; arguments.begin; position++) {
        struct span argument = span_cut(&arguments, ':'), value = argument;
        struct span key = span_cut(&value, '=');
        bool named = value.begin != NULL;
        if (!named)
            value = argument;
        key = span_trimmed(key);
        value = span_trimmed(value);
        if (value.begin == value.end)
            return parser_refuse(parser, argument, "a value is missing here");
        if (!named && names_began)
            return parser_refuse(parser, argument,
                                 "values without a name come before those with one");
        names_began |= named;
        int index = 0;
        enum status status =
            find_option(parser, stage, span_trimmed(argument), key, named, position, &index);
        if (status)
            return status;
        const struct stage_option *option = &stage->option[index];
        if (given[index])
            return parser_refuse(parser, span_trimmed(argument), "%s is given twice", option->name);
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
    return parser_refuse(parser, name, "there is no stage '%.*s'; %sthe stages are: %s",
                         span_length(name), parser_shown(parser, name),
                         nearest_question(best, hint, sizeof hint), names);
}

// Whether the link's values fit each other; `span` is what to blame.
static enum status check_link(struct parser *parser, struct span span,
                              const struct chain_link *link)
{
    char why[256];
    bool fits = !link->stage->fits || link->stage->fits(link->options, why, sizeof why);
    return fits ? STATUS_OK : parser_refuse(parser, span, "%s: %s", link->stage->name, why);
}

static enum status check_required(struct parser *parser, struct span name,
                                  const struct stage *stage, const bool *given)
{
    char range[64];
    for (int k = 0; k < stage_options(stage); k++) {
        const struct stage_option *option = &stage->option[k];
        if (given[k] || !option->required)
            continue;
        stage_option_range(option, range, sizeof range);
        return parser_refuse(parser, name, "%s needs a value: %s=%s, %s", stage->name, stage->name,
                             option->name, range);
    }
    return STATUS_OK;
}

static enum status parse_link(struct parser *parser, struct span span, struct chain_link *link)
{
    struct span arguments = span, name = span_trimmed(span_cut(&arguments, '='));
    if (name.begin == name.end)
        return parser_refuse(parser, span, "a stage's name is missing here");
    const struct stage *stage = stage_find(name.begin, (size_t)span_length(name));
    if (!stage)
        return unknown_stage(parser, name);
    bool given[STAGE_OPTIONS] = {false};
    enum status status = link_init(link, stage) ? parser_out_of_memory(parser) : STATUS_OK;
    if (!status)
        status = parse_arguments(parser, arguments, link, given);
    if (!status)
        status = check_required(parser, name, stage, given);
    return status ? status : check_link(parser, span_trimmed(span), link);
}

// ---- filters of ffmpeg ----

// Where the next `more` links go, zeroed; NULL without memory.
static struct chain_link *room_for(struct chain *chain, int more)
{
    size_t had = (size_t)chain->links, count = (size_t)more;
    struct chain_link *link = realloc(chain->link, (had + count) * sizeof *link);
    if (!link)
        return NULL;
    memset(link + had, 0, count * sizeof *link);
    chain->link = link;
    return link + had;
}

// Append the links of `more`, which is empty afterwards.
static enum status append(struct parser *parser, struct chain *chain, struct chain *more)
{
    struct chain_link *link = room_for(chain, more->links);
    if (!link)
        return parser_out_of_memory(parser);
    memcpy(link, more->link, (size_t)more->links * sizeof *link);
    chain->links += more->links;
    more->links = 0;
    return STATUS_OK;
}

// "avgblur=3 is box=3"; NULL without memory.
static char *noted(struct span filter, const char *text)
{
    size_t size = (size_t)span_length(filter) + strlen(text) + sizeof " is ";
    char *note = malloc(size);
    if (note)
        snprintf(note, size, "%.*s is %s", span_length(filter), filter.begin, text);
    return note;
}

// A filter of ffmpeg, whose text here is `text`.
static enum status append_text(struct parser *parser, struct span filter, const char *text,
                               struct chain *chain)
{
    struct chain_error error = {0};
    struct chain means = {0};
    enum status status = chain_parse_from(text, &parser->source, &means, &error);
    if (status == STATUS_USAGE)
        return parser_refuse(parser, filter, "this is %.60s; %.300s", text, error.message);
    if (!status)
        means.link[0].alias = noted(filter, text);
    if (status || !means.link[0].alias)
        status = parser_out_of_memory(parser);
    if (!status)
        status = append(parser, chain, &means);
    chain_free(&means);
    return status;
}

static enum status parse_alias(struct parser *parser, struct span filter, struct chain *chain)
{
    char *text = NULL;
    enum status status = alias_translate(parser, filter, &text);
    if (!status)
        status = append_text(parser, filter, text, chain);
    free(text);
    return status;
}

// ---- chains ----

static enum status parse_part(struct parser *parser, struct span part, struct chain *chain)
{
    struct span rest = part, name = span_trimmed(span_cut(&rest, '='));
    bool is_stage = stage_find(name.begin, (size_t)span_length(name)) != NULL;
    if (!is_stage && alias_is(name))
        return parse_alias(parser, span_trimmed(part), chain);
    struct chain_link *link = room_for(chain, 1);
    if (!link)
        return parser_out_of_memory(parser);
    chain->links++;
    parser->gray = alias_gray_behind(name, parser->gray);
    return parse_link(parser, part, link);
}

static enum status parse_links(struct parser *parser, struct span rest, struct chain *chain)
{
    enum status status = STATUS_OK;
    while (rest.begin && !status) {
        struct span part = span_cut(&rest, ',');
        status = parse_part(parser, part, chain);
        if (!status && chain_files(chain, WRITES_PICTURES, NULL, 0) >= MAX_PICTURES)
            status = parser_refuse(parser, span_trimmed(part), "a chain has up to %d tees",
                                   MAX_PICTURES - 1);
    }
    return status;
}

enum status chain_parse_from(const char *text, const struct chain_source *source,
                             struct chain *chain, struct chain_error *error)
{
    struct parser parser;
    struct span rest = span_of(text);
    struct span all = span_trimmed(rest);
    assert(!source->count || source->others[0].reader == source->reader);
    *chain = (struct chain){.reader = source->reader};
    enum status status = parser_init(&parser, text, source, error);
    if (!status)
        status = parser_check_quotes(&parser);
    if (!status && all.begin < all.end)
        status = parse_links(&parser, rest, chain);
    parser_finish(&parser);
    if (status)
        chain_free(chain);
    return status;
}

enum status chain_parse(const char *text, const struct picture_reader *reader, struct chain *chain,
                        struct chain_error *error)
{
    return chain_parse_from(text, &(struct chain_source){.reader = reader}, chain, error);
}

enum status chain_parse_logged(const char *text, const struct picture_reader *reader,
                               const struct log *log, struct chain *chain)
{
    struct chain_error error = {0};
    text = text ? text : CHAIN_DEFAULT;
    enum status status = chain_parse(text, reader, chain, &error);
    if (status)
        chain_error_log(&error, text, log);
    return status;
}

// ---- changes ----

// The link that "gaussian" or "gaussian#2" means.
static enum status find_link(struct parser *parser, struct span where, const struct chain *chain,
                             struct chain_link **link)
{
    struct span number = where, name = span_cut(&number, '#');
    char digits[16] = "1", *end;
    if (number.begin)
        snprintf(digits, sizeof digits, "%.*s", span_length(number), number.begin);
    long wanted = strtol(digits, &end, 10);
    if (*end || wanted < 1)
        return parser_refuse(parser, where, "which of them is a whole number from 1 on: %.*s#2",
                             span_length(name), parser_shown(parser, name));
    for (int k = 0; k < chain->links; k++) {
        *link = &chain->link[k];
        if (span_is(name, chain->link[k].stage->name) && --wanted == 0)
            return STATUS_OK;
    }
    return parser_refuse(parser, where, "the chain has no such stage");
}

static enum status set_option(struct parser *parser, struct span span, const struct chain *chain)
{
    struct span value = span, key = span_cut(&value, '=');
    struct span name = span_trimmed(key), stage = span_trimmed(span_cut(&name, '.'));
    if (!value.begin || !name.begin)
        return parser_refuse(parser, span, "this is not STAGE.OPTION=VALUE");
    struct chain_link *link = NULL;
    int index = 0;
    value = span_trimmed(value);
    name = span_trimmed(name);
    enum status status = find_link(parser, stage, chain, &link);
    if (!status)
        status = find_option(parser, link->stage, name, name, true, 0, &index);
    if (status)
        return status;
    return parse_value(parser, value, link, index);
}

enum status chain_set_guarded(struct chain *chain, const struct chain_guard *guard,
                              const char *text, struct chain_error *error)
{
    const struct chain_source source = {.reader = chain->reader, .guard = guard};
    struct parser parser;
    struct span rest = span_of(text);
    struct chain changed = {0};
    enum status status = parser_init(&parser, text, &source, error);
    if (!status)
        status = chain_copy(chain, &changed);
    if (!status)
        status = parser_check_quotes(&parser);
    while (!status && rest.begin)
        status = set_option(&parser, span_trimmed(span_cut(&rest, ',')), &changed);
    for (int k = 0; k < changed.links && !status; k++)
        status = check_link(&parser, span_of(text), &changed.link[k]);
    parser_finish(&parser);
    if (status) {
        chain_free(&changed);
        return status;
    }
    chain_free(chain);
    *chain = changed;
    return STATUS_OK;
}

enum status chain_set(struct chain *chain, const char *text, struct chain_error *error)
{
    return chain_set_guarded(chain, NULL, text, error);
}
