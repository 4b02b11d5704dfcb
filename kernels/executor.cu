// The executor of the CUDA backend: a ring of slots on one GPU.
//
// A slot's frame is upload, passes and download, enqueued on the slot's own stream in one go; slots
// overlap because copies up, kernels and copies down are different engines of the GPU. The device
// memory is one allocation, made with the executor:
//
//   constants | slot 0: input planes, output planes, plan buffers, scratch | slot 1: ... | ...
//
// A slot belongs to the submitting thread until submit_async() returns, then to the GPU until
// `done` fires, then to the waiting thread. Passes of a frame follow each other on one stream, and
// so do its two fields: buffers and scratch need no further order.
#include "kernels/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/job.h"

// A plane of ours within a slot's memory.
struct region {
    size_t offset;
    int pitch;
};

// What a pass needs on the device besides its samples.
struct pass_constants {
    const uint16_t *before, *after; // tables on both sides of the stencil; the only one is `before`
    const int32_t *stencil[2];      // as struct stencil wants them
};

struct cuda_slot {
    cudaStream_t stream;
    cudaEvent_t source_ready;              // on the stream that delivers device sources
    cudaEvent_t began, uploaded, computed; // for the times
    cudaEvent_t done;
    uint8_t *memory;
};

struct cuda_executor {
    struct executor base;
    struct cuda_backend *backend;
    const struct plan *plan;
    int width, height;
    int slots;
    struct cuda_slot *slot;
    struct pass_constants *constants; // of each pass
    uint8_t *memory;
    size_t constant_bytes, slot_bytes;
    // Where things lie in every slot.
    struct region input[FORMAT_PLANES], output[FORMAT_PLANES];
    struct region *buffer; // of the plan
    size_t mixed;          // scratch: what a mix makes for a stencil
    size_t scratch;        // scratch: of stencils
    // An event of the GPU's clock, and CLOCK_MONOTONIC when it happened.
    cudaEvent_t epoch;
    long long epoch_ns;
};

static struct cuda_executor *self_of(struct executor *executor)
{
    return (struct cuda_executor *)executor;
}

static int sample_bytes(int depth)
{
    return depth > 8 ? 2 : 1;
}

// ---- what a pass is made of: at most one stencil, and a table on either side ----

static const struct op *pass_stencil(const struct plan_pass *pass)
{
    for (int k = 0; k < pass->steps; k++)
        if (pass->step[k].stencil)
            return pass->step[k].stencil;
    return NULL;
}

static const struct plan_step *pass_table(const struct plan_pass *pass, bool after)
{
    bool passed = false;
    for (int k = 0; k < pass->steps; k++) {
        if (pass->step[k].stencil)
            passed = true;
        else if (passed == after)
            return &pass->step[k];
    }
    return NULL;
}

// The depth of the samples that the stencil sees.
static int stencil_depth(const struct plan_pass *pass)
{
    const struct plan_step *before = pass_table(pass, false);
    return before ? before->depth_out : pass->load_depth;
}

// ---- construction: where everything lies ----

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static size_t reserve(size_t *used, size_t bytes)
{
    size_t at = *used;
    *used = at + aligned(bytes);
    return at;
}

static struct region reserve_plane(size_t *used, size_t row_bytes, int rows)
{
    size_t pitch = aligned(row_bytes);
    return {reserve(used, pitch * (size_t)rows), (int)pitch};
}

static void lay_out_planes(struct cuda_executor *self)
{
    const struct plan *plan = self->plan;
    const struct format *in = &plan->program->input, *out = &plan->program->output;
    for (int p = 0; p < in->planes; p++)
        if (plan->reads >> p & 1)
            self->input[p] = reserve_plane(&self->slot_bytes, format_row_bytes(in, p, self->width),
                                           format_rows(in, p, self->height));
    for (int p = 0; p < out->planes; p++)
        if (plan->plane[p].origin == PLANE_COMPUTED)
            self->output[p] =
                reserve_plane(&self->slot_bytes, format_row_bytes(out, p, self->width),
                              format_rows(out, p, self->height));
    for (int b = 0; b < plan->buffers; b++) {
        struct program_plane grid = plan->buffer[b].grid;
        size_t width = (size_t)subsampled(self->width, grid.shift_x);
        self->buffer[b] = reserve_plane(&self->slot_bytes, width * (size_t)sample_bytes(grid.depth),
                                        subsampled(self->height, grid.shift_y));
    }
}

