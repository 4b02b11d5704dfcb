#include "pipeline/output/delivery.h"

#include <stdlib.h>

#include "base/meter.h"

static struct delivery *new_of(enum destination_kind kind)
{
    switch (kind) {
    case DESTINATION_FILE:
        return delivery_file_new();
    case DESTINATION_SEGMENTS:
        return delivery_segments_new();
    case DESTINATION_DISPLAY:
        return delivery_window_new();
    case DESTINATION_PAGE:
        return delivery_page_new();
    default:
        return delivery_connection_new();
    }
}

enum status delivery_create(const struct delivery_request *request, struct delivery **delivery)
{
    *delivery = new_of(request->destination->kind);
    if (!*delivery)
        return STATUS_MEMORY;
    (*delivery)->request = *request;
    return STATUS_OK;
}

void delivery_destroy(struct delivery **delivery)
{
    struct delivery *old = *delivery;
    if (!old)
        return;
    output_destroy(&old->output);
    if (old->free)
        old->free(old);
    free(old->wants);
    free(old);
    *delivery = NULL;
}

enum status delivery_begin(struct delivery *delivery, const char *name,
                           struct output_streams *streams)
{
    const struct delivery_request *request = &delivery->request;
    AVDictionary *options = NULL;
    if (av_dict_copy(&options, request->options, 0) < 0)
        return STATUS_MEMORY;
    delivery->guard.deadline_ns =
        destination_is_live(request->destination) ? meter_now_ns() + request->open_ns : 0;
    enum status status = output_create(request->destination, name, request->log, request->stop,
                                       &delivery->guard, &delivery->output);
    if (!status)
        status = output_add_streams(delivery->output, streams);
    if (!status)
        status = output_begin(delivery->output, &options);
    av_dict_free(&options);
    streams->again = true;
    return status;
}

void delivery_note_size(struct delivery *delivery)
{
    delivery->bytes =
        delivery->closed_bytes + (delivery->output ? output_size(delivery->output) : 0);
}

void delivery_close(struct delivery *delivery)
{
    if (delivery->close)
        delivery->close(delivery);
    if (delivery->output)
        delivery->closed_bytes += output_size(delivery->output);
    output_destroy(&delivery->output);
    delivery_note_size(delivery);
}

enum status delivery_note_wants(struct delivery *delivery, const struct output_streams *streams)
{
    unsigned count = streams->from->nb_streams;
    delivery->video = streams->video;
    delivery->wants = calloc(count, sizeof *delivery->wants);
    for (unsigned k = 0; k < count && delivery->wants && delivery->output; k++)
        delivery->wants[k] = output_wants(delivery->output, (int)k);
    return delivery->wants ? STATUS_OK : STATUS_MEMORY;
}
