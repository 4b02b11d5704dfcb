#include "plan/op.h"

#include <assert.h>
#include <string.h>

#include "plan/op_info.h"

static const struct op_info *const infos[OP_KINDS] = {
    [OP_AFFINE] = &op_affine_info,         [OP_THRESHOLD] = &op_threshold_info,
    [OP_TABLE] = &op_table_info,           [OP_MIX] = &op_mix_info,
    [OP_SEPARABLE] = &op_separable_info,   [OP_BOX] = &op_box_info,
    [OP_CONVOLVE] = &op_convolve_info,     [OP_GRADIENT] = &op_gradient_info,
    [OP_STATISTICS] = &op_statistics_info, [OP_WAVELET] = &op_wavelet_info,
    [OP_MATCH] = &op_match_info,           [OP_MARK] = &op_mark_info,
};

const struct op_info *op_info(const struct op *op)
{
    assert((unsigned)op->kind < OP_KINDS && infos[op->kind]);
    return infos[op->kind];
}

bool op_is_pointwise(const struct op *op)
{
    return op_info(op)->family == OP_FAMILY_POINTWISE;
}

bool op_is_mix(const struct op *op)
{
    return op_info(op)->family == OP_FAMILY_MIX;
}

bool op_is_stencil(const struct op *op)
{
    return op_info(op)->family == OP_FAMILY_STENCIL;
}

bool op_is_full_frame(const struct op *op)
{
    return op_info(op)->family == OP_FAMILY_FULL_FRAME;
}

int op_apply(const struct op *op, int x)
{
    assert(op_is_pointwise(op));
    return op_info(op)->apply(op, x);
}

void op_apply_all(const struct op *op, uint16_t *sample, size_t count)
{
    assert(op_is_pointwise(op));
    op_info(op)->apply_all(op, sample, count);
}

struct op_reach op_reach(const struct op *op)
{
    assert(op_is_stencil(op));
    return op_info(op)->reach(op);
}

bool op_same_stencil(const struct op *a, const struct op *b)
{
    assert(op_is_stencil(a) && op_is_stencil(b));
    bool beyond =
        a->border == b->border && (a->border != BORDER_ZERO || a->border_value == b->border_value);
    return a->kind == b->kind && beyond && op_info(a)->same && op_info(a)->same(a, b);
}

bool op_same_numbers(const int32_t *a, const int32_t *b, int count)
{
    return a == b || (a && b && !memcmp(a, b, (size_t)count * sizeof *a));
}

static int greater(int a, int b)
{
    return a > b ? a : b;
}

int op_radius_x(const struct op *op)
{
    struct op_reach reach = op_reach(op);
    return greater(reach.left, reach.right);
}

int op_radius_y(const struct op *op)
{
    struct op_reach reach = op_reach(op);
    return greater(reach.above, reach.below);
}

size_t op_analysis_bytes(const struct op *op, int width, int height)
{
    const struct op_info *info = op_info(op);
    return info->analysis_bytes ? info->analysis_bytes(op, width, height) : 0;
}

int op_reads_analysis(const struct op *op)
{
    const struct op_info *info = op_info(op);
    return info->reads_analysis ? info->reads_analysis(op) : -1;
}

const char *op_name(const struct op *op)
{
    return op_info(op)->name;
}

static int modulo(int i, int length)
{
    int rest = i % length;
    return rest < 0 ? rest + length : rest;
}

int border_index(enum border border, int i, int length)
{
    if (i >= 0 && i < length)
        return i;
    switch (border) {
    case BORDER_REPLICATE:
        return i < 0 ? 0 : length - 1;
    case BORDER_REFLECT:
        i = modulo(i, 2 * length);
        return i < length ? i : 2 * length - 1 - i;
    case BORDER_MIRROR:
        if (length == 1)
            return 0;
        i = modulo(i, 2 * length - 2);
        return i < length ? i : 2 * length - 2 - i;
    case BORDER_WRAP:
        return modulo(i, length);
    default:
        return -1;
    }
}

const char *border_name(enum border border)
{
    static const char *const names[] = {"replicate", "zero", "reflect", "mirror", "wrap"};
    return names[border];
}
