#include "pipeline/engine/filter.h"

#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/memory.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/scaler.h"

// What makes two frames alike.
struct likeness {
    int width, height;
    enum AVPixelFormat pixel; // on the GPU: of its memory
    bool on_device;
    struct color_tags tags;
};

// One of the pictures that are made of a frame.
struct picture_memory {
    enum AVPixelFormat pixel;
    struct color_tags tags;
    AVBufferPool *pool;
    size_t plane_offset[FORMAT_PLANES]; // of computed planes in a buffer of the pool
    int linesize[FORMAT_PLANES];
    AVBufferRef *constant[FORMAT_PLANES];
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
    struct picture_memory picture[MAX_PICTURES]; // of the program
    struct image *tee;                           // of each slot, as struct work has them
    bool has_fields;                             // which stencils see each by itself

    // The analysis of slot k begins at analysis[k * program.analyses].
    void **analysis;
    size_t *analysis_bytes; // of each in the program

    // Made when first asked to verify.
    struct backend *scalar;
    struct executor *reference;
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
        enum sink_range range =
            formats->asked_range != SINK_RANGE_ANY ? formats->asked_range : formats->range;
        if (range != SINK_RANGE_ANY)
            wanted.range = range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
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
        if (formats->asked_range != SINK_RANGE_ANY)
            output->range = formats->asked_range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        if (is_j(pixel))
            output->range = RANGE_FULL;
    }
    if (natural->model != MODEL_RGB || output->model == MODEL_RGB) {
        output->kr = natural->kr;
        output->kb = natural->kb;
        output->siting = natural->siting;
    }
}

// The format of one of the program's pictures on its way out.
static void choose_picture(const struct program *program, const struct picture *picture,
                           const struct sink_formats *formats, const AVFrame *frame,
                           enum AVPixelFormat software_pixel, enum AVPixelFormat *output,
                           struct format *format, struct format *left)
{
    struct format natural = program_natural_format(program, picture);
    if (left)
        *left = natural;
    // A result stored like the input keeps its very format; from the GPU's memory it takes the one
    // that software decoding would have given.
    enum AVPixelFormat kept = AV_PIX_FMT_NONE;
    if (format_same_storage(&natural, &program->input))
        kept = frame->hw_frames_ctx ? software_pixel : frame->format;
    *output = choose_output(formats, &natural, frame, kept);
    describe_output(formats, &natural, *output, frame, format);
}

enum status filter_lower(const struct chain *chain, const struct sink_formats *formats,
                         const AVFrame *frame, enum AVPixelFormat software_pixel,
                         struct program *program, enum AVPixelFormat *output,
                         struct format *natural)
{
    struct color_tags tags = color_tags_of(frame);
    struct format input, format;
    if (!pixel_describe(memory_format(frame), &tags, frame->width, frame->height, &input))
        return STATUS_FAILED;
    enum status status = program_init(program, &input);
    if (!status)
        status = chain_lower(chain, program);
    for (int k = 0; k < program->tees && !status; k++) {
        choose_picture(program, &program->tee[k].picture, &formats[k + 1], frame, software_pixel,
                       &output[k + 1], &format, natural ? &natural[k + 1] : NULL);
        program_choose_tee(program, k, &format);
    }
    if (!status) {
        choose_picture(program, &program->picture, &formats[0], frame, software_pixel, &output[0],
                       &format, natural);
        status = program_finish(program, &format);
    }
    if (status)
        program_free(program);
    return status;
}

// ---- construction ----

// Whether the chain asks for nothing at all, whatever the format.
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
    filter->picture[0].pixel = filter->input.pixel;
    filter->picture[0].tags = filter->input.tags;
    filter->passthrough = chain_is_empty(filter->request.chain);
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

