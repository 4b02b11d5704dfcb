// The sink that discards: for measuring, and for filters with results of their own.
#include <stdlib.h>

#include "pipeline/output/sink.h"

struct null_sink {
    struct sink base;
    _Atomic int64_t frames;
};

static enum status open(struct sink *sink, const struct sink_video *video)
{
    (void)sink, (void)video;
    return STATUS_OK;
}

static enum status write(struct sink *sink, AVFrame *frame)
{
    ((struct null_sink *)sink)->frames += frame != NULL;
    return STATUS_OK;
}

static enum status finish(struct sink *sink, bool cut)
{
    (void)sink, (void)cut;
    return STATUS_OK;
}

static int outputs(const struct sink *sink, struct sink_output *list, int most)
{
    if (most < 1)
        return 0;
    *list = (struct sink_output){
        .name = "null:", .container = "null", .frames = ((const struct null_sink *)sink)->frames};
    return 1;
}

static void destroy(struct sink **sink)
{
    free(*sink);
    *sink = NULL;
}

enum status sink_null_create(struct sink **sink)
{
    struct null_sink *self = calloc(1, sizeof *self);
    *sink = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct sink){
        .formats = {.natural = true},
        .container = "null",
        .open = open,
        .write = write,
        .finish = finish,
        .outputs = outputs,
        .destroy = destroy,
    };
    *sink = &self->base;
    return STATUS_OK;
}
