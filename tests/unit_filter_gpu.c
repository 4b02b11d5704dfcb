// Filters on a GPU: frames on the host, pinned or not, and in the GPU's memory, equal to the scalar
// reference's. Skipped where there is no GPU.
#include "tests/filter_frames.h"

#include <pthread.h>

#include "plan/backend.h"

#ifndef CUDA_ARCHS
#define CUDA_ARCHS "" // of the build, as "75 80 90 100"
#endif

enum { MOST_PAIRS = 60 };

static const struct log silent = {0};
static struct backend *gpu; // for memory of the device; NULL: there is none

static int open_gpu(void **state)
{
    char reason[256];
    (void)state;
    if (backend_cuda_create(0, &silent, &gpu, reason, sizeof reason))
        print_message("no GPU, no tests of filters on one: %s\n", reason);
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    backend_destroy(&gpu);
    return 0;
}

static struct sluice_filter *gpu_filter(const char *chain, const struct sluice_format *input,
                                        int in_flight)
{
    struct sluice_filter_config config = test_config(chain, input);
    config.backend = SLUICE_BACKEND_CUDA;
    config.frames_in_flight = in_flight;
    return test_filter(&config);
}

// ---- pictures in device memory ----

// A copy of a picture on the device, its padding, too.
struct device_picture {
    const struct test_picture *like;
    uint8_t *memory;
    struct sluice_frame frame;
};

static struct device_picture to_device(const struct test_picture *picture)
{
    struct device_picture on = {picture, gpu->device_copy(gpu, picture->memory, picture->bytes),
                                picture->frame};
    assert_non_null(on.memory);
    for (int p = 0; p < picture->format.planes; p++)
        on.frame.data[p] = on.memory + (picture->frame.data[p] - picture->memory);
    on.frame.memory = SLUICE_MEMORY_DEVICE;
    return on;
}

// Bring it back over the picture that it is a copy of: as one row, by a filter that does nothing.
static void from_device(struct device_picture *on, struct test_picture *picture)
{
    struct sluice_format row = test_format("gray", (int)picture->bytes, 1);
    struct sluice_filter *filter = gpu_filter("null", &row, 1);
    const struct sluice_frame in = {.size = sizeof in,
                                    .data = {on->memory},
                                    .stride = {(ptrdiff_t)picture->bytes},
                                    .memory = SLUICE_MEMORY_DEVICE};
    const struct sluice_frame out = {
        .size = sizeof out, .data = {picture->memory}, .stride = {(ptrdiff_t)picture->bytes}};
    assert_int_equal(sluice_filter_run(filter, &in, &out, NULL), SLUICE_STATUS_OK);
    sluice_filter_destroy(&filter);
    gpu->device_free(gpu, on->memory);
}

// Gray frames in the GPU's memory, and where their results go.
struct device_pairs {
    int count;
    struct test_picture *in[MOST_PAIRS], *got[MOST_PAIRS];
    struct device_picture source[MOST_PAIRS], target[MOST_PAIRS];
};

static void pairs_init(struct device_pairs *pairs, const struct sluice_format *format, int count)
{
    assert_true(count <= MOST_PAIRS);
    pairs->count = count;
    for (int k = 0; k < count; k++) {
        pairs->in[k] = test_noise(format, ROWS_ODD, (uint32_t)k);
        pairs->got[k] = test_picture(format, ROWS_ODD);
        pairs->source[k] = to_device(pairs->in[k]);
        pairs->target[k] = to_device(pairs->got[k]);
    }
}

// The frames from number `first` on, for a call.
static void pairs_frames(const struct device_pairs *pairs, int first, int count,
                         struct sluice_frame *from, struct sluice_frame *to)
{
    for (int k = 0; k < count; k++) {
        from[k] = pairs->source[first + k].frame;
        to[k] = pairs->target[first + k].frame;
    }
}

// Each result is what the reference makes of its frame by chain(k), which is asked for one after the
// other. Frees all.
static void pairs_finish(struct device_pairs *pairs, const char *(*chain)(int k))
{
    for (int k = 0; k < pairs->count; k++) {
        struct sluice_format format =
            test_format("gray", pairs->in[k]->image.width, pairs->in[k]->image.height);
        struct test_picture *want = test_picture(&format, ROWS_TIGHT);
        test_reference(chain(k), pairs->in[k], false, want);
        from_device(&pairs->target[k], pairs->got[k]);
        gpu->device_free(gpu, pairs->source[k].memory);
        test_same(chain(k), pairs->got[k], want);
        test_picture_free(pairs->in[k]);
        test_picture_free(pairs->got[k]);
        test_picture_free(want);
    }
}

// ---- results ----

static const char *const chains[] = {"null",
                                     "contrast=1.3",
                                     "gray",
                                     "gaussian=1.3",
                                     "gaussian=0.8:2",
                                     "box=1:border=zero",
                                     "convolve='0 1 0/1 -4 1/0 1 0'",
                                     "gaussian=17",
                                     "gray,gaussian=1.4,sobel,threshold=20:240",
                                     "brightness=20,sharpen",
                                     "stats,sobel",
                                     "wavelet=1:3"};
static const char *const formats[] = {"gray", "yuv420p", "nv12",     "rgb24",
                                      "bgra", "p010le",  "gbrp12be", "yuyv422"};
static const int sizes[][2] = {{1, 1}, {33, 17}, {131, 12}};

enum where { ON_HOST, PINNED, HOST_TO_GPU, GPU_TO_HOST, ON_GPU, WHERES };

// Move a picture into pinned memory.
static void pin(struct sluice_filter *filter, struct test_picture *picture)
{
    uint8_t *pinned = sluice_filter_alloc(filter, picture->bytes);
    assert_non_null(pinned);
    memcpy(pinned, picture->memory, picture->bytes);
    for (int p = 0; p < picture->format.planes; p++) {
        picture->image.data[p] = pinned + (picture->image.data[p] - picture->memory);
        picture->frame.data[p] = picture->image.data[p];
    }
    free(picture->memory);
    picture->memory = pinned;
}

static void free_picture(struct sluice_filter *filter, struct test_picture *picture, bool pinned)
{
    if (pinned) {
        sluice_filter_free(filter, picture->memory, picture->bytes);
        picture->memory = NULL;
    }
    test_picture_free(picture);
}

