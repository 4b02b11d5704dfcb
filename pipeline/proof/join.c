// sluice_join(): parts put together.
#include <inttypes.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/parseutils.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/seek/cursor.h"
#include "pipeline/input/source.h"
#include "pipeline/output/encoder_options.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/file/path_conflicts.h"
#include "pipeline/output/muxer/muxer.h"
#include "pipeline/part/manifest_writer.h"
#include "pipeline/proof/join_text.h"
#include "pipeline/proof/part_set.h"
#include "pipeline/proof/part_video.h"
#include "pipeline/proof/proof_source.h"
#include "sluice/sluice.h"

enum { MAX_AHEAD = 4096 }; // packets read ahead to learn of streams

struct joining {
    const struct sluice_config *config;
    const struct log *log;
    struct part_set set;
    struct destination to;
    struct muxer *muxer;
    struct source_request request;
    struct source *source;
    AVFormatContext *described;      // what the source holds
    struct packet *ahead[MAX_AHEAD]; // of the source's, read already
    int ahead_count, ahead_read;
    struct part_video *video;
    AVCodecParameters *codec;
    AVRational frame_rate;
    AVFrame *first; // of the source: light and rotation
    struct manifest_writer *manifest;
    struct sluice_joined joined;
};

static const atomic_bool never;

// The first part that has frames.
static const struct manifest *first_of(const struct joining *join)
{
    const struct part_set *set = &join->set;
    return &set->manifest[set->filled < set->count ? set->filled : 0];
}

// ---- the source ----

