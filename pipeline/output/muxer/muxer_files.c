#include "pipeline/output/muxer/muxer_files.h"

#include <errno.h>
#include <libavutil/avstring.h>
#include <libavutil/error.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/file/folder.h"

static const char whole_scheme[] = "whole:";

struct held_file {
    char *name;
    struct file *file;
    bool named;
};

// ---- names ----

char *muxer_files_url(const struct muxer_files *files, const char *name)
{
    // With a folder, since muxers look for the last slash.
    return av_asprintf("%s%s%s", files->whole ? whole_scheme : "",
                       files->whole && !strchr(name, '/') ? "./" : "", name);
}

const char *muxer_files_name(const char *url)
{
    const char *name = url;
    if (av_strstart(url, whole_scheme, &name))
        av_strstart(name, "./", &name);
    else
        av_strstart(url, "file:", &name);
    return name;
}

// Lists get their names after the segments that they list.
static bool is_list(const char *name)
{
    return av_match_ext(name, "m3u8,mpd");
}

static bool is_own(const struct muxer_files *files, const char *name)
{
    for (int k = 0; k < files->owns; k++)
        if (!strcmp(files->own[k], name))
            return true;
    return false;
}

static enum status note_own(struct muxer_files *files, const char *name)
{
    if (is_own(files, name) || files->owns >= OWN_NAMES_MAX)
        return STATUS_OK;
    files->own[files->owns] = strdup(name);
    if (!files->own[files->owns])
        return STATUS_MEMORY;
    files->owns++;
    return STATUS_OK;
}

// True of a file that the muxer renames by itself.
static bool is_renamed(const struct muxer_files *files, const char *name)
{
    size_t length = strlen(name);
    return destination_is_playlist(files->destination) && length > 4 &&
           !strcmp(name + length - 4, ".tmp");
}

// The name that a file of a playlist has in the end: without the ".tmp" of a muxer that expects to
// rename it.
static char *final_name(const struct muxer_files *files, const char *name)
{
    size_t length = strlen(name);
    return strndup(name, is_renamed(files, name) ? length - 4 : length);
}

// ---- opening ----

static enum status check_name(const struct muxer_files *files, const char *name)
{
    const struct destination *destination = files->destination;
    if (av_strstart(name, "crypto:", NULL))
        return log_fail(files->log, STATUS_USAGE, "%s: segments cannot be encrypted",
                        destination->shown);
    // Others are checked before anything is opened, or when they get their names.
    if (!destination_is_playlist(destination) || is_own(files, name))
        return STATUS_OK;
    enum status status = file_check(name, destination->overwrite, files->log);
    return status ? status : destination_check_conflicts(destination, name, files->log);
}

// Log that there was no memory, as the muxer knows errors of files only.
static enum status note_memory(const struct muxer_files *files, const char *name,
                               enum status status)
{
    return status == STATUS_MEMORY
               ? log_fail(files->log, status, "%s could not be written: out of memory", name)
               : status;
}

static enum status open_in(struct muxer_files *files, const char *name, struct file **file)
{
    char *final = final_name(files, name);
    if (!final)
        return STATUS_MEMORY;
    enum status status = check_name(files, final);
    // The final name has been checked.
    bool playlist = destination_is_playlist(files->destination);
    bool overwrite = files->destination->overwrite ||
                     (playlist && (strcmp(name, final) != 0 || is_own(files, final)));
    if (!status && playlist)
        status = note_own(files, final);
    if (!status)
        status = file_create(files->whole ? final : name, overwrite, files->log, files->stop, file);
    free(final);
    return status;
}

int muxer_files_open(struct muxer_files *files, const char *name, AVIOContext **io)
{
    int free_one = 0;
    while (free_one < OPEN_FILES_MAX && files->open[free_one])
        free_one++;
    if (files->failed)
        return AVERROR(EIO);
    if (free_one == OPEN_FILES_MAX)
        return AVERROR(EMFILE);
    files->failed = note_memory(files, name, open_in(files, name, &files->open[free_one]));
    if (files->failed)
        return AVERROR(EIO);
    *io = file_io(files->open[free_one]);
    return 0;
}

// ---- closing ----

// Hold a file without a name until the end, in the place of an earlier one of that name.
static enum status hold(struct muxer_files *files, struct file **file)
{
    const char *name = file_name(*file);
    struct held_file *held = NULL;
    for (int k = 0; k < files->helds; k++)
        if (!strcmp(files->held[k].name, name))
            held = &files->held[k];
    if (!held) {
        struct held_file *list =
            realloc(files->held, (size_t)(files->helds + 1) * sizeof *files->held);
        if (!list)
            return STATUS_MEMORY;
        files->held = list;
        held = &list[files->helds];
        *held = (struct held_file){.name = strdup(name)};
        if (!held->name)
            return STATUS_MEMORY;
        files->helds++;
    }
    file_discard(&held->file);
    held->file = *file;
    *file = NULL;
    return file_hold(held->file);
}

// True if a file is the empty twin of one that was written: HLS's muxer opens a single file twice,
// and writes into one of them.
static bool is_idle_twin(const struct muxer_files *files, const struct file *file)
{
    bool written =
        !files->whole && is_own(files, file_name(file)) && !access(file_name(file), F_OK);
    for (int k = 0; k < files->helds && !written; k++)
        written = !strcmp(files->held[k].name, file_name(file));
    return written && !file_size(file) && !file_error(file);
}