static void check_place(struct sluice_filter *filter, const char *chain,
                        const struct sluice_format *input, enum where where, bool over)
{
    struct sluice_format output = {.size = sizeof output};
    char what[256];
    sluice_filter_output(filter, &output);
    bool up = where == GPU_TO_HOST || where == ON_GPU;   // the source is on the device
    bool down = where == HOST_TO_GPU || where == ON_GPU; // the result stays there
    struct test_picture *in = test_noise(input, ROWS_ODD, 3);
    struct test_picture *got = test_picture(&output, ROWS_UPSIDE_DOWN);
    struct test_picture *want = test_picture(&output, ROWS_TIGHT);
    test_reference(chain, in, false, want);
    if (over)
        test_picture_free(got), got = in;
    if (where == PINNED)
        pin(filter, in);
    if (where == PINNED && !over)
        pin(filter, got);
    struct device_picture source = {0}, target = {0};
    if (up)
        source = to_device(in);
    if (down && !over)
        target = to_device(got);
    const struct sluice_frame *from = up ? &source.frame : &in->frame;
    const struct sluice_frame *to = over ? from : down ? &target.frame : &got->frame;
    snprintf(what, sizeof what, "%s of %s %dx%d at place %d%s", chain, input->pixfmt, input->width,
             input->height, (int)where, over ? ", in place" : "");
    if (sluice_filter_run(filter, from, to, NULL))
        fail_msg("%s: %s", what, test_sentence);
    if (down)
        from_device(over ? &source : &target, got);
    if (up && !(over && down))
        gpu->device_free(gpu, source.memory);
    test_same(what, got, want);
    free_picture(filter, got, where == PINNED);
    if (!over)
        free_picture(filter, in, where == PINNED);
    test_picture_free(want);
}

static void results_are_those_of_the_reference(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
            const int *size = sizes[(f + c) % 3];
            bool packed = !strcmp(formats[f], "yuyv422"); // of odd width it has a byte of no sample
            struct sluice_format input =
                test_format(formats[f], size[0] + (packed ? size[0] & 1 : 0), size[1]);
            struct sluice_filter *filter = gpu_filter(chains[c], &input, 1 + (int)c % 3);
            struct sluice_format output = {.size = sizeof output};
            sluice_filter_output(filter, &output);
            for (int where = 0; where < WHERES; where++) {
                check_place(filter, chains[c], &input, (enum where)where, false);
                bool same = where != HOST_TO_GPU && where != GPU_TO_HOST;
                if (same && !strcmp(output.pixfmt, input.pixfmt))
                    check_place(filter, chains[c], &input, (enum where)where, true);
            }
            sluice_filter_destroy(&filter);
        }
}

// One end of a pass has bytes side by side, at any address, and the other one has not.
static void stencils_go_from_format_to_format(void **state)
{
    static const char *const cases[][3] = {
        {"yuyv422", "gray", "gray,box=1"},   {"uyvy422", "yuv411p", "box=2"},
        {"yuv420p", "nv12", "gaussian=0.5"}, {"nv12", "yuv420p", "gaussian=0.8:2"},
        {"rgb24", "gbrp", "box=2"},          {"gbrp", "rgb24", "gaussian=3"},
        {"ya8", "gray", "gaussian=0.8:2"},   {"gray", "ya8", "laplacian"},
        {"rgb24", "bgra", "box=1"},          {"rgba", "argb", "gaussian=0.8:2"},
        {"rgb24", "rgb48be", "gaussian=1"},  {"gray10le", "gray", "box=1"},
    };
    (void)state;
    if (!gpu)
        skip();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int s = 0; s < 3; s++) {
            const char *chain = cases[k][2];
            struct sluice_format input = test_format(cases[k][0], sizes[s][0] + 1, sizes[s][1]);
            struct sluice_filter_config config = test_config(chain, &input);
            config.backend = SLUICE_BACKEND_CUDA;
            config.output_pixfmt = cases[k][1];
            struct sluice_filter *filter = test_filter(&config);
            check_place(filter, chain, &input, ON_GPU, false);
            check_place(filter, chain, &input, HOST_TO_GPU, false);
            sluice_filter_destroy(&filter);
        }
}

// A frame's result goes to an address that stencils do not write at, and one of the same call, whose rows
// are as far apart, is made in its slot, as it takes the place of its source.
static void frames_of_a_call_are_made_in_different_places(void **state)
{
    const struct sluice_format format = test_format("gray", 48, 20);
    const char *const chain = "gaussian=3";
    (void)state;
    if (!gpu)
        skip();
    struct test_picture *in[2], *want[2], *got = test_picture(&format, ROWS_TIGHT);
    got->image.data[0]++;
    got->frame.data[0] = got->image.data[0];
    for (int k = 0; k < 2; k++) {
        in[k] = test_noise(&format, ROWS_TIGHT, (uint32_t)k);
        want[k] = test_picture(&format, ROWS_TIGHT);
        test_reference(chain, in[k], false, want[k]);
    }
    struct device_picture source[2] = {to_device(in[0]), to_device(in[1])}, to = to_device(got);
    const struct sluice_frame from[2] = {source[0].frame, source[1].frame};
    const struct sluice_frame into[2] = {to.frame, source[1].frame};
    struct sluice_filter *filter = gpu_filter(chain, &format, 2);
    assert_int_equal(sluice_filter_run_many(filter, from, into, 2, NULL), SLUICE_STATUS_OK);
    sluice_filter_destroy(&filter);
    from_device(&to, got);
    from_device(&source[1], in[1]);
    gpu->device_free(gpu, source[0].memory);
    test_same("elsewhere", got, want[0]);
    test_same("in place", in[1], want[1]);
    struct test_picture *const all[] = {in[0], in[1], want[0], want[1], got};
    for (int k = 0; k < 5; k++)
        test_picture_free(all[k]);
}

static const char *overlapping_chain(int k)
{
    static const char *const chain[] = {"gaussian=sigma=1", "gaussian=sigma=2", "gaussian=sigma=3"};
    return chain[k / 20];
}