// A plane that has one value for each component, in memory that all frames share.
static enum status fill_constant(const struct filter *filter, int n, int p, size_t bytes,
                                 struct picture_memory *memory)
{
    const struct format *format = program_format(&filter->program, n);
    struct image image = {
        .format = format, .width = filter->input.width, .height = filter->input.height};
    int value[FORMAT_COMPONENTS];
    memory->constant[p] = av_buffer_allocz(bytes);
    if (!memory->constant[p])
        return STATUS_MEMORY;
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        value[c] = program_out(&filter->program, n)[c].value;
    image.data[p] = memory->constant[p]->data;
    image.stride[p] = memory->linesize[p];
    image_fill_plane(&image, p, value);
    return STATUS_OK;
}

// Lay out the planes of picture `n`: those that are written one after another in a buffer of the
// pool, constant ones in a buffer each that all frames share.
static enum status lay_out(struct filter *filter, int n)
{
    const struct format *format = program_format(&filter->program, n);
    struct picture_memory *memory = &filter->picture[n];
    size_t total = 0;
    for (int p = 0; p < format->planes; p++) {
        size_t row = aligned(format_row_bytes(format, p, filter->input.width) + 32);
        size_t bytes = row * (size_t)format_rows(format, p, filter->input.height) + 64;
        enum status status = STATUS_OK;
        memory->linesize[p] = (int)row;
        if (plan_writes(filter->plan, n, p, filter->input.on_device)) {
            memory->plane_offset[p] = total;
            total += aligned(bytes);
        } else if (filter->plan->picture[n].plane[p].origin == PLANE_CONSTANT) {
            status = fill_constant(filter, n, p, bytes, memory);
        }
        if (status)
            return status;
    }
    if (!total)
        return STATUS_OK;
    memory->pool =
        av_buffer_pool_init2((buffer_size)total, filter->request.backend, memory_alloc, NULL);
    return memory->pool ? STATUS_OK : STATUS_MEMORY;
}

// Of all pictures.
static enum status lay_out_pictures(struct filter *filter, const AVFrame *view)
{
    struct color_tags tags = color_tags_of(view);
    enum status status = STATUS_OK;
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++) {
        const struct format *format = program_format(&filter->program, n);
        filter->picture[n].tags = pixel_tags(&filter->program.input, format, &tags);
        if (filter->request.formats[n].asked_range != SINK_RANGE_ANY) // it is said, not understood
            filter->picture[n].tags.range =
                format->range == RANGE_FULL ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
        status = lay_out(filter, n);
    }
    size_t tees = (size_t)filter->program.tees * (size_t)filter->request.slots;
    filter->tee = calloc(tees + 1, sizeof *filter->tee);
    return status || filter->tee ? status : STATUS_MEMORY;
}

// Memory for the analysis of every slot.
static enum status make_sides(struct filter *filter)
{
    const struct program *program = &filter->program;
    struct backend *backend = filter->request.backend;
    size_t analyses = (size_t)program->analyses, all = analyses * (size_t)filter->request.slots;
    if (!analyses)
        return STATUS_OK;
    filter->analysis = calloc(all, sizeof *filter->analysis);
    filter->analysis_bytes = calloc(analyses, sizeof *filter->analysis_bytes);
    if (!filter->analysis || !filter->analysis_bytes)
        return STATUS_MEMORY;
    for (size_t k = 0; k < analyses; k++)
        filter->analysis_bytes[k] =
            program_analysis_bytes(program, (int)k, filter->input.width, filter->input.height);
    for (size_t k = 0; k < all; k++)
        if (!(filter->analysis[k] = backend->alloc(backend, filter->analysis_bytes[k % analyses])))
            return fail(filter->request.log, STATUS_MEMORY,
                        "there is no memory for what %s tells of %d frames of %dx%d, %lld MiB",
                        op_name(&program->op[program->analysis[k % analyses]]),
                        filter->request.slots, filter->input.width, filter->input.height,
                        (long long)(filter_analysis_bytes(filter) >> 20) + 1);
    return STATUS_OK;
}

