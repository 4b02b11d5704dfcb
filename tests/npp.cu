// NVIDIA's Performance Primitives and sluice's library doing the same to the same frames in device memory: a line
// "CHAIN<tab>Gpx/s of sluice<tab>Gpx/s of NPP" for each chain. tests/bench.py builds and runs it where NPP is found.
//
//   npp WIDTH HEIGHT
//
// A frame a call, on one stream: sluice_filter_run() gives it back at once, as NPP does. Frames take turns, more of
// them than the GPU's cache holds. Results go where the last ones went.
#include <cuda_runtime.h>
#include <npp.h>

#include "sluice/filter.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const size_t working_set = 256 << 20;
static const int milliseconds = 60;

struct bench {
    NppStreamContext context;
    NppiSize size;
    int stride;
    std::vector<Npp8u *> source, target;
    Npp8u *bytes[2];  // between the steps of a chain
    Npp16s *words;    // a gradient's magnitude
    int words_stride; // bytes
};

#define CHECK(call)                                           \
    do {                                                      \
        int error_ = (int)(call);                             \
        if (error_) {                                         \
            fprintf(stderr, "%s: error %d\n", #call, error_); \
            exit(1);                                          \
        }                                                     \
    } while (0)

static NppStreamContext make_context()
{
    NppStreamContext context = {};
    cudaDeviceProp about;
    CHECK(cudaGetDevice(&context.nCudaDeviceId));
    CHECK(cudaGetDeviceProperties(&about, context.nCudaDeviceId));
    CHECK(cudaStreamCreateWithFlags(&context.hStream, cudaStreamNonBlocking));
    CHECK(cudaStreamGetFlags(context.hStream, &context.nStreamFlags));
    context.nMultiProcessorCount = about.multiProcessorCount;
    context.nMaxThreadsPerMultiProcessor = about.maxThreadsPerMultiProcessor;
    context.nMaxThreadsPerBlock = about.maxThreadsPerBlock;
    context.nSharedMemPerBlock = about.sharedMemPerBlock;
    context.nCudaDevAttrComputeCapabilityMajor = about.major;
    context.nCudaDevAttrComputeCapabilityMinor = about.minor;
    return context;
}

static bench make_bench(int width, int height)
{
    bench made = {};
    made.context = make_context();
    made.size = {width, height};
    made.stride = (width + 255) / 256 * 256;
    made.words_stride = 2 * made.stride;
    size_t bytes = (size_t)made.stride * height;
    std::vector<Npp8u> noise(bytes);
    for (Npp8u &sample : noise)
        sample = (Npp8u)(rand() >> 7);
    for (size_t used = 0; used < working_set; used += 2 * bytes) {
        Npp8u *source, *target;
        CHECK(cudaMalloc(&source, bytes));
        CHECK(cudaMalloc(&target, bytes));
        CHECK(cudaMemcpy(source, noise.data(), bytes, cudaMemcpyHostToDevice));
        made.source.push_back(source);
        made.target.push_back(target);
    }
    CHECK(cudaMalloc(&made.bytes[0], bytes));
    CHECK(cudaMalloc(&made.bytes[1], bytes));
    CHECK(cudaMalloc(&made.words, 2 * bytes));
    return made;
}

// ---- the steps ----

static void gauss5(const bench &b, const Npp8u *from, Npp8u *to)
{
    CHECK(nppiFilterGaussBorder_8u_C1R_Ctx(from, b.stride, b.size, {0, 0}, to, b.stride, b.size,
                                           NPP_MASK_SIZE_5_X_5, NPP_BORDER_REPLICATE, b.context));
}

// `taps` weights of a Gaussian, in device memory.
static Npp32f *gauss_taps(int taps, double sigma)
{
    std::vector<Npp32f> tap(taps);
    double sum = 0;
    for (int k = 0; k < taps; k++)
        sum += exp(-pow(k - taps / 2, 2) / (2 * sigma * sigma));
    for (int k = 0; k < taps; k++)
        tap[k] = (Npp32f)(exp(-pow(k - taps / 2, 2) / (2 * sigma * sigma)) / sum);
    Npp32f *device;
    CHECK(cudaMalloc(&device, taps * sizeof *device));
    CHECK(cudaMemcpy(device, tap.data(), taps * sizeof *device, cudaMemcpyHostToDevice));
    return device;
}

static void gauss(const bench &b, const Npp8u *from, Npp8u *to, int taps, const Npp32f *tap)
{
    CHECK(nppiFilterGaussAdvancedBorder_8u_C1R_Ctx(from, b.stride, b.size, {0, 0}, to, b.stride,
                                                   b.size, taps, tap, NPP_BORDER_REPLICATE,
                                                   b.context));
}

static void sobel(const bench &b, const Npp8u *from, Npp8u *to)
{
    CHECK(nppiGradientVectorSobelBorder_8u16s_C1R_Ctx(
        from, b.stride, b.size, {0, 0}, NULL, 0, NULL, 0, b.words, b.words_stride, NULL, 0, b.size,
        NPP_MASK_SIZE_3_X_3, nppiNormL1, NPP_BORDER_REPLICATE, b.context));
    CHECK(nppiConvert_16s8u_C1R_Ctx(b.words, b.words_stride, to, b.stride, b.size, b.context));
}

static void threshold(const bench &b, const Npp8u *from, Npp8u *to)
{
    CHECK(nppiThreshold_LTValGTVal_8u_C1R_Ctx(from, b.stride, to, b.stride, b.size, 20, 0, 240, 255,
                                              b.context));
}

static void box41(const bench &b, const Npp8u *from, Npp8u *to)
{
    CHECK(nppiFilterBoxBorder_8u_C1R_Ctx(from, b.stride, b.size, {0, 0}, to, b.stride, b.size,
                                         {41, 41}, {20, 20}, NPP_BORDER_REPLICATE, b.context));
}

static void add(const bench &b, const Npp8u *from, Npp8u *to)
{
    CHECK(nppiAddC_8u_C1RSfs_Ctx(from, b.stride, 20, to, b.stride, b.size, 0, b.context));
}

// ---- timing ----

template <typename filter_fn> static float run(const bench &b, int frames, filter_fn filter)
{
    cudaEvent_t begin, end;
    float ms;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, b.context.hStream));
    for (int k = 0; k < frames; k++)
        filter(b.source[k % b.source.size()], b.target[k % b.target.size()]);
    CHECK(cudaEventRecord(end, b.context.hStream));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return ms;
}

