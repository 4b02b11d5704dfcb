// Choice of the fused kernel for a stencil, and its arguments. See kernels/stencil/fused.h.
#include "kernels/stencil/fused.h"

#include <assert.h>
#include <stdint.h>

// The forms of OP_SEPARABLE that stages/design/separable.h chooses: narrow, wide of 8-bit samples,
// wide of deeper ones.
enum number_form { FORM_NONE, FORM_NARROW, FORM_WIDE, FORM_DEEP };

static enum number_form form_of(const struct op_separable *op)
{
    if (op->bits == 13 && op->fraction == 3)
        return FORM_NARROW;
    if (op->bits != 15 || op->fraction > 8)
        return FORM_NONE;
    return op->fraction == 8 ? FORM_WIDE : FORM_DEEP;
}

static int radius_of(const struct op_separable *op)
{
    return op->radius_x > op->radius_y ? op->radius_x : op->radius_y;
}

// One that is all of an axis would be 2^16 when doubled.
static bool is_identity(const struct op_separable *op)
{
    return op->tap_x[0] >> op->bits || op->tap_y[0] >> op->bits;
}

static bool is_small_gradient(const struct op *op)
{
    const struct op_gradient *g = &op->gradient;
    return op->kind == OP_GRADIENT && g->side == 1 && g->center <= 2 && g->norm == NORM_L1 &&
           g->scale == 65536;
}

// Gradients that a kernel makes behind a filter: samples beyond an edge have to repeat one of the
// picture, or be zero.
static bool is_next(const struct op *op)
{
    return is_small_gradient(op) && op->border != BORDER_WRAP &&
           (op->border != BORDER_ZERO || op->border_value == 0);
}

// The reach of high bytes of taps: where outer taps have none, a kernel leaves their products out.
static int high_reach(const struct op_separable *op, int reach)
{
    int high = reach == 32 ? SEPARABLE_HIGH_32 : reach == 48 ? SEPARABLE_HIGH_48 : reach;
    bool all = false;
    for (int k = high + 1; k <= radius_of(op); k++)
        all = all || (k <= op->radius_x && op->tap_x[k] * 2 > UINT8_MAX) ||
              (k <= op->radius_y && op->tap_y[k] * 2 > UINT8_MAX);
    return all ? reach : high;
}

static struct choice choose(const struct op_separable *op, bool gradient)
{
    static const int narrow[] = {4, 8, 16, 24, 0}, wide[] = {8, 16, 24, 32, 48, 0};
    static const int deep[] = {4, 8, 16, 32, 48, 0}, followed[] = {4, 8, 0};
    static const int sharpened[] = {8, 16, 32, 48, 0}; // 24 is not worth a kernel of its own
    enum number_form form = form_of(op);
    if (separable_is_decimated(op) || form == FORM_NONE ||
        (form == FORM_NARROW ? !separable_mma_f16_holds(op) || op->amount : is_identity(op)) ||
        (gradient && (form == FORM_WIDE || op->amount)))
        return {};
    const int *reach = gradient                          ? followed
                       : form == FORM_NARROW             ? narrow
                       : form == FORM_WIDE && op->amount ? sharpened
                       : form == FORM_WIDE               ? wide
                                                         : deep;
    while (*reach && *reach < radius_of(op))
        reach++;
    // Sixteen bytes to the left of a tile, or a multiple of that.
    int bytes = form == FORM_DEEP ? 2 : 1, needed = *reach + (gradient ? 4 : 0), step = 16 / bytes;
    int high = form == FORM_WIDE ? high_reach(op, *reach) : *reach;
    return {*reach, (needed + step - 1) / step * step, bytes, form != FORM_NARROW, high};
}

static struct choice choose_convolve(const struct op *op, int depth)
{
    static const int reaches[] = {8, 16, 32, 0};
    const int *reach = reaches;
    int bytes = depth > 8 ? 2 : 1, step = 16 / bytes;
    if (!op->convolve.rank)
        return convolve_mma_u8_choice(op, depth);
    if (!op->convolve.words)
        return {};
    while (*reach && (*reach < op_radius_x(op) || *reach < op_radius_y(op)))
        reach++;
    return {*reach, (*reach + step - 1) / step * step, bytes, true};
}

// The weight of a sample `distance` behind a gradient's place, as a half.
static uint32_t gradient_weight(const struct op_gradient *g, bool smooth, int distance)
{
    static const uint32_t half[] = {0, 0x3c00, 0x4000}; // 0, 1, 2
    if (distance == 0)
        return smooth ? half[g->center] : 0;
    if (distance < -1 || distance > 1)
        return 0;
    return half[1] | (!smooth && distance < 0 ? 0x8000u : 0);
}

