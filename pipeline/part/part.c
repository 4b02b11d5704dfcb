#define _GNU_SOURCE
#include "pipeline/part/part.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libavutil/random_seed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/file/folder.h"
#include "pipeline/output/sink.h"
#include "pipeline/part/manifest.h"
#include "pipeline/part/manifest_writer.h"
#include "pipeline/part/part_folder.h"
#include "sluice/sluice.h"

struct edge {
    bool seen;
    int64_t pts;
    char hash[FRAME_HASH_TEXT];
};

struct part {
    const struct log *log;
    char *name;   // of the folder, in the end
    char *hidden; // of the folder, until then; NULL: it has gone, or got its name
    bool overwrite;
    json_t *identity;
    struct edge edge[2];
    int64_t disorder; // frames that came out of order
    struct manifest_writer *writer;
    char root[HASH_TREE_TEXT]; // of the frames, at the end
};

// ---- names ----

static char *folder_name(const struct part_request *request)
{
    const char *output = request->output;
    if (!strncmp(output, "hash:", 5))
        output += 5;
    return av_asprintf("%s.part-%d-of-%d", output, request->part + 1, request->parts);
}

char *part_file(const struct part *part, const char *name)
{
    return part_folder_file(part->hidden, name);
}

const char *part_name(const struct part *part)
{
    return part->name;
}

// ---- a part that is there ----

// Read the manifest of the part that is there.
static enum status read_present(const struct part *part, const struct log *log,
                                struct manifest *manifest)
{
    char *file = part_folder_file(part->name, part_file_manifest);
    if (!file)
        return STATUS_MEMORY;
    enum status status = manifest_read(file, log, manifest);
    free(file);
    return status;
}

static enum status check_present(const struct part *part)
{
    const struct log silence = {0};
    struct manifest present;
    struct stat about;
    if (part->overwrite || stat(part->name, &about))
        return STATUS_OK;
    enum status status = read_present(part, &silence, &present);
    const char *what = NULL;
    bool same = !status && json_equal(present.identity, part->identity);
    if (!status && !same)
        manifest_is_alike(present.identity, part->identity, &what);
    if (same)
        log_print(part->log, LOG_INFO, "%s is there already, made of the same: nothing to do",
                  part->name);
    else if (what)
        log_print(part->log, LOG_ERROR, "%s is there, and its %s is another; -y replaces it",
                  part->name, what);
    else
        log_print(part->log, LOG_ERROR, "%s is there, and is not this part; -y replaces it",
                  part->name);
    manifest_free(&present);
    // Whoever made it may not have come to that.
    if (same && folder_sync_of(part->name, part->log))
        return STATUS_OUTPUT;
    return status == STATUS_MEMORY ? status : same ? STATUS_EOF : STATUS_OUTPUT;
}

// ---- life ----

// Choose a hidden name that nobody else has, in all likelihood; mkdir() takes none that is there.
static enum status choose_hidden(struct part *part)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    part->hidden = part_folder_hidden(part->name);
    if (!part->hidden)
        return STATUS_MEMORY;
    for (char *end = part->hidden + strlen(part->hidden), *at = end - 6; at < end; at++)
        *at = letters[av_get_random_seed() % (sizeof letters - 1)];
    return STATUS_OK;
}

static enum status refuse_folder(const struct part *part, int error)
{
    return log_fail(part->log, STATUS_OUTPUT, "no folder can be made beside %s: %s", part->name,
                    strerror(error));
}

// Check early what can be checked without making anything.
static enum status check_parent(const struct part *part)
{
    char parent[4096];
    folder_of(part->name, parent, sizeof parent);
    return access(parent, W_OK | X_OK) ? refuse_folder(part, errno) : STATUS_OK;
}

static enum status begin_manifest(struct part *part)
{
    char *file = part_file(part, part_file_manifest);
    struct manifest_writer_request request = {
        .name = file, .identity = part->identity, .log = part->log};
    enum status status = file ? manifest_writer_create(&request, &part->writer) : STATUS_MEMORY;
    free(file);
    return status;
}

