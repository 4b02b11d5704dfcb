// Pace of copies within the GPU's memory and over its link to the host, the limits of filters.
#include <assert.h>
#include <time.h>

#include "kernels/executor/cuda.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- within the device ----

enum { THREADS = 256, WORDS = 4, STREAMS = 4, ROUNDS = 16 };

// Four 16-byte words a thread, neighbours next to each other.
static __global__ void __launch_bounds__(THREADS)
    copy_words(const uint4 *from, uint4 *to, size_t count)
{
    size_t first = (size_t)blockIdx.x * THREADS * WORDS + threadIdx.x;
    uint4 word[WORDS];
    for (int k = 0; k < WORDS; k++)
        if (first + k * THREADS < count)
            word[k] = from[first + k * THREADS];
    for (int k = 0; k < WORDS; k++)
        if (first + k * THREADS < count)
            to[first + k * THREADS] = word[k];
}

// More frames than the cache holds, copied in turn.
struct copies {
    uint8_t *from, *to;
    size_t bytes; // of a frame, whole words
    int frames;
    cudaStream_t stream[STREAMS];
};

static void copies_free(struct copies *copies)
{
    for (cudaStream_t stream : copies->stream)
        if (stream)
            cudaStreamDestroy(stream);
    cudaFree(copies->from);
    cudaFree(copies->to);
}

static enum status copies_init(struct cuda_backend *self, size_t bytes, struct copies *copies)
{
    const size_t working_set = 512 << 20;
    *copies = {};
    copies->bytes = (bytes + 15) / 16 * 16;
    copies->frames = (int)(working_set / 2 / copies->bytes) + 1;
    size_t all = copies->bytes * (size_t)copies->frames;
    enum status status = CUDA_CHECK(self, cudaMalloc(&copies->from, all));
    if (!status)
        status = CUDA_CHECK(self, cudaMalloc(&copies->to, all));
    if (!status)
        status = CUDA_CHECK(self, cudaMemset(copies->from, 1, all));
    for (int k = 0; k < STREAMS && !status; k++)
        status =
            CUDA_CHECK(self, cudaStreamCreateWithFlags(&copies->stream[k], cudaStreamNonBlocking));
    return status;
}

static enum status copy_round(struct cuda_backend *self, const struct copies *copies)
{
    size_t words = copies->bytes / 16, blocks = (words + THREADS * WORDS - 1) / (THREADS * WORDS);
    for (int k = 0; k < copies->frames * ROUNDS; k++)
        copy_words<<<(unsigned)blocks, THREADS, 0, copies->stream[k % STREAMS]>>>(
            (const uint4 *)(copies->from + (size_t)(k % copies->frames) * copies->bytes),
            (uint4 *)(copies->to + (size_t)(k % copies->frames) * copies->bytes), words);
    return CUDA_CHECK(self, cudaDeviceSynchronize());
}

enum status cuda_measure_copy(struct backend *backend, size_t bytes, double seconds, double *rate)
{
    struct cuda_backend *self = (struct cuda_backend *)backend;
    struct copies copies = {};
    assert(bytes > 0 && seconds > 0);
    enum status status = CUDA_CHECK(self, cudaSetDevice(self->device));
    if (!status)
        status = copies_init(self, bytes, &copies);
    if (!status)
        status = copy_round(self, &copies); // to warm up
    double begin = now_s();
    long rounds = 0;
    for (; !status && now_s() - begin < seconds; rounds++)
        status = copy_round(self, &copies);
    *rate = (double)bytes * copies.frames * ROUNDS * (double)rounds / (now_s() - begin);
    copies_free(&copies);
    return status;
}

// ---- between host and device ----

enum { LINK_BYTES = 32 << 20, LINK_COPIES = 4 };

struct link {
    uint8_t *host[2], *device[2];
    cudaStream_t stream[2]; // one a direction
};

static void link_free(struct link *link)
{
    for (int k = 0; k < 2; k++) {
        if (link->stream[k])
            cudaStreamDestroy(link->stream[k]);
        cudaFreeHost(link->host[k]);
        cudaFree(link->device[k]);
    }
}

static enum status link_init(struct cuda_backend *self, struct link *link)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < 2 && !status; k++) {
        status = CUDA_CHECK(self, cudaHostAlloc(&link->host[k], LINK_BYTES, cudaHostAllocDefault));
        if (!status)
            status = CUDA_CHECK(self, cudaMalloc(&link->device[k], LINK_BYTES));
        if (!status)
            status = CUDA_CHECK(self,
                                cudaStreamCreateWithFlags(&link->stream[k], cudaStreamNonBlocking));
    }
    return status;
}

static enum status link_round(struct cuda_backend *self, const struct link *link, enum link_way way)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < LINK_COPIES && !status; k++) {
        if (way != LINK_DOWN)
            status = CUDA_CHECK(self, cudaMemcpyAsync(link->device[0], link->host[0], LINK_BYTES,
                                                      cudaMemcpyHostToDevice, link->stream[0]));
        if (!status && way != LINK_UP)
            status = CUDA_CHECK(self, cudaMemcpyAsync(link->host[1], link->device[1], LINK_BYTES,
                                                      cudaMemcpyDeviceToHost, link->stream[1]));
    }
    return status ? status : CUDA_CHECK(self, cudaDeviceSynchronize());
}

enum status cuda_measure_link(struct backend *backend, enum link_way way, double seconds,
                              double *rate)
{
    struct cuda_backend *self = (struct cuda_backend *)backend;
    struct link link = {};
    enum status status = CUDA_CHECK(self, cudaSetDevice(self->device));
    if (!status)
        status = link_init(self, &link);
    if (!status)
        status = link_round(self, &link, way);
    double begin = now_s();
    long rounds = 0;
    for (; !status && now_s() - begin < seconds; rounds++)
        status = link_round(self, &link, way);
    *rate = (double)LINK_BYTES * LINK_COPIES * (double)rounds / (now_s() - begin);
    link_free(&link);
    return status;
}
