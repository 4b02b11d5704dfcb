// Publication: files that belong together get their names, the one that vouches for them last.
//
//   what is on the disk                          what an audit says
//   the former files and their manifest          that it is whole
//   former and new files, and no manifest        that there is no manifest
//   the new files and their manifest             that it is whole
//
// All of them are complete, synced and under hidden names before the first former one goes: what a
// full disk fails at has failed by then, and everything former still stands.
//
// Thread-safety: one thread.
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"

struct file;

// Begins as zeros but for the first two.
struct publication {
    const struct log *log;
    bool overwrite; // as the files were created
    struct file **file;
    int count;
};

// Add a file that is held (file_hold()); *file is taken, and NULL afterwards. The last one vouches
// for the others: the manifest.
enum status publication_add(struct publication *publication, struct file **file);

// Give them their names. STATUS_OUTPUT, with a sentence: nothing has changed, or there is no
// manifest.
enum status publication_commit(struct publication *publication);

// Free it, and remove what has no name yet.
void publication_discard(struct publication *publication);