// Many under way, in device memory and in pairs, with changes between them.
static void frames_overlap(void **state)
{
    enum { FRAMES = 60, IN_FLIGHT = 8 };
    (void)state;
    if (!gpu)
        skip();
    const struct sluice_format input = test_format("gray", 131, 40);
    struct sluice_filter *filter = gpu_filter(overlapping_chain(0), &input, IN_FLIGHT);
    struct device_pairs pairs;
    struct sluice_frame from[2], to[2], made = {.size = sizeof made};
    char text[32];
    pairs_init(&pairs, &input, FRAMES);
    int received = 0;
    for (int k = 0; k < FRAMES; k += 2) {
        pairs_frames(&pairs, k, 2, from, to);
        from[0].pts = k, from[1].pts = k + 1;
        snprintf(text, sizeof text, "gaussian.sigma=%d", 1 + k / 20);
        if (k && k % 20 == 0)
            assert_int_equal(sluice_filter_set(filter, text, NULL, 0), SLUICE_STATUS_OK);
        enum sluice_status status;
        while ((status = sluice_filter_submit_many(filter, from, to, 2, NULL)) ==
               SLUICE_STATUS_AGAIN) {
            assert_int_equal(sluice_filter_receive(filter, &made), SLUICE_STATUS_OK);
            assert_int_equal(made.pts, received++);
        }
        assert_int_equal(status, SLUICE_STATUS_OK);
    }
    sluice_filter_destroy(&filter);
    pairs_finish(&pairs, overlapping_chain);
}

// A filter on a thread of its own, and how its frames went.
struct busy {
    struct sluice_filter *filter;
    const struct test_picture *in;
    struct test_picture *got;
    int failed;
};

static void *filter_again_and_again(void *opaque)
{
    enum { FRAMES = 300 };
    struct busy *busy = opaque;
    for (int k = 0; k < FRAMES; k++)
        busy->failed += sluice_filter_run(busy->filter, &busy->in->frame, &busy->got->frame,
                                          NULL) != SLUICE_STATUS_OK;
    return NULL;
}

// Two threads filter on one GPU by the same kernels, which take more shared memory for one of them.
static void threads_take_different_shared_memory(void **state)
{
    static const char *const pairs[][2] = {
        {"box=260", "box=500"}, {"gaussian=26", "gaussian=33"}, {"wavelet=3", "wavelet=40"}};
    const struct sluice_format input = test_format("gray", 1200, 24);
    (void)state;
    if (!gpu)
        skip();
    struct test_picture *in = test_noise(&input, ROWS_TIGHT, 7);
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        struct test_picture *want = test_picture(&input, ROWS_TIGHT);
        struct busy busy[2];
        pthread_t thread[2];
        for (int k = 0; k < 2; k++)
            busy[k] = (struct busy){.filter = gpu_filter(pairs[p][k], &input, 1),
                                    .in = in,
                                    .got = test_picture(&input, ROWS_TIGHT)};
        for (int k = 0; k < 2; k++)
            assert_int_equal(pthread_create(&thread[k], NULL, filter_again_and_again, &busy[k]), 0);
        for (int k = 0; k < 2; k++)
            pthread_join(thread[k], NULL);
        for (int k = 0; k < 2; k++) {
            if (busy[k].failed)
                fail_msg("%s beside %s: %d frames failed: %s", pairs[p][k], pairs[p][!k],
                         busy[k].failed, test_sentence);
            test_reference(pairs[p][k], in, false, want);
            test_same(pairs[p][k], busy[k].got, want);
            sluice_filter_destroy(&busy[k].filter);
            test_picture_free(busy[k].got);
        }
        test_picture_free(want);
    }
    test_picture_free(in);
}

// ---- launches as graphs ----

// Calls of the runtime that the linker sends here. One that is to fail does so before it does anything,
// and those behind it work.
static int graphs_launched, arguments_set;
static bool no_graph, no_arguments;

int __real_cudaGraphLaunch(void *graph, void *stream) __attribute__((weak));
int __real_cudaGraphInstantiateWithFlags(void **runs, void *graph, unsigned long long flags)
    __attribute__((weak));
int __real_cudaGraphExecKernelNodeSetParams(void *runs, void *node, const void *params)
    __attribute__((weak));
int __wrap_cudaGraphLaunch(void *graph, void *stream);
int __wrap_cudaGraphInstantiateWithFlags(void **runs, void *graph, unsigned long long flags);
int __wrap_cudaGraphExecKernelNodeSetParams(void *runs, void *node, const void *params);

enum { NO_MEMORY = 2, NO_SYMBOL = 500 }; // cudaErrorMemoryAllocation, cudaErrorSymbolNotFound

int __wrap_cudaGraphLaunch(void *graph, void *stream)
{
    graphs_launched++;
    return __real_cudaGraphLaunch(graph, stream);
}

int __wrap_cudaGraphInstantiateWithFlags(void **runs, void *graph, unsigned long long flags)
{
    return no_graph ? NO_MEMORY : __real_cudaGraphInstantiateWithFlags(runs, graph, flags);
}

int __wrap_cudaGraphExecKernelNodeSetParams(void *runs, void *node, const void *params)
{
    arguments_set++;
    return no_arguments ? NO_MEMORY : __real_cudaGraphExecKernelNodeSetParams(runs, node, params);
}

static const char *graph_chain(int k)
{
    (void)k;
    return "gaussian=1,sobel";
}

// Frames in the GPU's memory, each in its own, by a filter with one under way.
static void filter_frames(void)
{
    enum { FRAMES = 6 };
    const struct sluice_format input = test_format("gray", 131, 40);
    struct sluice_filter *filter = gpu_filter(graph_chain(0), &input, 1);
    struct device_pairs pairs;
    pairs_init(&pairs, &input, FRAMES);
    graphs_launched = arguments_set = 0;
    for (int k = 0; k < FRAMES; k++)
        if (sluice_filter_run(filter, &pairs.source[k].frame, &pairs.target[k].frame, NULL))
            fail_msg("frame %d: %s", k, test_sentence);
    sluice_filter_destroy(&filter);
    int launched = graphs_launched, set = arguments_set;
    pairs_finish(&pairs, graph_chain);
    graphs_launched = launched;
    arguments_set = set;
}

static void launches_that_come_again_are_a_graph(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    filter_frames();
    assert_true(graphs_launched >= 2);
    assert_true(arguments_set >= 1);
}

static void launches_go_on_without_a_graph(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    no_graph = true;
    filter_frames();
    no_graph = false;
    assert_int_equal(graphs_launched, 0);
    no_arguments = true;
    filter_frames();
    no_arguments = false;
    assert_int_equal(arguments_set, 1); // and no second time
}

