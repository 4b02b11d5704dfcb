// The executor of the CUDA backend: a ring of slots on one GPU.
//
// A slot's frame is upload, passes and download, enqueued in one go; slots overlap because copies
// up, kernels and copies down are different engines of the GPU. Uploads share a stream and so do
// downloads, for an engine that changes between streams pauses: about a tenth of the link's pace
// with frames of 2 MB. Passes go on the slot's own. The device memory is one allocation, made with
// the executor:
//
//   constants | slot 0: input planes, output planes, plan buffers, analysis, scratch | slot 1: ...
//
// A slot belongs to the submitting thread until submit_async() returns, then to the GPU until
// `done` fires, then to the waiting thread. Passes of a frame follow each other on one stream, and
// so do its two fields: buffers and scratch need no further order. From stream to stream the order
// is `uploaded` and `computed`.
//
// Frames that are submitted together go on the stream of the first one's slot, and each pass is one
// launch for all of them where they lie alike in memory. The first slot leads: its events are those
// of the others too.
#include "kernels/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/launch.h"
#include "kernels/ranges.h"
#include "kernels/transform.h"

// A plane of ours within a slot's memory.
struct region {
    size_t offset;
    int pitch;
};

struct analysis {
    size_t offset, bytes;
};

enum { STENCILS = 2 }; // in a pass, at most

// What a pass needs on the device besides its samples.
struct pass_constants {
    struct lookup lookup[STENCILS + 1];     // before each stencil, and behind the last
    const int32_t *stencil[STENCILS][2];    // as struct stencil wants them
    const uint32_t *fragments[STENCILS][2]; // as well
    struct transform *transform[STENCILS];
    const void *full_frame; // of a full-frame operation
};

struct cuda_slot {
    cudaStream_t stream;
    cudaEvent_t source_ready; // on the stream that delivers device sources
    cudaEvent_t began, uploaded, computed;
    cudaEvent_t done;
    uint8_t *memory;
    int leader;              // the slot whose events are this one's
    bool over;               // atomic: `done` was waited for
    bool uploads, downloads; // whether there was anything: else `uploaded`, `computed` are not used
    long long idle_ns;       // when the source was found to be there already, without `began`; or 0
};

struct cuda_executor {
    struct executor base;
    struct cuda_backend *backend;
    const struct plan *plan;
    int width, height;
    int slots;
    struct cuda_slot *slot;
    cudaStream_t upload_stream, download_stream;
    struct pass_constants *constants; // of each pass
    uint8_t *memory;
    size_t constant_bytes, slot_bytes;
    long long submitted; // frames, for profilers
    // Where things lie in every slot.
    struct region input[FORMAT_PLANES], output[MAX_PICTURES][FORMAT_PLANES];
    struct region *buffer;     // of the plan
    struct analysis *analysis; // of the program
    size_t mixed;              // scratch: what a mix makes for a stencil
    size_t between;            // scratch: what the first of two stencils makes for the second
    size_t scratch;            // scratch: of stencils
    // An event of the GPU's clock, and CLOCK_MONOTONIC when it happened.
    cudaEvent_t epoch;
    long long epoch_ns;
};

static struct cuda_executor *self_of(struct executor *executor)
{
    return (struct cuda_executor *)executor;
}

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int sample_bytes(int depth)
{
    return depth > 8 ? 2 : 1;
}

// ---- what a pass is made of: stencils, and a table before each and behind the last ----

static const struct plan_step *pass_step(const struct plan_pass *pass, int n)
{
    for (int k = 0; k < pass->steps; k++)
        if (pass->step[k].stencil && n-- == 0)
            return &pass->step[k];
    return NULL;
}

static int pass_stencils(const struct plan_pass *pass)
{
    int count = 0;
    while (pass_step(pass, count))
        count++;
    return count;
}

static const struct op *pass_stencil(const struct plan_pass *pass, int n)
{
    const struct plan_step *step = pass_step(pass, n);
    return step ? step->stencil : NULL;
}

// The table behind `n` stencils.
static const struct plan_step *pass_table(const struct plan_pass *pass, int n)
{
    for (int k = 0; k < pass->steps; k++) {
        if (pass->step[k].stencil)
            n--;
        else if (n == 0)
            return &pass->step[k];
    }
    return NULL;
}

// The depth of the samples that stencil `n` sees.
static int stencil_depth(const struct plan_pass *pass, int n)
{
    return pass_step(pass, n)->depth_in;
}

// ---- construction: transforms ----

