// Device code that all kernels share: samples in and out of memory, borders, tables.
//
// Blocks are 32 x 8 threads, a warp to a row, and a thread deals with four neighbouring samples
// (a vec4): one 4-byte word of 8-bit samples, so that a warp reads 128 bytes side by side, or
// 8 bytes of deeper ones.
#pragma once

#include "kernels/launch.h"

enum { WARP = 32, WARPS = 8, VEC4 = 4 }; // lanes of a warp, warps of a block, samples of a vec4

static inline dim3 block_shape(void)
{
    return dim3(WARP, WARPS);
}

// Blocks for some pictures, each of `columns` x `rows` results.
static inline dim3 grid_shape(int width, int height, int frames, int columns, int rows)
{
    return dim3((unsigned)((width + columns - 1) / columns), (unsigned)((height + rows - 1) / rows),
                (unsigned)frames);
}

// ---- programmatic dependent launches (CUDA C++ Programming Guide) ----

// Wait until the previous kernel on the stream has ended and what it wrote can be read, if this one
// was launched so that both may overlap. A kernel that kernel_launch_dependent() launches
// (kernels/recording.cuh) calls it in all threads before it touches a frame.
static __device__ inline void await_previous_kernel(void)
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// A sample, or some, of a frame. A file with kernels that are launched dependently defines
// DEPENDENT_LAUNCHES before it includes anything: what the previous kernel wrote may not be read by
// ld.global.nc, which PTX allows for what nobody writes while the kernel lives, and it lived already.
template <typename T> static __device__ inline T frame_load(const T *at)
{
#if defined DEPENDENT_LAUNCHES && __CUDA_ARCH__ >= 900
    return *at;
#else
    return __ldg(at);
#endif
}

// ---- vec4s as they lie in memory ----

template <typename T> struct vec4;

template <> struct vec4<uint8_t> {
    uint32_t word;
};

template <> struct alignas(8) vec4<uint16_t> {
    uint32_t low, high;
};

static __device__ inline int vec4_get(vec4<uint8_t> from, int i)
{
    return from.word >> 8 * i & 0xff;
}

static __device__ inline int vec4_get(vec4<uint16_t> from, int i)
{
    return (i < 2 ? from.low : from.high) >> 16 * (i % 2) & 0xffff;
}

static __device__ inline void vec4_set(vec4<uint8_t> *to, const int value[VEC4])
{
    uint32_t low = __byte_perm((uint32_t)value[0], (uint32_t)value[1], 0x0040);
    uint32_t high = __byte_perm((uint32_t)value[2], (uint32_t)value[3], 0x0040);
    to->word = __byte_perm(low, high, 0x5410);
}

static __device__ inline void vec4_set(vec4<uint16_t> *to, const int value[VEC4])
{
    to->low = __byte_perm((uint32_t)value[0], (uint32_t)value[1], 0x5410);
    to->high = __byte_perm((uint32_t)value[2], (uint32_t)value[3], 0x5410);
}

template <typename T> static __device__ inline vec4<T> vec4_load(const void *at);

template <> __device__ inline vec4<uint8_t> vec4_load(const void *at)
{
    return {frame_load((const uint32_t *)at)};
}

template <> __device__ inline vec4<uint16_t> vec4_load(const void *at)
{
    uint2 words = frame_load((const uint2 *)at);
    return {words.x, words.y};
}

// ---- views ----

static __device__ inline uint8_t *view_at(const struct view *view, int x, int y)
{
    return view->data[blockIdx.z] + (int64_t)y * view->stride + (int64_t)x * view->step;
}

// The sample in a unit of one byte, or of two.
template <typename Unit> static __device__ inline int unit_sample(const struct view *view, int unit)
{
    if (sizeof(Unit) == 1)
        return unit >> view->shift;
    if (view->swapped)
        unit = (int)__byte_perm((uint32_t)unit, 0, 0x4401);
    return min(unit >> view->shift, view->max);
}

static __device__ inline int view_read(const struct view *view, int x, int y)
{
    const uint8_t *at = view_at(view, x, y);
    return view->bytes == 1 ? unit_sample<uint8_t>(view, frame_load(at))
                            : unit_sample<uint16_t>(view, frame_load((const uint16_t *)at));
}

