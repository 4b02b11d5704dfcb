#include "pipeline/engine/metrics.h"

#include <dirent.h>
#include <libavutil/avstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/engine/job.h"
#include "pipeline/engine/job_device.h"
#include "pipeline/input/source.h"
#include "pipeline/output/http/http.h"
#include "plan/backend.h"

struct metrics {
    struct http *http;
    double process_start; // seconds since 1970
    struct monitor lock;
    // ---- guarded by lock ----
    const struct sluice_job *job; // NULL: none is there
};

// ---- the format ----

static void write_head(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// `labels` with their braces, or "".
static void write_sample(FILE *to, const char *name, const char *labels, double value)
{
    fprintf(to, "%s%s %.15g\n", name, labels, value);
}

// A label, after "{" or ",": text that is no UTF-8 loses what is none.
static void write_label(FILE *to, char before, const char *name, const char *value)
{
    const uint8_t *at = (const uint8_t *)value, *end = at + strlen(value);
    fprintf(to, "%c%s=\"", before, name);
    while (at < end) {
        const uint8_t *begin = at;
        int32_t code;
        if (av_utf8_decode(&code, &at, end, AV_UTF8_FLAG_ACCEPT_ALL) < 0)
            fputc('?', to);
        else if (code == '\n')
            fputs("\\n", to);
        else
            fprintf(to, "%s%.*s", code == '"' || code == '\\' ? "\\" : "", (int)(at - begin),
                    (const char *)begin);
    }
    fputc('"', to);
}

// ---- one function a group ----

static void write_info(FILE *to, const struct sluice_job *job)
{
    write_head(to, "sluice_build_info", "gauge", "What runs, always 1.");
    fputs("sluice_build_info", to);
    write_label(to, '{', "version", SLUICE_VERSION);
    fputs("} 1\n", to);
    write_head(to, "sluice_job_info", "gauge", "What the job does, always 1.");
    fputs("sluice_job_info", to);
    write_label(to, '{', "input", job->source->name);
    write_label(to, ',', "codec", job->input_codec);
    write_label(to, ',', "backend", job_backend(job)->name);
    fputs("} 1\n", to);
}

static void write_plain(FILE *to, const struct sluice_progress *now)
{
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"sluice_frames_in_total", "counter", "Frames decoded.", (double)now->ledger.frames_in},
        {"sluice_frames_out_total", "counter", "Frames written.", (double)now->ledger.frames_out},
        {"sluice_frames_filled_total", "counter", "Frames shown while the source was lost.",
         (double)now->ledger.frames_filled},
        {"sluice_frames_damaged_total", "counter", "Frames decoded with errors.",
         (double)now->ledger.frames_damaged},
        {"sluice_frames_verified_total", "counter", "Frames recomputed and found equal.",
         (double)now->ledger.verified},
        {"sluice_frames_taken_over_total", "counter",
         "Frames filtered by the CPU since the GPU failed.", (double)now->ledger.frames_taken_over},
        {"sluice_packets_damaged_total", "counter",
         "Packets that came damaged or could not be decoded.", (double)now->ledger.packets_damaged},
        {"sluice_source_losses_total", "counter", "Times that the live source went away.",
         (double)now->ledger.losses},
        {"sluice_source_reconnects_total", "counter", "Times that the live source came back.",
         (double)now->ledger.reconnects},
        {"sluice_source_lost_seconds_total", "counter", "Time without the live source.",
         now->ledger.lost_seconds},
        {"sluice_source_lost", "gauge", "Whether the live source is lost now.", now->lost},
        {"sluice_media_seconds_total", "counter", "Time of video written.", now->media_seconds},
        {"sluice_ring_slots", "gauge", "Frames that can be in flight.", now->ring},
        {"sluice_ring_slots_used", "gauge", "Frames in flight now.", now->ring_used},
        {"sluice_ring_occupancy_ratio", "gauge", "Mean share of the ring's slots in use.",
         now->ring_occupancy},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        write_head(to, rows[k].name, rows[k].type, rows[k].help);
        write_sample(to, rows[k].name, "", rows[k].value);
    }
}

