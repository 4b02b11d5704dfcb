#include "pipeline/ffmpeg/frame_hash.h"

#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

static void print(XXH128_hash_t hash, char text[FRAME_HASH_TEXT])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    for (int k = 0; k < 16; k++)
        snprintf(text + 2 * k, 3, "%02x", canonical.digest[k]);
}

// ---- rows ----

static int64_t walk_plane(const AVFrame *frame, int p,
                          void (*add)(void *opaque, const uint8_t *samples, size_t size),
                          void *opaque)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    if (p == 1 && about->flags & AV_PIX_FMT_FLAG_PAL) {
        add(opaque, frame->data[1], AVPALETTE_SIZE);
        return AVPALETTE_SIZE;
    }
    int bytes = av_image_get_linesize(frame->format, frame->width, p);
    int rows =
        p == 1 || p == 2 ? AV_CEIL_RSHIFT(frame->height, about->log2_chroma_h) : frame->height;
    for (int y = 0; y < rows; y++)
        add(opaque, frame->data[p] + (ptrdiff_t)y * frame->linesize[p], (size_t)bytes);
    return (int64_t)bytes * rows;
}

int64_t frame_walk(const AVFrame *frame,
                   void (*add)(void *opaque, const uint8_t *samples, size_t size), void *opaque)
{
    int64_t bytes = 0;
    for (int p = 0; p < 4 && frame->data[p]; p++)
        bytes += walk_plane(frame, p, add, opaque);
    return bytes;
}

// ---- hashes ----

static void add_row(void *state, const uint8_t *samples, size_t size)
{
    XXH3_128bits_update(state, samples, size);
}

static enum status add_planes(XXH3_state_t *state, const AVFrame *frame)
{
    frame_walk(frame, add_row, state);
    return STATUS_OK;
}

static void add_component(XXH3_state_t *state, const AVFrame *frame, int c, void *row,
                          int sample_bytes)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    bool chroma = (c == 1 || c == 2) && !(about->flags & AV_PIX_FMT_FLAG_RGB);
    int width = chroma ? AV_CEIL_RSHIFT(frame->width, about->log2_chroma_w) : frame->width;
    int height = chroma ? AV_CEIL_RSHIFT(frame->height, about->log2_chroma_h) : frame->height;
    for (int y = 0; y < height; y++) {
        av_read_image_line2(row, (const uint8_t **)frame->data, frame->linesize, about, 0, y, c,
                            width, 0, sample_bytes);
        XXH3_128bits_update(state, row, (size_t)width * (size_t)sample_bytes);
    }
}

// Palettes are what they are: no decoder gives the same in another layout.
static enum status add_components(XXH3_state_t *state, const AVFrame *frame)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    int sample_bytes = about->comp[0].depth > 16 ? 4 : 2;
    if (about->flags & AV_PIX_FMT_FLAG_PAL)
        return add_planes(state, frame);
    void *row = malloc((size_t)frame->width * (size_t)sample_bytes);
    for (int c = 0; row && c < about->nb_components; c++)
        add_component(state, frame, c, row, sample_bytes);
    free(row);
    return row ? STATUS_OK : STATUS_MEMORY;
}

typedef enum status add_samples(XXH3_state_t *state, const AVFrame *frame);

static enum status hash_on_host(const AVFrame *frame, add_samples *add, char text[FRAME_HASH_TEXT])
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return STATUS_MEMORY;
    XXH3_128bits_reset(state);
    enum status status = add(state, frame);
    print(XXH3_128bits_digest(state), text);
    XXH3_freeState(state);
    return status;
}

static enum status hash(const AVFrame *frame, add_samples *add, char text[FRAME_HASH_TEXT])
{
    if (!frame->hw_frames_ctx)
        return hash_on_host(frame, add, text);
    AVFrame *copy = av_frame_alloc();
    int error = copy ? av_hwframe_transfer_data(copy, frame, 0) : AVERROR(ENOMEM);
    enum status status = error == AVERROR(ENOMEM) ? STATUS_MEMORY : STATUS_DEVICE;
    if (error >= 0)
        status = hash_on_host(copy, add, text);
    av_frame_free(&copy);
    return status;
}

enum status frame_hash(const AVFrame *frame, char text[FRAME_HASH_TEXT])
{
    return hash(frame, add_planes, text);
}

enum status frame_hash_samples(const AVFrame *frame, char text[FRAME_HASH_TEXT])
{
    return hash(frame, add_components, text);
}

enum status stream_hash(FILE *file, char text[FRAME_HASH_TEXT], int64_t *size)
{
    enum { ROOM = 1 << 20 };
    XXH3_state_t *state = XXH3_createState();
    char *room = malloc(ROOM);
    size_t got = 1;
    *size = 0;
    if (state)
        XXH3_128bits_reset(state);
    while (state && room && (got = fread(room, 1, ROOM, file)) > 0) {
        XXH3_128bits_update(state, room, got);
        *size += (int64_t)got;
    }
    if (state && room)
        print(XXH3_128bits_digest(state), text);
    enum status status = !state || !room ? STATUS_MEMORY : ferror(file) ? STATUS_INPUT : STATUS_OK;
    XXH3_freeState(state);
    free(room);
    return status;
}

void bytes_hash(const void *data, size_t size, char text[FRAME_HASH_TEXT])
{
    print(XXH3_128bits(data, size), text);
}