static size_t stencil_scratch(const struct op *op, int width, int height)
{
    switch (op->kind) {
    case OP_SEPARABLE:
        return separable_scratch(op, width, height);
    case OP_BOX:
        return box_scratch(op, width, height);
    default:
        return 0;
    }
}

// Passes take turns at the scratch memory: it is as large as the most that one of them wants.
static void lay_out_scratch(struct cuda_executor *self)
{
    size_t mixed = 0, scratch = 0;
    for (int k = 0; k < self->plan->passes; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        const struct op *op = pass_stencil(pass);
        int width = subsampled(self->width, pass->grid.shift_x);
        int height = subsampled(self->height, pass->grid.shift_y);
        size_t wanted = op ? stencil_scratch(op, width, height) : 0;
        scratch = wanted > scratch ? wanted : scratch;
        wanted =
            op && pass->mix ? scratch_bytes(width, height, sample_bytes(stencil_depth(pass))) : 0;
        mixed = wanted > mixed ? wanted : mixed;
    }
    self->mixed = reserve(&self->slot_bytes, mixed);
    self->scratch = reserve(&self->slot_bytes, scratch);
}

// ---- construction: constants ----

// Constants gathered on the host as they will lie on the device. Without host memory they are only
// measured.
struct constants {
    uint8_t *host, *device;
    size_t used;
};

// Reserve `bytes`. *host is where to write them, NULL to leave it.
static const void *constants_take(struct constants *constants, size_t bytes, void **host)
{
    size_t at = reserve(&constants->used, bytes);
    *host = constants->host ? constants->host + at : NULL;
    return constants->device + at;
}

static const void *constants_put(struct constants *constants, const void *from, size_t bytes)
{
    void *host;
    const void *device = constants_take(constants, bytes, &host);
    if (host)
        memcpy(host, from, bytes);
    return device;
}

static const uint16_t *put_table(struct constants *constants, const struct plan_step *step)
{
    if (!step)
        return NULL;
    size_t bytes = sizeof *step->table << step->depth_in;
    return (const uint16_t *)constants_put(constants, step->table, bytes);
}

// The taps of an axis from the first to the last, between zeros.
static const int32_t *put_taps(struct constants *constants, const int32_t *tap, int radius)
{
    size_t count = 2 * (size_t)radius + 1 + 2 * TAP_MARGIN;
    void *host;
    const void *device = constants_take(constants, count * sizeof *tap, &host);
    if (host)
        for (int k = -radius; k <= radius; k++)
            ((int32_t *)host)[TAP_MARGIN + radius + k] = tap[abs(k)];
    return (const int32_t *)device + TAP_MARGIN;
}

static void put_stencil(struct constants *constants, const struct op *op, const int32_t *to[2])
{
    if (op->kind == OP_SEPARABLE) {
        to[0] = put_taps(constants, op->separable.tap_x, op->separable.radius_x);
        to[1] = put_taps(constants, op->separable.tap_y, op->separable.radius_y);
    } else if (op->kind == OP_CONVOLVE) {
        size_t count = (size_t)op->convolve.width * (size_t)op->convolve.height;
        to[0] = (const int32_t *)constants_put(constants, op->convolve.weight,
                                               count * sizeof *op->convolve.weight);
    }
}

// Returns how many bytes there are.
static size_t put_constants(struct cuda_executor *self, uint8_t *host)
{
    struct constants constants = {.host = host, .device = self->memory};
    for (int k = 0; k < self->plan->passes; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        const struct op *op = pass_stencil(pass);
        struct pass_constants *to = &self->constants[k];
        to->before = put_table(&constants, pass_table(pass, false));
        to->after = put_table(&constants, pass_table(pass, true));
        if (op)
            put_stencil(&constants, op, to->stencil);
    }
    return constants.used;
}

// ---- construction: memory, streams and events ----

static enum status allocate(struct cuda_executor *self)
{
    size_t bytes = self->constant_bytes + (size_t)self->slots * self->slot_bytes;
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

static enum status create_event(struct cuda_executor *self, cudaEvent_t *event, unsigned flags)
{
    return CUDA_CHECK(self->backend, cudaEventCreateWithFlags(event, flags));
}

static enum status create_slot(struct cuda_executor *self, struct cuda_slot *slot)
{
    enum status status =
        CUDA_CHECK(self->backend, cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking));
    if (!status)
        status = create_event(self, &slot->source_ready, cudaEventDisableTiming);
    if (!status)
        status = create_event(self, &slot->began, cudaEventDefault);
    if (!status)
        status = create_event(self, &slot->uploaded, cudaEventDefault);
    if (!status)
        status = create_event(self, &slot->computed, cudaEventDefault);
    // The end is timed as well: one event fewer a frame than a separate one to wait for.
    return status ? status : create_event(self, &slot->done, cudaEventBlockingSync);
}

