#include "kernels/executor/transfer.h"

#include <assert.h>

#include "kernels/executor/ranges.h"

// ---- copies ----

// Copies that one stream begins with together. Between two calls an engine rests for some 3 us, a
// twelfth of what it takes for a plane of 1080p. Copies of one call run in any order: none may read
// what another writes.
enum { COPIES = FRAMES * FORMAT_PLANES };
struct copies {
    cudaStream_t stream;
    bool one_by_one; // their sources are in another GPU's memory
    int count;
    void *to[COPIES];
    const void *from[COPIES];
    size_t bytes[COPIES];
};

static enum status copy_one_by_one(struct cuda_executor *self, const struct copies *copies)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < copies->count && !status; k++)
        status = CUDA_CHECK(self->backend,
                            cudaMemcpyAsync(copies->to[k], copies->from[k], copies->bytes[k],
                                            cudaMemcpyDefault, copies->stream));
    return status;
}

// By CUDA 13's call: 12.8's has other arguments.
static enum status copy_at_once(struct cuda_executor *self, const struct copies *copies)
{
#if CUDART_VERSION >= 13000
    struct cudaMemcpyAttributes in_order = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    size_t first = 0;
    return CUDA_CHECK(self->backend, cudaMemcpyBatchAsync(copies->to, copies->from, copies->bytes,
                                                          (size_t)copies->count, &in_order, &first,
                                                          1, copies->stream));
#else
    return copy_one_by_one(self, copies);
#endif
}

static enum status copies_begin(struct cuda_executor *self, struct copies *copies)
{
    bool at_once = copies->count > 1 && self->backend->copies_at_once && !copies->one_by_one;
    enum status status = at_once ? copy_at_once(self, copies) : copy_one_by_one(self, copies);
    copies->count = 0;
    return status;
}

static enum status copies_add(struct cuda_executor *self, struct copies *copies, void *to,
                              const void *from, size_t bytes)
{
    assert(to && from && bytes > 0);
    enum status status = copies->count == COPIES ? copies_begin(self, copies) : STATUS_OK;
    copies->to[copies->count] = to;
    copies->from[copies->count] = from;
    copies->bytes[copies->count++] = bytes;
    return status;
}

// ---- rows ----

// Rows between host and device, each of `bytes`; the direction follows from the addresses. Strides
// may be negative.
struct row_copy {
    uint8_t *to;
    const uint8_t *from;
    ptrdiff_t to_stride, from_stride;
    size_t bytes;
    int rows;
};

// Begin at the last row instead of the first.
static void flip_rows(struct row_copy *copy)
{
    copy->to += (copy->rows - 1) * copy->to_stride;
    copy->from += (copy->rows - 1) * copy->from_stride;
    copy->to_stride = -copy->to_stride;
    copy->from_stride = -copy->from_stride;
}

static enum status copy_row_by_row(struct cuda_executor *self, struct row_copy copy,
                                   struct copies *copies)
{
    enum status status = STATUS_OK;
    for (int y = 0; y < copy.rows && !status; y++) {
        status = copies_add(self, copies, copy.to, copy.from, copy.bytes);
        copy.to += copy.to_stride;
        copy.from += copy.from_stride;
    }
    return status;
}

// `with_gaps`: what lies between the rows may be copied as well, if that makes it one piece. Rows whose
// strides differ are a call of their own, ahead of the other copies.
static enum status copy_rows(struct cuda_executor *self, struct row_copy copy, bool with_gaps,
                             struct copies *copies)
{
    assert(copy.rows > 0 && copy.bytes > 0);
    if (copy.rows == 1)
        return copies_add(self, copies, copy.to, copy.from, copy.bytes);
    if (copy.to_stride < 0)
        flip_rows(&copy);
    if (copy.from_stride < 0) // upside down against each other
        return copy_row_by_row(self, copy, copies);
    size_t to_stride = (size_t)copy.to_stride, from_stride = (size_t)copy.from_stride;
    if (to_stride == from_stride && (with_gaps || to_stride == copy.bytes))
        return copies_add(self, copies, copy.to, copy.from,
                          to_stride * (size_t)(copy.rows - 1) + copy.bytes);
    return CUDA_CHECK(self->backend,
                      cudaMemcpy2DAsync(copy.to, to_stride, copy.from, from_stride, copy.bytes,
                                        (size_t)copy.rows, cudaMemcpyDefault, copies->stream));
}

