// A recording: the after-picture at full size, into a file that the page offers.
//
// Pictures come from the preview as they are rendered, and are encoded in a thread: H.264 of high
// quality (crf 18), or the best that there is. The file is made by the library's rules: it appears
// when it is whole, and replaces none. Nothing waits for it: what comes faster than it can be filtered
// and encoded once more, as of files that are filtered at full speed, is left out, and counted.
//
// Time in a recording is the input's, while that goes on as time does; where it jumps, because a
// viewer pauses or goes back, the recording goes on by the clock.
//
// Thread-safety: any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

struct preview;
struct record;

struct record_request {
    struct preview *preview; // outlives the record
    const char *folder;      // where files go
};

struct record_state {
    bool recording;
    bool finishing;  // it was stopped, and its file is not there yet
    char name[64];   // the file's in the folder, now or last; "": there was none
    int64_t frames;  // written
    int64_t dropped; // left out: the renderer or the encoder was too slow for them
    double seconds;
    char error[256]; // why the last one ended by itself; "": it did not
};

// The request's strings are copied; the log outlives the record.
enum status record_create(const struct record_request *request, const struct log *log,
                          struct record **record);

// Finishes the file. Leaves NULL, accepts NULL behind it.
void record_destroy(struct record **record);

// Begin a file. STATUS_USAGE with a sentence in `why` where a recording runs or is being finished.
// The state tells of the file.
enum status record_start(struct record *record, char *why, size_t size);

// Stop, if it records. May wait for the picture that is being rendered, not for the file.
void record_stop(struct record *record);

void record_state(struct record *record, struct record_state *state);

// True if this is one of the last 256 files that were recorded here, and are whole.
bool record_has_made(struct record *record, const char *name);
