#include "pipeline/input/seek/pass.h"

#include <stdlib.h>

#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"

struct pass {
    struct source *source;
    struct backend *backend;
    struct decoder *decoder;
    bool drained; // the decoder was told that nothing comes any more
};

enum status pass_create(const struct pass_request *request, struct pass **pass)
{
    *pass = calloc(1, sizeof **pass);
    if (!*pass)
        return STATUS_MEMORY;
    struct decoder_request decoder = {.hwdec = HWDEC_OFF,
                                      .repeatable = true,
                                      .max_pixels = request->max_pixels,
                                      .frames_held = 1};
    // The decoder only wants to know of the backend that frames lie in the host's memory.
    enum status status = backend_scalar_create(request->log, &(*pass)->backend);
    if (!status)
        status = source_open(request->source, request->log, request->stop, &(*pass)->source);
    if (!status)
        status = decoder_create(&decoder, (*pass)->source, (*pass)->backend, &(*pass)->decoder);
    if (status)
        pass_destroy(pass);
    return status;
}

void pass_destroy(struct pass **pass)
{
    if (!*pass)
        return;
    decoder_destroy(&(*pass)->decoder);
    source_close(&(*pass)->source);
    backend_destroy(&(*pass)->backend);
    free(*pass);
    *pass = NULL;
}

// Give the decoder its next packet, or the end.
static enum status feed(struct pass *pass)
{
    struct packet *packet = NULL;
    enum status status = pass->drained ? STATUS_EOF : source_read(pass->source, &packet);
    if (status == STATUS_EOF && !pass->drained) {
        pass->drained = true;
        return decoder_send(pass->decoder, NULL);
    }
    if (!status && packet->av->stream_index == pass->source->video)
        status = decoder_send(pass->decoder, packet);
    packet_destroy(&packet);
    return status;
}

enum status pass_next(struct pass *pass, AVFrame *frame)
{
    bool got = false;
    enum status status = STATUS_OK;
    while (!status && !got) {
        status = decoder_receive(pass->decoder, frame, &got);
        if (!status && !got)
            status = feed(pass);
    }
    return got ? STATUS_OK : status;
}
