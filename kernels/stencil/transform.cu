#include "kernels/stencil/transform.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.cuh"
#include "kernels/stencil/convolve.cuh"

// Memory of the tiles made at once, whose spectra are made in place: as many steps for fewer tiles
// each keep the host busy, which may serve several GPUs.
static const size_t batch_bytes = 64 << 20;

// ---- cuFFT: what cufft.h calls cufftHandle, cufftResult and CUFFT_D2Z, CUFFT_Z2D; its interface
// ---- has not changed since CUDA 6.5

enum { FORWARD = 0x6a, BACKWARD = 0x6c };

struct library {
    int (*create)(int *plan);
    int (*set_auto_allocation)(int plan, int automatic);
    int (*make_plan_many)(int plan, int rank, long long *sides, long long *from_sides,
                          long long from_stride, long long from_distance, long long *to_sides,
                          long long to_stride, long long to_distance, int type, long long batch,
                          size_t *work_bytes);
    int (*set_stream)(int plan, cudaStream_t stream);
    int (*set_work_area)(int plan, void *memory);
    int (*execute_forward)(int plan, double *from, double2 *to);
    int (*execute_backward)(int plan, double2 *from, double *to);
    int (*destroy)(int plan);
};

static struct library library;
static bool is_there;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

// Open the cuFFT of the toolkit which this was built with, or the other that has the same
// interface.
static void *open_library(void)
{
    static const char *const names[] = {
#if CUDART_VERSION >= 13000
        "libcufft.so.12",
        "/usr/local/cuda/lib64/libcufft.so.12",
        "libcufft.so.11",
#else
        "libcufft.so.11",
        "/usr/local/cuda/lib64/libcufft.so.11",
        "libcufft.so.12",
#endif
    };
    void *handle = NULL;
    for (const char *name : names)
        if (!handle)
            handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    return handle;
}

static void load(void)
{
    void *handle = open_library();
    if (!handle)
        return;
    *(void **)&library.create = dlsym(handle, "cufftCreate");
    *(void **)&library.set_auto_allocation = dlsym(handle, "cufftSetAutoAllocation");
    *(void **)&library.make_plan_many = dlsym(handle, "cufftMakePlanMany64");
    *(void **)&library.set_stream = dlsym(handle, "cufftSetStream");
    *(void **)&library.set_work_area = dlsym(handle, "cufftSetWorkArea");
    *(void **)&library.execute_forward = dlsym(handle, "cufftExecD2Z");
    *(void **)&library.execute_backward = dlsym(handle, "cufftExecZ2D");
    *(void **)&library.destroy = dlsym(handle, "cufftDestroy");
    is_there = library.create && library.set_auto_allocation && library.make_plan_many &&
               library.set_stream && library.set_work_area && library.execute_forward &&
               library.execute_backward && library.destroy;
}

bool transform_is_there(void)
{
    pthread_once(&loaded, load);
    return is_there;
}

// ---- the shape of tiles ----

struct tiles {
    int columns, rows; // of the transform: its samples
    int width, height; // results of a tile, in vec4s along rows
    int across;        // tiles beside each other
    int count;
};

struct transform {
    struct tiles tiles;
    int batch;         // tiles at once
    int plan[2];       // forward, backward; of cuFFT
    bool planned[2];   // there they are
    size_t work_bytes; // what cuFFT needs beside the tiles
    double2 *kernel;   // its spectrum, conjugate, over the number of samples
    int64_t beyond;    // what is to be added to sums for the middle taken from samples
    int middle;
};

static size_t row_values(const struct tiles *tiles)
{
    return (size_t)tiles->columns / 2 + 1;
}

static size_t tile_values(const struct tiles *tiles)
{
    return row_values(tiles) * (size_t)tiles->rows;
}

static size_t tile_bytes(const struct tiles *tiles)
{
    return tile_values(tiles) * sizeof(double2);
}

static int ceiling(int a, int b)
{
    return (a + b - 1) / b;
}

// Results of a tile along an axis.
static int results_of(int power, int side)
{
    return (power - side + 1) / VEC4 * VEC4;
}

// Cost of an axis of `length` results with tiles of this side. On an H200 a million samples take
// 29 us by transforms of 128 to 512, 31.5 of 1024, 37 of 2048.
static int64_t cost_of(int length, int power, int side)
{
    return (int64_t)ceiling(length, results_of(power, side)) * power * (16384 + power);
}