// The weights of struct slope_down and struct slope_along inside a picture: for every lane first
// those that smooth down, then the differences, then both products along, whose columns begin four
// late.
static size_t gradient_fragments(const struct op_gradient *g, uint32_t *to)
{
    const int lanes = 32;
    for (int i = 0; to && i < 3 * 4 * lanes; i++) {
        int lane = i / 4 % lanes, k = i % 4, which = i / (4 * lanes);
        bool smooth = which == 0 || (which == 2 && k < 2);
        int from = lane % 4 * 2 + (which == 2 ? k % 2 : k / 2) * 8;
        int distance = from - lane / 4 - (which == 2 ? 4 : k % 2 * 8);
        to[i] = gradient_weight(g, smooth, distance) | gradient_weight(g, smooth, distance + 1)
                                                           << 16;
    }
    return (size_t)(3 * 4 * lanes);
}

size_t fused_fragments(const struct op *op, const struct op *next, uint32_t *to)
{
    const struct op_separable *f = &op->separable;
    if (next && !is_next(next))
        return 0;
    struct choice choice = choose(f, next);
    if (!choice.reach)
        return 0;
    size_t used = choice.u8 ? separable_mma_u8_fragments(f, choice, next, to)
                            : separable_mma_f16_fragments(f, choice, next, to);
    return next ? used + gradient_fragments(&next->gradient, to ? to + used : NULL) : used;
}

size_t fused_convolve_fragments(const struct op *op, int depth, uint32_t *to)
{
    struct choice choice = choose_convolve(op, depth);
    if (!choice.reach)
        return lines_axis_mma_u8_fragments(&op->convolve, to);
    return op->convolve.rank ? lines_mma_u8_fragments(&op->convolve, choice, to)
                             : convolve_mma_u8_fragments(&op->convolve, choice, to);
}

bool fused_takes(const struct stencil *stencil)
{
    const struct view *from = &stencil->source.view, *to = &stencil->sink.view[0];
    const struct op *next = stencil->next;
    int bytes = stencil->depth > 8 ? 2 : 1;
    if (from->bytes != bytes || to->bytes != bytes || !from->plain || !to->plain ||
        stencil->sink.views > 1 || !view_is_aligned(from, 16) || !view_is_aligned(to, 16))
        return false;
    if (stencil->op->kind == OP_GRADIENT)
        return !next && (stencil->fragments[0] || (bytes == 1 && is_small_gradient(stencil->op)));
    if (stencil->op->kind == OP_CONVOLVE)
        return !next && stencil->fragments[0];
    return stencil->op->kind == OP_SEPARABLE && !separable_is_decimated(&stencil->op->separable) &&
           stencil->fragments[next ? 1 : 0];
}

static enum finish finish_of(const struct stencil *stencil, const struct small_gradient *gradient)
{
    const struct lookup *lookup = &stencil->sink.lookup;
    if (!lookup->table)
        return FINISH_LIMIT;
    bool simple = lookup->kind == LOOKUP_THRESHOLD &&
                  (stencil->depth > 8 || (lookup->below == 0 && lookup->above == 255));
    bool before_limit = gradient->base == 0 && lookup->high < gradient->limit;
    return simple && before_limit ? FINISH_THRESHOLD : FINISH_LOOKUP;
}

static cudaError_t convolve_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_convolve *op = &stencil->op->convolve;
    struct choice choice = choose_convolve(stencil->op, stencil->depth);
    if (!choice.reach)
        return lines_axis_mma_u8_async(stencil, stream);
    int columns = op_radius_x(stencil->op), rows = op_radius_y(stencil->op);
    struct fused f = {.source = stencil->source,
                      .sink = stencil->sink,
                      .fragments = stencil->fragments[0],
                      .reach = columns > rows ? columns : rows,
                      .down_shift = op->column_shift,
                      .end = convolve_end_of(op)};
    return op->rank ? lines_mma_u8_async(&f, choice, op->rank, stream)
                    : convolve_mma_u8_async(&f, op, choice, stream);
}

cudaError_t fused_async(const struct stencil *stencil, cudaStream_t stream)
{
    assert(fused_takes(stencil));
    if (stencil->op->kind == OP_CONVOLVE)
        return convolve_async(stencil, stream);
    if (stencil->op->kind == OP_GRADIENT && stencil->fragments[0])
        return gradient_mma_u8_async(stencil, stream);
    const struct op *filter = stencil->op->kind == OP_SEPARABLE ? stencil->op : NULL;
    const struct op *gradient = filter ? stencil->next : stencil->op;
    struct fused f = {.source = stencil->source,
                      .sink = stencil->sink,
                      .fragments = stencil->fragments[filter && gradient]};
    if (gradient) {
        f.gradient = {gradient->gradient.center, gradient->gradient.limit, gradient->gradient.base,
                      gradient->border, gradient->border_value};
        f.finish = finish_of(stencil, &f.gradient);
        f.reach = 1;
    }
    if (!filter)
        return small_gradient_async(&f, stream);
    const struct op_separable *op = &filter->separable;
    struct choice choice = choose(op, gradient);
    f.reach += radius_of(op);
    f.down_shift = op->bits - op->fraction;
    f.rounding = separable_rounding(op, stencil->depth, op->bits + op->fraction);
    f.along_shift = f.rounding.shift;
    return choice.u8 ? separable_mma_u8_async(&f, choice, gradient, stream)
                     : separable_mma_f16_async(&f, choice, gradient, stream);
}