// ---- the caller's stream ----

// dim3, as it is passed.
struct extent {
    unsigned x, y, z;
};

static int waits;

int __real_cudaStreamWaitEvent(void *stream, void *event, unsigned flags) __attribute__((weak));
int __wrap_cudaStreamWaitEvent(void *stream, void *event, unsigned flags);

int __wrap_cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    waits++;
    return __real_cudaStreamWaitEvent(stream, event, flags);
}

// Two calls and frames under way by turns, `at_once` frames a turn, with four times as many slots.
static void take_turns(struct sluice_filter *filter, const struct device_pairs *pairs, int at_once)
{
    struct sluice_frame from[8], to[8], made = {.size = sizeof made};
    for (int k = 0; k < pairs->count; k += at_once) {
        pairs_frames(pairs, k, at_once, from, to);
        enum sluice_status status;
        waits = 0;
        if (k / at_once % 3 == 2) {
            status = sluice_filter_submit_many(filter, from, to, at_once, NULL);
            for (int n = 0; n < at_once && !status; n++)
                status = sluice_filter_receive(filter, &made);
            assert_true(waits >= 2); // there and back
        } else {
            status = sluice_filter_run_many(filter, from, to, at_once, NULL);
            if (k / at_once % 3 == 1)
                assert_int_equal(waits, 0);
        }
        if (status)
            fail_msg("frame %d: %s", k, test_sentence);
    }
}

static const char *scratch_chain(int k)
{
    (void)k;
    return "gaussian=4,box=9";
}

// Frames that a call gives back at once are filtered on the caller's stream, and wait for no other;
// between them are such as are filtered on the filter's. Each frame's scratch memory has been
// another's before.
static void calls_stay_on_the_stream(void **state)
{
    enum { FRAMES = 48 };
    static const int at_once[] = {1, 2, 8};
    (void)state;
    if (!gpu)
        skip();
    const struct sluice_format input = test_format("gray", 1310, 400);
    for (int n = 0; n < 3; n++) {
        struct sluice_filter *filter = gpu_filter(scratch_chain(0), &input, 4 * at_once[n]);
        struct device_pairs pairs;
        pairs_init(&pairs, &input, FRAMES);
        take_turns(filter, &pairs, at_once[n]);
        sluice_filter_destroy(&filter);
        pairs_finish(&pairs, scratch_chain);
    }
}

// ---- launches ----

static int launched, launched_dependently, recorded;

int __real_cudaEventRecord(void *event, void *stream) __attribute__((weak));
int __wrap_cudaEventRecord(void *event, void *stream);

int __wrap_cudaEventRecord(void *event, void *stream)
{
    recorded++;
    return __real_cudaEventRecord(event, stream);
}

int __real_cudaLaunchKernel(const void *kernel, struct extent grid, struct extent block,
                            void **argument, size_t shared, void *stream) __attribute__((weak));
int __wrap_cudaLaunchKernel(const void *kernel, struct extent grid, struct extent block,
                            void **argument, size_t shared, void *stream);

int __wrap_cudaLaunchKernel(const void *kernel, struct extent grid, struct extent block,
                            void **argument, size_t shared, void *stream)
{
    launched++;
    return __real_cudaLaunchKernel(kernel, grid, block, argument, shared, stream);
}

int __real_cudaLaunchKernelExC(const void *config, const void *kernel, void **argument)
    __attribute__((weak));
int __wrap_cudaLaunchKernelExC(const void *config, const void *kernel, void **argument);

int __wrap_cudaLaunchKernelExC(const void *config, const void *kernel, void **argument)
{
    launched_dependently++;
    return __real_cudaLaunchKernelExC(config, kernel, argument);
}

// The driver's calls, which the backend asks for as it is made.
static bool no_driver;
static int launched_by_driver;
static int (*launch_by_driver)(const void *config, void *function, void **argument, void **extra);

// The one of these that the runtime has: the second is older than CUDA 12.5.
int __real_cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                            unsigned long long flags, int *result)
    __attribute__((weak));
int __real_cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                   int *result) __attribute__((weak));
int __wrap_cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                            unsigned long long flags, int *result);
int __wrap_cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                   int *result);

static int count_launch(const void *config, void *function, void **argument, void **extra)
{
    launched_dependently++;
    launched_by_driver++;
    return launch_by_driver(config, function, argument, extra);
}

// Let launches be counted, if that is the function.
static void count_launches(const char *name, void **function)
{
    int (*counts)(const void *, void *, void **, void **) = count_launch;
    if (!*function || strcmp(name, "cuLaunchKernelEx"))
        return;
    memcpy(&launch_by_driver, function, sizeof launch_by_driver);
    memcpy(function, &counts, sizeof counts);
}

int __wrap_cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                            unsigned long long flags, int *result)
{
    if (no_driver)
        return NO_SYMBOL;
    int error = __real_cudaGetDriverEntryPointByVersion(name, function, version, flags, result);
    if (!error)
        count_launches(name, function);
    return error;
}

int __wrap_cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                   int *result)
{
    if (no_driver)
        return NO_SYMBOL;
    int error = __real_cudaGetDriverEntryPoint(name, function, flags, result);
    if (!error)
        count_launches(name, function);
    return error;
}

// Programmatic dependent launches are of compute capability 9.0 and later, and of builds for some
// such GPU.
static bool has_dependent_launches(const struct sluice_filter *filter)
{
    const char *capability = strstr(sluice_filter_backend(filter), "capability ");
    bool built = false;
    char archs[] = CUDA_ARCHS;
    for (char *one = strtok(archs, " "); one; one = strtok(NULL, " "))
        built |= atoi(one) >= 90;
    assert_non_null(capability);
    return built && atof(capability + strlen("capability ")) >= 9;
}

static const char *launched_chain(int k)
{
    (void)k;
    return "brightness=20";
}

