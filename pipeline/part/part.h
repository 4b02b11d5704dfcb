// Part: one of the n parts of an output, on its way into a folder that is whole or absent.
//
//   out.mp4.part-3-of-64/
//     video.nut      its frames, encoded as those of out.mp4 would be, with the pts that they have
//                    in the source; absent where the part has no frames
//     frames.txt     instead, of an output "hash:FILE"
//     report-K       what record number K of the chain has written; some have another file beside
//     manifest       what the part was made of and what came of it (manifest.h)
//
// Everything is written into a hidden folder beside it, whose name is random, and which is renamed
// in the end: never over a folder that is there. Who makes the same part twice, one after another,
// at once, or on several machines that share the folder, gets it once. What a killed process leaves
// is a hidden folder, which nobody takes for a part.
//
// Thread-safety: the calls of each section are one thread's.
#pragma once

#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/part_span.h"

struct sink;
struct sluice_ledger;

struct part_request {
    const char *output;    // the name of the whole output: a file, or "hash:FILE"
    int part, parts;       // part 0 .. parts - 1
    bool overwrite;        // replace a part that is there
    json_t *identity;      // what is the same whoever makes it (manifest.h); stays the caller's
    const struct log *log; // outlives it
};

struct part;

// Begin a part: its files have their names, and nothing is made yet. STATUS_EOF, with a sentence: it
// is there already, made of the same. STATUS_OUTPUT, with a sentence: it is there and made of
// something else; or no folder can be made there.
enum status part_create(const struct part_request *request, struct part **part);

// Make the hidden folder, once, before anything is written into it: behind all that may take long,
// so that who is ended meanwhile leaves nothing. STATUS_OUTPUT, with a sentence, if that fails.
enum status part_open(struct part *part);

// Free it; what was not committed leaves nothing behind. Accepts NULL behind the pointer.
void part_destroy(struct part **part);

// Remove the hidden folder now: the part will not be committed, though who is deep in a frame may
// still note it. Any thread.
void part_discard(const struct part *part);

// The name of a file in the folder. The caller frees it; NULL without memory.
char *part_file(const struct part *part, const char *name);

// The folder's name in the end.
const char *part_name(const struct part *part);

// ---- the thread that decodes ----

// Note a frame as it was decoded, of the part or behind its end: the earliest of each is kept. Where
// the part behind begins with another one, the file could not be cut there.
enum part_edge { PART_FIRST, PART_NEXT };
enum status part_note_edge(struct part *part, enum part_edge edge, const AVFrame *frame);

// Note that a frame came whose time is not behind that of the one before: it may be another part's,
// which does not see it.
void part_note_disorder(struct part *part);

// ---- the thread that encodes ----

// Note a filtered frame, in order. STATUS_OUTPUT: the manifest cannot be written.
enum status part_note_frame(struct part *part, const AVFrame *frame);

// ---- the thread that runs the job ----

struct part_outcome {
    const struct sluice_ledger *ledger;
    AVRational time_base;    // of frames
    const struct sink *sink; // that was open and is finished; NULL: the part has no frames
    const AVFrame *first;    // as filtered; NULL: the part has no frames
    bool truncated;          // the file ends before its header or index says so
    bool repeatable;         // the file was decoded from its beginning to its end
    json_t *made;            // by what it was made; stays the caller's
};

// All files but the manifest are whole: write it, and give the folder its name. STATUS_EOF, with a
// sentence: somebody else did so meanwhile, with equal frames, and this one is not needed.
enum status part_commit(struct part *part, const struct part_outcome *outcome);
