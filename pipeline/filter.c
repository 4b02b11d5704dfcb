#include "pipeline/filter.h"

#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/check.h"
#include "pipeline/compat.h"
#include "pipeline/memory.h"
#include "pipeline/pixel.h"
#include "pipeline/scaler.h"

// What makes two frames alike.
struct likeness {
    int width, height;
    enum AVPixelFormat pixel; // on the GPU: of its memory
    bool on_device;
    struct color_tags tags;
};

struct filter {
    struct filter_request request;
    struct likeness input;
    bool unknown;     // loads do not know the input's format
    bool passthrough; // ... but no stage needs them to
    bool converts;    // ... and libswscale makes `loaded` of it first
    enum AVPixelFormat loaded;
    struct scaler *scaler;

    struct program program;
    struct plan *plan;
    struct executor *executor;
    enum AVPixelFormat output;
    struct color_tags output_tags;
    bool has_fields; // which stencils see each by itself

    // Side data of slot k begins at side[k * program.sides].
    void **side;
    size_t *side_bytes; // of each in the program

    AVBufferPool *pool;
    size_t plane_offset[FORMAT_PLANES]; // of computed planes in a buffer of the pool
    int linesize[FORMAT_PLANES];
    AVBufferRef *constant[FORMAT_PLANES];

    // Made when first asked to verify.
    struct backend *scalar;
    struct executor *definition;
};

static enum AVPixelFormat memory_format(const AVFrame *frame)
{
    if (!frame->hw_frames_ctx)
        return frame->format;
    return ((AVHWFramesContext *)frame->hw_frames_ctx->data)->sw_format;
}

static struct likeness likeness_of(const AVFrame *frame)
{
    return (struct likeness){frame->width, frame->height, memory_format(frame),
                             frame->hw_frames_ctx != NULL, color_tags_of(frame)};
}

static bool tags_alike(const struct color_tags *a, const struct color_tags *b)
{
    return a->range == b->range && a->matrix == b->matrix && a->primaries == b->primaries &&
           a->transfer == b->transfer && a->location == b->location;
}

bool filter_accepts(const struct filter *filter, const AVFrame *frame)
{
    struct likeness a = filter->input, b = likeness_of(frame);
    return a.width == b.width && a.height == b.height && a.pixel == b.pixel &&
           a.on_device == b.on_device && tags_alike(&a.tags, &b.tags);
}

// ---- the output's format ----

// Which pixel format the chain's result takes on its way out.
static enum AVPixelFormat choose_output(const struct sink_formats *formats,
                                        const struct format *natural, const AVFrame *frame,
                                        enum AVPixelFormat kept)
{
    if (!formats->natural) {
        struct format wanted = *natural;
        if (formats->range != SINK_RANGE_ANY)
            wanted.range = formats->range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        enum AVPixelFormat pixel = pixel_choose(&wanted, frame->width, frame->height,
                                                formats->candidates, formats->wishes);
        if (pixel != AV_PIX_FMT_NONE)
            return pixel;
    }
    if (kept != AV_PIX_FMT_NONE)
        return kept;
    enum AVPixelFormat same = pixel_find(natural);
    return same != AV_PIX_FMT_NONE
               ? same
               : pixel_choose(natural, frame->width, frame->height, NULL, (struct pixel_wishes){0});
}

static bool is_j(enum AVPixelFormat pixel)
{
    const char *name = av_get_pix_fmt_name(pixel);
    return name && !strncmp(name, "yuvj", 4);
}

// The meaning of the result when it is stored as `pixel`.
static void describe_output(const struct sink_formats *formats, const struct format *natural,
                            enum AVPixelFormat pixel, const AVFrame *frame, struct format *output)
{
    struct color_tags tags = color_tags_of(frame);
    pixel_describe(pixel, &tags, frame->width, frame->height, output);
    if (output->model != MODEL_RGB) {
        output->range = natural->range;
        if (output->model == MODEL_YUV && formats->range != SINK_RANGE_ANY)
            output->range = formats->range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        if (is_j(pixel))
            output->range = RANGE_FULL;
    }
    if (natural->model != MODEL_RGB || output->model == MODEL_RGB) {
        output->kr = natural->kr;
        output->kb = natural->kb;
        output->siting = natural->siting;
    }
}

