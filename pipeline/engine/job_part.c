#include "pipeline/engine/job_part.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/avstring.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/engine/config.h"
#include "pipeline/engine/job.h"
#include "pipeline/engine/job_device.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/seek/cursor.h"
#include "pipeline/input/seek/cuts.h"
#include "pipeline/part/manifest.h"
#include "pipeline/part/part.h"
#include "pipeline/part/part_folder.h"
#include "plan/op.h"

// ---- what is not made in parts ----

static bool is_text(const char *text)
{
    json_t *json = text ? json_string(text) : json_null();
    json_decref(json);
    return json;
}

static enum status check_input(const struct sluice_job *job, const struct sluice_config *config)
{
    const char *format, *what, *name = config->input;
    bool file = name && !config->push && strcmp(name, "-") != 0 && !url_has_scheme(name) &&
                !url_is_device(name, &format, &what) && !url_is_numbered(name) &&
                !url_is_globbed(name);
    return file ? STATUS_OK
                : log_fail(&job->log, STATUS_USAGE,
                           "--shard: parts are made of a file, which each reads for itself");
}

// Check that the output is one file of video, or of hashes.
static enum status check_output(const struct sluice_job *job, const struct sink_request *output)
{
    struct destination whole;
    struct destination_request request = {.name = output->output, .format = output->format};
    if (sink_is_nowhere(output->output) || !strncmp(output->output, "hash:", 5))
        return STATUS_OK;
    enum status status = destination_init(&request, &job->log, &whole);
    bool fits = !status && whole.kind == DESTINATION_FILE && !destination_is_images(&whole) &&
                whole.container->video_codec != AV_CODEC_ID_WRAPPED_AVFRAME &&
                !destination_is_playlist(&whole) && strcmp(whole.name, "-") != 0;
    if (!status && !fits)
        status = log_fail(&job->log, STATUS_USAGE,
                          "%s cannot be made in parts: one file of video can, null: and hash:FILE",
                          whole.shown);
    destination_finish(&whole);
    return status;
}

// Check that what the manifest is to say can be said in JSON.
static enum status check_texts(const struct sluice_job *job, const struct sluice_config *config)
{
    const char *const *option = config->output.options;
    bool texts = is_text(config->input) && is_text(config->output.name) &&
                 is_text(config->output.encoder) && is_text(config->output.preset);
    for (; option && *option; option++)
        texts &= is_text(*option);
    return texts ? STATUS_OK
                 : log_fail(&job->log, STATUS_USAGE,
                            "--shard: a name or option is not UTF-8, and a manifest is");
}

static enum status check_config(const struct sluice_job *job, const struct sluice_config *config,
                                const struct sink_request *outputs, int count)
{
    const struct {
        bool given;
        const char *name;
    } others[] = {
        {config->start > 0, "--start"},
        {config->duration > 0, "--duration"},
        {config->frames > 0, "--frames"},
        {config->live, "--live"},
        {config->simulate, "--simulate"},
        {config->changes, "--replay"},
        {config->output.segment > 0, "--segment"},
    };
    if (config->part < 0 || config->part > config->parts || config->parts < 1)
        return log_fail(&job->log, STATUS_USAGE,
                        "--shard is %d/%d; it takes I/N, part I of N from 1 on, as in 3/64",
                        config->part, config->parts);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (others[k].given)
            return log_fail(&job->log, STATUS_USAGE, "--shard does not go with %s", others[k].name);
    if (count > 1)
        return log_fail(&job->log, STATUS_USAGE,
                        "--shard: a part has one output, and no tees beside it");
    enum status status = check_input(job, config);
    if (!status)
        status = check_texts(job, config);
    return status || !outputs->output ? status : check_output(job, outputs);
}

// ---- identity ----

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

// The output as it was asked for; NULL: no memory.
static json_t *identity_of_output(const struct sluice_output *output)
{
    json_t *options = json_array();
    const char *dot = strrchr(output->name, '.');
    for (const char *const *option = output->options; option && *option; option++)
        if (json_array_append_new(options, json_string(*option)))
            return json_decref(options), NULL;
    bool hash = !strncmp(output->name, "hash:", 5);
    const char *extension = hash ? "hash" : dot && !strchr(dot, '/') ? dot + 1 : "";
    return json_pack("{so ss so so so sf sI so si}", "container", text_or_null(output->format),
                     "extension", extension, "encoder", text_or_null(output->encoder), "preset",
                     text_or_null(output->preset), "options", options, "crf", output->crf,
                     "bitrate", (json_int_t)output->bitrate, "pixfmt", text_or_null(output->pixfmt),
                     "range", (int)output->range);
}

