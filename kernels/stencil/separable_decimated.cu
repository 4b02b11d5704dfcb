// The decimated form of separable filters: a grid D apart is made by tents, filtered one axis at a
// time as any plane, and put back by linear interpolation. See OP_SEPARABLE.
//
// The grid reaches past the picture as far as the taps ask, and has no border of its own: its plane
// in memory begins at row -radius_y and decimated_lead() columns before -radius_x. What the axes
// make of it begins within the picture.
#include "kernels/recording.cuh"
#include "kernels/stencil/separable.cuh"

struct tents {
    struct source source;
    int decimate_x, decimate_y;
    int first_x, first_y; // of the grid; columns begin at multiples of four
    int fraction;
    int rows; // of the picture that a thread reads, a power of two: with tents a cell more than
              // it makes
    struct sink grid;
};

struct interpolation {
    struct sink grid; // plain, 16 bits
    int decimate_x, decimate_y;
    struct rounding rounding;
    struct source center;
    struct sink sink;
};

// ---- tents ----
//
// With cells of D columns between neighbours of the grid, the sum under a tent is
//
//   sum_{|a| < D} (D - |a|) x(m D + a) = D S(m) - T(m) + T(m - 1)
//   S(m) = sum_{0 <= a < D} x(m D + a),  T(m) = sum_{0 <= a < D} a x(m D + a)
//
// so that each sample is read once, first down the columns, then along the rows.

enum { AT_ONCE = 8 }; // rows read at once

// Columns that a warp reads before its first result: the cell to the left.
static __host__ __device__ inline int tent_lead(int decimate)
{
    return decimate == 0 ? 0 : max(1 << decimate, VEC4);
}

// Four neighbouring columns of a thread, anywhere.
struct columns {
    int x;
    bool inside;
    int within[VEC4]; // what stands for them, -1: the border value
};

static __device__ inline struct columns columns_of(const struct source *source, int x)
{
    struct columns at = {.x = x, .inside = x >= 0 && x + VEC4 <= source->width};
    for (int i = 0; i < VEC4; i++)
        at.within[i] = extended_index(source->border, x + i, source->width);
    return at;
}

static __device__ inline void read_row(const struct source *source, const struct columns *at, int y,
                                       int value[VEC4])
{
    y = extended_index(source->border, y, source->height);
    if (y >= 0 && at->inside) {
        source_read(source, at->x, y, value);
        return;
    }
    for (int i = 0; i < VEC4; i++) {
        int x = at->within[i];
        value[i] = source->border_value;
        if (x >= 0 && y >= 0)
            value[i] = look_up_one(&source->lookup, view_read(&source->view, x, y));
    }
}

// Four samples as words of one, or of two 16-bit lanes: sums of rows are the same code for both.
template <bool BYTES> struct lanes;

template <> struct lanes<false> {
    static constexpr int words = VEC4;

    static __device__ inline void spread(const uint32_t word[VEC4], uint32_t value[VEC4])
    {
        for (int i = 0; i < VEC4; i++)
            value[i] = word[i];
    }
};

template <> struct lanes<true> {
    static constexpr int words = VEC4 / 2;

    static __device__ inline void spread(const uint32_t word[VEC4 / 2], uint32_t value[VEC4])
    {
        for (int i = 0; i < VEC4; i++)
            value[i] = word[i % 2] >> 16 * (i / 2) & 0xffff;
    }
};

// One row of plain bytes without a table, `y` as extended_index() has it.
static __device__ inline uint32_t read_bytes(const struct source *source, const struct columns *at,
                                             int y)
{
    uint32_t word = 0, beyond = (uint32_t)source->border_value;
    if (at->inside)
        return y < 0 ? beyond * 0x1010101u
                     : __ldg((const uint32_t *)view_at(&source->view, at->x, y));
    for (int i = 0; i < VEC4; i++) {
        int x = at->within[i];
        word |= (x < 0 || y < 0 ? beyond : __ldg(view_at(&source->view, x, y))) << 8 * i;
    }
    return word;
}

