#include "pipeline/proof/audit_frames.h"

#include <inttypes.h>
#include <libavutil/lfg.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/input/seek/pass.h"
#include "pipeline/proof/recompute.h"

enum { SAME_TIME = 3 }; // frames that damage may give one pts

struct audit {
    struct audit_frames_request request;
    struct recompute *recompute;
    bool repeatable; // the source is decoded from its beginning
    bool doubtful;   // there may be frames that are not listed
    AVRational time_base;
    struct audit_frames_found found;
};

static const atomic_bool never;

// ---- what is listed ----

// True if frames are what a decoder made that had seen all of the file before them.
static bool is_repeatable(const struct manifest *manifest)
{
    const json_t *end = manifest->end, *parts = json_object_get(end, "parts");
    bool any = json_is_true(json_object_get(end, "repeatable"));
    for (size_t k = 0; k < json_array_size(parts); k++)
        any |= json_is_true(json_object_get(json_array_get(parts, k), "repeatable"));
    return any;
}

// ---- all frames of the source ----

struct times {
    int64_t *pts;
    int64_t count;
};

static enum status add_time(struct times *times, int64_t pts)
{
    bool full = !(times->count & (times->count - 1)); // 0, 1, 2, 4, ...
    size_t room = times->count ? 2 * (size_t)times->count : 1;
    void *list = full ? realloc(times->pts, room * sizeof *times->pts) : times->pts;
    if (!list)
        return STATUS_MEMORY;
    times->pts = list;
    times->pts[times->count++] = pts;
    return STATUS_OK;
}