// Constants to the device; zeros everywhere else, so that bytes of a row that no component covers
// are the same in every frame.
static enum status fill_memory(struct cuda_executor *self)
{
    cudaStream_t stream = self->slot[0].stream;
    size_t slot_bytes = (size_t)self->slots * self->slot_bytes;
    uint8_t *host = (uint8_t *)calloc(1, self->constant_bytes + 1);
    if (!host)
        return STATUS_MEMORY;
    put_constants(self, host);
    enum status status =
        CUDA_CHECK(self->backend, cudaMemsetAsync(self->slot[0].memory, 0, slot_bytes, stream));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMemcpyAsync(self->memory, host, self->constant_bytes,
                                                           cudaMemcpyDefault, stream));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaStreamSynchronize(stream));
    free(host);
    return status;
}

static enum status set_epoch(struct cuda_executor *self)
{
    struct timespec now;
    enum status status = CUDA_CHECK(self->backend, cudaEventCreate(&self->epoch));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaEventRecord(self->epoch, self->slot[0].stream));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaEventSynchronize(self->epoch));
    clock_gettime(CLOCK_MONOTONIC, &now);
    self->epoch_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    return status;
}

static void destroy(struct executor **executor)
{
    struct cuda_executor *self = self_of(*executor);
    cudaSetDevice(self->backend->device);
    for (int k = 0; self->slot && k < self->slots; k++) {
        struct cuda_slot *slot = &self->slot[k];
        cudaEvent_t events[] = {slot->source_ready, slot->began, slot->uploaded, slot->computed,
                                slot->done};
        for (cudaEvent_t event : events)
            if (event)
                cudaEventDestroy(event);
        if (slot->stream)
            cudaStreamDestroy(slot->stream);
    }
    if (self->epoch)
        cudaEventDestroy(self->epoch);
    cudaFree(self->memory);
    free(self->slot);
    free(self->constants);
    free(self->buffer);
    free(self);
    *executor = NULL;
}

// ---- copies ----

// Rows between host and device, each of `bytes`; the direction follows from the addresses. Strides
// may be negative.
struct row_copy {
    uint8_t *to;
    const uint8_t *from;
    ptrdiff_t to_stride, from_stride;
    size_t bytes;
    int rows;
};

static enum status copy_bytes(struct cuda_executor *self, const struct row_copy *copy, size_t bytes,
                              cudaStream_t stream)
{
    return CUDA_CHECK(self->backend,
                      cudaMemcpyAsync(copy->to, copy->from, bytes, cudaMemcpyDefault, stream));
}

// Begin at the last row instead of the first.
static void turn_over(struct row_copy *copy)
{
    copy->to += (copy->rows - 1) * copy->to_stride;
    copy->from += (copy->rows - 1) * copy->from_stride;
    copy->to_stride = -copy->to_stride;
    copy->from_stride = -copy->from_stride;
}

static enum status copy_row_by_row(struct cuda_executor *self, struct row_copy copy,
                                   cudaStream_t stream)
{
    enum status status = STATUS_OK;
    for (int y = 0; y < copy.rows && !status; y++) {
        status = copy_bytes(self, &copy, copy.bytes, stream);
        copy.to += copy.to_stride;
        copy.from += copy.from_stride;
    }
    return status;
}

// `with_gaps`: what lies between the rows may be copied as well, if that makes it one piece.
static enum status copy_rows(struct cuda_executor *self, struct row_copy copy, bool with_gaps,
                             cudaStream_t stream)
{
    if (copy.rows == 1)
        return copy_bytes(self, &copy, copy.bytes, stream);
    if (copy.to_stride < 0)
        turn_over(&copy);
    if (copy.from_stride < 0) // upside down against each other
        return copy_row_by_row(self, copy, stream);
    size_t to_stride = (size_t)copy.to_stride, from_stride = (size_t)copy.from_stride;
    if (to_stride == from_stride && (with_gaps || to_stride == copy.bytes))
        return copy_bytes(self, &copy, to_stride * (size_t)(copy.rows - 1) + copy.bytes, stream);
    return CUDA_CHECK(self->backend,
                      cudaMemcpy2DAsync(copy.to, to_stride, copy.from, from_stride, copy.bytes,
                                        (size_t)copy.rows, cudaMemcpyDefault, stream));
}