// A row of each output.
static void write_outputs(FILE *to, const struct sluice_job *job)
{
    static const struct {
        const char *name, *type, *help;
    } rows[] = {
        {"sluice_output_frames_total", "counter", "Frames written, by output."},
        {"sluice_output_dropped_total", "counter",
         "Frames left out because the output was too slow or not there."},
        {"sluice_output_missing_total", "counter",
         "Frames of those that the disk had no room for."},
        {"sluice_output_bytes_total", "counter", "Bytes written, by output."},
        {"sluice_output_connects_total", "counter", "Times that an address was reached."},
        {"sluice_output_failed", "gauge", "Whether the output has failed."},
    };
    struct sluice_output_figures now = {.size = sizeof now};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        write_head(to, rows[k].name, rows[k].type, rows[k].help);
        for (int output = 0; !sluice_job_output(job, output, &now); output++) {
            const int64_t values[] = {now.frames, now.dropped,  now.missing,
                                      now.bytes,  now.connects, now.failed};
            fputs(rows[k].name, to);
            write_label(to, '{', "output", now.name);
            fprintf(to, "} %lld\n", (long long)values[k]);
        }
    }
}

static void write_drops(FILE *to, const struct sluice_progress *now)
{
    static const char name[] = "sluice_frames_dropped_total";
    write_head(to, name, "counter", "Frames decoded and not written, by reason.");
    write_sample(to, name, "{reason=\"range\"}", (double)now->ledger.dropped_range);
    write_sample(to, name, "{reason=\"stop\"}", (double)now->ledger.dropped_stop);
    write_sample(to, name, "{reason=\"late\"}", (double)now->ledger.dropped_late);
    write_sample(to, name, "{reason=\"clock\"}", (double)now->ledger.dropped_clock);
    write_sample(to, name, "{reason=\"disk\"}", (double)now->ledger.dropped_disk);
}

static void write_busy(FILE *to, const struct sluice_progress *now)
{
    static const char name[] = "sluice_part_busy_seconds_total";
    static const char *const labels[SLUICE_PART_COUNT] = {
        [SLUICE_PART_DEMUX] = "{part=\"demux\"}",       [SLUICE_PART_DECODE] = "{part=\"decode\"}",
        [SLUICE_PART_UPLOAD] = "{part=\"upload\"}",     [SLUICE_PART_FILTER] = "{part=\"filter\"}",
        [SLUICE_PART_DOWNLOAD] = "{part=\"download\"}", [SLUICE_PART_ENCODE] = "{part=\"encode\"}",
        [SLUICE_PART_MUX] = "{part=\"mux\"}",
    };
    write_head(to, name, "counter", "Time that each part was working.");
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        write_sample(to, name, labels[part], now->busy_seconds[part]);
}

static void write_latency(FILE *to, const struct sluice_latency *latency)
{
    static const char name[] = "sluice_latency_seconds", bucket[] = "sluice_latency_seconds_bucket";
    char label[32];
    write_head(to, name, "histogram", "From a packet's arrival to the writing of its frame.");
    for (int k = 0; k < latency->limits; k++) {
        snprintf(label, sizeof label, "{le=\"%g\"}", latency->limit[k]);
        write_sample(to, bucket, label, (double)latency->within[k]);
    }
    write_sample(to, bucket, "{le=\"+Inf\"}", (double)latency->frames);
    write_sample(to, "sluice_latency_seconds_sum", "", latency->seconds);
    write_sample(to, "sluice_latency_seconds_count", "", (double)latency->frames);
}

// ---- the process ----