// What cannot be had is made without.
static enum status create_transforms(struct cuda_executor *self)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->plan->passes; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        for (int n = 0; n < pass_stencils(pass) && status != STATUS_MEMORY; n++) {
            const struct plan_step *step = pass_step(pass, n);
            const struct op_convolve *op = &step->stencil->convolve;
            const struct transform_request request = {
                .weight = op->weight,
                .width = op->width,
                .height = op->height,
                .columns = subsampled(self->width, pass->grid.shift_x),
                .rows = subsampled(self->height, pass->grid.shift_y),
                .depth = step->depth_in,
            };
            if (step->transform)
                status = transform_create(&request, self->backend->log,
                                          &self->constants[k].transform[n]);
        }
    }
    return status == STATUS_MEMORY ? status : STATUS_OK;
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
    const struct format *in = &plan->program->input;
    for (int p = 0; p < in->planes; p++)
        if (plan->reads >> p & 1)
            self->input[p] = reserve_plane(&self->slot_bytes, format_row_bytes(in, p, self->width),
                                           format_rows(in, p, self->height));
    for (int n = 0; n < program_pictures(plan->program); n++) {
        const struct format *out = program_format(plan->program, n);
        for (int p = 0; p < out->planes; p++)
            if (plan->picture[n].plane[p].origin == PLANE_COMPUTED)
                self->output[n][p] =
                    reserve_plane(&self->slot_bytes, format_row_bytes(out, p, self->width),
                                  format_rows(out, p, self->height));
    }
    for (int b = 0; b < plan->buffers; b++) {
        struct program_plane grid = plan->buffer[b].grid;
        size_t width = (size_t)subsampled(self->width, grid.shift_x);
        self->buffer[b] = reserve_plane(&self->slot_bytes, width * (size_t)sample_bytes(grid.depth),
                                        subsampled(self->height, grid.shift_y));
    }
}

static void lay_out_analyses(struct cuda_executor *self)
{
    const struct program *program = self->plan->program;
    for (int k = 0; k < program->analyses; k++) {
        size_t bytes = program_analysis_bytes(program, k, self->width, self->height);
        self->analysis[k] = {reserve(&self->slot_bytes, bytes), bytes};
    }
}

static size_t stencil_scratch(const struct op *op, int depth, int width, int height)
{
    switch (op->kind) {
    case OP_SEPARABLE:
        return separable_scratch(op, width, height);
    case OP_BOX:
        return box_scratch(op, width, height);
    case OP_CONVOLVE:
        return convolve_scratch(op, depth, width, height);
    default:
        return 0;
    }
}

static void enlarge(size_t *most, size_t wanted)
{
    *most = wanted > *most ? wanted : *most;
}

