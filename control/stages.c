// The stage tables as JSON.
#include <string.h>

#include "control/verbs.h"

// Add a text; NULL: there is none.
static void add_text(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_string(text));
}

// "luma|mean" as a list.
static json_t *choices_json(const char *choices)
{
    json_t *list = json_array();
    for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|')
        json_array_append_new(list, json_stringn(at, strcspn(at, "|")));
    return list;
}

// A number that there may be none of: NAN where an option has no default.
static void add_number(json_t *object, const char *name, enum sluice_option_type type, double value)
{
    if (value != value)
        return;
    json_object_set_new(object, name,
                        type == SLUICE_OPTION_INT ? json_integer((json_int_t)value)
                                                  : json_real(value));
}

static void add_range(json_t *object, const struct sluice_option_info *option)
{
    json_t *choices = option->type == SLUICE_OPTION_CHOICE ? choices_json(option->choices) : NULL;
    if (choices) {
        if (option->initial >= 0 && !option->derived)
            json_object_set(object, "initial", json_array_get(choices, (size_t)option->initial));
        json_object_set_new(object, "choices", choices);
    } else if (option->type != SLUICE_OPTION_TEXT) {
        add_number(object, "initial", option->type, option->initial);
        add_number(object, "min", option->type, option->min);
        add_number(object, "max", option->type, option->max);
    }
}

static json_t *option_json(const struct sluice_option_info *option)
{
    static const char *const types[] = {"real", "int", "choice", "text"};
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:b}", "name", option->name, "type",
                               types[option->type], "help", option->help, "unit", option->unit,
                               "required", option->required, "many", option->many, "file",
                               option->type == SLUICE_OPTION_TEXT && strstr(option->unit, "file"));
    add_text(object, "derived", option->derived);
    add_range(object, option);
    return object;
}

static json_t *stage_json(int index, const struct sluice_stage_info *stage)
{
    json_t *object = json_pack("{s:s, s:s}", "name", stage->name, "summary", stage->summary);
    json_t *options = json_array();
    struct sluice_option_info option = {.size = sizeof option};
    add_text(object, "alias", stage->alias);
    add_text(object, "formula", stage->formula);
    add_text(object, "source", stage->source);
    for (int k = 0; !sluice_stage_option(index, k, &option); k++)
        json_array_append_new(options, option_json(&option));
    json_object_set_new(object, "options", options);
    return object;
}

json_t *stages_json(void)
{
    json_t *list = json_array();
    struct sluice_stage_info stage = {.size = sizeof stage};
    for (int index = 0; !sluice_stage(index, &stage); index++)
        json_array_append_new(list, stage_json(index, &stage));
    return list;
}
