// The sink that discards: for measuring, and for filters with results of their own.
#include <stdlib.h>

#include "pipeline/sink.h"

static enum status open(struct sink *sink, const struct sink_video *video)
{
    (void)sink, (void)video;
    return STATUS_OK;
}

static enum status write(struct sink *sink, AVFrame *frame, struct packet_queue *queue)
{
    (void)sink, (void)frame, (void)queue;
    return STATUS_OK;
}

static enum status finish(struct sink *sink)
{
    (void)sink;
    return STATUS_OK;
}

static int64_t size(const struct sink *sink)
{
    (void)sink;
    return 0;
}

static void destroy(struct sink **sink)
{
    free(*sink);
    *sink = NULL;
}

enum status sink_null_create(struct sink **sink)
{
    *sink = calloc(1, sizeof **sink);
    if (!*sink)
        return STATUS_MEMORY;
    **sink = (struct sink){
        .formats = {.natural = true},
        .container = "null",
        .open = open,
        .write = write,
        .finish = finish,
        .size = size,
        .destroy = destroy,
    };
    return STATUS_OK;
}
