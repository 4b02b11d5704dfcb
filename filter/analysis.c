// The analysis of the frame that was received last.
#include <assert.h>

#include "filter/filter_private.h"

static void tell_statistics(const struct op *op, const struct statistics *found,
                            struct sluice_analysis *to)
{
    struct moments moments =
        statistics_moments(&op->statistics, found, (double)to->width * to->height);
    to->kind = SLUICE_ANALYSIS_STATISTICS;
    to->component = op->statistics.component;
    to->min = moments.low;
    to->max = moments.high;
    to->mean = moments.mean;
    to->deviation = moments.deviation;
    to->histogram = found->bin;
    to->bins = STATISTICS_BINS;
}

static void tell_matches(const struct op *op, const struct op_matches *matches,
                         struct sluice_match *match, struct sluice_analysis *to)
{
    for (int k = 0; k < matches->count; k++) {
        const struct op_found *found = &matches->found[k];
        const struct op_template *t = &op->match.templates[found->number];
        match[k] = (struct sluice_match){.x = found->x,
                                         .y = found->y,
                                         .score = found->score,
                                         .number = found->number,
                                         .width = t->width,
                                         .height = t->height};
    }
    to->kind = SLUICE_ANALYSIS_MATCHES;
    to->match = match;
    to->matches = matches->count;
}

static void tell_wavelet(const struct op *op, void *analysis, struct sluice_analysis *to)
{
    to->kind = SLUICE_ANALYSIS_WAVELET;
    to->scales = op->wavelet.scales;
    to->scale = op->wavelet.scale;
    to->energy = analysis;
    to->plane = op->wavelet.planes ? op_wavelet_planes(&op->wavelet, analysis) : NULL;
}

// Where the matches of analysis `index` are told.
static struct sluice_match *match_room(const struct binding *binding, int index)
{
    const struct program *program = &binding->program;
    struct sluice_match *room = binding->match;
    for (int k = 0; k < index; k++) {
        const struct op *op = &program->op[program->analysis[k]];
        room += op->kind == OP_MATCH ? op->match.most : 0;
    }
    return room;
}

enum sluice_status sluice_filter_analysis(const struct sluice_filter *filter, int index,
                                          struct sluice_analysis *analysis)
{
    assert(filter && analysis);
    const struct binding *binding = filter->last;
    if (!binding || index < 0 || index >= binding->program.analyses)
        return SLUICE_STATUS_END;
    const struct program *program = &binding->program;
    const struct op *op = &program->op[program->analysis[index]];
    const struct program_plane *grid = &program->plane[op->source[0]];
    void *found = binding->analysis[filter->last_number * program->analyses + index];
    struct sluice_analysis now = {.stage = op->stage,
                                  .width = subsampled(filter->in.width, grid->shift_x),
                                  .height = subsampled(filter->in.height, grid->shift_y)};
    if (op->kind == OP_STATISTICS)
        tell_statistics(op, found, &now);
    else if (op->kind == OP_MATCH)
        tell_matches(op, found, match_room(binding, index), &now);
    else
        tell_wavelet(op, found, &now);
    return filter_tell(filter, analysis, &now, sizeof now, "sluice_analysis");
}