// When it began: /proc says it in ticks since the machine did.
static double process_start(void)
{
    char text[1024] = "";
    unsigned long long ticks = 0;
    struct timespec now, up;
    FILE *file = fopen("/proc/self/stat", "re");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[got] = 0;
    const char *at = strrchr(text, ')'); // of a name that may hold anything
    if (!at ||
        sscanf(at, ") %*c%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s %llu", &ticks) != 1)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    double age = (double)up.tv_sec + (double)up.tv_nsec * 1e-9 -
                 (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - age;
}

static void read_memory(double *virtual_bytes, double *resident_bytes)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lu %lu", &size, &resident) != 2)
        size = resident = 0;
    if (file)
        fclose(file);
    double page = (double)sysconf(_SC_PAGESIZE);
    *virtual_bytes = (double)size * page;
    *resident_bytes = (double)resident * page;
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -3; // ".", "..", and the folder's own
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count > 0 ? count : 0;
}

static void write_process(FILE *to, double start)
{
    double virtual_bytes, resident_bytes;
    struct rlimit most = {0};
    read_memory(&virtual_bytes, &resident_bytes);
    getrlimit(RLIMIT_NOFILE, &most);
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"process_cpu_seconds_total", "counter", "Processor time of all threads.",
         (double)meter_process_ns() * 1e-9},
        {"process_resident_memory_bytes", "gauge", "Memory in use.", resident_bytes},
        {"process_virtual_memory_bytes", "gauge", "Address space.", virtual_bytes},
        {"process_open_fds", "gauge", "Open file descriptors.", count_descriptors()},
        {"process_max_fds", "gauge", "As many may be open.", (double)most.rlim_cur},
        {"process_start_time_seconds", "gauge", "When it began, since 1970.", start},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        write_head(to, rows[k].name, rows[k].type, rows[k].help);
        write_sample(to, rows[k].name, "", rows[k].value);
    }
}

// ---- the page ----

static void answer_job(const struct metrics *metrics, const struct sluice_job *job,
                       struct http_answer *answer)
{
    struct sluice_progress now = {.size = sizeof now};
    answer->type = "text/plain; version=0.0.4; charset=utf-8";
    FILE *to = open_memstream(&answer->text, &answer->size);
    if (!to)
        return;
    sluice_job_progress(job, &now);
    write_info(to, job);
    write_plain(to, &now);
    write_drops(to, &now);
    write_outputs(to, job);
    write_busy(to, &now);
    write_latency(to, &now.latency);
    write_process(to, metrics->process_start);
    fclose(to);
}

static void answer_metrics(void *metrics_, const struct http_call *call, struct http_answer *answer)
{
    struct metrics *metrics = metrics_;
    (void)call;
    monitor_lock(&metrics->lock);
    if (metrics->job)
        answer_job(metrics, metrics->job, answer);
    else
        http_say(answer, 503, "text/plain", "The input is still being opened.\n");
    monitor_unlock(&metrics->lock);
}

static void answer_index(void *metrics, const struct http_call *call, struct http_answer *answer)
{
    (void)metrics, (void)call;
    http_say(answer, 200, "text/html; charset=utf-8",
             "<!DOCTYPE html>\n<html lang=\"en\">\n<title>sluice</title>\n"
             "<p>sluice is at work: <a href=\"metrics\">metrics</a></p>\n</html>\n");
}

static const struct http_page pages[] = {
    {"GET", "/metrics", answer_metrics}, {"GET", "/", answer_index}, {NULL}};

enum status metrics_create(const char *address, const struct log *log, struct metrics **metrics)
{
    struct metrics *made = *metrics = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    const struct http_server server = {address, "metrics", pages, made};
    made->process_start = process_start();
    monitor_init(&made->lock);
    enum status status = http_create(&server, log, &made->http);
    if (status)
        metrics_destroy(metrics);
    else
        log_print(log, LOG_INFO, "metrics are at %s/metrics", http_url(made->http));
    return status;
}

void metrics_watch(struct metrics *metrics, const struct sluice_job *job)
{
    if (!metrics)
        return;
    monitor_lock(&metrics->lock);
    metrics->job = job;
    monitor_unlock(&metrics->lock);
}

void metrics_destroy(struct metrics **metrics)
{
    if (!*metrics)
        return;
    http_destroy(&(*metrics)->http);
    monitor_finish(&(*metrics)->lock);
    free(*metrics);
    *metrics = NULL;
}
