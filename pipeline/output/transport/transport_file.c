// Transport to a file: one muxer, from the first packet to the last. Any failure is final.
#include <stdlib.h>

#include "pipeline/output/transport/transport.h"

static enum status open_file(struct transport *self, const struct muxer_streams *streams)
{
    struct muxer_streams first = *streams;
    enum status status = transport_begin(self, self->request.destination->name, &first);
    return status ? status : transport_note_accepted(self, streams);
}

static enum status write_file(struct transport *self, struct packet *packet, bool *written)
{
    enum status status = muxer_write(self->muxer, packet->av);
    transport_note_size(self);
    *written = !status;
    return status;
}

static enum status finish_file(struct transport *self)
{
    return muxer_finish(self->muxer);
}

struct transport *transport_file_new(void)
{
    struct transport *self = calloc(1, sizeof *self);
    if (self)
        *self = (struct transport){.open = open_file, .write = write_file, .finish = finish_file};
    return self;
}