// Passes take turns at the scratch memory: it is as large as the most that one of them wants.
static void lay_out_scratch(struct cuda_executor *self)
{
    size_t mixed = 0, between = 0, scratch = 0;
    for (int k = 0; k < self->plan->passes; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        int width = subsampled(self->width, pass->grid.shift_x), stencils = pass_stencils(pass);
        int height = subsampled(self->height, pass->grid.shift_y);
        if (pass->full_frame)
            enlarge(&scratch, full_frame_scratch(pass->full_frame, width, height));
        for (int n = 0; n < stencils; n++) {
            int depth = stencil_depth(pass, n);
            size_t plane = scratch_bytes(width, height, sample_bytes(depth));
            const struct transform *transform = self->constants[k].transform[n];
            enlarge(&scratch, transform
                                  ? transform_scratch(transform)
                                  : stencil_scratch(pass_stencil(pass, n), depth, width, height));
            if (n == 0 && pass->mix)
                enlarge(&mixed, plane);
            if (n + 1 < stencils)
                enlarge(&between, plane);
        }
    }
    self->mixed = reserve(&self->slot_bytes, mixed);
    self->between = reserve(&self->slot_bytes, between);
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

static struct lookup put_table(struct constants *constants, const struct plan_step *step)
{
    if (!step)
        return {};
    size_t bytes = sizeof *step->table << step->depth_in;
    const uint16_t *device = (const uint16_t *)constants_put(constants, step->table, bytes);
    return lookup_of(step->table, step->depth_in, step->depth_out, device);
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

static const uint32_t *put_fragments(struct constants *constants, const struct op *op,
                                     const struct op *next)
{
    size_t count = fused_fragments(op, next, NULL);
    if (!count)
        return NULL;
    void *host;
    const void *device = constants_take(constants, count * sizeof(uint32_t), &host);
    if (host)
        fused_fragments(op, next, (uint32_t *)host);
    return (const uint32_t *)device;
}

// Rows of weights, with `margin` zeros behind each.
static const int32_t *put_rows(struct constants *constants, const int32_t *const *row, int rows,
                               int length, int margin)
{
    void *host;
    size_t stride = (size_t)(length + margin);
    const void *device = constants_take(constants, (size_t)rows * stride * sizeof **row, &host);
    for (int k = 0; k < rows && host; k++)
        memcpy((int32_t *)host + (size_t)k * stride, row[k], (size_t)length * sizeof **row);
    return (const int32_t *)device;
}

static void put_convolve(struct constants *constants, const struct op_convolve *op, int depth,
                         const int32_t *to[2])
{
    const int32_t *row[KERNEL_SIDE];
    if (op->rank) {
        to[0] = put_rows(constants, op->line_x, op->rank, op->width, TAP_MARGIN);
        to[1] = put_rows(constants, op->line_y, op->rank, op->height, TAP_MARGIN);
        return;
    }
    for (int k = 0; k < op->height; k++)
        row[k] = op->weight + k * op->width;
    to[0] = put_rows(constants, row, op->height, op->width,
                     convolve_fits_tile(op, depth) ? 0 : TAP_MARGIN);
}

static void put_stencil(struct constants *constants, const struct plan_pass *pass,
                        struct pass_constants *to, int n)
{
    const struct op *op = pass_stencil(pass, n), *next = pass_stencil(pass, n + 1);
    if (op->kind == OP_SEPARABLE) {
        to->stencil[n][0] = put_taps(constants, op->separable.tap_x, op->separable.radius_x);
        to->stencil[n][1] = put_taps(constants, op->separable.tap_y, op->separable.radius_y);
        to->fragments[n][0] = put_fragments(constants, op, NULL);
        to->fragments[n][1] = next ? put_fragments(constants, op, next) : NULL;
    } else if (op->kind == OP_CONVOLVE && !to->transform[n]) {
        put_convolve(constants, &op->convolve, stencil_depth(pass, n), to->stencil[n]);
    }
}

static const void *put_full_frame(struct constants *constants, const struct cuda_executor *self,
                                  const struct plan_pass *pass)
{
    int width = subsampled(self->width, pass->grid.shift_x);
    int height = subsampled(self->height, pass->grid.shift_y);
    size_t bytes = full_frame_constants(pass->full_frame, width, height, NULL);
    void *host;
    const void *device = constants_take(constants, bytes, &host);
    if (host && bytes)
        full_frame_constants(pass->full_frame, width, height, host);
    return device;
}

// Returns how many bytes there are.
static size_t put_constants(struct cuda_executor *self, uint8_t *host)
{
    struct constants constants = {.host = host, .device = self->memory};
    for (int k = 0; k < self->plan->passes; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        struct pass_constants *to = &self->constants[k];
        for (int n = 0; n <= STENCILS; n++)
            to->lookup[n] = put_table(&constants, pass_table(pass, n));
        for (int n = 0; n < pass_stencils(pass); n++)
            put_stencil(&constants, pass, to, n);
        if (pass->full_frame)
            to->full_frame = put_full_frame(&constants, self, pass);
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

static enum status create_stream(struct cuda_executor *self, const char *name, cudaStream_t *stream)
{
    enum status status =
        CUDA_CHECK(self->backend, cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    if (!status)
        range_name_stream(*stream, name);
    return status;
}

static enum status create_slot(struct cuda_executor *self, struct cuda_slot *slot)
{
    enum status status = create_stream(self, "filter", &slot->stream);
    if (!status)
        status = create_event(self, &slot->source_ready, cudaEventDisableTiming);
    if (!status)
        status = create_event(self, &slot->began, cudaEventDefault);
    if (!status)
        status = create_event(self, &slot->uploaded, cudaEventDefault);
    if (!status)
        status = create_event(self, &slot->computed, cudaEventDefault);
    // The end is timed as well: one event fewer a frame than a separate one to wait for.
    return status ? status : create_event(self, &slot->done, cudaEventDefault);
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
    enum status status = CUDA_CHECK(self->backend, cudaEventCreate(&self->epoch));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaEventRecord(self->epoch, self->slot[0].stream));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaEventSynchronize(self->epoch));
    self->epoch_ns = now_ns();
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
    if (self->upload_stream)
        cudaStreamDestroy(self->upload_stream);
    if (self->download_stream)
        cudaStreamDestroy(self->download_stream);
    if (self->epoch)
        cudaEventDestroy(self->epoch);
    for (int k = 0; self->constants && k < self->plan->passes; k++)
        for (int n = 0; n < STENCILS; n++)
            transform_destroy(&self->constants[k].transform[n]);
    cudaFree(self->memory);
    free(self->slot);
    free(self->constants);
    free(self->buffer);
    free(self->analysis);
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
static void flip_rows(struct row_copy *copy)
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
        flip_rows(&copy);
    if (copy.from_stride < 0) // upside down against each other
        return copy_row_by_row(self, copy, stream);
    size_t to_stride = (size_t)copy.to_stride, from_stride = (size_t)copy.from_stride;
    if (to_stride == from_stride && (with_gaps || to_stride == copy.bytes))
        return copy_bytes(self, &copy, to_stride * (size_t)(copy.rows - 1) + copy.bytes, stream);
    return CUDA_CHECK(self->backend,
                      cudaMemcpy2DAsync(copy.to, to_stride, copy.from, from_stride, copy.bytes,
                                        (size_t)copy.rows, cudaMemcpyDefault, stream));
}

// ---- frames on the device ----

// The frames of neighbouring slots, on the way together, with a target for each picture of the
// program. What no frame or picture has is left as it was: it is large.
struct device_frames {
    struct image source[FRAMES], target[MAX_PICTURES][FRAMES];
    int count;
    const struct work *work;
    uint8_t *memory; // the first slot's
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
        status = copy_rows(self, copy, true, self->upload_stream);
    }
    return status;
}

// Whether nothing is under way on the stream of a source on the device: to ask costs the host a
// quarter of what an event between two streams does, and the GPU nothing.
static bool is_there(const struct work *work)
{
    cudaError_t error = cudaStreamQuery((cudaStream_t)work->source_stream);
    if (error == cudaErrorNotReady)
        cudaGetLastError(); // it would pass for that of the next launch
    return error == cudaSuccess;
}

static void place_target(struct cuda_executor *self, const struct cuda_slot *slot, int n,
                         struct image *target)
{
    for (int p = 0; p < FORMAT_PLANES; p++) {
        target->data[p] = NULL;
        if (self->plan->picture[n].plane[p].origin == PLANE_COMPUTED)
            place_plane(target, p, self->output[n][p], slot->memory);
    }
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
    for (int p = 0; p < target->format->planes; p++)
        if (target->data[p] && plan_writes(self->plan, n, p, work->source_on_device))
            return true;
    return false;
}

static bool has_download(const struct cuda_executor *self, const struct work *work, int count)
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
                                     const uint8_t *memory)
{
    enum status status = STATUS_OK;
    for (int k = 0; work->analysis && k < self->plan->program->analyses && !status; k++)
        if (work->analysis[k])
            status = CUDA_CHECK(
                self->backend,
                cudaMemcpyAsync(work->analysis[k], memory + self->analysis[k].offset,
                                self->analysis[k].bytes, cudaMemcpyDefault, self->download_stream));
    return status;
}

static enum status download(struct cuda_executor *self, const struct work *work, int n,
                            const struct image *target)
{
    const struct image *host = work_target(work, n);
    enum status status = STATUS_OK;
    for (int p = 0; p < host->format->planes && !status; p++) {
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
        status = copy_rows(self, copy, false, self->download_stream);
    }
    return status;
}

// ---- passes ----

static struct view component_view(const struct image *images, int count, int c)
{
    const struct component *at = &images->format->component[c];
    struct view view = {
        .stride = (int)images->stride[at->plane],
        .step = at->step,
        .bytes = at->bytes,
        .shift = at->shift,
        .most = max_sample(images->format->depth),
        .swapped = at->bytes == 2 && at->big_endian, // the GPU is little-endian
    };
    for (int k = 0; k < count; k++)
        view.data[k] = images[k].data[at->plane] + at->offset;
    view.adjacent = view_is_adjacent(&view);
    view.plain = view.adjacent && !view.swapped && view.shift == 0;
    return view;
}

static struct view operand_view(const struct cuda_executor *self,
                                const struct device_frames *frames, struct operand operand)
{
    if (operand.place == PLACE_INPUT)
        return component_view(frames->source, frames->count, operand.index);
    if (operand.place == PLACE_OUTPUT)
        return component_view(frames->target[operand.index / FORMAT_COMPONENTS], frames->count,
                              operand.index % FORMAT_COMPONENTS);
    struct region region = self->buffer[operand.index];
    int depth = self->plan->buffer[operand.index].grid.depth;
    return view_plain(frames->memory + region.offset, (ptrdiff_t)self->slot_bytes, region.pitch,
                      sample_bytes(depth));
}

// Source `s` of a pass, without a border.
static struct source pass_source(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct device_frames *frames, int s)
{
    const struct image *picture = &frames->source[0];
    return {
        .view = operand_view(self, frames, pass->source[s]),
        .width = subsampled(picture->width, pass->source_grid[s].shift_x),
        .height = subsampled(picture->height, pass->source_grid[s].shift_y),
    };
}

static struct sink pass_sink(const struct cuda_executor *self, const struct plan_pass *pass,
                             const struct device_frames *frames, const struct lookup *lookup)
{
    struct sink sink = {
        .views = pass->targets,
        .lookup = *lookup,
        .width = subsampled(frames->source[0].width, pass->grid.shift_x),
        .height = subsampled(frames->source[0].height, pass->grid.shift_y),
        .frames = frames->count,
    };
    for (int t = 0; t < pass->targets; t++)
        sink.view[t] = operand_view(self, frames, pass->target[t]);
    return sink;
}

// A plane in scratch memory for samples that a pass keeps between its parts.
static struct sink scratch_plane(const struct cuda_executor *self, const struct plan_pass *pass,
                                 const struct device_frames *frames, size_t at, int depth,
                                 const struct lookup *lookup)
{
    struct sink sink = pass_sink(self, pass, frames, lookup);
    int bytes = sample_bytes(depth);
    sink.views = 1;
    sink.view[0] = view_plain(frames->memory + at, (ptrdiff_t)self->slot_bytes,
                              scratch_stride(sink.width, bytes), bytes);
    return sink;
}

static struct source plane_source(const struct sink *plane)
{
    return {.view = plane->view[0], .width = plane->width, .height = plane->height};
}

static cudaError_t mix_async(const struct cuda_executor *self, const struct plan_pass *pass,
                             const struct device_frames *frames, const struct sink *sink,
                             cudaStream_t stream)
{
    struct mix mix = {.sources = pass->sources, .op = pass->mix->mix};
    for (int k = 0; k < pass->sources; k++) {
        struct source source = pass_source(self, pass, frames, k);
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
                                   const struct device_frames *frames, cudaStream_t stream)
{
    struct sink sink = pass_sink(self, pass, frames, &constants->lookup[0]);
    if (pass->mix)
        return mix_async(self, pass, frames, &sink, stream);
    if (pass->source[0].place == PLACE_CONSTANT)
        return pointwise_fill_async(pass->source[0].index, &sink, stream);
    struct source source = pass_source(self, pass, frames, 0);
    return pointwise_copy_async(&source, &sink, stream);
}

// What the first stencil reads. Neighbourhoods would make a mix many times over: it goes to scratch
// first.
static cudaError_t first_source_async(const struct cuda_executor *self,
                                      const struct plan_pass *pass,
                                      const struct pass_constants *constants,
                                      const struct device_frames *frames, struct source *source,
                                      cudaStream_t stream)
{
    if (!pass->mix) {
        *source = pass_source(self, pass, frames, 0);
        source->lookup = constants->lookup[0];
        return cudaSuccess;
    }
    struct sink mixed = scratch_plane(self, pass, frames, self->mixed, stencil_depth(pass, 0),
                                      &constants->lookup[0]);
    *source = plane_source(&mixed);
    return mix_async(self, pass, frames, &mixed, stream);
}

static cudaError_t stencil_async(const struct stencil *stencil, cudaStream_t stream)
{
    if (fused_takes(stencil))
        return fused_async(stencil, stream);
    if (stencil->transform)
        return transform_convolve_async(stencil->transform, stencil, stream);
    switch (stencil->op->kind) {
    case OP_SEPARABLE:
        return separable_async(stencil, stream);
    case OP_BOX:
        return box_async(stencil, stream);
    case OP_CONVOLVE:
        return convolve_async(stencil, stream);
    default:
        return gradient_async(stencil, stream);
    }
}

// Both stencils of a pass in one go, if there is a kernel for that; else they follow each other
// through scratch memory.
static cudaError_t stencils_async(const struct cuda_executor *self, const struct plan_pass *pass,
                                  const struct pass_constants *constants,
                                  const struct device_frames *frames, cudaStream_t stream)
{
    int stencils = pass_stencils(pass);
    struct source source;
    cudaError_t error = first_source_async(self, pass, constants, frames, &source, stream);
    for (int n = 0; n < stencils && !error; n++) {
        struct stencil stencil = {
            .op = pass_stencil(pass, n),
            .next = constants->lookup[n + 1].table ? NULL : pass_stencil(pass, n + 1),
            .depth = stencil_depth(pass, n),
            .source = source,
            .sink = pass_sink(self, pass, frames, &constants->lookup[stencils]),
            .constants = {constants->stencil[n][0], constants->stencil[n][1]},
            .fragments = {constants->fragments[n][0], constants->fragments[n][1]},
            .scratch = frames->memory + self->scratch,
            .scratch_step = (ptrdiff_t)self->slot_bytes,
            .transform = constants->transform[n],
        };
        stencil.source.border = stencil.op->border;
        stencil.source.border_value = stencil.op->border_value;
        if (stencil.next && fused_takes(&stencil))
            return fused_async(&stencil, stream);
        stencil.next = NULL;
        if (n + 1 < stencils) {
            struct lookup none = {};
            stencil.sink = scratch_plane(self, pass, frames, self->between, stencil.depth, &none);
            source = plane_source(&stencil.sink);
            source.lookup = constants->lookup[n + 1];
        }
        error = stencil_async(&stencil, stream);
    }
    return error;
}

static void *analysis_memory(const struct cuda_executor *self, uint8_t *memory, int analysis)
{
    return analysis < 0 ? NULL : memory + self->analysis[analysis].offset;
}

// Whether analysis goes to the host, or to another operation.
static bool analysis_is_wanted(const struct cuda_executor *self, const struct work *work,
                               int analysis)
{
    if (analysis >= 0 && work->analysis && work->analysis[analysis])
        return true;
    for (int p = 0; p < self->plan->passes; p++)
        if (self->plan->pass[p].full_frame && self->plan->pass[p].reads == analysis)
            return true;
    return false;
}

// Frame after frame: scratch memory is each frame's own.
static cudaError_t full_frame_pass_async(const struct cuda_executor *self,
                                         const struct plan_pass *pass,
                                         const struct pass_constants *constants,
                                         const struct device_frames *frames, cudaStream_t stream)
{
    struct source source = pass_source(self, pass, frames, 0);
    struct view to = {};
    if (pass->targets)
        to = operand_view(self, frames, pass->target[0]);
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < frames->count && !error; k++) {
        uint8_t *memory = frames->memory + (size_t)k * self->slot_bytes;
        struct full_frame frame = {
            .op = pass->full_frame,
            .width = source.width,
            .height = source.height,
            .depth = pass->load_depth,
            .from = source.view.data[k],
            .from_stride = source.view.stride,
            .to = to.data[k],
            .to_stride = to.stride,
            .analysis = analysis_memory(self, memory, pass->analysis),
            .analysis_is_wanted = analysis_is_wanted(self, &frames->work[k], pass->analysis),
            .reads = analysis_memory(self, memory, pass->reads),
            .constants = constants->full_frame,
            .scratch = memory + self->scratch,
        };
        error = full_frame_async(&frame, stream);
    }
    return error;
}

static enum status run_passes(struct cuda_executor *self, const struct device_frames *frames,
                              cudaStream_t stream)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->plan->passes && !status; k++) {
        const struct plan_pass *pass = &self->plan->pass[k];
        const struct pass_constants *constants = &self->constants[k];
        if (pass->full_frame)
            status = CUDA_CHECK(self->backend,
                                full_frame_pass_async(self, pass, constants, frames, stream));
        else if (pass_stencils(pass))
            status =
                CUDA_CHECK(self->backend, stencils_async(self, pass, constants, frames, stream));
        else
            status =
                CUDA_CHECK(self->backend, pointwise_async(self, pass, constants, frames, stream));
    }
    return status;
}

