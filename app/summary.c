// The closing summary, for people and for machines.
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/jobs/figures.h"

static const char *const part_names[SLUICE_PART_COUNT] = {"demux",    "decode", "upload", "filter",
                                                          "download", "encode", "mux"};

static void print_damage(const struct sluice_summary *summary, FILE *to)
{
    if (summary->ledger.packets_damaged)
        fprintf(to, "damaged   %lld packet%s came damaged or could not be decoded\n",
                (long long)summary->ledger.packets_damaged,
                summary->ledger.packets_damaged == 1 ? "" : "s");
    if (summary->ledger.frames_damaged)
        fprintf(to, "damaged   %lld frame%s decoded with errors, kept as the decoder left %s\n",
                (long long)summary->ledger.frames_damaged,
                summary->ledger.frames_damaged == 1 ? "" : "s",
                summary->ledger.frames_damaged == 1 ? "it" : "them");
    if (summary->truncated)
        fprintf(to, "damaged   %s %s\n", summary->input,
                summary->ledger.losses ? "was lost and did not come back"
                                       : "ends before its own header or index says so");
    if (summary->ledger.packets_skipped)
        fprintf(to, "skipped   %lld packets, because decoding was too slow\n",
                (long long)summary->ledger.packets_skipped);
    if (summary->ledger.frames_taken_over)
        fprintf(to, "GPU       left; %lld frame%s filtered by the CPU\n",
                (long long)summary->ledger.frames_taken_over,
                summary->ledger.frames_taken_over == 1 ? " was" : "s were");
    if (summary->latency.quantile[0] > 0)
        fprintf(to, "latency   %.1f ms for half of the frames, %.1f for 95 %%, %.1f for 99 %%\n",
                1e3 * summary->latency.quantile[0], 1e3 * summary->latency.quantile[1],
                1e3 * summary->latency.quantile[2]);
    if (summary->ledger.losses)
        fprintf(to, "live      lost %lld time%s, for %.1f s in all; back %lld time%s\n",
                (long long)summary->ledger.losses, summary->ledger.losses == 1 ? "" : "s",
                summary->ledger.lost_seconds, (long long)summary->ledger.reconnects,
                summary->ledger.reconnects == 1 ? "" : "s");
}

static void print_simulated(const struct sluice_simulated *simulated, FILE *to)
{
    const struct {
        const char *name;
        int64_t count;
    } faults[] = {{"lost packets", simulated->packets_lost},
                  {"corrupted packets", simulated->packets_corrupted},
                  {"stalls", simulated->stalls},
                  {"closes", simulated->closes},
                  {"ts-jumps", simulated->ts_jumps},
                  {"res-changes", simulated->res_changes}};
    const char *before = "simulated ";
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        if (faults[k].count) {
            fprintf(to, "%s%s %lld", before, faults[k].name, (long long)faults[k].count);
            before = ", ";
        }
    if (*before == ',')
        fputc('\n', to);
}

// A line for each of several outputs, and for a single one that is not a plain file.
static void print_outputs(const struct figures *figures, FILE *to)
{
    for (int k = 0; k < figures->outputs; k++) {
        const struct sluice_output_figures *output = &figures->output[k];
        bool plain = !output->connects && !output->files && !output->dropped && !output->failed;
        if (figures->outputs == 1 && plain)
            continue;
        fprintf(to, "%s %s  %lld frame%s", output->tee ? "tee      " : "output   ", output->name,
                (long long)output->frames, output->frames == 1 ? "" : "s");
        if (output->dropped)
            fprintf(to, ", %lld left out", (long long)output->dropped);
        if (output->missing)
            fprintf(to, ", %lld of them for want of room", (long long)output->missing);
        if (output->unwatched)
            fprintf(to, ", %lld not made as nobody watched", (long long)output->unwatched);
        if (output->files)
            fprintf(to, ", %lld segment%s", (long long)output->files,
                    output->files == 1 ? "" : "s");
        if (output->connects)
            fprintf(to, ", reached %lld time%s", (long long)output->connects,
                    output->connects == 1 ? "" : "s");
        fprintf(to, "%s\n", output->failed ? ", failed" : "");
    }
}

// Report files that lack frames.
static void print_records(const struct figures *figures, FILE *to)
{
    for (int k = 0; k < figures->records; k++) {
        const struct sluice_record *record = &figures->record[k].about;
        if (record->dropped)
            fprintf(to, "record    %s  %lld frames, %lld left out\n", record->file,
                    (long long)record->frames, (long long)record->dropped);
    }
}

