// sluice_audit(): an output held against its manifest and its source.
#include <errno.h>
#include <inttypes.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/lfg.h>
#include <libavutil/mem.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <libavutil/random_seed.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sized.h"
#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/part/manifest.h"
#include "pipeline/proof/proof_source.h"
#include "pipeline/proof/recompute.h"
#include "plan/op.h"

enum { SAME_TIME = 3 }; // frames that damage may give one pts

struct audit {
    const struct sluice_config *config;
    const struct log *log;
    const char *output;
    AVRational time_base; // of packets' times in the manifest
    struct manifest manifest;
    struct source_request source;
    struct sluice_audit found;
};

// ---- packets ----

static enum status check_packet(struct audit *audit, const AVPacket *packet, AVRational from)
{
    char hash[FRAME_HASH_TEXT];
    int64_t n = audit->found.packets++;
    const struct manifest_packet *noted =
        n < audit->manifest.packets ? &audit->manifest.packet[n] : NULL;
    bytes_hash(packet->data, (size_t)packet->size, hash);
    int64_t pts = packet->pts == AV_NOPTS_VALUE ? AV_NOPTS_VALUE
                                                : av_rescale_q(packet->pts, from, audit->time_base);
    bool key = packet->flags & AV_PKT_FLAG_KEY;
    if (noted && noted->pts == pts && noted->key == key && noted->size == packet->size &&
        !strcmp(noted->hash, hash))
        return STATUS_OK;
    return log_fail(audit->log, STATUS_FAILED,
                    "%s: packet %" PRId64 " of its video is not the one that was written",
                    audit->output, n);
}

