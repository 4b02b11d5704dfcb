// The memory of filtered pictures, and that of the slots' analysis.
#include "pipeline/engine/filter/filter_private.h"

#include <stdlib.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/memory.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

// Bytes of a row of plane `p` of picture `n`.
static size_t plane_row(const struct filter *filter, int n, int p)
{
    return aligned(format_row_bytes(program_format(&filter->program, n), p, filter->input.width) +
                   32);
}

static size_t plane_bytes(const struct filter *filter, int n, int p)
{
    const struct format *format = program_format(&filter->program, n);
    return plane_row(filter, n, p) * (size_t)format_rows(format, p, filter->input.height) + 64;
}

int64_t filter_picture_bytes(const struct filter *filter, int n)
{
    int64_t bytes = 0;
    for (int p = 0; p < program_format(&filter->program, n)->planes; p++)
        if (plan_writes(filter->plan, n, p, filter->input.on_device))
            bytes += (int64_t)aligned(plane_bytes(filter, n, p));
    return bytes;
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
        size_t bytes = plane_bytes(filter, n, p);
        enum status status = STATUS_OK;
        memory->linesize[p] = (int)plane_row(filter, n, p);
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

static enum status lay_out_pictures(struct filter *filter, const AVFrame *view)
{
    struct color_tags tags = color_tags_of(view);
    enum status status = STATUS_OK;
    for (int n = 0; n < program_pictures(&filter->program) && !status; n++) {
        const struct format *format = program_format(&filter->program, n);
        filter->picture[n].tags = pixel_tags(&filter->program.input, format, &tags);
        if (filter->request.formats[n].asked_range !=
            SINK_RANGE_ANY) // tagged, though it is implied
            filter->picture[n].tags.range =
                format->range == RANGE_FULL ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
        status = lay_out(filter, n);
    }
    size_t tees = (size_t)filter->program.tees * (size_t)filter->request.slots;
    filter->tee = calloc(tees + 1, sizeof *filter->tee);
    return status || filter->tee ? status : STATUS_MEMORY;
}

// Memory for the analysis of every slot.
static enum status create_analysis(struct filter *filter)
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
            return log_fail(
                filter->request.log, STATUS_MEMORY,
                "there is no memory for the analysis of %s, for %d frames of %dx%d, %lld MiB",
                op_name(&program->op[program->analysis[k % analyses]]), filter->request.slots,
                filter->input.width, filter->input.height,
                (long long)(filter_analysis_bytes(filter) >> 20) + 1);
    return STATUS_OK;
}

static void destroy_analysis(struct filter *filter)
{
    struct backend *backend = filter->request.backend;
    size_t analyses = (size_t)filter->program.analyses;
    for (size_t k = 0; filter->analysis && k < analyses * (size_t)filter->request.slots; k++)
        if (filter->analysis[k])
            backend->free(backend, filter->analysis[k], filter->analysis_bytes[k % analyses]);
    free(filter->analysis);
    free(filter->analysis_bytes);
}

enum status filter_memory_create(struct filter *filter, const AVFrame *view)
{
    enum status status = lay_out_pictures(filter, view);
    return status ? status : create_analysis(filter);
}

void filter_memory_destroy(struct filter *filter)
{
    destroy_analysis(filter);
    free(filter->tee);
    for (int n = 0; n < MAX_PICTURES; n++) {
        av_buffer_pool_uninit(&filter->picture[n].pool);
        for (int p = 0; p < FORMAT_PLANES; p++)
            av_buffer_unref(&filter->picture[n].constant[p]);
    }
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

// Let `out` refer to a plane of the input.
static enum status share_plane(const struct filter *filter, const AVFrame *in, int source,
                               AVFrame *out, int p, int *count)
{
    AVBufferRef *theirs = av_frame_get_plane_buffer((AVFrame *)in, source);
    if (!theirs)
        return log_fail(filter->request.log, STATUS_FAILED, "a decoded frame has no buffer");
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
            return log_fail(filter->request.log, STATUS_MEMORY, "there is no memory for a frame");
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

enum status filter_prepare_frame(const struct filter *filter, int n, const AVFrame *in,
                                 AVFrame *out)
{
    enum status status =
        av_frame_copy_props(out, in) < 0 ? STATUS_MEMORY : assemble(filter, n, in, out);
    if (!status)
        describe_frame(filter, n, out);
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
