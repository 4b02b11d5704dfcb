// `sluice bench`: how fast this machine filters, without and with a file around it.
#include <libavutil/pixdesc.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/engine/config.h"
#include "pipeline/input/picture.h"
#include "base/meter.h"
#include "bench/bench.h"
#include "bench/bench_case.h"
#include "bench/bench_library.h"
#include "stages/chain.h"

enum { REPETITIONS = 7, QUICK_REPETITIONS = 3 };

static const char *const usual_chains[] = {
    CHAIN_DEFAULT, "brightness=20", "gaussian=1.4", "sobel", "gaussian=2.7",
    "gaussian=10", "gaussian=66.5", "box=20",       NULL,
};

struct bench {
    const struct sluice_config *config;
    struct config_log log_target;
    struct log log;
    struct backend *backend;
    char device[96];  // the backend's description, which outlives it
    struct shape own; // the one size that was asked for; no name: the usual ones
    int depth;        // of samples
    int repetitions;
    int64_t repetition_ns;
    void (*row)(void *opaque, const struct sluice_bench_row *row);
    void *opaque;
};

// ---- statistics ----

static void give_row(const struct bench *bench, struct sluice_bench_row row, double *value,
                     int count)
{
    struct spread spread = meter_spread(value, count);
    row.low = spread.low;
    row.median = spread.median;
    row.high = spread.high;
    row.ratio = row.reference > 0 ? row.median / row.reference : 0;
    row.device = bench->device;
    bench->row(bench->opaque, &row);
}

// ---- frames in memory ----

// Pixels a second of frames since `begin_ns`.
static double pixel_rate(const struct bench_case *bench_case, int64_t frames, int64_t begin_ns)
{
    const struct image *picture = &bench_case->source[0];
    return (double)frames * (double)picture->width * (double)picture->height /
           ((double)(meter_now_ns() - begin_ns) * 1e-9);
}

// *rate: pixels a second.
static enum status run_subject(struct bench_case *bench_case, int64_t ns, double *rate)
{
    int64_t frames = 0, begin_ns = meter_now_ns();
    enum status status = bench_case_run(bench_case, ns, &frames);
    *rate = pixel_rate(bench_case, frames, begin_ns);
    return status;
}

static enum status measure_chain(const struct bench *bench, const char *chain,
                                 const struct shape *shape, bool resident, bool by_twos,
                                 double copy)
{
    struct bench_case bench_case;
    double rate[REPETITIONS] = {0};
    char name[512];
    const char *suffix = by_twos ? "; 2 a submission" : "";
    snprintf(name, sizeof name, "%.*s%s", (int)(sizeof name - strlen(suffix) - 1), chain, suffix);
    enum status status =
        bench_case_init(&bench_case, &(struct bench_case_request){
                                         .backend = bench->backend,
                                         .log = &bench->log,
                                         .chain = chain,
                                         .shape = shape,
                                         .depth = bench->depth,
                                         .resident = resident,
                                         .slots = config_slots(bench->config, bench->backend, NULL),
                                         .by_twos = by_twos,
                                     });
    if (status)
        return status;
    status = run_subject(&bench_case, bench->repetition_ns, &rate[0]); // to warm up
    for (int k = 0; k < bench->repetitions && !status; k++) {
        status = run_subject(&bench_case, bench->repetition_ns, &rate[k]);
        rate[k] *= 1e-9;
    }
    bench_case_free(&bench_case);
    if (!status)
        give_row(bench,
                 (struct sluice_bench_row){.group = resident ? "resident" : "memory",
                                           .name = name,
                                           .size = shape->name,
                                           .unit = "Gpx/s",
                                           .reference = copy,
                                           .reference_name = copy > 0 ? "copy" : NULL},
                 rate, bench->repetitions);
    return status;
}

// The number of the GPU that filters.
static int device_of(const struct bench *bench)
{
    return bench->config->device ? atoi(bench->config->device) : 0;
}

// Ways to filter the same frames: by the executor alone, on its own streams and on a caller's, and
// through the library's interface. Each is held against an earlier one.
static const struct way {
    const char *group, *suffix, *held_against;
    int reference;
    int streams; // of a caller; 0: the executor's own
    enum status (*run)(struct bench_library *library, int streams, int64_t ns, int64_t *frames);
} ways[] = {
    {.group = "resident"},
    {"resident", "; 4 streams", "resident", 0, BENCH_STREAMS, bench_library_run_executor},
    {"library", "; 1 stream", "resident", 0, 1, bench_library_run},
    {"library", "; 4 streams", "resident, 4 streams", 1, BENCH_STREAMS, bench_library_run},
};
enum { WAYS = sizeof ways / sizeof *ways };

