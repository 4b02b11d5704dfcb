// Frames of a GPU that is lost, decoded again in software from the decoder's history.
#include <assert.h>
#include <stdlib.h>

#include "pipeline/input/decoder_internal.h"

struct rescue {
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct decoder *software; // NULL: it has not begun
    int sent;                 // packets of the history
    bool drained;             // the end was sent behind them
    AVFrame **frame;          // the last ones, by their number modulo `room`
    int room;
    long long frames; // decoded
};

enum status rescue_create(struct rescue **rescue)
{
    *rescue = calloc(1, sizeof **rescue);
    if (!*rescue)
        return STATUS_MEMORY;
    pthread_mutex_init(&(*rescue)->lock, NULL);
    return STATUS_OK;
}

static void end(struct rescue *rescue)
{
    for (int k = 0; rescue->frame && k < rescue->room; k++)
        av_frame_free(&rescue->frame[k]);
    free(rescue->frame);
    rescue->frame = NULL;
    rescue->frames = rescue->sent = 0;
    rescue->drained = false;
    decoder_destroy(&rescue->software);
}

void rescue_destroy(struct rescue **rescue)
{
    if (!*rescue)
        return;
    end(*rescue);
    pthread_mutex_destroy(&(*rescue)->lock);
    free(*rescue);
    *rescue = NULL;
}

static enum status begin(struct rescue *rescue, const struct decoder *decoder)
{
    struct decoder_request request = decoder->request;
    request.hwdec = HWDEC_OFF;
    request.rescues = false;
    request.later = (struct backend_later){0};
    rescue->room = request.frames_held + 1; // one is in the hands of who delivers
    rescue->frame = calloc((size_t)rescue->room, sizeof *rescue->frame);
    enum status status = STATUS_MEMORY;
    if (rescue->frame)
        status = decoder_create_for(&request, decoder->source, history_about(decoder->history),
                                    decoder->backend, &rescue->software);
    if (status)
        end(rescue);
    return status;
}

static const AVFrame *find(const struct rescue *rescue, int64_t pts)
{
    for (int k = 0; rescue->frame && k < rescue->room; k++)
        if (rescue->frame[k] && rescue->frame[k]->pts == pts)
            return rescue->frame[k];
    return NULL;
}

// True if frames behind this time have come: it will not.
static bool is_behind(const struct rescue *rescue, int64_t pts)
{
    const AVFrame *last =
        rescue->frames ? rescue->frame[(rescue->frames - 1) % rescue->room] : NULL;
    return last && last->pts > pts;
}

// Send a packet, or the end behind the last. What is decoded comes out then, though the decode thread
// may have more packets by and by.
static enum status feed(struct rescue *rescue, const struct decoder *decoder)
{
    AVPacket *packet;
    enum status status = history_packet(decoder->history, rescue->sent, &packet);
    if (status)
        return status;
    const struct packet whole = {.av = packet};
    status = decoder_send(rescue->software, packet ? &whole : NULL);
    rescue->sent += packet != NULL;
    rescue->drained = !packet;
    av_packet_free(&packet);
    return status;
}

// Decode one more frame. STATUS_EOF: there are no more.
static enum status decode(struct rescue *rescue, const struct decoder *decoder)
{
    AVFrame *frame = av_frame_alloc();
    bool got = false;
    enum status status = frame ? STATUS_OK : STATUS_MEMORY;
    while (!status && !got) {
        status = decoder_receive(rescue->software, frame, &got);
        if (!status && !got)
            status = rescue->drained ? STATUS_EOF : feed(rescue, decoder);
    }
    if (!got) {
        av_frame_free(&frame);
        return status;
    }
    AVFrame **place = &rescue->frame[rescue->frames++ % rescue->room];
    av_frame_free(place);
    *place = frame;
    return STATUS_OK;
}

// True if packets have come behind the end that was sent: all is decoded once more.
static bool has_more(const struct rescue *rescue, const struct decoder *decoder)
{
    AVPacket *packet = NULL;
    history_packet(decoder->history, rescue->sent, &packet);
    bool more = packet;
    av_packet_free(&packet);
    return more;
}

static enum status decode_up_to(struct rescue *rescue, const struct decoder *decoder, int64_t pts,
                                const AVFrame **frame)
{
    enum status status = STATUS_OK;
    while (!(*frame = find(rescue, pts)) && !status) {
        if (is_behind(rescue, pts))
            return STATUS_DEVICE;
        status = decode(rescue, decoder);
        if (status == STATUS_EOF && has_more(rescue, decoder)) {
            end(rescue);
            status = begin(rescue, decoder);
        }
    }
    return status == STATUS_EOF ? STATUS_DEVICE : status;
}

enum status decoder_rescue(struct decoder *decoder, int64_t pts, AVFrame *frame)
{
    struct rescue *rescue = decoder->rescue;
    const AVFrame *found = NULL;
    if (!rescue || !decoder->history)
        return STATUS_DEVICE;
    assert(!frame->buf[0]);
    history_freeze(decoder->history);
    pthread_mutex_lock(&rescue->lock);
    enum status status = history_reaches(decoder->history, pts) ? STATUS_OK : STATUS_DEVICE;
    if (!status && !rescue->software)
        status = begin(rescue, decoder);
    if (!status)
        status = decode_up_to(rescue, decoder, pts, &found);
    if (!status && av_frame_ref(frame, found) < 0)
        status = STATUS_MEMORY;
    pthread_mutex_unlock(&rescue->lock);
    return status;
}