// ---- a frame on the device ----

struct device_frame {
    struct image source, target;
    uint8_t *memory; // the slot's
};

// Point plane `p` of `image`, which lies in host memory, into `region`: with the same direction of
// rows, and with the same stride where that fits and keeps 16 bytes aligned.
static void place_plane(struct image *image, int p, struct region region, uint8_t *memory)
{
    ptrdiff_t stride = image->stride[p], size = stride < 0 ? -stride : stride;
    int rows = format_rows(image->format, p, image->height);
    if (size > region.pitch || size % 16 != 0 || rows == 1)
        size = region.pitch;
    image->data[p] = memory + region.offset + (stride < 0 ? (rows - 1) * size : 0);
    image->stride[p] = stride < 0 ? -size : size;
}

static enum status upload(struct cuda_executor *self, const struct cuda_slot *slot,
                          const struct image *host, struct image *device)
{
    enum status status = STATUS_OK;
    for (int p = 0; p < FORMAT_PLANES && !status; p++) {
        device->data[p] = NULL;
        if (!(self->plan->reads >> p & 1))
            continue;
        place_plane(device, p, self->input[p], slot->memory);
        struct row_copy copy = {
            .to = device->data[p],
            .from = host->data[p],
            .to_stride = device->stride[p],
            .from_stride = host->stride[p],
            .bytes = format_row_bytes(host->format, p, host->width),
            .rows = format_rows(host->format, p, host->height),
        };
        status = copy_rows(self, copy, true, slot->stream);
    }
    return status;
}

// Let the slot's stream wait until a source on the device is there.
static enum status await_source(struct cuda_executor *self, const struct cuda_slot *slot,
                                const struct work *work)
{
    cudaStream_t stream = (cudaStream_t)work->source_stream;
    enum status status = CUDA_CHECK(self->backend, cudaEventRecord(slot->source_ready, stream));
    if (!status)
        status =
            CUDA_CHECK(self->backend, cudaStreamWaitEvent(slot->stream, slot->source_ready, 0));
    return status;
}

static void place_target(struct cuda_executor *self, const struct cuda_slot *slot,
                         struct image *target)
{
    for (int p = 0; p < FORMAT_PLANES; p++) {
        target->data[p] = NULL;
        if (self->plan->plane[p].origin == PLANE_COMPUTED)
            place_plane(target, p, self->output[p], slot->memory);
    }
}

// Where plane `p` of the target is on the device, and as which plane of it; NULL where it is not.
static const struct image *result_plane(const struct cuda_executor *self, const struct work *work,
                                        const struct device_frame *frame, int *p)
{
    const struct plan_plane *plane = &self->plan->plane[*p];
    if (plane->origin == PLANE_COMPUTED)
        return &frame->target;
    if (plane->origin == PLANE_CONSTANT || !work->source_on_device)
        return NULL;
    *p = plane->source;
    return &work->source;
}

static enum status download(struct cuda_executor *self, const struct cuda_slot *slot,
                            const struct work *work, const struct device_frame *frame)
{
    const struct image *host = &work->target;
    enum status status = STATUS_OK;
    for (int p = 0; p < host->format->planes && !status; p++) {
        int from = p;
        const struct image *device = result_plane(self, work, frame, &from);
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
        status = copy_rows(self, copy, false, slot->stream);
    }
    return status;
}

// ---- passes ----

static struct view component_view(const struct image *image, int c)
{
    const struct component *at = &image->format->component[c];
    struct view view = {
        .data = image->data[at->plane] + at->offset,
        .stride = (int)image->stride[at->plane],
        .step = at->step,
        .bytes = at->bytes,
        .shift = at->shift,
        .swapped = at->bytes == 2 && at->big_endian, // the GPU is little-endian
    };
    view.adjacent = view_is_adjacent(&view);
    view.plain = view.adjacent && !view.swapped && view.shift == 0;
    return view;
}

static struct view operand_view(const struct cuda_executor *self, const struct device_frame *frame,
                                struct operand operand)
{
    if (operand.place == PLACE_INPUT)
        return component_view(&frame->source, operand.index);
    if (operand.place == PLACE_OUTPUT)
        return component_view(&frame->target, operand.index);
    struct region region = self->buffer[operand.index];
    int depth = self->plan->buffer[operand.index].grid.depth;
    return view_plain(frame->memory + region.offset, region.pitch, sample_bytes(depth));
}

