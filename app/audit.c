// `sluice audit OUTPUT`: an output held against its manifest and its source.
#include <inttypes.h>

#include "app/app.h"

static bool write_figures(const struct settings *settings, const struct sluice_audit *found,
                          enum sluice_status status)
{
    json_t *root =
        json_pack("{sb sI sI sI si si si so}", "passed", status == SLUICE_STATUS_OK, "frames",
                  (json_int_t)found->frames, "samples", (json_int_t)found->samples, "packets",
                  (json_int_t)found->packets, "streams", (int)found->streams, "copied",
                  (int)found->copied, "seed", (int)found->seed, "error",
                  *settings->error ? json_string(settings->error) : json_null());
    return dump_json(&root, settings);
}

static void print_figures(const char *name, const struct sluice_audit *found)
{
    fprintf(stderr,
            "%s: %" PRId64 " of %" PRId64 " frames computed again, all equal to the bit; %" PRId64
            " packets as they were written (seed %u)\n",
            name, found->samples, found->frames, found->packets, found->seed);
    if (found->streams)
        fprintf(stderr,
                "%s: streams beside the video: %u as written, %u of them as in the source\n", name,
                found->streams, found->copied);
}

int audit_command(struct settings *settings)
{
    struct sluice_audit found = {.size = sizeof found};
    if (!settings->topic) {
        fprintf(stderr, "sluice: an output is missing; 'sluice audit out.mp4'\n");
        return EXIT_USAGE;
    }
    settings->config.output.name = settings->topic;
    enum sluice_status status =
        sluice_audit(&settings->config, settings->samples, (unsigned)settings->seed, &found);
    if (!status && !settings->quiet)
        print_figures(settings->topic, &found);
    if (settings->json && !write_figures(settings, &found, status) && !status)
        return EXIT_OUTPUT;
    return exit_code_of(status);
}
