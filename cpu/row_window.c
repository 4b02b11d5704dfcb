#include "cpu/row_window.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void *row_alloc(size_t bytes)
{
    void *memory = NULL;
    // Kernels read whole vectors: up to one beyond the last sample.
    if (posix_memalign(&memory, ROW_ALIGNMENT, row_aligned(bytes) + ROW_ALIGNMENT))
        return NULL;
    memset(memory, 0, row_aligned(bytes) + ROW_ALIGNMENT);
    return memory;
}

enum status row_window_init(struct row_window *window, int rows, int columns, int bytes, int reach,
                            enum row_window_use use)
{
    assert(rows > 0 && columns > 0 && reach >= 0 && (bytes == 1 || bytes == 2));
    window->rows = rows;
    window->reach = reach;
    window->apron = row_aligned((size_t)(reach * bytes));
    window->row = malloc((size_t)rows * sizeof *window->row);
    window->pointer = malloc((size_t)rows * sizeof *window->pointer);
    if (!window->row || !window->pointer)
        return STATUS_MEMORY;
    if (use == WINDOW_POINTS)
        return STATUS_OK;
    window->stride = row_aligned((size_t)columns * (size_t)bytes + 2 * window->apron);
    if (use == WINDOW_MEASURES)
        return STATUS_OK;
    window->memory = row_alloc(window->stride * (size_t)rows);
    return window->memory ? STATUS_OK : STATUS_MEMORY;
}

size_t row_window_bytes(const struct row_window *window)
{
    return window->stride * (size_t)window->rows;
}

void row_window_finish(struct row_window *window)
{
    free(window->row);
    free(window->pointer);
    free(window->memory);
}

void row_window_restart(struct row_window *window)
{
    for (int k = 0; k < window->rows; k++)
        window->row[k] = INT_MIN;
}

void row_fill(void *row, int bytes, int width, int value)
{
    uint16_t *row16 = row;
    if (bytes == 1)
        memset(row, value, (size_t)width);
    else
        for (int x = 0; x < width; x++)
            row16[x] = (uint16_t)value;
}

void row_extend(void *row_, int bytes, int width, int reach, enum border border, int value)
{
    uint8_t *row8 = row_;
    uint16_t *row16 = row_;
    if (border == BORDER_REPLICATE || border == BORDER_ZERO) {
        bool zero = border == BORDER_ZERO;
        int first = zero ? value : bytes == 1 ? row8[0] : row16[0];
        int last = zero ? value : bytes == 1 ? row8[width - 1] : row16[width - 1];
        row_fill(row8 - (ptrdiff_t)reach * bytes, bytes, reach, first);
        row_fill(row8 + (ptrdiff_t)width * bytes, bytes, reach, last);
        return;
    }
    for (int k = 0; k < 2 * reach; k++) {
        int x = k < reach ? k - reach : width + k - reach;
        int from = border_index(border, x, width);
        if (bytes == 1)
            row8[x] = row8[from];
        else
            row16[x] = row16[from];
    }
}

void row_extend_sums(uint32_t *sum, int width, int before, int after, enum border border,
                     uint32_t value)
{
    bool constant = border == BORDER_REPLICATE || border == BORDER_ZERO;
    uint32_t first = border == BORDER_ZERO ? value : sum[0];
    uint32_t last = border == BORDER_ZERO ? value : sum[width - 1];
    for (int x = -before; x < 0; x++)
        sum[x] = constant ? first : sum[border_index(border, x, width)];
    for (int x = width; x < width + after; x++)
        sum[x] = constant ? last : sum[border_index(border, x, width)];
}
