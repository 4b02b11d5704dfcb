// Pictures for viewers, drawn from frames: scaled, in the colours that a stream has, side by side, or
// how two differ.
//
// Thread-safety: one thread at a time.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>

#include "base/status.h"

struct composer;

enum status composer_create(struct composer **composer);
void composer_destroy(struct composer **composer); // leaves NULL, accepts NULL behind it

// Draw `from` into `to` from column `x` on, `width` columns wide and as high as `to`, in the pixel
// format and the colours of `to`. `exact`: as well as libswscale can, for pictures that are looked
// at; else fast. `x` and `width` are even where chroma is subsampled. STATUS_FAILED: libswscale
// cannot.
enum status composer_draw(struct composer *composer, const AVFrame *from, bool exact, AVFrame *to,
                          int x, int width);

// |a - b| of R, G and B, 8 bits each, of two frames of one size. *out is the caller's.
enum status composer_difference(struct composer *composer, const AVFrame *a, const AVFrame *b,
                                bool exact, AVFrame **out);

// The luma of a frame, 8 bits, counted into 256 bins, which are zeroed first.
enum status composer_count(struct composer *composer, const AVFrame *frame, uint32_t bins[256]);

// True if frames of this format can be drawn.
bool compose_takes(enum AVPixelFormat pixel);

// A frame with memory for such a picture; NULL without. Rows have room behind them: libswscale
// writes whole vectors.
AVFrame *compose_frame(enum AVPixelFormat pixel, int width, int height);

// A copy of a frame in memory of its own, the host's; NULL: it cannot be had.
AVFrame *compose_copy(const AVFrame *frame);

// The matrix that a frame's samples have: its tag's, or what players take without one.
enum AVColorSpace compose_matrix(const AVFrame *frame);