bool muxer_files_close(struct muxer_files *files, AVIOContext *io, int *error)
{
    struct file **file = NULL;
    for (int k = 0; k < OPEN_FILES_MAX; k++)
        if (files->open[k] && file_io(files->open[k]) == io)
            file = &files->open[k];
    if (!file)
        return false;
    avio_flush(io);
    files->closed_bytes += file_size(*file);
    files->open_bytes = 0;
    files->renames |= is_renamed(files, file_name(*file));
    if (files->failed || is_idle_twin(files, *file))
        file_discard(file);
    else if (note_memory(files, files->destination->shown,
                         files->whole ? hold(files, file) : file_commit(file)))
        files->failed = files->blocked = true; // not every muxer passes the error on
    *error = files->failed ? AVERROR(EIO) : 0;
    return true;
}

// ---- the end ----

int muxer_files_error(const struct muxer_files *files)
{
    for (int k = 0; k < OPEN_FILES_MAX; k++)
        if (files->open[k] && file_error(files->open[k]))
            return file_error(files->open[k]);
    return 0;
}

enum status muxer_files_publish(struct muxer_files *files)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < OPEN_FILES_MAX && !status; k++)
        if (files->open[k])
            status = file_publish(files->open[k]);
    files->blocked |= status == STATUS_OUTPUT;
    return status;
}

int muxer_files_sync(struct muxer_files *files)
{
    int error = 0;
    for (int k = 0; k < OPEN_FILES_MAX && !error; k++)
        if (files->open[k])
            error = file_sync_due(files->open[k]);
    bool renamed = files->renames && !files->failed;
    files->renames = false;
    if (!error && renamed && folder_sync_of(files->destination->name, files->log)) {
        files->failed = files->blocked = true;
        error = EIO;
    }
    return error;
}

// Name the files that are held: lists, or all others. All are in the folder of the playlist.
static enum status name_held(struct muxer_files *files, bool lists)
{
    enum status status = STATUS_OK;
    bool named = false;
    for (int k = 0; k < files->helds && !status; k++)
        if (is_list(files->held[k].name) == lists) {
            status = file_commit(&files->held[k].file);
            files->held[k].named = !status;
            named = true;
        }
    return !status && named ? folder_sync_of(files->destination->name, files->log) : status;
}

// Remove what has its name already: without the rest it is of no use. With all of them named, and a folder
// that could not be synced, they stay, as a single file does.
static void unname_held(struct muxer_files *files)
{
    bool all = true;
    for (int k = 0; k < files->helds; k++)
        all &= files->held[k].named;
    for (int k = 0; k < files->helds && !all; k++)
        if (files->held[k].named)
            unlink(files->held[k].name);
}

// Do all that may fail before any file gets its name: one that must stay is in the way, a full disk has
// no room for the names of what replaces other files.
static enum status prepare_held(const struct muxer_files *files)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < files->helds && files->destination->overwrite && !status; k++)
        status = file_stage(files->held[k].file);
    for (int k = 0; k < files->helds && !status; k++)
        status = file_check(files->held[k].name, files->destination->overwrite, files->log);
    return status;
}

// Remove the lists that are replaced: they would name segments of both.
static enum status remove_old_lists(const struct muxer_files *files)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < files->helds && files->destination->overwrite && !status; k++)
        if (is_list(files->held[k].name))
            status = folder_remove(files->held[k].name, files->log);
    return status;
}

static enum status finish_held(struct muxer_files *files)
{
    enum status status = prepare_held(files);
    if (!status)
        status = remove_old_lists(files);
    if (status)
        return status;
    status = name_held(files, false);
    if (!status)
        status = name_held(files, true);
    if (status)
        unname_held(files);
    return status;
}

enum status muxer_files_finish(struct muxer_files *files)
{
    enum status status = files->failed ? STATUS_OUTPUT : STATUS_OK;
    if (!status && files->whole)
        status = finish_held(files);
    if (!status && files->open[0]) {
        avio_flush(file_io(files->open[0]));
        muxer_files_note_size(files);
        status = file_commit(&files->open[0]);
    }
    files->blocked |= status == STATUS_OUTPUT;
    files->failed |= status != STATUS_OK;
    return status;
}

enum status muxer_files_hold(struct muxer_files *files, struct file **file)
{
    struct file *only = files->open[0];
    if (files->failed)
        return STATUS_OUTPUT;
    if (!only || !*file_temporary(only))
        return log_fail(files->log, STATUS_USAGE, "%s is not one file with a name of its own",
                        files->destination->shown);
    avio_flush(file_io(only));
    muxer_files_note_size(files);
    enum status status = file_hold(only);
    files->blocked |= status == STATUS_OUTPUT;
    files->failed |= status != STATUS_OK;
    if (status)
        return status;
    *file = only;
    files->open[0] = NULL;
    return STATUS_OK;
}

void muxer_files_discard(struct muxer_files *files)
{
    for (int k = 0; k < OPEN_FILES_MAX; k++)
        file_discard(&files->open[k]);
    for (int k = 0; k < files->helds; k++) {
        file_discard(&files->held[k].file);
        free(files->held[k].name);
    }
    for (int k = 0; k < files->owns; k++)
        free(files->own[k]);
    free(files->held);
    files->held = NULL;
    files->helds = files->owns = 0;
}

int64_t muxer_files_size(const struct muxer_files *files)
{
    return files->closed_bytes + files->open_bytes;
}

void muxer_files_note_size(struct muxer_files *files)
{
    if (files->open[0])
        files->open_bytes = file_size(files->open[0]);
}