static enum status run_way(const struct way *way, struct bench_library *library, int64_t ns,
                           double *rate)
{
    int64_t frames = 0, begin_ns = meter_now_ns();
    enum status status = way->run ? way->run(library, way->streams, ns, &frames)
                                  : bench_case_run(library->bench_case, ns, &frames);
    *rate = pixel_rate(library->bench_case, frames, begin_ns);
    return status;
}

// The chain in all ways, one after the other in each repetition. A chain that is none of a
// filter's is left out.
static enum status measure_library(const struct bench *bench, const char *chain,
                                   const struct shape *shape)
{
    const char *pixfmt = bench->config->input_pixfmt ? bench->config->input_pixfmt : "gray";
    struct bench_case bench_case;
    struct bench_library library;
    double rate[WAYS][REPETITIONS + 1] = {{0}};
    const struct bench_case_request request = {.backend = bench->backend,
                                               .log = &bench->log,
                                               .chain = chain,
                                               .shape = shape,
                                               .depth = bench->depth,
                                               .resident = true};
    enum status status = bench_case_init(&bench_case, &request);
    if (status)
        return status;
    status = bench_library_init(&library, &bench_case, chain, pixfmt, device_of(bench));
    bool absent = status == STATUS_USAGE;
    for (int k = 0; k < WAYS * (bench->repetitions + 1) && !status; k++) { // the first to warm up
        double *to = &rate[k % WAYS][k / WAYS];
        status = run_way(&ways[k % WAYS], &library, bench->repetition_ns, to);
        *to *= 1e-9;
    }
    bench_library_free(&library);
    bench_case_free(&bench_case);
    if (status)
        return absent ? STATUS_OK : status;
    for (int k = 1; k < WAYS; k++) { // the first has its row among the resident ones
        const struct way *way = &ways[k];
        char name[512];
        snprintf(name, sizeof name, "%s%s", chain, way->suffix);
        give_row(bench,
                 (struct sluice_bench_row){
                     .group = way->group,
                     .name = name,
                     .size = shape->name,
                     .unit = "Gpx/s",
                     .reference = meter_spread(rate[way->reference] + 1, bench->repetitions).median,
                     .reference_name = way->held_against},
                 rate[k] + 1, bench->repetitions);
    }
    return STATUS_OK;
}

// The time that frames of 64x64 take one by one: the overhead of a call.
static enum status measure_small(const struct bench *bench, const char *chain)
{
    static const char *const names[] = {"one by one, host", "one by one, device"};
    enum status status = STATUS_OK;
    for (int on_device = 0; on_device < 2 && !status; on_device++) {
        double us[REPETITIONS] = {0};
        for (int k = 0; k < bench->repetitions && !status; k++)
            status = bench_library_run_small(bench->backend, chain, device_of(bench), on_device,
                                             bench->repetition_ns, &us[k]);
        if (status == STATUS_USAGE)
            return STATUS_OK;
        if (!status)
            give_row(
                bench,
                (struct sluice_bench_row){
                    .group = "library", .name = names[on_device], .size = "64x64", .unit = "us"},
                us, bench->repetitions);
    }
    return status;
}

// Bandwidth of the device's memory: a plain copy of frames of this size, in pixels a second.
static enum status measure_copy(const struct bench *bench, const struct shape *shape, double *copy)
{
    struct backend *backend = bench->backend;
    size_t bytes = (size_t)shape->width * (size_t)shape->height * (bench->depth > 8 ? 2 : 1) *
                   (size_t)shape->together;
    double rate[REPETITIONS] = {0};
    enum status status = STATUS_OK;
    for (int k = 0; k < bench->repetitions && !status; k++) {
        status =
            backend->measure_copy(backend, bytes, (double)bench->repetition_ns * 1e-9, &rate[k]);
        rate[k] *= 1e-9 / (bench->depth > 8 ? 2 : 1);
    }
    if (status)
        return status;
    give_row(bench,
             (struct sluice_bench_row){
                 .group = "resident", .name = "copy", .size = shape->name, .unit = "Gpx/s"},
             rate, bench->repetitions);
    *copy = rate[bench->repetitions / 2];
    return STATUS_OK;
}

