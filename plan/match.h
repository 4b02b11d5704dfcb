// Template matching: what OP_MATCH and OP_MARK compute, and the arithmetic that all backends share.
//
// The score of a template t at a place is the zero-mean normalised cross-correlation with the
// window f under it (J. P. Lewis, "Fast normalized cross-correlation", Vision Interface 1995). With
// sums over the n samples of the template that count,
//
//   score = (n sum(f t) - sum(f) sum(t)) / (sqrt(n sum(f^2) - sum(f)^2) * sqrt(n sum(t^2) -
//   sum(t)^2))
//
// where all sums, products and differences are integers, the rest is done in double precision, in
// this order, and the quotient rounded to single precision. A window of one shade scores 0. Places
// are those where the template lies inside the picture, named by its top left corner.
//
// Nothing here may be rounded in another way, so no multiplication meets an addition in floating
// point, where a compiler might fuse them, unless the product is exact.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define MATCH_INLINE static __host__ __device__ inline
#else
#define MATCH_INLINE static inline
#endif

enum {
    MATCH_TEMPLATES = 64, // in one operation
    MAX_MATCH = 1000,     // matches of one frame
    MATCH_BIAS = 128,     // what samples of templates are less by: neither difference changes
    // Samples of a template for which 32 bits hold sum(f (t - MATCH_BIAS)) and sum(f^2), and double
    // precision each product above.
    MATCH_NARROW = 1 << 16,
    // ... and 64 bits both differences.
    MATCH_WIDE = 1 << 24,
};

// One template, as 8-bit gray. Samples that do not count are MATCH_BIAS.
struct op_template {
    const char *name; // for people
    int width, height;
    const uint8_t *sample; // row by row
    const uint8_t *mask;   // 1 for samples that count, else 0; NULL: all do
    int64_t count;         // n
    int64_t sum;           // of t - MATCH_BIAS
    double norm;           // sqrt(n sum(t^2) - sum(t)^2), above 0
};

// Find the templates in a plane of 8 bits, full range. A match is a place whose score is at least
// `least` and the greatest within half a template, |dx| <= width / 2 and |dy| <= height / 2; of
// equal ones the first counts, row by row. The best `most` of all templates are kept, ordered by
// score, then template, then row, then column.
//
// Analysis: struct op_matches. With `map` the result, of any depth, is the greatest score of all
// templates at the place whose middle, (x + width / 2, y + height / 2), lies there, from 0 as black
// to 1 as white; black where there is none. Else the result is not made.
struct op_match {
    const struct op_template *templates; // the program's
    int count;
    float least; // above 0
    int most;
    bool map;
    int white; // of the map: the highest code
};

// A match. x and y are those of the top left corner, refined by a parabola through the scores of
// the neighbours along each axis; picture columns begin at 0.0, the left edge of the first.
struct op_found {
    float x, y, score;
    int number; // of the template
};

struct op_matches {
    int count;
    int line;                // how thick lines around them are, match_line()
    struct op_found found[]; // best first
};

// y = x but for frames around the matches that operation `match` found: lines outside the box that
// the template covers, `line` thick. Of matches whose frames meet, the better one
// is on top. A sample of a subsampled plane belongs to a frame if any of the samples does that it
// spans.
struct op_mark {
    int match;            // the number of the operation
    int shift_x, shift_y; // log2 of picture columns and rows to one of the plane
    const struct op_template *templates;
    int count, most;       // as of that operation
    const uint16_t *value; // of the frames, by template; the program's
};

// How many places there are along one axis.
MATCH_INLINE int match_places(int length, int template_length)
{
    return length < template_length ? 0 : length - template_length + 1;
}

static inline size_t match_analysis_bytes(const struct op_match *match)
{
    return sizeof(struct op_matches) + (size_t)match->most * sizeof(struct op_found);
}

// ---- scores ----

// n ab - a b, exact until it becomes a double.
MATCH_INLINE double match_difference(int64_t n, int64_t ab, int64_t a, int64_t b)
{
    if (n <= MATCH_WIDE)
        return (double)(int64_t)((uint64_t)n * (uint64_t)ab - (uint64_t)a * (uint64_t)b);
    __int128 whole = (__int128)n * ab - (__int128)a * b;
    return (double)(int64_t)(whole >> 32) * 4294967296.0 + (double)(uint32_t)whole;
}

// The score of both differences; `norm` is the template's.
MATCH_INLINE float match_ratio(double difference, double variance, double norm)
{
    return variance > 0 ? (float)(difference / (sqrt(variance) * norm)) : 0;
}

// The score of sums over a window: of f (t - MATCH_BIAS), f and f^2. `n`, `sum` and `norm` are the
// template's.
MATCH_INLINE float match_score(int64_t n, int64_t sum, double norm, int64_t products,
                               int64_t samples, int64_t squares)
{
    return match_ratio(match_difference(n, products, samples, sum),
                       match_difference(n, squares, samples, samples), norm);
}

// How far from the middle a parabola through three scores has its top; 0 where the middle one is
// not the greatest, which neighbours along a template of one sample need not be compared for.
MATCH_INLINE double match_peak(float before, float middle, float after)
{
    double left = (double)before - (double)middle, right = (double)after - (double)middle;
    bool top = left <= 0 && right <= 0 && left + right < 0;
    return top ? 0.5 * (left - right) / (left + right) : 0;
}

// The shade of a score on the map, of samples up to `white`: the product is exact.
MATCH_INLINE int match_shade(float score, int white)
{
    double limited = score > 0 ? score < 1 ? score : 1 : 0;
    return (int)(limited * white + 0.5);
}

// ---- frames around matches ----

// A box of picture columns and rows, the last ones not included.
struct match_box {
    int left, top, right, bottom;
};

MATCH_INLINE struct match_box match_box_of(const struct op_found *found, int width, int height)
{
    int left = (int)floorf(found->x + 0.5f), top = (int)floorf(found->y + 0.5f);
    struct match_box box = {left, top, left + width, top + height};
    return box;
}

// How thick lines are on a picture of this size.
MATCH_INLINE int match_line(int width, int height)
{
    int most = width > height ? width : height;
    return most < 640 ? 1 : most / 320;
}

// Whether sample (x, y) of a plane belongs to the frame around a box.
MATCH_INLINE bool match_is_framed(struct match_box box, int line, int x, int y, int shift_x,
                                  int shift_y)
{
    int left = x << shift_x, right = (x + 1) << shift_x;
    int top = y << shift_y, bottom = (y + 1) << shift_y;
    bool meets = right > box.left - line && left < box.right + line && bottom > box.top - line &&
                 top < box.bottom + line;
    bool inside = left >= box.left && right <= box.right && top >= box.top && bottom <= box.bottom;
    return meets && !inside;
}
