#include "kernels/executor/executor.h"

#include <assert.h>
#include <stdlib.h>

#include "kernels/device.cuh"
#include "kernels/executor/direct.h"
#include "kernels/executor/dispatch.h"
#include "kernels/executor/ranges.h"
#include "kernels/executor/transfer.h"

static struct cuda_executor *self_of(struct executor *executor)
{
    return (struct cuda_executor *)executor;
}

// ---- construction ----

static enum status allocate(struct cuda_executor *self)
{
    size_t bytes = self->constant_bytes + (size_t)self->slots * self->layout.bytes;
    if (cudaMalloc(&self->memory, bytes + 1) == cudaSuccess)
        return STATUS_OK;
    size_t available = 0, total = 0;
    self->memory = NULL;
    cudaMemGetInfo(&available, &total);
    cudaGetLastError();
    log_print(self->backend->log, LOG_ERROR,
              "GPU %d has no room for a ring of %d frames of %dx%d: that takes %zu MiB, and %zu of "
              "%zu MiB are free; a smaller ring, another device or the CPU may do",
              self->backend->device, self->slots, self->width, self->height, (bytes >> 20) + 1,
              available >> 20, total >> 20);
    return STATUS_DEVICE;
}

// Grids have up to 65535 blocks one below the other, the lowest of which make a row for each warp.
static enum status check_height(const struct cuda_executor *self)
{
    const int most_rows = 65535 * WARPS;
    if (self->height <= most_rows)
        return STATUS_OK;
    log_print(self->backend->log, LOG_ERROR,
              "GPU %d filters pictures of up to %d rows, not %dx%d; the CPU may do",
              self->backend->device, most_rows, self->width, self->height);
    return STATUS_DEVICE;
}

// Make the backend's device current, unless it is.
static enum status set_device(struct cuda_executor *self, const struct callers_device *callers)
{
    return callers->is_current ? STATUS_OK
                               : CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
}

static enum status create_event(struct cuda_executor *self, cudaEvent_t *event, unsigned flags)
{
    return CUDA_CHECK(self->backend, cudaEventCreateWithFlags(event, flags));
}

static enum status create_stream(struct cuda_executor *self, const char *name, cudaStream_t *stream)
{
    enum status status =
        CUDA_CHECK(self->backend, cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    if (!status)
        range_name_stream(*stream, name);
    return status;
}

static enum status create_work_streams(struct cuda_executor *self)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < WORK_STREAMS && !status; k++)
        if (!(status = create_stream(self, "filter", &self->work_stream[k])))
            status = CUDA_CHECK(self->backend,
                                cudaStreamGetId(self->work_stream[k], &self->work_stream_id[k]));
    return status;
}

// `done` is timed as well: one event fewer a frame than a separate one to wait for.
static enum status create_slot(struct cuda_executor *self, struct cuda_slot *slot)
{
    cudaEvent_t *const timed[] = {&slot->began, &slot->uploaded, &slot->computed, &slot->done};
    enum status status = create_event(self, &slot->source_ready, cudaEventDisableTiming);
    if (!status)
        status = create_event(self, &slot->made, cudaEventDisableTiming);
    for (int k = 0; k < 4 && !status; k++)
        status = create_event(self, timed[k], cudaEventDefault);
    slot->end = slot->done;
    return status;
}

// Constants to the device; zeros everywhere else, so that bytes of a row that no component covers
// are the same in every frame.
static enum status fill_memory(struct cuda_executor *self)
{
    cudaStream_t stream = self->work_stream[0];
    size_t slot_bytes = (size_t)self->slots * self->layout.bytes;
    uint8_t *host = (uint8_t *)calloc(1, self->constant_bytes + 1);
    if (!host)
        return STATUS_MEMORY;
    struct constants memory = {.host = host, .room = self->constant_bytes, .device = self->memory};
    enum status status = STATUS_MEMORY;
    if (pass_constants_put(self->constants, self->plan, self->width, self->height, memory) !=
            self->constant_bytes ||
        (status = CUDA_CHECK(self->backend,
                             cudaMemsetAsync(self->slot[0].memory, 0, slot_bytes, stream))) ||
        (status =
             CUDA_CHECK(self->backend, cudaMemcpyAsync(self->memory, host, self->constant_bytes,
                                                       cudaMemcpyDefault, stream))))
        goto done;
    status = CUDA_CHECK(self->backend, cudaStreamSynchronize(stream));
done:
    free(host);
    return status;
}