static void free_sides(struct filter *filter)
{
    struct backend *backend = filter->request.backend;
    size_t analyses = (size_t)filter->program.analyses;
    for (size_t k = 0; filter->analysis && k < analyses * (size_t)filter->request.slots; k++)
        if (filter->analysis[k])
            backend->free(backend, filter->analysis[k], filter->analysis_bytes[k % analyses]);
    free(filter->analysis);
    free(filter->analysis_bytes);
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

// The next template that is larger than the picture, and so nowhere in it, from number *t of
// stage *k on; NULL: there is none.
static const struct template *next_misfit(const struct filter *filter, int *k, int *t)
{
    const struct chain *chain = filter->request.chain;
    for (; *k < chain->links; ++*k, *t = 0) {
        const struct template_set *set = chain->link[*k].templates;
        while (set && *t < set->count) {
            const struct template *template = &set->template[(*t)++];
            if (template->width > filter->input.width || template->height > filter->input.height)
                return template;
        }
    }
    return NULL;
}

bool filter_misfits(const struct filter *filter)
{
    int k = 0, t = 0;
    return next_misfit(filter, &k, &t);
}

// Such a template is a mistake, unless the size has changed since.
static enum status check_templates(const struct filter *filter)
{
    const struct filter_request *request = &filter->request;
    int width = filter->input.width, height = filter->input.height, k = 0, t = 0;
    const struct template *template;
    while ((template = next_misfit(filter, &k, &t))) {
        if (request->strict)
            return fail(request->log, STATUS_USAGE,
                        "the template %s is %dx%d and the picture %dx%d; give one that fits into "
                        "it",
                        template->name, template->width, template->height, width, height);
        log_print(request->log, LOG_WARNING,
                  "the template %s is %dx%d and the picture now %dx%d: it matches nothing there",
                  template->name, template->width, template->height, width, height);
    }
    return STATUS_OK;
}

// Whether what the plan takes of memory may be taken.
static enum status check_budget(const struct filter *filter)
{
    const struct filter_request *request = &filter->request;
    return budget_check(&(struct budget_request){.backend = request->backend,
                                                 .plan = filter->plan,
                                                 .width = filter->input.width,
                                                 .height = filter->input.height,
                                                 .slots = request->slots,
                                                 .frames_in_flight = request->frames_in_flight,
                                                 .log = request->log});
}

// Of the encoder's formats of Y'CbCr the one that loses least.
static enum AVPixelFormat choose_more(const struct filter *filter,
                                      const struct sink_formats *formats,
                                      const struct format *natural)
{
    const struct pixel_wishes wishes = {.playable = true,
                                        .whole_chroma = formats->wishes.whole_chroma};
    const struct color_tags none = {0};
    enum AVPixelFormat list[64] = {AV_PIX_FMT_NONE};
    int count = 0;
    for (const enum AVPixelFormat *at = formats->candidates;
         at && *at != AV_PIX_FMT_NONE && count < 63; at++) {
        struct format format;
        if (pixel_describe(*at, &none, 1, 1, &format) && format.model == MODEL_YUV)
            list[count++] = *at;
        list[count] = AV_PIX_FMT_NONE;
    }
    return pixel_choose(natural, filter->input.width, filter->input.height, list, wishes);
}

// What an output gets that the chain did not leave so: told where something is lost by it.
static void tell_loss(const struct filter *filter, const struct sink_formats *formats,
                      const struct format *natural, const struct format *output)
{
    const struct filter_request *request = &filter->request;
    int width = filter->input.width, height = filter->input.height;
    enum AVPixelFormat was = pixel_find(natural), made = pixel_find(output);
    enum AVPixelFormat more = choose_more(filter, formats, natural);
    bool loses = output->depth < natural->depth ||
                 (natural->model != MODEL_GRAY &&
                  (output->chroma_x > natural->chroma_x || output->chroma_y > natural->chroma_y));
    if (was == AV_PIX_FMT_NONE || made == AV_PIX_FMT_NONE || more == AV_PIX_FMT_NONE)
        return;
    if (!pixel_plays(output, formats->wishes))
        log_print(request->log, LOG_WARNING,
                  "pictures of %dx%d are written as %s, which few players take: what all take "
                  "has even sizes in this codec",
                  width, height, av_get_pix_fmt_name(made));
    else if (formats->wishes.everywhere && loses && more != made)
        log_print(request->log, LOG_INFO,
                  "%s is written as %s, which plays everywhere; --pix-fmt %s keeps more",
                  av_get_pix_fmt_name(was), av_get_pix_fmt_name(made), av_get_pix_fmt_name(more));
}

// What is asked for and cannot be made: colours become gray by a stage, not by chance.
static enum status check_asked(const struct filter *filter, const struct sink_formats *formats,
                               const struct format *natural)
{
    const struct color_tags none = {0};
    struct format asked;
    if (!formats->asked || !pixel_describe(*formats->candidates, &none, 1, 1, &asked) ||
        asked.model != MODEL_GRAY || natural->model == MODEL_GRAY)
        return STATUS_OK;
    return fail(filter->request.log, STATUS_USAGE,
                "--pix-fmt %s has no colours and the chain leaves some; let it end with 'gray'",
                av_get_pix_fmt_name(*formats->candidates));
}

// All that can be refused, and nothing of size.
static enum status plan_filter(struct filter *filter, const AVFrame *view, bool tells)
{
    const struct filter_request *request = &filter->request;
    enum AVPixelFormat output[MAX_PICTURES] = {AV_PIX_FMT_NONE};
    struct format natural[MAX_PICTURES];
    enum status status = check_templates(filter);
    if (!status)
        status = chain_load(request->chain, request->max_pixels, request->log);
    if (!status)
        status = filter_lower(request->chain, request->formats, view, request->software_pixel,
                              &filter->program, output, natural);
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++)
        status = check_asked(filter, &request->formats[n], &natural[n]);
    for (int n = 0; n < program_pictures(&filter->program) && !status && tells; n++)
        tell_loss(filter, &request->formats[n], &natural[n], program_format(&filter->program, n));
    if (!status)
        status = plan_create(&filter->program, request->backend->limits, &filter->plan);
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++)
        filter->picture[n].pixel = output[n];
    return status ? status : check_budget(filter);
}

