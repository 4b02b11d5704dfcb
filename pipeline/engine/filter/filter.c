#include "pipeline/engine/filter/filter_private.h"

#include <assert.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>

#include "pipeline/engine/filter/need.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"

enum AVPixelFormat filter_memory_format(const AVFrame *frame)
{
    if (!frame->hw_frames_ctx)
        return frame->format;
    return ((AVHWFramesContext *)frame->hw_frames_ctx->data)->sw_format;
}

static struct frame_kind kind_of(const AVFrame *frame)
{
    return (struct frame_kind){frame->width, frame->height, filter_memory_format(frame),
                               frame->hw_frames_ctx != NULL, color_tags_of(frame)};
}

static bool tags_alike(const struct color_tags *a, const struct color_tags *b)
{
    return a->range == b->range && a->matrix == b->matrix && a->primaries == b->primaries &&
           a->transfer == b->transfer && a->location == b->location;
}

bool filter_accepts(const struct filter *filter, const AVFrame *frame)
{
    struct frame_kind a = filter->input, b = kind_of(frame);
    return a.width == b.width && a.height == b.height && a.pixel == b.pixel &&
           a.on_device == b.on_device && tags_alike(&a.tags, &b.tags);
}

// ---- construction ----

// Frames in a format that loads do not know: let them pass, or have them converted first. `view`
// becomes a frame like those that will be loaded.
static enum status accept_input(struct filter *filter, AVFrame *view)
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
    filter->bypass = chain_is_empty(filter->request.chain);
    if (filter->bypass)
        return STATUS_OK;
    filter->loaded = pixel_nearest(filter->input.pixel);
    filter->converts = true;
    if (filter->loaded == AV_PIX_FMT_NONE || filter->input.on_device)
        return log_fail(filter->request.log, STATUS_INPUT, "the pixel format %s is unknown", name);
    log_print(filter->request.log, LOG_INFO, "libswscale converts %s to %s for the filters", name,
              av_get_pix_fmt_name(filter->loaded));
    view->format = filter->loaded;
    return STATUS_OK;
}

