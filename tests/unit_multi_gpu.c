// Several backends as one: which part gets which frame, and that the frames stay the same.
#include "tests/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/multi_gpu.h"
#include "tests/shots.h"

// ---- parts that only take notes ----

enum { PARTS = 3, SLOTS_SEEN = 8 };

static struct note {
    int slots;                            // of its executor; 0: there is none
    int submitted[SLOTS_SEEN];            // how often, in each slot
    int waited[SLOTS_SEEN];               // likewise
    bool fails, allocated, streams, gone; // what was done with the part itself
    int abroad;                           // frames of another part's memory
} notes[PARTS];

struct noted_executor {
    struct executor base;
    struct note *note;
};

struct noted_backend {
    struct backend base;
    struct note *note;
};

static enum status noted_submit(struct executor *executor, int slot, const struct work *work)
{
    struct note *note = ((struct noted_executor *)executor)->note;
    note->submitted[slot]++;
    note->abroad += work->source_abroad;
    return STATUS_OK;
}

static enum status noted_wait(struct executor *executor, int slot, struct work_times *times)
{
    (void)times;
    ((struct noted_executor *)executor)->note->waited[slot]++;
    return STATUS_OK;
}

static void noted_destroy(struct executor **executor)
{
    ((struct noted_executor *)*executor)->note->slots = 0;
    free(*executor);
    *executor = NULL;
}

static enum status noted_create(struct backend *backend, const struct plan *plan, int width,
                                int height, int slots, bool frames_in_flight,
                                struct executor **executor)
{
    (void)plan, (void)width, (void)height, (void)frames_in_flight;
    struct note *note = ((struct noted_backend *)backend)->note;
    *executor = NULL;
    if (note->fails)
        return STATUS_DEVICE;
    struct noted_executor *made = calloc(1, sizeof *made);
    made->base = (struct executor){noted_submit, noted_wait, noted_destroy, .memory = 100};
    made->note = note;
    note->slots = slots;
    *executor = &made->base;
    return STATUS_OK;
}

static void *noted_alloc(struct backend *backend, size_t bytes)
{
    ((struct noted_backend *)backend)->note->allocated = true;
    return malloc(bytes);
}

static void noted_free(struct backend *backend, void *memory, size_t bytes)
{
    (void)bytes;
    ((struct noted_backend *)backend)->note->allocated = false;
    free(memory);
}

static enum status noted_stream(struct backend *backend, void **stream)
{
    *stream = &((struct noted_backend *)backend)->note->streams;
    *(bool *)*stream = true;
    return STATUS_OK;
}

static void noted_stream_end(struct backend *backend, void **stream)
{
    ((struct noted_backend *)backend)->note->streams = false;
    *stream = NULL;
}

static void *noted_context(struct backend *backend)
{
    return ((struct noted_backend *)backend)->note;
}

static void noted_end(struct backend **backend)
{
    ((struct noted_backend *)*backend)->note->gone = true;
    free(*backend);
    *backend = NULL;
}

static struct backend *create_noted(void)
{
    struct backend *part[PARTS], *several;
    memset(notes, 0, sizeof notes);
    for (int k = 0; k < PARTS; k++) {
        struct noted_backend *made = calloc(1, sizeof *made);
        made->note = &notes[k];
        made->base = (struct backend){.name = "noted",
                                      .description = "a note",
                                      .limits = {.stencils = 4 - k,
                                                 .radius = 30 + k,
                                                 .transform = 100 * (k + 1),
                                                 .transform_size = {4, 64}},
                                      .has_device_memory = true,
                                      .gpus = 1,
                                      .parallel = 3,
                                      .in_flight = 8,
                                      .executor_create = noted_create,
                                      .alloc = noted_alloc,
                                      .free = noted_free,
                                      .device_context = noted_context,
                                      .stream_create = noted_stream,
                                      .stream_destroy = noted_stream_end,
                                      .destroy = noted_end};
        part[k] = &made->base;
    }
    assert_int_equal(multi_gpu_create(part, PARTS, &several), STATUS_OK);
    for (int k = 0; k < PARTS; k++)
        assert_null(part[k]);
    return several;
}

static void parts_take_slots_in_turn(void **state)
{
    (void)state;
    struct backend *several = create_noted();
    struct executor *executor;
    const struct work work = {0};
    assert_int_equal(several->executor_create(several, NULL, 1, 1, 7, true, &executor), STATUS_OK);
    assert_int_equal(notes[0].slots, 3);
    assert_int_equal(notes[1].slots, 2);
    assert_int_equal(notes[2].slots, 2);
    assert_int_equal(executor->memory, 300);
    for (int slot = 0; slot < 7; slot++) {
        assert_int_equal(executor->submit_async(executor, slot, &work), STATUS_OK);
        assert_int_equal(notes[slot % PARTS].submitted[slot / PARTS], 1);
        assert_int_equal(executor->wait(executor, slot, NULL), STATUS_OK);
        assert_int_equal(notes[slot % PARTS].waited[slot / PARTS], 1);
    }
    executor_destroy(&executor);
    for (int k = 0; k < PARTS; k++)
        assert_int_equal(notes[k].slots, 0);
    backend_destroy(&several);
    for (int k = 0; k < PARTS; k++)
        assert_true(notes[k].gone);
}

