// The chains of a configuration, which are read once.
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/config.h"

struct sluice_chain {
    struct schedule schedule;
};

static const char *text_of(const struct sluice_config *config)
{
    return config->chain ? config->chain : CHAIN_DEFAULT;
}

enum status config_schedule(const struct sluice_config *config, const struct log *log,
                            struct schedule *schedule)
{
    const struct sluice_chain *parsed = config->parsed;
    if (parsed && schedule_is_of(&parsed->schedule, text_of(config), config->changes))
        return schedule_copy(&parsed->schedule, schedule);
    return schedule_read(text_of(config), config->changes, log, schedule);
}

enum sluice_status sluice_chain_parse(const struct sluice_config *given,
                                      struct sluice_chain **chain)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    *chain = NULL;
    enum status status = config_read(given, &config, &target, &log);
    struct sluice_chain *made = status ? NULL : calloc(1, sizeof *made);
    if (!status && !made)
        status = STATUS_MEMORY;
    if (!status)
        status = schedule_read(text_of(&config), config.changes, &log, &made->schedule);
    if (status)
        sluice_chain_destroy(&made);
    *chain = made;
    return (enum sluice_status)status;
}

void sluice_chain_destroy(struct sluice_chain **chain)
{
    if (!*chain)
        return;
    schedule_free(&(*chain)->schedule);
    free(*chain);
    *chain = NULL;
}
