#include "bench/bench_library.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"

enum { MAX_IN_FLIGHT = 64, SMALL = 64 };

static struct sluice_frame frame_of(const struct image *image, uint8_t *data)
{
    return (struct sluice_frame){.size = sizeof(struct sluice_frame),
                                 .data = {data},
                                 .stride = {image->stride[0]},
                                 .memory = SLUICE_MEMORY_DEVICE};
}

// Wait for all that is on a stream: for a frame behind it, which nobody wants.
static enum status await_stream(struct bench_case *bench_case, void *stream)
{
    struct executor *executor = bench_case->executor;
    struct work work = {.source = bench_case->source[0],
                        .target = bench_case->target[0],
                        .source_on_device = true,
                        .source_stream = stream};
    enum status status = executor->submit_async(executor, 0, &work);
    return status ? status : executor->wait(executor, 0, NULL);
}

// ---- construction ----

static enum status make_filter(struct bench_library *library, const char *chain, const char *pixfmt,
                               int device)
{
    const struct bench_case *bench_case = library->bench_case;
    struct sluice_filter_config config = {
        .size = sizeof config,
        .chain = chain,
        .input = {.size = sizeof config.input,
                  .pixfmt = pixfmt,
                  .width = bench_case->source->width,
                  .height = bench_case->source->height},
        .backend = SLUICE_BACKEND_CUDA,
        .device = device,
        .frames_in_flight = library->targets < MAX_IN_FLIGHT ? library->targets : MAX_IN_FLIGHT,
    };
    return (enum status)sluice_filter_create(&config, &library->filter);
}

// As many results as the chain's own run has slots.
static enum status make_frames(struct bench_library *library)
{
    struct bench_case *bench_case = library->bench_case;
    struct backend *backend = bench_case->backend;
    library->in = calloc((size_t)bench_case->frames, sizeof *library->in);
    library->out = calloc((size_t)library->targets, sizeof *library->out);
    library->target = calloc((size_t)library->targets, sizeof *library->target);
    uint8_t *black = calloc(1, bench_case->target_bytes);
    enum status status =
        library->in && library->out && library->target && black ? STATUS_OK : STATUS_MEMORY;
    for (int k = 0; k < bench_case->frames && !status; k++)
        library->in[k] = frame_of(&bench_case->source[k], bench_case->source[k].data[0]);
    for (int k = 0; k < library->targets && !status; k++) {
        uint8_t *data = backend->device_copy(backend, black, bench_case->target_bytes);
        library->out[k] = frame_of(&bench_case->target[0], data);
        library->target[k] = bench_case->target[0];
        library->target[k].data[0] = data;
        status = data ? STATUS_OK : STATUS_MEMORY;
    }
    free(black);
    return status;
}

static enum status make_streams(struct bench_library *library)
{
    struct backend *backend = library->bench_case->backend;
    enum status status = STATUS_OK;
    for (int k = 0; k < BENCH_STREAMS && !status; k++)
        status = backend->stream_create(backend, &library->stream[k]);
    return status;
}

enum status bench_library_init(struct bench_library *library, struct bench_case *bench_case,
                               const char *chain, const char *pixfmt, int device)
{
    *library = (struct bench_library){.bench_case = bench_case, .targets = bench_case->slots};
    enum status status = make_filter(library, chain, pixfmt, device);
    if (!status)
        status = make_frames(library);
    if (!status)
        status = make_streams(library);
    if (status)
        bench_library_free(library);
    return status;
}

void bench_library_free(struct bench_library *library)
{
    sluice_filter_destroy(&library->filter);
    for (int k = 0; k < BENCH_STREAMS; k++)
        if (library->stream[k])
            library->bench_case->backend->stream_destroy(library->bench_case->backend,
                                                         &library->stream[k]);
    for (int k = 0; k < library->targets && library->out; k++)
        if (library->out[k].data[0])
            library->bench_case->backend->device_free(library->bench_case->backend,
                                                      library->out[k].data[0]);
    free(library->in);
    free(library->out);
    free(library->target);
    *library = (struct bench_library){0};
}

// ---- running ----