static void print_parts(const struct figures_parts *parts, FILE *to)
{
    if (!parts)
        return;
    fprintf(to, "parts     %d, up to %d at once", parts->parts, parts->jobs);
    if (parts->found)
        fprintf(to, "; %d of them with %lld frames from an earlier run", parts->found,
                (long long)parts->frames_found);
    if (parts->again)
        fprintf(to, "; %d made again in one thread, as the input is damaged there", parts->again);
    if (parts->join_seconds > 0)
        fprintf(to, "; joined in %.2f s", parts->join_seconds);
    fputc('\n', to);
    if (parts->choice)
        fprintf(to, "jobs      %s\n", parts->choice);
}

static void print_ledger(const struct sluice_summary *summary, FILE *to)
{
    fprintf(to, "frames    %lld in", (long long)summary->ledger.frames_in);
    if (summary->ledger.frames_filled)
        fprintf(to, " + %lld filled in", (long long)summary->ledger.frames_filled);
    fprintf(to, " = %lld out", (long long)summary->ledger.frames_out);
    if (summary->ledger.dropped_range)
        fprintf(to, " + %lld out of range", (long long)summary->ledger.dropped_range);
    if (summary->ledger.dropped_stop)
        fprintf(to, " + %lld dropped by the stop", (long long)summary->ledger.dropped_stop);
    if (summary->ledger.dropped_late)
        fprintf(to, " + %lld too late", (long long)summary->ledger.dropped_late);
    if (summary->ledger.dropped_clock)
        fprintf(to, " + %lld too close for the output's clock",
                (long long)summary->ledger.dropped_clock);
    if (summary->ledger.dropped_disk)
        fprintf(to, " + %lld that the disk had no room for",
                (long long)summary->ledger.dropped_disk);
    if (summary->ledger.verified)
        fprintf(to, "; %lld verified", (long long)summary->ledger.verified);
    fputc('\n', to);
}

static void print_memory(const struct sluice_summary *summary, FILE *to)
{
    if (!summary->need_mem)
        return;
    fprintf(to, "memory    %lld MiB planned for, of %lld MiB", (long long)(summary->need_mem >> 20),
            (long long)(summary->mem >> 20));
    if (summary->need_vram)
        fprintf(to, "; of the GPU's %lld MiB, of %lld MiB", (long long)(summary->need_vram >> 20),
                (long long)(summary->vram >> 20));
    fputc('\n', to);
}

static void print_stop(const struct sluice_summary *summary, bool is_part, FILE *to)
{
    fprintf(to, "stopped   before the end of %s, as asked%s\n", summary->input,
            is_part                      ? "; the part is not kept"
            : summary->ledger.frames_out ? "; the output ends with its last frame"
                                         : "");
}

void print_summary(const struct figures *figures, const struct settings *settings, FILE *to)
{
    assert(figures && to);
    const struct sluice_summary *summary = &figures->summary;
    double seconds = summary->seconds > 0 ? summary->seconds : 1e-9;
    fprintf(to, "%s  %lld frame%s", summary->output, (long long)summary->ledger.frames_out,
            summary->ledger.frames_out == 1 ? "" : "s");
    if (summary->width)
        fprintf(to, " of %dx%d", summary->width, summary->height);
    fprintf(to, " in %.2f s: %.1f fps, %.2fx", summary->seconds,
            (double)figures_frames(figures) / seconds, summary->media_seconds / seconds);
    if (summary->bytes_out)
        fprintf(to, ", %.1f MB", (double)summary->bytes_out / 1e6);
    fprintf(to, "\npath      %s %s -> %s (%s) -> %s %s\n", summary->decoder, summary->input_format,
            summary->backend, summary->device, summary->encoder ? summary->encoder : "no encoder",
            summary->output_format);
    bool busy = false;
    fprintf(to, "busy     ");
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        if (summary->busy[part] >= 0.005) {
            fprintf(to, " %s %.0f %%", part_names[part], 100 * summary->busy[part]);
            busy = true;
        }
    fprintf(to, "%s", busy ? "" : " no part for 1 %");
    fprintf(to, "; processor %.0f %%; %.1f of up to %d frames in flight\n",
            100 * summary->cores_busy, summary->ring * summary->ring_occupancy, summary->ring);
    print_memory(summary, to);
    if (summary->seconds >= 1) // shorter runs have no meaningful pace
        fprintf(to, "verdict   %s\n", summary->verdict);
    if (summary->stopped)
        print_stop(summary, settings->config.part > 0, to);
    print_ledger(summary, to);
    print_parts(figures->parts, to);
    print_outputs(figures, to);
    print_records(figures, to);
    print_damage(summary, to);
    print_simulated(&summary->simulated, to);
}

