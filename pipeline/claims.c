#include "pipeline/claims.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/check.h"
#include "pipeline/choose.h"
#include "pipeline/file.h"
#include "pipeline/names.h"

struct names {
    char **name;
    int count;
};

struct claims {
    struct names written, read;
};

// What is claimed for, and against.
struct claiming {
    struct claims *claims;
    const struct sluice_config *config;
    const struct chain *chain;
    const struct log *log;
};

static const char *file_of(const char *output)
{
    return strncmp(output, "hash:", 5) ? output : output + 5;
}

// Whether the chain looks for the picture in this file.
static bool is_template(const struct chain *chain, const char *name)
{
    for (int k = 0; k < chain->links; k++) {
        const struct template_set *set = chain->link[k].templates;
        for (int t = 0; set && t < set->count; t++)
            if (names_collide(set->template[t].name, name))
                return true;
    }
    return false;
}

// Whether a text of the chain was read from this file.
static bool is_text(const struct chain *chain, const char *name)
{
    for (int k = 0; k < chain->links; k++)
        for (int n = 0; n < STAGE_OPTIONS; n++)
            if (chain->link[k].given[n] && names_collide(chain->link[k].given[n], name))
                return true;
    return false;
}

// What a chain reads this file for; NULL: it does not.
static const char *reading(const struct chain *chain, const char *name)
{
    return is_template(chain, name) ? "template" : is_text(chain, name) ? "kernel" : NULL;
}

static enum status add_name(struct names *names, const char *name)
{
    char **list = realloc(names->name, (size_t)(names->count + 1) * sizeof *list);
    if (!list)
        return STATUS_MEMORY;
    names->name = list;
    list[names->count] = strdup(name);
    return list[names->count] ? names->count++, STATUS_OK : STATUS_MEMORY;
}

static void free_names(struct names *names)
{
    for (int k = 0; k < names->count; k++)
        free(names->name[k]);
    free(names->name);
}

static bool is_input(const struct claims *claims, const char *name)
{
    for (int k = 0; k < claims->read.count; k++)
        if (strcmp(name, "-") && names_collide(claims->read.name[k], name))
            return true;
    return false;
}

static bool is_claimed(const struct claims *claims, const char *name)
{
    const struct names *written = &claims->written;
    for (int k = 0; k < written->count; k++)
        if (names_are_same(name, written->name[k]) || names_collide(written->name[k], name))
            return true;
    return false;
}

static enum status note_inputs(const struct claiming *claiming)
{
    const char *input = source_request_of(claiming->config).name;
    const char *const *other = claiming->config->others_read;
    struct names *read = &claiming->claims->read;
    enum status status = STATUS_OK;
    if (input)
        status = add_name(read, strcmp(input, "-") ? input : "/dev/stdin");
    for (; other && *other && !status; other++)
        status = add_name(read, *other);
    return status;
}

static enum status refuse(const struct log *log, const char *read, const char *name)
{
    char shown[4300];
    name_without_secrets(name, shown, sizeof shown);
    return read ? fail(log, STATUS_USAGE,
                       "%s and output are the same file, %s; name another output", read, shown)
                : fail(log, STATUS_USAGE, "%s is named twice as an output", shown);
}

static enum status claim(const struct claiming *claiming, const char *name)
{
    struct claims *claims = claiming->claims;
    const char *read = is_input(claims, name) ? "input" : reading(claiming->chain, name);
    if (read || is_claimed(claims, name))
        return refuse(claiming->log, read, name);
    return add_name(&claims->written, name);
}

static enum status claim_outputs(const struct claiming *claiming)
{
    struct sink_request outputs[OUTPUTS_MOST];
    enum status status = STATUS_OK;
    int count = sink_requests_of(claiming->config, outputs);
    count = sink_requests_add_taps(claiming->config, claiming->chain, outputs, count);
    for (int k = 0; k < count && k < OUTPUTS_MOST && !status; k++)
        if (outputs[k].output)
            status = claim(claiming, file_of(outputs[k].output));
    return status;
}

