#include "stages/stage.h"

#include <stdio.h>
#include <string.h>

#define STAGE(name) extern const struct stage stage_##name;
#include "stages/stages.inc"
#undef STAGE

#define STAGE(name) &stage_##name,
const struct stage *const stages[] = {
#include "stages/stages.inc"
    NULL};
#undef STAGE

static bool is_name(const char *text, const char *name, size_t length)
{
    return text && strlen(text) == length && !memcmp(text, name, length);
}

const struct stage *stage_find(const char *name, size_t length)
{
    for (const struct stage *const *stage = stages; *stage; stage++)
        if (is_name((*stage)->name, name, length) || is_name((*stage)->alias, name, length))
            return *stage;
    return NULL;
}

int stage_options(const struct stage *stage)
{
    int count = 0;
    while (count < STAGE_OPTIONS && stage->option[count].name)
        count++;
    return count;
}

int stage_option_choices(const struct stage_option *option)
{
    int count = option->choices ? 1 : 0;
    for (const char *at = option->choices; at && *at; at++)
        count += *at == '|';
    return count;
}

double stage_option_initial(const struct stage_option *option)
{
    bool none = option->required || option->derived || option->type == OPTION_TEXT;
    return none ? (double)NAN : option->initial;
}

void stage_option_range(const struct stage_option *option, char *buffer, size_t size)
{
    const char *unit = option->unit ? option->unit : "";
    if (option->type == OPTION_TEXT)
        snprintf(buffer, size, "%s", unit);
    else if (option->type == OPTION_CHOICE)
        snprintf(buffer, size, "%s", option->choices);
    else
        snprintf(buffer, size, "%g .. %g%s%s", option->min, option->max, *unit ? " " : "", unit);
}
