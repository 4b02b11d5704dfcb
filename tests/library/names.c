// A program that has functions of its own under names that libsluice uses inside, and runs a job.
//
//     names INPUT
#include <stdio.h>

#include <sluice/sluice.h>

int fail(const char *why)
{
    printf("%s\n", why);
    return 1;
}

int queue_push(int a)
{
    return a + 1;
}
int ring_claim(int a)
{
    return a + 2;
}
int chain_parse(int a)
{
    return a + 3;
}
int log_print(int a)
{
    return a + 4;
}
int stages = 5;

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= SLUICE_LOG_WARNING)
        printf("log: %s\n", sentence);
}

int main(int argc, char **argv)
{
    struct sluice_config config = {.size = sizeof config,
                                   .input = argc > 1 ? argv[1] : NULL,
                                   .output.name = "null:",
                                   .chain = "gray,gaussian=1.4,sobel",
                                   .verify = 3,
                                   .log = print};
    struct sluice_summary summary = {.size = sizeof summary};
    struct sluice_job *job;
    if (sluice_api_version() < SLUICE_API_VERSION)
        return fail("the library is older than its headers");
    if (sluice_job_create(&config, &job))
        return fail("no job");
    enum sluice_status status = sluice_job_run(job);
    sluice_job_summary(job, &summary);
    printf("%s, %lld frames, %lld verified, %d\n", sluice_status_name(status),
           (long long)summary.ledger.frames_out, (long long)summary.ledger.verified,
           queue_push(0) + ring_claim(0) + chain_parse(0) + log_print(0) + stages);
    sluice_job_destroy(&job);
    return status != SLUICE_STATUS_OK;
}