static enum status begin(struct part *part, const struct part_request *request)
{
    part->name = folder_name(request);
    if (!part->name)
        return STATUS_MEMORY;
    enum status status = check_present(part);
    if (!status)
        status = check_parent(part);
    return status ? status : choose_hidden(part);
}

enum status part_open(struct part *part)
{
    // mkdtemp() would let nobody else in.
    return mkdir(part->hidden, 0777) ? refuse_folder(part, errno) : begin_manifest(part);
}

enum status part_create(const struct part_request *request, struct part **part)
{
    assert(request->parts > 0 && request->part >= 0 && request->part < request->parts);
    *part = calloc(1, sizeof **part);
    if (!*part)
        return STATUS_MEMORY;
    (*part)->log = request->log;
    (*part)->overwrite = request->overwrite;
    (*part)->identity = json_incref(request->identity);
    enum status status = begin(*part, request);
    if (status)
        part_destroy(part);
    return status;
}

void part_destroy(struct part **part)
{
    if (!*part)
        return;
    struct part *old = *part;
    manifest_writer_destroy(&old->writer);
    if (old->hidden)
        sluice_remove_part(old->hidden);
    json_decref(old->identity);
    free(old->hidden);
    av_free(old->name);
    free(old);
    *part = NULL;
}

void part_discard(const struct part *part)
{
    if (part->hidden)
        sluice_remove_part(part->hidden);
}

// ---- frames ----

enum status part_note_edge(struct part *part, enum part_edge edge, const AVFrame *frame)
{
    struct edge *to = &part->edge[edge];
    if (to->seen && frame->pts >= to->pts)
        return STATUS_OK;
    to->seen = true;
    to->pts = frame->pts;
    return frame_hash_samples(frame, to->hash);
}

void part_note_disorder(struct part *part)
{
    part->disorder++;
}

enum status part_note_frame(struct part *part, const AVFrame *frame)
{
    struct manifest_frame noted = {.pts = frame->pts};
    enum status status = frame_hash(frame, noted.hash);
    return status ? status : manifest_writer_add(part->writer, &noted);
}

// ---- the end ----

static json_t *edge_json(const struct edge *edge)
{
    return edge->seen ? json_pack("{sI ss}", "pts", (json_int_t)edge->pts, "hash", edge->hash)
                      : json_null();
}

// What the end says of the encoded video.
static enum status add_encoded(json_t *end, const struct sink_encoded *encoded)
{
    json_t *video = manifest_of_video(encoded->codec);
    if (!video)
        return STATUS_MEMORY;
    enum status status = manifest_add(
        video, json_pack("{so so sb sb}", "time_base", manifest_of_ratio(encoded->time_base),
                         "frame_rate", manifest_of_ratio(encoded->frame_rate), "global_header",
                         encoded->global_header, "rotated", encoded->rotated));
    if (!status)
        status = manifest_add(
            end, json_pack("{sI sO}", "shift_us", (json_int_t)encoded->shift, "video", video));
    json_decref(video);
    return status;
}

// The hash of every other file of the folder.
static enum status add_files(const struct part *part, json_t *end)
{
    json_t *files = json_object();
    DIR *list = opendir(part->hidden);
    const struct dirent *entry;
    enum status status = files && list ? STATUS_OK : STATUS_MEMORY;
    while (!status && (entry = readdir(list))) {
        char *file = *entry->d_name == '.' || !strcmp(entry->d_name, part_file_video)
                         ? NULL
                         : part_file(part, entry->d_name);
        json_t *about = NULL;
        if (file)
            status = manifest_of_file(file, part->log, &about);
        if (about && json_object_set_new(files, entry->d_name, about))
            status = STATUS_MEMORY;
        free(file);
    }
    if (list)
        closedir(list);
    bool added = !json_object_set_new(end, "files", files);
    return status || added ? status : STATUS_MEMORY;
}