static void destroy(struct executor **executor)
{
    struct cuda_executor *self = self_of(*executor);
    const struct callers_device callers(self->backend);
    cudaSetDevice(self->backend->device);
    for (int k = 0; self->slot && k < self->slots; k++) {
        const struct cuda_slot *user = &self->slot[self->slot[k].user];
        if (self->slot[k].handed_over && user->used)
            cudaEventSynchronize(user->used);
    }
    for (int k = 0; self->slot && k < self->slots; k++) {
        struct cuda_slot *slot = &self->slot[k];
        cudaEvent_t events[] = {slot->source_ready, slot->began, slot->uploaded,
                                slot->computed,     slot->done,  slot->made};
        for (cudaEvent_t event : events)
            if (event)
                cudaEventDestroy(event);
        graph_finish(&slot->graph);
    }
    for (cudaStream_t stream : self->work_stream)
        if (stream)
            cudaStreamDestroy(stream);
    if (self->upload_stream)
        cudaStreamDestroy(self->upload_stream);
    if (self->download_stream)
        cudaStreamDestroy(self->download_stream);
    gpu_clock_destroy(&self->clock);
    pass_constants_destroy(self->plan, &self->constants);
    layout_finish(&self->layout);
    cudaFree(self->memory);
    free(self->recording);
    free(self->frames);
    free(self->slot);
    free(self);
    *executor = NULL;
}

// ---- slots ----

static enum status refuse_stream(struct cuda_executor *self, const char *reason)
{
    log_print(self->backend->log, LOG_ERROR,
              "frames on GPU %d cannot be filtered on this stream: %s", self->backend->device,
              reason);
    return STATUS_USAGE;
}

// The runtime is asked where the driver has no answer, which may be the reason.
static cudaError_t ask_capture(const struct cuda_backend *backend, cudaStream_t stream,
                               cudaStreamCaptureStatus *capture)
{
    CUstreamCaptureStatus status;
    if (!backend->driver.is_capturing || backend->driver.is_capturing(stream, &status))
        return cudaStreamIsCapturing(stream, capture);
    *capture = (cudaStreamCaptureStatus)status;
    return cudaSuccess;
}

static cudaError_t ask_id(const struct cuda_backend *backend, cudaStream_t stream,
                          unsigned long long *id)
{
    if (!backend->driver.stream_id || backend->driver.stream_id(stream, id))
        return cudaStreamGetId(stream, id);
    return cudaSuccess;
}

// Refuse a caller's stream on which frames cannot be filtered, before it takes the GPU's failures
// for it.
static enum status check_stream(struct cuda_executor *self, cudaStream_t stream)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    int device = self->backend->device;
    cudaError_t error = ask_capture(self->backend, stream, &capture);
    if (error == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone) {
        cudaGetLastError();
        return refuse_stream(self, "it is being captured, and a graph would run without what this "
                                   "filter knows of its frames; end the capture first");
    }
    enum status status = cuda_check(self->backend, error, "cudaStreamIsCapturing");
    if (!status)
        status = CUDA_CHECK(self->backend, ask_id(self->backend, stream, &id));
    if (status || id == self->known_stream)
        return status;
    status = CUDA_CHECK(self->backend, cudaStreamGetDevice(stream, &device));
    if (!status && device != self->backend->device)
        return refuse_stream(self, "it is another GPU's; give one of this GPU");
    self->known_stream = status ? 0 : id;
    return status;
}

