// sluice_bisect(): where two outputs of one source begin to differ.
#include <inttypes.h>
#include <libavutil/avstring.h>
#include <libavutil/imgutils.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/part/manifest.h"
#include "pipeline/proof/proof_source.h"
#include "pipeline/proof/recompute.h"

enum { SIDES = 2 };

struct side {
    const char *name;
    struct manifest manifest;
    struct schedule schedule; // the chain, alone
    AVFrame *frame;           // the one in question, computed again
};

struct bisection {
    const struct sluice_config *config;
    const struct log *log;
    struct side side[SIDES];
    struct source_request source; // of both
    int64_t at;                   // the first frame that differs
    FILE *text;
};

// ---- which frame ----

static const char *chain_of(const struct side *side)
{
    const char *chain = json_string_value(json_object_get(side->manifest.identity, "chain"));
    return chain ? chain : "";
}

static enum status read_side(struct bisection *bisection, int k)
{
    struct side *side = &bisection->side[k];
    char *file = av_asprintf("%s.manifest", side->name);
    enum status status =
        file ? manifest_read(file, bisection->log, &side->manifest) : STATUS_MEMORY;
    av_free(file);
    struct sluice_config config = {.chain = chain_of(side)};
    return status ? status : config_schedule(&config, bisection->log, &side->schedule);
}

static enum status check_sources(const struct bisection *bisection)
{
    const struct side *a = &bisection->side[0], *b = &bisection->side[1];
    const char *const members[] = {"source", "stream"};
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        if (!json_equal(json_object_get(a->manifest.identity, members[k]),
                        json_object_get(b->manifest.identity, members[k])))
            return log_fail(bisection->log, STATUS_INPUT,
                            "%s and %s were made of different sources: there is nothing to compare",
                            a->name, b->name);
    return STATUS_OK;
}

// True if all frames are alike; else `at` is the first that is not.
static bool find_frame(struct bisection *bisection)
{
    const struct manifest *a = &bisection->side[0].manifest, *b = &bisection->side[1].manifest;
    int64_t n = 0;
    while (n < a->frames && n < b->frames && a->frame[n].pts == b->frame[n].pts &&
           !strcmp(a->frame[n].hash, b->frame[n].hash))
        n++;
    bisection->at = n;
    return n == a->frames && n == b->frames;
}

// True, when it is said, if one of them has no such frame.
static bool report_missing(const struct bisection *bisection)
{
    const struct side *a = &bisection->side[0], *b = &bisection->side[1];
    int64_t n = bisection->at;
    bool in_a = n < a->manifest.frames, in_b = n < b->manifest.frames;
    if (in_a && in_b && a->manifest.frame[n].pts == b->manifest.frame[n].pts)
        return false;
    const struct side *has =
        !in_b || (in_a && a->manifest.frame[n].pts < b->manifest.frame[n].pts) ? a : b;
    fprintf(bisection->text, "frame %" PRId64 ", pts %" PRId64 ": %s has it, and %s has not\n", n,
            has->manifest.frame[n].pts, has->name, has == a ? b->name : a->name);
    return true;
}

// ---- frames computed again ----

// A copy in memory of its own.
static enum status copy_frame(const AVFrame *from, AVFrame **to)
{
    *to = av_frame_alloc();
    if (!*to)
        return STATUS_MEMORY;
    (*to)->format = from->format;
    (*to)->width = from->width;
    (*to)->height = from->height;
    bool copied = av_frame_get_buffer(*to, 0) >= 0 && av_frame_copy(*to, from) >= 0;
    if (!copied)
        av_frame_free(to);
    return copied ? STATUS_OK : STATUS_MEMORY;
}

// Compute the frame by the first `links` of a side's chain; by all, and in the format of the
// output, for -1.
static enum status compute(const struct bisection *bisection, const struct side *side, int links,
                           AVFrame **frame)
{
    const json_t *end = side->manifest.end;
    const char *pixel = json_string_value(json_object_get(end, "pixel"));
    struct recompute_request request = {
        .config = bisection->config,
        .source = bisection->source,
        .chain = chain_of(side),
        .links = links,
        .pixel = links < 0 ? av_get_pix_fmt(pixel ? pixel : "") : AV_PIX_FMT_NONE,
        .range = (enum AVColorRange)json_integer_value(json_object_get(end, "range")),
        .repeatable = true,
        .log = bisection->log,
    };
    struct recompute *recompute;
    AVFrame *made = NULL;
    enum status status = recompute_create(&request, &recompute);
    if (!status)
        status = recompute_frame(recompute, side->manifest.frame[bisection->at].pts, &made);
    if (!status)
        status = copy_frame(made, frame);
    av_frame_free(&made);
    recompute_destroy(&recompute);
    return status;
}

// Compute the frame of one side again. *same: it is the one that was noted.
static enum status check_side(struct bisection *bisection, struct side *side, bool *same)
{
    char hash[FRAME_HASH_TEXT] = "";
    enum status status = compute(bisection, side, -1, &side->frame);
    if (!status)
        status = frame_hash(side->frame, hash);
    *same = !strcmp(hash, side->manifest.frame[bisection->at].hash);
    if (!status && !*same)
        fprintf(bisection->text,
                "frame %" PRId64 ", pts %" PRId64 ": that of %s is not what its source and chain "
                "give on this machine\n",
                bisection->at, side->manifest.frame[bisection->at].pts, side->name);
    return status;
}

// ---- which sample ----

static int sample_at(const AVFrame *frame, int plane, int row, int byte, int depth)
{
    const uint8_t *line = frame->data[plane] + (ptrdiff_t)row * frame->linesize[plane];
    return depth > 8 ? AV_RN16(line + (byte & ~1)) : line[byte];
}

