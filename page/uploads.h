// Files that visitors send: into the folder of media, or without one into a private folder that
// goes with the page. A file has its name only when it is whole.
//
// Thread-safety: the server's thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { UPLOADS = 2 }; // so many at a time

struct later;

struct uploads {
    const char *media; // (optional) the folder; outlives the uploads
    // Closes removed files, whose bytes take the disk a while; NULL: that is waited for.
    struct later *later;
    int64_t max;           // bytes of each
    char *folder;          // a private one; NULL: there is none yet
    const char *in_use[2]; // (optional) files of it that are the input, or are to be
    int running;
    mode_t mask; // of the files that the process makes
};

// Read the process's mask, which changes it for a moment: before other threads make files.
void uploads_read_mask(struct uploads *uploads);

// One that is under way.
struct upload;

// Begin to take a file of this name. What goes wrong, here or later, upload_finish() says. NULL
// without memory.
struct upload *upload_begin(struct uploads *uploads, const char *name);

// More of it; false: it is refused already.
bool upload_take(struct upload *upload, const char *data, size_t size);

// The file is whole, and gets its name. Returns 0, or the HTTP status with a sentence in `why`.
// Frees the upload.
unsigned upload_finish(struct upload **upload, char *why, size_t size);

// The client has gone: nothing stays. Accepts NULL behind the pointer.
void upload_drop(struct upload **upload);

// Remove the private folder and all in it, if there is one.
void uploads_remove(struct uploads *uploads);
