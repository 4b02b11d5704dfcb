// A GPU that fails while it works: frames are the same wherever that happens, and it is told once.
#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipeline/engine/filter/filter.h"
#include "pipeline/engine/filter/need.h"
#include "pipeline/engine/filter/spare.h"
#include "tests/fragile_gpu.h"
#include "tests/shots.h"

enum { SLOTS = 3 };

// ---- what is told ----

static struct {
    int lines;
    enum log_level level;
    char text[300];
} told;

static void note(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque;
    if (level > LOG_WARNING)
        return;
    told.lines++;
    told.level = level;
    snprintf(told.text, sizeof told.text, "%s", sentence);
}

static const struct log noting = {note, NULL};

// ---- frames ----

static struct {
    struct program program;
    struct plan *plan;
    struct spare *spare;
    struct backend *backend;
    struct executor *executor;
} run;

// `format` NULL: gray.
static enum status begin_in(const char *chain, const struct format *format, bool goes_on,
                            struct fragile how)
{
    const struct spare_request request = {.goes_on = goes_on, .threads = 2, .log = &noting};
    memset(&told, 0, sizeof told);
    lower_in(chain, format, &run.program);
    assert_int_equal(spare_create(&request, &run.spare), STATUS_OK);
    run.backend = create_fragile(spare_log(run.spare), how);
    assert_int_equal(spare_guard(run.spare, &run.backend), STATUS_OK);
    assert_int_equal(plan_create(&run.program, run.backend->limits, &run.plan), STATUS_OK);
    return run.backend->executor_create(run.backend, run.plan, WIDTH, HEIGHT, SLOTS, true,
                                        &run.executor);
}

static enum status begin(const char *chain, bool goes_on, struct fragile how)
{
    return begin_in(chain, NULL, goes_on, how);
}

static void end(void)
{
    executor_destroy(&run.executor);
    plan_destroy(&run.plan);
    program_free(&run.program);
    backend_destroy(&run.backend);
    spare_destroy(&run.spare);
}

static struct shot source[FRAMES_SENT], target[FRAMES_SENT], expected[FRAMES_SENT];

static void frames_are_the_same_wherever_it_fails(void **state)
{
    (void)state;
    for (int at = 0; at < 2 * FRAMES_SENT; at++) {
        const struct fragile how = {.submit_fails = at < FRAMES_SENT ? at : NEVER,
                                    .wait_fails = at < FRAMES_SENT ? NEVER : at - FRAMES_SENT};
        char words[80];
        assert_int_equal(begin("gaussian=2,sobel,threshold=20:240", true, how), STATUS_OK);
        make_shots(&run.program, source, expected);
        memset(target, 0, sizeof target);
        run_frames(run.executor, SLOTS, source, target);
        assert_memory_equal(target, expected, sizeof target);
        snprintf(words, sizeof words, "it is broken: the CPU filters from frame %d on,",
                 at % FRAMES_SENT);
        assert_non_null(strstr(told.text, words));
        assert_int_equal(told.lines, 1);
        assert_int_equal(told.level, LOG_WARNING);
        assert_in_range(spare_frames(run.spare), FRAMES_SENT - at % FRAMES_SENT, FRAMES_SENT);
        end();
    }
}

static void a_gpu_that_works_is_left_alone(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = NEVER, .wait_fails = NEVER};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    assert_int_equal(run.executor->memory, 7);
    make_shots(&run.program, source, expected);
    run_frames(run.executor, SLOTS, source, target);
    assert_memory_equal(target, expected, sizeof target);
    assert_int_equal(told.lines, 0);
    assert_int_equal(spare_frames(run.spare), 0);
    end();
}

static struct executor_need measure(struct backend *backend)
{
    struct executor_need need;
    assert_int_equal(
        backend->executor_measure(backend, run.plan, WIDTH, HEIGHT, SLOTS, true, &need), STATUS_OK);
    return need;
}

static void memory_is_that_of_who_filters(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = 0, .wait_fails = NEVER};
    assert_int_equal(begin("gaussian=2,sobel", true, how), STATUS_OK);
    struct executor_need before = measure(run.backend), on_cpu = measure(fragile->cpu);
    assert_int_equal(before.host, 1);
    assert_int_equal(before.device, 2);
    make_shots(&run.program, source, expected);
    run_frames(run.executor, SLOTS, source, target);
    struct executor_need after = measure(run.backend);
    assert_true(after.host > 1);
    assert_int_equal(after.host, on_cpu.host);
    assert_int_equal(after.device, 0);
    end();
}

