// Pass: all frames of a file, one after another from its beginning, decoded as jobs with
// `repeatable` decode them: in one thread, the same frames in every run, damaged ones too.
//
// Thread-safety: one thread at a time.
#pragma once

#include <libavutil/frame.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

struct pass;
struct source_request;

struct pass_request {
    const struct source_request *source; // not needed afterwards
    int64_t max_pixels;                  // of a picture
    const struct log *log;
    const atomic_bool *stop; // ends what is under way, with STATUS_STOPPED
};

// Begin. The log and `stop` outlive the pass. Fails as source_open() and decoder_create().
enum status pass_create(const struct pass_request *request, struct pass **pass);

// Leaves NULL, accepts NULL behind it.
void pass_destroy(struct pass **pass);

// Decode the next frame into `frame`, which is empty. STATUS_EOF behind the last.
enum status pass_next(struct pass *pass, AVFrame *frame);