// AT_ONCE rows from `y` on. Plain bytes without a table are all asked for before the first is
// needed.
static __device__ inline void read_columns(const struct source *source, const struct columns *at,
                                           int y, uint32_t word[AT_ONCE][VEC4 / 2])
{
    uint32_t bytes[AT_ONCE];
    if (at->inside && y >= 0 && y + AT_ONCE <= source->height) {
        const uint8_t *from = view_at(&source->view, at->x, y);
        for (int k = 0; k < AT_ONCE; k++)
            bytes[k] = __ldg((const uint32_t *)(from + (int64_t)k * source->view.stride));
    } else {
        int row[AT_ONCE];
#pragma unroll 1
        for (int k = 0; k < AT_ONCE; k++)
            row[k] = extended_index(source->border, y + k, source->height);
        for (int k = 0; k < AT_ONCE; k++)
            bytes[k] = read_bytes(source, at, row[k]);
    }
    for (int k = 0; k < AT_ONCE; k++) {
        word[k][0] = __byte_perm(bytes[k], 0, 0x4240);
        word[k][1] = __byte_perm(bytes[k], 0, 0x4341);
    }
}

// The same of any samples; plain words without a table, all within the picture, are asked for
// before the first is needed.
static __device__ inline void read_columns(const struct source *source, const struct columns *at,
                                           int y, uint32_t word[AT_ONCE][VEC4])
{
    const struct view *view = &source->view;
    int value[AT_ONCE][VEC4];
    if (at->inside && y >= 0 && y + AT_ONCE <= source->height && view->plain && view->bytes == 2 &&
        !source->lookup.table) {
        const uint8_t *from = view_at(view, at->x, y);
        vec4<uint16_t> units[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++)
            units[k] = vec4_load<uint16_t>(from + (int64_t)k * view->stride);
        for (int k = 0; k < AT_ONCE; k++) {
            units[k] = plain_vec4(view, units[k]);
            for (int i = 0; i < VEC4; i++)
                word[k][i] = (uint32_t)vec4_get(units[k], i);
        }
        return;
    }
#pragma unroll 1
    for (int k = 0; k < AT_ONCE; k++)
        read_row(source, at, y + k, value[k]);
    for (int k = 0; k < AT_ONCE; k++)
        for (int i = 0; i < VEC4; i++)
            word[k][i] = (uint32_t)value[k][i];
}

// Where a thread's samples of the grid go: `at`, if they are its own and within the grid.
struct grid_place {
    uint8_t *at; // in the row that is next
    bool own;
};

static __device__ inline struct grid_place grid_place_of(const struct tents *t, int x, int n)
{
    int d = 1 << t->decimate_x, m = (x >> t->decimate_x) - t->first_x;
    bool has_cell = (int)threadIdx.x * VEC4 >= tent_lead(t->decimate_x);
    return {view_at(&t->grid.view[0], m, n), has_cell && (x & (d - 1)) == 0 && m < t->grid.width};
}

// The samples of a row of the grid that a thread's four columns from `x` on make, from their sums
// under the tents of that row. All lanes of a warp are here.
template <typename Sum>
static __device__ inline void put_row(const struct tents *t, int x, const struct grid_place *to,
                                      const uint32_t sum[VEC4])
{
    Sum made[VEC4] = {sum[0], sum[1], sum[2], sum[3]};
    if (t->decimate_x == 1) {
        Sum before = __shfl_up_sync(~0u, made[3], 1);
        made[0] = 2 * made[0] + made[1] + before;
        made[1] = 2 * made[2] + made[3] + made[1];
    } else if (t->decimate_x > 1) {
        int d = 1 << t->decimate_x, lanes = d / VEC4, place = x & (d - 1);
        Sum plain = 0, by_place = 0;
        for (int i = 0; i < VEC4; i++) {
            plain += made[i];
            by_place += (Sum)(unsigned)i * made[i];
        }
        by_place += (Sum)(unsigned)place * plain;
#pragma unroll 1
        for (int other = 1; other < lanes; other *= 2) {
            plain += __shfl_xor_sync(~0u, plain, other);
            by_place += __shfl_xor_sync(~0u, by_place, other);
        }
        made[0] = (Sum)(unsigned)d * plain - by_place + __shfl_up_sync(~0u, by_place, lanes);
    }
    int shift = 2 * (t->decimate_x + t->decimate_y);
    Sum half = (Sum)1 << shift >> 1;
    uint32_t sample[VEC4];
    for (int i = 0; i < VEC4; i++)
        sample[i] = (uint32_t)(((made[i] << t->fraction) + half) >> shift);
    if (!to->own)
        return;
    // Rows of scratch planes are longer than the grid by as much as this may write beyond it.
    if (t->decimate_x == 0)
        *(uint2 *)to->at = make_uint2(sample[0] | sample[1] << 16, sample[2] | sample[3] << 16);
    else if (t->decimate_x == 1)
        *(uint32_t *)to->at = sample[0] | sample[1] << 16;
    else
        *(uint16_t *)to->at = (uint16_t)sample[0];
}