// Frames of one call are one launch, wherever the calls before it have left the filter's ring of
// eight: a dependent one behind another call on the stream, and none behind or for frames of which
// more may be under way.
static void check_launches(void)
{
    enum { FRAMES = 8 };
    static const int calls[] = {1, 8, 3, 6, 5, 8, 1, 1, 7, 8};
    launched_by_driver = 0;
    const struct sluice_format input = test_format("gray", 131, 40);
    struct sluice_filter *filter = gpu_filter(launched_chain(0), &input, FRAMES);
    struct device_pairs pairs;
    struct sluice_frame from[FRAMES], to[FRAMES], made = {.size = sizeof made};
    pairs_init(&pairs, &input, FRAMES);
    pairs_frames(&pairs, 0, FRAMES, from, to);
    for (int k = 0; k < (int)(sizeof calls / sizeof *calls); k++) {
        launched = graphs_launched = launched_dependently = 0;
        if (sluice_filter_run_many(filter, from, to, calls[k], NULL))
            fail_msg("call %d: %s", k, test_sentence);
        if (launched + graphs_launched + launched_dependently != 1)
            fail_msg("call %d, %d frames: %d launches, %d of graphs, %d dependent ones", k,
                     calls[k], launched, graphs_launched, launched_dependently);
        assert_int_equal(launched_dependently, has_dependent_launches(filter));
    }
    if (launch_by_driver && has_dependent_launches(filter))
        assert_int_equal(launched_by_driver >= 1, !no_driver);
    launched = graphs_launched = launched_dependently = 0;
    assert_int_equal(sluice_filter_submit_many(filter, from, to, 3, NULL), SLUICE_STATUS_OK);
    for (int k = 0; k < 3; k++)
        assert_int_equal(sluice_filter_receive(filter, &made), SLUICE_STATUS_OK);
    assert_true(launched + graphs_launched >= 1);
    assert_int_equal(launched_dependently, 0);
    sluice_filter_destroy(&filter);
    pairs_finish(&pairs, launched_chain);
}

static void a_call_is_one_launch(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    check_launches();
}

static void a_driver_without_the_calls_is_done_without(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    no_driver = true;
    check_launches();
    no_driver = false;
}

// ---- dependent launches ----

// Frames of one call are the next one's sources, and its results go where those came from: calls of two
// filters by turns on one stream, most of them one kernel each, which must not touch what the one before
// still writes or reads.
static void a_result_is_the_next_calls_source(void **state)
{
    static const struct {
        const char *pixfmt, *chain[2];
        int width, height;
    } cases[] = {
        {"gray", {"brightness=3", "invert"}, 1280, 720},
        {"gray", {"gaussian=1.4", "brightness=3"}, 1280, 720},
        {"gray", {"gaussian=1.4", "emboss"}, 1280, 720},
        {"gray", {"sobel", "scharr"}, 1280, 720},
        {"gray", {"log=2", "gaussian=10"}, 1280, 720},
        {"gray", {"invert", "contrast=1.3"}, 1283, 721},
        {"gray", {"sharpen", "invert"}, 1280, 720},
        {"gray", {"invert", "box=3"}, 1280, 720},
        {"gray10le", {"gaussian=1.4", "invert"}, 704, 576},
        {"yuv420p", {"gaussian=1", "invert"}, 642, 360},
        {"rgb24", {"invert", "brightness=3"}, 642, 360},
        {"rgb24", {"contrast=0.9", "gaussian=1"}, 642, 360},
    };
    enum { ROUNDS = 6, TIMES = 4 };
    (void)state;
    if (!gpu)
        skip();
    for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++) {
        const struct sluice_format input =
            test_format(cases[c].pixfmt, cases[c].width, cases[c].height);
        struct test_picture *in = test_noise(&input, ROWS_TIGHT, 7);
        struct test_picture *want[2] = {test_noise(&input, ROWS_TIGHT, 7),
                                        test_picture(&input, ROWS_TIGHT)};
        for (int k = 0; k < ROUNDS; k++)
            test_reference(cases[c].chain[k % 2], want[k % 2], false, want[!(k % 2)]);
        for (int time = 0; time < TIMES; time++) {
            struct sluice_filter *filter[2] = {gpu_filter(cases[c].chain[0], &input, 0),
                                               gpu_filter(cases[c].chain[1], &input, 0)};
            struct test_picture *got = test_picture(&input, ROWS_TIGHT);
            struct device_picture on[2] = {to_device(in), to_device(got)};
            for (int k = 0; k < ROUNDS; k++)
                if (sluice_filter_run(filter[k % 2], &on[k % 2].frame, &on[!(k % 2)].frame, NULL))
                    fail_msg("%s: %s", cases[c].chain[k % 2], test_sentence);
            from_device(&on[0], got);
            gpu->device_free(gpu, on[1].memory);
            test_same(cases[c].chain[0], got, want[0]);
            test_picture_free(got);
            for (int k = 0; k < 2; k++)
                sluice_filter_destroy(&filter[k]);
        }
        test_picture_free(in);
        for (int k = 0; k < 2; k++)
            test_picture_free(want[k]);
    }
}

void *late_stream(void) __attribute__((weak)); // tests/late_copy.cu; not built without CUDA
int late_copy(void *stream, uint8_t *to, const uint8_t *from, size_t bytes, uint8_t *also_to,
              const uint8_t *also_from, size_t also_bytes, long long clocks) __attribute__((weak));
int late_stream_end(void *stream) __attribute__((weak));
bool late_stream_is_idle(void *stream) __attribute__((weak));

// One frame, whose source a kernel of the caller's writes before it, and whose target that reads, both long
// after it has let the filter's kernel begin.
static void check_late_caller(const char *pixfmt, const char *chain)
{
    const long long a_while = 40000000; // clocks of a GPU, some 20 milliseconds
    const struct sluice_format input = test_format(pixfmt, 640, 360);
    struct sluice_format output = {.size = sizeof output};
    struct sluice_filter *filter = gpu_filter(chain, &input, 0);
    sluice_filter_output(filter, &output);
    struct test_picture *before = test_noise(&input, ROWS_TIGHT, 1),
                        *after = test_noise(&input, ROWS_TIGHT, 2);
    struct test_picture *got = test_picture(&output, ROWS_TIGHT),
                        *kept = test_picture(&output, ROWS_TIGHT);
    struct test_picture *want = test_picture(&output, ROWS_TIGHT);
    struct device_picture source = to_device(before), late = to_device(after);
    struct device_picture target = to_device(got), copy = to_device(kept);
    void *stream = late_stream();
    assert_non_null(stream);
    if (sluice_filter_run(filter, &source.frame, &target.frame, stream))
        fail_msg("%s: %s", chain, test_sentence);
    assert_int_equal(late_copy(stream, source.memory, late.memory, before->bytes, copy.memory,
                               target.memory, got->bytes, a_while),
                     0);
    launched_dependently = 0;
    if (sluice_filter_run(filter, &source.frame, &target.frame, stream))
        fail_msg("%s: %s", chain, test_sentence);
    if (launched_dependently != has_dependent_launches(filter))
        fail_msg("%s of %s: %d dependent launches", chain, pixfmt, launched_dependently);
    assert_int_equal(late_stream_end(stream), 0);
    from_device(&target, got);
    from_device(&copy, kept);
    gpu->device_free(gpu, source.memory);
    gpu->device_free(gpu, late.memory);
    test_reference(chain, before, false, want);
    test_same(chain, kept, want);
    test_reference(chain, after, false, want);
    test_same(chain, got, want);
    sluice_filter_destroy(&filter);
    struct test_picture *const all[] = {before, after, got, kept, want};
    for (int k = 0; k < 5; k++)
        test_picture_free(all[k]);
}

