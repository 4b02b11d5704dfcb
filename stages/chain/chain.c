#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain.h"
#include "stages/chain/parser.h"

enum status chain_copy(const struct chain *chain, struct chain *to)
{
    assert(chain != to);
    *to = (struct chain){.link = calloc((size_t)chain->links + 1, sizeof *to->link),
                         .reader = chain->reader};
    if (!to->link)
        return STATUS_MEMORY;
    to->links = chain->links;
    enum status status = STATUS_OK;
    for (int k = 0; k < chain->links && !status; k++)
        status = link_copy(&chain->link[k], &to->link[k]);
    if (status)
        chain_free(to);
    return status;
}

void chain_free(struct chain *chain)
{
    for (int k = 0; k < chain->links; k++)
        link_finish(&chain->link[k]);
    free(chain->link);
    *chain = (struct chain){0};
}

void chain_truncate(struct chain *chain, int links)
{
    while (links >= 0 && chain->links > links)
        link_finish(&chain->link[--chain->links]);
}

bool chain_is_empty(const struct chain *chain)
{
    for (int k = 0; k < chain->links; k++)
        if (strcmp(chain->link[k].stage->name, "null"))
            return false;
    return true;
}

static enum status check_sizes(const struct pattern_set *set, int64_t max_pixels, char *why,
                               size_t size)
{
    for (int k = 0; max_pixels && k < set->count; k++) {
        const struct pattern *t = &set->pattern[k];
        if ((int64_t)t->width * t->height <= max_pixels)
            continue;
        snprintf(why, size, "%s; it is %dx%d, and the limit is %lld pixels: see --max-pixels",
                 t->name, t->width, t->height, (long long)max_pixels);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status chain_load(const struct chain *chain, int64_t max_pixels, const struct log *log)
{
    char why[384] = "";
    enum status status = STATUS_OK;
    for (int k = 0; k < chain->links && !status; k++) {
        const struct chain_link *link = &chain->link[k];
        struct pattern_set *patterns = chain_patterns(link);
        if (patterns)
            status = check_sizes(patterns, max_pixels, why, sizeof why);
        if (patterns && !status)
            status = pattern_set_load(patterns, why, sizeof why);
        if (status == STATUS_USAGE)
            log_print(log, LOG_ERROR, "%s: %s", link->stage->name, why);
    }
    return status;
}

enum status chain_lower(const struct chain *chain, struct program *program)
{
    const struct log silent = {0};
    int records = 0;
    if (!program->status)
        program->status = chain_load(chain, 0, &silent);
    for (int k = 0; k < chain->links && !program->status; k++) {
        const struct chain_link *link = &chain->link[k];
        int before = program->ops;
        program->record = link_writes(link, WRITES_RECORDS) ? records++ : -1;
        link->stage->lower(link->options, program);
        for (int n = before; n < program->ops; n++)
            program->op[n].stage = link->stage->name;
    }
    program->record = -1;
    return program->status;
}