static enum status run_fields(struct cuda_executor *self, const struct device_frames *frames,
                              bool fields, cudaStream_t stream)
{
    if (!fields)
        return run_passes(self, frames, stream);
    enum status status = STATUS_OK;
    for (int parity = 0; parity < 2 && !status; parity++) {
        struct device_frames field = *frames;
        for (int k = 0; k < frames->count; k++) {
            field.source[k] = image_field(&frames->source[k], parity);
            for (int n = 0; n < program_pictures(self->plan->program); n++)
                field.target[n][k] = image_field(&frames->target[n][k], parity);
        }
        status = run_passes(self, &field, stream);
    }
    return status;
}

static bool lies_alike(const struct image *a, const struct image *b)
{
    for (int p = 0; p < FORMAT_PLANES; p++)
        if (a->data[p] && b->data[p] && a->stride[p] != b->stride[p])
            return false;
    return true;
}

// Whether frame `k` lies like the first.
static bool lies_like_first(const struct cuda_executor *self, const struct device_frames *frames,
                            int k)
{
    bool alike = lies_alike(&frames->source[0], &frames->source[k]);
    for (int n = 0; n < program_pictures(self->plan->program); n++)
        alike = alike && lies_alike(&frames->target[n][0], &frames->target[n][k]);
    return alike;
}

