#include "pipeline/engine/job_files.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/file/file.h"

// A configuration whose files are reserved, and what is reserved so far.
struct reservation {
    struct path_conflicts *conflicts;
    const struct sluice_config *config;
    const struct chain *chain;
    const struct log *log;
};

static const char *file_of(const char *output)
{
    return strncmp(output, "hash:", 5) ? output : output + 5;
}

static enum status add_inputs(const struct reservation *files)
{
    const char *input = config_source(files->config).name;
    const char *const *other = files->config->reserved_inputs;
    enum status status = STATUS_OK;
    if (input)
        status = path_conflicts_add_input(files->conflicts, input);
    for (; other && *other && !status; other++)
        status = path_conflicts_add_input(files->conflicts, *other);
    return status;
}

static enum status reserve(const struct reservation *files, const char *name)
{
    return path_conflicts_add_output(files->conflicts, files->chain, name, files->log);
}

static enum status reserve_outputs(const struct reservation *files)
{
    struct sink_request outputs[MAX_OUTPUTS];
    enum status status = STATUS_OK;
    int count = config_sinks(files->config, outputs);
    count = config_add_tees(files->config, files->chain, outputs, count);
    for (int k = 0; k < count && k < MAX_OUTPUTS && !status; k++)
        if (outputs[k].output && !sink_is_nowhere(outputs[k].output))
            status = reserve(files, file_of(outputs[k].output));
    return status;
}

static enum status reserve_report(const struct reservation *files, const struct chain_file *file)
{
    enum status status = file->name ? reserve(files, file->name) : STATUS_OK;
    if (status || !file->name || !file->option->beside)
        return status;
    size_t size = strlen(file->name) + strlen(file->option->beside) + 1;
    char *beside = malloc(size);
    if (!beside)
        return STATUS_MEMORY;
    snprintf(beside, size, "%s%s", file->name, file->option->beside);
    status = reserve(files, beside);
    free(beside);
    return status;
}

static enum status reserve_reports(const struct reservation *files)
{
    int count = chain_files(files->chain, WRITES_RECORDS, NULL, 0);
    struct chain_file *list = calloc((size_t)count + 1, sizeof *list);
    enum status status = list ? STATUS_OK : STATUS_MEMORY;
    if (list)
        chain_files(files->chain, WRITES_RECORDS, list, count);
    for (int k = 0; k < count && !status; k++)
        status = reserve_report(files, &list[k]);
    free(list);
    return status;
}

static enum status reserve_others(const struct reservation *files)
{
    const struct sluice_config *config = files->config;
    enum status status = config->trace ? reserve(files, url_plain(config->trace, true)) : STATUS_OK;
    for (const char *const *other = config->reserved_outputs; other && *other && !status; other++)
        status = reserve(files, url_plain(*other, true));
    return status;
}

// Check files that nobody else looks at before the job runs.
static enum status check_others(const struct reservation *files)
{
    const struct sluice_config *config = files->config;
    enum status status = STATUS_OK;
    if (config->trace)
        status = file_check(url_plain(config->trace, true), config->overwrite, files->log);
    for (const char *const *other = config->reserved_outputs; other && *other && !status; other++)
        status = file_check(url_plain(*other, true), config->overwrite, files->log);
    return status;
}

enum status job_files_reserve(const struct sluice_config *config, const struct chain *chain,
                              const struct log *log, struct path_conflicts **conflicts)
{
    enum status status = path_conflicts_create(conflicts);
    if (status)
        return status;
    const struct reservation files = {*conflicts, config, chain, log};
    if ((status = add_inputs(&files)) || (status = reserve_outputs(&files)) ||
        (status = reserve_reports(&files)) || (status = reserve_others(&files)) ||
        (status = check_others(&files)))
        path_conflicts_destroy(conflicts);
    return status;
}

// Check that the chain of each planned change reads nothing that is reserved.
static enum status check_changes(const struct path_conflicts *conflicts,
                                 const struct schedule *schedule, const struct log *log)
{
    enum status status = STATUS_OK;
    for (int k = 1; k < schedule->count && !status; k++)
        status = path_conflicts_check_chain(conflicts, &schedule->chain[k], log);
    return status;
}

enum sluice_status sluice_check_files(const struct sluice_config *given)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    struct schedule schedule = {0};
    struct path_conflicts *conflicts = NULL;
    enum status status = config_read(given, &config, &target, &log);
    if (!status)
        status = config_schedule(&config, &log, &schedule);
    if (!status)
        status = job_files_reserve(&config, schedule.chain, &log, &conflicts);
    if (!status)
        status = check_changes(conflicts, &schedule, &log);
    path_conflicts_destroy(&conflicts);
    schedule_free(&schedule);
    return (enum sluice_status)log_memory(&log, status);
}
