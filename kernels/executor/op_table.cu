// The operations that have kernels of their own.
#include <assert.h>

#include "kernels/op_kernels.h"

static const struct op_kernels *const rows[] = {
    &separable_kernels,  &box_kernels,     &convolve_kernels, &gradient_kernels,
    &statistics_kernels, &wavelet_kernels, &match_kernels,    &mark_kernels,
};

static_assert(sizeof rows / sizeof *rows == OP_KINDS - OP_SEPARABLE,
              "every stencil and full-frame operation has a row");

const struct op_kernels *op_kernels(const struct op *op)
{
    for (const struct op_kernels *row : rows)
        if (row->kind == op->kind)
            return row;
    assert(!"it is a stencil or a full-frame operation");
    return NULL;
}
