#include "page/preview/compare.h"

#include <jansson.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "page/preview/compose.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/filter.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/input/picture.h"
#include "plan/backend.h"

enum { BACKENDS = 3, MOST_RUNS = 400, MOST_SLOTS = 16 };

static const double seconds_each = 0.4, reference_most = 2;
static const struct log silent = {0};

struct comparison {
    const struct sluice_config *config;
    struct chain chain; // mute
    AVFrame *frame;     // what is filtered
    AVFrame *want;      // the reference's result; NULL: not yet
    AVFrame *part;      // a part of the frame, where the reference takes too long for all of it
    json_t *rows, *left_out;
};

// One backend at work.
struct runner {
    struct backend *backend;
    struct filter *filter;
    AVFrame *in[MOST_SLOTS], *out[MOST_SLOTS]; // each slot's
    int slots;
};

// ---- work ----

static void close_runner(struct runner *runner)
{
    for (int k = 0; k < MOST_SLOTS; k++) {
        av_frame_free(&runner->in[k]);
        av_frame_free(&runner->out[k]);
    }
    filter_destroy(&runner->filter);
}

static enum status open_runner(struct runner *runner, const struct comparison *comparison,
                               const AVFrame *frame, int slots)
{
    static const struct sink_formats natural[MAX_PICTURES] = {{.natural = true}};
    const struct filter_request request = {.chain = &comparison->chain,
                                           .formats = natural,
                                           .backend = runner->backend,
                                           .slots = slots,
                                           .frames_in_flight = slots > 1,
                                           .max_pixels = config_max_pixels(comparison->config),
                                           .software_pixel = AV_PIX_FMT_NONE,
                                           .log = &silent};
    runner->slots = slots;
    return filter_create(&request, frame, &runner->filter);
}

static enum status submit(struct runner *runner, int slot, const AVFrame *frame)
{
    AVFrame *pictures[MAX_PICTURES] = {NULL};
    av_frame_free(&runner->out[slot]);
    av_frame_free(&runner->in[slot]);
    runner->in[slot] = av_frame_clone(frame); // filters may convert what they get
    pictures[0] = runner->out[slot] = av_frame_alloc();
    if (!runner->in[slot] || !pictures[0])
        return STATUS_MEMORY;
    return filter_submit(runner->filter, slot, runner->in[slot], pictures);
}

// Filter one frame after another, each in `ms`. Returns how many.
static int run_single(struct runner *runner, const AVFrame *frame, double seconds, double *ms,
                      enum status *status)
{
    int runs = 0;
    int64_t end_ns = meter_now_ns() + (int64_t)(seconds * 1e9);
    do {
        int64_t begin_ns = meter_now_ns();
        *status = submit(runner, 0, frame);
        if (!*status)
            *status = filter_wait(runner->filter, 0, NULL);
        ms[runs++] = (double)(meter_now_ns() - begin_ns) * 1e-6;
    } while (!*status && runs < MOST_RUNS && meter_now_ns() < end_ns);
    return runs;
}

// Frames a second with all slots busy.
static double run_many(struct runner *runner, const AVFrame *frame, double seconds,
                       enum status *status)
{
    int64_t begin_ns = meter_now_ns(), end_ns = begin_ns + (int64_t)(seconds * 1e9);
    int sent = 0, done = 0;
    *status = STATUS_OK;
    while (done < sent || meter_now_ns() < end_ns) {
        bool more = !*status && meter_now_ns() < end_ns;
        if (more && sent - done < runner->slots) {
            *status = submit(runner, sent % runner->slots, frame);
            sent += !*status;
            continue;
        }
        if (done == sent)
            break;
        enum status waited = filter_wait(runner->filter, done++ % runner->slots, NULL);
        *status = *status ? *status : waited;
    }
    return done / ((double)(meter_now_ns() - begin_ns) * 1e-9);
}

// ---- pictures ----

