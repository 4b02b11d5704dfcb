// Pixel formats by FFmpeg's names, and the meaning of their samples, without FFmpeg.
//
// The table holds what pixel_describe() (pipeline/ffmpeg/pixel.h) knows, with the same rules for
// what is not said: tests/unit_filter.c compares the two.
//
// Thread-safety: any thread.
#pragma once

#include "plan/format.h"
#include "sluice/frame.h"

enum { MAX_SIDE = 1 << 20, MAX_SAMPLES = 1 << 28 };

// Name number `index` from 0; NULL past the last.
const char *pixfmt_name(int index);

// The name as the table has it, static: "yuv420p10" becomes "yuv420p10le". NULL: it is none.
const char *pixfmt_canonical(const char *name);

// Describe a caller's format. False if its name is none; a deep one without an order of bytes has
// the machine's.
bool pixfmt_describe(const struct sluice_format *from, struct format *format);

// The name of the format with this storage; else that of one whose samples are of the same kind and
// as deep, or hardly deeper: gray with alpha of 10 bits becomes ya16. NULL: there is none.
const char *pixfmt_find(const struct format *format);

// True if the format is of full range by its name (yuvj420p).
bool pixfmt_is_full(const char *name);

// The matrix of these weights; UNKNOWN: it has no name.
enum sluice_matrix pixfmt_matrix(const struct format *format);