static enum status claim_record(const struct claiming *claiming, const struct chain_file *file)
{
    enum status status = file->name ? claim(claiming, file->name) : STATUS_OK;
    if (status || !file->name || !file->option->beside)
        return status;
    size_t size = strlen(file->name) + strlen(file->option->beside) + 1;
    char *beside = malloc(size);
    if (!beside)
        return STATUS_MEMORY;
    snprintf(beside, size, "%s%s", file->name, file->option->beside);
    status = claim(claiming, beside);
    free(beside);
    return status;
}

static enum status claim_records(const struct claiming *claiming)
{
    int count = chain_files(claiming->chain, WRITES_RECORDS, NULL, 0);
    struct chain_file *list = calloc((size_t)count + 1, sizeof *list);
    enum status status = list ? STATUS_OK : STATUS_MEMORY;
    if (list)
        chain_files(claiming->chain, WRITES_RECORDS, list, count);
    for (int k = 0; k < count && !status; k++)
        status = claim_record(claiming, &list[k]);
    free(list);
    return status;
}

static enum status claim_others(const struct claiming *claiming)
{
    const struct sluice_config *config = claiming->config;
    enum status status =
        config->trace ? claim(claiming, name_plain(config->trace, true)) : STATUS_OK;
    for (const char *const *other = config->others; other && *other && !status; other++)
        status = claim(claiming, name_plain(*other, true));
    return status;
}

// What nobody else looks at before the job runs.
static enum status check_others(const struct claiming *claiming)
{
    const struct sluice_config *config = claiming->config;
    enum status status = STATUS_OK;
    if (config->trace)
        status = file_check(name_plain(config->trace, true), config->overwrite, claiming->log);
    for (const char *const *other = config->others; other && *other && !status; other++)
        status = file_check(name_plain(*other, true), config->overwrite, claiming->log);
    return status;
}

enum status claims_create(const struct sluice_config *config, const struct chain *chain,
                          const struct log *log, struct claims **claims)
{
    *claims = calloc(1, sizeof **claims);
    if (!*claims)
        return STATUS_MEMORY;
    const struct claiming claiming = {*claims, config, chain, log};
    enum status status = note_inputs(&claiming);
    if (!status)
        status = claim_outputs(&claiming);
    if (!status)
        status = claim_records(&claiming);
    if (!status)
        status = claim_others(&claiming);
    if (!status)
        status = check_others(&claiming);
    if (status)
        claims_destroy(claims);
    return status;
}

void claims_destroy(struct claims **claims)
{
    if (!*claims)
        return;
    free_names(&(*claims)->written);
    free_names(&(*claims)->read);
    free(*claims);
    *claims = NULL;
}

enum status claims_check(const struct claims *claims, const struct chain *chain,
                         const struct log *log)
{
    char shown[4300];
    for (int k = 0; k < claims->written.count; k++) {
        const char *name = claims->written.name[k], *read = reading(chain, name);
        name_without_secrets(name, shown, sizeof shown);
        if (read)
            return fail(log, STATUS_USAGE, "%s and output are the same file, %s; name another one",
                        read, shown);
    }
    return STATUS_OK;
}

enum status claims_check_file(const struct claims *claims, const char *name, const struct log *log)
{
    bool input = is_input(claims, name);
    return input || is_claimed(claims, name) ? refuse(log, input ? "input" : NULL, name)
                                             : STATUS_OK;
}

// Whether the chain of each planned change reads nothing that is claimed.
static enum status check_changes(const struct claims *claims, const struct sluice_change *change,
                                 const struct log *log)
{
    enum status status = STATUS_OK;
    for (; change && change->chain && !status; change++) {
        struct chain chain;
        status = chain_parse_logged(change->chain, log, &chain);
        if (!status)
            status = claims_check(claims, &chain, log);
        chain_free(&chain);
    }
    return status;
}

enum sluice_status sluice_check_files(const struct sluice_config *config)
{
    struct log log = {(void (*)(void *, enum log_level, const char *))config->log, config->opaque};
    struct chain chain;
    struct claims *claims = NULL;
    enum status status =
        chain_parse_logged(config->chain ? config->chain : CHAIN_DEFAULT, &log, &chain);
    if (!status)
        status = claims_create(config, &chain, &log, &claims);
    if (!status)
        status = check_changes(claims, config->changes, &log);
    claims_destroy(&claims);
    chain_free(&chain);
    return (enum sluice_status)status;
}
