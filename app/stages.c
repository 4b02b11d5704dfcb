// `sluice stages [NAME]`: the help for the stages, from the library's tables.
#include <assert.h>
#include <string.h>

#include "app/app.h"
#include "app/hints.h"

void stage_values(const struct sluice_option_info *option, char *to, size_t size)
{
    if (option->type == SLUICE_OPTION_TEXT)
        snprintf(to, size, "%s", option->unit);
    else if (option->type == SLUICE_OPTION_CHOICE)
        snprintf(to, size, "%s", option->choices);
    else
        snprintf(to, size, "%g .. %g%s%s", option->min, option->max, *option->unit ? " " : "",
                 option->unit);
}

void stage_default(const struct sluice_option_info *option, char *to, size_t size)
{
    assert(size > 0);
    *to = 0;
    if (option->required)
        return;
    if (option->derived)
        snprintf(to, size, "%s", option->derived);
    else if (option->type != SLUICE_OPTION_CHOICE)
        snprintf(to, size, "%g", option->initial);
    else {
        const char *choice = option->choices;
        for (int k = 0; k < (int)option->initial; k++)
            choice = strchr(choice, '|') + 1;
        snprintf(to, size, "%.*s", (int)strcspn(choice, "|"), choice);
    }
}

void stage_signature(int index, char *to, size_t size)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    struct sluice_option_info option = {.size = sizeof option};
    enum sluice_status status = sluice_stage(index, &stage);
    assert(!status);
    int length = snprintf(to, size, "%s", status ? "" : stage.name);
    for (int k = 0; !sluice_stage_option(index, k, &option); k++) {
        assert(length < (int)size);
        length += snprintf(to + length, size - (size_t)length, "%s%s%s%s%s", k ? ":" : "=",
                           option.required ? "" : "[", option.name, option.many ? "..." : "",
                           option.required ? "" : "]");
    }
}

static void print_option(const struct sluice_option_info *option)
{
    char text[1024], values[256], standard[128];
    stage_values(option, values, sizeof values);
    stage_default(option, standard, sizeof standard);
    snprintf(text, sizeof text, "%s; %s, %s%s", option->help, values,
             *standard ? "default " : "required", standard);
    print_wrapped(printf("    %-10s ", option->name), 15, text);
}

static void print_stage(int index, const struct sluice_stage_info *stage)
{
    char signature[256];
    struct sluice_option_info option = {.size = sizeof option};
    stage_signature(index, signature, sizeof signature);
    printf("%s\n", signature);
    print_wrapped(0, 4, stage->summary);
    print_wrapped(0, 4, stage->formula);
    if (stage->source)
        print_wrapped(printf("    source: "), 4, stage->source);
    for (int k = 0; !sluice_stage_option(index, k, &option); k++)
        print_option(&option);
}

bool print_stages(const char *name)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    bool found = false, all = !strcmp(name, "all");
    for (int index = 0; !sluice_stage(index, &stage); index++) {
        if (!all && strcmp(name, stage.name))
            continue;
        if (found)
            printf("\n");
        print_stage(index, &stage);
        found = true;
    }
    return found;
}

int stages_command(struct settings *settings)
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    if (settings->topic && print_stages(settings->topic))
        return EXIT_WHOLE;
    if (settings->topic) {
        refuse_stage(settings->topic);
        return EXIT_USAGE;
    }
    for (int index = 0; !sluice_stage(index, &stage); index++)
        printf("%-12s %s\n", stage.name, stage.summary);
    printf("\n'sluice stages NAME' shows one of them in full, 'sluice stages all' each.\n");
    return EXIT_WHOLE;
}
