// The calls of filters: order, changes, analysis, and what they refuse.
#include "tests/filter_frames.h"

#include <pthread.h>
#include <time.h>

#include "sluice/python.h"
#include "tests/fragile_gpu.h"

// ---- the order of frames ----

enum { FRAMES = 120 };

static const struct sluice_format gray_format = {
    .size = sizeof gray_format, .pixfmt = "gray", .width = 65, .height = 31};

struct flow {
    struct sluice_filter *filter;
    struct test_picture *in[FRAMES], *out[FRAMES];
    char chain[FRAMES][64];
};

static void flow_init(struct flow *flow, int in_flight)
{
    struct sluice_filter_config config = test_config("gaussian=1", &gray_format);
    config.frames_in_flight = in_flight;
    *flow = (struct flow){.filter = test_filter(&config)};
    for (int k = 0; k < FRAMES; k++) {
        flow->in[k] = test_noise(&gray_format, (enum rows_lie)(k % ROWS_LIE), (uint32_t)k);
        flow->out[k] = test_picture(&gray_format, (enum rows_lie)((k + 1) % ROWS_LIE));
        flow->in[k]->frame.pts = 1000 - 7 * k;
        flow->in[k]->frame.opaque = flow->out[k];
        snprintf(flow->chain[k], sizeof flow->chain[k], "gaussian=%d", 1 + k / 10);
    }
}

static void flow_finish(struct flow *flow)
{
    struct test_picture *want = test_picture(&gray_format, ROWS_TIGHT);
    sluice_filter_destroy(&flow->filter);
    assert_null(flow->filter);
    for (int k = 0; k < FRAMES; k++) {
        test_reference(flow->chain[k], flow->in[k], false, want);
        test_same(flow->chain[k], flow->out[k], want);
        test_picture_free(flow->in[k]);
        test_picture_free(flow->out[k]);
    }
    test_picture_free(want);
}

// Every tenth frame is the first of another sigma, half of them by options, half by a chain.
static void flow_change(struct flow *flow, int k)
{
    char text[64], why[256] = "?";
    if (!k || k % 10)
        return;
    snprintf(text, sizeof text, k % 20 ? "gaussian.sigma=%d" : "gaussian=%d", 1 + k / 10);
    enum sluice_status status = k % 20
                                    ? sluice_filter_set(flow->filter, text, why, sizeof why)
                                    : sluice_filter_set_chain(flow->filter, text, why, sizeof why);
    assert_int_equal(status, SLUICE_STATUS_OK);
    assert_string_equal(why, "");
}

static void flow_receive(struct flow *flow, int k)
{
    struct sluice_frame made = {.size = sizeof made};
    enum sluice_status status;
    while ((status = sluice_filter_receive(flow->filter, &made)) == SLUICE_STATUS_END)
        sched_yield();
    assert_int_equal(status, SLUICE_STATUS_OK);
    assert_int_equal(made.pts, 1000 - 7 * k);
    assert_ptr_equal(made.opaque, flow->out[k]);
    assert_ptr_equal(made.data[0], flow->out[k]->frame.data[0]);
    assert_int_equal(made.stride[0], flow->out[k]->frame.stride[0]);
}

static void submit_until_it_is_full(void **state)
{
    (void)state;
    struct flow flow;
    flow_init(&flow, 5);
    assert_int_equal(sluice_filter_frames_in_flight(flow.filter), 5);
    int received = 0;
    for (int k = 0; k < FRAMES; k++) {
        flow_change(&flow, k);
        enum sluice_status status;
        while ((status = sluice_filter_submit(flow.filter, &flow.in[k]->frame, &flow.out[k]->frame,
                                              NULL)) == SLUICE_STATUS_AGAIN) {
            assert_int_equal(k - received, 5);
            flow_receive(&flow, received++);
        }
        assert_int_equal(status, SLUICE_STATUS_OK);
    }
    while (received < FRAMES - 2) // the last two are waited for by destroy
        flow_receive(&flow, received++);
    flow_finish(&flow);
}

static void *receive_all(void *flow)
{
    for (int k = 0; k < FRAMES; k++)
        flow_receive(flow, k);
    return NULL;
}

static void one_thread_submits_and_another_receives(void **state)
{
    (void)state;
    struct flow flow;
    flow_init(&flow, 3);
    pthread_t thread;
    assert_false(pthread_create(&thread, NULL, receive_all, &flow));
    for (int k = 0; k < FRAMES; k++) {
        enum sluice_status status;
        flow_change(&flow, k);
        while ((status = sluice_filter_submit(flow.filter, &flow.in[k]->frame, &flow.out[k]->frame,
                                              NULL)) == SLUICE_STATUS_AGAIN)
            sched_yield();
        assert_int_equal(status, SLUICE_STATUS_OK);
    }
    pthread_join(thread, NULL);
    flow_finish(&flow);
}

static void frames_go_together(void **state)
{
    (void)state;
    struct flow flow;
    struct sluice_frame in[8], out[8];
    flow_init(&flow, 7);
    int received = 0;
    for (int k = 0, count; k < FRAMES; k += count) {
        flow_change(&flow, k);
        count = 1 + k % 3 < FRAMES - k ? 1 + k % 3 : FRAMES - k;
        count = count < 10 - k % 10 ? count : 10 - k % 10;
        for (int n = 0; n < count; n++) {
            in[n] = flow.in[k + n]->frame;
            out[n] = flow.out[k + n]->frame;
        }
        while (sluice_filter_submit_many(flow.filter, in, out, count, NULL) == SLUICE_STATUS_AGAIN)
            flow_receive(&flow, received++);
    }
    while (received < FRAMES)
        flow_receive(&flow, received++);
    struct sluice_frame made = {.size = sizeof made};
    assert_int_equal(sluice_filter_receive(flow.filter, &made), SLUICE_STATUS_END);
    for (int n = 0; n < 8; n++)
        in[n] = flow.in[n]->frame, out[n] = flow.out[n]->frame;
    assert_int_equal(sluice_filter_submit_many(flow.filter, in, out, 8, NULL), SLUICE_STATUS_USAGE);
    assert_non_null(strstr(test_sentence, "8 frames at once"));
    out[1].data[0] = NULL; // all or none
    assert_int_equal(sluice_filter_submit_many(flow.filter, in, out, 2, NULL), SLUICE_STATUS_USAGE);
    assert_int_equal(sluice_filter_receive(flow.filter, &made), SLUICE_STATUS_END);
    flow_finish(&flow);
}