// The stream that the passes of a group go on. A caller whose frames all come on one stream gets
// the executor's in turn, where they overlap; one who goes from stream to stream has seen to that.
// `alone`: no other of its frames overlaps it, and on the caller's stream none is waited for.
static cudaStream_t choose_stream(struct cuda_executor *self, const struct work *work, bool alone)
{
    cudaStream_t callers = (cudaStream_t)work->source_stream;
    bool turns = alone || self->slots == 1 || callers != self->last_stream;
    self->last_stream = callers;
    return work->source_stream_serves && turns ? callers
                                               : self->work_stream[self->groups++ % WORK_STREAMS];
}

// Which of the executor's streams it is; LANE_NONE: a caller's.
static int lane_of(const struct cuda_executor *self, cudaStream_t stream)
{
    for (int k = 0; k < WORK_STREAMS; k++)
        if (stream == self->work_stream[k])
            return k;
    return LANE_NONE;
}

// The number of a group's stream. A caller's was checked.
static unsigned long long stream_id(const struct cuda_executor *self, cudaStream_t stream)
{
    int lane = lane_of(self, stream);
    return lane == LANE_NONE ? self->known_stream : self->work_stream_id[lane];
}

// Let what is to use the slots from `lead` on wait for frames that were handed over and used their
// memory. None of these was made on the stream of uploads. Frames that use none wait as well: the slot
// forgets with them that others were handed over, and their `end` may be the event that is `used`.
static enum status await_slots(struct cuda_executor *self, struct cuda_slot *lead,
                               const struct work *work, cudaStream_t stream, int count)
{
    enum status status = transfer_await_slots(self, lead, stream, stream_id(self, stream), count);
    if (!status && (!work->source_on_device || work->source_abroad))
        status = transfer_await_slots(self, lead, self->upload_stream, 0, count);
    return status;
}

// Take the slots from `leader` on for the frames of `work`. A caller's stream was checked.
static void take_slots(struct cuda_executor *self, int leader, const struct work *work, int count,
                       cudaStream_t stream)
{
    struct cuda_slot *lead = &self->slot[leader];
    struct device_frames *frames = self->frames;
    frames->count = count;
    frames->work = work;
    frames->memory = lead->memory;
    frames->in_slots = false;
    lead->work_stream = stream;
    lead->begun_ns = 0;
    lead->uploads = !work->source_on_device || work->source_abroad;
    lead->downloads = transfer_has_download(self, work, count);
    lead->timed = !work->source_stream_serves;
    lead->lane = lead->downloads ? LANE_DOWNLOAD : lane_of(self, stream);
    lead->turn = ++self->turns;
    lead->end = lead->lane == LANE_NONE ? lead->made : lead->done;
    lead->refers = lead->uploads && work->target_on_device && transfer_has_reference(self);
    lead->has_heir = false;
    __atomic_store_n(&lead->over, false, __ATOMIC_RELAXED);
    for (int k = 0; k < count; k++) {
        lead[k].leader = leader;
        lead[k].handed_over = false;
        frames->source[k] = work[k].source;
        if (direct_place_source(self, &lead[k], &work[k], &frames->source[k]))
            frames->in_slots = true;
        for (int n = 0; n < program_pictures(self->plan->program); n++) {
            frames->target[n][k] = *work_target(&work[k], n);
            if (direct_place_target(self, &lead[k], &work[k], n, &frames->target[n][k]))
                frames->in_slots = true;
        }
    }
}

// Sources to the slots, and work behind what is on the callers' streams.
static enum status begin_group(struct cuda_executor *self, struct cuda_slot *lead,
                               struct device_frames *frames)
{
    const struct work *work = frames->work;
    enum status status = lead->uploads ? transfer_upload(self, lead, work, frames) : STATUS_OK;
    if (!status && (!lead->uploads || work->target_on_device))
        status = transfer_await_callers(self, lead, work, frames->count);
    if (!status && lead->uploads && work->target_on_device)
        status = transfer_refer(self, lead, frames);
    return status;
}

// True if a group uses no memory of the executor's, so that nobody has to wait for it there: its only
// kernel, on the caller's stream and in no graph, sees planes of the caller's and reads no table. Where
// planes are taken apart there are more.
static bool touches_frames_alone(const struct cuda_executor *self, const struct cuda_slot *lead)
{
    return lead->lane == LANE_NONE && !lead->by_graph && !lead->uploads &&
           !self->frames->in_slots && !self->layout.works &&
           recording_touches_frames_alone(self->recording);
}