// Two plain samples in a word, none above the largest.
static __device__ inline uint32_t plain_pair(const struct view *view, uint32_t pair)
{
    return __vminu2(pair, (uint32_t)view->max * 0x10001u);
}

// plain_pair() of some words, by looking for what is above, which only damage is, and stepping over
// the rest. Which of the two costs less has to be measured.
template <int WORDS>
static __device__ inline void limit_damage(const struct view *view, uint32_t word[WORDS])
{
    uint32_t any = 0;
    for (int k = 0; k < WORDS; k++)
        any |= word[k];
    if (any & ~((uint32_t)view->max * 0x10001u))
        for (int k = 0; k < WORDS; k++)
            word[k] = plain_pair(view, word[k]);
}

static __device__ inline vec4<uint8_t> plain_vec4(const struct view *, vec4<uint8_t> units)
{
    return units;
}

static __device__ inline vec4<uint16_t> plain_vec4(const struct view *view, vec4<uint16_t> units)
{
    return {plain_pair(view, units.low), plain_pair(view, units.high)};
}

static __device__ inline void view_write(const struct view *view, int x, int y, int value)
{
    uint8_t *at = view_at(view, x, y);
    int unit = value << view->shift;
    if (view->bytes == 1)
        *at = (uint8_t)unit;
    else
        *(uint16_t *)at = (uint16_t)(view->swapped ? __byte_perm((uint32_t)unit, 0, 0x4401) : unit);
}

template <typename T, int ROWS>
static __device__ inline void view_load_rows(const struct view *view, int x, const int y[ROWS],
                                             int value[ROWS][VEC4])
{
    vec4<T> units[ROWS];
    for (int k = 0; k < ROWS; k++)
        units[k] = vec4_load<T>(view_at(view, x, y[k]));
    if (view->plain)
        for (int k = 0; k < ROWS; k++)
            units[k] = plain_vec4(view, units[k]);
    for (int k = 0; k < ROWS; k++)
        for (int i = 0; i < VEC4; i++)
            value[k][i] =
                view->plain ? vec4_get(units[k], i) : unit_sample<T>(view, vec4_get(units[k], i));
}

// Samples x .. x + 3 of some rows, x being a multiple of four; zeros from column `width` on. All
// are asked for before the first is needed.
template <int ROWS>
static __device__ inline void view_read_rows(const struct view *view, int x, const int y[ROWS],
                                             int width, int value[ROWS][VEC4])
{
    if (view->adjacent && x + VEC4 <= width) {
        if (view->bytes == 1)
            view_load_rows<uint8_t, ROWS>(view, x, y, value);
        else
            view_load_rows<uint16_t, ROWS>(view, x, y, value);
        return;
    }
    for (int k = 0; k < ROWS; k++)
        for (int i = 0; i < VEC4; i++)
            value[k][i] = x + i < width ? view_read(view, x + i, y[k]) : 0;
}

static __device__ inline void view_read_vec4(const struct view *view, int x, int y, int width,
                                             int value[VEC4])
{
    view_read_rows<1>(view, x, &y, width, (int(*)[VEC4])value);
}

// ---- tables ----

// Tables of 256 entries are looked up in a copy in shared memory where that pays, others through
// the read-only cache.
static __device__ inline int look_up(const uint16_t *table, int value)
{
    return __ldg(table + value);
}

// Through the lookup of samples of any depth, if there is one.
static __device__ inline int look_up_one(const struct lookup *lookup, int x)
{
    if (!lookup->table)
        return x;
    if (lookup->kind == LOOKUP_THRESHOLD)
        return x < lookup->low ? lookup->below : x > lookup->high ? lookup->above : x;
    if (lookup->kind == LOOKUP_AFFINE) {
        int y = (int)(((int64_t)x * lookup->gain + lookup->offset) >> 16);
        return min(max(y, lookup->low), lookup->high);
    }
    return look_up(lookup->table, x);
}

