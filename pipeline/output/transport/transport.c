#include "pipeline/output/transport/transport.h"

#include <assert.h>
#include <stdlib.h>

#include "base/meter.h"
#include "pipeline/output/transport/window.h"

static struct transport *new_of(enum destination_kind kind)
{
    switch (kind) {
    case DESTINATION_FILE:
        return transport_file_new();
    case DESTINATION_SEGMENTS:
        return transport_segments_new();
    case DESTINATION_DISPLAY:
        return transport_window_new();
    case DESTINATION_PAGE:
        return transport_page_new();
    default:
        return transport_connection_new();
    }
}

enum status transport_create(const struct transport_request *request, struct transport **transport)
{
    const struct destination *destination = request->destination;
    enum status status = destination->kind == DESTINATION_DISPLAY
                             ? window_check(destination->shown, request->log)
                             : STATUS_OK;
    *transport = status ? NULL : new_of(destination->kind);
    if (status)
        return status;
    if (!*transport)
        return STATUS_MEMORY;
    (*transport)->request = *request;
    return STATUS_OK;
}

void transport_destroy(struct transport **transport)
{
    struct transport *old = *transport;
    if (!old)
        return;
    muxer_destroy(&old->muxer);
    if (old->free)
        old->free(old);
    passthrough_finish(&old->passthrough);
    free(old);
    *transport = NULL;
}

enum status transport_begin(struct transport *transport, const char *name,
                            struct muxer_streams *streams)
{
    assert(!transport->muxer);
    const struct transport_request *request = &transport->request;
    AVDictionary *options = NULL;
    if (av_dict_copy(&options, request->options, 0) < 0)
        return STATUS_MEMORY;
    transport->guard.deadline_ns =
        destination_is_live(request->destination) ? meter_now_ns() + request->open_ns : 0;
    enum status status = muxer_create(request->destination, name, request->log, request->stop,
                                      &transport->guard, &transport->muxer);
    if (!status)
        status = muxer_add_streams(transport->muxer, streams, options);
    if (!status)
        status = muxer_begin(transport->muxer, &options);
    av_dict_free(&options);
    streams->again = true;
    return status;
}

void transport_note_size(struct transport *transport)
{
    transport->bytes =
        transport->closed_bytes + (transport->muxer ? muxer_size(transport->muxer) : 0);
}

void transport_close(struct transport *transport)
{
    if (transport->close)
        transport->close(transport);
    if (transport->muxer)
        transport->closed_bytes += muxer_size(transport->muxer);
    muxer_destroy(&transport->muxer);
    transport_note_size(transport);
}

enum status transport_note_accepted(struct transport *transport,
                                    const struct muxer_streams *streams)
{
    assert(!transport->passthrough.streams);
    struct passthrough *passthrough = &transport->passthrough;
    enum status status = passthrough_init(passthrough, streams->from, streams->video);
    for (int k = 0; k < (int)passthrough->streams && transport->muxer && !status; k++)
        passthrough->accepted[k] = k != streams->video && muxer_accepts_stream(transport->muxer, k);
    return status;
}
