// The stage tables, as the public header shows them.
#include "base/sized.h"

#include "sluice/common.h"
#include "stages/stage.h"

_Static_assert((int)SLUICE_OPTION_TEXT == (int)OPTION_TEXT,
               "sluice_option_type mirrors option_type");

static const struct stage *stage_at(int index)
{
    for (int k = 0; stages[k]; k++)
        if (k == index)
            return stages[k];
    return NULL;
}

enum sluice_status sluice_stage(int index, struct sluice_stage_info *info)
{
    const struct stage *stage = stage_at(index);
    if (!stage)
        return SLUICE_STATUS_END;
    const struct sluice_stage_info now = {.name = stage->name,
                                          .summary = stage->summary,
                                          .formula = stage->formula,
                                          .source = stage->source,
                                          .options = stage_options(stage),
                                          .alias = stage->alias};
    return sized_write(info, &now, sizeof now) ? SLUICE_STATUS_OK : SLUICE_STATUS_USAGE;
}

enum sluice_status sluice_stage_option(int index, int option, struct sluice_option_info *info)
{
    const struct stage *stage = stage_at(index);
    if (!stage || option < 0 || option >= stage_options(stage))
        return SLUICE_STATUS_END;
    const struct stage_option *row = &stage->option[option];
    const struct sluice_option_info now = {
        .name = row->name,
        .type = (enum sluice_option_type)row->type,
        .unit = row->unit ? row->unit : "",
        .choices = row->choices,
        .derived = row->derived,
        .required = row->required,
        .many = row->many,
        .initial = stage_option_initial(row),
        .min = row->min,
        .max = row->type == OPTION_CHOICE ? stage_option_choices(row) - 1 : row->max,
        .help = row->help,
    };
    return sized_write(info, &now, sizeof now) ? SLUICE_STATUS_OK : SLUICE_STATUS_USAGE;
}