// Record `end` behind a group, if nobody has; twice, by two threads, does no harm. A caller's stream is
// there until the group was waited for or handed over.
static enum status record_end(struct cuda_executor *self, struct cuda_slot *lead)
{
    if (__atomic_load_n(&lead->ended, __ATOMIC_ACQUIRE))
        return STATUS_OK;
    enum status status = transfer_record(self, lead->end, lead->work_stream);
    if (!status)
        __atomic_store_n(&lead->ended, true, __ATOMIC_RELEASE);
    return status;
}

// Bring the results to where they are wanted, and say who has used the slots' memory. Where nobody has,
// `end` is not recorded: an event costs the host a quarter of a microsecond.
static enum status end_group(struct cuda_executor *self, int leader, const struct work *work,
                             int count)
{
    struct cuda_slot *lead = &self->slot[leader];
    enum status status = STATUS_OK;
    __atomic_store_n(&lead->ended, lead->downloads, __ATOMIC_RELAXED);
    if (!lead->downloads && touches_frames_alone(self, lead))
        return STATUS_OK;
    status = lead->downloads ? transfer_download(self, lead, work, self->frames)
                             : record_end(self, lead);
    lead->used = lead->end;
    lead->used_on = stream_id(self, lead->work_stream);
    for (int k = 0; k < count; k++)
        lead[k].user = leader;
    return status;
}

static enum status submit_group(struct cuda_executor *self, int leader, const struct work *work,
                                int count, bool alone)
{
    struct cuda_slot *lead = &self->slot[leader];
    // Calls that follow each other fast on one stream find the GPU still at the previous one's kernel.
    bool dependent = alone && work->source_stream_serves && self->backend->dependent_launches &&
                     (cudaStream_t)work->source_stream == self->last_stream;
    cudaStream_t stream = choose_stream(self, work, alone);
    assert(!work->fields || !self->plan->program->analyses);
    assert(!work->source_abroad || !work->target_on_device);
    assert(!work->source_stream_serves || (work->source_on_device && work->target_on_device));
    enum status status = work->source_stream_serves
                             ? check_stream(self, (cudaStream_t)work->source_stream)
                             : STATUS_OK;
    if (!status)
        status = await_slots(self, lead, work, stream, count);
    if (status)
        return status;
    take_slots(self, leader, work, count, stream);
    status = begin_group(self, lead, self->frames);
    range_push("filter", self->submitted);
    if (!status)
        status = dispatch_frames(self, lead, self->frames, work->fields, dependent);
    range_pop();
    if (!status)
        status = end_group(self, leader, work, count);
    if (status)
        lead->lane = LANE_NONE; // `end` may be a frame's before it, and tells nothing of others
    self->submitted += count;
    return status;
}

static bool goes_together(const struct work *a, const struct work *b)
{
    return a->source_on_device == b->source_on_device && a->source_abroad == b->source_abroad &&
           a->target_on_device == b->target_on_device &&
           a->source_stream_serves == b->source_stream_serves && a->fields == b->fields &&
           a->source.width == b->source.width && a->source.height == b->source.height;
}

static enum status submit_many_async(struct executor *executor, int first, const struct work *work,
                                     int count)
{
    struct cuda_executor *self = self_of(executor);
    const struct callers_device callers(self->backend);
    assert(first >= 0 && count > 0 && first + count <= self->slots);
    enum status status = set_device(self, &callers);
    for (int k = 0; k < count && !status;) {
        int group = 1;
        while (group < FRAMES && k + group < count && goes_together(&work[k], &work[k + group]))
            group++;
        status = submit_group(self, first + k, &work[k], group, work[k].alone && group == count);
        k += group;
    }
    return status;
}

static enum status submit_async(struct executor *executor, int slot, const struct work *work)
{
    return submit_many_async(executor, slot, work, 1);
}

