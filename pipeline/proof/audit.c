// sluice_audit(): an output held against its manifest and its source.
#include <errno.h>
#include <inttypes.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/random_seed.h>
#include <string.h>
#include <unistd.h>

#include "base/sized.h"
#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/part/manifest.h"
#include "pipeline/proof/audit_frames.h"
#include "pipeline/proof/other_streams.h"
#include "pipeline/proof/proof_source.h"
#include "plan/op.h"

struct audit {
    const struct sluice_config *config;
    const struct log *log;
    const char *output;
    AVRational time_base; // of packets' times in the manifest
    struct manifest manifest;
    struct source_request source;
    struct other_streams others; // of the output
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
    int video = format_find_video(file), error = 0;
    AVPacket *packet = av_packet_alloc();
    enum status status = packet ? STATUS_OK : STATUS_MEMORY;
    while (!status && (error = format_read(file, packet)) >= 0) {
        const AVStream *stream = file->streams[packet->stream_index];
        status = packet->stream_index == video ? check_packet(audit, packet, stream->time_base)
                                               : other_streams_add(&audit->others, packet, stream);
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    if (!status && !format_has_ended(error))
        status = check_failed(audit->log, STATUS_INPUT, error, "%s cannot be read", audit->output);
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
    if (!manifest_ratio(json_object_get(end, "video"), "time_base", &audit->time_base))
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

static enum status check_frames(struct audit *audit, int64_t samples)
{
    const struct audit_frames_request request = {.config = audit->config,
                                                 .manifest = &audit->manifest,
                                                 .source = &audit->source,
                                                 .name = audit->output,
                                                 .samples = samples,
                                                 .seed = audit->found.seed,
                                                 .log = audit->log};
    struct audit_frames_found found = {0};
    enum status status = audit_frames(&request, &found);
    audit->found.samples = found.samples;
    audit->found.pts = found.pts;
    return status;
}

// Check the streams beside the video, if the manifest says of them.
static enum status check_others(struct audit *audit)
{
    const json_t *others = json_object_get(audit->manifest.end, "others");
    struct other_streams_found found = {0};
    if (!others)
        return STATUS_OK;
    int64_t first = AV_NOPTS_VALUE;
    for (int64_t n = 0; n < audit->manifest.packets; n++) {
        int64_t pts = audit->manifest.packet[n].pts;
        if (pts != AV_NOPTS_VALUE && (first == AV_NOPTS_VALUE || pts < first))
            first = pts;
    }
    int64_t shift = other_streams_shift(&audit->manifest, first, audit->time_base);
    enum status status = other_streams_check(&audit->others, others, &audit->source, shift,
                                             audit->output, audit->log, &found);
    audit->found.streams = (unsigned)found.streams;
    audit->found.copied = (unsigned)found.copied;
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
    if (!status)
        status = check_others(audit);
    return status ? status : check_frames(audit, samples);
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
    log_memory(&log, status);
    other_streams_free(&audit.others);
    manifest_free(&audit.manifest);
    if (!sized_write(found, &audit.found, sizeof audit.found))
        return SLUICE_STATUS_USAGE;
    return (enum sluice_status)status;
}
