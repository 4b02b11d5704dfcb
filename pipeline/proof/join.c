// sluice_join(), sluice_join_following(): parts put together.
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/file/path_conflicts.h"
#include "pipeline/part/manifest_writer.h"
#include "pipeline/part/part_folder.h"
#include "pipeline/proof/join_manifest.h"
#include "pipeline/proof/join_text.h"
#include "pipeline/proof/join_video.h"
#include "pipeline/proof/part_set.h"
#include "pipeline/proof/proof_source.h"
#include "pipeline/proof/publication.h"
#include "sluice/sluice.h"

struct joining {
    const struct sluice_config *config;
    const struct log *log;
    const char *file; // that is made
    bool list;        // a list of hashes
    struct part_set set;
    struct source_request source;
    struct manifest_writer *manifest;
    json_t *others; // what the manifest is to say of other streams; NULL: nothing
    struct publication publication;
    struct sluice_joined joined;
};

// The extension and format that parts are made for, as job_part.c notes them.
static enum status check_kind(const struct joining *join)
{
    const json_t *output = json_object_get(join->set.manifest[0].identity, "output");
    const char *made = json_string_value(json_object_get(output, "extension"));
    const char *dot = strrchr(join->file, '.');
    const char *extension = join->list ? "hash" : dot && !strchr(dot, '/') ? dot + 1 : "";
    if (made && !strcmp(made, extension))
        return STATUS_OK;
    return log_fail(join->log, STATUS_USAGE,
                    "the parts were made for an output of kind '%s', and this is '%s'",
                    made ? made : "", extension);
}

// ---- the output ----

static enum status begin_manifest(struct joining *join)
{
    return join_manifest_begin(&join->set, join->file, join->config->overwrite, join->log,
                               &join->manifest);
}

static enum status write_video(struct joining *join, const struct destination *to,
                               struct file **file)
{
    struct join_video_request request = {.set = &join->set,
                                         .source = &join->source,
                                         .to = to,
                                         .options = join->config->output.options,
                                         .log = join->log};
    const struct manifest *first = &join->set.manifest[join->set.filled];
    enum status status = destination_check(to, join->log);
    if (!status)
        status = proof_source_check(&join->source, first, join->file, join->log);
    if (!status)
        status = begin_manifest(join);
    request.manifest = join->manifest;
    return status ? status : join_video(&request, file, &join->others, &join->joined.truncated);
}

static enum status join_file(struct joining *join, struct file **file)
{
    struct destination to = {0};
    struct destination_request request = {.name = join->file,
                                          .format = join->config->output.format,
                                          .overwrite = join->config->overwrite};
    enum status status = destination_init(&request, join->log, &to);
    if (!status)
        status = write_video(join, &to, file);
    destination_finish(&to);
    return status;
}

static enum status join_list(struct joining *join, struct file **file)
{
    int next = 0;
    enum status status = join_text_check(join->file, join->config->overwrite, join->log);
    if (!status)
        status = begin_manifest(join);
    if (!status)
        status = join_manifest_add(&join->set, &next, join->manifest);
    if (!status)
        status = join_text(&join->set, part_file_frames, join->file, join->config->overwrite,
                           join->log, file);
    return status;
}

static enum status finish_manifest(struct joining *join, const struct file *output,
                                   struct file **manifest)
{
    const struct join_manifest_output written = {.list = join->list ? output : NULL,
                                                 .others = join->others};
    return join_manifest_finish(&join->set, &written, &join->joined, join->log, &join->manifest,
                                manifest);
}

// Write all files, without their names.
static enum status write_files(struct joining *join)
{
    struct file *file = NULL, *manifest = NULL;
    enum status status = join->list ? join_list(join, &file) : join_file(join, &file);
    if (!status)
        status = join_reports(&join->set, &join->publication);
    if (!status)
        status = finish_manifest(join, file, &manifest);
    if (!status)
        status = publication_add(&join->publication, &file);
    if (!status)
        status = publication_add(&join->publication, &manifest);
    file_discard(&file);
    file_discard(&manifest);
    return status;
}