// The power of two that costs least, of equals the smaller.
static int choose_side(int length, int side)
{
    int largest = op_convolve_transform_side(side, transform_size), best = largest;
    for (int power = largest; power >= 8 && results_of(power, side) > 0; power /= 2)
        if (cost_of(length, power, side) <= cost_of(length, best, side))
            best = power;
    return best;
}

static struct tiles tiles_of(const struct transform_request *request)
{
    struct tiles tiles = {
        .columns = choose_side(request->columns, request->width),
        .rows = choose_side(request->rows, request->height),
    };
    tiles.width = results_of(tiles.columns, request->width);
    tiles.height = results_of(tiles.rows, request->height);
    tiles.across = ceiling(request->columns, tiles.width);
    tiles.count = tiles.across * ceiling(request->rows, tiles.height);
    return tiles;
}

// Tiles at once: as many as fit, also into the rows of a grid, and as many each time.
static int choose_batch(const struct tiles *tiles)
{
    int max_tiles = (int)(batch_bytes / tile_bytes(tiles)),
        launched = 65535 / ceiling(tiles->rows, WARPS);
    max_tiles = max_tiles > launched ? launched : max_tiles < 1 ? 1 : max_tiles;
    return ceiling(tiles->count, ceiling(tiles->count, max_tiles));
}

// ---- kernels ----

// The tiles of one launch: first .. first + gridDim.y / blocks - 1 of a frame.
struct batch {
    struct tiles tiles;
    int first;
    double *memory;
};

static __device__ inline double *tile_row(const struct batch *batch, int tile, int row)
{
    size_t stride = 2 * ((size_t)batch->tiles.columns / 2 + 1);
    return batch->memory + ((size_t)tile * batch->tiles.rows + row) * stride;
}

// Which tile of the batch a block works on, and which of the tile's rows its first warp.
struct place {
    int tile, row;
};

static __device__ inline struct place place_of(int rows)
{
    int blocks = (rows + WARPS - 1) / WARPS;
    return {(int)blockIdx.y / blocks, ((int)blockIdx.y % blocks) * WARPS + (int)threadIdx.y};
}

struct gather {
    struct batch batch;
    struct source source;
    int origin_x, origin_y, middle;
};

// A warp lays 64 samples of a row, two neighbours a lane: 1 KiB side by side. What it reads
// overlaps with other tiles' samples, which the caches hold.
static __global__ void __launch_bounds__(WARP *WARPS)
    gather_samples(const __grid_constant__ struct gather g)
{
    struct place place = place_of(g.batch.tiles.rows);
    int column = (blockIdx.x * WARP + threadIdx.x) * 2, number = g.batch.first + place.tile;
    if (column >= g.batch.tiles.columns || place.row >= g.batch.tiles.rows)
        return;
    int left = number % g.batch.tiles.across * g.batch.tiles.width - g.origin_x;
    int top = number / g.batch.tiles.across * g.batch.tiles.height - g.origin_y;
    int y = extended_index(g.source.border, top + place.row, g.source.height);
    double value[2];
    for (int i = 0; i < 2; i++) {
        int x = extended_index(g.source.border, left + column + i, g.source.width);
        int sample = view_read(&g.source.view, max(x, 0), max(y, 0));
        sample = look_up_one(&g.source.lookup, sample);
        value[i] = (x < 0 || y < 0 ? g.source.border_value : sample) - g.middle;
    }
    *(double2 *)(tile_row(&g.batch, place.tile, place.row) + column) =
        make_double2(value[0], value[1]);
}

// Each thread multiplies one value of every fourth tile or so: the kernel's is read once for these.
static __global__ void __launch_bounds__(WARP *WARPS)
    multiply_spectra(double2 *spectrum, const double2 *kernel, size_t values, int tiles)
{
    size_t k = (size_t)blockIdx.x * (WARP * WARPS) + threadIdx.x;
    if (k >= values)
        return;
    double2 w = __ldg(kernel + k);
    for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
        double2 *at = spectrum + (size_t)tile * values + k, s = *at;
        *at = make_double2(s.x * w.x - s.y * w.y, s.x * w.y + s.y * w.x);
    }
}