// One launch a pass for all frames, unless they lie in memory differently.
static enum status run_frames(struct cuda_executor *self, const struct device_frames *frames,
                              bool fields, cudaStream_t stream)
{
    bool alike = true;
    for (int k = 1; k < frames->count; k++)
        alike = alike && lies_like_first(self, frames, k);
    if (alike)
        return run_fields(self, frames, fields, stream);
    enum status status = STATUS_OK;
    for (int k = 0; k < frames->count && !status; k++) {
        struct device_frames one;
        one.count = 1;
        one.work = &frames->work[k];
        one.memory = frames->memory + (size_t)k * self->slot_bytes;
        one.source[0] = frames->source[k];
        for (int n = 0; n < program_pictures(self->plan->program); n++)
            one.target[n][0] = frames->target[n][k];
        status = run_fields(self, &one, fields, stream);
    }
    return status;
}

// ---- slots ----

static enum status record(struct cuda_executor *self, cudaEvent_t event, cudaStream_t stream)
{
    return CUDA_CHECK(self->backend, cudaEventRecord(event, stream));
}

// What follows on stream `to` waits for what is on stream `from` by now.
static enum status hand_over(struct cuda_executor *self, cudaStream_t from, cudaEvent_t event,
                             cudaStream_t to)
{
    enum status status = record(self, event, from);
    return status ? status : CUDA_CHECK(self->backend, cudaStreamWaitEvent(to, event, 0));
}