// Frames that went together share their times.
static enum status read_times(struct cuda_executor *self, const struct cuda_slot *lead,
                              struct work_times *times)
{
    *times = {};
    if (!lead->timed)
        return STATUS_OK;
    const cudaEvent_t event[] = {lead->done, lead->downloads ? lead->computed : lead->done,
                                 lead->uploads ? lead->uploaded : lead->began};
    long long ns[] = {0, 0, lead->begun_ns};
    bool begins_by_event = lead->uploads || !lead->begun_ns;
    enum status status = gpu_clock_read(&self->clock, event, 2 + begins_by_event, ns);
    if (status)
        return status;
    const long long done = ns[0], computed = ns[1], begun = ns[2];
    if (lead->uploads)
        times->upload = {lead->begun_ns, begun};
    times->compute = {begun, computed};
    if (lead->downloads)
        times->download = {computed, done};
    return STATUS_OK;
}

// Look for a while, then again and again, ever less often: an eighth of the time waited so far is
// what a late look may cost. An event that interrupts whoever waits for it would spare
// the looking, but costs more: interrupts come for each frame, waited for or not, and take tens of
// microseconds of a processor, in a virtual machine more; frames that follow each other that fast
// then wait for those.
static enum status await_event(struct cuda_executor *self, cudaEvent_t event)
{
    const long long patience_ns = 50000, min_nap_ns = 20000, max_nap_ns = 1000000;
    const long long begin = now_ns();
    cudaError_t error;
    while ((error = cudaEventQuery(event)) == cudaErrorNotReady) {
        cudaGetLastError(); // not to be ready would pass for an error of the next launch
        long long waited_ns = now_ns() - begin, nap_ns = waited_ns / 8;
        nap_ns = nap_ns < min_nap_ns ? min_nap_ns : nap_ns > max_nap_ns ? max_nap_ns : nap_ns;
        const struct timespec nap = {.tv_sec = 0, .tv_nsec = (long)nap_ns};
        if (waited_ns > patience_ns)
            nanosleep(&nap, NULL);
    }
    return cuda_check(self->backend, error, "cudaEventQuery");
}

// Frames of one stream end in order: those before one that is over are over, too.
static bool is_over(const struct cuda_executor *self, const struct cuda_slot *lead)
{
    return __atomic_load_n(&lead->over, __ATOMIC_ACQUIRE) ||
           (lead->lane != LANE_NONE &&
            __atomic_load_n(&self->over[lead->lane], __ATOMIC_ACQUIRE) >= lead->turn);
}

// The later turn of two threads that come at once may be lost: then somebody asks the GPU again.
static void set_over(struct cuda_executor *self, struct cuda_slot *lead)
{
    __atomic_store_n(&lead->over, true, __ATOMIC_RELEASE);
    if (lead->lane != LANE_NONE &&
        __atomic_load_n(&self->over[lead->lane], __ATOMIC_RELAXED) < lead->turn)
        __atomic_store_n(&self->over[lead->lane], lead->turn, __ATOMIC_RELEASE);
}

static enum status wait(struct executor *executor, int number, struct work_times *times)
{
    struct cuda_executor *self = self_of(executor);
    assert(number >= 0 && number < self->slots);
    struct cuda_slot *slot = &self->slot[self->slot[number].leader];
    bool over = is_over(self, slot);
    if (over && !times)
        return STATUS_OK;
    const struct callers_device callers(self->backend);
    enum status status = set_device(self, &callers);
    if (!status && !over)
        status = record_end(self, slot);
    if (!status && !over)
        status = await_event(self, slot->end);
    if (!status && !over)
        set_over(self, slot);
    return status || !times ? status : read_times(self, slot, times);
}

// Sources on the host are the caller's again: wait until they have been read.
static enum status await_reading(struct cuda_executor *self, const struct cuda_slot *lead)
{
    return lead->uploads ? await_event(self, lead->refers ? lead->end : lead->uploaded) : STATUS_OK;
}

