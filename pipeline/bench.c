// `sluice bench`: how fast this machine filters, without and with a file around it.
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/check.h"
#include "pipeline/choose.h"
#include "pipeline/meter.h"
#include "pipeline/ring.h"
#include "pipeline/sluice.h"
#include "stages/backend.h"
#include "stages/chain.h"

enum { REPETITIONS = 7, QUICK_REPETITIONS = 3, TOGETHER_MOST = 8 };

// Frames that stay on the GPU move at least so much, so that its cache does not hold them all.
static const size_t working_set = 256 << 20;

// Frames that stay on the GPU are submitted several together, as a library could; those between
// host and GPU one by one, as a job does.
struct shape {
    const char *name;
    int width, height;
    int together;
};

static const struct shape shapes[] = {
    {"1080p", 1920, 1080, 8}, {"4K", 3840, 2160, 4}, {"8K", 7680, 4320, 1}};

static const char *const usual_chains[] = {
    CHAIN_DEFAULT, "brightness=20", "gaussian=1.4", "sobel", "gaussian=2.7",
    "gaussian=10", "gaussian=66.5", "box=20",       NULL,
};

struct bench {
    const struct sluice_config *config;
    struct log log;
    struct backend *backend;
    struct shape own; // the one size that was asked for; no name: the usual ones
    char own_name[32];
    int depth; // of samples
    int repetitions;
    int64_t repetition_ns;
    void (*row)(void *opaque, const struct sluice_bench_row *row);
    void *opaque;
};

// ---- statistics ----

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void give_row(const struct bench *bench, struct sluice_bench_row row, double *value,
                     int count)
{
    qsort(value, (size_t)count, sizeof *value, compare_doubles);
    row.low = value[0];
    row.median = value[count / 2];
    row.high = value[count - 1];
    row.ratio = row.reference > 0 ? row.median / row.reference : 0;
    bench->row(bench->opaque, &row);
}

// ---- frames in memory ----

// A chain ready to run on frames of one size: gray, full range.
struct subject {
    struct program program;
    struct plan *plan;
    struct executor *executor;
    int slots, together;
    bool resident;                 // sources on the device, and no targets
    void *stream;                  // of sources on the device; NULL: on the host
    struct image *source, *target; // `frames` of each
    int frames;
    size_t bytes; // of a frame
};

static enum status plan_chain(const struct bench *bench, const char *text, struct subject *subject)
{
    const struct format full = {.range = RANGE_FULL};
    const struct format gray = format_planar(MODEL_GRAY, bench->depth, 0, 0, false, &full);
    struct chain chain;
    enum status status = chain_parse_logged(text, &bench->log, &chain);
    if (status)
        return status;
    status = program_init(&subject->program, &gray);
    if (!status)
        status = chain_lower(&chain, &subject->program);
    if (!status)
        status = program_finish(&subject->program, NULL);
    if (!status)
        status = plan_create(&subject->program, bench->backend->limits, &subject->plan);
    chain_free(&chain);
    return status;
}

static size_t frame_bytes(const struct bench *bench, const struct shape *shape)
{
    return (size_t)shape->width * (size_t)shape->height * (bench->depth > 8 ? 2 : 1);
}

// Noise: nothing that a table or a branch could profit from.
static void fill(uint8_t *memory, size_t bytes, int depth)
{
    uint64_t state = 1;
    for (size_t k = 0; k < bytes; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u; // Knuth, TAOCP 2, 3.3.4
        memory[k] = (uint8_t)(state >> (depth > 8 && k % 2 ? 72 - depth : 56));
    }
}

// Memory for a source and, on the host, for a target. They hold the same noise in every frame.
static enum status make_frame(const struct bench *bench, const uint8_t *noise, bool resident,
                              struct image *source, struct image *target, size_t bytes)
{
    struct backend *backend = bench->backend;
    if (resident) {
        source->data[0] = backend->device_copy(backend, noise, bytes);
        return source->data[0] ? STATUS_OK : STATUS_MEMORY;
    }
    source->data[0] = backend->alloc(backend, bytes);
    target->data[0] = backend->alloc(backend, bytes);
    if (!source->data[0] || !target->data[0])
        return STATUS_MEMORY;
    memcpy(source->data[0], noise, bytes);
    return STATUS_OK;
}