// The next template that is larger than the picture, and so nowhere in it, from number *t of
// stage *k on; NULL: there is none.
static const struct pattern *next_misfit(const struct filter *filter, int *k, int *t)
{
    const struct chain *chain = filter->request.chain;
    for (; *k < chain->links; ++*k, *t = 0) {
        const struct pattern_set *set = chain_patterns(&chain->link[*k]);
        while (set && *t < set->count) {
            const struct pattern *pattern = &set->pattern[(*t)++];
            if (pattern->width > filter->input.width || pattern->height > filter->input.height)
                return pattern;
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
static enum status check_patterns(const struct filter *filter)
{
    const struct filter_request *request = &filter->request;
    int width = filter->input.width, height = filter->input.height, k = 0, t = 0;
    const struct pattern *pattern;
    while ((pattern = next_misfit(filter, &k, &t))) {
        if (request->strict)
            return log_fail(
                request->log, STATUS_USAGE,
                "the template %s is %dx%d and the picture %dx%d; give one that fits into "
                "it",
                pattern->name, pattern->width, pattern->height, width, height);
        log_print(request->log, LOG_WARNING,
                  "the template %s is %dx%d and the picture now %dx%d: it matches nothing there",
                  pattern->name, pattern->width, pattern->height, width, height);
    }
    return STATUS_OK;
}

// Check that the memory of the plan may be taken.
static enum status check_memory(const struct filter *filter)
{
    const struct filter_request *request = &filter->request;
    struct need need;
    if (!request->job)
        return filter->bypass ? STATUS_OK : filter_check_budget(filter);
    enum status status = filter_measure(filter, &need);
    return status ? status : need_check(&need, request->job, request->log);
}

// Leave the GPU where it has no room for these frames, whose size was not known before, or has changed, and
// the job did not ask for it.
static enum status leave_without_room(const struct filter *filter)
{
    const struct filter_request *request = &filter->request;
    struct backend *backend = request->backend;
    char lack[NEED_SENTENCE];
    struct need need;
    if (!request->job || !backend->leave)
        return STATUS_OK;
    enum status status = filter_measure(filter, &need);
    if (!status && need_lacks_device(&need, request->job->ceiling, lack))
        backend->leave(backend, lack);
    return status;
}

// Plan the filter: refuse all that can be refused, allocate nothing of a frame's size.
static enum status plan_filter(struct filter *filter, const AVFrame *view, bool reports)
{
    const struct filter_request *request = &filter->request;
    enum AVPixelFormat output[MAX_PICTURES] = {AV_PIX_FMT_NONE};
    struct format natural[MAX_PICTURES];
    enum status status = check_patterns(filter);
    if (!status)
        status = chain_load(request->chain, request->max_pixels, request->log);
    if (!status)
        status = filter_lower(request->chain, request->formats, view, request->software_pixel,
                              &filter->program, output, natural);
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++)
        status = filter_check_asked(filter, &request->formats[n], &natural[n]);
    for (int n = 0; n < program_pictures(&filter->program) && !status && reports; n++)
        filter_report_loss(filter, &request->formats[n], &natural[n],
                           program_format(&filter->program, n));
    if (!status)
        status = plan_create(&filter->program, request->backend->limits, &filter->plan);
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++)
        filter->picture[n].pixel = output[n];
    return status;
}

// Allocate what a planned filter runs with.
static enum status equip_filter(struct filter *filter, const AVFrame *view)
{
    const struct filter_request *request = &filter->request;
    struct backend *backend = request->backend;
    filter->has_fields = program_keeps_fields(&filter->program);
    enum status status = filter_memory_create(filter, view);
    if (!status)
        status =
            backend->executor_create(backend, filter->plan, view->width, view->height,
                                     request->slots, request->frames_in_flight, &filter->executor);
    return status;
}

enum status filter_begin(const struct filter_request *request, AVFrame *view, bool reports,
                         struct filter **filter)
{
    assert(request->chain && request->formats && request->backend && request->slots > 0);
    struct filter *made = *filter = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->request = *request;
    made->input = kind_of(view);
    enum status status = accept_input(made, view);
    if (!status && !made->bypass)
        status = plan_filter(made, view, reports);
    if (status)
        filter_destroy(filter);
    return status;
}

enum status filter_create(const struct filter_request *request, const AVFrame *frame,
                          struct filter **filter)
{
    AVFrame view = *frame; // looked at, never kept
    enum status status = filter_begin(request, &view, request->strict, filter);
    if (status)
        return status;
    status = leave_without_room(*filter);
    if (!status)
        status = check_memory(*filter);
    if (!status && !(*filter)->bypass)
        status = equip_filter(*filter, &view);
    if (status)
        filter_destroy(filter);
    return status;
}

enum status filter_check(const struct filter_request *request, const AVFrame *frame)
{
    AVFrame view = *frame;
    struct filter *filter;
    enum status status = filter_begin(request, &view, false, &filter);
    if (!status)
        status = check_memory(filter);
    filter_destroy(&filter);
    return status;
}

void filter_first_props(const AVFrame *frame, AVFrame *props)
{
    struct frame_kind like = kind_of(frame);
    props->format = like.pixel;
    props->width = like.width;
    props->height = like.height;
    color_tags_apply(&like.tags, props);
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
    filter_memory_destroy(old);
    program_free(&old->program);
    scaler_destroy(&old->scaler);
    free(old);
    *filter = NULL;
}
// ---- frames ----
// Convert `in` to a format that the loads know.
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
               ? log_fail(filter->request.log, STATUS_INPUT, "libswscale cannot convert %s",
                          av_get_pix_fmt_name(filter->input.pixel))
               : status;
}

// The planes of picture `n` that are written.
static struct image target_image(const struct filter *filter, int n, const AVFrame *out)
{
    struct image target = pixel_image(out, program_format(&filter->program, n));
    for (int p = 0; p < target.format->planes; p++)
        if (!plan_writes(filter->plan, n, p, filter->input.on_device))
            target.data[p] = NULL;
    return target;
}

bool filter_uses_fields(const struct filter *filter, const AVFrame *in, AVFrame *const *out)
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
        .source_pts = in->pts,
        .fields = filter_uses_fields(filter, in, out),
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
            return log_fail(filter->request.log, STATUS_MEMORY, "there is no memory for a frame");
        image = pixel_image(in, format);
        image_limit_plane(&image, p);
    }
    return STATUS_OK;
}

enum status filter_submit(struct filter *filter, int slot, AVFrame *in, AVFrame *const *out)
{
    assert(slot >= 0 && slot < filter->request.slots && !out[0]->buf[0]);
    if (filter->bypass)
        return av_frame_ref(out[0], in) < 0 ? STATUS_MEMORY : STATUS_OK;
    enum status status = filter->converts ? convert_input(filter, in) : STATUS_OK;
    if (!status)
        status = limit_references(filter, in);
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++)
        status = filter_prepare_frame(filter, n, in, out[n]);
    if (status)
        return status;
    struct work work = describe_work(filter, slot, in, out);
    return filter->executor->submit_async(filter->executor, slot, &work);
}

enum status filter_wait(struct filter *filter, int slot, struct work_times *times)
{
    assert(slot >= 0 && slot < filter->request.slots);
    if (times)
        *times = (struct work_times){0};
    return filter->bypass ? STATUS_OK : filter->executor->wait(filter->executor, slot, times);
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
