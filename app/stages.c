// `sluice stages [NAME]`: the help for the stages, from the library's tables.
#include <string.h>

#include "app/app.h"
#include "app/hints.h"

static void print_default(const struct sluice_option_info *option)
{
    if (option->required)
        printf("required");
    else if (option->derived)
        printf("default %s", option->derived);
    else if (option->type != SLUICE_OPTION_CHOICE)
        printf("default %g", option->initial);
    else {
        const char *choice = option->choices;
        for (int k = 0; k < (int)option->initial; k++)
            choice = strchr(choice, '|') + 1;
        printf("default %.*s", (int)strcspn(choice, "|"), choice);
    }
}

static void print_option(const struct sluice_option_info *option)
{
    printf("    %-10s %s; ", option->name, option->help);
    if (option->type == SLUICE_OPTION_TEXT)
        printf("%s, ", option->unit);
    else if (option->type == SLUICE_OPTION_CHOICE)
        printf("%s, ", option->choices);
    else
        printf("%g .. %g%s%s, ", option->min, option->max, *option->unit ? " " : "", option->unit);
    print_default(option);
    printf("\n");
}

static void print_stage(int index, const struct sluice_stage_info *stage)
{
    struct sluice_option_info option = {.size = sizeof option};
    printf("%s", stage->name);
    for (int k = 0; !sluice_stage_option(index, k, &option); k++)
        printf("%s%s%s%s%s", k ? ":" : "=", option.required ? "" : "[", option.name,
               option.many ? "..." : "", option.required ? "" : "]");
    printf("\n    %s\n    %s\n", stage->summary, stage->formula);
    if (stage->source)
        printf("    source: %s\n", stage->source);
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
