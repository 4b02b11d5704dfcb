// The newest picture, to whoever looks at a page. Who does may come and go.
#include <stdlib.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/delivery.h"
#include "pipeline/output/mjpeg.h"

struct page {
    struct delivery base;
    struct mjpeg *mjpeg;
};

static struct page *page_of(const struct delivery *delivery)
{
    return (struct page *)delivery;
}

// An address that is taken already is an output that cannot be written.
static enum status open_page(struct delivery *delivery, const struct output_streams *streams)
{
    struct page *self = page_of(delivery);
    const struct delivery_request *request = &delivery->request;
    enum status status =
        mjpeg_create(request->destination->name, streams->name, request->log, &self->mjpeg);
    if (status)
        return status == STATUS_FAILED ? STATUS_OUTPUT : status;
    log_print(request->log, LOG_INFO, "the picture is at %s", mjpeg_url(self->mjpeg));
    return delivery_note_wants(delivery, streams);
}

static enum status write_page(struct delivery *delivery, AVPacket *packet, bool *written)
{
    enum status status = mjpeg_show(page_of(delivery)->mjpeg, packet);
    *written = !status;
    return status;
}

static bool nobody_looks(const struct delivery *delivery)
{
    return !mjpeg_watchers(page_of(delivery)->mjpeg);
}

static enum status finish_page(struct delivery *delivery)
{
    (void)delivery;
    return STATUS_OK;
}

static void free_page(struct delivery *delivery)
{
    mjpeg_destroy(&page_of(delivery)->mjpeg);
}

struct delivery *delivery_page_new(void)
{
    struct page *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base = (struct delivery){.open = open_page,
                                   .write = write_page,
                                   .is_idle = nobody_looks,
                                   .finish = finish_page,
                                   .free = free_page};
    return &self->base;
}
