// An asynchronous file: records of frames, on their way into one file, or two that belong together,
// by a thread of its own.
//
// A record is what is reported of one frame. A file that waits holds up whoever writes while the
// disk is slow: that of a job which reads a file. One that skips never does: it leaves out records,
// each of them whole.
//
// Records travel in blocks, which are used again and again. A block has one owner at any moment:
//
//   state     owner             leaves this state when
//   FREE      the file          something is written, and the queue has room
//   FILLING   writing thread    the record is complete; of a file that waits, or the block is full
//   QUEUED    queue             its turn has come
//   EMPTYING  file's thread     it is on the disk
//
// Blocks keep their memory for the next record. A file that waits holds a few of a fixed size; one
// that skips holds as much as budget_records, and two records more.
#pragma once

#include <libavformat/avio.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"

enum { ASYNC_FILES = 2 };

struct async_file;

struct async_file_request {
    const char *name[ASYNC_FILES]; // must outlive it; the second NULL: there is one
    bool overwrite;
    bool live;               // it skips, and the files grow in place, record by record
    const struct log *log;   // must outlive it
    const struct stop *stop; // (optional) as of file_create()
};

// Create the files and start the thread. On success the caller owns *async.
enum status async_file_create(const struct async_file_request *request, struct async_file **async);

// Free it: what was not finished leaves no trace, and no reader is waited for. Accepts NULL behind
// the pointer, leaves NULL.
void async_file_destroy(struct async_file **async);

// ---- the writing thread ----

// Where this record goes in file number `file`, waiting while one that waits has
// no room. NULL: nowhere, as it is left out or the file has failed; that counts for the whole
// record. Positions are those in the file. `bytes` says when records have another size than those
// before.
AVIOContext *async_file_io(struct async_file *async, int file, int64_t bytes);

// The record is complete, if anything was written. STATUS_MEMORY: it could not be kept.
enum status async_file_next(struct async_file *async);

// There are no more. `tail` (optional, static) comes last, into the last file. Returns at once.
void async_file_close(struct async_file *async, const char *tail);

// After that: wait until all is written, for readers of pipes until `until_ns` of CLOCK_MONOTONIC,
// and make the files whole. Its failure, if it had one.
enum status async_file_finish(struct async_file *async, int64_t until_ns);

// ---- figures. Any thread ----

// Bytes of the first file, and records that were written and are not in it: left out because
// it was slow, or a stop did not wait for its reader.
int64_t async_file_bytes(const struct async_file *async);
int64_t async_file_dropped(const struct async_file *async);

// How much memory one may take whose records are of so many bytes and text.
int64_t async_file_memory(bool live, int64_t record_bytes);
