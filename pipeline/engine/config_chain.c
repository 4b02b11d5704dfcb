// The chains of a configuration, which are read once.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return (enum sluice_status)log_memory(&log, status);
}

typedef void note_file(void *opaque, const char *name, bool is_written);

static void note_read(const struct chain_link *link, note_file *note, void *opaque)
{
    const struct pattern_set *set = chain_patterns(link);
    for (int k = 0; set && k < set->count; k++)
        note(opaque, set->pattern[k].name, false);
    for (int k = 0; k < STAGE_OPTIONS; k++)
        if (link->given[k] && !access(link->given[k], F_OK)) // else it is the text itself
            note(opaque, link->given[k], false);
}

static void note_written(const struct chain *chain, enum option_writes writes, note_file *note,
                         void *opaque)
{
    int count = chain_files(chain, writes, NULL, 0);
    struct chain_file *list = calloc((size_t)count + 1, sizeof *list);
    count = list ? chain_files(chain, writes, list, count) : 0;
    for (int k = 0; k < count; k++)
        if (list[k].name)
            note(opaque, list[k].name, true);
    free(list);
}

void sluice_chain_files(const struct sluice_chain *of, note_file *note, void *opaque)
{
    for (int k = 0; k < of->schedule.count; k++) {
        const struct chain *chain = &of->schedule.chain[k];
        for (int n = 0; n < chain->links; n++)
            note_read(&chain->link[n], note, opaque);
        note_written(chain, WRITES_RECORDS, note, opaque);
        note_written(chain, WRITES_PICTURES, note, opaque);
    }
}

void sluice_chain_destroy(struct sluice_chain **chain)
{
    if (!*chain)
        return;
    schedule_free(&(*chain)->schedule);
    free(*chain);
    *chain = NULL;
}
