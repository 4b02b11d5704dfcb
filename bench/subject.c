#include "bench/subject.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "base/meter.h"
#include "pipeline/engine/ring.h"
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
        return fail(log, STATUS_USAGE, "--size is %dx%d; that is more than 2^28 samples", width,
                    height);
    snprintf(shape->name, sizeof shape->name, "%dx%d", shape->width, shape->height);
    return STATUS_OK;
}

// ---- frames ----

static enum status lower_chain(const struct subject_request *request, struct program *program)
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

static enum status plan_chain(const struct subject_request *request, struct subject *subject)
{
    const struct format full = {.range = RANGE_FULL};
    const struct format gray = format_planar(MODEL_GRAY, request->depth, 0, 0, false, &full);
    enum status status = program_init(&subject->program, &gray);
    if (!status)
        status = lower_chain(request, &subject->program);
    if (!status)
        status = program_finish(&subject->program, NULL);
    if (!status)
        status = plan_create(&subject->program, request->backend->limits, &subject->plan);
    return status;
}

static size_t frame_bytes(const struct subject_request *request)
{
    return (size_t)request->shape->width * (size_t)request->shape->height *
           (request->depth > 8 ? 2 : 1);
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
static enum status make_frame(const struct subject *subject, const uint8_t *noise,
                              struct image *source, struct image *target)
{
    struct backend *backend = subject->backend;
    size_t bytes = subject->bytes;
    if (subject->resident) {
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

static enum status make_frames(const struct subject_request *request, struct subject *subject)
{
    size_t bytes = subject->bytes;
    // On the host as many as a decoder keeps in turn, which the processor's cache may well hold.
    subject->frames = subject->resident ? (int)(working_set / 2 / bytes) : 2 * subject->slots;
    if (subject->resident && subject->frames < subject->together)
        subject->frames = subject->together;
    subject->source = calloc((size_t)subject->frames, sizeof *subject->source);
    subject->target = calloc((size_t)subject->frames, sizeof *subject->target);
    uint8_t *noise = malloc(bytes);
    enum status status = subject->source && subject->target && noise ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        fill(noise, bytes, request->depth);
    for (int k = 0; k < subject->frames && !status; k++) {
        struct image *source = &subject->source[k], *target = &subject->target[k];
        *source = (struct image){.format = &subject->program.input,
                                 .width = request->shape->width,
                                 .height = request->shape->height,
                                 .stride = {(ptrdiff_t)(bytes / (size_t)request->shape->height)}};
        *target = *source;
        target->format = &subject->program.output;
        status = make_frame(subject, noise, source, target);
    }
    free(noise);
    if (!status && subject->resident)
        status = subject->backend->stream_create(subject->backend, &subject->stream);
    return status;
}

void subject_free(struct subject *subject)
{
    struct backend *backend = subject->backend;
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
    *subject = (struct subject){0};
}

// Enough groups of frames that the GPU never waits for the host, within half a gigabyte; an even
// number of groups.
static int resident_slots(size_t bytes, int together)
{
    int pairs = (int)(((size_t)256 << 20) / (bytes * (size_t)together));
    return together * 2 * (pairs < 2 ? 2 : pairs > 8 ? 8 : pairs);
}

enum status subject_init(struct subject *subject, const struct subject_request *request)
{
    struct backend *backend = request->backend;
    *subject = (struct subject){.backend = backend,
                                .still = request->still,
                                .resident = request->resident,
                                .together = request->resident ? request->shape->together : 1,
                                .bytes = frame_bytes(request)};
    subject->slots = request->resident ? resident_slots(subject->bytes, subject->together)
                     : request->still  ? 1
                                       : request->slots;
    enum status status = plan_chain(request, subject);
    if (!status)
        status = budget_check(&(struct budget_request){.backend = backend,
                                                       .plan = subject->plan,
                                                       .width = request->shape->width,
                                                       .height = request->shape->height,
                                                       .slots = subject->slots,
                                                       .frames_in_flight = !request->still,
                                                       .without_analyses = true,
                                                       .log = request->log});
    if (!status)
        status = backend->executor_create(backend, subject->plan, request->shape->width,
                                          request->shape->height, subject->slots, !request->still,
                                          &subject->executor);
    if (!status)
        status = make_frames(request, subject);
    if (status)
        subject_free(subject);
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
    struct work work[MAX_TOGETHER];
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
    enum status status = ring_create(subject->slots, 1, &waiter.ring);
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

// One frame after another.
static enum status run_still(struct subject *subject, int64_t ns, int64_t *frames)
{
    struct executor *executor = subject->executor;
    struct work work;
    int64_t begin = meter_now_ns();
    enum status status = STATUS_OK;
    *frames = 0;
    do {
        next_work(subject, *frames, &work);
        status = executor->submit_async(executor, 0, &work);
        if (!status)
            status = executor->wait(executor, 0, NULL);
        *frames += !status;
    } while (!status && meter_now_ns() - begin < ns);
    return status;
}

enum status subject_run(struct subject *subject, int64_t ns, int64_t *frames)
{
    if (subject->resident)
        return run_resident(subject, ns, frames);
    return subject->still ? run_still(subject, ns, frames) : run_job(subject, ns, frames);
}