// Source `s` of a pass, without a border.
static struct source pass_source(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct device_frame *frame, int s)
{
    const struct image *picture = &frame->source;
    return {
        .view = operand_view(self, frame, pass->source[s]),
        .width = subsampled(picture->width, pass->source_grid[s].shift_x),
        .height = subsampled(picture->height, pass->source_grid[s].shift_y),
    };
}

static struct sink pass_sink(const struct cuda_executor *self, const struct plan_pass *pass,
                             const struct device_frame *frame, const uint16_t *table)
{
    struct sink sink = {
        .views = pass->targets,
        .table = table,
        .width = subsampled(frame->source.width, pass->grid.shift_x),
        .height = subsampled(frame->source.height, pass->grid.shift_y),
    };
    for (int t = 0; t < pass->targets; t++)
        sink.view[t] = operand_view(self, frame, pass->target[t]);
    return sink;
}

static cudaError_t mix_async(const struct cuda_executor *self, const struct plan_pass *pass,
                             const struct device_frame *frame, const struct sink *sink,
                             cudaStream_t stream)
{
    struct mix mix = {.sources = pass->sources, .op = pass->mix->mix};
    for (int k = 0; k < pass->sources; k++) {
        struct source source = pass_source(self, pass, frame, k);
        mix.view[k] = source.view;
        mix.width[k] = source.width;
        mix.height[k] = source.height;
        mix.up_x[k] = pass->source_grid[k].shift_x - pass->grid.shift_x;
        mix.up_y[k] = pass->source_grid[k].shift_y - pass->grid.shift_y;
    }
    return pointwise_mix_async(&mix, sink, stream);
}

static cudaError_t pointwise_async(const struct cuda_executor *self, const struct plan_pass *pass,
                                   const struct pass_constants *constants,
                                   const struct device_frame *frame, cudaStream_t stream)
{
    struct sink sink = pass_sink(self, pass, frame, constants->before);
    if (pass->mix)
        return mix_async(self, pass, frame, &sink, stream);
    if (pass->source[0].place == PLACE_CONSTANT)
        return pointwise_fill_async(pass->source[0].index, &sink, stream);
    struct source source = pass_source(self, pass, frame, 0);
    return pointwise_copy_async(&source, &sink, stream);
}

// What a stencil reads. Neighbourhoods would make a mix many times over: it goes to scratch first.
static cudaError_t stencil_source_async(const struct cuda_executor *self,
                                        const struct plan_pass *pass,
                                        const struct pass_constants *constants,
                                        const struct device_frame *frame, struct source *source,
                                        cudaStream_t stream)
{
    if (!pass->mix) {
        *source = pass_source(self, pass, frame, 0);
        source->table = constants->before;
        return cudaSuccess;
    }
    struct sink sink = pass_sink(self, pass, frame, constants->before);
    int bytes = sample_bytes(stencil_depth(pass));
    sink.views = 1;
    sink.view[0] =
        view_plain(frame->memory + self->mixed, scratch_stride(sink.width, bytes), bytes);
    *source = {.view = sink.view[0], .width = sink.width, .height = sink.height};
    return mix_async(self, pass, frame, &sink, stream);
}

static cudaError_t stencil_async(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct pass_constants *constants,
                                 const struct device_frame *frame, cudaStream_t stream)
{
    struct stencil stencil = {
        .op = pass_stencil(pass),
        .depth = stencil_depth(pass),
        .sink = pass_sink(self, pass, frame, constants->after),
        .constants = {constants->stencil[0], constants->stencil[1]},
        .scratch = frame->memory + self->scratch,
    };
    cudaError_t error = stencil_source_async(self, pass, constants, frame, &stencil.source, stream);
    if (error)
        return error;
    stencil.source.border = stencil.op->border;
    stencil.source.border_value = stencil.op->border_value;
    switch (stencil.op->kind) {
    case OP_SEPARABLE:
        return separable_async(&stencil, stream);
    case OP_BOX:
        return box_async(&stencil, stream);
    case OP_CONVOLVE:
        return convolve_async(&stencil, stream);
    default:
        return gradient_async(&stencil, stream);
    }
}

static enum status run_passes(struct cuda_executor *self, const struct device_frame *frame,
                              cudaStream_t stream)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->plan->passes && !status; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        const struct pass_constants *constants = &self->constants[k];
        if (pass_stencil(pass))
            status = CUDA_CHECK(self->backend, stencil_async(self, pass, constants, frame, stream));
        else
            status =
                CUDA_CHECK(self->backend, pointwise_async(self, pass, constants, frame, stream));
    }
    return status;
}