// A cell of AT_ONCE rows or more, as far as a thread has read it, and the one above.
struct tall_cell {
    uint32_t plain[VEC4], by_place[VEC4], before[VEC4];
};

// Add the sums of AT_ONCE rows, which are `place` rows below the cell's first. Returns true if the
// cell ends there, and what its tents come to.
template <bool BYTES>
static __device__ inline bool add_rows(struct tall_cell *cell, int dy, int place,
                                       const uint32_t plain[lanes<BYTES>::words],
                                       const uint32_t by_place[lanes<BYTES>::words],
                                       uint32_t sum[VEC4])
{
    uint32_t p[VEC4], q[VEC4];
    lanes<BYTES>::spread(plain, p);
    lanes<BYTES>::spread(by_place, q);
    for (int i = 0; i < VEC4; i++) {
        cell->plain[i] += p[i];
        cell->by_place[i] += (uint32_t)place * p[i] + q[i];
    }
    if (place + AT_ONCE < dy)
        return false;
    for (int i = 0; i < VEC4; i++) {
        sum[i] = (uint32_t)dy * cell->plain[i] - cell->by_place[i] + cell->before[i];
        cell->before[i] = cell->by_place[i];
        cell->plain[i] = cell->by_place[i] = 0;
    }
    return true;
}

// A thread goes down four columns and keeps what the next row of the grid needs of the last cell.
// CELL: rows of a cell, AT_ONCE where there are as many or more; sums of fewer fit 16 bits. Sums of
// columns stay below 2^28; Sum holds what they come to along the rows, with the fraction.
template <typename Sum, bool BYTES, int CELL>
static __global__ void __launch_bounds__(WARP *WARPS, BYTES ? 4 : 2)
    tents(const __grid_constant__ struct tents t)
{
    constexpr int words = lanes<BYTES>::words;
    int dx = 1 << t.decimate_x, dy = 1 << t.decimate_y, lead = tent_lead(t.decimate_x);
    int x = t.first_x * dx - lead + blockIdx.x * (WARP * VEC4 - lead) + threadIdx.x * VEC4;
    int above = t.decimate_y > 0; // cells that are read before the first result
    int count = t.rows / dy - above, first = (blockIdx.y * WARPS + threadIdx.y) * count;
    int end = min(first + count, t.grid.height), n = first - above;
    const struct columns columns = columns_of(&t.source, x);
    struct grid_place to = grid_place_of(&t, x, first);
    struct tall_cell cell = {};
    uint32_t before[words] = {0};
#pragma unroll 1
    for (int y = (n + t.first_y) * dy; n < end; y += AT_ONCE) {
        uint32_t row[AT_ONCE][words], sum[VEC4];
        read_columns(&t.source, &columns, y, row);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k += CELL) {
            uint32_t plain[words] = {0}, by_place[words] = {0};
            for (int i = 0; i < words; i++)
                for (int r = 0; r < CELL; r++) {
                    plain[i] += row[k + r][i];
                    by_place[i] += r * row[k + r][i];
                }
            if (CELL == AT_ONCE) {
                if (!add_rows<BYTES>(&cell, dy, y & (dy - 1), plain, by_place, sum))
                    continue;
            } else {
                for (int i = 0; i < words; i++) {
                    before[i] += CELL * plain[i] - by_place[i];
                    plain[i] = before[i];
                    before[i] = by_place[i];
                }
                lanes<BYTES>::spread(plain, sum);
            }
            if (n >= first && n < end) {
                put_row<Sum>(&t, x, &to, sum);
                to.at += t.grid.view[0].stride;
            }
            n++;
        }
    }
}

// ---- interpolation ----

enum { DOWN = 8 }; // rows that a thread makes

// A thread's four neighbouring columns of the picture, between those of the grid. Columns beyond the
// grid's last count nothing.
struct between {
    const uint8_t *first; // its first column of the grid, in row 0
    int d, place;         // columns from one of the grid to the next, from that one to the thread's
    int last;             // column of the grid, from that one
};

