// The closing summary, for people and for machines.
#include <jansson.h>
#include <string.h>

#include "app/app.h"

static const char *const part_names[SLUICE_PARTS] = {"demux",    "decode", "upload", "filter",
                                                     "download", "encode", "mux"};

static void print_damage(const struct sluice_summary *summary, FILE *to)
{
    if (summary->packets_damaged)
        fprintf(to, "damaged   %lld packet%s could not be decoded\n",
                (long long)summary->packets_damaged, summary->packets_damaged == 1 ? "" : "s");
    if (summary->frames_damaged)
        fprintf(to, "damaged   %lld frame%s decoded with errors, kept as the decoder left them\n",
                (long long)summary->frames_damaged, summary->frames_damaged == 1 ? "" : "s");
    if (summary->truncated)
        fprintf(to, "damaged   %s ends before its own index says so\n", summary->input);
}

void print_summary(const struct sluice_summary *summary, FILE *to)
{
    double seconds = summary->seconds > 0 ? summary->seconds : 1e-9;
    fprintf(to, "%s  %lld frames of %dx%d in %.2f s: %.1f fps, %.2fx", summary->output,
            (long long)summary->frames_out, summary->width, summary->height, summary->seconds,
            (double)summary->frames_out / seconds, summary->media_seconds / seconds);
    if (summary->bytes_out)
        fprintf(to, ", %.1f MB", (double)summary->bytes_out / 1e6);
    fprintf(to, "\npath      %s %s -> %s (%s) -> %s %s\n", summary->decoder, summary->input_format,
            summary->backend, summary->device, summary->encoder ? summary->encoder : "no encoder",
            summary->output_format);
    fprintf(to, "busy     ");
    for (int part = 0; part < SLUICE_PARTS; part++)
        if (summary->busy[part] >= 0.005)
            fprintf(to, " %s %.0f %%", part_names[part], 100 * summary->busy[part]);
    fprintf(to, "; cores %.0f %%; ring of %d %.0f %% full\n", 100 * summary->cores_busy,
            summary->ring, 100 * summary->ring_occupancy);
    fprintf(to, "verdict   %s\n", summary->verdict);
    fprintf(to, "ledger    %lld in = %lld out", (long long)summary->frames_in,
            (long long)summary->frames_out);
    if (summary->dropped_range)
        fprintf(to, " + %lld out of range", (long long)summary->dropped_range);
    if (summary->dropped_stop)
        fprintf(to, " + %lld dropped by the stop", (long long)summary->dropped_stop);
    if (summary->verified)
        fprintf(to, "; %lld verified", (long long)summary->verified);
    fputc('\n', to);
    print_damage(summary, to);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

bool write_json(const struct sluice_summary *summary, enum sluice_status status, int exit_code,
                const char *chain, const char *file)
{
    json_t *busy = json_object();
    for (int part = 0; part < SLUICE_PARTS; part++)
        json_object_set_new(busy, part_names[part], json_real(summary->busy[part]));
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:{s:o, s:o, s:o, s:i, s:i}, s:{s:o, s:o, s:o, s:I}, s:o,"
        " s:{s:o, s:o, s:o, s:i}, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I},"
        " s:{s:f, s:f, s:f}, s:{s:o, s:f, s:f, s:s, s:o}}",
        "version", sluice_version(), "status", sluice_status_name(status), "exit", exit_code,
        "input", "name", text_or_null(summary->input), "codec", text_or_null(summary->input_codec),
        "pixel_format", text_or_null(summary->input_format), "width", summary->width, "height",
        summary->height, "output", "name", text_or_null(summary->output), "encoder",
        text_or_null(summary->encoder), "pixel_format", text_or_null(summary->output_format),
        "bytes", (json_int_t)summary->bytes_out, "chain", text_or_null(chain), "run", "backend",
        text_or_null(summary->backend), "device", text_or_null(summary->device), "decoder",
        text_or_null(summary->decoder), "ring", summary->ring, "frames", "in",
        (json_int_t)summary->frames_in, "out", (json_int_t)summary->frames_out, "dropped_range",
        (json_int_t)summary->dropped_range, "dropped_stop", (json_int_t)summary->dropped_stop,
        "damaged_frames", (json_int_t)summary->frames_damaged, "damaged_packets",
        (json_int_t)summary->packets_damaged, "truncated", summary->truncated, "verified",
        (json_int_t)summary->verified, "time", "wall_s", summary->seconds, "media_s",
        summary->media_seconds, "fps",
        summary->seconds > 0 ? (double)summary->frames_out / summary->seconds : 0.0, "pace", "busy",
        busy, "cores_busy", summary->cores_busy, "ring_occupancy", summary->ring_occupancy,
        "bottleneck", part_names[summary->bottleneck], "verdict", text_or_null(summary->verdict));
    int flags = JSON_INDENT(2) | JSON_PRESERVE_ORDER;
    bool written = root && (strcmp(file, "-") ? !json_dump_file(root, file, flags)
                                              : !json_dumpf(root, stdout, flags) && puts("") >= 0);
    json_decref(root);
    if (!written)
        fprintf(stderr, "sluice: the summary could not be written to %s\n", file);
    return written;
}
