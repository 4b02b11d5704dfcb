// A spool: what is told of frames, on its way into a file, or two that belong together, in a thread
// of its own.
//
// What is told of one frame is a record. A spool that waits holds up whoever writes while its file
// is slow: that of a job which reads a file. One that skips never does: it leaves out records,
// each of them whole.
//
// Records travel on sheets, which are used again and again. A sheet has one owner at any moment:
//
//   state     owner             leaves this state when
//   FREE      spool             something is written, and the queue has room
//   FILLING   writing thread    the record is complete; of a spool that waits, or the sheet is full
//   QUEUED    queue             its turn has come
//   EMPTYING  spool's thread    it is in the file
//
// Sheets keep their memory for the next record. A spool that waits holds a few of a fixed size; one
// that skips holds as much as budget_records, and two records more.
#pragma once

#include <libavformat/avio.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stop.h"
#include "base/log.h"
#include "base/status.h"

enum { SPOOL_FILES = 2 };

struct spool;

struct spool_request {
    const char *name[SPOOL_FILES]; // must outlive the spool; the second NULL: there is one
    bool overwrite;
    bool live;               // it skips, and the files grow in place, record by record
    const struct log *log;   // must outlive the spool
    const struct stop *stop; // (optional) as of file_create()
};

// Create the files and start the thread. On success the caller owns *spool.
enum status spool_create(const struct spool_request *request, struct spool **spool);

// Free it: what was not finished leaves no trace, and no reader is waited for. Accepts NULL behind
// the pointer, leaves NULL.
void spool_destroy(struct spool **spool);

// ---- the writing thread ----

// Where this record goes in file number `file`, waiting while a spool that waits has no room. NULL:
// nowhere, as it is left out or the spool has failed; that counts for the whole record. Positions
// are those in the file. `bytes` says when records have another size than those before.
AVIOContext *spool_io(struct spool *spool, int file, int64_t bytes);

// The record is complete, if anything was written. STATUS_MEMORY: it could not be kept.
enum status spool_next(struct spool *spool);

// There are no more. `tail` (optional, static) comes last, into the last file. Returns at once.
void spool_close(struct spool *spool, const char *tail);

// After that: wait until all is written, for readers of pipes until `until_ns` of CLOCK_MONOTONIC,
// and make the files whole. Its failure, if it had one.
enum status spool_finish(struct spool *spool, int64_t until_ns);

// ---- figures. Any thread ----

// Bytes of the first file, and records that are not in it though they were told: left out because
// it was slow, or a stop did not wait for its reader.
int64_t spool_bytes(const struct spool *spool);
int64_t spool_dropped(const struct spool *spool);

// How much memory one may take whose records are of so many bytes and text.
int64_t spool_memory(bool live, int64_t record_bytes);