// Chains, those of ten frames, in one call each or in some, wherever the one before has ended; of
// which some are of no frame.
static void any_number_of_frames_is_run_by_one_call(void **state)
{
    static const int counts[] = {10, 1, 7, 2, 3, 3, 4, 5, 4, 1};
    (void)state;
    for (int in_flight = 1; in_flight <= 12; in_flight++) {
        struct flow flow;
        struct sluice_frame in[10], out[10];
        flow_init(&flow, in_flight);
        for (int k = 0, count, call = 0; k < FRAMES; k += count) {
            flow_change(&flow, k);
            count = counts[call++ % 10];
            count = FRAMES - k < count ? FRAMES - k : count;
            for (int n = 0; n < count; n++) {
                in[n] = flow.in[k + n]->frame;
                out[n] = flow.out[k + n]->frame;
            }
            assert_int_equal(sluice_filter_run_many(flow.filter, in, out, count, NULL), 0);
            assert_int_equal(sluice_filter_run_many(flow.filter, NULL, NULL, 0, NULL), 0);
        }
        flow_finish(&flow);
    }
}

static void a_call_for_many_frames_ends_with_the_first_that_is_refused(void **state)
{
    (void)state;
    struct flow flow;
    struct sluice_frame in[10], out[10], made = {.size = sizeof made};
    flow_init(&flow, 2);
    for (int n = 0; n < 10; n++)
        in[n] = flow.in[n]->frame, out[n] = flow.out[n]->frame;
    assert_int_equal(sluice_filter_run_many(flow.filter, in, out, -1, NULL), SLUICE_STATUS_USAGE);
    assert_non_null(strstr(test_sentence, "-1 frames"));
    assert_int_equal(sluice_filter_submit(flow.filter, in, out, NULL), 0);
    assert_int_equal(sluice_filter_run_many(flow.filter, in, out, 3, NULL), SLUICE_STATUS_USAGE);
    assert_non_null(strstr(test_sentence, "1 are under way"));
    assert_int_equal(sluice_filter_receive(flow.filter, &made), 0);
    out[4].data[0] = NULL;
    assert_int_equal(sluice_filter_run_many(flow.filter, in, out, 10, NULL), SLUICE_STATUS_USAGE);
    assert_int_equal(sluice_filter_receive(flow.filter, &made), SLUICE_STATUS_END); // none is left
    struct test_picture *want = test_picture(&gray_format, ROWS_TIGHT);
    test_reference("gaussian=1", flow.in[3], false, want);
    test_same("before the refused one", flow.out[3], want);
    test_picture_free(want);
    out[4] = flow.out[4]->frame;
    for (int k = 0; k < FRAMES; k += 10) {
        flow_change(&flow, k);
        for (int n = 0; n < 10 && k + n < FRAMES; n++)
            in[n] = flow.in[k + n]->frame, out[n] = flow.out[k + n]->frame;
        int count = FRAMES - k < 10 ? FRAMES - k : 10;
        assert_int_equal(sluice_filter_run_many(flow.filter, in, out, count, NULL), 0);
    }
    flow_finish(&flow);
}

// ---- objects of Python ----

// A stand-in for one, which begins with what DLPack's exchange API tells of it (struct DLTensor).
struct object {
    void *data;
    int32_t device_type, device, dimensions;
    uint8_t type, bits;
    uint16_t lanes;
    const int64_t *shape, *stride;
    uint64_t offset;
    int64_t extent[2 * SLUICE_DIMENSIONS]; // shape, strides
    bool silent, read_only;
    int references;
};

// Calls of a stand-in for an interpreter are counted here.
static struct {
    int saved, restored, errors, cleared, buffers, streams;
    long number; // that was made last
    struct object none;
} python_did;

static int tell_tensor(void *object, void *tensor)
{
    if (((struct object *)object)->silent) {
        python_did.errors++;
        return -1;
    }
    memcpy(tensor, object, offsetof(struct object, extent));
    return 0;
}

static int fail_stream(int device_type, int32_t device, void **stream)
{
    assert_int_equal(device_type, 2);
    assert_int_equal(device, 0);
    assert_non_null(stream);
    python_did.streams++;
    python_did.errors++;
    return -1;
}

static void *save_thread(void)
{
    python_did.saved++;
    return &python_did;
}

static void restore_thread(void *thread)
{
    assert_ptr_equal(thread, &python_did);
    assert_int_equal(python_did.saved, ++python_did.restored);
}

static void inc_ref(void *object)
{
    ((struct object *)object)->references++;
}

static void clear_error(void)
{
    python_did.cleared = python_did.errors;
}

static void *from_long(long value)
{
    python_did.number = value;
    return &python_did.number;
}

static void *capsule_pointer(void *capsule, const char *name)
{
    assert_string_equal(name, "sluice_objects");
    return capsule;
}

