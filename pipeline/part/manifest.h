// Manifest: what an output, or a part of one, was made of and what came of it, as JSON, an object
// or array a line, so that it can be written and read while it grows.
//
//   {"sluice-manifest": 1, ...}          the identity: what is the same whoever makes it
//   ["frame", PTS, "HASH"]               a filtered frame, before the encoder (frame_hash.h)
//   ["packet", PTS, KEY, SIZE, "HASH"]   a packet as it lies in the file, in the order of the file
//   {"frames": N, "root": "...", ...}    the end: counts, the roots of the hash trees over the lines
//                                        of frames and of packets (hash_tree.h), how the video was
//                                        encoded, by what, the other files, and a hash over
//                                        identity and end
//
// Identity:
//   source      {"bytes", "hash"}: the file's size, and the hash of blocks spread over it
//   stream      the number of the video in it
//   chain       the chain, as chain_text() writes it
//   arithmetic  ARITHMETIC_VERSION: equal numbers, equal bits
//   output      the container, the encoder and its options, as they were asked for
//   part, parts from 0; of a joined or undivided output 0 of 1
//   begin, end  its cuts in microseconds of the source; "begin" and "end": those of the source
//
// A reader checks that the lines are whole and in order, and that the roots are theirs.
#pragma once

#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/frame_hash.h"
#include "pipeline/part/hash_tree.h"

struct sluice_ledger;

enum { MANIFEST_VERSION = 1 };

struct manifest_frame {
    int64_t pts;
    char hash[FRAME_HASH_TEXT];
};

struct manifest_packet {
    int64_t pts;
    bool key;
    int64_t size;
    char hash[FRAME_HASH_TEXT];
};

// A manifest in memory, whole and in itself consistent.
struct manifest {
    char *name; // of its file
    json_t *identity, *end;
    struct manifest_frame *frame;
    struct manifest_packet *packet;
    int64_t frames, packets;
};

// Read one. STATUS_INPUT, with a sentence that names the file and the line, for what is none: cut
// short, altered, of another version. manifest_free() in either case.
enum status manifest_read(const char *name, const struct log *log, struct manifest *manifest);
void manifest_free(struct manifest *manifest);

// Compare two identities but for the part; *what is the first member that differs, NULL: none.
bool manifest_is_alike(const json_t *a, const json_t *b, const char **what);

// The hash of the identity and the end, as it stands in the end's "seal".
enum status manifest_seal(const json_t *identity, const json_t *end, char seal[FRAME_HASH_TEXT]);

// ---- members ----

// Describe a file by its size and blocks spread over it: STATUS_INPUT with a sentence if it cannot
// be read. The caller owns *source.
enum status manifest_of_source(const char *file, const struct log *log, json_t **source);

// A file's size, and the hash of all of it: likewise.
enum status manifest_of_file(const char *file, const struct log *log, json_t **about);

// The ledger of frames, as far as parts have one. NULL without memory.
json_t *manifest_of_ledger(const struct sluice_ledger *ledger);

// Add the members of `more`, whose reference is taken. STATUS_MEMORY also where it is NULL, as
// json_pack() without memory gives it.
enum status manifest_add(json_t *to, json_t *more);

// A ratio as JSON, and back: false, and 0/1, if `of` has none above zero of that name.
json_t *manifest_of_ratio(AVRational ratio);
bool manifest_ratio(const json_t *of, const char *name, AVRational *ratio);

// Encoded video as JSON, and back. NULL, and STATUS_INPUT, if it is none.
json_t *manifest_of_video(const AVCodecParameters *codec);
enum status manifest_video(const json_t *video, AVCodecParameters *codec);
