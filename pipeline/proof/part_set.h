// Part set: all parts of one output, read and found to add up, at once or as they become whole.
//
// A part is known when its manifest is read and agrees with those of the parts before it. What only
// all of them can say, part_set_finish() checks: nothing may be published before.
//
// Thread-safety: one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/part/manifest.h"

struct part_set_request {
    const char *const *folders; // ended by NULL
    // (optional) As of sluice_join_following(); the folders are in order then. NULL: all parts are
    // there, in any order.
    bool (*await)(void *opaque, int part);
    void *opaque;
    const struct log *log; // outlives the set
};

struct part_set {
    struct part_set_request request;
    char **folder;             // in order
    struct manifest *manifest; // of each that is known
    int count;
    int known;       // so many, from the first
    int filled;      // the first of them with frames; `count`: none has
    int last_filled; // the last of them with frames, if one has
};

// Begin a set. Without `await` all manifests are read, to learn of the order. STATUS_USAGE: there is
// none. part_set_free() in either case.
enum status part_set_init(const struct part_set_request *request, struct part_set *set);

// Make all parts up to this one, from 0, known. STATUS_INPUT, with a sentence that names the part,
// where they are not parts of one output: one is missing, there twice, altered, cut short, of another
// source, chain, arithmetic or encoding; cuts do not meet; or the part before a cut decodes the frame
// behind it to something else than the part that begins there. STATUS_STOPPED: `await` gave up.
enum status part_set_need(struct part_set *set, int part);

// The same up to the first part with frames, or all: none has.
enum status part_set_need_filled(struct part_set *set);

// The same of all, which are found to be the whole. More than once is fine.
enum status part_set_finish(struct part_set *set);

// Wait until a part is whole. False: `await` gives up.
bool part_set_await(const struct part_set *set, int part);

void part_set_free(struct part_set *set);