enum status filter_lower(const struct chain *chain, const struct sink_formats *formats,
                         const AVFrame *frame, enum AVPixelFormat software_pixel,
                         struct program *program, enum AVPixelFormat *output)
{
    struct color_tags tags = color_tags_of(frame);
    struct format input;
    if (!pixel_describe(memory_format(frame), &tags, frame->width, frame->height, &input))
        return STATUS_FAILED;
    enum status status = program_init(program, &input);
    if (!status)
        status = chain_lower(chain, program);
    if (!status) {
        struct format natural = program_natural_format(program), format;
        // A result stored like the input keeps its very format; from the GPU's memory it takes the
        // one that software decoding would have given.
        enum AVPixelFormat kept = AV_PIX_FMT_NONE;
        if (format_same_storage(&natural, &input))
            kept = frame->hw_frames_ctx ? software_pixel : frame->format;
        *output = choose_output(formats, &natural, frame, kept);
        describe_output(formats, &natural, *output, frame, &format);
        status = program_finish(program, &format);
    }
    if (status)
        program_free(program);
    return status;
}

// ---- construction ----

// Whether the chain asks for nothing at all, whatever the format.
static bool is_empty(const struct chain *chain)
{
    for (int k = 0; k < chain->links; k++)
        if (strcmp(chain->link[k].stage->name, "null"))
            return false;
    return true;
}

// Frames in a format that loads do not know: let them pass, or have them converted first. `view`
// becomes a frame like those that will be loaded.
static enum status meet_unknown(struct filter *filter, AVFrame *view)
{
    struct color_tags none = {0};
    struct format format;
    filter->loaded = filter->input.pixel;
    filter->unknown = !pixel_describe(filter->input.pixel, &none, 1, 1, &format);
    if (!filter->unknown)
        return STATUS_OK;
    const char *name = av_get_pix_fmt_name(filter->input.pixel);
    filter->output = filter->input.pixel;
    filter->output_tags = filter->input.tags;
    filter->passthrough = is_empty(filter->request.chain);
    if (filter->passthrough)
        return STATUS_OK;
    filter->loaded = pixel_nearest(filter->input.pixel);
    filter->converts = true;
    if (filter->loaded == AV_PIX_FMT_NONE || filter->input.on_device)
        return fail(filter->request.log, STATUS_INPUT, "the pixel format %s is unknown", name);
    log_print(filter->request.log, LOG_INFO, "libswscale converts %s to %s for the filters", name,
              av_get_pix_fmt_name(filter->loaded));
    view->format = filter->loaded;
    return STATUS_OK;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

// Lay out the output's planes: computed ones one after another in a buffer of the pool, constant
// ones in a buffer each that all frames share.
static enum status lay_out(struct filter *filter)
{
    const struct format *format = &filter->program.output;
    size_t total = 0;
    for (int p = 0; p < format->planes; p++) {
        size_t row = aligned(format_row_bytes(format, p, filter->input.width) + 32);
        size_t bytes = row * (size_t)format_rows(format, p, filter->input.height) + 64;
        filter->linesize[p] = (int)row;
        // Referenced planes of frames on the GPU are downloaded: they need room as well.
        bool fetched = filter->plan->plane[p].origin == PLANE_REFERENCE && filter->input.on_device;
        if (filter->plan->plane[p].origin == PLANE_COMPUTED || fetched) {
            filter->plane_offset[p] = total;
            total += aligned(bytes);
        } else if (filter->plan->plane[p].origin == PLANE_CONSTANT) {
            filter->constant[p] = av_buffer_allocz(bytes);
            if (!filter->constant[p])
                return STATUS_MEMORY;
            struct image image = {
                .format = format, .width = filter->input.width, .height = filter->input.height};
            int value[FORMAT_COMPONENTS];
            for (int c = 0; c < FORMAT_COMPONENTS; c++)
                value[c] = filter->program.out[c].value;
            image.data[p] = filter->constant[p]->data;
            image.stride[p] = filter->linesize[p];
            image_fill_plane(&image, p, value);
        }
    }
    if (!total)
        return STATUS_OK;
    filter->pool =
        av_buffer_pool_init2((buffer_size)total, filter->request.backend, memory_alloc, NULL);
    return filter->pool ? STATUS_OK : STATUS_MEMORY;
}

// Memory for the side data of every slot.
static enum status make_sides(struct filter *filter)
{
    const struct program *program = &filter->program;
    struct backend *backend = filter->request.backend;
    size_t sides = (size_t)program->sides, all = sides * (size_t)filter->request.slots;
    if (!sides)
        return STATUS_OK;
    filter->side = calloc(all, sizeof *filter->side);
    filter->side_bytes = calloc(sides, sizeof *filter->side_bytes);
    if (!filter->side || !filter->side_bytes)
        return STATUS_MEMORY;
    for (size_t k = 0; k < sides; k++) {
        const struct op *op = &program->op[program->side[k]];
        struct program_plane grid = program->plane[op->source[0]];
        filter->side_bytes[k] = op_side_bytes(op, subsampled(filter->input.width, grid.shift_x),
                                              subsampled(filter->input.height, grid.shift_y));
    }
    for (size_t k = 0; k < all; k++)
        if (!(filter->side[k] = backend->alloc(backend, filter->side_bytes[k % sides])))
            return fail(filter->request.log, STATUS_MEMORY,
                        "there is no memory for what %s tells of %d frames of %dx%d, %lld MiB",
                        op_name(&program->op[program->side[k % sides]]), filter->request.slots,
                        filter->input.width, filter->input.height,
                        (long long)(filter_side_bytes(filter) >> 20) + 1);
    return STATUS_OK;
}

static void free_sides(struct filter *filter)
{
    struct backend *backend = filter->request.backend;
    size_t sides = (size_t)filter->program.sides;
    for (size_t k = 0; filter->side && k < sides * (size_t)filter->request.slots; k++)
        if (filter->side[k])
            backend->free(backend, filter->side[k], filter->side_bytes[k % sides]);
    free(filter->side);
    free(filter->side_bytes);
}

// Whether frames with fields are filtered field by field: their rows are of two moments, which
// stencils must not mix; but what needs a whole picture gets it.
static bool has_fields(const struct program *program)
{
    bool stencils = false;
    for (int k = 0; k < program->ops; k++) {
        stencils |= op_is_stencil(&program->op[k]);
        if (op_is_whole(&program->op[k]))
            return false;
    }
    return stencils;
}

// A template larger than the picture is nowhere in it: a mistake, unless the size has changed
// since.
static enum status check_template(const struct filter *filter, const struct op_template *template)
{
    const struct filter_request *request = &filter->request;
    int width = filter->input.width, height = filter->input.height;
    if (template->width <= width && template->height <= height)
        return STATUS_OK;
    if (request->is_first)
        return fail(request->log, STATUS_USAGE,
                    "the template %s is %dx%d and the picture %dx%d; give one that fits into it",
                    template->name, template->width, template->height, width, height);
    log_print(request->log, LOG_WARNING,
              "the template %s is %dx%d and the picture now %dx%d: it matches nothing there",
              template->name, template->width, template->height, width, height);
    return STATUS_OK;
}

static enum status check_templates(const struct filter *filter)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < filter->program.ops; k++) {
        const struct op *op = &filter->program.op[k];
        for (int t = 0; op->kind == OP_MATCH && t < op->match.count && !status; t++)
            status = check_template(filter, &op->match.templates[t]);
    }
    return status;
}