// A decoder is on the first part, and only that reads its frames where they are.
static void frames_of_the_first_are_abroad_elsewhere(void **state)
{
    (void)state;
    struct backend *several = create_noted();
    struct executor *executor;
    void *stream;
    struct work work = {.source_on_device = true};
    assert_ptr_equal(several->device_context(several), &notes[0]);
    assert_int_equal(several->stream_create(several, &stream), STATUS_OK);
    assert_true(notes[0].streams && !notes[1].streams);
    assert_int_equal(several->executor_create(several, NULL, 1, 1, 6, true, &executor), STATUS_OK);
    for (int slot = 0; slot < 6; slot++)
        assert_int_equal(executor->submit_async(executor, slot, &work), STATUS_OK);
    assert_int_equal(notes[0].abroad, 0);
    assert_int_equal(notes[1].abroad, 2);
    assert_int_equal(notes[2].abroad, 2);
    work.source_on_device = false;
    for (int slot = 0; slot < 6; slot++)
        assert_int_equal(executor->submit_async(executor, slot, &work), STATUS_OK);
    assert_int_equal(notes[1].abroad, 2);
    executor_destroy(&executor);
    several->stream_destroy(several, &stream);
    assert_false(notes[0].streams);
    backend_destroy(&several);
}

static void parts_without_a_slot_have_no_executor(void **state)
{
    (void)state;
    struct backend *several = create_noted();
    struct executor *executor;
    assert_int_equal(several->executor_create(several, NULL, 1, 1, 2, true, &executor), STATUS_OK);
    assert_int_equal(notes[0].slots, 1);
    assert_int_equal(notes[1].slots, 1);
    assert_int_equal(notes[2].slots, 0);
    assert_int_equal(executor->memory, 200);
    executor_destroy(&executor);
    backend_destroy(&several);
}

static void a_part_that_fails_takes_all_executors_along(void **state)
{
    (void)state;
    struct backend *several = create_noted();
    struct executor *executor;
    notes[1].fails = true;
    assert_int_equal(several->executor_create(several, NULL, 1, 1, 6, true, &executor),
                     STATUS_DEVICE);
    assert_null(executor);
    for (int k = 0; k < PARTS; k++)
        assert_int_equal(notes[k].slots, 0);
    backend_destroy(&several);
}

static void several_gpus_are_what_suits_every_part(void **state)
{
    (void)state;
    struct backend *several = create_noted();
    assert_string_equal(several->name, "noted");
    assert_string_equal(several->description, "3 x a note");
    assert_int_equal(several->limits.stencils, 2);
    assert_int_equal(several->limits.radius, 30);
    assert_int_equal(several->limits.transform, 300);
    assert_int_equal(several->parallel, 9);
    assert_int_equal(several->in_flight, 24);
    assert_int_equal(several->gpus, PARTS);
    assert_true(several->has_device_memory);
    void *memory = several->alloc(several, 10);
    assert_true(notes[0].allocated);
    several->free(several, memory, 10);
    assert_false(notes[0].allocated);
    backend_destroy(&several);
}

// ---- two CPU backends ----

static struct backend *create_pair(void)
{
    static const struct log silent;
    struct backend *part[2], *several;
    for (int k = 0; k < 2; k++)
        assert_int_equal(backend_cpu_create(1 + k, &silent, &part[k]), STATUS_OK);
    assert_int_equal(multi_gpu_create(part, 2, &several), STATUS_OK);
    return several;
}

static void frames_are_those_of_the_reference(void **state)
{
    (void)state;
    static struct shot source[FRAMES_SENT], target[FRAMES_SENT], expected[FRAMES_SENT];
    struct program program;
    struct plan *plan;
    struct backend *several = create_pair();
    lower("gaussian=2,sobel,threshold=20:240", &program);
    assert_int_equal(plan_create(&program, several->limits, &plan), STATUS_OK);
    make_shots(&program, source, expected);
    const int rings[] = {1, 2, 3, 4, 7};
    for (size_t n = 0; n < sizeof rings / sizeof *rings; n++) {
        struct executor *executor;
        memset(target, 0, sizeof target);
        assert_int_equal(
            several->executor_create(several, plan, WIDTH, HEIGHT, rings[n], true, &executor),
            STATUS_OK);
        run_frames(executor, rings[n], source, target);
        executor_destroy(&executor);
        assert_memory_equal(target, expected, sizeof target);
    }
    plan_destroy(&plan);
    program_free(&program);
    backend_destroy(&several);
}

// ---- which GPUs ----

static void texts_name_devices(void **state)
{
    (void)state;
    static const struct log silent;
    struct devices devices;
    assert_int_equal(config_devices(NULL, &silent, &devices), STATUS_OK);
    assert_int_equal(devices.count, 1);
    assert_int_equal(devices.device[0], 0);
    assert_int_equal(config_devices("3,0,12", &silent, &devices), STATUS_OK);
    assert_int_equal(devices.count, 3);
    assert_int_equal(devices.device[0], 3);
    assert_int_equal(devices.device[1], 0);
    assert_int_equal(devices.device[2], 12);
    assert_false(devices.all);
    assert_int_equal(config_devices("all", &silent, &devices), STATUS_OK);
    assert_true(devices.all);
    const char *const wrong[] = {"",
                                 " 0",
                                 "-1",
                                 "0,",
                                 ",0",
                                 "0,,1",
                                 "x",
                                 "0x1",
                                 "0,0",
                                 "1025",
                                 "all,0",
                                 "0;1",
                                 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(config_devices(wrong[k], &silent, &devices), STATUS_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_take_slots_in_turn),
        cmocka_unit_test(frames_of_the_first_are_abroad_elsewhere),
        cmocka_unit_test(parts_without_a_slot_have_no_executor),
        cmocka_unit_test(a_part_that_fails_takes_all_executors_along),
        cmocka_unit_test(several_gpus_are_what_suits_every_part),
        cmocka_unit_test(frames_are_those_of_the_reference),
        cmocka_unit_test(texts_name_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