static enum status decode_all(const struct audit_frames_request *request, struct times *times)
{
    struct pass_request all = {.source = request->source,
                               .max_pixels = request->source->max_pixels,
                               .log = request->log,
                               .stop = &never};
    struct pass *pass = NULL;
    AVFrame *frame = av_frame_alloc();
    enum status status = frame ? pass_create(&all, &pass) : STATUS_MEMORY;
    while (!status && !(status = pass_next(pass, frame))) {
        status = add_time(times, frame->pts);
        av_frame_unref(frame);
    }
    pass_destroy(&pass);
    av_frame_free(&frame);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static int compare(const void *a_, const void *b_)
{
    int64_t a = *(const int64_t *)a_, b = *(const int64_t *)b_;
    return a < b ? -1 : a > b;
}

// Find the first time that one list has and the other has not. Both get sorted: damage brings
// frames out of order, and parts put them in order.
static enum status compare_times(struct audit *audit, struct times *source, struct times *listed)
{
    int64_t n = 0;
    qsort(source->pts, (size_t)source->count, sizeof *source->pts, compare);
    qsort(listed->pts, (size_t)listed->count, sizeof *listed->pts, compare);
    while (n < source->count && n < listed->count && source->pts[n] == listed->pts[n])
        n++;
    if (n == source->count && n == listed->count)
        return STATUS_OK;
    bool left_out = n == listed->count || (n < source->count && source->pts[n] < listed->pts[n]);
    audit->found.pts = left_out ? source->pts[n] : listed->pts[n];
    return log_fail(audit->request.log, STATUS_FAILED,
                    left_out ? "%s: the source has a frame of pts %" PRId64 " that is left out"
                             : "%s: the source has no frame of pts %" PRId64 ", which is listed",
                    audit->request.name, audit->found.pts);
}

static enum status check_all_times(struct audit *audit)
{
    const struct manifest *manifest = audit->request.manifest;
    struct times source = {0}, listed = {0};
    enum status status = decode_all(&audit->request, &source);
    for (int64_t n = 0; n < manifest->frames && !status; n++)
        status = add_time(&listed, manifest->frame[n].pts);
    if (!status)
        status = compare_times(audit, &source, &listed);
    free(source.pts);
    free(listed.pts);
    return status;
}

// ---- samples ----

// Draw `count` of the frames, each at most once, in their order (D. E. Knuth, The Art of Computer
// Programming 2, algorithm 3.4.2 S).
static int64_t *draw(const struct audit *audit, int64_t count)
{
    AVLFG random;
    int64_t frames = audit->request.manifest->frames, drawn = 0;
    int64_t *list = calloc((size_t)count + 1, sizeof *list);
    av_lfg_init(&random, audit->request.seed);
    for (int64_t n = 0; n < frames && drawn < count && list; n++) {
        uint64_t dice = (uint64_t)av_lfg_get(&random) << 32 | av_lfg_get(&random);
        if ((int64_t)(dice % (uint64_t)(frames - n)) < count - drawn)
            list[drawn++] = n;
    }
    return list;
}

// Compute a frame again: *same says whether it is the one that was noted.
static enum status compute(const struct audit *audit, int64_t number, bool *same)
{
    const struct manifest_frame *noted = &audit->request.manifest->frame[number];
    char hash[FRAME_HASH_TEXT] = "";
    AVFrame *frame;
    enum status status = recompute_frame(audit->recompute, noted->pts, &frame);
    if (!status)
        status = frame_hash(frame, hash);
    av_frame_free(&frame);
    *same = !status && !strcmp(hash, noted->hash);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status begin_recompute(struct audit *audit)
{
    const json_t *identity = audit->request.manifest->identity, *end = audit->request.manifest->end;
    const char *pixel = json_string_value(json_object_get(end, "pixel"));
    const char *chain = json_string_value(json_object_get(identity, "chain"));
    struct recompute_request request = {
        .config = audit->request.config,
        .source = *audit->request.source,
        .chain = chain ? chain : "",
        .links = -1,
        .pixel = av_get_pix_fmt(pixel ? pixel : ""),
        .range = (enum AVColorRange)json_integer_value(json_object_get(end, "range")),
        .repeatable = audit->repeatable,
        .log = audit->request.log,
    };
    recompute_destroy(&audit->recompute);
    return recompute_create(&request, &audit->recompute);
}

// Look whether the next frame of the source is the next one listed. In doubt all frames are listed:
// a cursor may see other ones than a decoder that saw all of the file.
static enum status look_behind(struct audit *audit, int64_t number)
{
    const struct manifest *manifest = audit->request.manifest;
    bool last = number + 1 == manifest->frames;
    int64_t at_us = 0, next_us = 0;
    if (!last)
        next_us = av_rescale_q(manifest->frame[number + 1].pts, audit->time_base, AV_TIME_BASE_Q);
    enum status status = recompute_peek(audit->recompute, &at_us);
    audit->doubtful |= last ? !status : status == STATUS_EOF || at_us != next_us;
    return status == STATUS_EOF ? STATUS_OK : status;
}

// What decodes otherwise behind a seek than in its place, as some files do, is decoded from the
// beginning of the file before it counts as wrong.
static enum status check_frame(struct audit *audit, int64_t number)
{
    bool same = false;
    enum status status = compute(audit, number, &same);
    if (!status && !same && !audit->repeatable) {
        audit->repeatable = true;
        status = begin_recompute(audit);
        if (!status)
            status = compute(audit, number, &same);
    }
    for (int k = 1; k < SAME_TIME && !status && !same; k++) // another frame of that time
        status = compute(audit, number, &same);
    audit->found.samples += same;
    if (status || same)
        return status;
    audit->found.pts = audit->request.manifest->frame[number].pts;
    return log_fail(audit->request.log, STATUS_FAILED,
                    "%s: frame %" PRId64 ", pts %" PRId64
                    ", is not what the source and the chain give",
                    audit->request.name, number, audit->found.pts);
}

static enum status check_samples(struct audit *audit)
{
    int64_t samples = audit->request.samples, frames = audit->request.manifest->frames;
    int64_t count = samples > 0 && samples < frames ? samples : frames;
    int64_t *list = draw(audit, count);
    enum status status = list ? begin_recompute(audit) : STATUS_MEMORY;
    for (int64_t k = 0; k < count && !status; k++) {
        status = check_frame(audit, list[k]);
        if (!status && !audit->repeatable)
            status = look_behind(audit, list[k]);
    }
    free(list);
    return status;
}

// Look whether the source begins and ends where the list does.
static enum status check_ends(struct audit *audit)
{
    const struct manifest *manifest = audit->request.manifest;
    int64_t first_us = av_rescale_q(manifest->frame[0].pts, audit->time_base, AV_TIME_BASE_Q);
    int64_t last = manifest->frames - 1, at_us = 0;
    enum status status = recompute_first(audit->recompute, &at_us);
    audit->doubtful |= status || at_us != first_us;
    if (!status)
        status = recompute_go(audit->recompute, manifest->frame[last].pts);
    if (!status)
        return look_behind(audit, last);
    audit->doubtful = true;
    return status == STATUS_EOF ? STATUS_OK : status;
}

// ---- all of it ----

enum status audit_frames(const struct audit_frames_request *request,
                         struct audit_frames_found *found)
{
    const struct manifest *manifest = request->manifest;
    struct audit audit = {.request = *request, .repeatable = is_repeatable(manifest)};
    if (!manifest_ratio(manifest->end, "time_base", &audit.time_base))
        return log_fail(request->log, STATUS_INPUT, "%s.manifest does not say how it is timed",
                        request->name);
    enum status status = check_samples(&audit);
    if (!status && !audit.repeatable)
        status = check_ends(&audit);
    bool all = request->samples <= 0 || request->samples >= manifest->frames;
    if (!status && (all || audit.repeatable || audit.doubtful))
        status = check_all_times(&audit);
    recompute_destroy(&audit.recompute);
    *found = audit.found;
    return status;
}