// The spectrum of the kernel, conjugate and over the number of samples.
static __global__ void __launch_bounds__(WARP *WARPS)
    finish_kernel(double2 *to, const double2 *from, size_t values, double scale)
{
    size_t k = (size_t)blockIdx.x * (WARP * WARPS) + threadIdx.x;
    if (k < values)
        to[k] = make_double2(from[k].x * scale, -from[k].y * scale);
}

// Whoever takes four neighbouring sums.
struct to_sink {
    struct sink sink;
    struct convolve_end end;

    __device__ void put(int x, int y, const int64_t sum[VEC4]) const
    {
        int value[VEC4];
        for (int i = 0; i < VEC4; i++)
            value[i] = convolved(&end, sum[i]);
        sink_put(&sink, x, y, value);
    }
};

struct to_sums {
    uint8_t *data;
    ptrdiff_t stride;

    __device__ void put(int x, int y, const int64_t sum[VEC4]) const
    {
        double2 *at = (double2 *)(data + y * stride + x * (ptrdiff_t)sizeof(double));
        at[0] = make_double2((double)sum[0], (double)sum[1]);
        at[1] = make_double2((double)sum[2], (double)sum[3]);
    }
};

template <typename Taker> struct scatter {
    struct batch batch;
    int columns, rows; // of the whole result
    int64_t beyond;
    Taker taker;
};

// A warp takes 128 sums of a row, four neighbours a lane, each rounded to the whole number that it
// stands for.
template <typename Taker>
static __global__ void __launch_bounds__(WARP *WARPS)
    scatter_sums(const __grid_constant__ struct scatter<Taker> s)
{
    struct place place = place_of(s.batch.tiles.height);
    int column = (blockIdx.x * WARP + threadIdx.x) * VEC4, number = s.batch.first + place.tile;
    int x = number % s.batch.tiles.across * s.batch.tiles.width + column;
    int y = number / s.batch.tiles.across * s.batch.tiles.height + place.row;
    bool within = column < s.batch.tiles.width && place.row < s.batch.tiles.height;
    if (!within || x >= s.columns || y >= s.rows)
        return;
    const double2 *from = (const double2 *)(tile_row(&s.batch, place.tile, place.row) + column);
    double2 low = from[0], high = from[1];
    double value[VEC4] = {low.x, low.y, high.x, high.y};
    int64_t sum[VEC4];
    for (int i = 0; i < VEC4; i++)
        sum[i] = __double2ll_rn(value[i]) + s.beyond;
    s.taker.put(x, y, sum);
}

// ---- batches ----

static unsigned blocks_of(size_t count, size_t each)
{
    return (unsigned)((count + each - 1) / each);
}

static dim3 tiles_grid(int columns, int rows, int each, int tiles)
{
    return dim3(blocks_of((size_t)columns, WARP * (size_t)each),
                blocks_of((size_t)rows, WARPS) * (unsigned)tiles);
}

static cudaError_t failed_if(int result)
{
    return result ? cudaErrorUnknown : cudaSuccess;
}

// Work of either plan goes on this stream from now on, with this memory.
static cudaError_t use_plans(const struct transform *t, void *work, cudaStream_t stream)
{
    int result = 0;
    for (int k = 0; k < 2; k++)
        result |= library.set_stream(t->plan[k], stream) | library.set_work_area(t->plan[k], work);
    return failed_if(result);
}

static cudaError_t gather_async(const struct gather *gather, int tiles, cudaStream_t stream)
{
    dim3 grid = tiles_grid(gather->batch.tiles.columns, gather->batch.tiles.rows, 2, tiles);
    gather_samples<<<grid, block_shape(), 0, stream>>>(*gather);
    return cudaGetLastError();
}

// Samples that lie in the batch's memory become sums there.
static cudaError_t correlate_async(struct transform *t, double *memory, int tiles,
                                   cudaStream_t stream)
{
    size_t values = tile_values(&t->tiles);
    cudaError_t error = failed_if(library.execute_forward(t->plan[0], memory, (double2 *)memory));
    if (error)
        return error;
    dim3 grid(blocks_of(values, WARP * WARPS), blocks_of((size_t)tiles, VEC4));
    multiply_spectra<<<grid, WARP * WARPS, 0, stream>>>((double2 *)memory, t->kernel, values,
                                                        tiles);
    error = cudaGetLastError();
    return error ? error
                 : failed_if(library.execute_backward(t->plan[1], (double2 *)memory, memory));
}