static int get_buffer(void *object, void *view, int flags)
{
    enum { WRITABLE = 1, FORMAT = 4, STRIDES = 24 };
    struct object *from = object;
    int bytes = from->bits / 8;
    struct {
        void *data, *owner;
        ptrdiff_t bytes, sample_bytes;
        int read_only, dimensions;
        const char *format;
        const ptrdiff_t *shape, *stride, *suboffset;
        ptrdiff_t *own; // as `internal` is the exporter's
    } buffer = {.data = (uint8_t *)from->data + from->offset,
                .owner = object,
                .sample_bytes = bytes,
                .dimensions = from->dimensions,
                .format = from->type != 1 ? "b"
                          : bytes == 1    ? "B"
                                          : "H",
                .own = calloc(2 * SLUICE_DIMENSIONS, sizeof *buffer.own)};
    assert_non_null(buffer.own);
    assert_int_equal(flags & ~WRITABLE, FORMAT | STRIDES);
    if (from->silent || (flags & WRITABLE && from->read_only)) {
        python_did.errors++;
        free(buffer.own);
        return -1;
    }
    for (int k = 0; k < 2 * SLUICE_DIMENSIONS; k++)
        buffer.own[k] = (ptrdiff_t)from->extent[k] * (k < SLUICE_DIMENSIONS ? 1 : bytes);
    buffer.shape = buffer.own;
    buffer.stride = buffer.own + SLUICE_DIMENSIONS;
    memcpy(view, &buffer, sizeof buffer);
    python_did.buffers++;
    return 0;
}

static void release_buffer(void *view)
{
    enum { INTERNAL = 9 }; // words before it: two of the members are ints
    free(((void **)view)[INTERNAL]);
    python_did.buffers--;
}

static const struct sluice_python python = {.size = sizeof python,
                                            .none = &python_did.none,
                                            .save_thread = save_thread,
                                            .restore_thread = restore_thread,
                                            .inc_ref = inc_ref,
                                            .clear_error = clear_error,
                                            .from_long = from_long,
                                            .capsule_pointer = capsule_pointer,
                                            .get_buffer = get_buffer,
                                            .release_buffer = release_buffer};

enum { OBJECT_FRAMES = 5, OBJECT_SAMPLES = OBJECT_FRAMES * 31 * 65, OBJECT_OFFSET = 6 };

// Two arrays of gray frames, one behind the other, and what their calls have in common.
struct pair_of_objects {
    struct sluice_filter *filter;
    int bytes; // of a sample
    uint8_t *memory[2];
    struct object in, out;
    struct sluice_frame frame[2];
    struct sluice_objects objects;
};

static void lay_object(struct object *object, uint8_t *memory, int bytes)
{
    const int64_t rows = gray_format.height, columns = gray_format.width;
    *object =
        (struct object){.data = memory,
                        .offset = OBJECT_OFFSET,
                        .device_type = 1,
                        .dimensions = 3,
                        .type = 1,
                        .bits = (uint8_t)(8 * bytes),
                        .lanes = 1,
                        .extent = {OBJECT_FRAMES, rows, columns, 0, rows * columns, columns, 1}};
    object->shape = object->extent;
    object->stride = object->extent + SLUICE_DIMENSIONS;
}

static void pair_of_objects_init(struct pair_of_objects *pair, int bytes)
{
    struct sluice_format format = gray_format;
    format.pixfmt = bytes == 1 ? "gray" : "gray16le";
    struct sluice_filter_config config = test_config("invert", &format);
    struct object *const object[] = {&pair->in, &pair->out};
    *pair = (struct pair_of_objects){.filter = test_filter(&config), .bytes = bytes};
    pair->objects = (struct sluice_objects){.size = sizeof pair->objects,
                                            .filter = pair->filter,
                                            .tensor = tell_tensor,
                                            .stream = fail_stream,
                                            .count = OBJECT_FRAMES};
    for (int side = 0; side < 2; side++) {
        struct sluice_layout *layout = &pair->objects.layout[side];
        pair->memory[side] = malloc(OBJECT_OFFSET + OBJECT_SAMPLES * (size_t)bytes);
        assert_non_null(pair->memory[side]);
        for (int k = 0; k < OBJECT_OFFSET + OBJECT_SAMPLES * bytes; k++)
            pair->memory[side][k] = (uint8_t)(side ? 77 : k * 7);
        lay_object(object[side], pair->memory[side], bytes);
        *layout = (struct sluice_layout){
            .device_type = 1, .dimensions = 3, .type = 1, .bits = (uint8_t)(8 * bytes), .lanes = 1};
        memcpy(layout->shape, object[side]->shape, sizeof layout->shape);
        memcpy(layout->stride, object[side]->stride, sizeof layout->stride);
        pair->frame[side] = (struct sluice_frame){.size = sizeof pair->frame[side],
                                                  .stride = {layout->stride[1] * bytes}};
        pair->objects.frame[side] = &pair->frame[side];
        pair->objects.step[side] = (ptrdiff_t)layout->stride[0] * bytes;
    }
    assert_int_equal(sluice_python_init(&python), SLUICE_STATUS_OK);
    memset(&python_did, 0, sizeof python_did);
}

static void pair_of_objects_finish(struct pair_of_objects *pair)
{
    assert_int_equal(python_did.cleared, python_did.errors);
    assert_int_equal(python_did.saved, python_did.restored);
    assert_int_equal(python_did.buffers, 0);
    sluice_filter_destroy(&pair->filter);
    free(pair->memory[0]);
    free(pair->memory[1]);
}

static void *call_objects(struct pair_of_objects *pair, struct object *in, struct object *out)
{
    void *const argument[] = {in, out};
    return sluice_filter_objects(&pair->objects, argument, 2);
}

// The result has been made: all of it; or nothing of it.
static void check_result(const struct pair_of_objects *pair, bool made)
{
    for (int k = 0; k < OBJECT_OFFSET + OBJECT_SAMPLES * pair->bytes; k++)
        assert_int_equal(pair->memory[1][k],
                         made && k >= OBJECT_OFFSET ? 255 - pair->memory[0][k] : 77);
}

static void objects_of_python_are_frames(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) { // of one byte and of two, as tensors and as buffers
        struct pair_of_objects pair;
        pair_of_objects_init(&pair, 1 + k % 2);
        if (k >= 2)
            pair.objects.tensor = NULL, pair.objects.stream = NULL;
        pair.in.read_only = true;
        assert_ptr_equal(call_objects(&pair, &pair.in, &pair.out), &pair.out);
        check_result(&pair, true);
        assert_int_equal(pair.out.references, 1);
        assert_int_equal(python_did.restored, 1);
        pair.in.read_only = false;
        assert_ptr_equal(call_objects(&pair, &pair.in, &pair.in), &pair.in); // over its source
        assert_memory_equal(pair.memory[0] + OBJECT_OFFSET, pair.memory[1] + OBJECT_OFFSET,
                            OBJECT_SAMPLES * (size_t)pair.bytes);
        assert_int_equal(python_did.streams, 0);
        pair_of_objects_finish(&pair);
    }
}