// Read ahead until all streams are known.
static enum status probe_source(struct joining *join)
{
    enum status status = STATUS_OK;
    while (!status && !source_is_probed(join->source) && join->ahead_count < MAX_AHEAD) {
        struct packet **packet = &join->ahead[join->ahead_count];
        status = source_read(join->source, packet);
        if (!status)
            status = source_probe(join->source, (*packet)->av);
        join->ahead_count += *packet != NULL;
    }
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status open_source(struct joining *join)
{
    const struct source_request *request = &join->request;
    enum status status =
        proof_source_check(request, first_of(join), join->config->output.name, join->log);
    if (!status)
        status = source_open(request, join->log, &never, &join->source);
    if (!status)
        status = probe_source(join);
    if (!status)
        status = cursor_first_frame(request, join->log, &never, &join->first);
    if (!status && !(join->described = format_describe(join->source->format)))
        status = STATUS_MEMORY;
    return status;
}

// The next packet of a stream that goes along; *packet is NULL behind the last.
static enum status read_other(struct joining *join, struct packet **packet)
{
    enum status status = STATUS_OK;
    while (!status) {
        bool kept = join->ahead_read < join->ahead_count;
        *packet = kept ? join->ahead[join->ahead_read] : NULL;
        if (kept)
            join->ahead[join->ahead_read++] = NULL;
        else
            status = source_read(join->source, packet);
        if (status)
            break;
        int stream = (*packet)->av->stream_index;
        if (stream != join->source->video && muxer_accepts_stream(join->muxer, stream))
            return STATUS_OK;
        packet_destroy(packet);
    }
    return status == STATUS_EOF ? STATUS_OK : status;
}

// ---- the output ----

static AVRational ratio(const json_t *of, const char *name)
{
    AVRational value = {0, 1};
    const char *text = json_string_value(json_object_get(of, name));
    if (text)
        av_parse_ratio(&value, text, INT32_MAX, 0, NULL);
    return value;
}

static enum status read_codec(struct joining *join)
{
    const json_t *video = json_object_get(first_of(join)->end, "video");
    join->codec = avcodec_parameters_alloc();
    join->frame_rate = ratio(video, "frame_rate");
    if (!join->codec)
        return STATUS_MEMORY;
    enum status status = manifest_video(video, join->codec);
    return status == STATUS_INPUT ? log_fail(join->log, status,
                                             "%s: its manifest does not say how the video is "
                                             "encoded",
                                             join->set.folder[join->set.filled])
                                  : status;
}

// The options of the container, of those that may be the encoder's as well.
static enum status make_options(const struct joining *join, AVDictionary **to)
{
    const json_t *made = json_object_get(first_of(join)->end, "made");
    const char *encoder = json_string_value(json_object_get(made, "encoder"));
    struct sink_request request = {.options = join->config->output.options};
    struct encoder_options options = {.log = join->log,
                                      .codec = avcodec_find_encoder_by_name(encoder ? encoder : ""),
                                      .container = join->to.container};
    if (!options.codec)
        options.codec = avcodec_find_encoder(join->codec->codec_id);
    if (!options.codec)
        return STATUS_OK;
    enum status status = encoder_options_add(&options, &request);
    av_dict_free(&options.encoder);
    *to = options.muxer;
    return status;
}

static enum status begin_muxer(struct joining *join)
{
    const json_t *video = json_object_get(first_of(join)->end, "video");
    struct muxer_streams streams = {
        .name = join->source->name,
        .from = join->described,
        .video = join->source->video,
        .codec = join->codec,
        .time_base = part_video_time_base(join->video),
        .frame_rate = join->frame_rate,
        .global_header = json_is_true(json_object_get(video, "global_header")),
        .first = join->first,
        .end = INT64_MAX,
        .rotated = json_is_true(json_object_get(video, "rotated")),
    };
    AVDictionary *options = NULL;
    enum status status =
        muxer_create(&join->to, join->to.name, join->log, NULL, NULL, &join->muxer);
    if (!status)
        status = muxer_add_streams(join->muxer, &streams);
    if (!status)
        status = make_options(join, &options);
    if (!status)
        status = muxer_begin(join->muxer, &options);
    av_dict_free(&options);
    return status;
}

static int64_t us_of(const AVPacket *packet, AVRational time_base)
{
    int64_t at = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    return at == AV_NOPTS_VALUE ? INT64_MIN : av_rescale_q(at, time_base, AV_TIME_BASE_Q);
}

// Write the packets of video and those of the source's other streams in the order of their times.
static enum status copy_packets(struct joining *join)
{
    AVPacket *video = av_packet_alloc();
    struct packet *other = NULL;
    enum status status = video ? part_video_read(join->video, video) : STATUS_MEMORY;
    bool ended = status == STATUS_EOF;
    status = ended ? STATUS_OK : status;
    if (!status)
        status = read_other(join, &other);
    while (!status && (!ended || other)) {
        int64_t at = ended ? INT64_MAX : us_of(video, part_video_time_base(join->video));
        const AVStream *stream =
            other ? join->source->format->streams[other->av->stream_index] : NULL;
        if (other && us_of(other->av, stream->time_base) <= at) {
            status = muxer_write(join->muxer, other->av);
            packet_destroy(&other);
            if (!status)
                status = read_other(join, &other);
            continue;
        }
        video->stream_index = join->source->video;
        status = muxer_write(join->muxer, video);
        av_packet_unref(video);
        if (!status)
            status = part_video_read(join->video, video);
        ended = status == STATUS_EOF;
        status = ended ? STATUS_OK : status;
    }
    packet_destroy(&other);
    av_packet_free(&video);
    return status;
}

// ---- the manifest ----

static enum status begin_manifest(struct joining *join, const char *output)
{
    json_t *identity = json_copy(join->set.manifest[0].identity);
    char *name = av_asprintf("%s.manifest", output);
    if (!identity || !name) {
        json_decref(identity);
        av_free(name);
        return STATUS_MEMORY;
    }
    json_object_set_new(identity, "part", json_integer(0));
    json_object_set_new(identity, "parts", json_integer(1));
    json_object_set_new(identity, "begin", json_string("begin"));
    json_object_set_new(identity, "end", json_string("end"));
    struct manifest_writer_request request = {
        .name = name, .overwrite = join->config->overwrite, .identity = identity, .log = join->log};
    enum status status = file_check(name, request.overwrite, join->log);
    if (!status)
        status = manifest_writer_create(&request, &join->manifest);
    json_decref(identity);
    av_free(name);
    for (int k = 0; k < join->set.count; k++)
        for (int64_t n = 0; n < join->set.manifest[k].frames && !status; n++)
            status = manifest_writer_add(join->manifest, &join->set.manifest[k].frame[n]);
    return status;
}

// The ledger of all parts, and the roots of each.
static enum status add_parts(struct joining *join, json_t *end)
{
    struct sluice_ledger sum = {0};
    json_t *parts = json_array();
    for (int k = 0; k < join->set.count; k++) {
        const json_t *part = join->set.manifest[k].end, *ledger = json_object_get(part, "ledger");
        sum.frames_in += json_integer_value(json_object_get(ledger, "frames_in"));
        sum.frames_out += json_integer_value(json_object_get(ledger, "frames_out"));
        sum.dropped_clock += json_integer_value(json_object_get(ledger, "dropped_clock"));
        sum.frames_damaged += json_integer_value(json_object_get(ledger, "frames_damaged"));
        join->joined.truncated |= json_is_true(json_object_get(part, "truncated"));
        sum.packets_damaged += json_integer_value(json_object_get(ledger, "packets_damaged"));
        json_array_append_new(
            parts, json_pack("{sO? sO? sO? sO?}", "repeatable", json_object_get(part, "repeatable"),
                             "frames", json_object_get(part, "frames"), "root",
                             json_object_get(part, "root"), "made", json_object_get(part, "made")));
    }
    join->joined.frames = sum.frames_out;
    join->joined.frames_damaged = sum.frames_damaged;
    join->joined.packets_damaged = sum.packets_damaged;
    json_object_set_new(end, "truncated", json_boolean(join->joined.truncated));
    json_object_set_new(end, "ledger", manifest_of_ledger(&sum));
    return json_object_set_new(end, "parts", parts) ? STATUS_MEMORY : STATUS_OK;
}

// The list of hashes itself, for audits.
static enum status add_file(const struct joining *join, json_t *end)
{
    json_t *about;
    enum status status = manifest_of_file(join->config->output.name + 5, join->log, &about);
    if (!status && json_object_set_new(end, "file", about))
        status = STATUS_MEMORY;
    return status;
}

static enum status finish_manifest(struct joining *join)
{
    const json_t *first = first_of(join)->end;
    json_t *end =
        json_pack("{sO? sO? sO? sO? so sO?}", "pixel", json_object_get(first, "pixel"), "range",
                  json_object_get(first, "range"), "time_base", json_object_get(first, "time_base"),
                  "first", json_object_get(first, "first"), "next", json_null(), "made",
                  json_object_get(first, "made"));
    json_t *video = json_object_get(first, "video");
    enum status status = end ? add_parts(join, end) : STATUS_MEMORY;
    if (!status && video && json_object_set(end, "video", video))
        status = STATUS_MEMORY;
    if (!status && !strncmp(join->config->output.name, "hash:", 5))
        status = add_file(join, end);
    if (!status)
        status = manifest_writer_commit(&join->manifest, end);
    json_decref(end);
    return status;
}

// ---- all of it ----

static enum status join_video(struct joining *join)
{
    enum status status = read_codec(join);
    if (!status)
        status = part_video_create(&join->set, join->log, &join->video);
    if (!status)
        status = open_source(join);
    if (!status)
        status = begin_muxer(join);
    if (!status)
        status = begin_manifest(join, join->to.name);
    if (!status)
        status = copy_packets(join);
    if (!status)
        status = muxer_finish(join->muxer);
    if (!status)
        status = manifest_writer_read(join->manifest, join->to.name,
                                      part_video_time_base(join->video), 0);
    return status;
}

// The extension and format that parts are made for, as job_part.c notes them.
static enum status check_kind(const struct joining *join, const char *extension)
{
    const json_t *output = json_object_get(join->set.manifest[0].identity, "output");
    const char *made = json_string_value(json_object_get(output, "extension"));
    if (made && !strcmp(made, extension))
        return STATUS_OK;
    return log_fail(join->log, STATUS_USAGE,
                    "the parts were made for an output of kind '%s', and this is '%s'",
                    made ? made : "", extension);
}

static enum status join_file(struct joining *join)
{
    const struct sluice_output *output = &join->config->output;
    struct destination_request request = {.name = url_plain(output->name, true),
                                          .format = output->format,
                                          .overwrite = join->config->overwrite};
    const char *dot = strrchr(request.name, '.');
    enum status status = check_kind(join, dot && !strchr(dot, '/') ? dot + 1 : "");
    if (!status)
        status = destination_init(&request, join->log, &join->to);
    if (!status)
        status = destination_check(&join->to, join->log);
    return status ? status : join_video(join);
}

static enum status join_lines(struct joining *join, const char *file)
{
    enum status status = check_kind(join, "hash");
    if (!status)
        status = join_text_check(file, join->config->overwrite, join->log);
    if (!status)
        status = begin_manifest(join, file);
    if (!status)
        status = join_text(&join->set, "frames.txt", file, join->config->overwrite, join->log);
    return status;
}

static enum status reserve_report(struct joining *join, struct path_conflicts *conflicts,
                                  const json_t *report)
{
    const struct chain none = {0};
    const char *file = json_string_value(json_object_get(report, "file"));
    const char *suffix = json_string_value(json_object_get(report, "beside"));
    enum status status =
        file ? path_conflicts_add_output(conflicts, &none, file, join->log) : STATUS_OK;
    char *beside = file && suffix ? av_asprintf("%s%s", file, suffix) : NULL;
    if (!status && beside)
        status = path_conflicts_add_output(conflicts, &none, beside, join->log);
    av_free(beside);
    return status;
}

// Check that no file that is written is read, or written twice.
static enum status check_conflicts(struct joining *join, const char *output)
{
    const struct chain none = {0};
    const json_t *reports = json_object_get(join->set.manifest[0].identity, "reports");
    struct path_conflicts *conflicts;
    char *manifest = av_asprintf("%s.manifest", output);
    enum status status = path_conflicts_create(&conflicts);
    if (!status && !manifest)
        status = STATUS_MEMORY;
    if (!status)
        status = path_conflicts_add_input(conflicts, join->request.name);
    if (!status)
        status = path_conflicts_add_output(conflicts, &none, output, join->log);
    if (!status)
        status = path_conflicts_add_output(conflicts, &none, manifest, join->log);
    for (size_t k = 0; k < json_array_size(reports) && !status; k++)
        status = reserve_report(join, conflicts, json_array_get(reports, k));
    path_conflicts_destroy(&conflicts);
    av_free(manifest);
    return status;
}

static enum status run(struct joining *join, const char *const *parts)
{
    const char *name = join->config->output.name;
    if (!name || !*name)
        return log_fail(join->log, STATUS_USAGE, "no output is named");
    enum status status = part_set_read(parts, join->log, &join->set);
    if (status)
        return status;
    join->request = proof_source(join->config, first_of(join));
    status = check_conflicts(join, url_plain(strncmp(name, "hash:", 5) ? name : name + 5, true));
    if (status)
        return status;
    if (join->set.filled == join->set.count)
        return log_fail(join->log, STATUS_INPUT, "no part has a frame: there is nothing to join");
    status = join_reports_check(&join->set, join->config->overwrite, join->log);
    if (!status)
        status = strncmp(name, "hash:", 5) ? join_file(join) : join_lines(join, name + 5);
    if (!status)
        status = join_reports(&join->set, join->config->overwrite, join->log);
    return status ? status : finish_manifest(join);
}

static void finish(struct joining *join)
{
    manifest_writer_destroy(&join->manifest);
    muxer_destroy(&join->muxer);
    part_video_destroy(&join->video);
    for (int k = 0; k < join->ahead_count; k++)
        packet_destroy(&join->ahead[k]);
    av_frame_free(&join->first);
    avformat_free_context(join->described);
    source_close(&join->source);
    avcodec_parameters_free(&join->codec);
    if (join->to.name)
        destination_finish(&join->to);
    part_set_free(&join->set);
    free(join);
}

enum sluice_status sluice_join(const struct sluice_config *given, const char *const *parts,
                               struct sluice_joined *joined)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    struct joining *join = calloc(1, sizeof *join);
    if (!join)
        return SLUICE_STATUS_MEMORY;
    enum status status = config_read(given, &config, &target, &log);
    join->config = &config;
    join->log = &log;
    if (!status)
        status = run(join, parts);
    if (status == STATUS_MEMORY)
        log_print(&log, LOG_ERROR, "out of memory");
    if (joined && !sized_write(joined, &join->joined, sizeof join->joined))
        status = STATUS_USAGE;
    finish(join);
    return (enum sluice_status)status;
}
