// Jobs whose GPU is ready only while they work: frames are the same whenever that is, and whatever becomes
// of it. The GPU is the CPU by another name, and as late as the test wants.
#include "tests/ends.h"
#include "tests/fragile_gpu.h"

enum { LONG = 60, SLOW_US = 4000 };

// ---- a GPU that is late ----

static struct {
    struct fragile how;
    bool absent;
    struct fragile *made;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- guarded by lock ----
    bool may_come, came;
} late = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

bool __wrap_backend_cuda_may_be_there(void);
enum status __wrap_backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                       char *reason, size_t reason_size);

bool __wrap_backend_cuda_may_be_there(void)
{
    return true;
}

enum status __wrap_backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                       char *reason, size_t reason_size)
{
    *backend = NULL;
    assert_int_equal(device, 0);
    pthread_mutex_lock(&late.lock);
    while (!late.may_come)
        pthread_cond_wait(&late.changed, &late.lock);
    if (late.absent)
        snprintf(reason, reason_size, "it is in a drawer");
    else
        *backend = create_fragile(log, late.how);
    late.made = late.absent ? NULL : fragile;
    late.came = true;
    pthread_cond_broadcast(&late.changed);
    pthread_mutex_unlock(&late.lock);
    return late.absent ? STATUS_DEVICE : STATUS_OK;
}

// ---- the CPU beside it ----

static const struct log *cpu_log; // the log of the first backend of a job

enum status __real_backend_cpu_create(int threads, const struct log *log, struct backend **backend);
enum status __wrap_backend_cpu_create(int threads, const struct log *log, struct backend **backend);

enum status __wrap_backend_cpu_create(int threads, const struct log *log, struct backend **backend)
{
    cpu_log = cpu_log ? cpu_log : log;
    return __real_backend_cpu_create(threads, log, backend);
}

// Let it come, and wait for that.
static void let_it_come(bool wait)
{
    pthread_mutex_lock(&late.lock);
    late.may_come = true;
    pthread_cond_broadcast(&late.changed);
    while (wait && !late.came)
        pthread_cond_wait(&late.changed, &late.lock);
    pthread_mutex_unlock(&late.lock);
}

// ---- jobs ----

static struct {
    struct ends ends;
    int comes_at; // the frame that is taken then
    int warnings;
    char warning[300];
    char backend[16];
    int submits, pinned; // the GPU's, in the end
    bool cpu_fails;      // it says so once the GPU filters
    int cpu_errors;
} job;

static const char cpu_error[] = "the CPU has an error";

static void hear(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    note(&job.ends, level, sentence);
    job.cpu_errors += level == SLUICE_LOG_ERROR && !strcmp(sentence, cpu_error);
    if (level != SLUICE_LOG_WARNING)
        return;
    job.warnings++;
    snprintf(job.warning, sizeof job.warning, "%s", sentence);
}

static enum sluice_status take_slowly(void *opaque, int output, const struct sluice_format *format,
                                      const struct sluice_frame *frame)
{
    (void)opaque;
    if (job.ends.taken[0] == job.comes_at)
        let_it_come(true);
    if (job.ends.taken[0] >= job.comes_at && (!late.made || !late.made->submits))
        usleep(SLOW_US); // until it filters
    if (job.cpu_fails && late.made && late.made->submits) {
        job.cpu_fails = false;
        log_print(cpu_log, LOG_ERROR, cpu_error);
    }
    return take(&job.ends, output, format, frame);
}

// `comes_at` -1: before the first frame.
static void begin(const char *chain, int comes_at, struct fragile how)
{
    memset(&job, 0, sizeof job);
    begin_config(&job.ends, chain);
    struct sluice_config *config = &job.ends.config;
    read_raw(&job.ends);
    config->backend = SLUICE_BACKEND_AUTO;
    config->input = raw_file_of("long.yuv", LONG);
    config->threads = 2;
    config->log = hear;
    config->take = take_slowly;
    job.comes_at = comes_at;
    cpu_log = NULL;
    late.how = how;
    late.made = NULL;
    late.absent = false;
    late.may_come = comes_at < 0;
    late.came = false;
}