static bool is_equal(const AVFrame *a, const AVFrame *b)
{
    if (a->format != b->format || a->width != b->width || a->height != b->height)
        return false;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(a->format);
    for (int p = 0; p < av_pix_fmt_count_planes(a->format); p++) {
        bool chroma = (p == 1 || p == 2) && !(about->flags & AV_PIX_FMT_FLAG_RGB);
        int rows = chroma ? AV_CEIL_RSHIFT(a->height, about->log2_chroma_h) : a->height;
        size_t bytes = (size_t)av_image_get_linesize(a->format, a->width, p);
        for (int y = 0; y < rows; y++)
            if (memcmp(a->data[p] + (ptrdiff_t)y * a->linesize[p],
                       b->data[p] + (ptrdiff_t)y * b->linesize[p], bytes))
                return false;
    }
    return true;
}

// The upper left of a frame, a sixteenth of it, without a copy; NULL without memory.
static AVFrame *part_of(const AVFrame *frame)
{
    AVFrame *part = av_frame_clone(frame);
    if (!part)
        return NULL;
    part->width = (frame->width / 4 & ~1) + 2;
    part->height = (frame->height / 4 & ~1) + 2;
    part->width = part->width > frame->width ? frame->width : part->width;
    part->height = part->height > frame->height ? frame->height : part->height;
    return part;
}

// ---- rows ----

static void add_row(const struct comparison *comparison, const struct backend *backend, double ms,
                    double fps, bool equal)
{
    json_t *row = json_pack("{s:s, s:s, s:f, s:f, s:b}", "backend", backend->name, "device",
                            backend->description, "ms", ms, "fps", fps, "equal", equal);
    if (row && comparison->part)
        json_object_set_new(row, "estimated", json_true());
    json_array_append_new(comparison->rows, row);
}

static void leave_out(const struct comparison *comparison, const char *backend, const char *why)
{
    json_array_append_new(comparison->left_out,
                          json_pack("{s:s, s:s}", "backend", backend, "why", why));
}

// The reference first: on a part, which says how long all of it would take.
static enum status run_reference(struct comparison *comparison, struct runner *runner)
{
    double ms[MOST_RUNS], scale = 1;
    enum status status = STATUS_OK;
    AVFrame *part = part_of(comparison->frame);
    if (!part)
        return STATUS_MEMORY;
    double share = (double)part->width * part->height /
                   ((double)comparison->frame->width * comparison->frame->height);
    status = open_runner(runner, comparison, part, 1);
    if (!status)
        run_single(runner, part, 0, ms, &status);
    if (!status && *ms / share > reference_most * 1000) {
        scale = 1 / share;
        comparison->part = part;
        part = NULL;
    } else if (!status) {
        close_runner(runner);
        status = open_runner(runner, comparison, comparison->frame, 1);
    }
    const AVFrame *frame = comparison->part ? comparison->part : comparison->frame;
    int runs = status ? 0 : run_single(runner, frame, seconds_each, ms, &status);
    if (!status) {
        double median = meter_spread(ms, runs).median * scale;
        comparison->want = compose_copy(runner->out[0]); // memory that stays
        status = comparison->want ? STATUS_OK : STATUS_MEMORY;
        add_row(comparison, runner->backend, median, 1000 / median, true);
    }
    av_frame_free(&part);
    return status;
}

static enum status compare_part(const struct comparison *comparison, struct runner *runner,
                                bool *equal)
{
    double ms;
    enum status status = STATUS_OK;
    close_runner(runner);
    status = open_runner(runner, comparison, comparison->part, 1);
    if (!status)
        run_single(runner, comparison->part, 0, &ms, &status);
    *equal = !status && is_equal(runner->out[0], comparison->want);
    return status;
}

