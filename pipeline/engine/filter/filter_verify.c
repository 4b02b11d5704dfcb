// --verify: frames recomputed by the scalar reference.
#include "pipeline/engine/filter/filter_private.h"

#include <libavutil/hwcontext.h>
#include <stdio.h>

#include "pipeline/ffmpeg/check.h"

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

static enum status compare(const struct filter *filter, int n, const AVFrame *got,
                           const AVFrame *want, int64_t index)
{
    const struct format *format = program_format(&filter->program, n);
    struct image a = pixel_image(got, format), b = pixel_image(want, format);
    struct image_difference first;
    char tee[32];
    for (int p = 0; p < format->planes; p++) { // the input's own fillers and gaps mean nothing
        size_t offset;
        bool loose = format->filler || format_gap(format, p, a.width, &offset);
        if (loose && filter->plan->picture[n].plane[p].origin == PLANE_REFERENCE)
            a.data[p] = NULL;
    }
    if (image_compare(&a, &b, &first))
        return STATUS_OK;
    return log_fail(
        filter->request.log, STATUS_FAILED,
        "--verify: frame %lld%s differs from the reference: plane %d, row %d, byte %zu is "
        "%d and should be %d; please report this",
        (long long)index, name_picture(n, tee, sizeof tee), first.plane, first.row, first.byte,
        first.got, first.want);
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

// Filter `in` by the reference.
static enum status run_reference(struct filter *filter, const AVFrame *in, bool fields,
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
    return error == AVERROR(ENOMEM) ? STATUS_MEMORY : error < 0 ? STATUS_DEVICE : STATUS_OK;
}

enum status filter_verify(struct filter *filter, const AVFrame *in, AVFrame *const *out,
                          int64_t index)
{
    if (filter->bypass)
        return STATUS_OK;
    enum status status = open_reference(filter);
    AVFrame *host = av_frame_alloc(), *expected[MAX_PICTURES] = {NULL};
    int pictures = program_pictures(&filter->program);
    if (!status)
        status = host ? fetch(filter, in, host) : STATUS_MEMORY;
    for (int n = 0; n < pictures && !status; n++)
        status = make_expected(filter, n, out[n], &expected[n]);
    if (!status)
        status = run_reference(filter, host, filter_uses_fields(filter, in, out), expected);
    for (int n = 0; n < pictures && !status; n++)
        status = compare(filter, n, out[n], expected[n], index);
    for (int n = 0; n < pictures; n++)
        av_frame_free(&expected[n]);
    av_frame_free(&host);
    return status;
}