// Work on sources that are on the device begins when these are there.
static enum status await_sources(struct cuda_executor *self, struct cuda_slot *lead,
                                 const struct work *work, int count)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++) {
        bool awaited = k > 0 && work[k].source_stream == work[k - 1].source_stream;
        if (awaited)
            continue;
        if (!is_there(&work[k]))
            status = hand_over(self, (cudaStream_t)work[k].source_stream,
                               k ? lead->source_ready : lead->began, lead->stream);
        else if (k == 0)
            lead->idle_ns = now_ns();
    }
    return status;
}

// See that copies from where the source is take the direct way, if there is one.
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

static enum status upload_frames(struct cuda_executor *self, struct cuda_slot *lead,
                                 const struct work *work, struct device_frames *frames)
{
    range_push("upload", self->submitted);
    enum status status = work->source_abroad ? await_abroad(self, work, frames->count) : STATUS_OK;
    if (!status)
        status = record(self, lead->began, self->upload_stream);
    for (int k = 0; k < frames->count && !status; k++)
        status = upload(self, &lead[k], &work[k].source, &frames->source[k]);
    if (!status)
        status = hand_over(self, self->upload_stream, lead->uploaded, lead->stream);
    range_pop();
    return status;
}

static enum status download_frames(struct cuda_executor *self, struct cuda_slot *lead,
                                   const struct work *work, const struct device_frames *frames)
{
    range_push("download", self->submitted);
    enum status status = hand_over(self, lead->stream, lead->computed, self->download_stream);
    for (int k = 0; k < frames->count && !status; k++)
        for (int n = 0; n < program_pictures(self->plan->program) && !status; n++)
            status = download(self, &work[k], n, &frames->target[n][k]);
    for (int k = 0; k < frames->count && !status; k++)
        status = download_analyses(self, &work[k], frames->memory + (size_t)k * self->slot_bytes);
    if (!status)
        status = record(self, lead->done, self->download_stream);
    range_pop();
    return status;
}

