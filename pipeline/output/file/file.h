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

// Whether `name` may be written: its folder exists and takes files, it is no folder, and no file of
// that name is there unless `overwrite`. Of a symbolic link it is what the link leads to that
// counts, and that is written. STATUS_OUTPUT with a sentence otherwise. Creates nothing.
enum status file_check(const char *name, bool overwrite, const struct log *log);

// Begin to write `name`; "-" is standard output, and "/dev/fd/3" and the like are what is open
// there, written in place. On success the caller owns *file.
//
// `stop` (optional) must outlive the file: once it is late, writes to a pipe that is full fail with
// ECANCELED instead of waiting for its reader.
enum status file_create(const char *name, bool overwrite, const struct log *log,
                        const struct stop *stop, struct file **file);

// Let nobody but the owner read it, unless it replaces a file: that one's permissions are kept.
// Before anything is written.
void file_hide(struct file *file);

// The bytes' way into the file; the file's, seekable when the file is.
AVIOContext *file_io(const struct file *file);

// What to call the unfinished file when it has to be opened again for reading.
const char *file_temporary(const struct file *file);

// Give the file its name now, for readers that do not wait and for what may end the process: it
// grows in place from here on, on the disk to within a second. file_commit() then has only to make
// the rest safe, and file_discard() leaves what is there.
enum status file_publish(struct file *file);

// Set a finished file aside, safely stored but without its name, which file_commit() gives it
// later; the folder is file_sync_folder()'s then. Of many only so many keep a descriptor as are no
// burden; the others have hidden names meanwhile. Nothing more can be written.
enum status file_hold(struct file *file);

// What the file will be called.
const char *file_name(const struct file *file);

// Make the names in the folder of a file safe.
void file_sync_folder(const char *name);

// Finish: STATUS_OUTPUT and nothing under the name unless every byte is safely stored. Frees *file
// either way.
enum status file_commit(struct file **file);

// Wait for no reader any more, as when the stop is late. Any thread, while the file is there.
void file_cancel(struct file *file);

// Give up: the temporary is removed. Frees *file; accepts NULL behind it.
void file_discard(struct file **file);

// Bytes written so far, and whether a write has failed: its errno, 0 if none.
int64_t file_size(const struct file *file);
int file_error(const struct file *file);
