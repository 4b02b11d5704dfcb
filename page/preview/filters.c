#include "page/preview/filters.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "page/preview/compose.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/filter.h"
#include "pipeline/ffmpeg/budget.h"
#include "plan/backend.h"

enum { KEPT = 6 };

// A chain's filter, or why there is none.
struct entry {
    char *text; // NULL: the entry is free
    int stage;
    struct chain chain; // up to the stage, mute
    struct filter *filter;
    enum status status; // whether it could be made for frames like `kind`
    AVFrame *kind;
    AVFrame *made; // the present frame's; NULL: not yet
    int64_t used;  // when, in calls
};

struct filters {
    const struct log *log;
    struct backend *backend;
    int64_t max_pixels;
    int64_t calls;
    struct entry entry[KEPT];
};

static const struct log silent = {0};

enum status filters_create(const struct sluice_config *config, const struct log *log,
                           struct filters **filters)
{
    struct filters *made = *filters = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->max_pixels = config_max_pixels(config);
    enum status status = backend_cpu_create(config->threads, &silent, &made->backend);
    if (status)
        filters_destroy(filters);
    else // as much again as a job may have, at most
        made->backend->memory_limit = (size_t)(budget_memory() / 4);
    return status;
}

static void forget(struct entry *entry)
{
    filter_destroy(&entry->filter);
    chain_free(&entry->chain);
    av_frame_free(&entry->kind);
    av_frame_free(&entry->made);
    free(entry->text);
    *entry = (struct entry){0};
}

void filters_destroy(struct filters **filters)
{
    if (!*filters)
        return;
    for (int k = 0; k < KEPT; k++)
        forget(&(*filters)->entry[k]);
    backend_destroy(&(*filters)->backend);
    free(*filters);
    *filters = NULL;
}

// ---- which filter ----

static bool is_of(const struct entry *entry, const struct filters_chain *chain)
{
    return entry->text && entry->stage == chain->stage && !strcmp(entry->text, chain->text);
}

// The entry of a chain, or the one that was used longest ago, which is free then.
static struct entry *find(struct filters *filters, const struct filters_chain *chain)
{
    struct entry *oldest = &filters->entry[0];
    for (int k = 0; k < KEPT; k++) {
        struct entry *entry = &filters->entry[k];
        if (is_of(entry, chain))
            return entry;
        if (entry->used < oldest->used)
            oldest = entry;
    }
    forget(oldest);
    return oldest;
}

static enum status fill(struct entry *entry, const struct filters_chain *chain)
{
    enum status status = chain_copy(chain->chain, &entry->chain);
    if (status)
        return status;
    chain_truncate(&entry->chain, chain->stage);
    chain_mute(&entry->chain);
    entry->stage = chain->stage;
    entry->text = strdup(chain->text);
    if (entry->text)
        return STATUS_OK;
    forget(entry);
    return STATUS_MEMORY;
}

static bool is_alike(const AVFrame *a, const AVFrame *b)
{
    return a->width == b->width && a->height == b->height && a->format == b->format &&
           a->color_range == b->color_range && a->colorspace == b->colorspace;
}

// Formats that can be drawn, for frames that cannot as they are: NV16 is one.
static const enum AVPixelFormat drawn[] = {
    AV_PIX_FMT_GRAY8,     AV_PIX_FMT_GRAY16,    AV_PIX_FMT_YUV420P,   AV_PIX_FMT_YUV422P,
    AV_PIX_FMT_YUV444P,   AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV444P10,
    AV_PIX_FMT_YUV420P16, AV_PIX_FMT_YUV422P16, AV_PIX_FMT_YUV444P16, AV_PIX_FMT_RGB24,
    AV_PIX_FMT_RGB48,     AV_PIX_FMT_NONE};

// Make the filter, with results as the chain leaves them if those can be drawn.
static enum status create(struct filters *filters, struct entry *entry, const AVFrame *frame)
{
    static const struct sink_formats natural[MAX_PICTURES] = {{.natural = true}};
    static const struct sink_formats drawable[MAX_PICTURES] = {{.candidates = drawn}};
    struct filter_request request = {.chain = &entry->chain,
                                     .formats = natural,
                                     .backend = filters->backend,
                                     .slots = 1,
                                     .max_pixels = filters->max_pixels,
                                     .software_pixel = AV_PIX_FMT_NONE,
                                     .log = &silent};
    enum status status = filter_create(&request, frame, &entry->filter);
    if (status || compose_takes(filter_pixel(entry->filter)))
        return status;
    filter_destroy(&entry->filter);
    request.formats = drawable;
    return filter_create(&request, frame, &entry->filter);
}

static enum status equip(struct filters *filters, struct entry *entry, const AVFrame *frame)
{
    filter_destroy(&entry->filter);
    av_frame_free(&entry->kind);
    entry->kind = av_frame_alloc();
    if (!entry->kind)
        return STATUS_MEMORY;
    filter_first_props(frame, entry->kind);
    entry->status = create(filters, entry, frame);
    if (entry->status)
        log_print(filters->log, LOG_WARNING,
                  "the page shows no picture of '%s': it cannot filter frames of %dx%d",
                  entry->text, frame->width, frame->height);
    return entry->status;
}

// The filter for such frames, made if need be.
static enum status prepare(struct filters *filters, const struct filters_chain *chain,
                           const AVFrame *frame, struct entry **entry)
{
    *entry = find(filters, chain);
    (*entry)->used = ++filters->calls;
    enum status status = (*entry)->text ? STATUS_OK : fill(*entry, chain);
    if (status)
        return status;
    if ((*entry)->filter && filter_accepts((*entry)->filter, frame))
        return STATUS_OK;
    if ((*entry)->status && is_alike((*entry)->kind, frame))
        return (*entry)->status;
    return equip(filters, *entry, frame);
}

// ---- frames ----

static enum status filter_frame(struct filter *filter, AVFrame *in, AVFrame *out)
{
    AVFrame *pictures[MAX_PICTURES] = {out};
    enum status status = filter_submit(filter, 0, in, pictures);
    return status ? status : filter_wait(filter, 0, NULL);
}

bool filters_has(const struct filters *filters, const struct filters_chain *chain)
{
    for (int k = 0; k < KEPT; k++)
        if (is_of(&filters->entry[k], chain))
            return filters->entry[k].made;
    return false;
}

void filters_next(struct filters *filters)
{
    for (int k = 0; k < KEPT; k++)
        av_frame_free(&filters->entry[k].made);
}

static enum status make(struct entry *entry, const AVFrame *frame)
{
    AVFrame *in = av_frame_clone(frame); // filters may convert what they get
    entry->made = av_frame_alloc();
    enum status status =
        in && entry->made ? filter_frame(entry->filter, in, entry->made) : STATUS_MEMORY;
    av_frame_free(&in);
    if (status)
        av_frame_free(&entry->made);
    return status;
}

enum status filters_run(struct filters *filters, const struct filters_chain *chain,
                        const AVFrame *frame, AVFrame **out)
{
    assert(frame->buf[0] && !frame->hw_frames_ctx);
    struct entry *entry;
    *out = NULL;
    enum status status = prepare(filters, chain, frame, &entry);
    if (!status && !entry->made)
        status = make(entry, frame);
    if (status)
        return status;
    *out = av_frame_clone(entry->made);
    return *out ? STATUS_OK : STATUS_MEMORY;
}