// Member `k` of an object is another; false: it has no more.
static bool change_object(struct object *object, int k, bool buffer)
{
    static const int extents[] = {0, 1, 2, 4, 5, 6};
    object->shape = object->extent;
    object->stride = object->extent + SLUICE_DIMENSIONS;
    object->silent = k == 0;
    object->dimensions += k == 1 ? 2 : 0;
    object->dimensions -= k == 2;
    object->type += k == 3;
    if (k >= 4 && k < 10)
        object->extent[extents[k - 4]]++;
    object->bits = (uint8_t)(k == 10 ? 24 - object->bits : object->bits); // 16 for 8, 8 for 16
    object->device_type += k == 11;
    object->device += k == 12;
    object->lanes += k == 13;
    object->stride = k == 14 ? NULL : object->stride;
    return k < (buffer ? 11 : 15);
}

static void objects_of_other_layouts_are_left_alone(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct pair_of_objects pair;
        pair_of_objects_init(&pair, 1 + way % 2);
        if (way >= 2)
            pair.objects.tensor = NULL, pair.objects.stream = NULL;
        for (int side = 0; side < 2; side++) {
            struct object other = side ? pair.out : pair.in;
            for (int k = 0; change_object(&other, k, way >= 2); k++) {
                python_did.none.references = 0;
                void *returned = side ? call_objects(&pair, &pair.in, &other)
                                      : call_objects(&pair, &other, &pair.out);
                if (returned != &python_did.none || python_did.none.references != 1)
                    fail_msg("way %d, side %d, member %d", way, side, k);
                assert_int_equal(python_did.cleared, python_did.errors);
                assert_int_equal(python_did.buffers, 0);
                other = side ? pair.out : pair.in;
            }
        }
        if (way >= 2) {
            pair.out.read_only = true;
            assert_ptr_equal(call_objects(&pair, &pair.in, &pair.out), &python_did.none);
        }
        check_result(&pair, false);
        assert_int_equal(python_did.saved, 0);
        pair_of_objects_finish(&pair);
    }
}

static void objects_of_a_gpu_ask_for_the_stream(void **state)
{
    (void)state;
    struct pair_of_objects pair;
    pair_of_objects_init(&pair, 1);
    pair.in.device_type = pair.out.device_type = 2;
    pair.objects.layout[0].device_type = pair.objects.layout[1].device_type = 2;
    assert_ptr_equal(call_objects(&pair, &pair.in, &pair.out), &python_did.none);
    assert_int_equal(python_did.streams, 1);
    assert_int_equal(python_did.saved, 0);
    check_result(&pair, false);
    pair_of_objects_finish(&pair);
}

static void calls_of_python_are_refused_with_a_number(void **state)
{
    (void)state;
    struct pair_of_objects pair;
    pair_of_objects_init(&pair, 1);
    const struct sluice_objects objects = pair.objects;
    const struct sluice_frame later = {.size = sizeof later + 8};
    void *const argument[] = {&pair.in, &pair.out, &pair.out};
    for (int k = 0; k < 6; k++) {
        pair.objects = objects;
        pair.objects.count = k == 0 ? 0 : k == 1 ? SLUICE_OBJECT_FRAMES + 1 : OBJECT_FRAMES;
        pair.objects.size -= k == 2;
        pair.objects.frame[1] = k == 3 ? &later : pair.objects.frame[1];
        pair.objects.layout[0].dimensions += k == 4 ? 2 : 0;
        python_did.number = -1;
        assert_ptr_equal(sluice_filter_objects(&pair.objects, argument, k == 5 ? 3 : 2),
                         &python_did.number);
        assert_int_equal(python_did.number, SLUICE_STATUS_USAGE);
    }
    pair.objects = objects;
    check_result(&pair, false);
    pair.objects.step[1]--; // what a filter refuses is refused of objects, too
    assert_ptr_equal(call_objects(&pair, &pair.in, &pair.in), &python_did.number);
    assert_int_equal(python_did.number, SLUICE_STATUS_USAGE);
    assert_non_null(strstr(test_sentence, "overlaps"));
    assert_int_equal(python_did.restored, 1);
    struct sluice_python earlier = python;
    earlier.size--;
    assert_int_equal(sluice_python_init(&earlier), SLUICE_STATUS_USAGE);
    pair_of_objects_finish(&pair);
}

// ---- sizes of structs ----

struct later_frame {
    struct sluice_frame frame;
    int64_t more;
};

static void keep_sentence(void *said, enum sluice_log_level level, const char *sentence)
{
    (void)level;
    snprintf(said, 256, "%s", sentence);
}

static void callers_have_other_versions(void **state)
{
    (void)state;
    struct sluice_filter_config config = test_config("gaussian=1", &gray_format);
    config.frames_in_flight = 2;
    struct sluice_filter *filter = test_filter(&config);
    struct test_picture *a = test_noise(&gray_format, ROWS_TIGHT, 1),
                        *b = test_noise(&gray_format, ROWS_TIGHT, 2);
    struct later_frame pair[2] = {{a->frame, 0}, {b->frame, 0}};
    pair[0].frame.size = pair[1].frame.size = sizeof pair[0];
    struct test_picture *want = test_picture(&gray_format, ROWS_TIGHT);
    test_reference("gaussian=1", b, false, want);
    assert_int_equal(sluice_filter_submit_many(filter, &pair[0].frame, &pair[0].frame, 2, NULL), 0);
    struct later_frame made = {.frame.size = sizeof made, .more = 5};
    assert_int_equal(sluice_filter_receive(filter, &made.frame), 0);
    assert_int_equal(made.more, 0);
    assert_int_equal(sluice_filter_receive(filter, &made.frame), 0);
    assert_int_equal(made.frame.size, sizeof made);
    test_same("the second", b, want);
    assert_int_equal(sluice_filter_run_many(filter, &pair[0].frame, &pair[0].frame, 2, NULL), 0);
    pair[0].more = 1; // what this version does not know
    assert_int_equal(sluice_filter_run(filter, &pair[0].frame, &pair[0].frame, NULL),
                     SLUICE_STATUS_USAGE);
    test_picture_free(a);
    test_picture_free(b);
    test_picture_free(want);
    sluice_filter_destroy(&filter);
    char said[256] = "";
    config.size = 0;
    config.log = keep_sentence;
    config.opaque = said;
    assert_int_equal(sluice_filter_create(&config, &filter), SLUICE_STATUS_USAGE);
    assert_null(filter);
    assert_non_null(strstr(said, "sluice_filter_config.size is 0"));
}

