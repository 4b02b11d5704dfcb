#include "pipeline/output/transport.h"

#include <stdlib.h>

#include "base/meter.h"

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
    *transport = new_of(request->destination->kind);
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
    output_destroy(&old->output);
    if (old->free)
        old->free(old);
    free(old->wants);
    free(old);
    *transport = NULL;
}

enum status transport_begin(struct transport *transport, const char *name,
                            struct output_streams *streams)
{
    const struct transport_request *request = &transport->request;
    AVDictionary *options = NULL;
    if (av_dict_copy(&options, request->options, 0) < 0)
        return STATUS_MEMORY;
    transport->guard.deadline_ns =
        destination_is_live(request->destination) ? meter_now_ns() + request->open_ns : 0;
    enum status status = output_create(request->destination, name, request->log, request->stop,
                                       &transport->guard, &transport->output);
    if (!status)
        status = output_add_streams(transport->output, streams);
    if (!status)
        status = output_begin(transport->output, &options);
    av_dict_free(&options);
    streams->again = true;
    return status;
}

void transport_note_size(struct transport *transport)
{
    transport->bytes =
        transport->closed_bytes + (transport->output ? output_size(transport->output) : 0);
}

void transport_close(struct transport *transport)
{
    if (transport->close)
        transport->close(transport);
    if (transport->output)
        transport->closed_bytes += output_size(transport->output);
    output_destroy(&transport->output);
    transport_note_size(transport);
}

enum status transport_note_wants(struct transport *transport, const struct output_streams *streams)
{
    unsigned count = streams->from->nb_streams;
    transport->video = streams->video;
    transport->wants = calloc(count, sizeof *transport->wants);
    for (unsigned k = 0; k < count && transport->wants && transport->output; k++)
        transport->wants[k] = output_wants(transport->output, (int)k);
    return transport->wants ? STATUS_OK : STATUS_MEMORY;
}
