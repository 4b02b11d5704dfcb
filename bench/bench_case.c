#include "bench/bench_case.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "base/meter.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/input/picture.h"
#include "stages/chain.h"

// Frames that stay on the GPU move at least so much, so that its cache does not hold them all.
static const size_t working_set = 256 << 20;

// ---- shapes ----

const struct shape usual_shapes[SHAPES] = {
    {"1080p", 1920, 1080, 8}, {"4K", 3840, 2160, 4}, {"8K", 7680, 4320, 1}};

enum status shape_init(int width, int height, const struct log *log, struct shape *shape)
{
    *shape = (struct shape){.width = width, .height = height, .together = 1};
    if ((int64_t)width * height > INT64_C(1) << 28)
        return log_fail(log, STATUS_USAGE, "--size is %dx%d; that is more than 2^28 samples", width,
                        height);
    snprintf(shape->name, sizeof shape->name, "%dx%d", shape->width, shape->height);
    return STATUS_OK;
}

// ---- frames ----

static enum status lower_chain(const struct bench_case_request *request, struct program *program)
{
    struct chain chain;
    if (request->lower) {
        request->lower(request->opaque, program);
        return program->status;
    }
    enum status status = chain_parse_logged(request->chain, &picture_reader, request->log, &chain);
    if (status)
        return status;
    status = chain_load(&chain, 0, request->log);
    if (!status)
        status = chain_lower(&chain, program);
    chain_free(&chain);
    return status;
}

static struct format source_format(const struct bench_case_request *request)
{
    const struct format full = {.range = RANGE_FULL};
    if (!request->rgb)
        return format_planar(MODEL_GRAY, request->depth, 0, 0, false, &full);
    assert(request->depth == 8);
    struct format packed = format_planar(MODEL_RGB, 8, 0, 0, false, &full);
    packed.planes = 1;
    for (int c = 0; c < 3; c++)
        packed.component[c] = (struct component){.offset = c, .step = 3, .bytes = 1};
    return packed;
}

static enum status plan_chain(const struct bench_case_request *request,
                              struct bench_case *bench_case)
{
    const struct format format = source_format(request);
    enum status status = program_init(&bench_case->program, &format);
    if (!status)
        status = lower_chain(request, &bench_case->program);
    if (!status)
        status = program_finish(&bench_case->program, NULL);
    if (!status)
        status = plan_create(&bench_case->program, request->backend->limits, &bench_case->plan);
    return status;
}

// Planes one behind the other, rows without gaps.
static size_t plane_bytes(const struct format *format, const struct shape *shape, int p)
{
    return format_row_bytes(format, p, shape->width) *
           (size_t)format_rows(format, p, shape->height);
}

