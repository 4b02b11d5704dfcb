// `sluice bench`: the library's figures as a table, as JSON, as a chart.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "bench/bench.h"
#include "bench/machine.h"
#include "bench/svg.h"

enum { MAX_ROWS = 256 };

struct row {
    char group[16], name[512], size[16], unit[16], reference[32], device[96];
    double median, low, high, ratio;
};

struct table {
    struct row row[MAX_ROWS];
    int rows;
    bool quiet;
};

static const char *group_title(const char *group)
{
    static const char *const titles[][2] = {
        {"link", "Between host and GPU"},
        {"resident", "Frames that stay on the GPU, gray"},
        {"library", "The same through the library's interface, and small frames one by one"},
        {"memory", "Frames from host memory to host memory, gray"},
        {"file", "The whole way of a file"},
    };
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++)
        if (!strcmp(titles[k][0], group))
            return titles[k][1];
    return group;
}

static void print_row(const struct row *row)
{
    enum { COLUMN = 44 };
    bool fits = strlen(row->name) <= COLUMN;
    if (!fits)
        printf("%s\n", row->name);
    printf("%-*s %-6s %9.4g %-6s (%.4g .. %.4g)", COLUMN, fits ? row->name : "", row->size,
           row->median, row->unit, row->low, row->high);
    if (row->ratio > 0)
        printf("  %.3g of %s", row->ratio, row->reference);
    printf("\n");
    fflush(stdout);
}

static void add_row(void *opaque, const struct sluice_bench_row *from)
{
    struct table *table = opaque;
    if (table->rows == MAX_ROWS)
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
    char processor[128];
    machine_processor(processor, sizeof processor);
    if (table->rows == 1)
        printf("on %s; %s\n\n", processor, row->device);
    if (table->rows == 1 || strcmp(row->group, row[-1].group) != 0)
        printf("%s%s\n", table->rows == 1 ? "" : "\n", group_title(row->group));
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
    if (filter->median >= 0.995 * decode->median)
        printf("\nFiltering costs nothing beside the decoder");
    else
        printf("\nFiltering costs %.0f %% of the decoder's pace",
               100 * (1 - filter->median / decode->median));
    if (all->median >= 0.995 * encode->median)
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
        array_add(&rows,
                  json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s}", "device",
                            row->device, "group", row->group, "name", row->name, "size", row->size,
                            "unit", row->unit, "median", row->median, "low", row->low, "high",
                            row->high, "ratio", row->ratio, "ratio_to", row->reference));
    }
    char processor[128];
    machine_processor(processor, sizeof processor);
    json_t *root = json_pack("{s:s, s:s, s:o}", "version", sluice_version(), "processor", processor,
                             "rows", rows);
    return dump_json(&root, settings);
}

// ---- the chart: a part for each group, with an axis in its unit ----

// Labels of more than LABEL characters, each of CHARACTER pixels at most, take several lines.
enum { LABEL = 46, CHARACTER = 8, LENGTH = 400, LINE = SVG_LINE, VALUE = 100, RATIO = 200 };

struct chart {
    struct svg svg;
    int left;     // x where bars begin
    double scale; // pixels of a unit, of the group
    const char *unit;
};

// How much of a label goes into a line: up to a comma or space, if there is one.
static int line_length(const char *label)
{
    int length = (int)strlen(label);
    if (length <= LABEL)
        return length;
    for (int k = LABEL; k > LABEL / 3; k--)
        if (strchr(", /:", label[k - 1]))
            return k;
    return LABEL;
}

static int label_lines(const char *label)
{
    int lines = 0;
    for (; !lines || *label; lines++)
        label += line_length(label);
    return lines;
}

static int longest_line(const struct table *table)
{
    int longest = 20;
    for (int k = 0; k < table->rows; k++)
        for (const char *label = table->row[k].name; *label; label += line_length(label))
            longest = line_length(label) > longest ? line_length(label) : longest;
    return longest;
}

// Rows of a group from this one on; *height: of their lines, and of the sizes between them.
static int count_group(const struct table *table, int first, int *height)
{
    int k = first;
    *height = 0;
    for (; k < table->rows && !strcmp(table->row[k].group, table->row[first].group); k++) {
        const struct row *row = &table->row[k];
        bool begins = *row->size && (k == first || strcmp(row->size, row[-1].size) != 0);
        *height += LINE * (label_lines(row->name) + begins);
    }
    return k - first;
}