// ---- planes ----

void transfer_place_plane(struct image *image, int p, struct region region, uint8_t *memory)
{
    ptrdiff_t stride = image->stride[p], size = stride < 0 ? -stride : stride;
    int rows = format_rows(image->format, p, image->height);
    if (size > region.pitch || size % 16 != 0 || rows == 1)
        size = region.pitch;
    assert((size_t)size >= format_row_bytes(image->format, p, image->width));
    image->data[p] = memory + region.offset + (stride < 0 ? (rows - 1) * size : 0);
    image->stride[p] = stride < 0 ? -size : size;
}

static enum status upload(struct cuda_executor *self, const struct cuda_slot *slot,
                          const struct image *host, struct image *device, struct copies *copies)
{
    enum status status = STATUS_OK;
    for (int p = 0; p < FORMAT_PLANES && !status; p++) {
        device->data[p] = NULL;
        if (!(self->plan->reads >> p & 1))
            continue;
        transfer_place_plane(device, p, self->layout.input[p], slot->memory);
        struct row_copy copy = {
            .to = device->data[p],
            .from = host->data[p],
            .to_stride = device->stride[p],
            .from_stride = host->stride[p],
            .bytes = format_row_bytes(host->format, p, host->width),
            .rows = format_rows(host->format, p, host->height),
        };
        status = copy_rows(self, copy, true, copies);
    }
    return status;
}

// True if nothing is under way on a caller's stream, which costs the GPU nothing. A stream that waits
// for others of itself, as the default stream does, may say so while they are busy: an event waits for
// them.
static bool is_idle(cudaStream_t stream)
{
    unsigned flags = cudaStreamDefault;
    cudaError_t error = stream ? cudaStreamGetFlags(stream, &flags) : cudaSuccess;
    if (!error && !(flags & cudaStreamNonBlocking))
        return false;
    if (!error)
        error = cudaStreamQuery(stream);
    if (error == cudaErrorNotReady)
        cudaGetLastError(); // it would pass for that of the next launch
    return error == cudaSuccess;
}

// Where plane `p` of picture `n` is on the device, and as which plane of it; NULL where it is not.
static const struct image *result_plane(const struct cuda_executor *self, const struct work *work,
                                        const struct image *target, int n, int *p)
{
    const struct plan_plane *plane = &self->plan->picture[n].plane[*p];
    if (plane->origin == PLANE_COMPUTED)
        return target;
    if (plane->origin == PLANE_CONSTANT || !work->source_on_device)
        return NULL;
    *p = plane->source;
    return &work->source;
}

static bool wants_analysis(const struct cuda_executor *self, const struct work *work)
{
    for (int k = 0; work->analysis && k < self->plan->program->analyses; k++)
        if (work->analysis[k])
            return true;
    return false;
}

static bool wants_picture(const struct cuda_executor *self, const struct work *work, int n)
{
    const struct image *target = work_target(work, n);
    for (int p = 0; p < target->format->planes && !work->target_on_device; p++)
        if (target->data[p] && plan_writes(self->plan, n, p, work->source_on_device))
            return true;
    return false;
}

bool transfer_has_download(const struct cuda_executor *self, const struct work *work, int count)
{
    for (int k = 0; k < count; k++) {
        if (wants_analysis(self, &work[k]))
            return true;
        for (int n = 0; n < program_pictures(self->plan->program); n++)
            if (wants_picture(self, &work[k], n))
                return true;
    }
    return false;
}

