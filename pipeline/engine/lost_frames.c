#include "pipeline/engine/lost_frames.h"

#include <assert.h>
#include <libavutil/frame.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/input/decoder.h"

static int get_unit(const uint8_t *at, const struct component *component)
{
    return component->bytes == 1   ? *at
           : component->big_endian ? at[0] << 8 | at[1]
                                   : at[1] << 8 | at[0];
}

static void put_unit(uint8_t *at, const struct component *component, int unit)
{
    at[component->big_endian && component->bytes == 2] = (uint8_t)unit;
    if (component->bytes == 2)
        at[!component->big_endian] = (uint8_t)(unit >> 8);
}

// Lay the samples of component `c` out as another format of the same model and depth has them.
static void lay_out(const struct image *from, const struct image *to, int c)
{
    const struct component *source = &from->format->component[c],
                           *target = &to->format->component[c];
    int width = subsampled(to->width, format_shift_x(to->format, c)),
        height = subsampled(to->height, format_shift_y(to->format, c));
    for (int y = 0; y < height; y++) {
        const uint8_t *in = from->data[source->plane] + y * from->stride[source->plane];
        uint8_t *out = to->data[target->plane] + y * to->stride[target->plane];
        in += source->offset;
        out += target->offset;
        for (int x = 0; x < width; x++, in += source->step, out += target->step) {
            int sample = get_unit(in, source) >> source->shift & max_sample(from->format->depth);
            put_unit(out, target, sample << target->shift);
        }
    }
}

static bool samples_alike(const struct format *a, const struct format *b)
{
    return a->model == b->model && a->depth == b->depth && a->alpha == b->alpha &&
           a->chroma_x == b->chroma_x && a->chroma_y == b->chroma_y;
}

// Memory for a picture like `like`, which becomes `image`. The caller frees it; NULL without.
static void *allocate(const struct image *like, struct image *image)
{
    enum { ALIGNED = 64 };
    size_t offset[FORMAT_PLANES] = {0}, total = ALIGNED;
    *image = *like;
    for (int p = 0; p < like->format->planes; p++) {
        size_t row = format_row_bytes(like->format, p, like->width);
        image->stride[p] = (ptrdiff_t)((row + ALIGNED) / ALIGNED * ALIGNED);
        offset[p] = total;
        total += (size_t)image->stride[p] * (size_t)format_rows(like->format, p, like->height);
    }
    uint8_t *memory = aligned_alloc(ALIGNED, total);
    for (int p = 0; memory && p < like->format->planes; p++)
        image->data[p] = memory + offset[p];
    return memory;
}

static enum status convert(const AVFrame *frame, const struct image *lost, struct image *found,
                           void **memory)
{
    struct format format;
    const struct color_tags tags = color_tags_of(frame);
    if (frame->width != lost->width || frame->height != lost->height ||
        !pixel_describe(frame->format, &tags, frame->width, frame->height, &format) ||
        !samples_alike(&format, lost->format))
        return STATUS_DEVICE;
    *memory = allocate(lost, found);
    if (!*memory)
        return STATUS_MEMORY;
    const struct image from = pixel_image(frame, &format);
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(lost->format, c))
            lay_out(&from, found, c);
    return STATUS_OK;
}

static enum status find(void *decoder, const struct work *lost, struct image *found, void **memory)
{
    AVFrame *frame = av_frame_alloc();
    enum status status = frame ? decoder_rescue(decoder, lost->source_pts, frame) : STATUS_MEMORY;
    if (!status)
        status = convert(frame, &lost->source, found, memory);
    av_frame_free(&frame);
    return status && status != STATUS_MEMORY ? STATUS_DEVICE
                                             : status; // the GPU's failure, not the input's
}

static void forget(void *decoder, void **memory)
{
    (void)decoder;
    free(*memory);
    *memory = NULL;
}

struct spare_finder lost_frames_of(struct decoder *decoder)
{
    assert(decoder);
    return (struct spare_finder){find, forget, decoder};
}