// Text that is no UTF-8, as file names may be, keeps its ASCII; other bytes become "\\xff".
static json_t *escaped(const char *text)
{
    char *copy = malloc(4 * strlen(text) + 1), *to = copy;
    if (!copy)
        return NULL;
    for (; *text; text++)
        to += sprintf(to, (unsigned char)*text < 0x80 ? "%c" : "\\x%02x", (unsigned char)*text);
    *to = 0;
    json_t *value = json_string(copy);
    free(copy);
    return value;
}

static json_t *text_or_null(const char *text)
{
    json_t *value = text ? json_string(text) : json_null();
    return value ? value : escaped(text);
}

static json_t *public_chain(const char *chain)
{
    char *shown = sluice_public_chain(chain ? chain : "default");
    json_t *value = shown ? text_or_null(shown) : NULL;
    free(shown);
    return value;
}

static json_t *public_name(const char *name)
{
    char shown[4300];
    if (!name)
        return json_null();
    sluice_public_name(name, shown, sizeof shown);
    return text_or_null(shown);
}

// ---- JSON: one function a section; a job that never began has no more than its names ----

static json_t *input_json(const struct settings *settings, const struct sluice_summary *summary)
{
    if (!summary)
        return json_pack("{s:o}", "name", public_name(settings->config.input));
    return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o}", "name", text_or_null(summary->input),
                     "codec", text_or_null(summary->input_codec), "pixel_format",
                     text_or_null(summary->input_format), "width", summary->width, "height",
                     summary->height, "tls", text_or_null(summary->input_tls));
}

static json_t *output_json(const struct settings *settings, const struct sluice_summary *summary)
{
    if (!summary)
        return json_pack("{s:o}", "name", public_name(settings->config.output.name));
    return json_pack("{s:o, s:o, s:o, s:I}", "name", text_or_null(summary->output), "encoder",
                     text_or_null(summary->encoder), "pixel_format",
                     text_or_null(summary->output_format), "bytes", (json_int_t)summary->bytes_out);
}

static json_t *outputs_json(const struct figures *figures)
{
    json_t *list = json_array();
    for (int k = 0; k < figures->outputs; k++) {
        const struct sluice_output_figures *output = &figures->output[k];
        array_add(&list,
                  json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "name",
                            text_or_null(output->name), "encoder", text_or_null(output->encoder),
                            "container", text_or_null(output->container), "frames",
                            (json_int_t)output->frames, "dropped", (json_int_t)output->dropped,
                            "unwatched", (json_int_t)output->unwatched, "missing",
                            (json_int_t)output->missing, "bytes", (json_int_t)output->bytes,
                            "files", (json_int_t)output->files, "connects",
                            (json_int_t)output->connects, "failed", output->failed, "tee",
                            output->tee));
    }
    return list;
}

static json_t *figures_json(const struct figures_record *record)
{
    json_t *all = json_object();
    for (int k = 0; k < record->about.figures; k++) {
        const struct figures_sum *figure = &record->figure[k];
        json_t *values = json_array();
        for (int n = 0; n < figure->values; n++)
            array_add(&values, json_real(figure->sum[n] / (double)figure->frames));
        object_add(&all, figure->name ? figure->name : "", values);
    }
    return all;
}

static json_t *records_json(const struct figures *figures)
{
    json_t *list = json_array();
    for (int k = 0; k < figures->records; k++) {
        const struct sluice_record *record = &figures->record[k].about;
        array_add(&list, json_pack("{s:o, s:o, s:I, s:I, s:I, s:o}", "stage",
                                   text_or_null(record->stage), "file", text_or_null(record->file),
                                   "frames", (json_int_t)record->frames, "dropped",
                                   (json_int_t)record->dropped, "bytes", (json_int_t)record->bytes,
                                   "figures", figures_json(&figures->record[k])));
    }
    return list;
}

static json_t *parts_json(const struct figures_parts *parts)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:o}", "count", parts->parts, "jobs",
                     parts->jobs, "found", parts->found, "again", parts->again, "frames_found",
                     (json_int_t)parts->frames_found, "made_s", parts->made_seconds, "joined_s",
                     parts->join_seconds, "idle", parts->idle, "choice",
                     text_or_null(parts->choice));
}

static json_t *run_json(const struct sluice_summary *summary)
{
    return json_pack("{s:o, s:o, s:o, s:i, s:I, s:I, s:I, s:I, s:I}", "backend",
                     text_or_null(summary->backend), "device", text_or_null(summary->device),
                     "decoder", text_or_null(summary->decoder), "ring", summary->ring, "max_memory",
                     (json_int_t)summary->max_memory, "need_mem", (json_int_t)summary->need_mem,
                     "mem", (json_int_t)summary->mem, "need_vram", (json_int_t)summary->need_vram,
                     "vram", (json_int_t)summary->vram);
}