static enum status download_analyses(struct cuda_executor *self, const struct work *work,
                                     const uint8_t *memory, struct copies *copies)
{
    enum status status = STATUS_OK;
    for (int k = 0; work->analysis && k < self->plan->program->analyses && !status; k++)
        if (work->analysis[k])
            status = copies_add(self, copies, work->analysis[k],
                                memory + self->layout.analysis[k].offset,
                                self->layout.analysis[k].bytes);
    return status;
}

static enum status download(struct cuda_executor *self, const struct work *work, int n,
                            const struct image *target, struct copies *copies)
{
    const struct image *host = work_target(work, n);
    enum status status = STATUS_OK;
    for (int p = 0; p < host->format->planes && !status && !work->target_on_device; p++) {
        int from = p;
        const struct image *device = result_plane(self, work, target, n, &from);
        if (!host->data[p] || !device)
            continue;
        struct row_copy copy = {
            .to = host->data[p],
            .from = device->data[from],
            .to_stride = host->stride[p],
            .from_stride = device->stride[from],
            .bytes = format_row_bytes(host->format, p, host->width),
            .rows = format_rows(host->format, p, host->height),
        };
        status = copy_rows(self, copy, false, copies);
    }
    return status;
}

// Planes of picture `n` that are the source's, which the host has, go to the device. What was
// uploaded anyway is copied from there.
static enum status refer(struct cuda_executor *self, const struct work *work,
                         const struct image *uploaded, int n, struct copies *copies)
{
    const struct image *target = work_target(work, n);
    enum status status = STATUS_OK;
    for (int p = 0; p < target->format->planes && !status; p++) {
        const struct plan_plane *plane = &self->plan->picture[n].plane[p];
        if (!target->data[p] || plane->origin != PLANE_REFERENCE)
            continue;
        const struct image *from = uploaded->data[plane->source] ? uploaded : &work->source;
        struct row_copy copy = {
            .to = target->data[p],
            .from = from->data[plane->source],
            .to_stride = target->stride[p],
            .from_stride = from->stride[plane->source],
            .bytes = format_row_bytes(target->format, p, target->width),
            .rows = format_rows(target->format, p, target->height),
        };
        status = copy_rows(self, copy, false, copies);
    }
    return status;
}

// ---- frames ----

bool transfer_has_reference(const struct cuda_executor *self)
{
    const struct plan *plan = self->plan;
    for (int n = 0; n < program_pictures(plan->program); n++)
        for (int p = 0; p < program_format(plan->program, n)->planes; p++)
            if (plan->picture[n].plane[p].origin == PLANE_REFERENCE &&
                !(plan->reads >> plan->picture[n].plane[p].source & 1))
                return true;
    return false;
}

enum status transfer_refer(struct cuda_executor *self, const struct cuda_slot *lead,
                           const struct device_frames *frames)
{
    struct copies copies = {.stream = lead->work_stream};
    enum status status = STATUS_OK;
    for (int k = 0; k < frames->count; k++)
        for (int n = 0; n < program_pictures(self->plan->program) && !status; n++)
            status = refer(self, &frames->work[k], &frames->source[k], n, &copies);
    return status ? status : copies_begin(self, &copies);
}

enum status transfer_record(struct cuda_executor *self, cudaEvent_t event, cudaStream_t stream)
{
    return CUDA_CHECK(self->backend, cudaEventRecord(event, stream));
}

// Let stream `to` wait for all that is on stream `from` by now.
static enum status hand_over(struct cuda_executor *self, cudaStream_t from, cudaEvent_t event,
                             cudaStream_t to)
{
    enum status status = transfer_record(self, event, from);
    return status ? status : CUDA_CHECK(self->backend, cudaStreamWaitEvent(to, event, 0));
}

// True if what is put on a group's stream has to be ordered behind a caller's. Where times are taken
// it pays to ask first: an event with a time costs the host a microsecond and the GPU as much. One
// without, and the wait for it, cost 0.3: less than the question.
static bool has_to_wait(const struct cuda_slot *lead, cudaStream_t caller)
{
    return caller != lead->work_stream && (!lead->timed || !is_idle(caller));
}