static void a_gpu_that_was_asked_for_ends_the_job(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = NEVER, .wait_fails = 2};
    assert_int_equal(begin("gaussian=2", false, how), STATUS_OK);
    make_shots(&run.program, source, expected);
    for (int k = 0; k < SLOTS; k++) {
        const struct work work = {.source = image_of(&source[k]), .target = image_of(&target[k])};
        assert_int_equal(run.executor->submit_async(run.executor, k, &work), STATUS_OK);
    }
    for (int k = 0; k < SLOTS; k++)
        assert_int_equal(run.executor->wait(run.executor, k, NULL),
                         k < 2 ? STATUS_OK : STATUS_DEVICE);
    assert_string_equal(told.text, "frame 2: GPU 9 failed in cudaBreakDown: it is broken");
    assert_int_equal(told.lines, 1);
    end();
}

static void frames_in_its_own_memory_are_lost(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = NEVER, .wait_fails = 0};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    const struct work work = {
        .source = image_of(&source[0]), .target = image_of(&target[0]), .source_on_device = true};
    assert_int_equal(run.executor->submit_async(run.executor, 0, &work), STATUS_OK);
    assert_int_equal(run.executor->wait(run.executor, 0, NULL), STATUS_DEVICE);
    assert_non_null(strstr(told.text, "frame 0: GPU 9 failed in cudaBreakDown: it is broken; "));
    assert_non_null(strstr(told.text, "--hwdec off"));
    assert_int_equal(told.lines, 1);
    end();
}

// ---- frames in the GPU's memory ----

static struct shot on_gpu[FRAMES_SENT];
static int in_hands; // of who asked the finder

static enum status find_shot(void *opaque, const struct work *lost, struct image *found,
                             void **memory)
{
    assert_ptr_equal(opaque, source);
    assert_true(lost->source_on_device);
    struct shot *copy = malloc(sizeof *copy);
    *copy = source[lost->source_pts];
    *found = image_of(copy);
    *memory = copy;
    in_hands++;
    return STATUS_OK;
}

static void forget_shot(void *opaque, void **memory)
{
    assert_ptr_equal(opaque, source);
    in_hands--;
    free(*memory);
    *memory = NULL;
}

static enum status find_none(void *opaque, const struct work *lost, struct image *found,
                             void **memory)
{
    (void)opaque, (void)lost, (void)found, (void)memory;
    return STATUS_DEVICE;
}

static void frames_in_its_own_memory_are_found_again(void **state)
{
    (void)state;
    const struct spare_finder finder = {find_shot, forget_shot, source};
    for (int at = 0; at < 2 * FRAMES_SENT; at++) {
        const struct fragile how = {.submit_fails = at < FRAMES_SENT ? at : NEVER,
                                    .wait_fails = at < FRAMES_SENT ? NEVER : at - FRAMES_SENT};
        char words[80];
        assert_int_equal(begin("gaussian=2,sobel,threshold=20:240", true, how), STATUS_OK);
        spare_set_finder(run.spare, &finder);
        make_shots(&run.program, source, expected);
        memcpy(on_gpu, source, sizeof on_gpu);
        memset(target, 0, sizeof target);
        for (int k = 0; k < FRAMES_SENT + SLOTS; k++) {
            if (k >= SLOTS)
                assert_int_equal(run.executor->wait(run.executor, k % SLOTS, NULL), STATUS_OK);
            if (k >= FRAMES_SENT)
                continue;
            const struct work work = {.source = image_of(&on_gpu[k]),
                                      .target = image_of(&target[k]),
                                      .source_on_device = true,
                                      .source_pts = k};
            assert_int_equal(run.executor->submit_async(run.executor, k % SLOTS, &work), STATUS_OK);
        }
        assert_memory_equal(target, expected, sizeof target);
        snprintf(words, sizeof words, "it is broken: the CPU decodes and filters from frame %d on,",
                 at % FRAMES_SENT);
        assert_non_null(strstr(told.text, words));
        assert_int_equal(told.lines, 1);
        assert_int_equal(in_hands, 0);
        end();
    }
}

static void frames_that_are_not_found_end_the_job(void **state)
{
    (void)state;
    const struct spare_finder finder = {.find = find_none};
    const struct fragile how = {.submit_fails = 0, .wait_fails = NEVER};
    const struct work work = {.source_on_device = true};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    spare_set_finder(run.spare, &finder);
    assert_int_equal(run.executor->submit_async(run.executor, 0, &work), STATUS_DEVICE);
    assert_non_null(strstr(told.text, "--hwdec off"));
    assert_int_equal(told.lines, 1);
    end();
}

// A chain that leaves chroma alone: those planes come from the frame that was found.
static struct {
    struct format format;
    uint8_t sample[3][HEIGHT][WIDTH];
} colour;

static struct image colour_image(uint8_t (*sample)[HEIGHT][WIDTH])
{
    struct image image = {.format = &colour.format, .width = WIDTH, .height = HEIGHT};
    for (int p = 0; p < 3; p++) {
        image.data[p] = sample[p][0];
        image.stride[p] = WIDTH;
    }
    return image;
}

