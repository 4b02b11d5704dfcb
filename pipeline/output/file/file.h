// An output file that is whole or absent.
//
// (file_publish() is for outputs that must be there before they are whole.)
//
// Bytes go to a file without a name in the same folder (O_TMPFILE of open(2)), which vanishes with
// the process whatever ends it; where the file system has no such thing, to a hidden temporary
// name. file_commit() checks every write, syncs, and gives the file its name; until then what stood
// there still stands. Pipes, devices and standard output have no name to give and are written in
// place.
#pragma once

#include <libavformat/avio.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"

struct file;

// Check that `name` may be written: its folder exists and takes files, it is no folder, and no such
// file exists unless `overwrite`. A symbolic link stands for its target, which is written.
// STATUS_OUTPUT with a sentence otherwise. Creates nothing.
enum status file_check(const char *name, bool overwrite, const struct log *log);

// True if `name` is written in place: standard output, a descriptor, or a pipe or device that is there.
bool file_is_in_place(const char *name);

// Create a file to be called `name`; "-" is standard output, and "/dev/fd/3" and the like are
// descriptors, written in place. On success the caller owns *file.
//
// `stop` (optional) must outlive the file: once it is late, writes to a full pipe fail with
// ECANCELED instead of waiting for its reader.
enum status file_create(const char *name, bool overwrite, const struct log *log,
                        const struct stop *stop, struct file **file);

// Make the file readable by its owner only, unless it replaces a file: permissions are kept then.
// Before anything is written.
void file_hide(struct file *file);

// The file's AVIOContext, seekable if the file is. The file owns it.
AVIOContext *file_io(const struct file *file);

// The URL by which the file is opened for reading before it has its name; "": it cannot be.
const char *file_temporary(const struct file *file);

// Publish: give the file its name now, for readers that do not wait, and in case the process is
// killed. What is written by then is safe first. It grows in place from here on: file_sync_due() is
// called then, as another file_publish() does. file_commit() then only syncs the rest, and
// file_discard() leaves the file.
enum status file_publish(struct file *file);

// Sync what a published file was given, unless that was done within half a second. Called whenever
// what was written can be read by itself, so that at most a second is lost to a power cut where there
// is such an end every second. Returns an errno, which is file_error() then.
int file_sync_due(struct file *file);

// Hold a finished file, synced but without its name, until file_commit(); the caller calls
// folder_sync_of() then (folder.h). Nothing more can be written. When descriptors run short it has a hidden
// name meanwhile.
enum status file_hold(struct file *file);

// Stage a held file: give it a hidden name, so that file_commit() is a rename, for which a full disk
// has room. STATUS_OUTPUT with a sentence otherwise.
enum status file_stage(struct file *file);

// The file's name in the end.
const char *file_name(const struct file *file);

// Finish: STATUS_OUTPUT and nothing under the name unless every byte is safely stored. Where all is
// but the name, whose folder could not be synced, STATUS_OUTPUT, and the file stays. Frees *file either
// way.
enum status file_commit(struct file **file);

// Cancel: do not wait for a reader any more. Any thread, before the file is freed.
void file_cancel(struct file *file);

// Discard: remove the temporary. Frees *file; accepts NULL behind it.
void file_discard(struct file **file);

// Bytes written so far; the errno of the first write that failed, 0 if none.
int64_t file_size(const struct file *file);
int file_error(const struct file *file);