// look_up_one() of a vec4, where it is not what takes the time: the table instead of arithmetic,
// which takes registers.
static __device__ inline void look_up_vec4(const struct lookup *lookup, int value[VEC4])
{
    if (!lookup->table)
        return;
    for (int i = 0; i < VEC4; i++) {
        int x = value[i];
        if (lookup->kind == LOOKUP_THRESHOLD)
            value[i] = x < lookup->low ? lookup->below : x > lookup->high ? lookup->above : x;
        else
            value[i] = look_up(lookup->table, x);
    }
}

// All threads of a block copy the table that 8-bit samples go through, if there is one.
static __device__ inline void table_share(uint16_t shared[256], const uint16_t *table)
{
    int thread = threadIdx.y * WARP + threadIdx.x;
    if (table)
        shared[thread] = __ldg(table + thread);
}

// ---- four samples of 8 bits as two packed pairs ----

// Samples 0 and 2, and 1 and 3, in the low bytes of 16-bit lanes.
struct pairs {
    uint32_t even, odd;
};

static __device__ inline struct pairs pairs_of(uint32_t word)
{
    return {__byte_perm(word, 0, 0x4240), __byte_perm(word, 0, 0x4341)};
}

static __device__ inline uint32_t pairs_word(struct pairs p)
{
    return __byte_perm(p.even, p.odd, 0x6240);
}

static __device__ inline uint32_t both_lanes(int value)
{
    return (uint32_t)value * 0x10001u;
}

// Bytes of ones where a lane plus `addend` reaches its highest bit.
static __device__ inline uint32_t carries(struct pairs p, uint32_t addend)
{
    uint32_t bytes;
    asm("prmt.b32 %0, %1, %2, 0xfbd9;" : "=r"(bytes) : "r"(p.even + addend), "r"(p.odd + addend));
    return bytes;
}

// Clamp both lanes, as they are with a sign.
static __device__ inline uint32_t lanes_clamp(uint32_t lanes, int low, int high)
{
    return __vmins2(__vmaxs2(lanes, both_lanes(low)), both_lanes(high));
}

static __device__ inline uint32_t affine_lanes(const struct lookup *lookup, uint32_t lanes)
{
    int first = (int)(lanes & 0xffff) * lookup->gain + (int)lookup->offset;
    int second = (int)(lanes >> 16) * lookup->gain + (int)lookup->offset;
    return lanes_clamp(__byte_perm((uint32_t)first, (uint32_t)second, 0x7632), lookup->low,
                       lookup->high);
}

// Four samples through a lookup, of which `shared` is a copy of the table.
static __device__ inline uint32_t lookup_pairs(const struct lookup *lookup, const uint16_t *shared,
                                               struct pairs p)
{
    if (!lookup->table)
        return pairs_word(p);
    if (lookup->kind == LOOKUP_THRESHOLD) {
        uint32_t from_low = carries(p, both_lanes(0x8000 - lookup->low));
        uint32_t above = carries(p, both_lanes(0x7fff - lookup->high));
        uint32_t word = pairs_word(p);
        word = (word & from_low) | ((uint32_t)lookup->below * 0x1010101u & ~from_low);
        return (word & ~above) | ((uint32_t)lookup->above * 0x1010101u & above);
    }
    if (lookup->kind == LOOKUP_AFFINE)
        return pairs_word({affine_lanes(lookup, p.even), affine_lanes(lookup, p.odd)});
    return pairs_word({shared[p.even & 0xffff] | (uint32_t)shared[p.even >> 16] << 16,
                       shared[p.odd & 0xffff] | (uint32_t)shared[p.odd >> 16] << 16});
}

static __device__ inline uint32_t lookup_word(const struct lookup *lookup, const uint16_t *shared,
                                              uint32_t word)
{
    return lookup->table ? lookup_pairs(lookup, shared, pairs_of(word)) : word;
}

// ---- sources ----

// border_index() of plan/op.h: the index that stands for `i`, -1 for the border value.
static __device__ inline int extended_index(enum border border, int i, int length)
{
    if ((unsigned)i < (unsigned)length)
        return i;
    if (border == BORDER_ZERO)
        return -1;
    if (border == BORDER_REPLICATE)
        return i < 0 ? 0 : length - 1;
    int period = border == BORDER_WRAP      ? length
                 : border == BORDER_REFLECT ? 2 * length
                                            : max(2 * length - 2, 1);
    i %= period;
    if (i < 0)
        i += period;
    return i < length ? i : period - (border == BORDER_REFLECT) - i;
}

