// Jobs of all kinds, one after another, in one process: what it holds must not grow.
//
//     soak_jobs FILE [JOBS [cuda]]
//
// Filters FILE, a short one with sound, in the present folder; cuda: on a GPU. Each quarter of the time a
// line tells the medians of memory, of the GPU's, too, of threads and descriptors; the exit code is 1 if
// they grow from the second quarter to the last, or a job ends otherwise than its kind does.
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sluice/sluice.h"

// Fewer jobs than LONG have not filled malloc()'s arenas by half of the time.
enum { QUARTERS = 4, JOBS = 20000, LONG = 5000 };
enum { DECODES = 16 }; // one job of so many may decode on the GPU

static enum sluice_backend backend = SLUICE_BACKEND_CPU;

// ---- kinds of jobs ----

static enum sluice_status take_two(void *opaque, int output, const struct sluice_format *format,
                                   const struct sluice_frame *frame)
{
    (void)opaque, (void)output, (void)format;
    return frame->pts > 0 ? SLUICE_STATUS_END : SLUICE_STATUS_OK;
}

struct kind {
    struct sluice_config config;
    bool stopped; // by another thread, at some time
    bool changed; // likewise
    enum sluice_status ends;
};

static const char *const preset[] = {"preset=ultrafast", NULL};
static const struct kind kinds[] = {
    {{.chain = "gray,gaussian=1.4,sobel", .output = {.name = "null:"}}},
    {{.chain = "invert", .output = {.name = "out.mkv", .encoder = "ffv1"}}},
    {{.output = {.name = "out.mp4", .encoder = "libx264", .options = preset}}},
    {{.chain = "stats=stats.jsonl,gaussian=3", .output = {.name = "hash:hash.txt"}}},
    {{.chain = "tee=tee.y4m,wavelet=1..3:out=wavelet", .output = {.name = "null:"}, .frames = 3}},
    {{.chain = "gray", .output = {.name = "out-%03d.png"}, .frames = 3}},
    {{.chain = "box=2", .take = take_two}, .ends = SLUICE_STATUS_STOPPED},
    {{.chain = "median", .output = {.name = "null:"}}, .ends = SLUICE_STATUS_USAGE},
    {{.input = "missing.mp4", .output = {.name = "null:"}}, .ends = SLUICE_STATUS_INPUT},
    {{.output = {.name = "nowhere/out.mkv"}}, .ends = SLUICE_STATUS_OUTPUT},
    {{.chain = "gaussian=2", .output = {.name = "out.ts", .encoder = "mpeg2video"}},
     .stopped = true},
    {{.chain = "gaussian=2", .output = {.name = "null:"}}, .changed = true},
    {{.output = {.name = "hash:part"}, .part = 2, .parts = 3}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void ignore(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque, (void)level, (void)sentence;
}

struct bother {
    struct sluice_job *job;
    bool stops;
    unsigned wait_us;
};

static void *bother(void *bother_)
{
    const struct bother *now = bother_;
    usleep(now->wait_us);
    if (now->stops)
        sluice_job_stop(now->job);
    else
        sluice_job_set(now->job, "gaussian.sigma=3.5", NULL, 0);
    return NULL;
}

static enum sluice_status run(const struct kind *kind, const char *file, unsigned number)
{
    struct sluice_config config = kind->config;
    config.size = sizeof config;
    config.input = config.input ? config.input : file;
    config.chain = config.chain ? config.chain : "";
    config.overwrite = true;
    config.backend = backend;
    // The GPU's decoder takes longer to begin than all else that these jobs do.
    if (backend == SLUICE_BACKEND_CUDA && number % DECODES)
        config.hwdec = SLUICE_HWDEC_OFF;
    config.log = ignore;
    struct bother it = {.stops = kind->stopped, .wait_us = number % 17 * 500};
    enum sluice_status status = sluice_job_create(&config, &it.job);
    if (status)
        return status;
    pthread_t thread;
    bool bothered = (kind->stopped || kind->changed) && !pthread_create(&thread, NULL, bother, &it);
    status = sluice_job_run(it.job);
    if (bothered)
        pthread_join(thread, NULL);
    sluice_job_destroy(&it.job);
    if (config.parts)
        sluice_remove_part("part.part-2-of-3");
    return kind->stopped && status == SLUICE_STATUS_STOPPED ? SLUICE_STATUS_OK : status;
}

// ---- what the process holds ----

enum { RSS, HEAP, DEVICE, THREADS, DESCRIPTORS, HELD };

// The CUDA runtime's, where the library holds it.
int cudaMemGetInfo(size_t *room, size_t *all) __attribute__((weak));

struct sample {
    long held[HELD];
};

static long entries_of(const char *folder)
{
    long count = 0;
    DIR *list = opendir(folder);
    while (list && readdir(list))
        count++;
    if (list)
        closedir(list);
    return count;
}

static struct sample sample_now(void)
{
    long pages = 0;
    FILE *from = fopen("/proc/self/statm", "r");
    if (from && fscanf(from, "%*s %ld", &pages) != 1)
        pages = 0;
    if (from)
        fclose(from);
    size_t room = 0, all = 0;
    if (backend == SLUICE_BACKEND_CUDA && (!cudaMemGetInfo || cudaMemGetInfo(&room, &all))) {
        fputs("the memory of the GPU cannot be measured\n", stderr);
        exit(2);
    }
    struct mallinfo2 heap = mallinfo2();
    return (struct sample){{pages * sysconf(_SC_PAGESIZE) >> 10,
                            (long)((heap.uordblks + heap.hblkhd) >> 10), (long)((all - room) >> 10),
                            entries_of("/proc/self/task"), entries_of("/proc/self/fd")}};
}

static int compare(const void *a, const void *b)
{
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

static long median_of(const struct sample *samples, int count, int what)
{
    long *list = malloc((size_t)count * sizeof *list), median;
    if (!list)
        abort();
    for (int k = 0; k < count; k++)
        list[k] = samples[k].held[what];
    qsort(list, (size_t)count, sizeof *list, compare);
    median = list[count / 2];
    free(list);
    return median;
}

// True if there is more at the end than in the second quarter, but for a few percent of memory.
static bool print_and_compare(const struct sample *samples, int count)
{
    struct sample medians[QUARTERS];
    bool grew = false;
    for (int q = 0; q < QUARTERS; q++) {
        for (int what = 0; what < HELD; what++)
            medians[q].held[what] =
                median_of(samples + q * (count / QUARTERS), count / QUARTERS, what);
        const long *held = medians[q].held;
        printf("quarter %d: %ld KiB of memory, %ld of them in use by malloc(), %ld of a GPU's, "
               "%ld threads, %ld descriptors\n",
               q + 1, held[RSS], held[HEAP], held[DEVICE], held[THREADS] - 2,
               held[DESCRIPTORS] - 3);
    }
    for (int what = 0; what < HELD; what++) {
        long before = medians[1].held[what], now = medians[QUARTERS - 1].held[what];
        bool exact = what == THREADS || what == DESCRIPTORS || what == DEVICE;
        if (what != RSS || count >= LONG)
            grew |= exact ? now > before : now > before + before / 20;
    }
    return grew;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const char *file = argv[1];
    int jobs = argc > 2 ? atoi(argv[2]) : JOBS, failed = 0;
    struct sample *samples = calloc((size_t)jobs + 1, sizeof *samples);
    if (!samples || jobs < KINDS * QUARTERS)
        return 2;
    backend = argc > 3 && !strcmp(argv[3], "cuda") ? SLUICE_BACKEND_CUDA : SLUICE_BACKEND_CPU;
    sluice_ffmpeg_log(-8); // quiet
    for (int n = 0; n < jobs; n++) {
        const struct kind *kind = &kinds[n % KINDS];
        enum sluice_status status = run(kind, file, (unsigned)n);
        if (status != kind->ends && failed++ < 10)
            printf("job %d, kind %d: status %d\n", n, n % KINDS, (int)status);
        samples[n] = sample_now();
    }
    bool grew = print_and_compare(samples, jobs);
    printf("%d jobs, %d failed, %s\n", jobs, failed, grew ? "it grew" : "it did not grow");
    free(samples);
    return failed || grew;
}