static enum status run_frame(struct cuda_executor *self, const struct device_frame *frame,
                             bool fields, cudaStream_t stream)
{
    if (!fields)
        return run_passes(self, frame, stream);
    enum status status = STATUS_OK;
    for (int parity = 0; parity < 2 && !status; parity++) {
        struct device_frame field = *frame;
        field.source = image_field(&frame->source, parity);
        field.target = image_field(&frame->target, parity);
        status = run_passes(self, &field, stream);
    }
    return status;
}

// ---- slots ----

static enum status record(struct cuda_executor *self, cudaEvent_t event, cudaStream_t stream)
{
    return CUDA_CHECK(self->backend, cudaEventRecord(event, stream));
}

static enum status submit_async(struct executor *executor, int number, const struct work *work)
{
    struct cuda_executor *self = self_of(executor);
    struct cuda_slot *slot = &self->slot[number];
    struct device_frame frame = {work->source, work->target, slot->memory};
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status && work->source_on_device)
        status = await_source(self, slot, work);
    if (!status)
        status = record(self, slot->began, slot->stream);
    if (!status && !work->source_on_device)
        status = upload(self, slot, &work->source, &frame.source);
    if (!status)
        status = record(self, slot->uploaded, slot->stream);
    place_target(self, slot, &frame.target);
    if (!status)
        status = run_frame(self, &frame, work->fields, slot->stream);
    if (!status)
        status = record(self, slot->computed, slot->stream);
    if (!status)
        status = download(self, slot, work, &frame);
    return status ? status : record(self, slot->done, slot->stream);
}

// When an event happened.
static enum status when(const struct cuda_executor *self, cudaEvent_t event, long long *ns)
{
    float ms = 0;
    enum status status = CUDA_CHECK(self->backend, cudaEventElapsedTime(&ms, self->epoch, event));
    *ns = self->epoch_ns + (long long)(ms * 1e6);
    return status;
}

static enum status read_times(const struct cuda_executor *self, const struct cuda_slot *slot,
                              struct work_times *times)
{
    enum { BEGAN, UPLOADED, COMPUTED, DONE, EVENTS };
    const cudaEvent_t events[EVENTS] = {slot->began, slot->uploaded, slot->computed, slot->done};
    long long ns[EVENTS];
    enum status status = STATUS_OK;
    for (int k = 0; k < EVENTS && !status; k++)
        status = when(self, events[k], &ns[k]);
    if (!status)
        *times = {
            {ns[BEGAN], ns[UPLOADED]}, {ns[UPLOADED], ns[COMPUTED]}, {ns[COMPUTED], ns[DONE]}};
    return status;
}

static enum status wait(struct executor *executor, int number, struct work_times *times)
{
    struct cuda_executor *self = self_of(executor);
    struct cuda_slot *slot = &self->slot[number];
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaEventSynchronize(slot->done));
    return status || !times ? status : read_times(self, slot, times);
}

enum status cuda_executor_create(struct backend *backend, const struct plan *plan, int width,
                                 int height, int slots, bool frames_in_flight,
                                 struct executor **executor)
{
    (void)frames_in_flight;
    struct cuda_executor *self = (struct cuda_executor *)calloc(1, sizeof *self);
    *executor = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = {submit_async, wait, destroy};
    self->backend = (struct cuda_backend *)backend;
    self->plan = plan;
    self->width = width;
    self->height = height;
    self->slots = slots;
    *executor = &self->base;
    enum status status = STATUS_MEMORY;
    self->slot = (struct cuda_slot *)calloc((size_t)slots, sizeof *self->slot);
    self->constants =
        (struct pass_constants *)calloc((size_t)plan->passes + 1, sizeof *self->constants);
    self->buffer = (struct region *)calloc((size_t)plan->buffers + 1, sizeof *self->buffer);
    if (!self->slot || !self->constants || !self->buffer)
        goto fail;
    lay_out_planes(self);
    lay_out_scratch(self);
    self->constant_bytes = put_constants(self, NULL);
    if ((status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device))) ||
        (status = allocate(self)))
        goto fail;
    for (int k = 0; k < slots; k++) {
        self->slot[k].memory = self->memory + self->constant_bytes + (size_t)k * self->slot_bytes;
        if ((status = create_slot(self, &self->slot[k])))
            goto fail;
    }
    if ((status = fill_memory(self)) || (status = set_epoch(self)))
        goto fail;
    return STATUS_OK;
fail:
    destroy(executor);
    return status;
}