template <typename Taker>
static cudaError_t scatter_async(const struct scatter<Taker> *scatter, int tiles,
                                 cudaStream_t stream)
{
    dim3 grid = tiles_grid(scatter->batch.tiles.width, scatter->batch.tiles.height, VEC4, tiles);
    scatter_sums<<<grid, block_shape(), 0, stream>>>(*scatter);
    return cudaGetLastError();
}

// All tiles of one frame; its source is the first of the task's, blockIdx.z being 0.
template <typename Taker>
static cudaError_t frame_async(struct transform *t, const struct transform_task *task,
                               const Taker *taker, cudaStream_t stream)
{
    double *memory = (double *)task->scratch;
    cudaError_t error = cudaSuccess;
    for (int first = 0; first < t->tiles.count && !error; first += t->batch) {
        int tiles = min(t->batch, t->tiles.count - first);
        struct batch batch = {t->tiles, first, memory};
        struct gather gather = {batch, task->source, task->origin_x, task->origin_y, t->middle};
        struct scatter<Taker> scatter = {
            batch, task->columns, task->rows, t->beyond, *taker
        };
        error = gather_async(&gather, tiles, stream);
        if (!error)
            error = correlate_async(t, memory, tiles, stream);
        if (!error)
            error = scatter_async(&scatter, tiles, stream);
    }
    return error;
}

// cuFFT's memory lies behind the tiles.
static cudaError_t begin_task(const struct transform *t, const struct transform_task *task,
                              cudaStream_t stream)
{
    assert(task->frames <= FRAMES && (uintptr_t)task->scratch % 256 == 0);
    uint8_t *work = (uint8_t *)task->scratch + (transform_scratch(t) - t->work_bytes);
    return use_plans(t, work, stream);
}

cudaError_t transform_sums_async(struct transform *t, const struct transform_task *task,
                                 const struct transform_sums *to, cudaStream_t stream)
{
    cudaError_t error = begin_task(t, task, stream);
    for (int k = 0; k < task->frames && !error; k++) {
        struct transform_task one = *task;
        one.source.view.data[0] = task->source.view.data[k];
        struct to_sums taker = {to->data + k * to->frame_step, to->stride};
        error = frame_async(t, &one, &taker, stream);
    }
    return error;
}

cudaError_t transform_convolve_async(struct transform *t, const struct stencil *stencil,
                                     cudaStream_t stream)
{
    const struct op_convolve *op = &stencil->op->convolve;
    struct transform_task task = {stencil->source,     op->origin_x,         op->origin_y,
                                  stencil->sink.width, stencil->sink.height, stencil->sink.frames,
                                  stencil->scratch};
    cudaError_t error = begin_task(t, &task, stream);
    for (int k = 0; k < task.frames && !error; k++) {
        struct to_sink taker = {stencil->sink, convolve_end_of(op)};
        for (int v = 0; v < taker.sink.views; v++)
            taker.sink.view[v].data[0] = stencil->sink.view[v].data[k];
        task.source.view.data[0] = stencil->source.view.data[k];
        error = frame_async(t, &task, &taker, stream);
    }
    return error;
}

// ---- construction ----

size_t transform_scratch(const struct transform *t)
{
    size_t tiles = (size_t)t->batch * tile_bytes(&t->tiles);
    return (tiles + 255) / 256 * 256 + t->work_bytes;
}

// Both in place: a row of samples has room for the spectrum's one value more.
static int make_plan(struct transform *t, int which, int type)
{
    long long sides[2] = {t->tiles.rows, t->tiles.columns};
    long long spectrum[2] = {t->tiles.rows, t->tiles.columns / 2 + 1};
    long long samples[2] = {spectrum[0], 2 * spectrum[1]};
    long long values = spectrum[0] * spectrum[1];
    bool forward = type == FORWARD;
    size_t work_bytes = 0;
    int result = library.create(&t->plan[which]);
    if (result)
        return result;
    t->planned[which] = true;
    result = library.set_auto_allocation(t->plan[which], 0);
    if (!result)
        result =
            library.make_plan_many(t->plan[which], 2, sides, forward ? samples : spectrum, 1,
                                   forward ? 2 * values : values, forward ? spectrum : samples, 1,
                                   forward ? values : 2 * values, type, t->batch, &work_bytes);
    if (work_bytes > t->work_bytes)
        t->work_bytes = work_bytes;
    return result;
}

