// Transport to a window: it opens with the first picture, and when it is closed the output has
// ended.
#include <libavutil/imgutils.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/transport/transport.h"
#include "pipeline/output/transport/window.h"

struct screen {
    struct transport base;
    struct window_request request;
    struct window *window; // NULL: not yet, or not any more
};

static struct screen *screen_of(struct transport *transport)
{
    return (struct screen *)transport;
}

static enum window_matrix matrix_of(const AVCodecParameters *codec)
{
    if (codec->color_range == AVCOL_RANGE_JPEG)
        return WINDOW_FULL;
    return codec->color_space == AVCOL_SPC_BT709 ? WINDOW_BT709 : WINDOW_BT601;
}

// The picture's width with square samples.
static int square_width(const AVCodecParameters *codec)
{
    AVRational aspect = codec->sample_aspect_ratio;
    int64_t width = aspect.num > 0 && aspect.den > 0
                        ? av_rescale(codec->width, aspect.num, aspect.den)
                        : codec->width;
    return width < 1 ? 1 : width > INT16_MAX ? INT16_MAX : (int)width;
}

static enum status open_screen(struct transport *transport, const struct muxer_streams *streams)
{
    const struct destination *destination = transport->request.destination;
    const AVCodecParameters *codec = streams->codec;
    if (codec->codec_id != AV_CODEC_ID_RAWVIDEO || codec->format != AV_PIX_FMT_YUV420P)
        return log_fail(
            transport->request.log, STATUS_OUTPUT,
            "%s shows raw video in yuv420p only, without an encoder or format of its own",
            destination->shown);
    screen_of(transport)->request = (struct window_request){
        .shown = destination->shown,
        .title = *destination->name ? destination->name : "sluice",
        .width = codec->width,
        .height = codec->height,
        .shown_width = square_width(codec),
        .matrix = matrix_of(codec),
    };
    return transport_note_accepted(transport, streams);
}

static enum status begin_window(struct screen *self)
{
    enum status status = window_create(&self->request, self->base.request.log, &self->window);
    self->base.connects += !status;
    self->base.connected = !status;
    return status;
}

// Close the window at once; other outputs go on.
static void close_screen(struct transport *transport)
{
    transport->connected = false;
    window_destroy(&screen_of(transport)->window);
}

static enum status write_screen(struct transport *transport, struct packet *packet, bool *written)
{
    struct screen *self = screen_of(transport);
    const struct window_request *request = &self->request;
    uint8_t *plane[4];
    int stride[4];
    struct window_picture picture = {0};
    enum status status = self->window ? STATUS_OK : begin_window(self);
    if (status)
        return status;
    if (av_image_fill_arrays(plane, stride, packet->av->data, AV_PIX_FMT_YUV420P, request->width,
                             request->height, 1) > packet->av->size)
        return STATUS_FAILED;
    for (int c = 0; c < 3; c++) {
        picture.plane[c] = plane[c];
        picture.stride[c] = stride[c];
    }
    status = window_show(self->window, &picture);
    *written = !status;
    transport->ended = status == STATUS_EOF;
    if (status)
        close_screen(transport);
    return status;
}

static enum status finish_screen(struct transport *transport)
{
    (void)transport;
    return STATUS_OK;
}

struct transport *transport_window_new(void)
{
    struct screen *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base = (struct transport){
        .open = open_screen, .write = write_screen, .close = close_screen, .finish = finish_screen};
    return &self->base;
}