// Events that would tell nothing are not recorded: each costs the host about a microsecond.
static enum status submit_group(struct cuda_executor *self, int leader, const struct work *work,
                                int count)
{
    struct cuda_slot *lead = &self->slot[leader];
    struct device_frames frames;
    frames.count = count;
    frames.work = work;
    frames.memory = lead->memory;
    lead->idle_ns = 0;
    lead->uploads = !work->source_on_device || work->source_abroad;
    lead->downloads = has_download(self, work, count);
    __atomic_store_n(&lead->over, false, __ATOMIC_RELAXED);
    for (int k = 0; k < count; k++) {
        lead[k].leader = leader;
        frames.source[k] = work[k].source;
        for (int n = 0; n < program_pictures(self->plan->program); n++) {
            frames.target[n][k] = *work_target(&work[k], n);
            place_target(self, &lead[k], n, &frames.target[n][k]);
        }
    }
    enum status status = lead->uploads ? upload_frames(self, lead, work, &frames)
                                       : await_sources(self, lead, work, count);
    range_push("filter", self->submitted);
    if (!status)
        status = run_frames(self, &frames, work->fields, lead->stream);
    range_pop();
    if (!status)
        status = lead->downloads ? download_frames(self, lead, work, &frames)
                                 : record(self, lead->done, lead->stream);
    self->submitted += count;
    return status;
}

