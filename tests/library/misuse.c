// Mistakes of callers: every failure gives one sentence, texts may go after the
// call, sizes count.
//
//     misuse INPUT
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sluice.h>

static int errors, chains;
static char last[1024];

static void count_error(void *opaque, enum sluice_log_level level, const char *sentence)
{
    assert(opaque == &errors);
    if (level == SLUICE_LOG_ERROR) {
        errors++;
        snprintf(last, sizeof last, "%s", sentence);
    }
}

static void count_chain(void *opaque, int64_t pts_us, const char *chain)
{
    (void)opaque, (void)pts_us;
    chains += !strcmp(chain, chains ? "invert" : "gray");
}

static struct sluice_config usual(const char *input)
{
    return (struct sluice_config){.size = sizeof(struct sluice_config),
                                  .input = input,
                                  .output.name = "null:",
                                  .chain = "gray",
                                  .log = count_error,
                                  .opaque = &errors};
}

static int bad;

// Every call with this configuration fails so, each with one sentence that has `word`.
static void refuse(const char *what, const struct sluice_config *config, const char *word,
                   enum sluice_status wanted)
{
    struct sluice_job *job = NULL;
    errors = 0;
    enum sluice_status status = sluice_job_create(config, &job);
    if (!status)
        status = sluice_job_run(job);
    sluice_job_destroy(&job);
    if (status != wanted || errors != 1 || !strstr(last, word)) {
        printf("%s: %s with %d sentences, the last '%s'\n", what, sluice_status_name(status),
               errors, last);
        bad = 1;
    }
}

static void refuse_all(const char *input)
{
    struct sluice_config config = usual(input);
    config.size = 0;
    refuse("no size", &config, "sizeof", SLUICE_STATUS_USAGE);
    config = usual(input);
    config.output.reserved[7] = "newer";
    refuse("reserved", &config, "newer", SLUICE_STATUS_USAGE);
    config = usual(input);
    struct sluice_change changes[2] = {{.chain = "gray", .reserved = {"newer"}}};
    config.changes = changes;
    refuse("reserved change", &config, "newer", SLUICE_STATUS_USAGE);
    config = usual(NULL);
    refuse("no input", &config, "no input", SLUICE_STATUS_USAGE);
    config = usual("missing.mp4");
    refuse("missing input", &config, "missing.mp4", SLUICE_STATUS_INPUT);
    config = usual(input);
    config.chain = "grey";
    refuse("chain", &config, "grey", SLUICE_STATUS_USAGE);
    config = usual(input);
    config.output.name = "/nowhere/out.mkv";
    refuse("output", &config, "/nowhere", SLUICE_STATUS_OUTPUT);
    config = usual(input);
    config.output.name = "out.mkv";
    config.output.crf = 99;
    config.output.encoder = "libx264";
    refuse("crf", &config, "crf", SLUICE_STATUS_USAGE);
    config = usual(input);
    config.stream = SLUICE_STREAM(9);
    refuse("stream", &config, "9", SLUICE_STATUS_USAGE);
    config = usual(input);
    config.input_width = 64;
    refuse("half a size", &config, "input_height", SLUICE_STATUS_USAGE);
    config = usual(input);
    config.ring = -1;
    refuse("ring", &config, "ring", SLUICE_STATUS_USAGE);
}

// A newer program's configuration: longer, and all that is not known is zero, or is not.
static void try_newer(const char *input)
{
    struct {
        struct sluice_config config;
        long newer[4];
    } longer = {.config = usual(input)};
    struct sluice_job *job;
    longer.config.size = sizeof longer;
    assert(!sluice_job_create(&longer.config, &job));
    sluice_job_destroy(&job);
    longer.newer[2] = 1;
    refuse("a newer member", &longer.config, "newer", SLUICE_STATUS_USAGE);
    struct {
        struct sluice_progress progress;
        long newer[4];
    } more = {.progress.size = sizeof more, .newer = {1, 2, 3, 4}};
    struct sluice_config config = usual(input);
    assert(!sluice_job_create(&config, &job));
    assert(!sluice_job_progress(job, &more.progress) && !more.newer[0] && !more.newer[3]);
    struct sluice_summary unset = {.width = 5};
    assert(sluice_job_summary(job, &unset) == SLUICE_STATUS_USAGE && unset.width == 5);
    char why[100] = "";
    errors = 0;
    assert(sluice_job_set(job, "gray.no=1", why, sizeof why) == SLUICE_STATUS_USAGE && *why);
    assert(sluice_job_set_chain(job, "grey", why, sizeof why) == SLUICE_STATUS_USAGE && *why);
    assert(!errors); // requests are no failures of the job
    sluice_job_destroy(&job);
}

// All that the caller gave goes before the job runs.
static void forget_texts(const char *input)
{
    char *texts = strdup(input), *first = strdup("gray"), *second = strdup("invert");
    struct sluice_change *changes = calloc(2, sizeof *changes);
    struct sluice_config *config = malloc(sizeof *config);
    struct sluice_job *job;
    *config = usual(texts);
    config->chain = first;
    changes[0] = (struct sluice_change){.pts_us = 200000, .chain = second};
    config->changes = changes;
    config->changed = count_chain;
    assert(!sluice_job_create(config, &job));
    memset(texts, 'x', strlen(texts));
    memset(first, 'x', strlen(first));
    memset(second, 'x', strlen(second));
    memset(changes, 0x5A, 2 * sizeof *changes);
    memset(config, 0x5A, sizeof *config);
    free(texts), free(first), free(second), free(changes), free(config);
    enum sluice_status status = sluice_job_run(job);
    if (status || chains != 2) {
        printf("texts that went: %s, %d chains\n", sluice_status_name(status), chains);
        bad = 1;
    }
    sluice_job_destroy(&job);
}

static void parse_numbers(void)
{
    int width, height;
    int64_t bits;
    struct sluice_rate rate;
    assert(!sluice_parse_size("hd720", &width, &height) && width == 1280 && height == 720);
    assert(sluice_parse_size("64", &width, &height) == SLUICE_STATUS_USAGE && width == 1280);
    assert(!sluice_parse_rate("ntsc", &rate) && rate.num == 30000 && rate.den == 1001);
    assert(sluice_parse_rate("0", &rate) == SLUICE_STATUS_USAGE && rate.num == 30000);
    assert(!sluice_parse_bitrate("2M", &bits) && bits == 2000000);
    assert(!sluice_parse_bitrate("0", &bits) && bits == SLUICE_BITRATE_ZERO);
    assert(sluice_parse_bitrate("fast", &bits) == SLUICE_STATUS_USAGE);
}

int main(int argc, char **argv)
{
    assert(argc == 2);
    refuse_all(argv[1]);
    try_newer(argv[1]);
    forget_texts(argv[1]);
    parse_numbers();
    printf(bad ? "not well\n" : "well\n");
    return bad;
}
