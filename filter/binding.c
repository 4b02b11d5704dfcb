#include "filter/filter_private.h"

#include <assert.h>
#include <stdlib.h>

// ---- what is refused ----

static enum status check_files(const struct chain *chain, const struct log *log)
{
    struct chain_file file[1];
    if (chain_files(chain, WRITES_PICTURES, file, 1))
        return log_fail(log, STATUS_USAGE,
                        "%s: a filter has one result and writes no files; leave it out, or make "
                        "a filter for each result",
                        file->stage->name);
    struct chain_file list[64];
    int count = chain_files(chain, WRITES_RECORDS, list, 64);
    for (int k = 0; k < count && k < 64; k++)
        if (list[k].name)
            return log_fail(log, STATUS_USAGE,
                            "%s: a filter writes no files; leave out %s=, what it finds is in "
                            "sluice_filter_analysis()",
                            list[k].stage->name, list[k].option->name);
    return STATUS_OK;
}

static enum status check_patterns(const struct sluice_filter *filter, const struct chain *chain,
                                  const struct log *log)
{
    for (int k = 0; k < chain->links; k++) {
        const struct pattern_set *set = chain_patterns(&chain->link[k]);
        for (int t = 0; set && t < set->count; t++)
            if (set->pattern[t].width > filter->in.width ||
                set->pattern[t].height > filter->in.height)
                return log_fail(log, STATUS_USAGE,
                                "the template %s is %dx%d and the frames %dx%d; give one that "
                                "fits into them",
                                set->pattern[t].name, set->pattern[t].width, set->pattern[t].height,
                                filter->in.width, filter->in.height);
    }
    return STATUS_OK;
}

// ---- the format of results ----

// The name that results have: what was asked for, that of the input if nothing changes the storage,
// or the one of what the chain leaves.
static const char *name_output(const struct sluice_filter *filter, const struct format *natural)
{
    if (filter->output_pixfmt)
        return filter->output_pixfmt;
    return format_same_storage(natural, &filter->input) ? filter->in.pixfmt : pixfmt_find(natural);
}

static void describe_output(const struct sluice_filter *filter, const struct format *natural,
                            const char *name, struct format *output)
{
    struct sluice_format like = filter->in;
    like.pixfmt = name;
    pixfmt_describe(&like, output);
    if (output->model != MODEL_RGB) {
        output->range = natural->range;
        if (filter->output_range != SLUICE_RANGE_ANY)
            output->range = filter->output_range == SLUICE_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        if (pixfmt_is_full(name))
            output->range = RANGE_FULL;
    }
    if (natural->model != MODEL_RGB || output->model == MODEL_RGB) {
        output->kr = natural->kr;
        output->kb = natural->kb;
        output->siting = natural->siting;
    }
}

static enum status check_output(const struct sluice_filter *filter, const struct format *natural,
                                const struct format *output, const char *name,
                                const struct log *log)
{
    static const char *const ranges[] = {[RANGE_FULL] = "full", [RANGE_LIMITED] = "limited"};
    if (output->model == MODEL_GRAY && natural->model != MODEL_GRAY)
        return log_fail(log, STATUS_USAGE,
                        "%s has no colours and the chain leaves some; let it end with 'gray'",
                        name);
    bool same = format_same_storage(output, &filter->output) &&
                output->range == filter->output.range && output->kr == filter->output.kr &&
                output->kb == filter->output.kb && output->siting == filter->output.siting;
    return !filter->current || same
               ? STATUS_OK
               : log_fail(log, STATUS_USAGE,
                          "%s of %s range would come out, and this filter gives %s of %s "
                          "range; say output_pixfmt and output_range when it is made, or make "
                          "another filter",
                          name, ranges[output->range], filter->out.pixfmt,
                          ranges[filter->output.range]);
}

// Let the filter give this from now on.
static void set_output(struct sluice_filter *filter, const char *name, const struct format *output)
{
    filter->output = *output;
    filter->out = (struct sluice_format){
        .size = sizeof filter->out,
        .pixfmt = name,
        .width = filter->in.width,
        .height = filter->in.height,
        .range = output->range == RANGE_FULL ? SLUICE_RANGE_FULL : SLUICE_RANGE_LIMITED,
        .matrix = pixfmt_matrix(output),
        .siting = (enum sluice_siting)output->siting};
}

// ---- the program ----

static void keep_wavelets(struct program *program)
{
    for (int k = 0; k < program->ops; k++)
        if (program->op[k].kind == OP_WAVELET)
            program->op[k].wavelet.planes = true;
}

static enum status lower(struct sluice_filter *filter, struct binding *binding,
                         const struct log *log)
{
    struct program *program = &binding->program;
    enum status status = program_init(program, &filter->input);
    if (!status)
        status = chain_lower(&binding->chain, program);
    if (status)
        return status;
    if (filter->wavelet_planes)
        keep_wavelets(program);
    struct format natural = program_natural_format(program, &program->picture), output;
    const char *name = name_output(filter, &natural);
    if (!name)
        return log_fail(log, STATUS_USAGE,
                        "no pixel format holds what the chain leaves; say output_pixfmt");
    describe_output(filter, &natural, name, &output);
    status = check_output(filter, &natural, &output, name, log);
    if (!status)
        status = program_finish(program, &output);
    if (!status && !filter->current)
        set_output(filter, name, &output);
    return status;
}