// The files of the chain's records, in its order.
static json_t *identity_of_reports(const struct chain *chain)
{
    enum { MOST = 64 };
    struct chain_file file[MOST];
    json_t *reports = json_array();
    int count = chain_files(chain, WRITES_RECORDS, file, MOST);
    for (int k = 0; k < count && k < MOST; k++)
        if (json_array_append_new(reports,
                                  json_pack("{so so}", "file", text_or_null(file[k].name), "beside",
                                            text_or_null(file[k].option->beside))))
            return json_decref(reports), NULL;
    return reports;
}

static json_t *cut_json(int64_t us)
{
    return us == INT64_MIN   ? json_string("begin")
           : us == INT64_MAX ? json_string("end")
                             : json_integer(us);
}

static enum status make_identity(const struct sluice_job *job, const struct sluice_config *config,
                                 json_t **identity)
{
    json_t *source;
    enum status status = manifest_of_source(url_plain(config->input, false), &job->log, &source);
    if (status)
        return status;
    char *chain = chain_text(&job->chain);
    *identity = json_pack(
        "{si so si ss si so so si si so so}", "sluice-manifest", MANIFEST_VERSION, "source", source,
        "stream", config->stream - 1, "chain", chain ? chain : "", "arithmetic", ARITHMETIC_VERSION,
        "output", identity_of_output(&config->output), "reports", identity_of_reports(&job->chain),
        "part", config->part - 1, "parts", config->parts, "begin", cut_json(job->span.begin_us),
        "end", cut_json(job->span.end_us));
    free(chain);
    return chain && *identity ? STATUS_OK : STATUS_MEMORY;
}

// ---- files ----