// ---- changes ----

static void changes_are_whole_or_refused(void **state)
{
    (void)state;
    struct sluice_filter_config config =
        test_config("gaussian=1,gaussian=2,threshold=20:240", &gray_format);
    struct sluice_filter *filter = test_filter(&config);
    char why[512];
    const struct {
        bool chain;
        const char *text, *why;
    } refused[] = {
        {false, "gaussian.sigma=3, threshold.t1=x", "threshold"},
        {false, "sobel.norm=l2", "no such stage"},
        {false, "gaussian#3.sigma=1", "no such stage"},
        {true, "gaussian=1,sobbel", "did you mean 'sobel'"},
        {true, "wavelet=1:2:show=scale",
         "gbrp of full range would come out, and this filter gives "
         "gray of full range"},
        {true, "tee=other.mp4,null", "tee: a filter has one result"},
        {true, "stats=file.json", "leave out report="},
        {true, "match=logo.png", "the filter was made without a `picture` callback"},
    };
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        enum sluice_status status =
            refused[k].chain ? sluice_filter_set_chain(filter, refused[k].text, why, sizeof why)
                             : sluice_filter_set(filter, refused[k].text, why, sizeof why);
        assert_int_equal(status, SLUICE_STATUS_USAGE);
        if (!strstr(why, refused[k].why))
            fail_msg("%s is refused with: %s", refused[k].text, why);
        char *now = sluice_filter_chain(filter);
        assert_string_equal(now, "gaussian=sigma=1,gaussian=sigma=2,threshold=t1=20:t2=240");
        free(now);
    }
    assert_int_equal(sluice_filter_set(filter, "gaussian#2.sigma=3, threshold.t1=30", NULL, 0), 0);
    char *now = sluice_filter_chain(filter);
    assert_string_equal(now, "gaussian=sigma=1,gaussian=sigma=3,threshold=t1=30:t2=240");
    free(now);
    char *plan = sluice_filter_plan(filter);
    assert_non_null(strstr(plan, "pass 1: input Y -> output Y  65x31, 8 bits"));
    free(plan);
    sluice_filter_destroy(&filter);
}

// ---- analysis ----

static struct sluice_analysis analysis_of(const struct sluice_filter *filter, int index)
{
    struct sluice_analysis analysis = {.size = sizeof analysis};
    assert_int_equal(sluice_filter_analysis(filter, index, &analysis), SLUICE_STATUS_OK);
    return analysis;
}

static void statistics_are_of_the_frame_received_last(void **state)
{
    (void)state;
    struct sluice_format as = {.size = sizeof as, .pixfmt = "yuv420p", .width = 6, .height = 4};
    as.range = SLUICE_RANGE_FULL;
    struct sluice_filter_config config = test_config("stats", &as);
    config.frames_in_flight = 2;
    struct sluice_filter *filter = test_filter(&config);
    struct test_picture *in[3], *out[3];
    struct sluice_frame made = {.size = sizeof made};
    struct sluice_analysis none = {.size = sizeof none};
    assert_int_equal(sluice_filter_analysis(filter, 0, &none), SLUICE_STATUS_END);
    for (int k = 0; k < 3; k++) {
        in[k] = test_picture(&as, ROWS_ODD);
        out[k] = test_picture(&as, ROWS_TIGHT);
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < (c ? 2 : 4); y++)
                for (int x = 0; x < (c ? 3 : 6); x++)
                    write_sample(&in[k]->image, c, x, y, (unsigned)(x + 10 * k + (c ? 128 : 0)));
        if (k == 2)
            assert_int_equal(sluice_filter_receive(filter, &made), 0);
        assert_int_equal(sluice_filter_submit(filter, &in[k]->frame, &out[k]->frame, NULL), 0);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); // the third is done by now
    struct sluice_analysis luma = analysis_of(filter, 0), red = analysis_of(filter, 2);
    assert_int_equal(luma.kind, SLUICE_ANALYSIS_STATISTICS);
    assert_string_equal(luma.stage, "stats");
    assert_string_equal(luma.component, "Y");
    assert_true(luma.width == 6 && luma.height == 4 && luma.min == 0 && luma.max == 5);
    assert_true(luma.mean == 2.5 && luma.deviation > 1.7078 && luma.deviation < 1.7079);
    assert_true(luma.bins == 256 && luma.histogram[0] == 4 && luma.histogram[6] == 0);
    assert_string_equal(red.component, "Cr");
    assert_true(red.width == 3 && red.height == 2 && red.min == 0 && red.max == 2);
    assert_int_equal(sluice_filter_analysis(filter, 3, &none), SLUICE_STATUS_END);
    assert_int_equal(sluice_filter_analysis(filter, -1, &none), SLUICE_STATUS_END);
    assert_int_equal(sluice_filter_receive(filter, &made), 0);
    assert_true(analysis_of(filter, 0).min == 10);
    assert_int_equal(sluice_filter_set_chain(filter, "null", NULL, 0), 0); // it stays
    assert_true(analysis_of(filter, 0).min == 10);
    assert_int_equal(sluice_filter_receive(filter, &made), 0);
    assert_true(analysis_of(filter, 0).min == 20);
    none.size = 0;
    assert_int_equal(sluice_filter_analysis(filter, 0, &none), SLUICE_STATUS_USAGE);
    assert_non_null(strstr(test_sentence, "is 0; it is sizeof(struct sluice_analysis)"));
    sluice_filter_destroy(&filter);
    for (int k = 0; k < 3; k++) {
        test_picture_free(in[k]);
        test_picture_free(out[k]);
    }
}

