// A caller as it was compiled with the headers of interface 1.0. Whatever library it finds, nothing
// is read or written beyond the structs that it knows: behind each of them are bytes of 0xA5.
//
//     former INPUT
#include <sluice/sluice.h>

#include "former.h"

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level == SLUICE_LOG_ERROR)
        printf("log: %s\n", sentence);
}

int main(int argc, char **argv)
{
    struct sluice_config *config = begin(sizeof *config);
    struct sluice_job *job;
    config->input = argc > 1 ? argv[1] : NULL;
    config->output.name = "null:";
    config->chain = "gray,stats";
    config->log = print;
    enum sluice_status status = sluice_job_create(config, &job);
    if (!status)
        status = sluice_job_run(job);
    end("sluice_config", config, sizeof *config, status);
    TRY(sluice_progress, sluice_job_progress(job, to));
    TRY(sluice_summary, sluice_job_summary(job, to));
    TRY(sluice_output_figures, sluice_job_output(job, 0, to));
    TRY(sluice_record, sluice_job_record(job, 0, to));
    TRY(sluice_figure, sluice_job_figure(job, 0, 0, to));
    TRY(sluice_stage_info, sluice_stage(0, to));
    TRY(sluice_option_info, sluice_stage_option(0, 0, to));
    struct sluice_device_kind *kind = begin(sizeof *kind); // there may be none
    status = sluice_device_kind(0, kind);
    end("sluice_device_kind", kind, sizeof *kind, status == SLUICE_STATUS_END ? 0 : status);
    sluice_job_destroy(&job);
    printf("well\n");
    return 0;
}
