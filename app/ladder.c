// `sluice bench --ladder`: the steps of a lesson beside sluice, as a table, as JSON, as a chart.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"

enum { ROWS_MOST = 64 };

// What an article that climbs the same steps reports of its best one, on the machine of its author.
static const double article_over_one = 12.6, article_over_all = 3.8;

struct row {
    int rung, runs, off_by;
    bool matching;                                    // of templates, not a Gaussian
    char name[64], size[32], device[96], absent[256]; // absent: "" if there are figures
    double mean, median, low, high, over_one, over_all;
};

struct table {
    struct row row[ROWS_MOST];
    int rows;
    bool quiet;
};

// Whether this row is the first of its size.
static bool begins_size(const struct row *first, const struct row *row)
{
    return row == first || strcmp(row->size, row[-1].size) != 0;
}

// ---- for people ----

static void print_head(const struct row *row)
{
    if (row->matching) {
        printf("%-44s %10s %10s  %-22s %10s\n", row->size, "mean ms", "median", "min .. max",
               "over first");
        return;
    }
    printf("%-44s %10s %10s  %-22s %10s %10s\n", row->size, "mean ms", "median", "min .. max",
           "over one", "over all");
    printf("  %-42s %10s %10s  %-22s %9.1fx %9.1fx\n", "the article's best step, there", "", "", "",
           article_over_one, article_over_all);
}

static void print_row(const struct row *row)
{
    char range[48];
    snprintf(range, sizeof range, "%.4g .. %.4g", row->low, row->high);
    printf("%d %-42s ", row->rung, row->name);
    if (*row->absent)
        printf("not to be had: %s\n", row->absent);
    else if (row->matching)
        printf("%10.4g %10.4g  %-22s %9.3gx\n", row->mean, row->median, range, row->over_one);
    else
        printf("%10.4g %10.4g  %-22s %9.3gx %9.3gx\n", row->mean, row->median, range, row->over_one,
               row->over_all);
    fflush(stdout);
}

static void add_row(void *opaque, const struct sluice_ladder_row *from)
{
    struct table *table = opaque;
    if (table->rows == ROWS_MOST)
        return;
    struct row *row = &table->row[table->rows++];
    *row = (struct row){.rung = from->rung,
                        .runs = from->runs,
                        .off_by = from->off_by,
                        .matching = from->matching,
                        .mean = from->mean,
                        .median = from->median,
                        .low = from->low,
                        .high = from->high,
                        .over_one = from->over_one,
                        .over_all = from->over_all};
    snprintf(row->name, sizeof row->name, "%s", from->name);
    snprintf(row->size, sizeof row->size, "%s", from->size);
    snprintf(row->device, sizeof row->device, "%s", from->device);
    snprintf(row->absent, sizeof row->absent, "%s", from->absent ? from->absent : "");
    if (table->quiet)
        return;
    if (table->rows == 1)
        printf("A Gaussian of 17x17 on 8-bit gray, zeros beyond the edges; mean of %d runs, in\n"
               "milliseconds a picture, and how many times as fast as plain C by one thread and by "
               "all.\n",
               row->runs);
    if (row->matching && !row[-1].matching)
        printf("\nTemplate matching on the same pictures: the score of a template everywhere, and "
               "how many\ntimes as fast as the first step.\n");
    if (begins_size(table->row, row)) {
        printf("\n");
        print_head(row);
    }
    print_row(row);
}

// ---- for machines ----

static json_t *row_json(const struct row *row)
{
    json_t *json = json_pack("{s:i, s:s, s:s, s:s}", "rung", row->rung, "name", row->name, "size",
                             row->size, "device", row->device);
    json_t *figures =
        json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "runs", row->runs, "mean", row->mean,
                  "median", row->median, "low", row->low, "high", row->high, "over_one",
                  row->over_one, "over_all", row->over_all, "off_by", row->off_by);
    if (*row->absent)
        json_object_set_new(json, "absent", json_string(row->absent));
    else
        json_object_update(json, figures);
    if (row->matching) {
        json_object_set_new(json, "matching", json_true());
        json_object_del(json, "over_all");
        json_object_del(json, "off_by");
    }
    json_decref(figures);
    return json;
}

static bool write_rows(const struct table *table, const struct settings *settings)
{
    json_t *rows = json_array();
    for (int k = 0; k < table->rows; k++)
        json_array_append_new(rows, row_json(&table->row[k]));
    json_t *root = json_pack("{s:s, s:s, s:{s:f, s:f}, s:o}", "version", sluice_version(), "unit",
                             "ms", "article", "over_one", article_over_one, "over_all",
                             article_over_all, "rows", rows);
    bool written = root && dump_json(root, settings);
    json_decref(root);
    return written;
}

// ---- the chart: how many times as fast as one thread, on a scale of decades ----

enum { WIDTH = 1000, LEFT = 320, LENGTH = 390, LINE = 20 };

static const double axis_least = 0.5;

struct chart {
    FILE *to;
    double most; // where the axis ends
    int y;       // of the next line
};

