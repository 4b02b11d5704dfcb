// The chain of a configuration, which is read once.
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/config.h"
#include "pipeline/input/picture.h"

struct sluice_chain {
    char *text;
    struct chain chain;
};

static const char *text_of(const struct sluice_config *config)
{
    return config->chain ? config->chain : CHAIN_DEFAULT;
}

enum status config_chain(const struct sluice_config *config, const struct log *log,
                         struct chain *chain)
{
    const struct sluice_chain *parsed = config->parsed;
    if (parsed && !strcmp(parsed->text, text_of(config)))
        return chain_copy(&parsed->chain, chain);
    return chain_parse_logged(text_of(config), &picture_reader, log, chain);
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
    if (made)
        made->text = strdup(text_of(&config));
    if (!status && !(made && made->text))
        status = STATUS_MEMORY;
    if (!status)
        status = chain_parse_logged(made->text, &picture_reader, &log, &made->chain);
    if (status)
        sluice_chain_destroy(&made);
    *chain = made;
    return (enum sluice_status)status;
}

void sluice_chain_destroy(struct sluice_chain **chain)
{
    if (!*chain)
        return;
    chain_free(&(*chain)->chain);
    free((*chain)->text);
    free(*chain);
    *chain = NULL;
}