static enum status plan_filter(struct filter *filter, const AVFrame *view)
{
    const struct filter_request *request = &filter->request;
    struct backend *backend = request->backend;
    enum status status = filter_lower(request->chain, request->formats, view,
                                      request->software_pixel, &filter->program, &filter->output);
    if (!status)
        status = check_templates(filter);
    if (!status)
        status = plan_create(&filter->program, backend->limits, &filter->plan);
    if (status)
        return status;
    struct color_tags tags = color_tags_of(view);
    filter->output_tags = pixel_tags(&filter->program.input, &filter->program.output, &tags);
    filter->has_fields = has_fields(&filter->program);
    status = lay_out(filter);
    if (!status)
        status = make_sides(filter);
    if (!status)
        status =
            backend->executor_create(backend, filter->plan, view->width, view->height,
                                     request->slots, request->frames_in_flight, &filter->executor);
    return status;
}

enum status filter_create(const struct filter_request *request, const AVFrame *frame,
                          struct filter **filter)
{
    *filter = calloc(1, sizeof **filter);
    struct filter *made = *filter;
    if (!made)
        return STATUS_MEMORY;
    made->request = *request;
    made->input = likeness_of(frame);
    AVFrame view = *frame; // looked at, never kept
    enum status status = meet_unknown(made, &view);
    if (!status && !made->passthrough)
        status = plan_filter(made, &view);
    if (status)
        filter_destroy(filter);
    return status;
}