static enum status read_packets(struct audit *audit, AVFormatContext *file)
{
    int video = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    AVPacket *packet = av_packet_alloc();
    enum status status = packet ? STATUS_OK : STATUS_MEMORY;
    while (!status && av_read_frame(file, packet) >= 0) {
        if (packet->stream_index == video)
            status = check_packet(audit, packet, file->streams[video]->time_base);
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    if (!status && audit->found.packets != audit->manifest.packets)
        status = log_fail(audit->log, STATUS_FAILED,
                          "%s: its video has %" PRId64 " packets; %" PRId64 " were written",
                          audit->output, audit->found.packets, audit->manifest.packets);
    return status;
}

// Check that a list of hashes is the one that was written.
static enum status check_list(const struct audit *audit, const json_t *list)
{
    json_t *about;
    enum status status = manifest_of_file(audit->output, audit->log, &about);
    bool same = !status && json_equal(about, list);
    json_decref(about);
    return status || same ? status
                          : log_fail(audit->log, STATUS_FAILED,
                                     "%s is not the list that was written", audit->output);
}

// Check that there are frames, as many as the ledger has.
static enum status check_count(const struct audit *audit)
{
    const json_t *ledger = json_object_get(audit->manifest.end, "ledger");
    int64_t in = json_integer_value(json_object_get(ledger, "frames_in"));
    if (audit->manifest.frames && audit->manifest.frames == in)
        return STATUS_OK;
    return log_fail(audit->log, STATUS_FAILED,
                    "%s: its ledger has %" PRId64 " frames, and its manifest %" PRId64,
                    audit->output, in, audit->manifest.frames);
}

static enum status check_output(struct audit *audit)
{
    AVFormatContext *file = NULL;
    const json_t *end = audit->manifest.end, *list = json_object_get(end, "file");
    if (list)
        return check_list(audit, list);
    const char *base =
        json_string_value(json_object_get(json_object_get(end, "video"), "time_base"));
    if (!base || av_parse_ratio(&audit->time_base, base, INT32_MAX, 0, NULL) < 0)
        return log_fail(audit->log, STATUS_INPUT, "%s.manifest does not say how it is timed",
                        audit->output);
    char *url = av_asprintf("file:%s", audit->output);
    enum status status = url ? STATUS_OK : STATUS_MEMORY;
    if (!status && avformat_open_input(&file, url, NULL, NULL) < 0)
        status = log_fail(audit->log, STATUS_INPUT, "%s cannot be read", audit->output);
    if (!status)
        status = read_packets(audit, file);
    avformat_close_input(&file);
    av_free(url);
    return status;
}

// ---- the source ----

static enum status check_source(const struct audit *audit)
{
    json_int_t arithmetic =
        json_integer_value(json_object_get(audit->manifest.identity, "arithmetic"));
    if (arithmetic != ARITHMETIC_VERSION)
        return log_fail(audit->log, STATUS_INPUT,
                        "%s was made by arithmetic %d; this sluice has %d, which gives other bits",
                        audit->output, (int)arithmetic, (int)ARITHMETIC_VERSION);
    return proof_source_check(&audit->source, &audit->manifest, audit->output, audit->log);
}

// True if frames are what a decoder made that had seen all of the file before them.
static bool is_repeatable(const struct audit *audit)
{
    const json_t *end = audit->manifest.end, *parts = json_object_get(end, "parts");
    bool any = json_is_true(json_object_get(end, "repeatable"));
    for (size_t k = 0; k < json_array_size(parts); k++)
        any |= json_is_true(json_object_get(json_array_get(parts, k), "repeatable"));
    return any;
}

// ---- samples ----

// Draw `count` of the frames, each at most once, in their order (D. E. Knuth, The Art of Computer
// Programming 2, algorithm 3.4.2 S).
static int64_t *draw(struct audit *audit, int64_t count)
{
    AVLFG random;
    int64_t frames = audit->manifest.frames, drawn = 0;
    int64_t *list = calloc((size_t)count + 1, sizeof *list);
    av_lfg_init(&random, audit->found.seed);
    for (int64_t n = 0; n < frames && drawn < count && list; n++) {
        uint64_t dice = (uint64_t)av_lfg_get(&random) << 32 | av_lfg_get(&random);
        if ((int64_t)(dice % (uint64_t)(frames - n)) < count - drawn)
            list[drawn++] = n;
    }
    return list;
}

// Compute a frame again: *same says whether it is the one that was noted.
static enum status compute(const struct audit *audit, struct recompute *recompute, int64_t number,
                           bool *same)
{
    const struct manifest_frame *noted = &audit->manifest.frame[number];
    char hash[FRAME_HASH_TEXT] = "";
    AVFrame *frame;
    enum status status = recompute_frame(recompute, noted->pts, &frame);
    if (!status)
        status = frame_hash(frame, hash);
    av_frame_free(&frame);
    *same = !status && !strcmp(hash, noted->hash);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status begin_recompute(const struct audit *audit, bool repeatable,
                                   struct recompute **recompute)
{
    const json_t *identity = audit->manifest.identity, *end = audit->manifest.end;
    const char *pixel = json_string_value(json_object_get(end, "pixel"));
    const char *chain = json_string_value(json_object_get(identity, "chain"));
    struct recompute_request request = {
        .config = audit->config,
        .source = audit->source,
        .chain = chain ? chain : "",
        .links = -1,
        .pixel = av_get_pix_fmt(pixel ? pixel : ""),
        .range = (enum AVColorRange)json_integer_value(json_object_get(end, "range")),
        .repeatable = repeatable,
        .log = audit->log,
    };
    return recompute_create(&request, recompute);
}

// What decodes otherwise behind a seek than in its place, as some files do, is decoded from the
// beginning of the file before it counts as wrong.
static enum status check_frame(struct audit *audit, struct recompute **recompute, bool *repeatable,
                               int64_t number)
{
    bool same = false;
    enum status status = compute(audit, *recompute, number, &same);
    if (!status && !same && !*repeatable) {
        recompute_destroy(recompute);
        *repeatable = true;
        status = begin_recompute(audit, true, recompute);
        if (!status)
            status = compute(audit, *recompute, number, &same);
    }
    for (int k = 1; k < SAME_TIME && !status && !same; k++) // another frame of that time
        status = compute(audit, *recompute, number, &same);
    audit->found.samples += same;
    if (status || same)
        return status;
    audit->found.pts = audit->manifest.frame[number].pts;
    return log_fail(audit->log, STATUS_FAILED,
                    "%s: frame %" PRId64 ", pts %" PRId64
                    ", is not what the source and the chain give",
                    audit->output, number, audit->found.pts);
}

static enum status check_samples(struct audit *audit, int64_t samples)
{
    struct recompute *recompute = NULL;
    int64_t frames = audit->manifest.frames;
    int64_t count = samples > 0 && samples < frames ? samples : frames;
    int64_t *list = draw(audit, count);
    bool repeatable = is_repeatable(audit);
    enum status status = list ? begin_recompute(audit, repeatable, &recompute) : STATUS_MEMORY;
    for (int64_t k = 0; k < count && !status; k++)
        status = check_frame(audit, &recompute, &repeatable, list[k]);
    recompute_destroy(&recompute);
    free(list);
    return status;
}

// ---- all of it ----

static enum status read_manifest(struct audit *audit)
{
    char *file = av_asprintf("%s.manifest", audit->output);
    enum status status = STATUS_MEMORY;
    if (file && access(file, F_OK) && errno == ENOENT)
        status =
            log_fail(audit->log, STATUS_INPUT,
                     "%s has no manifest: it was not joined of parts, or its join did not come "
                     "to its end; join it again",
                     audit->output);
    else if (file)
        status = manifest_read(file, audit->log, &audit->manifest);
    av_free(file);
    return status;
}

static enum status run(struct audit *audit, int64_t samples)
{
    const char *name = audit->config->output.name;
    if (!name || !*name)
        return log_fail(audit->log, STATUS_USAGE, "no output is named");
    audit->output = url_plain(strncmp(name, "hash:", 5) ? name : name + 5, true);
    enum status status = read_manifest(audit);
    audit->found.frames = audit->manifest.frames;
    audit->source = proof_source(audit->config, &audit->manifest);
    if (!status)
        status = check_count(audit);
    if (!status)
        status = check_output(audit);
    if (!status)
        status = check_source(audit);
    return status ? status : check_samples(audit, samples);
}

enum sluice_status sluice_audit(const struct sluice_config *given, int64_t samples, unsigned seed,
                                struct sluice_audit *found)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    struct audit audit = {.config = &config, .log = &log};
    enum status status = config_read(given, &config, &target, &log);
    audit.found.seed = seed ? seed : av_get_random_seed() | 1;
    if (!status)
        status = run(&audit, samples);
    if (status == STATUS_MEMORY)
        log_print(&log, LOG_ERROR, "out of memory");
    manifest_free(&audit.manifest);
    if (!sized_write(found, &audit.found, sizeof audit.found))
        return SLUICE_STATUS_USAGE;
    return (enum sluice_status)status;
}
