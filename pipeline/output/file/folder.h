// The folders that outputs stand in. A file that is synced is safe, but not its name: an entry that is
// made, renamed or removed is safe once its folder is synced.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/status.h"

// The folder in which `name` stands.
void folder_of(const char *name, char *folder, size_t size);

// Sync a folder, or that in which `name` stands. STATUS_OUTPUT with a sentence if that failed. File
// systems that cannot, and folders that may not be read, are no failures.
enum status folder_sync(const char *folder, const struct log *log);
enum status folder_sync_of(const char *name, const struct log *log);

// Rename a file without replacing another, also where the file system cannot do it at once. Returns an errno.
int folder_rename_new(const char *from, const char *to);

// Remove a regular file, so that it stays away behind a power cut; of a symbolic link its target. Nothing if
// there is none. STATUS_OUTPUT with a sentence.
enum status folder_remove(const char *name, const struct log *log);

// Make a folder, if it is not there, whose name is safe then. Whether it is there shows when it is used.
enum status folder_make(const char *folder, const struct log *log);