// Samples x .. x + 3 of row y of the plane itself.
static __device__ inline void source_read(const struct source *source, int x, int y,
                                          int value[VEC4])
{
    view_read_vec4(&source->view, x, y, source->width, value);
    look_up_vec4(&source->lookup, value);
}

// Samples x .. x + 3 of some rows of the extended plane.
template <int ROWS>
static __device__ inline void source_read_rows(const struct source *source, int x,
                                               const int y[ROWS], int value[ROWS][VEC4])
{
    int row[ROWS], within[ROWS];
    for (int k = 0; k < ROWS; k++) {
        row[k] = extended_index(source->border, y[k], source->height);
        within[k] = max(row[k], 0);
    }
    view_read_rows<ROWS>(&source->view, x, within, source->width, value);
    for (int k = 0; k < ROWS; k++) {
        look_up_vec4(&source->lookup, value[k]);
        for (int i = 0; i < VEC4; i++)
            if (row[k] < 0)
                value[k][i] = source->border_value;
    }
}

// ---- sinks ----

// One by one, as far as they lie within the picture: across the right edge, into several views, and
// into units that do not lie side by side. Seldom taken, so it is kept small.
static __device__ inline void sink_scatter(const struct sink *sink, int x, int y,
                                           const int value[VEC4])
{
#pragma unroll 1
    for (int k = 0; k < sink->views; k++) {
        int4 next = make_int4(value[0], value[1], value[2], value[3]);
#pragma unroll 1
        for (int i = 0; i < VEC4 && x + i < sink->width; i++) {
            view_write(&sink->view[k], x + i, y, next.x);
            next = make_int4(next.y, next.z, next.w, 0);
        }
    }
}

// A thread's four columns of a sink, for rows of samples of element T.
template <typename T> struct outlet {
    const struct sink *sink;
    int x;
    int whole;   // four samples go to memory at once ...
    uint8_t *at; // ... here, in row 0
};

template <typename T> static __device__ inline outlet<T> outlet_of(const struct sink *sink, int x)
{
    const struct view *view = &sink->view[0];
    int whole =
        sink->views == 1 && view->plain && view->bytes == sizeof(T) && x + VEC4 <= sink->width;
    uint8_t *at = view->data[blockIdx.z] + x * (int)sizeof(T);
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+r"(whole), "+l"(at));
    return {sink, x, whole, at};
}

// Write four samples of row y as they are.
template <typename T>
static __device__ inline void outlet_store(const outlet<T> *outlet, int y, const int value[VEC4])
{
    if (outlet->whole)
        vec4_set((vec4<T> *)(outlet->at + (int64_t)y * outlet->sink->view[0].stride), value);
    else
        sink_scatter(outlet->sink, outlet->x, y, value);
}

// Write four results of row y through the sink's table, of which `shared` is the copy that 8-bit
// results use.
template <typename T>
static __device__ inline void outlet_put(const outlet<T> *outlet, const uint16_t *shared, int y,
                                         int value[VEC4])
{
    if (sizeof(T) > 1)
        look_up_vec4(&outlet->sink->lookup, value);
    else if (outlet->sink->lookup.table)
        for (int i = 0; i < VEC4; i++)
            value[i] = shared[value[i]];
    outlet_store(outlet, y, value);
}

// Write samples x .. x + 3 of row y as they are.
static __device__ inline void sink_store(const struct sink *sink, int x, int y,
                                         const int value[VEC4])
{
    if (sink->view[0].bytes == 1) {
        outlet<uint8_t> outlet = outlet_of<uint8_t>(sink, x);
        outlet_store(&outlet, y, value);
    } else {
        outlet<uint16_t> outlet = outlet_of<uint16_t>(sink, x);
        outlet_store(&outlet, y, value);
    }
}

// Write results x .. x + 3 of row y through the sink's table.
static __device__ inline void sink_put(const struct sink *sink, int x, int y, int value[VEC4])
{
    look_up_vec4(&sink->lookup, value);
    sink_store(sink, x, y, value);
}