// Chains of one kernel, each of those that are launched dependently among them.
static void a_callers_kernel_that_is_late_is_waited_for(void **state)
{
    static const char *const gray[] = {
        "brightness=3", "gaussian=1.4", "gaussian=2.7", "gaussian=10",
        "sobel",        "scharr",       "sobel=l2",     "gaussian=1.4,sobel",
        "emboss",       "laplacian",    "log=2",        "gray,gaussian=1.4,sobel,threshold=20:240"};
    (void)state;
    if (!gpu || !late_copy)
        skip();
    for (size_t k = 0; k < sizeof gray / sizeof *gray; k++)
        check_late_caller("gray", gray[k]);
    check_late_caller("gray10le", "brightness=3");
    check_late_caller("gray10be", "brightness=3");
    check_late_caller("rgb24", "gray");
    check_late_caller("gbrp", "gray");
    check_late_caller("rgb48le", "gray");
}

// An event behind a call says when the filter's memory may be used again: where kernels read a table, or
// other constants, or a plane goes by way of a slot.
static void calls_that_touch_frames_alone_record_no_event(void **state)
{
    static const struct {
        const char *pixfmt, *chain;
        int width, events;
    } cases[] = {
        {"gray", "brightness=20", 640, 0}, {"gray", "invert", 643, 1},
        {"gray", "null", 640, 0},          {"gray", "threshold=20:240", 640, 0},
        {"rgb24", "gray", 640, 0},         {"gray10le", "brightness=20", 640, 1},
        {"gray", "gamma=2.2", 640, 1},     {"rgb24", "gamma=2.2,gray", 640, 1},
        {"gray", "gaussian=1", 640, 1},    {"gray", "box=3", 640, 1},

    };
    (void)state;
    if (!gpu)
        skip();
    for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++) {
        const struct sluice_format input = test_format(cases[c].pixfmt, cases[c].width, 36);
        struct sluice_format output = {.size = sizeof output};
        struct sluice_filter *filter = gpu_filter(cases[c].chain, &input, 1);
        sluice_filter_output(filter, &output);
        struct test_picture *in = test_noise(&input, ROWS_TIGHT, 1);
        struct test_picture *got = test_picture(&output, ROWS_TIGHT);
        struct device_picture from = to_device(in), to = to_device(got);
        for (int k = 0; k < 3; k++) {
            recorded = 0;
            if (sluice_filter_run(filter, &from.frame, &to.frame, NULL))
                fail_msg("%s: %s", cases[c].chain, test_sentence);
        }
        if (has_dependent_launches(filter) ? recorded != cases[c].events : recorded < 1)
            fail_msg("%s of %s: %d events", cases[c].chain, cases[c].pixfmt, recorded);
        sluice_filter_destroy(&filter);
        from_device(&to, got);
        gpu->device_free(gpu, from.memory);
        test_picture_free(in);
        test_picture_free(got);
    }
}

// A gray picture, which is made over the pixels that it is made of, by way of the slot's memory, or
// elsewhere, and then touches frames alone.
struct grays {
    struct test_picture *source, *over, *want, *got;
    struct device_picture from, in_place, to;
    struct sluice_frame over_from; // as a gray picture
};

static struct grays grays_init(uint32_t seed)
{
    const struct sluice_format input = test_format("rgb24", 640, 360);
    const struct sluice_format output = test_format("gray", 640, 360);
    struct grays grays = {.source = test_noise(&input, ROWS_TIGHT, seed),
                          .over = test_noise(&input, ROWS_TIGHT, seed),
                          .want = test_picture(&output, ROWS_TIGHT),
                          .got = test_picture(&output, ROWS_TIGHT)};
    grays.from = to_device(grays.source);
    grays.in_place = to_device(grays.over);
    grays.to = to_device(grays.got);
    grays.over_from = grays.in_place.frame;
    test_reference("gray", grays.source, false, grays.want);
    return grays;
}

// Both results are right, as far as they were made. Frees all.
static void grays_finish(struct grays *grays, bool in_place, bool elsewhere)
{
    from_device(&grays->in_place, grays->over);
    from_device(&grays->to, grays->got);
    gpu->device_free(gpu, grays->from.memory);
    if (elsewhere)
        test_same("gray", grays->got, grays->want);
    for (int y = 0; in_place && y < grays->want->image.height; y++)
        assert_memory_equal(grays->over->frame.data[0] + y * grays->over->frame.stride[0],
                            grays->want->frame.data[0] + y * grays->want->frame.stride[0],
                            (size_t)grays->want->image.width);
    struct test_picture *const all[] = {grays->source, grays->over, grays->want, grays->got};
    for (int k = 0; k < 4; k++)
        test_picture_free(all[k]);
}

