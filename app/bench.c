// `sluice bench`: the library's figures as a table, as JSON, as a chart.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"

enum { ROWS_MOST = 256 };

struct row {
    char group[16], name[96], size[16], unit[16], reference[32], device[96];
    double median, low, high, ratio;
};

struct table {
    struct row row[ROWS_MOST];
    int rows;
    bool quiet;
};

static void print_row(const struct row *row)
{
    printf("%-44.44s %-6s %9.4g %-6s (%.4g .. %.4g)", row->name, row->size, row->median, row->unit,
           row->low, row->high);
    if (row->ratio > 0)
        printf("  %.3g of %s", row->ratio, row->reference);
    printf("\n");
    fflush(stdout);
}

static void add_row(void *opaque, const struct sluice_bench_row *from)
{
    static const char *const titles[][2] = {
        {"link", "between host and GPU"},
        {"resident", "frames that stay on the GPU, gray"},
        {"memory", "frames from host memory to host memory, gray"},
        {"file", "the whole way of a file"},
    };
    struct table *table = opaque;
    if (table->rows == ROWS_MOST)
        return;
    struct row *row = &table->row[table->rows++];
    snprintf(row->group, sizeof row->group, "%s", from->group);
    snprintf(row->name, sizeof row->name, "%s", from->name);
    snprintf(row->size, sizeof row->size, "%s", from->size ? from->size : "");
    snprintf(row->unit, sizeof row->unit, "%s", from->unit);
    snprintf(row->reference, sizeof row->reference, "%s",
             from->reference_name ? from->reference_name : "");
    snprintf(row->device, sizeof row->device, "%s", from->device);
    row->median = from->median;
    row->low = from->low;
    row->high = from->high;
    row->ratio = from->ratio;
    if (table->quiet)
        return;
    if (table->rows == 1)
        printf("on %s\n\n", row->device);
    bool first = table->rows == 1 || strcmp(row->group, row[-1].group) != 0;
    for (size_t k = 0; first && k < sizeof titles / sizeof *titles; k++)
        if (!strcmp(titles[k][0], row->group))
            printf("%s%s\n", table->rows == 1 ? "" : "\n", titles[k][1]);
    print_row(row);
}

// ---- in words ----

static const struct row *find_row(const struct table *table, const char *group, const char *name)
{
    for (int k = 0; k < table->rows; k++)
        if (!strcmp(table->row[k].group, group) && !strcmp(table->row[k].name, name))
            return &table->row[k];
    return NULL;
}

static void print_verdict(const struct table *table)
{
    const struct row *decode = find_row(table, "file", "decode");
    const struct row *filter = find_row(table, "file", "decode, filter");
    const struct row *encode = find_row(table, "file", "decode, encode");
    const struct row *all = find_row(table, "file", "decode, filter, encode");
    if (!decode || !filter || !encode || !all)
        return;
    printf("\nFiltering costs %.0f %% of the decoder's pace",
           100 * (1 - filter->median / decode->median));
    if (all->median >= encode->median)
        printf(" and nothing beside the encoder");
    else
        printf(" and %.0f %% beside the encoder", 100 * (1 - all->median / encode->median));
    printf("; %s sets the pace.\n",
           encode->median < 0.8 * decode->median ? "encoding" : "decoding");
}

// ---- for machines ----

static bool write_rows(const struct table *table, const struct settings *settings)
{
    json_t *rows = json_array();
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s}", "device",
                            row->device, "group", row->group, "name", row->name, "size", row->size,
                            "unit", row->unit, "median", row->median, "low", row->low, "high",
                            row->high, "ratio", row->ratio, "ratio_to", row->reference));
    }
    json_t *root = json_pack("{s:s, s:o}", "version", sluice_version(), "rows", rows);
    bool written = root && dump_json(root, settings);
    json_decref(root);
    return written;
}

// ---- the chart ----

// One bar a row, each group on a scale of its own; the line shows the slowest to the fastest.
static bool draw_chart(const struct table *table, const struct settings *settings)
{
    enum { WIDTH = 900, LEFT = 380, LENGTH = 400, LINE = 20 };
    struct svg svg;
    if (!svg_open(&svg, WIDTH, (table->rows + 1) * LINE))
        return false;
    FILE *to = svg.to;
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        double most = 0;
        int y = k * LINE + LINE / 2;
        for (int other = 0; other < table->rows; other++)
            if (!strcmp(table->row[other].group, row->group) && table->row[other].high > most)
                most = table->row[other].high;
        double scale = most > 0 ? LENGTH / most : 0;
        fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s: ", LEFT - 8, y + 13,
                row->group);
        svg_escaped(to, row->name);
        fprintf(to,
                " %s</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#3b7dbd\"/>"
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"black\"/>"
                "<text x=\"%.1f\" y=\"%d\">%.4g %s</text>\n",
                row->size, LEFT, y + 2, row->median * scale, LINE - 4, LEFT + row->low * scale,
                LEFT + row->high * scale, y + LINE / 2, y + LINE / 2, LEFT + row->high * scale + 6,
                y + 13, row->median, row->unit);
    }
    return svg_close(&svg, settings);
}

int bench_command(struct settings *settings)
{
    if (settings->ladder)
        return ladder_command(settings);
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return EXIT_OTHER;
    table->quiet = settings->quiet || (settings->json && !strcmp(settings->json, "-"));
    int code = exit_code_of(sluice_bench(&settings->config, settings->quick, add_row, table));
    if (code == EXIT_WHOLE && !table->quiet)
        print_verdict(table);
    if (code == EXIT_WHOLE && settings->json && !write_rows(table, settings))
        code = EXIT_OUTPUT;
    if (code == EXIT_WHOLE && settings->chart && !draw_chart(table, settings))
        code = EXIT_OUTPUT;
    free(table);
    return code;
}
