// Another chain, from the next submitted frame on.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "filter/filter_private.h"

// The first error becomes the reason.
static void keep_reason(void *error_, enum log_level level, const char *sentence)
{
    struct chain_error *error = error_;
    if (level == LOG_ERROR && !*error->message)
        snprintf(error->message, sizeof error->message, "%s", sentence);
}

// Let `chain`, which is taken over, be the current one.
static enum status take_over(struct sluice_filter *filter, struct chain *chain,
                             struct chain_error *error)
{
    const struct log log = {keep_reason, error};
    struct binding *binding;
    enum status status = binding_create(filter, chain, &log, &binding);
    if (status)
        return status;
    binding_unref(&filter->current);
    filter->current = binding;
    return STATUS_OK;
}

static enum sluice_status explain(const struct sluice_filter *filter, enum status status,
                                  const struct chain_error *error, const char *text, char *why,
                                  size_t size)
{
    if (why && size)
        *why = 0;
    if (why && size && *error->message)
        chain_error_describe(error, text, why, size);
    if (*error->message)
        chain_error_log(error, text, &filter->log);
    return filter_status(status);
}

enum sluice_status sluice_filter_set(struct sluice_filter *filter, const char *options, char *why,
                                     size_t size)
{
    assert(filter && options);
    struct chain_error error = {.length = (int)strlen(options)};
    struct chain chain;
    enum status status = chain_copy(&filter->current->chain, &chain);
    if (!status && (status = chain_set(&chain, options, &error)))
        chain_free(&chain);
    else if (!status)
        status = take_over(filter, &chain, &error);
    return explain(filter, status, &error, options, why, size);
}

enum sluice_status sluice_filter_set_chain(struct sluice_filter *filter, const char *chain,
                                           char *why, size_t size)
{
    assert(filter && chain);
    struct chain_error error = {.length = (int)strlen(chain)};
    struct chain parsed;
    enum status status = chain_parse(chain, &filter->reader, &parsed, &error);
    if (!status)
        status = take_over(filter, &parsed, &error);
    return explain(filter, status, &error, chain, why, size);
}