static enum status make_frames(const struct bench *bench, const struct shape *shape, bool resident,
                               struct subject *subject)
{
    size_t bytes = frame_bytes(bench, shape);
    subject->bytes = bytes;
    // On the host as many as a decoder keeps in turn, which the processor's cache may well hold.
    subject->frames = resident ? (int)(working_set / 2 / bytes) : 2 * subject->slots;
    if (resident && subject->frames < subject->together)
        subject->frames = subject->together;
    subject->source = calloc((size_t)subject->frames, sizeof *subject->source);
    subject->target = calloc((size_t)subject->frames, sizeof *subject->target);
    uint8_t *noise = malloc(bytes);
    enum status status = subject->source && subject->target && noise ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        fill(noise, bytes, bench->depth);
    for (int k = 0; k < subject->frames && !status; k++) {
        struct image *source = &subject->source[k], *target = &subject->target[k];
        *source = (struct image){.format = &subject->program.input,
                                 .width = shape->width,
                                 .height = shape->height,
                                 .stride = {(ptrdiff_t)(bytes / (size_t)shape->height)}};
        *target = *source;
        target->format = &subject->program.output;
        status = make_frame(bench, noise, resident, source, target, bytes);
    }
    free(noise);
    if (!status && resident)
        status = bench->backend->stream_create(bench->backend, &subject->stream);
    return status;
}

static void subject_free(const struct bench *bench, struct subject *subject)
{
    struct backend *backend = bench->backend;
    executor_destroy(&subject->executor);
    for (int k = 0; k < subject->frames && subject->source && subject->target; k++) {
        uint8_t *source = subject->source[k].data[0], *target = subject->target[k].data[0];
        if (source && subject->resident)
            backend->device_free(backend, source);
        else if (source)
            backend->free(backend, source, subject->bytes);
        if (target)
            backend->free(backend, target, subject->bytes);
    }
    if (subject->stream)
        backend->stream_destroy(backend, &subject->stream);
    free(subject->source);
    free(subject->target);
    plan_destroy(&subject->plan);
    program_free(&subject->program);
}

// Enough groups of frames that the GPU never waits for the host, within half a gigabyte; an even
// number of groups.
static int resident_slots(const struct bench *bench, const struct shape *shape)
{
    size_t group = frame_bytes(bench, shape) * (size_t)shape->together;
    int pairs = (int)(((size_t)256 << 20) / group);
    return shape->together * 2 * (pairs < 2 ? 2 : pairs > 8 ? 8 : pairs);
}

static enum status subject_init(const struct bench *bench, const char *chain,
                                const struct shape *shape, bool resident, struct subject *subject)
{
    struct backend *backend = bench->backend;
    *subject = (struct subject){0};
    subject->resident = resident;
    subject->together = resident ? shape->together : 1;
    subject->slots =
        resident ? resident_slots(bench, shape) : backend_slots(bench->config, backend, false, 0);
    enum status status = plan_chain(bench, chain, subject);
    if (!status)
        status = backend->executor_create(backend, subject->plan, shape->width, shape->height,
                                          subject->slots, true, &subject->executor);
    if (!status)
        status = make_frames(bench, shape, resident, subject);
    if (status)
        subject_free(bench, subject);
    return status;
}

// ---- running ----

static void next_work(const struct subject *subject, int64_t first, struct work *work)
{
    for (int k = 0; k < subject->together; k++) {
        int frame = (int)((first + k) % subject->frames);
        work[k] = (struct work){.source = subject->source[frame],
                                .target = subject->target[frame],
                                .source_on_device = subject->stream,
                                .source_stream = subject->stream};
    }
}

static enum status await_newest_first(struct subject *subject, int64_t from, int64_t to)
{
    enum status status = STATUS_OK;
    while (to-- > from)
        status = status_join(
            status, subject->executor->wait(subject->executor, (int)(to % subject->slots), NULL));
    return status;
}