static bool goes_together(const struct work *a, const struct work *b)
{
    return a->source_on_device == b->source_on_device && a->source_abroad == b->source_abroad &&
           a->fields == b->fields && a->source.width == b->source.width &&
           a->source.height == b->source.height;
}

static enum status submit_many_async(struct executor *executor, int first, const struct work *work,
                                     int count)
{
    struct cuda_executor *self = self_of(executor);
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    for (int k = 0; k < count && !status;) {
        int group = 1;
        while (group < FRAMES && k + group < count && goes_together(&work[k], &work[k + group]))
            group++;
        status = submit_group(self, first + k, &work[k], group);
        k += group;
    }
    return status;
}

static enum status submit_async(struct executor *executor, int slot, const struct work *work)
{
    return submit_many_async(executor, slot, work, 1);
}

// When an event happened.
static enum status when(const struct cuda_executor *self, cudaEvent_t event, long long *ns)
{
    float ms = 0;
    enum status status = CUDA_CHECK(self->backend, cudaEventElapsedTime(&ms, self->epoch, event));
    *ns = self->epoch_ns + (long long)(ms * 1e6);
    return status;
}

// Frames that went together share their times.
static enum status read_times(const struct cuda_executor *self, const struct cuda_slot *lead,
                              struct work_times *times)
{
    long long uploaded = 0, computed = 0, done = 0;
    *times = {};
    enum status status = when(self, lead->done, &done);
    if (lead->idle_ns)
        uploaded = lead->idle_ns;
    else if (!status)
        status = when(self, lead->uploads ? lead->uploaded : lead->began, &uploaded);
    if (!status && lead->uploads)
        status = when(self, lead->began, &times->upload.begin_ns);
    if (!status && lead->downloads)
        status = when(self, lead->computed, &computed);
    if (status)
        return status;
    if (lead->uploads)
        times->upload.end_ns = uploaded;
    times->compute = {uploaded, lead->downloads ? computed : done};
    if (lead->downloads)
        times->download = {computed, done};
    return status;
}

// Look for a while, then again and again, ever less often: an eighth of the time waited so far is
// what a late look may cost. An event that interrupts whoever waits for it would spare
// the looking, but costs more: interrupts come for each frame, waited for or not, and take tens of
// microseconds of a processor, in a virtual machine more; frames that follow each other that fast
// then wait for those.
static enum status await_event(struct cuda_executor *self, cudaEvent_t event)
{
    const long long patience_ns = 50000, nap_least_ns = 20000, nap_most_ns = 1000000;
    const long long begin = now_ns();
    cudaError_t error;
    while ((error = cudaEventQuery(event)) == cudaErrorNotReady) {
        cudaGetLastError(); // not to be ready would pass for an error of the next launch
        long long waited_ns = now_ns() - begin, nap_ns = waited_ns / 8;
        nap_ns = nap_ns < nap_least_ns ? nap_least_ns : nap_ns > nap_most_ns ? nap_most_ns : nap_ns;
        const struct timespec nap = {.tv_sec = 0, .tv_nsec = (long)nap_ns};
        if (waited_ns > patience_ns)
            nanosleep(&nap, NULL);
    }
    return CUDA_CHECK(self->backend, error);
}

static enum status wait(struct executor *executor, int number, struct work_times *times)
{
    struct cuda_executor *self = self_of(executor);
    struct cuda_slot *slot = &self->slot[self->slot[number].leader];
    bool over = __atomic_load_n(&slot->over, __ATOMIC_ACQUIRE);
    enum status status = STATUS_OK;
    if (!over || times)
        status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status && !over)
        status = await_event(self, slot->done);
    if (!status)
        __atomic_store_n(&slot->over, true, __ATOMIC_RELEASE);
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
    self->base = {submit_async, wait, destroy, submit_many_async};
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
    self->analysis =
        (struct analysis *)calloc((size_t)plan->program->analyses + 1, sizeof *self->analysis);
    if (!self->slot || !self->constants || !self->buffer || !self->analysis)
        goto fail;
    if ((status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device))) ||
        (status = create_transforms(self)))
        goto fail;
    lay_out_planes(self);
    lay_out_analyses(self);
    lay_out_scratch(self);
    self->constant_bytes = put_constants(self, NULL);
    if ((status = allocate(self)) ||
        (status = create_stream(self, "upload", &self->upload_stream)) ||
        (status = create_stream(self, "download", &self->download_stream)))
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