// What a filter that is planned runs with.
static enum status equip_filter(struct filter *filter, const AVFrame *view)
{
    const struct filter_request *request = &filter->request;
    struct backend *backend = request->backend;
    filter->has_fields = has_fields(&filter->program);
    enum status status = lay_out_pictures(filter, view);
    if (!status)
        status = make_sides(filter);
    if (!status)
        status =
            backend->executor_create(backend, filter->plan, view->width, view->height,
                                     request->slots, request->frames_in_flight, &filter->executor);
    return status;
}

static enum status make_filter(const struct filter_request *request, const AVFrame *frame,
                               bool equipped, struct filter **filter)
{
    struct filter *made = *filter = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->request = *request;
    made->input = likeness_of(frame);
    AVFrame view = *frame; // looked at, never kept
    enum status status = meet_unknown(made, &view);
    if (!status && !made->passthrough)
        status = plan_filter(made, &view, equipped && request->strict);
    if (!status && !made->passthrough && equipped)
        status = equip_filter(made, &view);
    if (status)
        filter_destroy(filter);
    return status;
}

enum status filter_create(const struct filter_request *request, const AVFrame *frame,
                          struct filter **filter)
{
    return make_filter(request, frame, true, filter);
}

enum status filter_check(const struct filter_request *request, const AVFrame *frame)
{
    struct filter *filter;
    enum status status = make_filter(request, frame, false, &filter);
    filter_destroy(&filter);
    return status;
}

void filter_shape(const AVFrame *frame, AVFrame *shape)
{
    struct likeness like = likeness_of(frame);
    shape->format = like.pixel;
    shape->width = like.width;
    shape->height = like.height;
    color_tags_apply(&like.tags, shape);
}