// Frames that stay on the device, for about `ns`: *frames is how many. When all slots are in use,
// half of them are waited for at once: to sleep and to wake costs the host as much time as some
// frames cost the GPU.
static enum status run_resident(struct subject *subject, int64_t ns, int64_t *frames)
{
    struct work work[TOGETHER_MOST];
    int64_t begin = meter_now_ns(), submitted = 0, waited = 0;
    enum status status = STATUS_OK;
    while (!status && (submitted < subject->slots || meter_now_ns() - begin < ns)) {
        if (submitted - waited == subject->slots) {
            status = await_newest_first(subject, waited, waited + subject->slots / 2);
            waited += subject->slots / 2;
        }
        next_work(subject, submitted, work);
        if (!status)
            status = executor_submit_many_async(
                subject->executor, (int)(submitted % subject->slots), work, subject->together);
        submitted += status ? 0 : subject->together;
    }
    *frames = submitted;
    return status_join(status, await_newest_first(subject, waited, submitted));
}

// The second thread of a job, which waits for the frames that the first began.
struct waiter {
    struct executor *executor;
    struct ring *ring;
    enum status status;
};

static void *await_frames(void *waiter_)
{
    struct waiter *waiter = waiter_;
    struct slot *slot;
    while (!ring_take(waiter->ring, &slot)) {
        enum status status = waiter->executor->wait(waiter->executor, slot->number, NULL);
        waiter->status = status_join(waiter->status, status);
        ring_release(waiter->ring, slot);
    }
    return NULL;
}

// Frames from host memory to host memory, as a job does them, for about `ns`.
static enum status run_job(struct subject *subject, int64_t ns, int64_t *frames)
{
    struct waiter waiter = {.executor = subject->executor};
    struct slot *slot;
    struct work work;
    pthread_t thread;
    *frames = 0;
    enum status status = ring_create(subject->slots, &waiter.ring);
    if (status)
        return status;
    if (pthread_create(&thread, NULL, await_frames, &waiter)) {
        ring_destroy(&waiter.ring);
        return STATUS_FAILED;
    }
    int64_t begin = meter_now_ns();
    while (!status && (*frames < subject->slots || meter_now_ns() - begin < ns)) {
        next_work(subject, *frames, &work);
        status = ring_claim(waiter.ring, &slot);
        if (!status)
            status = subject->executor->submit_async(subject->executor, slot->number, &work);
        if (!status)
            ring_publish(waiter.ring, slot);
        *frames += !status;
    }
    ring_finish(waiter.ring);
    pthread_join(thread, NULL);
    ring_destroy(&waiter.ring);
    return status_join(status, waiter.status);
}

// *rate: pixels a second.
static enum status run_subject(struct subject *subject, int64_t ns, double *rate)
{
    int64_t frames, begin = meter_now_ns();
    enum status status =
        subject->resident ? run_resident(subject, ns, &frames) : run_job(subject, ns, &frames);
    const struct image *picture = &subject->source[0];
    *rate = (double)frames * (double)picture->width * (double)picture->height /
            ((double)(meter_now_ns() - begin) * 1e-9);
    return status;
}

static enum status measure_chain(const struct bench *bench, const char *chain,
                                 const struct shape *shape, bool resident, double copy)
{
    struct subject subject;
    double rate[REPETITIONS] = {0};
    enum status status = subject_init(bench, chain, shape, resident, &subject);
    if (status)
        return status;
    status = run_subject(&subject, bench->repetition_ns, &rate[0]); // to warm up
    for (int k = 0; k < bench->repetitions && !status; k++) {
        status = run_subject(&subject, bench->repetition_ns, &rate[k]);
        rate[k] *= 1e-9;
    }
    subject_free(bench, &subject);
    if (!status)
        give_row(bench,
                 (struct sluice_bench_row){.group = resident ? "resident" : "memory",
                                           .name = chain,
                                           .size = shape->name,
                                           .unit = "Gpx/s",
                                           .reference = copy,
                                           .reference_name = copy > 0 ? "copy" : NULL},
                 rate, bench->repetitions);
    return status;
}

