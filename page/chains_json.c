// The present chain as JSON.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "control/verbs.h"
#include "page/chains.h"

// A text without the secrets of its addresses.
static json_t *public_json(const char *text)
{
    char *shown = text ? sluice_public_chain(text) : NULL;
    json_t *json = text_json(shown);
    free(shown);
    return json;
}

// The texts of an option that takes many, which are lines.
static json_t *list_json(const char *lines)
{
    json_t *list = json_array();
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");
        char *line = strndup(lines, length);
        json_array_append_new(list, public_json(line));
        free(line);
        lines += length + (lines[length] != 0);
    }
    return list;
}

// Choice number `index` of "luma|mean".
static json_t *choice_json(const char *choices, int index)
{
    for (; index > 0; index--)
        choices = strchr(choices, '|') + 1;
    return json_stringn(choices, strcspn(choices, "|"));
}

// The value of option number `k`; null where the stage works it out itself.
static json_t *value_json(const struct chain_link *link, int k)
{
    const struct stage_option *option = &link->stage->option[k];
    const void *value = (const char *)link->options + option->offset;
    if (option->type == OPTION_REAL)
        return isnan(*(const double *)value) ? json_null() : json_real(*(const double *)value);
    if (option->type == OPTION_TEXT && option->many && *(char *const *)value)
        return list_json(*(char *const *)value);
    if (option->type == OPTION_TEXT)
        return public_json(link->given[k] ? link->given[k] : *(char *const *)value);
    int number = *(const int *)value;
    if (option->derived && number < option->min)
        return json_null();
    return option->type == OPTION_INT ? json_integer(number) : choice_json(option->choices, number);
}

static json_t *options_json(const struct chain_link *link)
{
    json_t *options = json_object();
    for (int k = 0; k < stage_options(link->stage); k++)
        json_object_set_new(options, link->stage->option[k].name, value_json(link, k));
    return options;
}

// Which of the stages of this name the link is, from 1 on.
static int number_of(const struct chain *chain, int at)
{
    int number = 1;
    for (int k = 0; k < at; k++)
        number += chain->link[k].stage == chain->link[at].stage;
    return number;
}

static json_t *link_json(const struct chain *chain, int at)
{
    struct chain_link *link = &chain->link[at];
    char *text = chain_text(&(struct chain){.link = link, .links = 1});
    json_t *json =
        json_pack("{s:s, s:i, s:o, s:o}", "stage", link->stage->name, "number",
                  number_of(chain, at), "text", public_json(text), "options", options_json(link));
    free(text);
    return json;
}

json_t *chains_json(const struct chains *chains)
{
    json_t *links = json_array();
    for (int k = 0; k < chains->chain.links; k++)
        json_array_append_new(links, link_json(&chains->chain, k));
    return json_pack("{s:b, s:o, s:o, s:i, s:i}", "ok", 1, "chain",
                     chains->text ? public_json(chains->text) : json_string(""), "links", links,
                     "undo", chains->undo.count, "redo", chains->redo.count);
}
