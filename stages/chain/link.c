#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/parser.h"

// ---- members of options ----

static void *at_offset(void *options, size_t offset)
{
    return (char *)options + offset;
}

double member_value(const struct stage_option *option, const void *options)
{
    double real;
    int number; // also of choices: enumerations are as large
    const char *at = (const char *)options + option->offset;
    assert(option->type != OPTION_TEXT);
    if (option->type == OPTION_REAL)
        return memcpy(&real, at, sizeof real), real;
    memcpy(&number, at, sizeof number);
    return option->derived && number < 0 ? (double)NAN : number;
}

void member_set(const struct stage_option *option, void *options, double value)
{
    int number = isnan(value) ? -1 : (int)value;
    assert(option->type != OPTION_TEXT);
    if (option->type == OPTION_REAL)
        memcpy(at_offset(options, option->offset), &value, sizeof value);
    else
        memcpy(at_offset(options, option->offset), &number, sizeof number);
}

char **member_text(const struct stage_option *option, void *options)
{
    assert(option->type == OPTION_TEXT);
    return at_offset(options, option->offset);
}

struct pattern_set **member_patterns(const struct stage_option *option, void *options)
{
    assert(option->patterns);
    return at_offset(options, option->patterns);
}

// ---- links ----

enum status link_init(struct chain_link *link, const struct stage *stage)
{
    assert(stage->name && stage->lower);
    *link = (struct chain_link){.stage = stage, .options = calloc(1, stage->size + 1)};
    if (!link->options)
        return STATUS_MEMORY;
    for (int k = 0; k < stage_options(stage); k++)
        if (stage->option[k].type != OPTION_TEXT)
            member_set(&stage->option[k], link->options, stage_option_initial(&stage->option[k]));
    return STATUS_OK;
}

void link_finish(struct chain_link *link)
{
    for (int k = 0; link->options && k < stage_options(link->stage); k++) {
        const struct stage_option *option = &link->stage->option[k];
        if (option->type == OPTION_TEXT)
            free(*member_text(option, link->options));
        if (option->patterns)
            pattern_set_unref(member_patterns(option, link->options));
        free(link->given[k]);
    }
    free(link->options);
    free(link->alias);
    *link = (struct chain_link){0};
}

// A copy of a text, or NULL of NULL; clears *whole without memory.
static char *copied(const char *text, bool *whole)
{
    char *copy = text ? strdup(text) : NULL;
    *whole = *whole && !copy == !text;
    return copy;
}

enum status link_copy(const struct chain_link *from, struct chain_link *to)
{
    bool whole = true;
    if (link_init(to, from->stage))
        return STATUS_MEMORY;
    memcpy(to->options, from->options, from->stage->size);
    for (int k = 0; k < stage_options(from->stage); k++) {
        const struct stage_option *option = &from->stage->option[k];
        if (option->type == OPTION_TEXT)
            *member_text(option, to->options) = copied(*member_text(option, from->options), &whole);
        if (option->patterns)
            pattern_set_ref(*member_patterns(option, to->options));
        to->given[k] = copied(from->given[k], &whole);
    }
    to->alias = copied(from->alias, &whole);
    return whole ? STATUS_OK : STATUS_MEMORY;
}

struct pattern_set *chain_patterns(const struct chain_link *link)
{
    for (int k = 0; k < stage_options(link->stage); k++)
        if (link->stage->option[k].patterns)
            return *member_patterns(&link->stage->option[k], link->options);
    return NULL;
}