// The only slot's memory is used on one stream, which a kernel of the caller's holds up, and later on
// another: which waits for the first, also through frames between them that use none of it.
static void a_slots_memory_is_waited_for(void **state)
{
    const long long a_while = 400000000; // clocks of a GPU, some 200 milliseconds
    const struct sluice_format input = test_format("rgb24", 640, 360);
    (void)state;
    if (!gpu || !late_copy)
        skip();
    for (int between = 0; between < 3; between++) {
        struct sluice_filter *filter = gpu_filter("gray", &input, 1);
        struct grays grays[2] = {grays_init(1), grays_init(2)};
        void *late = late_stream(), *other = late_stream();
        assert_int_equal(late_copy(late, NULL, NULL, 0, NULL, NULL, 0, a_while), 0);
        recorded = 0;
        assert_int_equal(sluice_filter_run(filter, &grays[0].from.frame, &grays[0].to.frame, late),
                         SLUICE_STATUS_OK);
        assert_int_equal(
            sluice_filter_run(filter, &grays[0].in_place.frame, &grays[0].over_from, late),
            SLUICE_STATUS_OK);
        const int before = recorded;
        assert_true(before >= 1);
        for (int k = 0; k < between; k++)
            assert_int_equal(
                sluice_filter_run(filter, &grays[0].from.frame, &grays[0].to.frame, late),
                SLUICE_STATUS_OK);
        if (has_dependent_launches(filter))
            assert_int_equal(recorded, before);
        assert_int_equal(
            sluice_filter_run(filter, &grays[1].in_place.frame, &grays[1].over_from, other),
            SLUICE_STATUS_OK);
        const struct timespec nap = {.tv_nsec = 20000000}; // a thousand times what the frame takes
        nanosleep(&nap, NULL);
        const bool ended = late_stream_is_idle(other);
        if (!late_stream_is_idle(late)) // as it may be where a sanitizer waits for launches
            assert_false(ended);
        sluice_filter_destroy(&filter);
        assert_true(late_stream_is_idle(other));
        assert_int_equal(late_stream_end(late), 0);
        assert_int_equal(late_stream_end(other), 0);
        grays_finish(&grays[0], true, true);
        grays_finish(&grays[1], true, false);
    }
}

// Slots that were used together, by one launch, and that other frames have led since, are waited for, too.
static void slots_used_together_are_waited_for(void **state)
{
    enum { SLOTS = 3, BETWEEN = 4 };
    const long long a_while = 400000000;
    const struct timespec nap = {.tv_nsec = 20000000};
    const struct sluice_format input = test_format("rgb24", 640, 360);
    (void)state;
    if (!gpu || !late_copy)
        skip();
    struct sluice_filter *filter = gpu_filter("gray", &input, SLOTS);
    struct grays grays[SLOTS + 1];
    struct sluice_frame from[SLOTS], to[SLOTS];
    for (int k = 0; k <= SLOTS; k++)
        grays[k] = grays_init((uint32_t)k);
    for (int k = 0; k < SLOTS; k++) {
        from[k] = grays[k].in_place.frame;
        to[k] = grays[k].over_from;
    }
    void *late = late_stream(), *other = late_stream();
    assert_int_equal(late_copy(late, NULL, NULL, 0, NULL, NULL, 0, a_while), 0);
    assert_int_equal(sluice_filter_run_many(filter, from, to, SLOTS, late), SLUICE_STATUS_OK);
    for (int k = 0; k < BETWEEN; k++)
        assert_int_equal(sluice_filter_run(filter, &grays[0].from.frame, &grays[0].to.frame, late),
                         SLUICE_STATUS_OK);
    assert_int_equal(
        sluice_filter_run(filter, &grays[SLOTS].in_place.frame, &grays[SLOTS].over_from, other),
        SLUICE_STATUS_OK);
    nanosleep(&nap, NULL);
    const bool ended = late_stream_is_idle(other);
    if (!late_stream_is_idle(late))
        assert_false(ended);
    assert_int_equal(late_stream_end(late), 0);
    assert_int_equal(late_stream_end(other), 0);
    sluice_filter_destroy(&filter);
    for (int k = 0; k <= SLOTS; k++)
        grays_finish(&grays[k], true, k == 0);
}

// A source from the host lies in the only slot until a kernel that is held up has read it, and frames
// come between that use no memory: the next source from the host has to wait for that kernel.
static void a_source_in_a_slot_stays_until_it_was_read(void **state)
{
    const long long a_while = 400000000;
    const struct sluice_format input = test_format("rgb24", 640, 360);
    (void)state;
    if (!gpu || !late_copy)
        skip();
    struct sluice_filter *filter = gpu_filter("gray", &input, 1);
    struct grays grays[3] = {grays_init(1), grays_init(2), grays_init(3)};
    void *late = late_stream();
    assert_int_equal(late_copy(late, NULL, NULL, 0, NULL, NULL, 0, a_while), 0);
    assert_int_equal(sluice_filter_run(filter, &grays[0].source->frame, &grays[0].to.frame, late),
                     SLUICE_STATUS_OK);
    for (int k = 0; k < 2; k++)
        assert_int_equal(sluice_filter_run(filter, &grays[1].from.frame, &grays[1].to.frame, late),
                         SLUICE_STATUS_OK);
    assert_int_equal(sluice_filter_run(filter, &grays[2].source->frame, &grays[2].to.frame, late),
                     SLUICE_STATUS_OK);
    assert_int_equal(late_stream_end(late), 0);
    sluice_filter_destroy(&filter);
    for (int k = 0; k < 3; k++)
        grays_finish(&grays[k], false, true);
}

// Frames that touch no memory of the filter's are right though it ends before them, and others take
// what it had.
static void a_filter_may_end_before_such_frames(void **state)
{
    const long long a_while = 400000000;
    const struct sluice_format input = test_format("rgb24", 640, 360);
    (void)state;
    if (!gpu || !late_copy)
        skip();
    struct sluice_filter *filter = gpu_filter("gray", &input, 1);
    struct grays grays = grays_init(1);
    void *late = late_stream();
    assert_int_equal(sluice_filter_run(filter, &grays.from.frame, &grays.to.frame, late),
                     SLUICE_STATUS_OK);
    assert_int_equal(late_copy(late, NULL, NULL, 0, NULL, NULL, 0, a_while), 0);
    assert_int_equal(sluice_filter_run(filter, &grays.from.frame, &grays.to.frame, late),
                     SLUICE_STATUS_OK);
    sluice_filter_destroy(&filter);
    struct sluice_filter *next = gpu_filter("gray,gaussian=3", &input, 8);
    assert_int_equal(late_stream_end(late), 0);
    sluice_filter_destroy(&next);
    grays_finish(&grays, false, true);
}

// ---- copies ----

static int copy_calls, copies;

int __real_cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
    __attribute__((weak));
