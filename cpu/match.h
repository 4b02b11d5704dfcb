// Template matching on the CPU: OP_MATCH and OP_MARK (stages/match.h).
//
// The definition, match_scalar() and mark_scalar(), is plain loops over whole planes. struct
// matcher is the fast form: sums of products directly or by Fourier transforms, whichever is faster
// for a template, windows' sums as they slide, scores in vectors. Both give the same to the bit.
#pragma once

#include "cpu/rows.h"
#include "stages/match.h"
#include "stages/status.h"

// ---- the definition ----

// A plane of samples in memory, row after row.
struct match_plane {
    uint16_t *sample;
    int width, height;
};

// Find templates in `from`, 8 bits. `map` is of the same size and of samples up to `white`, and
// touched if there is to be one. STATUS_MEMORY leaves everything untouched.
enum status match_scalar(const struct op_match *f, const struct match_plane *from,
                         struct op_matches *matches, const struct match_plane *map, int white);

// Draw what was found.
void mark_scalar(const struct op_mark *f, const struct op_matches *matches,
                 const struct match_plane *from, const struct match_plane *to);

// ---- the fast form ----

// A place whose score is known.
struct match_place {
    float score;
    int number; // of the template
    int x, y;
};

// What makes one operation for pictures of one size. A picture is cut into bands of rows, which
// several threads may make at the same time; when all are made, one thread ends it.
struct matcher;

// 8-bit samples of a picture, and where its map goes: samples of one or two bytes. Strides are
// bytes.
struct match_task {
    const uint8_t *from;
    ptrdiff_t stride;
    uint8_t *map; // NULL: none
    ptrdiff_t map_stride;
    int map_bytes, white;
};

// *op must outlive the matcher. STATUS_MEMORY is the only failure.
enum status matcher_create(const struct op_match *op, int width, int height, int bands,
                           const struct row_kernels *rows, struct matcher **matcher);
void matcher_destroy(struct matcher **matcher);

// Make band 0 .. bands - 1, and then the whole.
void matcher_band(struct matcher *matcher, const struct match_task *task, int band);
enum status matcher_finish(struct matcher *matcher, const struct match_task *task,
                           struct op_matches *matches);