// What the device's memory can do: a plain copy of frames of this size, in pixels a second.
static enum status measure_copy(const struct bench *bench, const struct shape *shape, double *copy)
{
    struct backend *backend = bench->backend;
    size_t bytes = frame_bytes(bench, shape) * (size_t)shape->together;
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

static enum status measure_memory(const struct bench *bench, bool resident)
{
    const char *const own[] = {bench->config->chain, NULL};
    const char *const *chains = bench->config->chain ? own : usual_chains;
    enum status status = STATUS_OK;
    const struct shape *all = bench->own.name ? &bench->own : shapes;
    int count = bench->own.name ? 1 : (int)(sizeof shapes / sizeof *shapes);
    for (int s = 0; s < count && !status; s++) {
        double copy = 0;
        if (resident)
            status = measure_copy(bench, &all[s], &copy);
        for (int k = 0; chains[k] && !status; k++)
            status = measure_chain(bench, chains[k], &all[s], resident, copy);
    }
    return status;
}

// ---- a file around it ----

static enum status open_file(const struct bench *bench, const char *chain, bool encodes,
                             struct sluice_job **job)
{
    struct sluice_config config = *bench->config;
    config.chain = chain;
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
    struct sluice_summary summary;
    enum status status = open_file(bench, chain, encodes, &job);
    if (!status)
        status = (enum status)sluice_job_run(job);
    if (!status) {
        sluice_job_summary(job, &summary);
        *rate = (double)summary.frames_out / summary.seconds;
    }
    sluice_job_destroy(&job);
    return status;
}

// What is wrong with the file is said before anything is measured.
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

// Without a file --size and --pixfmt are of the frames in memory.
static enum status read_shape(struct bench *bench)
{
    const struct sluice_config *config = bench->config;
    bench->depth = 8;
    if (config->input)
        return STATUS_OK;
    if (config->input_size) {
        if (av_parse_video_size(&bench->own.width, &bench->own.height, config->input_size) < 0 ||
            (int64_t)bench->own.width * bench->own.height > INT64_C(1) << 28)
            return fail(&bench->log, STATUS_USAGE, "--size is '%s'; it takes WxH, as in 1920x1080",
                        config->input_size);
        snprintf(bench->own_name, sizeof bench->own_name, "%dx%d", bench->own.width,
                 bench->own.height);
        bench->own.name = bench->own_name;
        bench->own.together = 1;
    }
    if (config->input_pixfmt) {
        const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(av_get_pix_fmt(config->input_pixfmt));
        if (!about || about->nb_components != 1 || about->comp[0].depth < 8 ||
            about->comp[0].depth > 16)
            return fail(&bench->log, STATUS_USAGE,
                        "--pixfmt is '%s'; bench takes gray, gray10le, gray16le and the like",
                        config->input_pixfmt);
        bench->depth = about->comp[0].depth;
    }
    return STATUS_OK;
}

enum sluice_status sluice_bench(const struct sluice_config *config, bool quick,
                                void (*row)(void *opaque, const struct sluice_bench_row *row),
                                void *opaque)
{
    char reason[256];
    struct bench bench = {
        .config = config,
        .log = {(void (*)(void *, enum log_level, const char *))config->log, config->opaque},
        .repetitions = quick ? QUICK_REPETITIONS : REPETITIONS,
        .repetition_ns = (quick ? 40 : 200) * INT64_C(1000000),
        .row = row,
        .opaque = opaque,
    };
    enum status status = read_shape(&bench);
    if (!status && config->input)
        status = check_file(&bench);
    if (!status)
        status = backend_choose(config, false, &bench.log, &bench.backend, reason, sizeof reason);
    if (!status && bench.backend->has_device_memory)
        status = measure_link(&bench);
    if (!status && bench.backend->has_device_memory)
        status = measure_memory(&bench, true);
    if (!status)
        status = measure_memory(&bench, false);
    if (bench.backend)
        backend_destroy(&bench.backend);
    if (!status && config->input)
        status = measure_file(&bench);
    return (enum sluice_status)status;
}