// ---- memory ----

static size_t analysis_bytes(const struct binding *binding, int analysis)
{
    return program_analysis_bytes(&binding->program, analysis, binding->width, binding->height);
}

// The most matches that its analyses can have.
static size_t most_matches(const struct program *program)
{
    size_t most = 0;
    for (int k = 0; k < program->analyses; k++) {
        const struct op *op = &program->op[program->analysis[k]];
        most += op->kind == OP_MATCH ? (size_t)op->match.most : 0;
    }
    return most;
}

// Frames whose analysis is kept: those under way, and the one received last.
static int seats_of(const struct sluice_filter *filter)
{
    return filter->slots + 1;
}

static enum status create_analysis(const struct sluice_filter *filter, struct binding *binding,
                                   const struct log *log)
{
    int analyses = binding->program.analyses;
    if (!analyses)
        return STATUS_OK;
    binding->seats = seats_of(filter);
    binding->analysis = calloc((size_t)binding->seats * (size_t)analyses, sizeof(void *));
    binding->match = calloc(most_matches(&binding->program) + 1, sizeof *binding->match);
    if (!binding->analysis || !binding->match)
        return STATUS_MEMORY;
    for (int k = 0; k < binding->seats * analyses; k++) {
        size_t bytes = analysis_bytes(binding, k % analyses);
        binding->analysis[k] = binding->backend->alloc(binding->backend, bytes);
        if (!binding->analysis[k])
            return log_fail(log, STATUS_MEMORY,
                            "there is no memory for the analysis of %d frames of %dx%d, %zu "
                            "MiB each; fewer frames_in_flight take less",
                            binding->seats, filter->in.width, filter->in.height, (bytes >> 20) + 1);
    }
    return STATUS_OK;
}

// True if a plane of the result is another one of the source.
static bool moves_planes(const struct plan *plan)
{
    for (int p = 0; p < plan->program->output.planes; p++) {
        const struct plan_plane *plane = &plan->picture[0].plane[p];
        if (plane->origin == PLANE_REFERENCE && plane->source != p)
            return true;
    }
    return false;
}

static enum status equip(const struct sluice_filter *filter, struct binding *binding,
                         const struct log *log)
{
    struct backend *backend = filter->backend;
    enum status status = plan_create(&binding->program, backend->limits, &binding->plan);
    if (!status)
        status = budget_check(&(struct budget_request){.backend = backend,
                                                       .plan = binding->plan,
                                                       .width = filter->in.width,
                                                       .height = filter->in.height,
                                                       .slots = filter->slots,
                                                       .seats = seats_of(filter),
                                                       .frames_in_flight = filter->slots > 1,
                                                       .fewer = "frames_in_flight = 1",
                                                       .log = log});
    if (!status)
        status = create_analysis(filter, binding, log);
    if (!status)
        status =
            backend->executor_create(backend, binding->plan, filter->in.width, filter->in.height,
                                     filter->slots, filter->slots > 1, &binding->executor);
    if (status)
        return status;
    binding->has_fields = program_keeps_fields(&binding->program);
    binding->in_place =
        !moves_planes(binding->plan) && (backend->reads_first || plan_is_in_place(binding->plan));
    return STATUS_OK;
}

enum status binding_create(struct sluice_filter *filter, struct chain *chain, const struct log *log,
                           struct binding **binding)
{
    struct binding *made = *binding = calloc(1, sizeof *made);
    if (!made) {
        chain_free(chain);
        return STATUS_MEMORY;
    }
    atomic_init(&made->users, 1);
    made->backend = filter->backend;
    made->width = filter->in.width;
    made->height = filter->in.height;
    made->chain = *chain;
    *chain = (struct chain){0};
    enum status status = check_files(&made->chain, log);
    if (!status)
        status = check_patterns(filter, &made->chain, log);
    if (!status)
        status = chain_load(&made->chain, 0, log);
    if (!status)
        status = lower(filter, made, log);
    if (!status)
        status = equip(filter, made, log);
    if (status)
        binding_unref(binding);
    return status;
}

struct binding *binding_ref(struct binding *binding)
{
    assert(binding->users > 0);
    atomic_fetch_add(&binding->users, 1);
    return binding;
}

static void free_analysis(struct binding *binding)
{
    struct backend *backend = binding->backend;
    int analyses = binding->program.analyses;
    for (int k = 0; binding->analysis && k < binding->seats * analyses; k++)
        if (binding->analysis[k])
            backend->free(backend, binding->analysis[k], analysis_bytes(binding, k % analyses));
    free(binding->analysis);
    free(binding->match);
}

void binding_unref(struct binding **binding)
{
    struct binding *old = *binding;
    *binding = NULL;
    if (!old || atomic_fetch_sub(&old->users, 1) > 1)
        return;
    executor_destroy(&old->executor);
    free_analysis(old);
    plan_destroy(&old->plan);
    program_free(&old->program);
    chain_free(&old->chain);
    free(old);
}
