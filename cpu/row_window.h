// Rows of one level, held for the level above, and what lies beyond the ends of rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/op.h"

// Slot v mod `rows` holds row v of the extended plane.
struct row_window {
    int rows;
    int *row;             // which row each slot holds, INT_MIN: none
    const void **pointer; // to the sample of column 0
    uint8_t *memory;      // NULL: it holds none
    size_t stride;
    int reach;    // samples beyond both ends that the border rule fills
    size_t apron; // room for them, in bytes
};

// A window holds its rows; or it only points at them; or it does neither, where only its bytes are
// asked for, which may be more than there is memory.
enum row_window_use { WINDOW_HOLDS, WINDOW_POINTS, WINDOW_MEASURES };

// Make room for `rows` rows of `columns` samples. STATUS_MEMORY is the only failure; finish it
// then, too.
enum status row_window_init(struct row_window *window, int rows, int columns, int bytes, int reach,
                            enum row_window_use use);
void row_window_finish(struct row_window *window);

// Bytes of its rows; 0 where it only points at them.
size_t row_window_bytes(const struct row_window *window);

// No slot holds a row any more.
void row_window_restart(struct row_window *window);

// The slot of row v, any distance outside, and its memory.
static inline int row_window_slot(const struct row_window *window, int v)
{
    int slot = v % window->rows;
    return slot < 0 ? slot + window->rows : slot;
}

static inline void *row_window_memory(const struct row_window *window, int slot)
{
    return window->memory + (size_t)slot * window->stride + window->apron;
}

// `bytes` rounded up to what rows are aligned to; zeroed memory aligned so, with room for a vector
// that is read beyond the last sample.
enum { ROW_ALIGNMENT = 64 };

static inline size_t row_aligned(size_t bytes)
{
    return (bytes + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

void *row_alloc(size_t bytes);

// `width` samples of one value.
void row_fill(void *row, int bytes, int width, int value);

// Fill `reach` samples on both sides of a row by the border rule; alike sums of columns, `before`
// and `after` them.
void row_extend(void *row, int bytes, int width, int reach, enum border border, int value);
void row_extend_sums(uint32_t *sum, int width, int before, int after, enum border border,
                     uint32_t value);
