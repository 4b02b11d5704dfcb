// Frame hash: XXH3 of 128 bits (xxHash 0.8, Y. Collet) of a frame's samples, planes in order
// without padding, as `xxhsum -H2` gives for the frame as raw video. It finds accidents and
// mistakes; who wants to forge a frame is found by whoever computes it again.
#pragma once

#include <libavutil/frame.h>
#include <stdio.h>

#include "base/status.h"

enum { FRAME_HASH_TEXT = 33 }; // bytes of its text: 32 hexadecimal digits and a zero

// Call add() with all samples of a frame in the host's memory: planes in order, a row at a time
// without padding; a palette is a plane of one row. Returns the bytes.
int64_t frame_walk(const AVFrame *frame,
                   void (*add)(void *opaque, const uint8_t *samples, size_t size), void *opaque);

// Hash a frame, which may lie on a GPU. STATUS_MEMORY is the only failure.
enum status frame_hash(const AVFrame *frame, char text[FRAME_HASH_TEXT]);

// Hash what the frame shows, however it lies in memory: components in order, each sample as 16 bits
// (32 of formats deeper than that), little-endian. A GPU's decoder gives NV12 or P010 where the
// CPU's gives three planes: both have this hash in common. As frame_hash().
enum status frame_hash_samples(const AVFrame *frame, char text[FRAME_HASH_TEXT]);

// The same of all that a file has from where it stands, and its size. STATUS_INPUT, with errno, if
// it cannot be read.
enum status stream_hash(FILE *file, char text[FRAME_HASH_TEXT], int64_t *size);

// The same of bytes.
void bytes_hash(const void *data, size_t size, char text[FRAME_HASH_TEXT]);
