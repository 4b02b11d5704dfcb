// The files of one muxer: its single file, or those that libavformat opens by itself.
//
//   what is written       when a file gets its name
//   one file              with muxer_files_finish(); live with muxer_files_publish()
//   images                each when the muxer closes it
//   a live playlist       likewise, list and segments
//   a film's playlist     all of them with muxer_files_finish(), the lists last
//
// After a failure no other file gets a name: a live list stays as it was, and names only segments
// that exist; a film leaves nothing, and former files keep their names.
//
// Muxers of playlists rename files by themselves where they see that they are files. A film's files
// have other names until the end, so the muxer sees addresses of no protocol ("whole:film.m3u8").
//
// Thread-safety: one thread, but for the sizes.
#pragma once

#include <libavformat/avio.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/muxer/destination.h"

enum { OPEN_FILES_MAX = 4, OWN_NAMES_MAX = 64 };

// Begins as zeros but for the first three.
struct muxer_files {
    const struct log *log;
    const struct stop *stop; // (optional)
    const struct destination *destination;
    bool whole;   // all get their names at the end; set before the first is opened
    bool failed;  // one could not be written or named; the log has the sentence
    bool blocked; // ... by the disk, which may change
    bool renames; // the muxer was to rename a list, which was not synced since
    struct file *open[OPEN_FILES_MAX]; // one, but a sequence may be about to open the next
    struct held_file *held;            // closed, without names yet
    int helds;
    char *own[OWN_NAMES_MAX]; // the first that were given; lists and the like are written again
    int owns;
    _Atomic int64_t closed_bytes, open_bytes;
};

// Open a file to be written. On failure an AVERROR; the log has the sentence.
int muxer_files_open(struct muxer_files *files, const char *name, AVIOContext **io);

// Close a file that the muxer has written. *error: an AVERROR on failure. False if `io` is none of
// these files.
bool muxer_files_close(struct muxer_files *files, AVIOContext *io, int *error);

// The URL for the muxer, which keeps it from renaming files that are to be named here; the caller
// frees it (av_free()). Back again: muxer_files_name() points into `url`.
char *muxer_files_url(const struct muxer_files *files, const char *name);
const char *muxer_files_name(const char *url);

// The errno of a failed write to an open file; 0: none failed.
int muxer_files_error(const struct muxer_files *files);

// Give the open files their names, as file_publish().
enum status muxer_files_publish(struct muxer_files *files);

// Sync what was written, as file_sync_due(), and the names that a live list has got: after each call of
// the muxer that may have written. Returns an errno; a sentence is logged where `failed` is set.
int muxer_files_sync(struct muxer_files *files);

// Finish all files after the trailer: they are whole, and have their names.
enum status muxer_files_finish(struct muxer_files *files);

// Instead: hand over the one file, held (file_hold()). STATUS_USAGE with a sentence if it is not one
// file, which can be given its name later.
enum status muxer_files_hold(struct muxer_files *files, struct file **file);

// Free everything; what was not finished is removed.
void muxer_files_discard(struct muxer_files *files);

// Bytes written so far, as of the last muxer_files_note_size(). Any thread.
int64_t muxer_files_size(const struct muxer_files *files);
void muxer_files_note_size(struct muxer_files *files);