static __device__ inline struct between between_of(const struct interpolation *p, int x)
{
    int m = x >> p->decimate_x, d = 1 << p->decimate_x;
    const uint8_t *first = view_at(&p->grid.view[0], m, 0);
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+l"(first));
    return {first, d, x & (d - 1), p->grid.width - 1 - m};
}

// A row of the grid along its row, at the thread's columns; WHOLE: all of these lie within the
// picture, and what they are between within the grid.
template <bool WHOLE>
static __device__ inline void along_row(const struct between *at, const uint8_t *from,
                                        int made[VEC4])
{
    const uint16_t *row = (const uint16_t *)from;
    auto sample = [&](int i) { return (int)__ldg(row + (WHOLE ? i : min(i, at->last))); };
    if (at->d >= VEC4) { // all between the same two columns of the grid
        int left = sample(0), step = sample(1) - left;
        made[0] = at->d * left + at->place * step;
        for (int i = 1; i < VEC4; i++)
            made[i] = made[i - 1] + step;
    } else if (at->d == 2) {
        int left = sample(0), middle = sample(1), right = sample(2);
        made[0] = 2 * left;
        made[1] = left + middle;
        made[2] = 2 * middle;
        made[3] = middle + right;
    } else {
        for (int i = 0; i < VEC4; i++)
            made[i] = sample(i);
    }
}

// Four neighbours of rows y .. end - 1, between rows of the grid that are made along theirs. Sums
// stay below 2^28.
static __device__ void interpolate_any(const struct interpolation *p, const struct between *at,
                                       int x, int y, int end)
{
    int d = 1 << p->decimate_y, n = y >> p->decimate_y, last = p->grid.height - 1;
    int above[VEC4], below[VEC4];
    auto row = [&](int n) { return at->first + (int64_t)min(n, last) * p->grid.view[0].stride; };
    along_row<false>(at, row(n), below);
    for (int next = y; y < end; y++) {
        int place = y & (d - 1), value[VEC4], center[VEC4];
        if (y == next) {
            for (int i = 0; i < VEC4; i++)
                above[i] = below[i];
            along_row<false>(at, row(++n), below);
            next = y + d - place;
        }
        for (int i = 0; i < VEC4; i++)
            value[i] =
                (d * above[i] + place * (below[i] - above[i]) + rounding_half<int>(&p->rounding)) >>
                p->rounding.shift;
        if (p->rounding.amount) {
            source_read(&p->center, x, y, center);
            for (int i = 0; i < VEC4; i++)
                value[i] = sharpened(&p->rounding, center[i], value[i]);
        }
        sink_put(&p->sink, x, y, value);
    }
}

// Four results of a row from their sums. Bytes are the highest of theirs.
static __device__ inline void put_sums(uint8_t *to, int, const uint32_t sum[VEC4],
                                       const vec4<uint8_t> *)
{
    *(uint32_t *)to = __byte_perm(__byte_perm(sum[0], sum[1], 0x0073),
                                  __byte_perm(sum[2], sum[3], 0x0073), 0x5410);
}

static __device__ inline void put_sums(uint8_t *to, int shift, const uint32_t sum[VEC4],
                                       const vec4<uint16_t> *)
{
    *(uint2 *)to = make_uint2(__byte_perm(sum[0] >> shift, sum[1] >> shift, 0x5410),
                              __byte_perm(sum[2] >> shift, sum[3] >> shift, 0x5410));
}

// A thread makes four neighbours of DOWN rows. CELL: of plain samples that are neither looked up nor
// sharpened, rows from one of the grid to the next, DOWN where there are as many or more; each row's
// sums are then the last one's and a step. 0: of anything.
template <typename T, int CELL>
static __global__ void __launch_bounds__(WARP *WARPS)
    interpolate(const __grid_constant__ struct interpolation p)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4;
    int y = (blockIdx.y * WARPS + threadIdx.y) * DOWN, end = min(y + DOWN, p.sink.height);
    if (x >= p.sink.width || y >= p.sink.height)
        return;
    const struct between at = between_of(&p, x);
    if (CELL == 0 || x + VEC4 > p.sink.width || end < y + DOWN) {
        interpolate_any(&p, &at, x, y, end);
        return;
    }
    constexpr int cell = CELL ? CELL : 1;
    const int stride = p.sink.view[0].stride, shift = p.rounding.shift;
    const int up = sizeof(T) == 1 ? 24 - shift : 0;
    const uint32_t place = y & ((1 << p.decimate_y) - 1), half = 1u << (shift + up - 1);
    const uint8_t *row = at.first + (int64_t)(y >> p.decimate_y) * p.grid.view[0].stride;
    uint8_t *to = view_at(&p.sink.view[0], x, y);
    int above[VEC4], below[VEC4];
    along_row<true>(&at, row, below);