static void wavelets_have_energies_and_planes(void **state)
{
    (void)state;
    struct sluice_filter_config config = test_config("wavelet=1:3", &gray_format);
    struct test_picture *in = test_noise(&gray_format, ROWS_ODD, 5);
    struct test_picture *out = test_picture(&gray_format, ROWS_TIGHT);
    for (int planes = 0; planes < 2; planes++) {
        config.wavelet_planes = planes;
        struct sluice_filter *filter = test_filter(&config);
        assert_int_equal(sluice_filter_run(filter, &in->frame, &out->frame, NULL), 0);
        struct sluice_analysis found = analysis_of(filter, 0);
        assert_true(found.kind == SLUICE_ANALYSIS_WAVELET && found.scales == 2);
        assert_true(found.scale[0] == 1 && found.scale[1] == 3 && found.energy[0] > 0);
        assert_true((found.plane != NULL) == planes);
        for (int s = 0; s < 2 && planes; s++) {
            double sum = 0;
            for (int k = 0; k < 65 * 31; k++)
                sum += (double)found.plane[s * 65 * 31 + k] * found.plane[s * 65 * 31 + k];
            double ratio = sum / (65 * 31) / found.energy[s];
            assert_true(ratio > 0.9999 && ratio < 1.0001);
        }
        sluice_filter_destroy(&filter);
    }
    test_picture_free(in);
    test_picture_free(out);
}

// A picture by its name: a part of the frame, which only one call may see.
static enum sluice_status part(void *source, const char *name, struct sluice_picture *picture)
{
    static uint8_t sample[9 * 7], mask[9 * 7];
    const struct test_picture *in = source;
    int left, top;
    if (sscanf(name, "at %dx%d", &left, &top) != 2)
        return SLUICE_STATUS_USAGE;
    for (int y = 0; y < 7; y++)
        memcpy(sample + 9 * y, in->image.data[0] + (top + y) * in->image.stride[0] + left, 9);
    memset(mask, 1, sizeof mask);
    mask[0] = 0;
    picture->width = 9;
    picture->height = 7;
    picture->sample = sample;
    picture->mask = left > 20 ? mask : NULL;
    return SLUICE_STATUS_OK;
}

static void matches_are_found(void **state)
{
    (void)state;
    struct test_picture *in = test_noise(&gray_format, ROWS_ODD, 5);
    struct test_picture *out = test_picture(&gray_format, ROWS_TIGHT);
    struct sluice_filter_config config =
        test_config("match='at 5x4':'at 30x20',match='at 50x2':draw=none", &gray_format);
    config.picture = part;
    config.log = NULL;
    config.opaque = in;
    struct sluice_filter *filter = test_filter(&config);
    assert_int_equal(sluice_filter_run(filter, &in->frame, &out->frame, NULL), 0);
    struct sluice_analysis two = analysis_of(filter, 0), one = analysis_of(filter, 1);
    assert_true(two.kind == SLUICE_ANALYSIS_MATCHES && two.matches == 2 && one.matches == 1);
    for (int k = 0; k < 2; k++) {
        const struct sluice_match *match = &two.match[k];
        float x = match->number ? 30 : 5, y = match->number ? 20 : 4;
        assert_true(match->width == 9 && match->height == 7 && match->score > 0.999f);
        assert_true(match->x > x - 0.5f && match->x < x + 0.5f && match->y > y - 0.5f &&
                    match->y < y + 0.5f);
    }
    assert_true(two.match[0].number != two.match[1].number);
    assert_true(one.match[0].x > 49.5f && one.match[0].x < 50.5f); // with a mask
    char why[256];
    assert_int_equal(sluice_filter_set_chain(filter, "match=nothing", why, sizeof why),
                     SLUICE_STATUS_USAGE);
    assert_non_null(strstr(why, "nothing; the `picture` callback has none of this name"));
    sluice_filter_destroy(&filter);
    test_picture_free(in);
    test_picture_free(out);
}

// ---- what is refused ----

