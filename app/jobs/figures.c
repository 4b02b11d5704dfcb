#include "app/jobs/figures.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ---- texts ----

const char *figures_text(struct figures *figures, const char *text)
{
    char **list = text ? realloc(figures->text, (size_t)(figures->texts + 1) * sizeof *list) : NULL;
    if (!list)
        return NULL;
    figures->text = list;
    list[figures->texts] = strdup(text);
    return list[figures->texts++];
}

// Take what is not counted from a job's summary.
static void take_names(struct figures *figures, const struct sluice_summary *from)
{
    struct sluice_summary *to = &figures->summary;
    const struct {
        const char **to, *from;
    } names[] = {{&to->input, from->input},
                 {&to->input_codec, from->input_codec},
                 {&to->input_format, from->input_format},
                 {&to->input_tls, from->input_tls},
                 {&to->output, from->output},
                 {&to->encoder, from->encoder},
                 {&to->output_format, from->output_format},
                 {&to->backend, from->backend},
                 {&to->device, from->device},
                 {&to->decoder, from->decoder},
                 {&to->verdict, from->verdict}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        *names[k].to = figures_text(figures, names[k].from);
    to->latency = from->latency;
    to->simulated = from->simulated;
    to->width = from->width;
    to->height = from->height;
    to->ring = from->ring;
    to->bottleneck = from->bottleneck;
}

// ---- sums ----

void figures_add_ledger(struct sluice_ledger *to, const struct sluice_ledger *from)
{
    to->frames_in += from->frames_in;
    to->frames_filled += from->frames_filled;
    to->frames_out += from->frames_out;
    to->dropped_range += from->dropped_range;
    to->dropped_stop += from->dropped_stop;
    to->dropped_late += from->dropped_late;
    to->dropped_clock += from->dropped_clock;
    to->dropped_disk += from->dropped_disk;
    to->frames_damaged += from->frames_damaged;
    to->packets_damaged += from->packets_damaged;
    to->packets_skipped += from->packets_skipped;
    to->verified += from->verified;
    to->losses += from->losses;
    to->reconnects += from->reconnects;
    to->lost_seconds += from->lost_seconds;
    to->frames_taken_over += from->frames_taken_over;
}

// A mean, into which a value of weight `seconds` comes.
static double mean(double before, double weight, double value, double seconds)
{
    return weight + seconds > 0 ? (before * weight + value * seconds) / (weight + seconds) : value;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_summary(struct figures *figures, const struct sluice_summary *more)
{
    struct sluice_summary *to = &figures->summary;
    double weight = figures->job_seconds, seconds = more->seconds;
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        to->busy[part] = mean(to->busy[part], weight, more->busy[part], seconds);
    to->cores_busy = mean(to->cores_busy, weight, more->cores_busy, seconds);
    to->ring_occupancy = mean(to->ring_occupancy, weight, more->ring_occupancy, seconds);
    figures_add_ledger(&to->ledger, &more->ledger);
    to->stopped |= more->stopped;
    to->truncated |= more->truncated;
    to->seconds += seconds;
    to->media_seconds += more->media_seconds;
    to->bytes_out += more->bytes_out;
    figures->job_seconds += seconds;
    if (more->max_memory && (!to->max_memory || more->max_memory < to->max_memory))
        to->max_memory = more->max_memory;
    to->need_mem = larger(to->need_mem, more->need_mem);
    to->need_vram = larger(to->need_vram, more->need_vram);
    to->mem = larger(to->mem, more->mem);
    to->vram = larger(to->vram, more->vram);
    if (!to->width) // of a part without frames little is known
        take_names(figures, more);
}

// ---- outputs and reports ----

static void add_outputs(struct figures *figures, const struct sluice_job *job)
{
    struct sluice_output_figures more = {.size = sizeof more};
    for (int k = 0; k < FIGURES_MAX_OUTPUTS && !sluice_job_output(job, k, &more); k++) {
        struct sluice_output_figures *to = &figures->output[k], before = *to;
        *to = more;
        to->name = figures_text(figures, more.name);
        to->encoder = figures_text(figures, more.encoder ? more.encoder : before.encoder);
        to->container = figures_text(figures, more.container);
        to->frames += before.frames;
        to->dropped += before.dropped;
        to->missing += before.missing;
        to->unwatched += before.unwatched;
        to->bytes += before.bytes;
        to->files += before.files;
        to->connects += before.connects;
        to->failed |= before.failed;
        figures->outputs = k + 1 > figures->outputs ? k + 1 : figures->outputs;
    }
}

static void add_figure(struct figures *figures, struct figures_sum *to,
                       const struct sluice_figure *more)
{
    if (!to->sum) {
        to->name = figures_text(figures, more->name);
        to->sum = calloc((size_t)more->values + 1, sizeof *to->sum);
        to->values = to->sum ? more->values : 0;
    }
    for (int k = 0; k < to->values && k < more->values; k++)
        to->sum[k] += more->sum[k];
    to->frames += more->frames;
}

// False without memory.
static bool begin_record(struct figures *figures, const struct sluice_record *about)
{
    size_t count = (size_t)figures->records + 1;
    struct figures_record *list = realloc(figures->record, count * sizeof *list);
    if (!list)
        return false;
    figures->record = list;
    struct figures_record *made = &list[figures->records];
    *made =
        (struct figures_record){.about = {.stage = figures_text(figures, about->stage),
                                          .file = figures_text(figures, about->file),
                                          .figures = about->figures},
                                .figure = calloc((size_t)about->figures + 1, sizeof *made->figure)};
    figures->records += made->figure != NULL;
    return made->figure;
}

static void add_records(struct figures *figures, const struct sluice_job *job)
{
    struct sluice_record more = {.size = sizeof more};
    struct sluice_figure figure = {.size = sizeof figure};
    for (int k = 0; !sluice_job_record(job, k, &more); k++) {
        if (k == figures->records && !begin_record(figures, &more))
            return;
        struct figures_record *to = &figures->record[k];
        to->about.frames += more.frames;
        to->about.dropped += more.dropped;
        to->about.bytes += more.bytes;
        for (int n = 0; n < to->about.figures && !sluice_job_figure(job, k, n, &figure); n++)
            add_figure(figures, &to->figure[n], &figure);
    }
}

// ---- all of it ----

void figures_add(struct figures *figures, const struct sluice_job *job)
{
    assert(figures && job);
    struct sluice_summary more = {.size = sizeof more};
    sluice_job_summary(job, &more);
    add_summary(figures, &more);
    add_outputs(figures, job);
    add_records(figures, job);
}

void figures_free(struct figures *figures)
{
    for (int k = 0; k < figures->records; k++) {
        for (int n = 0; n < figures->record[k].about.figures; n++)
            free(figures->record[k].figure[n].sum);
        free(figures->record[k].figure);
    }
    free(figures->record);
    for (int k = 0; k < figures->texts; k++)
        free(figures->text[k]);
    free(figures->text);
    *figures = (struct figures){0};
}

bool figures_are_damaged(const struct figures *figures)
{
    const struct sluice_ledger *ledger = &figures->summary.ledger;
    bool missing = false; // a disk had no room for what an output should hold
    for (int k = 0; k < figures->outputs; k++)
        missing |= figures->output[k].missing > 0;
    return missing || figures->summary.truncated || ledger->frames_damaged ||
           ledger->packets_damaged || ledger->dropped_clock || ledger->dropped_late ||
           ledger->packets_skipped;
}

int64_t figures_frames(const struct figures *figures)
{
    int64_t found = figures->parts ? figures->parts->frames_found : 0;
    return figures->summary.ledger.frames_out - found;
}

void figures_of_job(const void *job, struct figures_now *now)
{
    *now = (struct figures_now){.progress = {.size = sizeof now->progress}};
    sluice_job_progress(job, &now->progress);
}