static enum status measure_link(const struct bench *bench)
{
    static const char *const names[LINK_WAYS] = {
        [LINK_UP] = "to the GPU", [LINK_DOWN] = "from the GPU", [LINK_BOTH] = "both at once, each"};
    double rate[LINK_WAYS][REPETITIONS] = {0};
    enum status status = STATUS_OK;
    for (int k = 0; k < bench->repetitions; k++)
        for (int way = 0; way < LINK_WAYS && !status; way++)
            status =
                bench->backend->measure_link(bench->backend, (enum link_way)way,
                                             (double)bench->repetition_ns * 1e-9, &rate[way][k]);
    for (int way = 0; way < LINK_WAYS && !status; way++) {
        for (int k = 0; k < bench->repetitions; k++)
            rate[way][k] *= 1e-9;
        give_row(bench,
                 (struct sluice_bench_row){.group = "link", .name = names[way], .unit = "GB/s"},
                 rate[way], bench->repetitions);
    }
    return status;
}

// True if frames between host and GPU are measured by twos as well: small ones, as those of 1080p,
// whose copies take an engine twelve times as long as it rests between two of them.
static bool goes_by_twos(const struct bench *bench, const struct shape *shape, bool resident)
{
    return !resident && bench->backend->gpus == 1 &&
           (int64_t)shape->width * shape->height < INT64_C(4) << 20 &&
           config_slots(bench->config, bench->backend, NULL) % 2 == 0;
}

static enum status measure_memory(const struct bench *bench, bool resident)
{
    const char *const own[] = {bench->config->chain, NULL};
    const char *const *chains = bench->config->chain ? own : usual_chains;
    enum status status = STATUS_OK;
    const struct shape *all = *bench->own.name ? &bench->own : usual_shapes;
    int count = *bench->own.name ? 1 : SHAPES;
    for (int s = 0; s < count && !status; s++) {
        double copy = 0;
        if (resident)
            status = measure_copy(bench, &all[s], &copy);
        for (int k = 0; chains[k] && !status; k++)
            status = measure_chain(bench, chains[k], &all[s], resident, false, copy);
        for (int k = 0; chains[k] && goes_by_twos(bench, &all[s], resident) && !status; k++)
            status = measure_chain(bench, chains[k], &all[s], resident, true, copy);
    }
    return status;
}

static enum status measure_libraries(const struct bench *bench)
{
    const char *const own[] = {bench->config->chain, NULL};
    const char *const *chains = bench->config->chain ? own : usual_chains;
    const struct shape *all = *bench->own.name ? &bench->own : usual_shapes;
    int count = *bench->own.name ? 1 : SHAPES;
    enum status status = STATUS_OK;
    for (int s = 0; s < count; s++)
        for (int k = 0; chains[k] && !status; k++)
            status = measure_library(bench, chains[k], &all[s]);
    return status ? status : measure_small(bench, chains[0]);
}

// ---- a file around it ----

static enum status open_file(const struct bench *bench, const char *chain, bool encodes,
                             struct sluice_job **job)
{
    struct sluice_config config = *bench->config;
    config.chain = chain;
    config.overwrite = true; // the timeline of the run before: its name was looked at
    if (!encodes)
        config.output = (struct sluice_output){0};
    config.output.name = encodes ? "/dev/null" : "null:";
    config.output.format = encodes ? "matroska" : NULL;
    if (config.duration <= 0)
        config.duration = 10;
    return (enum status)sluice_job_create(&config, job);
}

// One run of a job; *rate in frames a second.
static enum status run_file(const struct bench *bench, const char *chain, bool encodes,
                            double *rate)
{
    struct sluice_job *job;
    struct sluice_summary summary = {.size = sizeof summary};
    enum status status = open_file(bench, chain, encodes, &job);
    if (!status)
        status = (enum status)sluice_job_run(job);
    if (!status) {
        sluice_job_summary(job, &summary);
        *rate = (double)summary.ledger.frames_out / summary.seconds;
    }
    sluice_job_destroy(&job);
    return status;
}

// A file that cannot be measured is refused before anything is.
static enum status check_file(const struct bench *bench)
{
    struct sluice_job *job;
    enum status status = open_file(bench, bench->config->chain, true, &job);
    sluice_job_destroy(&job);
    return status;
}