static size_t frame_bytes(const struct format *format, const struct shape *shape)
{
    size_t bytes = 0;
    for (int p = 0; p < format->planes; p++)
        bytes += plane_bytes(format, shape, p);
    return bytes;
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
static enum status make_frame(const struct bench_case *bench_case, const struct shape *shape,
                              const uint8_t *noise, struct image *source, struct image *target)
{
    struct backend *backend = bench_case->backend;
    size_t bytes = bench_case->bytes;
    if (bench_case->resident) {
        source->data[0] = backend->device_copy(backend, noise, bytes);
        return source->data[0] ? STATUS_OK : STATUS_MEMORY;
    }
    source->data[0] = backend->alloc(backend, bytes);
    target->data[0] = backend->alloc(backend, bench_case->target_bytes);
    if (!source->data[0] || !target->data[0])
        return STATUS_MEMORY;
    memcpy(source->data[0], noise, bytes);
    for (int p = 1; p < target->format->planes; p++)
        target->data[p] = target->data[p - 1] + plane_bytes(target->format, shape, p - 1);
    return STATUS_OK;
}

// Without memory.
static struct image frame_image(const struct format *format, const struct shape *shape)
{
    struct image image = {.format = format, .width = shape->width, .height = shape->height};
    for (int p = 0; p < format->planes; p++)
        image.stride[p] = (ptrdiff_t)format_row_bytes(format, p, shape->width);
    return image;
}

static enum status make_frames(const struct bench_case_request *request,
                               struct bench_case *bench_case)
{
    size_t bytes = bench_case->bytes;
    // On the host as many as a decoder keeps in turn, which the processor's cache may well hold.
    bench_case->frames =
        bench_case->resident ? (int)(working_set / 2 / bytes) : 2 * bench_case->slots;
    if (bench_case->resident && bench_case->frames < bench_case->together)
        bench_case->frames = bench_case->together;
    if (request->frames)
        bench_case->frames = request->frames;
    bench_case->source = calloc((size_t)bench_case->frames, sizeof *bench_case->source);
    bench_case->target = calloc((size_t)bench_case->frames, sizeof *bench_case->target);
    uint8_t *noise = malloc(bytes);
    enum status status =
        bench_case->source && bench_case->target && noise ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        fill(noise, bytes, request->depth);
    for (int k = 0; k < bench_case->frames && !status; k++) {
        struct image *source = &bench_case->source[k], *target = &bench_case->target[k];
        *source = frame_image(&bench_case->program.input, request->shape);
        *target = frame_image(&bench_case->program.output, request->shape);
        status = make_frame(bench_case, request->shape, noise, source, target);
    }
    free(noise);
    if (!status && bench_case->resident)
        status = bench_case->backend->stream_create(bench_case->backend, &bench_case->stream);
    return status;
}

void bench_case_free(struct bench_case *bench_case)
{
    struct backend *backend = bench_case->backend;
    executor_destroy(&bench_case->executor);
    for (int k = 0; k < bench_case->frames && bench_case->source && bench_case->target; k++) {
        uint8_t *source = bench_case->source[k].data[0], *target = bench_case->target[k].data[0];
        if (source && bench_case->resident)
            backend->device_free(backend, source);
        else if (source)
            backend->free(backend, source, bench_case->bytes);
        if (target)
            backend->free(backend, target, bench_case->target_bytes);
    }
    if (bench_case->stream)
        backend->stream_destroy(backend, &bench_case->stream);
    free(bench_case->source);
    free(bench_case->target);
    plan_destroy(&bench_case->plan);
    program_free(&bench_case->program);
    *bench_case = (struct bench_case){0};
}

// Enough groups of frames that the GPU never waits for the host, within half a gigabyte; an even
// number of groups.
static int resident_slots(size_t bytes, int together)
{
    int pairs = (int)(((size_t)256 << 20) / (bytes * (size_t)together));
    return together * 2 * (pairs < 2 ? 2 : pairs > 8 ? 8 : pairs);
}

enum status bench_case_init(struct bench_case *bench_case, const struct bench_case_request *request)
{
    struct backend *backend = request->backend;
    *bench_case = (struct bench_case){
        .backend = backend, .still = request->still, .resident = request->resident, .together = 1};
    if (request->resident)
        bench_case->together = request->shape->together;
    else if (request->by_twos && !request->still)
        bench_case->together = 2;
    enum status status = plan_chain(request, bench_case);
    if (status) {
        bench_case_free(bench_case);
        return status;
    }
    bench_case->bytes = frame_bytes(&bench_case->program.input, request->shape);
    bench_case->target_bytes = frame_bytes(&bench_case->program.output, request->shape);
    bench_case->slots = request->resident ? resident_slots(bench_case->bytes, bench_case->together)
                        : request->still  ? 1
                                          : request->slots;
    status = budget_check(&(struct budget_request){.backend = backend,
                                                   .plan = bench_case->plan,
                                                   .width = request->shape->width,
                                                   .height = request->shape->height,
                                                   .slots = bench_case->slots,
                                                   .frames_in_flight = !request->still,
                                                   .without_analyses = true,
                                                   .log = request->log});
    if (!status)
        status = backend->executor_create(backend, bench_case->plan, request->shape->width,
                                          request->shape->height, bench_case->slots,
                                          !request->still, &bench_case->executor);
    if (!status)
        status = make_frames(request, bench_case);
    if (status)
        bench_case_free(bench_case);
    return status;
}

// ---- running ----

static void next_work(const struct bench_case *bench_case, const struct bench_streams *streams,
                      int64_t first, struct work *work)
{
    for (int k = 0; k < bench_case->together; k++) {
        int frame = (int)((first + k) % bench_case->frames);
        work[k] = (struct work){.source = bench_case->source[frame],
                                .target = bench_case->target[frame],
                                .source_on_device = bench_case->stream,
                                .source_stream = bench_case->stream};
        if (streams) {
            work[k].target = streams->target[(first + k) % bench_case->slots];
            work[k].target_on_device = work[k].source_stream_serves = true;
            work[k].source_stream =
                streams->stream[first / bench_case->together % streams->streams];
        }
    }
}

static enum status await_newest_first(struct bench_case *bench_case, int64_t from, int64_t to)
{
    enum status status = STATUS_OK;
    while (to-- > from)
        status =
            status_join(status, bench_case->executor->wait(bench_case->executor,
                                                           (int)(to % bench_case->slots), NULL));
    return status;
}

// Frames that stay on the device, for about `ns`: *frames is how many. When all slots are in use,
// half of them are waited for at once: to sleep and to wake costs the host as much time as some
// frames cost the GPU.
static enum status run_resident(struct bench_case *bench_case, const struct bench_streams *streams,
                                int64_t ns, int64_t *frames)
{
    struct work work[MAX_TOGETHER];
    int64_t begin = meter_now_ns(), submitted = 0, waited = 0;
    enum status status = STATUS_OK;
    while (!status && (submitted < bench_case->slots || meter_now_ns() - begin < ns)) {
        if (submitted - waited == bench_case->slots) {
            status = await_newest_first(bench_case, waited, waited + bench_case->slots / 2);
            waited += bench_case->slots / 2;
        }
        next_work(bench_case, streams, submitted, work);
        if (!status)
            status = executor_submit_many_async(bench_case->executor,
                                                (int)(submitted % bench_case->slots), work,
                                                bench_case->together);
        submitted += status ? 0 : bench_case->together;
    }
    *frames = submitted;
    return status_join(status, await_newest_first(bench_case, waited, submitted));
}

// The second thread of a job, which waits for the frames that the first began.
struct waiter {
    struct executor *executor;
    struct ring *ring; // a slot is `together` neighbouring ones of the executor
    int together;
    enum status status;
};

static void *await_frames(void *waiter_)
{
    struct waiter *waiter = waiter_;
    struct slot *slot;
    while (!ring_take(waiter->ring, &slot)) {
        for (int k = 0; k < waiter->together; k++) {
            int number = slot->number * waiter->together + k;
            enum status status = waiter->executor->wait(waiter->executor, number, NULL);
            waiter->status = status_join(waiter->status, status);
        }
        ring_release(waiter->ring, slot);
    }
    return NULL;
}

// Frames from host memory to host memory, as a job does them, for about `ns`.
static enum status run_job(struct bench_case *bench_case, int64_t ns, int64_t *frames)
{
    int together = bench_case->together;
    struct waiter waiter = {.executor = bench_case->executor, .together = together};
    struct slot *slot;
    struct work work[MAX_TOGETHER];
    pthread_t thread;
    *frames = 0;
    assert(bench_case->slots % together == 0);
    enum status status = ring_create(bench_case->slots / together, 1, &waiter.ring);
    if (status)
        return status;
    if (pthread_create(&thread, NULL, await_frames, &waiter)) {
        ring_destroy(&waiter.ring);
        return STATUS_FAILED;
    }
    int64_t begin = meter_now_ns();
    while (!status && (*frames < bench_case->slots || meter_now_ns() - begin < ns)) {
        next_work(bench_case, NULL, *frames, work);
        status = ring_claim(waiter.ring, &slot);
        if (!status)
            status = executor_submit_many_async(bench_case->executor, slot->number * together, work,
                                                together);
        if (!status)
            ring_publish(waiter.ring, slot);
        *frames += status ? 0 : together;
    }
    ring_finish(waiter.ring);
    pthread_join(thread, NULL);
    ring_destroy(&waiter.ring);
    return status_join(status, waiter.status);
}

// One frame after another.
static enum status run_still(struct bench_case *bench_case, int64_t ns, int64_t *frames)
{
    struct executor *executor = bench_case->executor;
    struct work work;
    int64_t begin = meter_now_ns();
    enum status status = STATUS_OK;
    *frames = 0;
    do {
        next_work(bench_case, NULL, *frames, &work);
        status = executor->submit_async(executor, 0, &work);
        if (!status)
            status = executor->wait(executor, 0, NULL);
        *frames += !status;
    } while (!status && meter_now_ns() - begin < ns);
    return status;
}

enum status bench_case_run(struct bench_case *bench_case, int64_t ns, int64_t *frames)
{
    if (bench_case->resident)
        return run_resident(bench_case, NULL, ns, frames);
    return bench_case->still ? run_still(bench_case, ns, frames) : run_job(bench_case, ns, frames);
}

enum status bench_case_run_on(struct bench_case *bench_case, const struct bench_streams *streams,
                              int64_t ns, int64_t *frames)
{
    assert(bench_case->resident && streams->streams > 0);
    return run_resident(bench_case, streams, ns, frames);
}