static void frames_are_refused_with_a_sentence(void **state)
{
    (void)state;
    struct sluice_format as = test_format("yuv420p", 20, 8);
    struct sluice_filter_config config = test_config("gaussian=1", &as);
    struct sluice_filter *filter = test_filter(&config);
    struct test_picture *a = test_noise(&as, ROWS_TIGHT, 1), *b = test_picture(&as, ROWS_TIGHT);
    const struct sluice_frame good = a->frame, target = b->frame;
    struct sluice_frame in[16], out[16];
    static const char *const want[] = {
        "plane 1 of `in` has no address; a picture of yuv420p has 3",
        "the stride of plane 0 of `in` is 19 bytes, and its rows have 20",
        "the stride of plane 2 of `out` is -9 bytes, and its rows have 10",
        "plane 0 of `out` overlaps plane 0 of `in`",
        "plane 1 of `out` overlaps plane 2 of `in`",
        "planes 1 and 2 of `out` overlap",
        "`in` is in a GPU's memory, and this filter works on the CPU",
        "`out` is in a GPU's memory",
        "`memory` of `in` is 7, which is none",
        "`size` of `in` is 8; it is sizeof(struct sluice_frame)",
        "plane 0 of `out` overlaps plane 0 of `in`",
        "the stride of plane 0 of `in` is 0 bytes",
        "the stride of plane 0 of `in` is -9223372036854775808 bytes; 30 bits are the most",
        "the stride of plane 1 of `out` is 4611686018427387904 bytes; 30 bits are the most",
        "the stride of plane 2 of `out` is 288230376151711744 bytes; 30 bits are the most",
        "the stride of plane 0 of `out` is -2147483648 bytes; 30 bits are the most",
    };
    for (int k = 0; k < 16; k++)
        in[k] = good, out[k] = target;
    in[0].data[1] = NULL;
    in[1].stride[0] = 19;
    out[2].stride[2] = -9;
    out[3].data[0] = in[3].data[0] + 1; // shifted by a column
    out[4].data[1] = in[4].data[2];     // another plane
    out[5].data[2] = out[5].data[1] + 5;
    in[6].memory = SLUICE_MEMORY_DEVICE;
    out[7].memory = SLUICE_MEMORY_DEVICE;
    in[8].memory = (enum sluice_memory)7;
    in[9].size = 8;
    out[10].data[0] = in[10].data[0] + 7 * in[10].stride[0]; // upside down
    out[10].stride[0] = -in[10].stride[0];
    in[11].stride[0] = 0;
    in[12].stride[0] = PTRDIFF_MIN;
    out[13].stride[1] = (ptrdiff_t)1 << 62;
    out[14].stride[2] = (ptrdiff_t)1 << 58;
    out[15].stride[0] = INT32_MIN;
    for (int k = 0; k < 16; k++) {
        assert_int_equal(sluice_filter_run(filter, &in[k], &out[k], NULL), SLUICE_STATUS_USAGE);
        if (!strstr(test_sentence, want[k]))
            fail_msg("frame %d is refused with: %s", k, test_sentence);
    }
    assert_int_equal(sluice_filter_submit(filter, &good, &target, NULL), 0); // nothing happened
    assert_int_equal(sluice_filter_run(filter, &good, &target, NULL), SLUICE_STATUS_USAGE);
    assert_non_null(strstr(test_sentence, "1 are under way"));
    sluice_filter_destroy(&filter);
    test_picture_free(a);
    test_picture_free(b);
}

// Halves of one picture lie side by side, fields row by row in turn: they share no byte.
static void parts_of_one_picture_do_not_overlap(void **state)
{
    (void)state;
    enum { WIDTH = 40, HEIGHT = 12 };
    static uint8_t memory[WIDTH * HEIGHT];
    const struct {
        int width, height;
        ptrdiff_t other, stride;
        bool fits;
    } parts[] = {
        {WIDTH / 2, HEIGHT, WIDTH / 2, WIDTH, true},
        {WIDTH / 2 + 1, HEIGHT, WIDTH / 2, WIDTH, false},
        {WIDTH, HEIGHT / 2, WIDTH, 2 * WIDTH, true},
        {WIDTH / 2, HEIGHT / 2, HEIGHT / 2 * WIDTH + 3, WIDTH, true},
        {WIDTH, HEIGHT / 2, WIDTH / 2, 2 * WIDTH, false},
    };
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (int swapped = 0; swapped < 2; swapped++) {
            struct sluice_format as = test_format("gray", parts[k].width, parts[k].height);
            struct sluice_filter_config config = test_config("invert", &as);
            struct sluice_filter *filter = test_filter(&config);
            struct sluice_frame one = {
                .size = sizeof one, .data = {memory}, .stride = {parts[k].stride}};
            struct sluice_frame other = one;
            other.data[0] += parts[k].other;
            enum sluice_status status = swapped ? sluice_filter_run(filter, &other, &one, NULL)
                                                : sluice_filter_run(filter, &one, &other, NULL);
            assert_int_equal(status, parts[k].fits ? SLUICE_STATUS_OK : SLUICE_STATUS_USAGE);
            sluice_filter_destroy(&filter);
        }
}

static void configurations_are_refused_with_a_sentence(void **state)
{
    (void)state;
    struct sluice_filter_config good = test_config("gaussian=1", &gray_format), config[14];
    static const char *const want[] = {
        "'pal8' is no pixel format",
        "frames of 0x31 are none",
        "frames of 1048577x31 are none",
        "frames_in_flight is 65; it is 0 to 64",
        "threads is -1",
        "there is no backend 9",
        "'nope' is no pixel format",
        "`size` of the format is 0",
        "there is no stage 'sobbel'",
        "range 4, matrix 0 or siting 0",
        "gray has no colours and the chain leaves some",
        "stats: a filter writes no files",
        "smaller picture or frames_in_flight = 1 take less",
        "524288 of them for the analysis of wavelet", // that of the frame received last stays
    };
    for (int k = 0; k < 14; k++)
        config[k] = good;
    config[0].input.pixfmt = "pal8";
    config[1].input.width = 0;
    config[2].input.width = (1 << 20) + 1;
    config[3].frames_in_flight = 65;
    config[4].threads = -1;
    config[5].backend = (enum sluice_backend)9;
    config[6].output_pixfmt = "nope";
    config[7].input.size = 0;
    config[8].chain = "gaussian=1,sobbel";
    config[9].input.range = (enum sluice_range)4;
    config[10].input.pixfmt = "yuv420p";
    config[10].output_pixfmt = "gray";
    config[11].chain = "stats=x.json";
    config[12].chain = "wavelet=1..256"; // 512 GiB for each frame
    config[12].input.width = config[12].input.height = 1 << 14;
    config[12].wavelet_planes = true;
    config[13] = config[12];
    config[13].frames_in_flight = 1;
    for (int k = 0; k < 14; k++) {
        struct sluice_filter *filter = (struct sluice_filter *)1;
        assert_int_equal(sluice_filter_create(&config[k], &filter), SLUICE_STATUS_USAGE);
        assert_null(filter);
        if (!strstr(test_sentence, want[k]))
            fail_msg("configuration %d is refused with: %s", k, test_sentence);
    }
    struct sluice_filter *none = NULL;
    sluice_filter_destroy(&none);
}