static enum status find_colour(void *opaque, const struct work *lost, struct image *found,
                               void **memory)
{
    (void)opaque, (void)lost;
    *found = colour_image(colour.sample);
    *memory = malloc(1);
    return STATUS_OK;
}

static void planes_that_are_shared_are_those_that_were_found(void **state)
{
    (void)state;
    static uint8_t made[3][HEIGHT][WIDTH];
    const struct spare_finder finder = {find_colour, forget_shot, source};
    const struct fragile how = {.submit_fails = 0, .wait_fails = NEVER};
    const struct format meaning = {.range = RANGE_FULL, .kr = 0.2126, .kb = 0.0722};
    colour.format = format_planar(MODEL_YUV, 8, 0, 0, false, &meaning);
    uint8_t *sample = (uint8_t *)colour.sample;
    for (int i = 0; i < (int)sizeof colour.sample; i++)
        sample[i] = (uint8_t)(i * 7 + i / 31);
    assert_int_equal(begin_in("brightness=10", &colour.format, true, how), STATUS_OK);
    spare_set_finder(run.spare, &finder);
    const struct work work = {
        .source = {.format = &colour.format, .width = WIDTH, .height = HEIGHT},
        .target = colour_image(made),
        .source_on_device = true};
    in_hands = 1;
    assert_int_equal(run.executor->submit_async(run.executor, 0, &work), STATUS_OK);
    assert_int_equal(run.executor->wait(run.executor, 0, NULL), STATUS_OK);
    assert_memory_equal(made[1], colour.sample[1], 2 * sizeof *made);
    assert_memory_not_equal(made[0], colour.sample[0], sizeof *made);
    assert_int_equal(in_hands, 0);
    end();
}

// As for want of memory.
static void a_gpu_that_takes_no_frames_is_left_at_once(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = NEVER, .wait_fails = NEVER, .make_fails = true};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    make_shots(&run.program, source, expected);
    run_frames(run.executor, SLOTS, source, target);
    assert_memory_equal(target, expected, sizeof target);
    assert_non_null(strstr(told.text, "from frame 0 on"));
    assert_int_equal(told.lines, 1);
    end();
    const struct work work = {.source_on_device = true};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    assert_int_equal(run.executor->submit_async(run.executor, 0, &work), STATUS_DEVICE);
    assert_non_null(strstr(told.text, "frame 0: GPU 9 failed in cudaBreakDown: it is broken; "));
    assert_int_equal(told.lines, 1);
    end();
    assert_int_equal(begin("gaussian=2", false, how), STATUS_DEVICE);
    assert_string_equal(told.text, "frame 0: GPU 9 failed in cudaBreakDown: it is broken");
    end();
}

static void a_gpu_is_left_for_a_reason(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = NEVER, .wait_fails = NEVER};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    make_shots(&run.program, source, expected);
    run_frames(run.executor, SLOTS, source, target);
    assert_int_equal(told.lines, 0);
    run.backend->leave(run.backend, "it is full");
    assert_true(run.backend->is_lost(run.backend));
    assert_int_equal(told.lines, 0);
    memset(target, 0, sizeof target);
    run_frames(run.executor, SLOTS, source, target);
    assert_memory_equal(target, expected, sizeof target);
    assert_int_equal(fragile->submits, FRAMES_SENT);
    assert_int_equal(told.lines, 1);
    assert_string_equal(told.text,
                        "it is full: the CPU filters from frame 11 on, with the same result");
    end();
    assert_int_equal(begin("gaussian=2", false, how), STATUS_OK);
    assert_null(run.backend->leave);
    end();
}

// Make a filter for frames whose size was unknown until now, as part of a job.
static enum status make_filter(const struct chain *chain, struct need_job *job, int64_t vram,
                               struct filter **filter)
{
    static const struct sink_formats any;
    struct ceiling ceiling;
    const struct filter_request request = {.chain = chain,
                                           .formats = &any,
                                           .backend = run.backend,
                                           .slots = SLOTS,
                                           .frames_in_flight = true,
                                           .job = job,
                                           .log = &noting};
    AVFrame *frame = av_frame_alloc();
    frame->format = AV_PIX_FMT_GRAY8;
    frame->width = WIDTH;
    frame->height = HEIGHT;
    ceiling_open(0, vram, run.backend, &noting, &ceiling);
    job->ceiling = &ceiling;
    enum status status = filter_create(&request, frame, filter);
    job->ceiling = NULL;
    ceiling_close(&ceiling);
    av_frame_free(&frame);
    return status;
}