static json_t *frames_json(const struct sluice_summary *summary)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:f, s:I}",
        "filled", (json_int_t)summary->ledger.frames_filled, "in",
        (json_int_t)summary->ledger.frames_in, "out", (json_int_t)summary->ledger.frames_out,
        "dropped_range", (json_int_t)summary->ledger.dropped_range, "dropped_stop",
        (json_int_t)summary->ledger.dropped_stop, "dropped_clock",
        (json_int_t)summary->ledger.dropped_clock, "dropped_late",
        (json_int_t)summary->ledger.dropped_late, "dropped_disk",
        (json_int_t)summary->ledger.dropped_disk, "damaged_frames",
        (json_int_t)summary->ledger.frames_damaged, "damaged_packets",
        (json_int_t)summary->ledger.packets_damaged, "skipped_packets",
        (json_int_t)summary->ledger.packets_skipped, "truncated", summary->truncated, "verified",
        (json_int_t)summary->ledger.verified, "losses", (json_int_t)summary->ledger.losses,
        "reconnects", (json_int_t)summary->ledger.reconnects, "lost_s",
        summary->ledger.lost_seconds, "taken_over", (json_int_t)summary->ledger.frames_taken_over);
}

static json_t *simulated_json(const struct sluice_simulated *simulated)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I}", "packets_lost", (json_int_t)simulated->packets_lost,
        "packets_corrupted", (json_int_t)simulated->packets_corrupted, "stalls",
        (json_int_t)simulated->stalls, "closes", (json_int_t)simulated->closes, "ts_jumps",
        (json_int_t)simulated->ts_jumps, "res_changes", (json_int_t)simulated->res_changes);
}

static json_t *time_json(const struct figures *figures)
{
    const struct sluice_summary *summary = &figures->summary;
    double rate = summary->seconds > 0 ? (double)figures_frames(figures) / summary->seconds : 0;
    return json_pack("{s:f, s:f, s:f, s:{s:f, s:f, s:f}}", "wall_s", summary->seconds, "media_s",
                     summary->media_seconds, "fps", rate, "latency_s", "p50",
                     summary->latency.quantile[0], "p95", summary->latency.quantile[1], "p99",
                     summary->latency.quantile[2]);
}

static json_t *pace_json(const struct sluice_summary *summary)
{
    json_t *busy = json_object();
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        object_add(&busy, part_names[part], json_real(summary->busy[part]));
    return json_pack("{s:o, s:f, s:f, s:s, s:o}", "busy", busy, "cores_busy", summary->cores_busy,
                     "ring_occupancy", summary->ring_occupancy, "bottleneck",
                     part_names[summary->bottleneck], "verdict", text_or_null(summary->verdict));
}

bool write_file(const struct settings *settings, const char *file, const char *text, size_t size)
{
    assert(file && (text || !size));
    struct sluice_file *to;
    fflush(stdout); // which it may be
    if (sluice_file_create(&settings->config, file, &to))
        return false;
    sluice_file_write(to, text, size);
    return !sluice_file_commit(&to);
}

bool dump_json(json_t **root, const struct settings *settings)
{
    char *text = *root ? json_dumps(*root, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    size_t size = text ? strlen(text) : 0;
    if (text)
        text[size++] = '\n'; // in the place of the end
    else
        fprintf(stderr, "sluice: out of memory for %s\n", settings->json);
    bool written = text && write_file(settings, settings->json, text, size);
    free(text);
    json_decref(*root);
    *root = NULL;
    return written;
}

bool write_json(const struct settings *settings, const struct figures *figures,
                enum sluice_status status, int exit_code)
{
    assert(settings->json);
    const struct sluice_summary *summary = figures ? &figures->summary : NULL;
    bool failed = !status && exit_code == EXIT_OTHER && settings->strict;
    const char *error = failed && !*settings->error ? strict_failure : settings->error;
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:o}", "version", sluice_version(), "status",
        sluice_status_name(status), "exit", exit_code, "error", text_or_null(*error ? error : NULL),
        "input", input_json(settings, summary), "output", output_json(settings, summary), "chain",
        public_chain(settings->config.chain));
    if (summary) {
        object_add(&root, "outputs", outputs_json(figures));
        if (figures->records)
            object_add(&root, "records", records_json(figures));
        if (figures->parts)
            object_add(&root, "parts", parts_json(figures->parts));
        object_add(&root, "run", run_json(summary));
        object_add(&root, "frames", frames_json(summary));
        if (settings->config.simulate)
            object_add(&root, "simulated", simulated_json(&summary->simulated));
        object_add(&root, "time", time_json(figures));
        object_add(&root, "pace", pace_json(summary));
    }
    return dump_json(&root, settings);
}