static bool is_pending(void)
{
    struct sluice_summary summary = {.size = sizeof summary};
    sluice_job_summary(job.ends.job, &summary);
    return summary.gpu_pending;
}

static void run_to_its_end(void)
{
    struct sluice_summary summary = {.size = sizeof summary};
    assert_int_equal(sluice_job_run(job.ends.job), SLUICE_STATUS_OK);
    sluice_job_summary(job.ends.job, &summary);
    snprintf(job.backend, sizeof job.backend, "%s", summary.backend);
    let_it_come(true); // at the latest
    job.submits = late.made ? late.made->submits : 0;
    assert_int_equal(finish(&job.ends).frames_out, LONG);
    assert_int_equal(job.ends.errors, 0);
}

static void end_well(void)
{
    create(&job.ends);
    run_to_its_end();
}

static char wanted[LONG][33]; // what the CPU makes

static void find_wanted(const char *chain)
{
    begin(chain, -1, (struct fragile){0});
    job.ends.config.backend = SLUICE_BACKEND_CPU;
    late.came = true;
    end_well();
    memcpy(wanted, job.ends.md5[0], sizeof wanted);
    assert_int_equal(job.warnings, 0);
}

static void is_wanted(void)
{
    assert_int_equal(job.ends.taken[0], LONG);
    for (int n = 0; n < LONG; n++) {
        assert_string_equal(job.ends.md5[0][n], wanted[n]);
        assert_int_equal(job.ends.pts[0][n], 40000 * n);
    }
}

static const struct fragile sound = {
    .submit_fails = NEVER, .wait_fails = NEVER, .room = (size_t)1 << 30};

static void frames_are_the_same_whenever_it_comes(void **state)
{
    const char *const chains[] = {"gaussian=2,sobel", "", "stats=/dev/null,invert"};
    (void)state;
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
        find_wanted(chains[c]);
        for (int at = -1; at < LONG / 2; at += 1 + at / 2) {
            begin(chains[c], at, sound);
            end_well();
            is_wanted();
            assert_int_equal(job.warnings, 0);
            if (at < 0)
                continue;
            assert_string_equal(job.backend, "cuda");
            assert_in_range(job.submits, *chains[c] ? 1 : 0, LONG - at - 1);
        }
    }
}

static void one_that_is_ready_first_has_all_frames(void **state)
{
    (void)state;
    find_wanted("gaussian=2,sobel");
    begin("gaussian=2,sobel", -1, sound);
    create(&job.ends);
    while (is_pending())
        usleep(1000);
    run_to_its_end();
    is_wanted();
    assert_string_equal(job.backend, "cuda");
    assert_int_equal(job.submits, LONG);
}

static void a_job_may_end_before_it_comes(void **state)
{
    (void)state;
    find_wanted("gaussian=2");
    begin("gaussian=2", LONG, sound);
    end_well();
    is_wanted();
    assert_string_equal(job.backend, "cpu");
    assert_int_equal(job.submits, 0);
}

static void *come_soon(void *unused)
{
    (void)unused;
    usleep(20000);
    let_it_come(false);
    return NULL;
}

// It comes while the job is being destroyed.
static void a_job_may_be_gone_before_it_comes(void **state)
{
    const struct sluice_output more[2] = {{.name = "null:"}};
    pthread_t thread;
    (void)state;
    begin("gaussian=2", LONG, sound);
    job.ends.config.more_outputs = more;
    create(&job.ends);
    assert_true(is_pending());
    assert_int_equal(sluice_job_run(job.ends.job), SLUICE_STATUS_OK);
    assert_true(is_pending());
    assert_int_equal(pthread_create(&thread, NULL, come_soon, NULL), 0);
    assert_int_equal(finish(&job.ends).frames_out, LONG);
    pthread_join(thread, NULL);
    assert_true(late.came);
    assert_int_equal(job.warnings, 0);
}

static void a_job_need_not_run(void **state)
{
    (void)state;
    begin("gaussian=2", -1, sound);
    create(&job.ends);
    sluice_job_destroy(&job.ends.job);
    begin("gaussian=2", -1, sound);
    job.ends.config.output.name = "/nowhere/out.mkv";
    job.ends.config.take = NULL;
    assert_int_not_equal(sluice_job_create(&job.ends.config, &job.ends.job) ||
                             sluice_job_run(job.ends.job),
                         SLUICE_STATUS_OK);
    sluice_job_destroy(&job.ends.job);
}