static void a_gpu_without_room_is_left(void **state)
{
    (void)state;
    static const struct fragile small = {
        .submit_fails = NEVER, .wait_fails = NEVER, .room = 16 << 20};
    static const struct fragile large = {
        .submit_fails = NEVER, .wait_fails = NEVER, .room = 1 << 30};
    struct chain chain;
    struct chain_error error;
    struct filter *filter;
    assert_int_equal(chain_parse("gaussian=2", NULL, &chain, &error), STATUS_OK);
    for (int k = 0; k < 4; k++) {
        bool goes_on = k & 1, has_room = k & 2;
        struct need_job job = {.on_device = true}; // its decoder takes 64 MiB and more
        assert_int_equal(begin("gaussian=2", goes_on, has_room ? large : small), STATUS_OK);
        enum status status = make_filter(&chain, &job, 0, &filter);
        assert_int_equal(status, goes_on || has_room ? STATUS_OK : STATUS_DEVICE);
        assert_int_equal(run.backend->is_lost(run.backend), goes_on && !has_room);
        assert_int_equal(told.lines, status != STATUS_OK); // else it is told with a frame
        if (status)
            assert_non_null(strstr(told.text, "of the GPU's memory, and 15 MiB may be taken"));
        filter_destroy(&filter);
        if (goes_on && !has_room) {
            make_shots(&run.program, source, expected);
            run_frames(run.executor, SLOTS, source, target);
            assert_memory_equal(target, expected, sizeof target);
            assert_non_null(strstr(told.text,
                                   "of the GPU's memory, and 15 MiB may be taken of what "
                                   "is free on it: the CPU filters from frame 0 on"));
        }
        end();
    }
    chain_free(&chain);
}

static void another_filter_begins_on_the_cpu(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = 4, .wait_fails = NEVER};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    make_shots(&run.program, source, expected);
    run_frames(run.executor, SLOTS, source, target);
    executor_destroy(&run.executor);
    assert_int_equal(run.backend->executor_create(run.backend, run.plan, WIDTH, HEIGHT, SLOTS, true,
                                                  &run.executor),
                     STATUS_OK);
    memset(target, 0, sizeof target);
    run_frames(run.executor, SLOTS, source, target);
    assert_memory_equal(target, expected, sizeof target);
    assert_int_equal(told.lines, 1);
    end();
}

// Pinned memory is there before the failure, other memory when it has come, be it told yet or not;
// each goes where it came from.
static void memory_is_there_behind_the_failure(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = 0, .wait_fails = NEVER};
    assert_int_equal(begin("gaussian=2", true, how), STATUS_OK);
    struct fragile *gpu = fragile;
    void *block[4];
    block[0] = run.backend->alloc(run.backend, 100);
    assert_int_equal(gpu->pinned, 1);
    gpu->gone = true; // nobody has noticed
    block[1] = run.backend->alloc(run.backend, 100);
    run_frames(run.executor, SLOTS, source, target);
    block[2] = run.backend->alloc(run.backend, 100);
    block[3] = run.backend->alloc(run.backend, 100);
    for (int k = 1; k < 4; k++) {
        assert_non_null(block[k]);
        assert_int_equal((uintptr_t)block[k] % 64, 0);
        memset(block[k], k, 100);
    }
    for (int k = 3; k >= 0; k--)
        run.backend->free(run.backend, block[k], 100);
    assert_int_equal(gpu->pinned, 0);
    end();
}

static void the_cpu_needs_no_spare(void **state)
{
    (void)state;
    static const struct log silent;
    struct backend *cpu, *same;
    const struct spare_request request = {.goes_on = true, .log = &silent};
    assert_int_equal(spare_create(&request, &run.spare), STATUS_OK);
    assert_int_equal(backend_cpu_create(1, spare_log(run.spare), &cpu), STATUS_OK);
    same = cpu;
    assert_int_equal(spare_guard(run.spare, &same), STATUS_OK);
    assert_ptr_equal(same, cpu);
    backend_destroy(&cpu);
    spare_destroy(&run.spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_the_same_wherever_it_fails),
        cmocka_unit_test(a_gpu_that_works_is_left_alone),
        cmocka_unit_test(memory_is_that_of_who_filters),
        cmocka_unit_test(a_gpu_that_was_asked_for_ends_the_job),
        cmocka_unit_test(frames_in_its_own_memory_are_lost),
        cmocka_unit_test(frames_in_its_own_memory_are_found_again),
        cmocka_unit_test(frames_that_are_not_found_end_the_job),
        cmocka_unit_test(planes_that_are_shared_are_those_that_were_found),
        cmocka_unit_test(a_gpu_that_takes_no_frames_is_left_at_once),
        cmocka_unit_test(a_gpu_is_left_for_a_reason),
        cmocka_unit_test(a_gpu_without_room_is_left),
        cmocka_unit_test(another_filter_begins_on_the_cpu),
        cmocka_unit_test(memory_is_there_behind_the_failure),
        cmocka_unit_test(the_cpu_needs_no_spare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