void filter_destroy(struct filter **filter)
{
    if (!*filter)
        return;
    struct filter *old = *filter;
    executor_destroy(&old->executor);
    executor_destroy(&old->reference);
    backend_destroy(&old->scalar);
    plan_destroy(&old->plan);
    free_sides(old);
    free(old->tee);
    program_free(&old->program);
    for (int n = 0; n < MAX_PICTURES; n++) {
        av_buffer_pool_uninit(&old->picture[n].pool);
        for (int p = 0; p < FORMAT_PLANES; p++)
            av_buffer_unref(&old->picture[n].constant[p]);
    }
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

// A plane of the input in `out`.
static enum status share_plane(const struct filter *filter, const AVFrame *in, int source,
                               AVFrame *out, int p, int *count)
{
    AVBufferRef *theirs = av_frame_get_plane_buffer((AVFrame *)in, source);
    if (!theirs)
        return fail(filter->request.log, STATUS_FAILED, "a decoded frame has no buffer");
    out->data[p] = in->data[source];
    out->linesize[p] = in->linesize[source];
    return add_reference(out, count, theirs);
}

// Give picture `n` its planes: new memory, the input's, or the shared constants.
static enum status assemble(const struct filter *filter, int n, const AVFrame *in, AVFrame *out)
{
    const struct picture_memory *memory = &filter->picture[n];
    int count = 0;
    AVBufferRef *fresh = NULL;
    enum status status = STATUS_OK;
    if (memory->pool) {
        fresh = out->buf[count++] = av_buffer_pool_get(memory->pool);
        if (!fresh)
            return fail(filter->request.log, STATUS_MEMORY, "there is no memory for a frame");
    }
    for (int p = 0; p < program_format(&filter->program, n)->planes && !status; p++) {
        const struct plan_plane *plane = &filter->plan->picture[n].plane[p];
        out->linesize[p] = memory->linesize[p];
        if (plan_writes(filter->plan, n, p, filter->input.on_device)) {
            out->data[p] = fresh->data + memory->plane_offset[p];
        } else if (plane->origin == PLANE_REFERENCE) {
            status = share_plane(filter, in, plane->source, out, p, &count);
        } else {
            out->data[p] = memory->constant[p]->data;
            status = add_reference(out, &count, memory->constant[p]);
        }
    }
    out->extended_data = out->data;
    return status;
}

static void describe_frame(const struct filter *filter, int n, AVFrame *out)
{
    out->format = filter->picture[n].pixel;
    out->width = filter->input.width;
    out->height = filter->input.height;
    color_tags_apply(&filter->picture[n].tags, out);
    out->crop_left = out->crop_right = out->crop_top = out->crop_bottom = 0;
}

static enum status prepare_frame(const struct filter *filter, int n, const AVFrame *in,
                                 AVFrame *out)
{
    enum status status =
        av_frame_copy_props(out, in) < 0 ? STATUS_MEMORY : assemble(filter, n, in, out);
    if (!status)
        describe_frame(filter, n, out);
    return status;
}

// Make of `in` the picture that the loads know.
static enum status convert_input(struct filter *filter, AVFrame *in)
{
    AVFrame *known = av_frame_alloc();
    if (!known)
        return STATUS_MEMORY;
    enum status status = scaler_convert(&filter->scaler, in, filter->loaded,
                                        AVCOL_RANGE_UNSPECIFIED, in->width, in->height, known);
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

// Where picture `n` is to be written.
static struct image target_image(const struct filter *filter, int n, const AVFrame *out)
{
    struct image target = pixel_image(out, program_format(&filter->program, n));
    for (int p = 0; p < target.format->planes; p++)
        if (!plan_writes(filter->plan, n, p, filter->input.on_device))
            target.data[p] = NULL;
    return target;
}

// Whether this frame is filtered field by field.
static bool by_fields(const struct filter *filter, const AVFrame *in, AVFrame *const *out)
{
    if (!filter->has_fields || !frame_is_interlaced(in))
        return false;
    struct image source = pixel_image(in, &filter->program.input);
    bool have = image_has_fields(&source);
    for (int n = 0; n < program_pictures(&filter->program); n++) {
        struct image target = pixel_image(out[n], program_format(&filter->program, n));
        have = have && image_has_fields(&target);
    }
    return have;
}

static struct work describe_work(const struct filter *filter, int slot, const AVFrame *in,
                                 AVFrame *const *out)
{
    int tees = filter->program.tees;
    struct image *tee = filter->tee + (size_t)slot * (size_t)tees;
    for (int k = 0; k < tees; k++)
        tee[k] = target_image(filter, k + 1, out[k + 1]);
    return (struct work){
        .source = pixel_image(in, &filter->program.input),
        .target = target_image(filter, 0, out[0]),
        .tee = tee,
        .source_on_device = filter->input.on_device,
        .source_stream = filter->input.on_device ? filter->request.device_stream : NULL,
        .fields = by_fields(filter, in, out),
        .analysis = filter_analysis(filter, slot),
    };
}

static bool is_referenced(const struct filter *filter, int p)
{
    for (int n = 0; n < program_pictures(&filter->program); n++)
        for (int k = 0; k < program_format(&filter->program, n)->planes; k++) {
            const struct plan_plane *plane = &filter->plan->picture[n].plane[k];
            if (plane->origin == PLANE_REFERENCE && plane->source == p)
                return true;
        }
    return false;
}

// Samples above their depth, in planes that go to the output as they are, would reach an encoder,
// and libaom for one ends the process for them. The frame may be the decoder's, too: only damage is
// worth a copy of it.
static enum status limit_references(const struct filter *filter, AVFrame *in)
{
    const struct format *format = &filter->program.input;
    for (int p = 0; p < format->planes && !filter->input.on_device; p++) {
        struct image image = pixel_image(in, format);
        if (!is_referenced(filter, p) || !image_exceeds(&image, p))
            continue;
        if (av_frame_make_writable(in) < 0)
            return fail(filter->request.log, STATUS_MEMORY, "there is no memory for a frame");
        image = pixel_image(in, format);
        image_limit_plane(&image, p);
    }
    return STATUS_OK;
}

enum status filter_submit(struct filter *filter, int slot, AVFrame *in, AVFrame *const *out)
{
    if (filter->passthrough)
        return av_frame_ref(out[0], in) < 0 ? STATUS_MEMORY : STATUS_OK;
    enum status status = filter->converts ? convert_input(filter, in) : STATUS_OK;
    if (!status)
        status = limit_references(filter, in);
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++)
        status = prepare_frame(filter, n, in, out[n]);
    if (status)
        return status;
    struct work work = describe_work(filter, slot, in, out);
    return filter->executor->submit_async(filter->executor, slot, &work);
}

enum status filter_wait(struct filter *filter, int slot, struct work_times *times)
{
    if (times)
        *times = (struct work_times){0};
    return filter->passthrough ? STATUS_OK : filter->executor->wait(filter->executor, slot, times);
}

// ---- verification ----

static enum status open_reference(struct filter *filter)
{
    if (filter->reference)
        return STATUS_OK;
    enum status status = backend_scalar_create(filter->request.log, &filter->scalar);
    if (!status)
        status =
            filter->scalar->executor_create(filter->scalar, filter->plan, filter->input.width,
                                            filter->input.height, 1, false, &filter->reference);
    return status;
}

// " at tee 2", or nothing of the main picture.
static const char *name_picture(int n, char *buffer, size_t size)
{
    buffer[0] = 0;
    if (n)
        snprintf(buffer, size, " at tee %d", n);
    return buffer;
}

static enum status compare_row(const struct filter *filter, int n, int p, int y, const AVFrame *got,
                               const AVFrame *want, int64_t index)
{
    const uint8_t *a = got->data[p] + (ptrdiff_t)y * got->linesize[p];
    const uint8_t *b = want->data[p] + (ptrdiff_t)y * want->linesize[p];
    size_t bytes = format_row_bytes(program_format(&filter->program, n), p, got->width), x = 0;
    char tee[32];
    if (!memcmp(a, b, bytes))
        return STATUS_OK;
    while (a[x] == b[x])
        x++;
    return fail(filter->request.log, STATUS_FAILED,
                "--verify: frame %lld%s differs from the reference: plane %d, row %d, byte %zu is "
                "%d and should be %d; please report this",
                (long long)index, name_picture(n, tee, sizeof tee), p, y, x, a[x], b[x]);
}

static enum status compare(const struct filter *filter, int n, const AVFrame *got,
                           const AVFrame *want, int64_t index)
{
    const struct format *format = program_format(&filter->program, n);
    enum status status = STATUS_OK;
    for (int p = 0; p < format->planes && !status; p++) {
        // The very memory of the input, whose filler bytes mean nothing.
        if (filter->plan->picture[n].plane[p].origin == PLANE_REFERENCE && format->filler)
            continue;
        for (int y = 0; y < format_rows(format, p, got->height) && !status; y++)
            status = compare_row(filter, n, p, y, got, want, index);
    }
    return status;
}

static enum status make_expected(const struct filter *filter, int n, const AVFrame *like,
                                 AVFrame **expected)
{
    *expected = av_frame_alloc();
    if (!*expected)
        return STATUS_MEMORY;
    (*expected)->format = filter->picture[n].pixel;
    (*expected)->width = like->width;
    (*expected)->height = like->height;
    return av_frame_get_buffer(*expected, 0) < 0 ? STATUS_MEMORY : STATUS_OK;
}

// All pictures of `in`, by the reference.
static enum status define(struct filter *filter, const AVFrame *in, bool fields,
                          AVFrame *const *expected)
{
    struct image tee[MAX_PICTURES];
    for (int n = 1; n < program_pictures(&filter->program); n++)
        tee[n - 1] = pixel_image(expected[n], program_format(&filter->program, n));
    const struct work work = {.source = pixel_image(in, &filter->program.input),
                              .target = pixel_image(expected[0], &filter->program.output),
                              .tee = tee,
                              .fields = fields};
    return filter->reference->submit_async(filter->reference, 0, &work);
}

static enum status fetch(const struct filter *filter, const AVFrame *in, AVFrame *host)
{
    int error =
        filter->input.on_device ? av_hwframe_transfer_data(host, in, 0) : av_frame_ref(host, in);
    return error < 0 ? STATUS_MEMORY : STATUS_OK;
}

enum status filter_verify(struct filter *filter, const AVFrame *in, AVFrame *const *out,
                          int64_t index)
{
    if (filter->passthrough)
        return STATUS_OK;
    enum status status = open_reference(filter);
    AVFrame *host = av_frame_alloc(), *expected[MAX_PICTURES] = {NULL};
    int pictures = program_pictures(&filter->program);
    if (!status)
        status = host ? fetch(filter, in, host) : STATUS_MEMORY;
    for (int n = 0; n < pictures && !status; n++)
        status = make_expected(filter, n, out[n], &expected[n]);
    if (!status)
        status = define(filter, host, by_fields(filter, in, out), expected);
    for (int n = 0; n < pictures && !status; n++)
        status = compare(filter, n, out[n], expected[n], index);
    for (int n = 0; n < pictures; n++)
        av_frame_free(&expected[n]);
    av_frame_free(&host);
    return status;
}

void *const *filter_analysis(const struct filter *filter, int slot)
{
    return filter->analysis ? filter->analysis + (size_t)slot * (size_t)filter->program.analyses
                            : NULL;
}

int64_t filter_analysis_bytes(const struct filter *filter)
{
    int64_t bytes = 0;
    for (int k = 0; k < filter->program.analyses; k++)
        bytes += (int64_t)filter->analysis_bytes[k];
    return bytes * filter->request.slots;
}

enum AVPixelFormat filter_pixel(const struct filter *filter)
{
    return filter->picture[0].pixel;
}

const struct plan *filter_plan(const struct filter *filter)
{
    return filter->plan;
}

int64_t filter_memory(const struct filter *filter)
{
    return filter->executor ? (int64_t)filter->executor->memory : 0;
}