static void the_cpu_works_on_where_none_comes(void **state)
{
    (void)state;
    find_wanted("gaussian=2,sobel");
    begin("gaussian=2,sobel", 5, sound);
    late.absent = true;
    end_well();
    is_wanted();
    assert_string_equal(job.backend, "cpu");
    assert_int_equal(job.warnings, !backend_cuda_is_absent());
}

static void a_gpu_without_room_is_left_alone(void **state)
{
    struct fragile narrow = sound;
    (void)state;
    find_wanted("gaussian=2,sobel");
    narrow.room = 1;
    begin("gaussian=2,sobel", 5, narrow);
    end_well();
    is_wanted();
    assert_string_equal(job.backend, "cpu");
    assert_int_equal(job.submits, 0);
    assert_int_equal(job.warnings, 1);
    assert_non_null(strstr(job.warning, "the CPU filters: 8 frames of 70x38 in flight need"));
}

// The sentence counts the job's frames, not the GPU's.
static void a_gpu_that_fails_is_left_again(void **state)
{
    (void)state;
    find_wanted("gaussian=2,sobel");
    for (int at = 0; at < 8; at++) {
        struct fragile how = sound;
        how.make_fails = at == 7;
        how.submit_fails = at % 2 ? NEVER : at;
        how.wait_fails = at % 2 ? at : NEVER;
        begin("gaussian=2,sobel", 20, how);
        end_well();
        is_wanted();
        assert_int_equal(job.warnings, 1);
        const char *words = "it is broken: the CPU filters from frame ";
        const char *number = strstr(job.warning, words);
        assert_non_null(number);
        assert_in_range(atoi(number + strlen(words)), 21, LONG - 1);
    }
}

// It is told at once, and is not taken for what the GPU fails of later.
static void an_error_of_the_cpu_is_not_the_gpus(void **state)
{
    struct fragile how = sound;
    (void)state;
    how.wait_fails = 20;
    begin("gaussian=2,sobel", 5, how);
    job.cpu_fails = true;
    create(&job.ends);
    assert_int_equal(sluice_job_run(job.ends.job), SLUICE_STATUS_OK);
    assert_int_equal(finish(&job.ends).frames_out, LONG);
    assert_int_equal(job.cpu_errors, 1);
    assert_int_equal(job.ends.errors, 1);
    assert_int_equal(job.warnings, 1);
    assert_non_null(strstr(job.warning, "it is broken: the CPU filters from frame "));
}

static void who_asks_for_it_has_it_from_the_first_frame(void **state)
{
    (void)state;
    find_wanted("gaussian=2,sobel");
    for (int way = 0; way < 4; way++) {
        begin("gaussian=2,sobel", -1, sound);
        if (way == 0)
            job.ends.config.backend = SLUICE_BACKEND_CUDA;
        else if (way == 1)
            job.ends.config.vram = 1 << 30;
        else if (way == 2)
            job.ends.config.await_gpu = true;
        else
            job.ends.config.device = "0";
        end_well();
        is_wanted();
        assert_string_equal(job.backend, "cuda");
        assert_int_equal(job.submits, LONG);
    }
}

int main(void)
{
    sluice_ffmpeg_log(-8); // raw video has no duration
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_the_same_whenever_it_comes),
        cmocka_unit_test(one_that_is_ready_first_has_all_frames),
        cmocka_unit_test(a_job_may_end_before_it_comes),
        cmocka_unit_test(a_job_may_be_gone_before_it_comes),
        cmocka_unit_test(a_job_need_not_run),
        cmocka_unit_test(the_cpu_works_on_where_none_comes),
        cmocka_unit_test(a_gpu_without_room_is_left_alone),
        cmocka_unit_test(a_gpu_that_fails_is_left_again),
        cmocka_unit_test(an_error_of_the_cpu_is_not_the_gpus),
        cmocka_unit_test(who_asks_for_it_has_it_from_the_first_frame),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