enum status transfer_await_callers(struct cuda_executor *self, struct cuda_slot *lead,
                                   const struct work *work, int count)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++) {
        cudaStream_t caller = (cudaStream_t)work[k].source_stream;
        bool first = k == 0 && !lead->uploads && lead->timed;
        if (k > 0 && caller == work[k - 1].source_stream)
            continue;
        if (has_to_wait(lead, caller))
            status = hand_over(self, caller, first ? lead->began : lead->source_ready,
                               lead->work_stream);
        else if (first)
            lead->begun_ns = now_ns();
    }
    return status;
}

enum status transfer_await_slots(struct cuda_executor *self, struct cuda_slot *lead,
                                 cudaStream_t stream, unsigned long long id, int count)
{
    enum status status = STATUS_OK;
    int last = -1;
    for (int k = 0; k < count && !status; k++) {
        const struct cuda_slot *before = &self->slot[lead[k].user];
        if (!lead[k].handed_over || lead[k].user == last || !before->used)
            continue;
        last = lead[k].user;
        if (before->used_on != id)
            status = CUDA_CHECK(self->backend, cudaStreamWaitEvent(stream, before->used, 0));
    }
    return status;
}

// Open the direct way from the GPU that holds the source, if there is one.
static void reach_abroad(struct cuda_backend *backend, const struct work *work)
{
    struct cudaPointerAttributes about = {};
    int direct = 0;
    if (!cudaPointerGetAttributes(&about, work->source.data[0]) &&
        !cudaDeviceCanAccessPeer(&direct, backend->device, about.device) && direct)
        cudaDeviceEnablePeerAccess(about.device, 0);
    cudaGetLastError(); // that it was open before
    backend->reaches = true;
}

// Wait for sources in another GPU's memory.
static enum status await_abroad(struct cuda_executor *self, const struct work *work, int count)
{
    enum status status = STATUS_OK;
    if (!self->backend->reaches)
        reach_abroad(self->backend, work);
    for (int k = 0; k < count && !status; k++)
        status =
            CUDA_CHECK(self->backend, cudaStreamSynchronize((cudaStream_t)work[k].source_stream));
    return status;
}

// An event before the copy would hold up the engine, which the one behind the copy before does
// already, and say nothing else: it is busy from the later of that and now.
enum status transfer_upload(struct cuda_executor *self, struct cuda_slot *lead,
                            const struct work *work, struct device_frames *frames)
{
    struct copies copies = {.stream = self->upload_stream, .one_by_one = work->source_abroad};
    range_push("upload", self->submitted);
    enum status status = work->source_abroad ? await_abroad(self, work, frames->count) : STATUS_OK;
    lead->begun_ns = now_ns();
    for (int k = 0; k < frames->count && !status; k++)
        status = upload(self, &lead[k], &work[k].source, &frames->source[k], &copies);
    if (!status)
        status = copies_begin(self, &copies);
    if (!status)
        status = hand_over(self, self->upload_stream, lead->uploaded, lead->work_stream);
    range_pop();
    return status;
}

enum status transfer_download(struct cuda_executor *self, struct cuda_slot *lead,
                              const struct work *work, const struct device_frames *frames)
{
    struct copies copies = {.stream = self->download_stream};
    range_push("download", self->submitted);
    enum status status = hand_over(self, lead->work_stream, lead->computed, self->download_stream);
    for (int k = 0; k < frames->count && !status; k++)
        for (int n = 0; n < program_pictures(self->plan->program) && !status; n++)
            status = download(self, &work[k], n, &frames->target[n][k], &copies);
    for (int k = 0; k < frames->count && !status; k++)
        status = download_analyses(self, &work[k], frames->memory + (size_t)k * self->layout.bytes,
                                   &copies);
    if (!status)
        status = copies_begin(self, &copies);
    if (!status)
        status = transfer_record(self, lead->done, self->download_stream);
    range_pop();
    return status;
}