static double axis(const struct chart *chart, double over_one)
{
    double share = log(over_one / axis_least) / log(chart->most / axis_least);
    return share > 0 ? LENGTH * share : 0;
}

static void draw_label(struct chart *chart, const char *text)
{
    fprintf(chart->to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, chart->y + 15);
    svg_escaped(chart->to, text);
    fprintf(chart->to, "</text>");
}

// A bar with a line from the slowest run to the fastest. A row without times has none.
static void draw_bar(struct chart *chart, const struct row *row, const char *color)
{
    bool timed = row->mean > 0;
    double end = axis(chart, row->over_one);
    double slowest = timed ? axis(chart, row->over_one * row->mean / row->high) : end;
    double fastest = timed ? axis(chart, row->over_one * row->mean / row->low) : end;
    fprintf(chart->to,
            "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"black\"/>"
            "<text x=\"%.1f\" y=\"%d\">",
            LEFT, chart->y + 2, end, LINE - 4, color, LEFT + slowest, LEFT + fastest,
            chart->y + LINE / 2, chart->y + LINE / 2, LEFT + fastest + 6, chart->y + 15);
    if (row->matching)
        fprintf(chart->to, "%.3gx the first", row->over_one);
    else
        fprintf(chart->to, "%.3gx one thread, %.3gx all", row->over_one, row->over_all);
    if (timed)
        fprintf(chart->to, ", %.3g ms", row->mean);
    fprintf(chart->to, "</text>\n");
    chart->y += LINE;
}

static void draw_absence(struct chart *chart, const char *reason)
{
    fprintf(chart->to, "<text x=\"%d\" y=\"%d\" fill=\"#777\">not to be had: ", LEFT + 6,
            chart->y + 15);
    svg_escaped(chart->to, reason);
    fprintf(chart->to, "</text>\n");
    chart->y += LINE;
}

static void draw_row(struct chart *chart, const struct row *row)
{
    char label[80];
    snprintf(label, sizeof label, "%d %s", row->rung, row->name);
    draw_label(chart, label);
    if (*row->absent)
        draw_absence(chart, row->absent);
    else
        draw_bar(chart, row, row->rung == (row->matching ? 3 : 7) ? "#3b7dbd" : "#9dbedd");
}

static void draw_head(struct chart *chart, const struct row *row)
{
    fprintf(chart->to, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>", LEFT,
            chart->y + LINE + 12, row->size);
    chart->y += 2 * LINE;
    if (row->matching)
        return;
    draw_label(chart, "the article's best step, there");
    draw_bar(chart, &(struct row){.over_one = article_over_one, .over_all = article_over_all},
             "#d9a441");
}

static void draw_decades(const struct chart *chart, int height)
{
    for (double at = 1; at <= chart->most; at *= 10)
        fprintf(chart->to,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#777\">%gx</text>\n",
                LEFT + axis(chart, at), LEFT + axis(chart, at), LINE + 6, height - 2 * LINE,
                LEFT + axis(chart, at), LINE, at);
}

// What it was measured on.
static void draw_devices(const struct chart *chart, const struct table *table, int height)
{
    const char *threads = "", *gpu = "no GPU";
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        if (row->matching)
            break;
        if (row->rung == 2)
            threads = row->device;
        if (row->rung == 3 && !*row->absent)
            gpu = row->device;
    }
    fprintf(chart->to, "<text x=\"8\" y=\"%d\">", height - 12);
    svg_escaped(chart->to, threads);
    fputs("; ", chart->to);
    svg_escaped(chart->to, gpu);
    fputs("; times as fast as plain C by one thread, of matching as the first step</text>\n",
          chart->to);
}

static bool draw_chart(const struct table *table, const struct settings *settings)
{
    struct chart chart = {.most = 100, .y = LINE};
    int height = 3 * LINE;
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        if (!*row->absent)
            chart.most = fmax(chart.most, row->over_one * row->mean / row->low);
        bool begins = begins_size(table->row, row);
        height += !begins ? LINE : row->matching ? 3 * LINE : 4 * LINE;
    }
    struct svg svg;
    if (!svg_open(&svg, WIDTH, height))
        return false;
    chart.to = svg.to;
    draw_devices(&chart, table, height);
    draw_decades(&chart, height);
    for (int k = 0; k < table->rows; k++) {
        if (begins_size(table->row, &table->row[k]))
            draw_head(&chart, &table->row[k]);
        draw_row(&chart, &table->row[k]);
    }
    return svg_close(&svg, settings);
}

// ---- the command ----

int ladder_command(struct settings *settings)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return EXIT_OTHER;
    table->quiet = settings->quiet || (settings->json && !strcmp(settings->json, "-"));
    int code = exit_code_of(sluice_ladder(&settings->config, settings->quick, add_row, table));
    if (code == EXIT_WHOLE && settings->json && !write_rows(table, settings))
        code = EXIT_OUTPUT;
    if (code == EXIT_WHOLE && settings->chart && !draw_chart(table, settings))
        code = EXIT_OUTPUT;
    free(table);
    return code;
}