static enum status make_end(const struct part *part, const struct part_outcome *outcome,
                            json_t **end)
{
    *end = json_pack("{sI sb sb so so so so sO}", "disorder", (json_int_t)part->disorder,
                     "truncated", outcome->truncated, "repeatable", outcome->repeatable,
                     "time_base", manifest_of_ratio(outcome->time_base), "first",
                     edge_json(&part->edge[PART_FIRST]), "next", edge_json(&part->edge[PART_NEXT]),
                     "ledger", manifest_of_ledger(outcome->ledger), "made", outcome->made);
    if (!*end)
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    if (outcome->first)
        status = manifest_add(*end, json_pack("{ss si}", "pixel",
                                              av_get_pix_fmt_name(outcome->first->format), "range",
                                              (int)outcome->first->color_range));
    if (!status)
        status = add_files(part, *end);
    bool encoded = outcome->sink && outcome->sink->encoded.codec;
    return !status && encoded ? add_encoded(*end, &outcome->sink->encoded) : status;
}

static enum status finish_manifest(struct part *part, const struct part_outcome *outcome)
{
    json_t *end = NULL;
    struct file *file = NULL;
    const struct sink_encoded *encoded = outcome->sink ? &outcome->sink->encoded : NULL;
    char *video = part_file(part, part_file_video);
    enum status status = video ? STATUS_OK : STATUS_MEMORY;
    if (!status && encoded && encoded->codec)
        status = manifest_writer_read(part->writer,
                                      &(struct manifest_video_file){.name = video,
                                                                    .time_base = encoded->time_base,
                                                                    .shift_us = encoded->shift});
    if (!status)
        status = make_end(part, outcome, &end);
    manifest_writer_root(part->writer, part->root);
    if (!status)
        status = manifest_writer_finish(&part->writer, end, &file);
    if (!status)
        status = file_commit(&file);
    json_decref(end);
    free(video);
    return status;
}

// Somebody else has given the folder its name.
static enum status yield_to_present(struct part *part)
{
    struct manifest present;
    enum status status = read_present(part, part->log, &present);
    const char *said = status ? NULL : json_string_value(json_object_get(present.end, "root"));
    bool same = said && !strcmp(said, part->root) && json_equal(present.identity, part->identity);
    if (same)
        log_print(part->log, LOG_INFO,
                  "%s was made by another meanwhile, with the same frames: this one is not needed",
                  part->name);
    else if (!status)
        log_print(part->log, LOG_ERROR, "%s was made by another meanwhile, and is not the same",
                  part->name);
    manifest_free(&present);
    if (same && folder_sync_of(part->name, part->log))
        return STATUS_OUTPUT;
    return same ? STATUS_EOF : status ? status : STATUS_OUTPUT;
}

// Take the place of a part that is there, which is removed once that is safe. False: there was none,
// or the file system cannot exchange names.
static bool exchange(struct part *part, enum status *status)
{
    if (renameat2(AT_FDCWD, part->hidden, AT_FDCWD, part->name, RENAME_EXCHANGE))
        return false;
    *status = folder_sync_of(part->name, part->log);
    if (!*status)
        sluice_remove_part(part->hidden);
    free(part->hidden);
    part->hidden = NULL;
    return true;
}

enum status part_commit(struct part *part, const struct part_outcome *outcome)
{
    enum status status = finish_manifest(part, outcome);
    if (status)
        return status;
    status = folder_sync(part->hidden, part->log);
    if (status || (part->overwrite && exchange(part, &status)))
        return status;
    if (part->overwrite)
        sluice_remove_part(part->name);
    if (rename(part->hidden, part->name)) {
        if (errno == EEXIST || errno == ENOTEMPTY)
            return yield_to_present(part);
        return log_fail(part->log, STATUS_OUTPUT, "%s cannot be named: %s", part->name,
                        strerror(errno));
    }
    free(part->hidden);
    part->hidden = NULL;
    return folder_sync_of(part->name, part->log);
}