// Thousand million pixels a second.
template <typename filter_fn> static double measure(const bench &b, filter_fn filter)
{
    int frames = 16;
    run(b, frames, filter); // to warm up
    float ms = run(b, frames, filter);
    frames = (int)(frames * milliseconds / ms) + 1;
    ms = run(b, frames, filter);
    return 1e-6 * frames * b.size.width * (double)b.size.height / ms;
}

static struct sluice_frame frame_of(const bench &b, Npp8u *data)
{
    struct sluice_frame frame = {};
    frame.size = sizeof frame;
    frame.data[0] = data;
    frame.stride[0] = b.stride;
    frame.memory = SLUICE_MEMORY_DEVICE;
    return frame;
}

static double measure_sluice(const bench &b, const char *chain)
{
    struct sluice_filter_config config = {};
    config.size = sizeof config;
    config.chain = chain;
    config.input.size = sizeof config.input;
    config.input.pixfmt = "gray";
    config.input.width = b.size.width;
    config.input.height = b.size.height;
    config.backend = SLUICE_BACKEND_CUDA;
    struct sluice_filter *filter;
    CHECK(sluice_filter_create(&config, &filter));
    double speed = measure(b, [&](Npp8u *from, Npp8u *to) {
        struct sluice_frame in = frame_of(b, from), out = frame_of(b, to);
        CHECK(sluice_filter_run(filter, &in, &out, b.context.hStream));
    });
    sluice_filter_destroy(&filter);
    return speed;
}

template <typename filter_fn>
static void report(const bench &b, const char *chain, filter_fn filter)
{
    double ours = measure_sluice(b, chain), theirs = measure(b, filter);
    printf("%s\t%.4g\t%.4g\n", chain, ours, theirs);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bench b = make_bench(atoi(argv[1]), atoi(argv[2]));
    Npp32f *tap9 = gauss_taps(9, 1.4), *tap17 = gauss_taps(17, 2.7), *tap61 = gauss_taps(61, 10);
    report(b, "brightness=20", [&](const Npp8u *from, Npp8u *to) { add(b, from, to); });
    report(b, "gaussian=0.8:2", [&](const Npp8u *from, Npp8u *to) { gauss5(b, from, to); });
    report(b, "gaussian=1.4", [&](const Npp8u *from, Npp8u *to) { gauss(b, from, to, 9, tap9); });
    report(b, "gaussian=2.7", [&](const Npp8u *from, Npp8u *to) { gauss(b, from, to, 17, tap17); });
    report(b, "gaussian=10", [&](const Npp8u *from, Npp8u *to) { gauss(b, from, to, 61, tap61); });
    report(b, "sobel", [&](const Npp8u *from, Npp8u *to) { sobel(b, from, to); });
    report(b, "box=20", [&](const Npp8u *from, Npp8u *to) { box41(b, from, to); });
    report(b, "gray,gaussian=1.4,sobel,threshold=20:240", [&](const Npp8u *from, Npp8u *to) {
        gauss5(b, from, b.bytes[0]); // 5x5: its best case
        sobel(b, b.bytes[0], b.bytes[1]);
        threshold(b, b.bytes[1], to);
    });
    return 0;
}