void filter_destroy(struct filter **filter)
{
    if (!*filter)
        return;
    struct filter *old = *filter;
    executor_destroy(&old->executor);
    executor_destroy(&old->definition);
    backend_destroy(&old->scalar);
    plan_destroy(&old->plan);
    free_sides(old);
    program_free(&old->program);
    av_buffer_pool_uninit(&old->pool);
    for (int p = 0; p < FORMAT_PLANES; p++)
        av_buffer_unref(&old->constant[p]);
    scaler_destroy(&old->scaler);
    free(old);
    *filter = NULL;
}

// ---- frames ----

static enum status add_reference(AVFrame *out, int *count, AVBufferRef *buffer)
{
    for (int k = 0; k < *count; k++)
        if (out->buf[k]->buffer == buffer->buffer)
            return STATUS_OK;
    out->buf[*count] = av_buffer_ref(buffer);
    return out->buf[(*count)++] ? STATUS_OK : STATUS_MEMORY;
}

// Give `out` its planes: new memory, the input's, or the shared constants.
static enum status assemble(struct filter *filter, const AVFrame *in, AVFrame *out)
{
    const struct format *format = &filter->program.output;
    int count = 0;
    AVBufferRef *fresh = NULL;
    enum status status = STATUS_OK;
    if (filter->pool) {
        fresh = out->buf[count++] = av_buffer_pool_get(filter->pool);
        if (!fresh)
            return fail(filter->request.log, STATUS_MEMORY, "there is no memory for a frame");
    }
    for (int p = 0; p < format->planes && !status; p++) {
        int source = filter->plan->plane[p].source;
        bool shared = filter->plan->plane[p].origin == PLANE_REFERENCE && !filter->input.on_device;
        out->linesize[p] = filter->linesize[p];
        if (shared) {
            AVBufferRef *theirs = av_frame_get_plane_buffer((AVFrame *)in, source);
            if (!theirs)
                return fail(filter->request.log, STATUS_FAILED, "a decoded frame has no buffer");
            out->data[p] = in->data[source];
            out->linesize[p] = in->linesize[source];
            status = add_reference(out, &count, theirs);
        } else if (filter->constant[p]) {
            out->data[p] = filter->constant[p]->data;
            status = add_reference(out, &count, filter->constant[p]);
        } else {
            out->data[p] = fresh->data + filter->plane_offset[p];
        }
    }
    out->extended_data = out->data;
    return status;
}

static void describe_frame(const struct filter *filter, AVFrame *out)
{
    out->format = filter->output;
    out->width = filter->input.width;
    out->height = filter->input.height;
    color_tags_apply(&filter->output_tags, out);
    out->crop_left = out->crop_right = out->crop_top = out->crop_bottom = 0;
}

// Make of `in` the picture that the loads know.
static enum status convert_input(struct filter *filter, AVFrame *in)
{
    AVFrame *known = av_frame_alloc();
    if (!known)
        return STATUS_MEMORY;
    enum status status =
        scaler_convert(&filter->scaler, in, filter->loaded, in->width, in->height, known);
    if (!status) {
        av_frame_unref(in);
        av_frame_move_ref(in, known);
    }
    av_frame_free(&known);
    return status == STATUS_FAILED
               ? fail(filter->request.log, STATUS_INPUT, "libswscale cannot convert %s",
                      av_get_pix_fmt_name(filter->input.pixel))
               : status;
}

static struct work describe_work(const struct filter *filter, const AVFrame *in, const AVFrame *out)
{
    struct work work = {
        .source = pixel_image(in, &filter->program.input),
        .target = pixel_image(out, &filter->program.output),
        .source_on_device = filter->input.on_device,
        .source_stream = filter->input.on_device ? filter->request.device_stream : NULL,
    };
    for (int p = 0; p < filter->program.output.planes; p++) {
        enum plane_origin origin = filter->plan->plane[p].origin;
        if (origin == PLANE_CONSTANT || (origin == PLANE_REFERENCE && !work.source_on_device))
            work.target.data[p] = NULL;
    }
    work.fields = filter->has_fields && frame_is_interlaced(in) && image_has_fields(&work.source) &&
                  image_has_fields(&work.target);
    return work;
}