static enum status receive(struct bench_library *library, int count)
{
    struct sluice_frame made = {.size = sizeof made};
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++)
        status = (enum status)sluice_filter_receive(library->filter, &made);
    return status;
}

// Frames together, as the chain's own run has them.
static enum status submit(struct bench_library *library, int64_t first, void *stream)
{
    const struct bench_case *bench_case = library->bench_case;
    struct sluice_frame in[MAX_TOGETHER], out[MAX_TOGETHER];
    for (int k = 0; k < bench_case->together; k++) {
        in[k] = library->in[(first + k) % bench_case->frames];
        out[k] = library->out[(first + k) % library->targets];
    }
    return (enum status)sluice_filter_submit_many(library->filter, in, out, bench_case->together,
                                                  stream);
}

// The host does not wait for the GPU, only for room; then it receives half of the frames.
enum status bench_library_run(struct bench_library *library, int streams, int64_t ns,
                              int64_t *frames)
{
    assert(streams > 0 && streams <= BENCH_STREAMS);
    const int64_t begin = meter_now_ns();
    int room = sluice_filter_frames_in_flight(library->filter),
        together = library->bench_case->together;
    int half = room / 2 / together * together;
    int64_t submitted = 0, received = 0;
    enum status status = STATUS_OK;
    while (!status && (submitted < room || meter_now_ns() - begin < ns)) {
        if (submitted - received + together > room) {
            status = receive(library, half ? half : together);
            received += half ? half : together;
        }
        if (!status)
            status = submit(library, submitted, library->stream[submitted / together % streams]);
        submitted += status ? 0 : together;
    }
    *frames = submitted;
    if (!status)
        status = receive(library, (int)(submitted - received));
    for (int k = 0; k < streams && !status; k++)
        status = await_stream(library->bench_case, library->stream[k]);
    return status;
}

enum status bench_library_run_executor(struct bench_library *library, int streams, int64_t ns,
                                       int64_t *frames)
{
    assert(streams > 0 && streams <= BENCH_STREAMS);
    const struct bench_streams on = {
        .stream = library->stream, .streams = streams, .target = library->target};
    return bench_case_run_on(library->bench_case, &on, ns, frames);
}

// ---- small frames ----

static enum status run_small(struct sluice_filter *filter, struct bench_case *bench_case,
                             const struct sluice_frame *in, const struct sluice_frame *out,
                             int64_t ns, double *us)
{
    const int64_t begin = meter_now_ns();
    enum status status = STATUS_OK;
    int64_t frames = 0;
    do {
        status = (enum status)sluice_filter_run(filter, in, out, bench_case->stream);
        frames++;
    } while (!status && (frames % 64 || meter_now_ns() - begin < ns));
    if (!status)
        status = await_stream(bench_case, bench_case->stream);
    *us = (double)(meter_now_ns() - begin) * 1e-3 / (double)frames;
    return status;
}

enum status bench_library_run_small(struct backend *backend, const char *chain, int device,
                                    bool on_device, int64_t ns, double *us)
{
    const struct log silent = {0};
    const struct shape shape = {"64x64", SMALL, SMALL, 1};
    const struct bench_case_request request = {.backend = backend,
                                               .log = &silent,
                                               .chain = chain,
                                               .shape = &shape,
                                               .depth = 8,
                                               .frames = 1,
                                               .resident = true};
    struct bench_case bench_case;
    struct bench_library library = {0};
    uint8_t memory[2][SMALL * SMALL] = {{0}};
    enum status status = bench_case_init(&bench_case, &request);
    if (status)
        return status;
    library = (struct bench_library){.bench_case = &bench_case, .targets = 1};
    status = make_filter(&library, chain, "gray", device);
    if (!status)
        status = make_frames(&library);
    if (!status) {
        struct sluice_frame in = library.in[0], out = library.out[0];
        if (!on_device) {
            in.memory = out.memory = SLUICE_MEMORY_HOST;
            in.data[0] = memory[0];
            out.data[0] = memory[1];
        }
        status = run_small(library.filter, &bench_case, &in, &out, ns / 4, us); // to warm up
        if (!status)
            status = run_small(library.filter, &bench_case, &in, &out, ns, us);
    }
    bench_library_free(&library);
    bench_case_free(&bench_case);
    return status;
}