// ---- names ----

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
static enum status check_conflicts(struct joining *join)
{
    const struct chain none = {0};
    const json_t *reports = json_object_get(join->set.manifest[0].identity, "reports");
    struct path_conflicts *conflicts;
    char *manifest = av_asprintf("%s.manifest", join->file);
    enum status status = path_conflicts_create(&conflicts);
    if (!status && !manifest)
        status = STATUS_MEMORY;
    if (!status)
        status = path_conflicts_add_input(conflicts, join->source.name);
    if (!status)
        status = path_conflicts_add_output(conflicts, &none, join->file, join->log);
    if (!status)
        status = path_conflicts_add_output(conflicts, &none, manifest, join->log);
    for (size_t k = 0; k < json_array_size(reports) && !status; k++)
        status = reserve_report(join, conflicts, json_array_get(reports, k));
    path_conflicts_destroy(&conflicts);
    av_free(manifest);
    return status;
}

// ---- all of it ----

static enum status read_names(struct joining *join, const struct part_set_request *request)
{
    const char *name = join->config->output.name;
    if (!name || !*name)
        return log_fail(join->log, STATUS_USAGE, "no output is named");
    join->list = !strncmp(name, "hash:", 5);
    join->file = url_plain(join->list ? name + 5 : name, true);
    if (file_is_in_place(join->file))
        return log_fail(join->log, STATUS_USAGE,
                        "join writes a file, with its manifest beside it; '%s' is none", name);
    join->publication.log = join->log;
    join->publication.overwrite = join->config->overwrite;
    return part_set_init(request, &join->set);
}

// Read as many parts as there have to be before anything is written: where they are followed the
// first of a video that has frames, otherwise all.
static enum status read_parts(struct joining *join)
{
    struct part_set *set = &join->set;
    bool follows = set->request.await && !join->list;
    enum status status = follows ? part_set_need_filled(set) : part_set_finish(set);
    bool filled = set->filled < set->count;
    if (!status && !filled)
        status = part_set_finish(set);
    if (status)
        return status;
    join->source = proof_source(join->config, &set->manifest[filled ? set->filled : 0]);
    status = check_conflicts(join);
    if (!status && !filled)
        status = log_fail(join->log, STATUS_INPUT, "no part has a frame: there is nothing to join");
    return status;
}

// Write all files when all parts are known, after what was begun before did not fit them.
static enum status write_again(struct joining *join)
{
    log_print(join->log, LOG_DEBUG,
              "a later part's frames are further out of order than those of "
              "the first: they are joined once all parts are there");
    manifest_writer_destroy(&join->manifest);
    enum status status = part_set_finish(&join->set);
    return status ? status : write_files(join);
}

static enum status run(struct joining *join, const struct part_set_request *request)
{
    enum status status = read_names(join, request);
    if (!status)
        status = read_parts(join);
    if (!status)
        status = join_reports_check(&join->set, &join->publication);
    if (!status)
        status = check_kind(join);
    if (!status)
        status = write_files(join);
    if (status == STATUS_AGAIN)
        status = write_again(join);
    return status ? status : publication_commit(&join->publication);
}

static void finish(struct joining *join)
{
    publication_discard(&join->publication);
    manifest_writer_destroy(&join->manifest);
    json_decref(join->others);
    part_set_free(&join->set);
}

static enum sluice_status join_parts(const struct sluice_config *given,
                                     const struct part_set_request *parts,
                                     struct sluice_joined *joined)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    struct joining join = {.config = &config, .log = &log};
    enum status status = config_read(given, &config, &target, &log);
    struct part_set_request request = *parts;
    request.log = &log;
    if (!status)
        status = run(&join, &request);
    log_memory(&log, status);
    if (joined && !sized_write(joined, &join.joined, sizeof join.joined))
        status = STATUS_USAGE;
    finish(&join);
    return (enum sluice_status)status;
}

enum sluice_status sluice_join(const struct sluice_config *config, const char *const *parts,
                               struct sluice_joined *joined)
{
    struct part_set_request request = {.folders = parts};
    return join_parts(config, &request, joined);
}

enum sluice_status sluice_join_following(const struct sluice_config *config,
                                         const char *const *parts,
                                         bool (*await)(void *opaque, int part), void *opaque,
                                         struct sluice_joined *joined)
{
    struct part_set_request request = {.folders = parts, .await = await, .opaque = opaque};
    return join_parts(config, &request, joined);
}
