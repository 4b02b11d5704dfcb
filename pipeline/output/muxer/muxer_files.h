// The files of one muxer: the one that there is, or those that libavformat opens by itself.
//
//   what is written       when a file gets its name
//   one file              with muxer_files_finish(); of a live source with muxer_files_publish()
//   images                each when the muxer closes it
//   a live playlist       likewise, list and segments
//   a film's playlist     all of them with muxer_files_finish(), the lists last
//
// After a failure no other file gets a name: a live list stays as it was, and names only segments
// that are there. Of a film nothing is left then, and what stood under the names still stands.
//
// Muxers of playlists rename files by themselves where they see that they are files. Those of a
// film have another name until the end, so they are shown addresses of no protocol
// ("whole:film.m3u8").
//
// Thread-safety: one thread, but for the figures.
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
    struct file *open[OPEN_FILES_MAX]; // one, but a sequence may be about to open the next
    struct held_file *held;            // closed, and still without names
    int helds;
    char *own[OWN_NAMES_MAX]; // the first that were given; lists and the like are written again
    int owns;
    _Atomic int64_t closed_bytes, open_bytes;
};

// Open a file to be written. On failure an AVERROR; the log has the sentence.
int muxer_files_open(struct muxer_files *files, const char *name, AVIOContext **io);

// What a muxer wrote there is complete. On failure an AVERROR. False if `io` is none of these
// files.
bool muxer_files_close(struct muxer_files *files, AVIOContext *io, int *error);

// How a muxer is to be shown the name, so that it leaves renaming to us where that is to be; the
// caller frees it (av_free()). Back again: muxer_files_name() points into `url`.
char *muxer_files_url(const struct muxer_files *files, const char *name);
const char *muxer_files_name(const char *url);

// The errno of a write that failed, 0 if none has, in one of those that are open.
int muxer_files_error(const struct muxer_files *files);

// Give the open ones their names, as file_publish().
enum status muxer_files_publish(struct muxer_files *files);

// The muxer has ended: make all whole.
enum status muxer_files_finish(struct muxer_files *files);

// Free everything; what was not finished is removed.
void muxer_files_discard(struct muxer_files *files);

// Bytes written so far, as of the last muxer_files_note_size(). Any thread.
int64_t muxer_files_size(const struct muxer_files *files);
void muxer_files_note_size(struct muxer_files *files);