int __real_cudaMemcpyBatchAsync(void *to, const void *from, const void *bytes, size_t count,
                                void *attributes, void *of, size_t numbers, void *stream)
    __attribute__((weak));
int cudaRuntimeGetVersion(int *version) __attribute__((weak));
int __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int __wrap_cudaMemcpyBatchAsync(void *to, const void *from, const void *bytes, size_t count,
                                void *attributes, void *of, size_t numbers, void *stream);

int __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    copy_calls++;
    copies++;
    return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}

int __wrap_cudaMemcpyBatchAsync(void *to, const void *from, const void *bytes, size_t count,
                                void *attributes, void *of, size_t numbers, void *stream)
{
    copy_calls++;
    copies += (int)count;
    return __real_cudaMemcpyBatchAsync(to, from, bytes, count, attributes, of, numbers, stream);
}

// Planes of frames that go together are copied by one call up and one down, where CUDA has such a call.
static void planes_are_copied_at_once(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    enum { FRAMES = 2, PLANES = 3 };
    const struct sluice_format input = test_format("yuv420p", 128, 40);
    struct sluice_filter *filter = gpu_filter("gaussian=1", &input, FRAMES);
    struct test_picture *in[FRAMES], *got[FRAMES], *want = test_picture(&input, ROWS_TIGHT);
    struct sluice_frame from[FRAMES], to[FRAMES], made = {.size = sizeof made};
    int version = 0;
    for (int k = 0; k < FRAMES; k++) {
        in[k] = test_noise(&input, ROWS_TIGHT, (uint32_t)k);
        got[k] = test_picture(&input, ROWS_TIGHT);
        from[k] = in[k]->frame;
        to[k] = got[k]->frame;
    }
    for (int run = 0; run < 2; run++) { // constants come with the first
        copy_calls = copies = 0;
        if (sluice_filter_submit_many(filter, from, to, FRAMES, NULL))
            fail_msg("%s", test_sentence);
        for (int k = 0; k < FRAMES; k++)
            assert_int_equal(sluice_filter_receive(filter, &made), SLUICE_STATUS_OK);
    }
    assert_int_equal(copies, 2 * FRAMES * PLANES);
    assert_int_equal(cudaRuntimeGetVersion(&version), 0);
    assert_int_equal(copy_calls, version >= 13000 ? 2 : copies);
    sluice_filter_destroy(&filter);
    for (int k = 0; k < FRAMES; k++) {
        test_reference("gaussian=1", in[k], false, want);
        test_same("gaussian=1", got[k], want);
        test_picture_free(in[k]);
        test_picture_free(got[k]);
    }
    test_picture_free(want);
}

// ---- refusals ----

static void memory_of_another_kind_is_refused(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    const struct sluice_format input = test_format("gray", 20, 10);
    struct sluice_filter *filter = gpu_filter("gaussian=1", &input, 1);
    struct test_picture *picture = test_noise(&input, ROWS_TIGHT, 1);
    struct device_picture on = to_device(picture);
    struct sluice_frame wrong[2] = {picture->frame, on.frame};
    wrong[0].memory = SLUICE_MEMORY_DEVICE;
    wrong[1].memory = SLUICE_MEMORY_HOST;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(sluice_filter_run(filter, &wrong[k], &on.frame, NULL),
                         SLUICE_STATUS_USAGE);
        assert_non_null(strstr(test_sentence, k ? "is memory of the GPU that filters, and the "
                                                  "frame says host memory"
                                                : "is host memory, and the frame says memory of "
                                                  "the GPU that filters"));
    }
    gpu->device_free(gpu, on.memory);
    test_picture_free(picture);
    sluice_filter_destroy(&filter);
}

// A grid's blocks go so far down: the tallest are filtered, one row more is refused.
static void pictures_are_as_tall_as_grids(void **state)
{
    enum { MOST_ROWS = 65535 * 8 };
    (void)state;
    if (!gpu)
        skip();
    uint8_t *memory = calloc(2 * 4, MOST_ROWS + 1);
    assert_non_null(memory);
    memory[4 * MOST_ROWS - 1] = 1;
    struct sluice_frame in = {.size = sizeof in, .data = {memory}, .stride = {4}};
    struct sluice_frame out = {
        .size = sizeof out, .data = {memory + 4 * (MOST_ROWS + 1)}, .stride = {4}};
    for (int more = 0; more < 2; more++) {
        struct sluice_format tall = test_format("gray", 4, MOST_ROWS + more);
        struct sluice_filter_config config = test_config("box=1,invert", &tall);
        struct sluice_filter *filter = NULL;
        config.backend = SLUICE_BACKEND_CUDA;
        enum sluice_status status = sluice_filter_create(&config, &filter);
        assert_int_equal(status, more ? SLUICE_STATUS_DEVICE : SLUICE_STATUS_OK);
        if (!more)
            assert_int_equal(sluice_filter_run(filter, &in, &out, NULL), SLUICE_STATUS_OK);
        sluice_filter_destroy(&filter);
    }
    assert_int_equal(out.data[0][0], 255);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_reference),
        cmocka_unit_test(stencils_go_from_format_to_format),
        cmocka_unit_test(frames_of_a_call_are_made_in_different_places),
        cmocka_unit_test(frames_overlap),
        cmocka_unit_test(threads_take_different_shared_memory),
        cmocka_unit_test(launches_that_come_again_are_a_graph),
        cmocka_unit_test(launches_go_on_without_a_graph),
        cmocka_unit_test(calls_stay_on_the_stream),
        cmocka_unit_test(a_call_is_one_launch),
        cmocka_unit_test(a_driver_without_the_calls_is_done_without),
        cmocka_unit_test(a_result_is_the_next_calls_source),
        cmocka_unit_test(a_callers_kernel_that_is_late_is_waited_for),
        cmocka_unit_test(calls_that_touch_frames_alone_record_no_event),
        cmocka_unit_test(a_slots_memory_is_waited_for),
        cmocka_unit_test(slots_used_together_are_waited_for),
        cmocka_unit_test(a_source_in_a_slot_stays_until_it_was_read),
        cmocka_unit_test(a_filter_may_end_before_such_frames),
        cmocka_unit_test(planes_are_copied_at_once),
        cmocka_unit_test(memory_of_another_kind_is_refused),
        cmocka_unit_test(pictures_are_as_tall_as_grids),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