// Frames that went together are waited for once.
static enum status hand_over(struct executor *executor, int number, void *stream)
{
    struct cuda_executor *self = self_of(executor);
    assert(number >= 0 && number < self->slots);
    struct cuda_slot *slot = &self->slot[number], *lead = &self->slot[slot->leader];
    cudaStream_t heir = (cudaStream_t)stream;
    assert(!lead->downloads);
    slot->handed_over = true;
    if (heir == lead->work_stream || (lead->has_heir && heir == lead->heir))
        return STATUS_OK;
    const struct callers_device callers(self->backend);
    lead->has_heir = true;
    lead->heir = heir;
    enum status status = set_device(self, &callers);
    if (!status)
        status = record_end(self, lead);
    if (!status)
        status = CUDA_CHECK(self->backend, cudaStreamWaitEvent(heir, lead->end, 0));
    return status ? status : await_reading(self, lead);
}

enum status cuda_executor_create(struct backend *backend, const struct plan *plan, int width,
                                 int height, int slots, bool frames_in_flight,
                                 struct executor **executor)
{
    (void)frames_in_flight;
    struct cuda_executor *self = (struct cuda_executor *)calloc(1, sizeof *self);
    const struct callers_device callers((struct cuda_backend *)backend);
    assert(width > 0 && height > 0 && slots > 0);
    *executor = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = {submit_async, wait, destroy, submit_many_async, hand_over};
    self->backend = (struct cuda_backend *)backend;
    self->plan = plan;
    self->width = width;
    self->height = height;
    self->slots = slots;
    self->driver.launch = self->backend->driver.launch;
    *executor = &self->base;
    enum status status = STATUS_MEMORY;
    self->slot = (struct cuda_slot *)calloc((size_t)slots, sizeof *self->slot);
    self->frames = (struct device_frames *)calloc(1, sizeof *self->frames);
    if (!self->slot || !self->frames)
        goto fail;
    if ((status = check_height(self)) ||
        (status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device))) ||
        (status =
             pass_constants_create(plan, width, height, self->backend->log, &self->constants)) ||
        (status = layout_init(&self->layout, plan, self->constants, width, height)))
        goto fail;
    self->constant_bytes = pass_constants_put(self->constants, plan, width, height, {});
    if ((status = allocate(self)) || (status = create_work_streams(self)) ||
        (status = create_stream(self, "upload", &self->upload_stream)) ||
        (status = create_stream(self, "download", &self->download_stream)))
        goto fail;
    for (int k = 0; k < slots; k++) {
        self->slot[k].user = k;
        self->slot[k].memory = self->memory + self->constant_bytes + (size_t)k * self->layout.bytes;
        if ((status = create_slot(self, &self->slot[k])))
            goto fail;
    }
    if (dispatch_launches_only(self) &&
        !(self->recording = (struct recording *)calloc(1, sizeof *self->recording))) {
        status = STATUS_MEMORY;
        goto fail;
    }
    if ((status = fill_memory(self)) || (status = gpu_clock_init(&self->clock, self->backend)))
        goto fail;
    return STATUS_OK;
fail:
    destroy(executor);
    return status;
}

// Count what cuda_executor_create() would ask the device for in one piece. What its transforms keep
// beside is less by far; the driver takes some 112 KiB for each graph.
enum status cuda_executor_measure(struct backend *backend, const struct plan *plan, int width,
                                  int height, int slots, bool frames_in_flight,
                                  struct executor_need *need)
{
    (void)frames_in_flight;
    const struct log silent = {};
    struct cuda_backend *self = (struct cuda_backend *)backend;
    const struct callers_device callers(self);
    struct pass_constants *constants = NULL;
    struct slot_layout layout = {};
    assert(width > 0 && height > 0 && slots > 0);
    *need = {};
    enum status status = CUDA_CHECK(self, cudaSetDevice(self->device));
    if (!status)
        status = pass_constants_create(plan, width, height, &silent, &constants);
    if (!status)
        status = layout_init(&layout, plan, constants, width, height);
    if (!status)
        need->device =
            pass_constants_put(constants, plan, width, height, {}) + (size_t)slots * layout.bytes;
    layout_finish(&layout);
    pass_constants_destroy(plan, &constants);
    return status;
}