// Let the chain's records go into the folder.
static enum status redirect_records(struct sluice_job *job, struct chain *chain)
{
    char name[PART_FILE_NAME];
    for (int k = 0; k < chain_files(chain, WRITES_RECORDS, NULL, 0); k++) {
        part_file_report((size_t)k, NULL, name);
        char *file = part_file(job->part, name);
        enum status status = file ? chain_redirect(chain, k, file) : STATUS_MEMORY;
        free(file);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static enum status redirect_output(struct sluice_job *job, struct sink_request *output)
{
    bool hash = !strncmp(output->output, "hash:", 5);
    char *file = part_file(job->part, hash ? part_file_frames : part_file_video);
    job->part_output = file ? av_asprintf("%s%s", hash ? "hash:" : "", file) : NULL;
    free(file);
    if (!job->part_output)
        return STATUS_MEMORY;
    if (!hash)
        output->whole = output->output;
    output->output = job->part_output;
    return STATUS_OK;
}

// Begin the part, and lead into its folder what the job writes.
static enum status begin_part(struct sluice_job *job, const struct sluice_config *config,
                              struct sink_request *output)
{
    json_t *identity = NULL;
    enum status status = make_identity(job, config, &identity);
    job->part_source = json_incref(json_object_get(identity, "source"));
    job->part_input = realpath(url_plain(config->input, false), NULL);
    if (!status && job->part_input && !is_text(job->part_input))
        status = log_fail(&job->log, STATUS_USAGE,
                          "--shard: the input's full name is not UTF-8, and a manifest is");
    if (!status && !job->part_input)
        status = log_fail(&job->log, STATUS_INPUT, "%s has gone", config->input);
    struct part_request request = {.output = output->output,
                                   .part = config->part - 1,
                                   .parts = config->parts,
                                   .overwrite = config->overwrite,
                                   .identity = identity,
                                   .log = &job->log};
    if (!status)
        status = part_create(&request, &job->part);
    json_decref(identity);
    if (!status)
        status = redirect_output(job, output);
    if (!status)
        status = redirect_records(job, &job->chain);
    return status ? status : redirect_records(job, job->schedule.chain);
}

// Learn the size of the file's first frame, which is the output's: another one later is scaled.
static enum status find_size(struct sluice_job *job, const struct source_request *source)
{
    AVFrame *first;
    enum status status = cursor_first_frame(source, &job->log, &job->stop.asked, &first);
    if (!status) {
        job->whole_width = first->width;
        job->whole_height = first->height;
    }
    av_frame_free(&first);
    return status == STATUS_EOF ? STATUS_OK : status; // the first part says what is wrong
}

enum status job_part_begin(struct sluice_job *job, const struct sluice_config *config,
                           struct sink_request *outputs, int count)
{
    if (!config->part && !config->parts)
        return STATUS_OK;
    enum status status = check_config(job, config, outputs, count);
    if (status)
        return status;
    struct source_request source = config_source(config);
    struct cuts_request cuts = {.source = &source,
                                .part = config->part - 1,
                                .parts = config->parts,
                                .max_pixels = config_max_pixels(config),
                                .log = &job->log,
                                .stop = &job->stop.asked};
    status = source_check(&source, &job->log);
    if (!status)
        status = cuts_find(&cuts, &job->span);
    if (!status && cuts.part)
        status = find_size(job, &source);
    if (config->repeatable) // what is made of damage depends on all that was decoded before
        job->span.seek_us = INT64_MIN;
    job->is_part = true;
    job->repeatable = config->repeatable;
    if (status || !outputs->output || sink_is_nowhere(outputs->output))
        return status;
    return begin_part(job, config, outputs);
}

enum status job_part_open(struct sluice_job *job)
{
    if (!job->part)
        return STATUS_OK;
    enum status status = part_open(job->part);
    return status ? status : sink_check(job->sink);
}

// ---- the end ----

bool job_part_is_doubtful(const struct sluice_job *job)
{
    return !job->repeatable &&
           (decoder_damaged_frames(job->decoder) || decoder_damaged_packets(job->decoder));
}

// STATUS_INPUT if the file is another one than the manifest says. One that has gone was read to its end
// nevertheless.
static enum status check_source(const struct sluice_job *job)
{
    static const struct log silent;
    json_t *source = NULL;
    enum status status = manifest_of_source(job->part_input, &silent, &source);
    bool gone = status == STATUS_INPUT && access(job->part_input, F_OK) && errno == ENOENT;
    bool same = gone || (source && json_equal(source, job->part_source));
    json_decref(source);
    if (same || status == STATUS_MEMORY)
        return same ? STATUS_OK : status;
    return log_fail(&job->log, STATUS_INPUT,
                    "%s changed while this part was made of it: the part is not kept",
                    job->source->name);
}

enum status job_part_commit(struct sluice_job *job, const struct sink *sink)
{
    if (!job->part)
        return STATUS_OK;
    enum status status = check_source(job);
    if (status)
        return status;
    json_t *made =
        json_pack("{ss ss ss ss ss ss}", "input", job->part_input, "sluice", sluice_version(),
                  "libavcodec", LIBAVCODEC_IDENT, "decoder", decoder_name(job->decoder), "backend",
                  job_backend(job)->name, "encoder", sink && sink->encoder ? sink->encoder : "");
    struct sluice_ledger ledger = job->ledger;
    ledger.frames_damaged = decoder_damaged_frames(job->decoder);
    ledger.packets_damaged = decoder_damaged_packets(job->decoder);
    struct part_outcome outcome = {.ledger = &ledger,
                                   .time_base = source_video(job->source)->time_base,
                                   .sink = sink,
                                   .first = sink ? job->first_props[0] : NULL,
                                   .truncated = job->truncated,
                                   .repeatable = job->repeatable,
                                   .made = made};
    status = made ? part_commit(job->part, &outcome) : STATUS_MEMORY;
    json_decref(made);
    job->part_made = !status || status == STATUS_EOF; // a stop comes too late
    return status == STATUS_EOF ? STATUS_OK : status;
}

void job_part_end(struct sluice_job *job)
{
    part_destroy(&job->part);
    av_freep(&job->part_output);
    free(job->part_input);
    job->part_input = NULL;
    json_decref(job->part_source);
    job->part_source = NULL;
}