#pragma unroll
    for (int k = 0; k < DOWN; k += cell) {
        uint32_t sum[VEC4], step[VEC4];
        row += p.grid.view[0].stride;
        for (int i = 0; i < VEC4; i++)
            above[i] = below[i];
        along_row<true>(&at, row, below);
        for (int i = 0; i < VEC4; i++) {
            step[i] = (uint32_t)(below[i] - above[i]) << up;
            sum[i] = ((uint32_t)above[i] << (up + p.decimate_y)) + half;
            if (cell == DOWN)
                sum[i] += place * step[i];
        }
        for (int r = 0; r < cell; r++, to += stride) {
            put_sums(to, shift, sum, (const vec4<T> *)NULL);
            for (int i = 0; i < VEC4; i++)
                sum[i] += step[i];
        }
    }
}

// ---- launchers ----

// The planes between the parts, in scratch memory.
struct decimated_layout {
    struct sink grid;   // c of OP_SEPARABLE
    struct sink middle; // t
    struct sink result; // u, within the picture
    size_t bytes;
};

static struct sink take_plane(const struct stencil *stencil, size_t *used, int width, int height)
{
    struct sink sink = scratch_sink(stencil, *used, width, height);
    *used += scratch_bytes(width, height, 2);
    return sink;
}

// How many grid samples the interpolation reads along an axis.
static int samples_on_grid(int length, int decimate)
{
    int d = 1 << decimate;
    return (length - 1 + d - 1) / d + 1;
}

static struct decimated_layout decimated_layout_of(const struct stencil *stencil)
{
    const struct op_separable *op = &stencil->op->separable;
    int columns = samples_on_grid(stencil->source.width, op->decimate_x);
    int rows = samples_on_grid(stencil->source.height, op->decimate_y);
    int all_columns = decimated_lead(op) + columns + 2 * op->radius_x;
    struct decimated_layout layout = {};
    layout.grid = take_plane(stencil, &layout.bytes, all_columns, rows + 2 * op->radius_y);
    layout.middle = take_plane(stencil, &layout.bytes, all_columns, rows);
    layout.result = take_plane(stencil, &layout.bytes, columns, rows);
    return layout;
}

// Rows of the picture that a thread reads: many, as those of one cell are read twice, but few
// enough that there are warps for all of the GPU.
static int rows_of_thread(const struct tents *t, int warps_across)
{
    const int most = 64, many_warps = 4096;
    int rows = most, least = max(2 << t->decimate_y, (int)AT_ONCE);
    int height = t->grid.height << t->decimate_y;
    while (rows > least && warps_across * (height / rows) * t->grid.frames < many_warps)
        rows /= 2;
    return max(rows, least);
}

template <bool BYTES>
static void launch_tents(const struct tents *t, dim3 shape, cudaStream_t stream)
{
    auto *kernel = t->decimate_y == 0   ? tents<uint32_t, BYTES, 1>
                   : t->decimate_y == 1 ? tents<uint32_t, BYTES, 2>
                   : t->decimate_y == 2 ? tents<uint32_t, BYTES, 4>
                                        : tents<uint32_t, BYTES, AT_ONCE>;
    kernel_launch(kernel, shape, block_shape(), 0, stream, *t);
}