static void what_is_missing_has_a_default(void **state)
{
    (void)state;
    struct sluice_filter_config config = {.size = sizeof config, .input = gray_format};
    struct sluice_filter *filter;
    assert_int_equal(sluice_filter_create(&config, &filter), SLUICE_STATUS_OK);
    char *chain = sluice_filter_chain(filter);
    assert_non_null(strstr(chain, "threshold"));
    free(chain);
    assert_true(sluice_filter_frames_in_flight(filter) > 1);
    assert_non_null(strchr(sluice_filter_backend(filter), ','));
    void *memory = sluice_filter_alloc(filter, 100);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    sluice_filter_free(filter, memory, 100);
    sluice_filter_free(filter, NULL, 100);
    sluice_filter_destroy(&filter);
    config.backend = SLUICE_BACKEND_SCALAR;
    assert_int_equal(sluice_filter_create(&config, &filter), SLUICE_STATUS_OK);
    assert_int_equal(sluice_filter_frames_in_flight(filter), 1);
    sluice_filter_destroy(&filter);
}

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(sluice_status_name(SLUICE_STATUS_AGAIN), "not now");
    assert_string_equal(sluice_status_name((enum sluice_status)99), "unknown");
}

// ---- a GPU that fails ----

static const struct fragile *wanted_gpu; // NULL: whatever there is

enum status __real_backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                       char *reason, size_t reason_size);
enum status __wrap_backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                       char *reason, size_t reason_size);

enum status __wrap_backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                       char *reason, size_t reason_size)
{
    if (!wanted_gpu)
        return __real_backend_cuda_create(device, log, backend, reason, reason_size);
    *backend = create_fragile(log, *wanted_gpu);
    return STATUS_OK;
}

// All frames under way come back, those that were filtered before, too, and then there is none.
static void a_gpu_that_fails_gives_its_frames_back(void **state)
{
    (void)state;
    for (int at = 0; at < 3; at++) {
        const struct fragile how = {.submit_fails = NEVER, .wait_fails = at};
        struct sluice_filter_config config = test_config("gaussian=1", &gray_format);
        struct sluice_frame given = {.size = sizeof given};
        struct test_picture *in[4], *out[4];
        config.backend = SLUICE_BACKEND_CUDA;
        config.frames_in_flight = 4;
        wanted_gpu = &how;
        struct sluice_filter *filter = test_filter(&config);
        wanted_gpu = NULL;
        for (int k = 0; k < 4; k++) {
            in[k] = test_noise(&gray_format, ROWS_TIGHT, (uint32_t)k);
            out[k] = test_picture(&gray_format, ROWS_TIGHT);
            in[k]->frame.pts = k;
            assert_int_equal(sluice_filter_submit(filter, &in[k]->frame, &out[k]->frame, NULL),
                             SLUICE_STATUS_OK);
        }
        for (int k = 0; k < 4; k++) {
            assert_int_equal(sluice_filter_receive(filter, &given),
                             k < at ? SLUICE_STATUS_OK : SLUICE_STATUS_DEVICE);
            assert_int_equal(given.pts, k);
            assert_ptr_equal(given.data[0], out[k]->frame.data[0]);
        }
        assert_int_equal(fragile->waits, 4); // for each of them
        assert_int_equal(sluice_filter_receive(filter, &given), SLUICE_STATUS_DEVICE);
        assert_int_equal(sluice_filter_submit(filter, &in[0]->frame, &out[0]->frame, NULL),
                         SLUICE_STATUS_DEVICE);
        sluice_filter_destroy(&filter);
        for (int k = 0; k < 4; k++) {
            test_picture_free(in[k]);
            test_picture_free(out[k]);
        }
    }
}

static void a_gpu_that_fails_ends_a_call_for_many_frames(void **state)
{
    (void)state;
    const struct fragile how = {.submit_fails = NEVER, .wait_fails = 1};
    struct sluice_filter_config config = test_config("gaussian=1", &gray_format);
    struct sluice_frame in[6], out[6], given = {.size = sizeof given};
    struct test_picture *source = test_noise(&gray_format, ROWS_TIGHT, 1), *target[6];
    config.backend = SLUICE_BACKEND_CUDA;
    config.frames_in_flight = 4;
    wanted_gpu = &how;
    struct sluice_filter *filter = test_filter(&config);
    wanted_gpu = NULL;
    for (int k = 0; k < 6; k++) {
        target[k] = test_picture(&gray_format, ROWS_TIGHT);
        in[k] = source->frame, out[k] = target[k]->frame;
    }
    assert_int_equal(sluice_filter_run_many(filter, in, out, 6, NULL), SLUICE_STATUS_DEVICE);
    assert_int_equal(fragile->waits, 4); // for those that were under way
    assert_int_equal(sluice_filter_receive(filter, &given), SLUICE_STATUS_DEVICE); // none is
    assert_int_equal(sluice_filter_run_many(filter, in, out, 2, NULL), SLUICE_STATUS_DEVICE);
    sluice_filter_destroy(&filter);
    test_picture_free(source);
    for (int k = 0; k < 6; k++)
        test_picture_free(target[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_until_it_is_full),
        cmocka_unit_test(one_thread_submits_and_another_receives),
        cmocka_unit_test(frames_go_together),
        cmocka_unit_test(any_number_of_frames_is_run_by_one_call),
        cmocka_unit_test(a_call_for_many_frames_ends_with_the_first_that_is_refused),
        cmocka_unit_test(objects_of_python_are_frames),
        cmocka_unit_test(objects_of_other_layouts_are_left_alone),
        cmocka_unit_test(objects_of_a_gpu_ask_for_the_stream),
        cmocka_unit_test(calls_of_python_are_refused_with_a_number),
        cmocka_unit_test(callers_have_other_versions),
        cmocka_unit_test(changes_are_whole_or_refused),
        cmocka_unit_test(statistics_are_of_the_frame_received_last),
        cmocka_unit_test(wavelets_have_energies_and_planes),
        cmocka_unit_test(matches_are_found),
        cmocka_unit_test(frames_are_refused_with_a_sentence),
        cmocka_unit_test(parts_of_one_picture_do_not_overlap),
        cmocka_unit_test(configurations_are_refused_with_a_sentence),
        cmocka_unit_test(what_is_missing_has_a_default),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(a_gpu_that_fails_gives_its_frames_back),
        cmocka_unit_test(a_gpu_that_fails_ends_a_call_for_many_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