static int first_byte(const uint8_t *a, const uint8_t *b, int bytes)
{
    for (int k = 0; k < bytes; k++)
        if (a[k] != b[k])
            return k;
    return -1;
}

// Say where two frames differ first. False: they are alike.
static bool report_sample(const struct bisection *bisection, const AVFrame *a, const AVFrame *b)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(a->format);
    if (a->format != b->format || a->width != b->width || a->height != b->height) {
        fprintf(bisection->text, "%dx%d %s, and %dx%d %s\n", a->width, a->height,
                av_get_pix_fmt_name(a->format), b->width, b->height,
                av_get_pix_fmt_name(b->format));
        return true;
    }
    int depth = about->comp[0].depth;
    for (int p = 0; p < 4 && a->data[p]; p++) {
        int bytes = av_image_get_linesize(a->format, a->width, p);
        int rows = p == 1 || p == 2 ? AV_CEIL_RSHIFT(a->height, about->log2_chroma_h) : a->height;
        for (int y = 0; y < rows; y++) {
            int at = first_byte(a->data[p] + (ptrdiff_t)y * a->linesize[p],
                                b->data[p] + (ptrdiff_t)y * b->linesize[p], bytes);
            if (at < 0)
                continue;
            fprintf(bisection->text, "plane %d, row %d, column %d: %d, and %d\n", p, y,
                    at / about->comp[p < about->nb_components ? p : 0].step,
                    sample_at(a, p, y, at, depth), sample_at(b, p, y, at, depth));
            return true;
        }
    }
    return false;
}

// ---- which stage ----

static const char *stage_name(const struct side *side, int link)
{
    return link < 0                             ? "the decoder"
           : link < side->schedule.chain->links ? side->schedule.chain->link[link].stage->name
                                                : "the format of the output";
}

// Compare what the first stages of both chains make. *found: they differ behind `links` of them.
static enum status compare_stage(const struct bisection *bisection, int links, bool *found)
{
    AVFrame *frame[SIDES] = {NULL};
    enum status status = STATUS_OK;
    char *text = NULL;
    size_t size;
    for (int k = 0; k < SIDES && !status; k++) {
        const struct side *side = &bisection->side[k];
        status =
            compute(bisection, side, links > side->schedule.chain->links ? -1 : links, &frame[k]);
    }
    struct bisection quiet = *bisection;
    quiet.text = status ? NULL : open_memstream(&text, &size);
    *found = quiet.text && report_sample(&quiet, frame[0], frame[1]);
    if (quiet.text)
        fclose(quiet.text);
    if (*found)
        fprintf(bisection->text, "frame %" PRId64 ", pts %" PRId64 ", stage %d (%s, and %s): %s",
                bisection->at, bisection->side[0].manifest.frame[bisection->at].pts, links,
                stage_name(&bisection->side[0], links - 1),
                stage_name(&bisection->side[1], links - 1), text ? text : "\n");
    for (int k = 0; k < SIDES; k++)
        av_frame_free(&frame[k]);
    free(text);
    return status;
}

static enum status find_stage(const struct bisection *bisection)
{
    const struct side *a = &bisection->side[0], *b = &bisection->side[1];
    int most = (a->schedule.chain->links > b->schedule.chain->links ? a->schedule.chain->links
                                                                    : b->schedule.chain->links) +
               1;
    bool found = false;
    enum status status = STATUS_OK;
    for (int links = 0; links <= most && !found && !status; links++)
        status = compare_stage(bisection, links, &found);
    return status;
}

// ---- all of it ----

// Say where they differ, once `at` is known.
static enum status explain(struct bisection *bisection)
{
    const struct side *first = &bisection->side[0];
    bool same[SIDES] = {false};
    bisection->source = proof_source(bisection->config, &first->manifest);
    enum status status =
        proof_source_check(&bisection->source, &first->manifest, first->name, bisection->log);
    for (int k = 0; k < SIDES && !status; k++)
        status = check_side(bisection, &bisection->side[k], &same[k]);
    return status || !same[0] || !same[1] ? status : find_stage(bisection);
}

static enum status run(struct bisection *bisection)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < SIDES && !status; k++)
        status = read_side(bisection, k);
    if (!status)
        status = check_sources(bisection);
    if (status)
        return status;
    if (find_frame(bisection)) {
        fprintf(bisection->text, "%s and %s have the same %" PRId64 " frames\n",
                bisection->side[0].name, bisection->side[1].name, bisection->at);
        return STATUS_OK;
    }
    if (!report_missing(bisection))
        status = explain(bisection);
    return status ? status : STATUS_FAILED;
}

static const char *plain(const char *name)
{
    return url_plain(strncmp(name, "hash:", 5) ? name : name + 5, true);
}

enum sluice_status sluice_bisect(const struct sluice_config *given, const char *a, const char *b,
                                 char **text)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    struct bisection bisection = {
        .config = &config, .log = &log, .side = {{.name = plain(a)}, {.name = plain(b)}}};
    size_t size;
    *text = NULL;
    enum status status = config_read(given, &config, &target, &log);
    bisection.text = open_memstream(text, &size);
    if (!status)
        status = log_memory(&log, bisection.text ? run(&bisection) : STATUS_MEMORY);
    for (int k = 0; k < SIDES; k++) {
        av_frame_free(&bisection.side[k].frame);
        schedule_free(&bisection.side[k].schedule);
        manifest_free(&bisection.side[k].manifest);
    }
    if (bisection.text)
        fclose(bisection.text);
    if (status && status != STATUS_FAILED) {
        free(*text);
        *text = NULL;
    }
    return (enum sluice_status)status;
}