// The weights as they lie in a tile. The caller frees them.
static double *lay_weights(const struct transform *t, const struct transform_request *request)
{
    double *tile = (double *)calloc(1, tile_bytes(&t->tiles));
    for (int j = 0; j < request->height && tile; j++)
        for (int i = 0; i < request->width; i++)
            tile[2 * row_values(&t->tiles) * (size_t)j + (size_t)i] =
                request->weight[(size_t)j * (size_t)request->width + (size_t)i];
    return tile;
}

static cudaError_t transform_kernel(struct transform *t, const double *weights, double *scratch,
                                    cudaStream_t stream)
{
    size_t values = tile_values(&t->tiles), bytes = tile_bytes(&t->tiles);
    double scale = 1.0 / t->tiles.columns / t->tiles.rows;
    struct transform_task task = {.scratch = scratch};
    cudaError_t error = cudaMemsetAsync(scratch, 0, transform_scratch(t), stream);
    if (!error)
        error = cudaMemcpyAsync(scratch, weights, bytes, cudaMemcpyHostToDevice, stream);
    if (!error)
        error = begin_task(t, &task, stream);
    if (!error)
        error = failed_if(library.execute_forward(t->plan[0], scratch, (double2 *)scratch));
    if (error)
        return error;
    finish_kernel<<<blocks_of(values, WARP * WARPS), WARP * WARPS, 0, stream>>>(
        t->kernel, (const double2 *)scratch, values, scale);
    error = cudaGetLastError();
    return error ? error : cudaStreamSynchronize(stream);
}

// With a task's memory and a stream that are only needed here.
static cudaError_t prepare_kernel(struct transform *t, const double *weights)
{
    double *scratch = NULL;
    cudaStream_t stream = NULL;
    cudaError_t error = cudaMalloc(&t->kernel, tile_bytes(&t->tiles));
    if (!error)
        error = cudaMalloc(&scratch, transform_scratch(t));
    if (!error)
        error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!error)
        error = transform_kernel(t, weights, scratch, stream);
    if (stream)
        cudaStreamDestroy(stream);
    cudaFree(scratch);
    return error;
}

static int64_t sum_of(const struct transform_request *request)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < (int64_t)request->width * request->height; k++)
        sum += request->weight[k];
    return sum;
}

static enum status refuse(const struct transform *t, const struct log *log, int result,
                          cudaError_t error)
{
    if (result)
        log_print(log, LOG_WARNING,
                  "cuFFT cannot transform %d tiles of %dx%d (its result is %d): the sums of a "
                  "large kernel are made product by product instead",
                  t->batch, t->tiles.columns, t->tiles.rows, result);
    else
        log_print(log, LOG_WARNING,
                  "the GPU cannot hold a kernel transformed to %dx%d (%s): its sums are made "
                  "product by product instead",
                  t->tiles.columns, t->tiles.rows, cudaGetErrorString(error));
    cudaGetLastError();
    return STATUS_DEVICE;
}

enum status transform_create(const struct transform_request *request, const struct log *log,
                             struct transform **transform)
{
    assert(request->depth > 0 && request->depth <= 16 && request->columns > 0 && request->rows > 0);
    struct transform *t = *transform = (struct transform *)calloc(1, sizeof *t);
    if (!t)
        return STATUS_MEMORY;
    t->tiles = tiles_of(request);
    t->batch = choose_batch(&t->tiles);
    t->middle = 1 << (request->depth - 1);
    t->beyond = sum_of(request) * t->middle;
    cudaError_t error = cudaSuccess;
    double *weights = lay_weights(t, request);
    int result = make_plan(t, 0, FORWARD);
    if (!result)
        result = make_plan(t, 1, BACKWARD);
    if (!result && weights)
        error = prepare_kernel(t, weights);
    enum status status = !weights          ? STATUS_MEMORY
                         : result || error ? refuse(t, log, result, error)
                                           : STATUS_OK;
    free(weights);
    if (status)
        transform_destroy(transform);
    return status;
}

void transform_destroy(struct transform **transform)
{
    struct transform *t = *transform;
    if (!t)
        return;
    for (int k = 0; k < 2; k++)
        if (t->planned[k])
            library.destroy(t->plan[k]);
    cudaFree(t->kernel);
    free(t);
    *transform = NULL;
}
