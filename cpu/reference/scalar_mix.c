// The reference of OP_MIX.
#include "cpu/reference/scalar_op.h"
#include "plan/program.h"

// Along one axis: which source samples make result sample `i`, and how many quarters of each.
struct taps {
    int first, count;
    int weight[4];
};

// The source's grid is 2^up times coarser than the result's (finer when negative).
static struct taps resampling_taps(int i, int up, bool cosited)
{
    if (up < 0) {
        int width = 1 << -up, each = 4 >> -up;
        return (struct taps){i * width, width, {each, each, each, each}};
    }
    // (i - s) / width in quarters, s = 0 or (width - 1) / 2, rounded down.
    int width = 1 << up;
    int position = (8 * i - (cosited ? 0 : 4 * (width - 1))) >> (up + 1);
    return (struct taps){position >> 2, 2, {4 - (position & 3), position & 3}};
}

// v_k of OP_MIX.
static int resampled_q4(const struct op *op, const struct plane *from,
                        const struct program_plane *a, const struct program_plane *b, int x, int y)
{
    struct taps tx = resampling_taps(x, a->shift_x - b->shift_x, op->mix.siting != SITING_CENTER);
    struct taps ty = resampling_taps(y, a->shift_y - b->shift_y, op->mix.siting == SITING_TOP_LEFT);
    int sum = 0;
    for (int j = 0; j < ty.count; j++)
        for (int i = 0; i < tx.count; i++)
            sum += tx.weight[i] * ty.weight[j] *
                   *plane_at(from, border_index(BORDER_REPLICATE, tx.first + i, from->width),
                             border_index(BORDER_REPLICATE, ty.first + j, from->height));
    return sum;
}

enum status mix_scalar(const struct scalar_work *work)
{
    const struct op *op = work->op;
    const struct program_plane *grid = work->program->plane, *own = &grid[op->result];
    for (int y = 0; y < work->to->height; y++)
        for (int x = 0; x < work->to->width; x++) {
            int64_t sum = op->mix.offset;
            for (int k = 0; k < op->sources; k++)
                sum += (int64_t)op->mix.weight[k] * resampled_q4(op, &work->planes[op->source[k]],
                                                                 &grid[op->source[k]], own, x, y);
            *plane_at(work->to, x, y) =
                (uint16_t)clamp(rounded_shift(sum, 20), op->mix.low, op->mix.high);
        }
    return STATUS_OK;
}