static cudaError_t tents_async(const struct stencil *stencil, const struct decimated_layout *layout,
                               cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    const struct sink *grid = &layout->grid;
    const struct view *view = &stencil->source.view;
    struct tents t = {
        .source = stencil->source,
        .decimate_x = op->decimate_x,
        .decimate_y = op->decimate_y,
        .first_x = -op->radius_x - decimated_lead(op),
        .first_y = -op->radius_y,
        .fraction = op->fraction,
        .grid = *grid,
    };
    int across = WARP * VEC4 - tent_lead(op->decimate_x);
    int columns = grid->width << op->decimate_x;
    t.rows = rows_of_thread(&t, (columns + across - 1) / across);
    int made = (t.rows >> op->decimate_y) - (op->decimate_y > 0);
    assert(across > 0 && op->decimate_x <= 6 && op->decimate_y <= 6); // what warps and sums hold
    dim3 shape = grid_shape(columns, grid->height, grid->frames, across, WARPS * made);
    bool bytes = view->plain && view->bytes == 1 && !stencil->source.lookup.table;
    bool is_long = stencil->depth + op->fraction + 2 * (op->decimate_x + op->decimate_y) > 32;
    assert(!is_long || 1 << op->decimate_y >= AT_ONCE);
    if (is_long)
        kernel_launch(tents<uint64_t, false, AT_ONCE>, shape, block_shape(), 0, stream, t);
    else if (bytes)
        launch_tents<true>(&t, shape, stream);
    else
        launch_tents<false>(&t, shape, stream);
    return cudaGetLastError();
}

// One axis of the grid, on tensor cores where its taps allow that.
static cudaError_t filter_axis_async(const struct stencil *stencil, const struct sink *from,
                                     const struct sink *to, bool rows, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    int radius = rows ? op->radius_x : op->radius_y, first = rows ? decimated_lead(op) : 0;
    const uint32_t *fragments = stencil->fragments[rows ? 0 : 1];
    struct axis_mma products = {.from = from->view[0],
                                .from_width = from->width,
                                .from_height = from->height,
                                .fragments = fragments,
                                .steps = axis_mma_u8_steps(radius, first),
                                .to = *to};
    if (fragments)
        return axis_mma_u8_async(&products, rows, stream);
    struct axis axis = {
        .source = scratch_source(from, BORDER_REPLICATE, 0),
        .tap = stencil->constants[rows ? 0 : 1],
        .radius = radius,
        .first = first,
        .exact = axis_is_exact(op),
        .rounding = {.shift = op->bits},
        .sink = *to,
    };
    return rows ? axis_rows_async(&axis, stream) : axis_columns_async(&axis, stream);
}

template <typename T> static auto *interpolation_of(int decimate)
{
    return decimate == 1   ? interpolate<T, 2>
           : decimate == 2 ? interpolate<T, 4>
                           : interpolate<T, DOWN>;
}

static cudaError_t interpolate_async(const struct stencil *stencil,
                                     const struct decimated_layout *layout, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    int bits_below = op->fraction + op->decimate_x + op->decimate_y;
    struct interpolation interpolation = {
        .grid = layout->result,
        .decimate_x = op->decimate_x,
        .decimate_y = op->decimate_y,
        .rounding = separable_rounding(op, stencil->depth, bits_below),
        .center = stencil->source,
        .sink = stencil->sink,
    };
    dim3 grid = grid_shape(stencil->sink.width, stencil->sink.height, stencil->sink.frames,
                           WARP * VEC4, WARPS * DOWN);
    const struct sink *sink = &stencil->sink;
    bool simple = sink->views == 1 && sink->view[0].plain && !sink->lookup.table && !op->amount &&
                  op->decimate_y > 0;
    auto *kernel = !simple                    ? interpolate<uint8_t, 0>
                   : sink->view[0].bytes == 1 ? interpolation_of<uint8_t>(op->decimate_y)
                                              : interpolation_of<uint16_t>(op->decimate_y);
    kernel_launch(kernel, grid, block_shape(), 0, stream, interpolation);
    return cudaGetLastError();
}

size_t separable_decimated_scratch(const struct op *op, int width, int height)
{
    struct stencil stencil = {.op = op};
    stencil.source.width = width;
    stencil.source.height = height;
    return decimated_layout_of(&stencil).bytes;
}

cudaError_t separable_decimated_async(const struct stencil *stencil, cudaStream_t stream)
{
    struct decimated_layout layout = decimated_layout_of(stencil);
    cudaError_t error = tents_async(stencil, &layout, stream);
    if (!error)
        error = filter_axis_async(stencil, &layout.grid, &layout.middle, false, stream);
    if (!error)
        error = filter_axis_async(stencil, &layout.middle, &layout.result, true, stream);
    return error ? error : interpolate_async(stencil, &layout, stream);
}