enum status filter_submit(struct filter *filter, int slot, AVFrame *in, AVFrame *out)
{
    if (filter->passthrough)
        return av_frame_ref(out, in) < 0 ? STATUS_MEMORY : STATUS_OK;
    enum status status = STATUS_OK;
    if (filter->converts)
        status = convert_input(filter, in);
    if (!status && av_frame_copy_props(out, in) < 0)
        status = STATUS_MEMORY;
    if (!status)
        status = assemble(filter, in, out);
    if (status)
        return status;
    describe_frame(filter, out);
    struct work work = describe_work(filter, in, out);
    work.side = filter_side(filter, slot);
    return filter->executor->submit_async(filter->executor, slot, &work);
}

enum status filter_wait(struct filter *filter, int slot, struct work_times *times)
{
    if (times)
        *times = (struct work_times){0};
    return filter->passthrough ? STATUS_OK : filter->executor->wait(filter->executor, slot, times);
}

// ---- verification ----

static enum status open_definition(struct filter *filter)
{
    if (filter->definition)
        return STATUS_OK;
    enum status status = backend_scalar_create(filter->request.log, &filter->scalar);
    if (!status)
        status =
            filter->scalar->executor_create(filter->scalar, filter->plan, filter->input.width,
                                            filter->input.height, 1, false, &filter->definition);
    return status;
}

static enum status compare(const struct filter *filter, const AVFrame *got, const AVFrame *want,
                           int64_t index)
{
    const struct format *format = &filter->program.output;
    for (int p = 0; p < format->planes; p++) {
        size_t bytes = format_row_bytes(format, p, got->width);
        // The very memory of the input, whose filler bytes mean nothing.
        if (filter->plan->plane[p].origin == PLANE_REFERENCE && format->filler)
            continue;
        for (int y = 0; y < format_rows(format, p, got->height); y++) {
            const uint8_t *a = got->data[p] + (ptrdiff_t)y * got->linesize[p];
            const uint8_t *b = want->data[p] + (ptrdiff_t)y * want->linesize[p];
            if (!memcmp(a, b, bytes))
                continue;
            size_t x = 0;
            while (a[x] == b[x])
                x++;
            return fail(filter->request.log, STATUS_FAILED,
                        "--verify: frame %lld differs from the definition: plane %d, row %d, byte "
                        "%zu is %d and should be %d; please report this",
                        (long long)index, p, y, x, a[x], b[x]);
        }
    }
    return STATUS_OK;
}

enum status filter_verify(struct filter *filter, const AVFrame *in, const AVFrame *out,
                          int64_t index)
{
    if (filter->passthrough)
        return STATUS_OK;
    enum status status = open_definition(filter);
    AVFrame *host = av_frame_alloc(), *expected = av_frame_alloc();
    if (!status && (!host || !expected))
        status = STATUS_MEMORY;
    if (!status && (filter->input.on_device ? av_hwframe_transfer_data(host, in, 0)
                                            : av_frame_ref(host, in)) < 0)
        status = STATUS_MEMORY;
    if (!status) {
        expected->format = filter->output;
        expected->width = out->width;
        expected->height = out->height;
        status = av_frame_get_buffer(expected, 0) < 0 ? STATUS_MEMORY : STATUS_OK;
    }
    if (!status) {
        struct work work = {.source = pixel_image(host, &filter->program.input),
                            .target = pixel_image(expected, &filter->program.output)};
        work.fields = describe_work(filter, in, out).fields;
        status = filter->definition->submit_async(filter->definition, 0, &work);
    }
    if (!status)
        status = compare(filter, out, expected, index);
    av_frame_free(&host);
    av_frame_free(&expected);
    return status;
}

void *const *filter_side(const struct filter *filter, int slot)
{
    return filter->side ? filter->side + (size_t)slot * (size_t)filter->program.sides : NULL;
}

int64_t filter_side_bytes(const struct filter *filter)
{
    int64_t bytes = 0;
    for (int k = 0; k < filter->program.sides; k++)
        bytes += (int64_t)filter->side_bytes[k];
    return bytes * filter->request.slots;
}

enum AVPixelFormat filter_pixel(const struct filter *filter)
{
    return filter->output;
}

const struct plan *filter_plan(const struct filter *filter)
{
    return filter->plan;
}

int64_t filter_memory(const struct filter *filter)
{
    return filter->executor ? (int64_t)filter->executor->memory : 0;
}
