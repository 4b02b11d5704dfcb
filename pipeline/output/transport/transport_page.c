// Transport to a page: the newest picture, for viewers who come and go.
#include <stdlib.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/http/mjpeg.h"
#include "pipeline/output/transport/transport.h"

struct page {
    struct transport base;
    struct mjpeg *mjpeg;
};

static struct page *page_of(const struct transport *transport)
{
    return (struct page *)transport;
}

static enum status open_page(struct transport *transport, const struct muxer_streams *streams)
{
    struct page *self = page_of(transport);
    const struct transport_request *request = &transport->request;
    enum status status =
        mjpeg_create(request->destination->name, streams->name, request->log, &self->mjpeg);
    if (status)
        return status;
    log_print(request->log, LOG_INFO, "the picture is at %s", mjpeg_url(self->mjpeg));
    return transport_note_accepted(transport, streams);
}

static enum status write_page(struct transport *transport, struct packet *packet, bool *written)
{
    enum status status = mjpeg_show(page_of(transport)->mjpeg, packet->av);
    *written = !status;
    return status;
}

static bool nobody_looks(const struct transport *transport)
{
    return !mjpeg_watchers(page_of(transport)->mjpeg);
}

static enum status finish_page(struct transport *transport)
{
    (void)transport;
    return STATUS_OK;
}

static void free_page(struct transport *transport)
{
    mjpeg_destroy(&page_of(transport)->mjpeg);
}

struct transport *transport_page_new(void)
{
    struct page *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base = (struct transport){.open = open_page,
                                    .write = write_page,
                                    .is_idle = nobody_looks,
                                    .finish = finish_page,
                                    .free = free_page};
    return &self->base;
}
