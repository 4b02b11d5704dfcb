// One output, from the first packet to the last. When a call fails it has failed.
#include <stdlib.h>

#include "pipeline/output/delivery.h"

static enum status open_file(struct delivery *self, const struct output_streams *streams)
{
    struct output_streams first = *streams;
    enum status status = delivery_begin(self, self->request.destination->name, &first);
    return status ? status : delivery_note_wants(self, streams);
}

static enum status write_file(struct delivery *self, AVPacket *packet, bool *written)
{
    enum status status = output_write(self->output, packet, packet->stream_index);
    delivery_note_size(self);
    *written = !status;
    return status;
}

static enum status finish_file(struct delivery *self)
{
    return output_finish(self->output);
}

struct delivery *delivery_file_new(void)
{
    struct delivery *self = calloc(1, sizeof *self);
    if (self)
        *self = (struct delivery){.open = open_file, .write = write_file, .finish = finish_file};
    return self;
}