// A distance of ticks that are read easily, for about four of them.
static double tick_distance(double most)
{
    double tenth = pow(10, floor(log10(most / 4)));
    double times = most / 4 / tenth;
    return tenth * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static void draw_axis(struct chart *chart, double most, int height)
{
    struct svg *svg = &chart->svg;
    double distance = tick_distance(most);
    svg->y += LINE;
    for (int k = 0; k * distance <= most * 1.0001; k++) {
        double x = chart->left + k * distance * chart->scale;
        svg_grid(svg, x, height + 4);
        svg_text(svg, x, svg->y - 5, "fill=\"#666\" text-anchor=\"middle\"", "%g", k * distance);
    }
    svg_text(svg, chart->left + LENGTH + 14, svg->y - 5, "fill=\"#666\"", "%s", chart->unit);
}

static void draw_row(struct chart *chart, const struct row *row, bool begins)
{
    struct svg *svg = &chart->svg;
    if (begins) {
        svg_text(svg, chart->left - 10, svg->y + 15,
                 "text-anchor=\"end\" font-weight=\"bold\" fill=\"#666\"", "%s", row->size);
        svg->y += LINE;
    }
    svg_bar(svg, &(struct svg_bar){.left = chart->left,
                                   .length = row->median * chart->scale,
                                   .low = row->low * chart->scale,
                                   .high = row->high * chart->scale,
                                   .color = "#3b7dbd"});
    int x = chart->left + LENGTH + 14;
    svg_text(svg, x, svg->y + 15, "", "%.4g %s", row->median, row->unit);
    if (row->ratio > 0)
        svg_text(svg, x + VALUE, svg->y + 15, "fill=\"#666\"", "%.0f %% of %s", 100 * row->ratio,
                 row->reference);
    for (const char *label = row->name; *label; label += line_length(label)) {
        svg_text(svg, chart->left - 10, svg->y + 15, "text-anchor=\"end\"", "%.*s",
                 line_length(label), label);
        svg->y += LINE;
    }
}

static void draw_group(struct chart *chart, const struct row *row, int rows, int height)
{
    static const char *const units[][2] = {{"Gpx/s", "thousand million pixels a second"},
                                           {"GB/s", "thousand million bytes a second"},
                                           {"fps", "frames a second"}};
    struct svg *svg = &chart->svg;
    const char *unit = row->unit;
    double most = 0;
    for (int k = 0; k < rows; k++)
        most = fmax(most, row[k].high);
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        if (!strcmp(units[k][0], row->unit))
            unit = units[k][1];
    chart->unit = row->unit;
    chart->scale = most > 0 ? LENGTH / most : 0;
    svg_text(svg, SVG_MARGIN, svg->y + 15, "font-size=\"15\" font-weight=\"bold\"", "%s: %s",
             group_title(row->group), unit);
    svg->y += LINE + 4;
    draw_axis(chart, most > 0 ? most : 1, height);
    for (int k = 0; k < rows; k++)
        draw_row(chart, &row[k], *row[k].size && (!k || strcmp(row[k].size, row[k - 1].size) != 0));
    svg->y += LINE;
}

static bool draw_chart(const struct table *table, const struct settings *settings)
{
    struct chart chart = {.left = SVG_MARGIN + CHARACTER * longest_line(table) + 10};
    char about[320];
    int height, ratios = 0;
    for (int k = 0; k < table->rows; k++)
        ratios |= table->row[k].ratio > 0;
    machine_about(about, sizeof about, table->rows ? table->row->device : "");
    if (!svg_open(&chart.svg, chart.left + LENGTH + 14 + VALUE + (ratios ? RATIO : SVG_MARGIN),
                  "How fast sluice filters here: longer is faster", about))
        return false;
    for (int k = 0, rows; k < table->rows; k += rows) {
        rows = count_group(table, k, &height);
        draw_group(&chart, &table->row[k], rows, height);
    }
    svg_text(&chart.svg, SVG_MARGIN, chart.svg.y + 6, "fill=\"#666\"",
             "Bars: the median run; lines: from the slowest to the fastest run.");
    chart.svg.y += LINE;
    return write_chart(&chart.svg, settings);
}

bool write_chart(struct svg *svg, const struct settings *settings)
{
    size_t size;
    char *text = svg_close(svg, &size);
    bool written = text && write_file(settings, settings->chart, text, size);
    free(text);
    return written;
}

int bench_command(struct settings *settings)
{
    if (settings->ladder)
        return tutorial_command(settings);
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