static enum status run_backend(const struct comparison *comparison, struct runner *runner)
{
    double ms[MOST_RUNS], fps = 0;
    const struct backend *backend = runner->backend;
    int slots = backend->in_flight ? backend->in_flight : backend->parallel + 1;
    bool equal = false;
    enum status status = open_runner(runner, comparison, comparison->frame, 1);
    if (!status)
        run_single(runner, comparison->frame, 0, ms, &status); // warms up
    int runs = status ? 0 : run_single(runner, comparison->frame, seconds_each, ms, &status);
    if (!status && !comparison->part)
        equal = is_equal(runner->out[0], comparison->want);
    close_runner(runner);
    if (!status)
        status = open_runner(runner, comparison, comparison->frame,
                             slots < 2            ? 2
                             : slots > MOST_SLOTS ? MOST_SLOTS
                                                  : slots);
    if (!status)
        fps = run_many(runner, comparison->frame, seconds_each, &status);
    if (!status && comparison->part)
        status = compare_part(comparison, runner, &equal);
    if (!status)
        add_row(comparison, backend, meter_spread(ms, runs).median, fps, equal);
    return status;
}

static enum status open_backend(const struct comparison *comparison, int number,
                                struct backend **backend, char *why, size_t size)
{
    int threads = comparison->config->threads;
    snprintf(why, size, "it cannot be made");
    return number == 0   ? backend_scalar_create(&silent, backend)
           : number == 1 ? backend_cpu_create(threads, &silent, backend)
                         : backend_cuda_create(0, &silent, backend, why, size);
}

static void run_all(struct comparison *comparison)
{
    static const char *const names[BACKENDS] = {"scalar", "cpu", "cuda"};
    for (int k = 0; k < BACKENDS; k++) {
        struct runner runner = {0};
        char why[256];
        enum status status = open_backend(comparison, k, &runner.backend, why, sizeof why);
        if (!status) {
            runner.backend->memory_limit = (size_t)(budget_memory() / 4);
            snprintf(why, sizeof why, "it cannot filter this frame by this chain");
            status = k ? run_backend(comparison, &runner) : run_reference(comparison, &runner);
        }
        if (status)
            leave_out(comparison, names[k], why);
        close_runner(&runner);
        if (!k && status) // there is nothing to compare with
            k = BACKENDS;
        backend_destroy(&runner.backend);
    }
}

// ---- all of it ----

static enum status say(json_t *answer, char **json, size_t *size)
{
    *json = answer ? json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    *size = *json ? strlen(*json) : 0;
    json_decref(answer);
    return *json ? STATUS_OK : STATUS_MEMORY;
}

static enum status say_error(const char *error, char **json, size_t *size)
{
    return say(json_pack("{s:b, s:s}", "ok", 0, "error", error), json, size);
}

static enum status compare(struct comparison *comparison, const char *text, char **json,
                           size_t *size)
{
    comparison->rows = json_array();
    comparison->left_out = json_array();
    if (!comparison->rows || !comparison->left_out)
        return STATUS_MEMORY;
    char *shown = sluice_public_chain(text);
    if (!shown)
        return STATUS_MEMORY;
    run_all(comparison);
    json_t *all = json_pack("{s:b, s:i, s:i, s:s, s:O, s:O}", "ok", 1, "width",
                            comparison->frame->width, "height", comparison->frame->height, "chain",
                            shown, "rows", comparison->rows, "left_out", comparison->left_out);
    free(shown);
    return say(all, json, size);
}

enum status compare_run(struct preview *preview, const struct sluice_config *config, char **json,
                        size_t *size)
{
    struct comparison comparison = {.config = config};
    struct chain_error error;
    char *text;
    *json = NULL;
    enum status status = preview_newest(preview, &comparison.frame, &text);
    if (status)
        return status == STATUS_EOF ? say_error("there is no picture yet", json, size) : status;
    status = chain_parse(text, &picture_reader, &comparison.chain, &error);
    if (!status) {
        chain_mute(&comparison.chain);
        status = compare(&comparison, text, json, size);
    } else if (status == STATUS_USAGE) {
        status = say_error(error.message, json, size);
    }
    chain_free(&comparison.chain);
    json_decref(comparison.rows);
    json_decref(comparison.left_out);
    av_frame_free(&comparison.frame);
    av_frame_free(&comparison.part);
    av_frame_free(&comparison.want);
    free(text);
    return status;
}