static enum status measure_file(const struct bench *bench)
{
    const struct {
        const char *name, *chain;
        bool encodes;
    } runs[] = {{"decode", "null", false},
                {"decode, filter", bench->config->chain, false},
                {"decode, encode", "null", true},
                {"decode, filter, encode", bench->config->chain, true}};
    enum { RUNS = sizeof runs / sizeof *runs, TIMES = 3 };
    double rate[RUNS][TIMES] = {0};
    enum status status = STATUS_OK;
    for (int k = 0; k < TIMES; k++)
        for (int run = 0; run < RUNS && !status; run++)
            status = run_file(bench, runs[run].chain, runs[run].encodes, &rate[run][k]);
    for (int run = 0; run < RUNS && !status; run++)
        give_row(bench,
                 (struct sluice_bench_row){.group = "file",
                                           .name = runs[run].name,
                                           .unit = "fps",
                                           .reference = run % 2 ? rate[run - 1][TIMES / 2] : 0,
                                           .reference_name = run % 2 ? runs[run - 1].name : NULL},
                 rate[run], TIMES);
    return status;
}

// Without a file --size and --pix-fmt are of the frames in memory.
static enum status read_shape(struct bench *bench)
{
    const struct sluice_config *config = bench->config;
    bench->depth = 8;
    if (config->input)
        return STATUS_OK;
    enum status status = config->input_width ? shape_init(config->input_width, config->input_height,
                                                          &bench->log, &bench->own)
                                             : STATUS_OK;
    if (status)
        return status;
    if (config->input_pixfmt) {
        const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(av_get_pix_fmt(config->input_pixfmt));
        if (!about || about->nb_components != 1 || about->comp[0].depth < 8 ||
            about->comp[0].depth > 16)
            return log_fail(&bench->log, STATUS_USAGE,
                            "--pix-fmt is '%s'; bench takes gray, gray10le, gray16le and the like",
                            config->input_pixfmt);
        bench->depth = about->comp[0].depth;
    }
    return STATUS_OK;
}

// The chain as it is measured: what it would write of its own is left out. NULL: as it was given.
static enum status mute_chain(const struct bench *bench, const char *given, char **muted)
{
    struct chain chain;
    *muted = NULL;
    enum status status =
        given ? chain_parse_logged(given, &picture_reader, &bench->log, &chain) : STATUS_OK;
    if (!given || status)
        return status;
    if (chain_files(&chain, WRITES_PICTURES, NULL, 0) +
        chain_files(&chain, WRITES_RECORDS, NULL, 0)) {
        chain_mute(&chain);
        *muted = chain_text(&chain);
        status = *muted ? STATUS_OK : STATUS_MEMORY;
    }
    chain_free(&chain);
    return status;
}

enum sluice_status sluice_bench(const struct sluice_config *config, bool quick,
                                void (*row)(void *opaque, const struct sluice_bench_row *row),
                                void *opaque)
{
    char reason[256], *muted;
    struct sluice_config measured = *config;
    struct bench bench = {
        .config = &measured,
        .repetitions = quick ? QUICK_REPETITIONS : REPETITIONS,
        .repetition_ns = (quick ? 40 : 200) * INT64_C(1000000),
        .row = row,
        .opaque = opaque,
    };
    bench.log = config_log(config, &bench.log_target);
    enum status status = mute_chain(&bench, config->chain, &muted);
    if (muted)
        measured.chain = muted;
    if (!status)
        status = (enum status)sluice_check_files(&measured);
    if (!status)
        status = read_shape(&bench);
    if (!status && config->input)
        status = check_file(&bench);
    if (!status)
        status = config_backend(config, false, &bench.log, &bench.backend, reason, sizeof reason);
    if (!status)
        snprintf(bench.device, sizeof bench.device, "%s", bench.backend->description);
    if (!status && bench.backend->gpus == 1)
        status = measure_link(&bench);
    if (!status && bench.backend->gpus == 1)
        status = measure_memory(&bench, true);
    if (!status && bench.backend->gpus == 1)
        status = measure_libraries(&bench);
    if (!status)
        status = measure_memory(&bench, false);
    if (bench.backend)
        backend_destroy(&bench.backend);
    if (!status && config->input)
        status = measure_file(&bench);
    free(muted);
    return (enum sluice_status)status;
}
