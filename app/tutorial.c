// `sluice bench --ladder`: the steps of a lesson beside sluice, as a table, as JSON, as a chart.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "bench/bench.h"
#include "bench/machine.h"
#include "bench/svg.h"

enum { MAX_ROWS = 192 };

// A lesson in words.
static const struct lesson {
    const char *name;   // in JSON
    const char *before; // a size in the chart
    const char *first;  // what step 1 is
    const char *about;
    bool over_all;
} lessons[] = {
    [SLUICE_LESSON_GAUSSIAN] = {"gaussian", "", "plain C by one thread",
                                "A Gaussian of 17x17 on 8-bit gray, zeros beyond the edges, and "
                                "how many times as fast as\n"
                                "plain C by one thread and by all.\n",
                                true},
    [SLUICE_LESSON_MATCHING] = {"matching", "Matching, ", "step 1",
                                "\nTemplate matching on the same pictures: the score of a template "
                                "everywhere, and how many\ntimes as fast as the first step.\n",
                                false},
    [SLUICE_LESSON_EDGES] = {"edges", "Edge filter, ", "plain C by one thread",
                             "\nThe edge filter on 8-bit RGB: brightness, mean gray, Sobel, two "
                             "thresholds, and how many times\nas fast as plain C, a stage after "
                             "another, by one thread and by all.\n",
                             true},
    [SLUICE_LESSON_WAVELET] =
        {"wavelet", "Mexican hat, ", "its definition",
         "\nThe Mexican hat on 8-bit gray, a scale at a time, of pictures that "
         "grow, and how many times\nas fast as its definition by one thread; "
         "of slow steps fewer runs.\n",
         false},
};

struct row {
    const struct lesson *lesson;
    int step, runs, off_by;
    char name[64], size[64], device[96], absent[256]; // absent: "" if there are figures
    double mean, median, low, high, processor, over_one, over_all;
    struct sluice_article article;
};

struct table {
    struct row row[MAX_ROWS];
    int rows;
    bool quiet;
};

// True if this row is the first of its size.
static bool begins_size(const struct row *first, const struct row *row)
{
    return row == first || row->lesson != row[-1].lesson || strcmp(row->size, row[-1].size) != 0;
}

// ---- for people ----

// Three digits; thousands without an exponent.
struct times {
    char text[24];
};

static struct times times(double value)
{
    struct times shown;
    if (value >= 1000)
        snprintf(shown.text, sizeof shown.text, "%.0fx", 10 * round(value / 10));
    else
        snprintf(shown.text, sizeof shown.text, "%.3gx", value);
    return shown;
}

static bool has_article(const struct row *row)
{
    return row->article.over_one > 0 || row->article.ms > 0;
}

static const char *name_article(const struct row *row)
{
    return row->article.ms > 0 ? "the article's GPU, there" : "the article's best step, there";
}

static void print_article(const struct row *row)
{
    const struct sluice_article *article = &row->article;
    if (article->ms > 0)
        printf("  %-42s %10.5g\n", name_article(row), article->ms);
    else if (article->over_all > 0)
        printf("  %-42s %10s %10s  %-22s %9.1fx %9.1fx\n", name_article(row), "", "", "",
               article->over_one, article->over_all);
    else
        printf("  %-42s %10s %10s  %-22s %9.1fx\n", name_article(row), "", "", "",
               article->over_one);
}

static void print_head(const struct row *row)
{
    bool over_all = row->lesson->over_all;
    printf("%-44s %10s %10s  %-22s %10s", row->size, "mean ms", "median", "min .. max",
           over_all ? "over one" : "over first");
    if (over_all)
        printf(" %10s", "over all");
    printf("\n");
    if (has_article(row))
        print_article(row);
}

static void print_row(const struct row *row)
{
    char range[48];
    snprintf(range, sizeof range, "%.4g .. %.4g", row->low, row->high);
    printf("%d %-42s ", row->step, row->name);
    if (*row->absent)
        printf("not to be had: %s\n", row->absent);
    else if (row->over_one <= 0) // there is no first step here
        printf("%10.4g %10.4g  %-22s %10s\n", row->mean, row->median, range, "-");
    else if (!row->lesson->over_all)
        printf("%10.4g %10.4g  %-22s %10s\n", row->mean, row->median, range,
               times(row->over_one).text);
    else
        printf("%10.4g %10.4g  %-22s %10s %10s\n", row->mean, row->median, range,
               times(row->over_one).text, times(row->over_all).text);
    fflush(stdout);
}

static void add_row(void *opaque, const struct sluice_tutorial_row *from)
{
    struct table *table = opaque;
    if (table->rows == MAX_ROWS)
        return;
    struct row *row = &table->row[table->rows++];
    *row = (struct row){.lesson = &lessons[from->lesson],
                        .step = from->step,
                        .runs = from->runs,
                        .off_by = from->off_by,
                        .mean = from->mean,
                        .median = from->median,
                        .low = from->low,
                        .high = from->high,
                        .processor = from->processor,
                        .over_one = from->over_one,
                        .over_all = from->over_all,
                        .article = from->article};
    snprintf(row->name, sizeof row->name, "%s", from->name);
    snprintf(row->size, sizeof row->size, "%s", from->size);
    snprintf(row->device, sizeof row->device, "%s", from->device);
    snprintf(row->absent, sizeof row->absent, "%s", from->absent ? from->absent : "");
    if (table->quiet)
        return;
    if (table->rows == 1)
        printf("Milliseconds a picture, means of %d runs.\n\n", row->runs);
    if (table->rows == 1 || row->lesson != row[-1].lesson)
        printf("%s", row->lesson->about);
    if (begins_size(table->row, row)) {
        printf("\n");
        print_head(row);
    }
    print_row(row);
}

// ---- for machines ----

static json_t *row_json(const struct row *row)
{
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:s, s:s}", "lesson", row->lesson->name, "rung", row->step,
                  "name", row->name, "size", row->size, "device", row->device);
    json_t *figures =
        json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "runs", row->runs, "mean", row->mean,
                  "median", row->median, "low", row->low, "high", row->high, "over_one",
                  row->over_one, "over_all", row->over_all, "off_by", row->off_by);
    if (*row->absent)
        object_add(&json, "absent", json_string(row->absent));
    else if (!figures || json_object_update(json, figures))
        object_add(&json, "", NULL); // there is no memory
    if (row->processor > 0)
        object_add(&json, "processor", json_real(row->processor));
    if (!row->lesson->over_all)
        json_object_del(json, "over_all");
    if (row->over_one <= 0)
        json_object_del(json, "over_one");
    json_decref(figures);
    return json;
}

// The figures of an article for the row's size.
static json_t *article_json(const struct row *row)
{
    const struct sluice_article *article = &row->article;
    json_t *json = json_pack("{s:s, s:s}", "lesson", row->lesson->name, "size", row->size);
    if (article->over_one > 0)
        object_add(&json, "over_one", json_real(article->over_one));
    if (article->over_all > 0)
        object_add(&json, "over_all", json_real(article->over_all));
    if (article->ms > 0)
        object_add(&json, "ms", json_real(article->ms));
    return json;
}

static bool write_rows(const struct table *table, const struct settings *settings)
{
    json_t *rows = json_array(), *articles = json_array();
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        array_add(&rows, row_json(row));
        if (begins_size(table->row, row) && has_article(row))
            array_add(&articles, article_json(row));
    }
    char processor[128];
    machine_processor(processor, sizeof processor);
    json_t *root = json_pack("{s:s, s:s, s:s, s:o, s:o}", "version", sluice_version(), "processor",
                             processor, "unit", "ms", "articles", articles, "rows", rows);
    return dump_json(&root, settings);
}

// ---- the chart: how many times as fast, on a scale of decades ----

enum { LEFT = 360, LENGTH = 390, FIGURES = 320, LINE = SVG_LINE };

static const double min_axis = 0.5;

struct chart {
    struct svg svg;
    double most; // where the axis ends
};

static double axis(const struct chart *chart, double times)
{
    double share = log(times / min_axis) / log(chart->most / min_axis);
    return share > 0 ? LENGTH * share : 0;
}

// Nothing that a row's speed could be held against was measured.
static bool is_alone(const struct row *row)
{
    return row->over_one <= 0;
}

static void draw_label(struct chart *chart, const char *text)
{
    svg_text(&chart->svg, LEFT - 10, chart->svg.y + 15, "text-anchor=\"end\"", "%s", text);
}

static void describe(const struct row *row, char *text, size_t size)
{
    int used = 0;
    if (row->over_all > 0)
        used = snprintf(text, size, "%s one thread, %s all", times(row->over_one).text,
                        times(row->over_all).text);
    else if (!is_alone(row))
        used = snprintf(text, size, "%s %s", times(row->over_one).text,
                        row->lesson->over_all ? "one thread" : "the first");
    if (row->mean > 0)
        snprintf(text + used, size - (size_t)used, row->mean < 1000 ? "%s%.3g ms" : "%s%.0f ms",
                 used ? ", " : "", row->mean);
}

// A row without times has no line from the slowest run to the fastest.
static void draw_bar(struct chart *chart, const struct row *row, const char *color)
{
    char text[128] = "";
    bool timed = row->mean > 0;
    struct svg_bar bar = {.left = LEFT, .length = axis(chart, row->over_one), .color = color};
    bar.low = timed ? axis(chart, row->over_one * row->mean / row->high) : bar.length;
    bar.high = timed ? axis(chart, row->over_one * row->mean / row->low) : bar.length;
    if (!is_alone(row))
        svg_bar(&chart->svg, &bar);
    describe(row, text, sizeof text);
    svg_text(&chart->svg, LEFT + (is_alone(row) ? 0 : bar.high) + 8, chart->svg.y + 15, "", "%s",
             text);
    chart->svg.y += LINE;
}

static void draw_row(struct chart *chart, const struct row *row)
{
    char label[80];
    snprintf(label, sizeof label, "%d %s", row->step, row->name);
    draw_label(chart, label);
    if (!*row->absent) {
        draw_bar(chart, row, strncmp(row->name, "sluice", 6) ? "#9dbedd" : "#3b7dbd");
        return;
    }
    svg_text(&chart->svg, LEFT + 8, chart->svg.y + 15, "fill=\"#777\"", "not to be had: %s",
             row->absent);
    chart->svg.y += LINE;
}

// The decades behind so many lines.
static void draw_decades(struct chart *chart, int lines)
{
    struct svg *svg = &chart->svg;
    svg->y += LINE;
    for (double at = 1; at <= chart->most; at *= 10) {
        svg_grid(svg, LEFT + axis(chart, at), lines * LINE + 4);
        svg_text(svg, LEFT + axis(chart, at), svg->y - 5, "fill=\"#666\" text-anchor=\"middle\"",
                 "%gx", at);
    }
}

// Rows of one size.
static void draw_size(struct chart *chart, const struct row *row, int rows)
{
    struct svg *svg = &chart->svg;
    bool compared = false;
    for (int k = 0; k < rows; k++)
        compared |= !*row[k].absent && !is_alone(&row[k]);
    svg_text(svg, SVG_MARGIN, svg->y + 15, "font-size=\"15\" font-weight=\"bold\"", "%s%s: %s%s",
             row->lesson->before, row->size,
             compared ? "times as fast as " : "milliseconds (step 1 is not to be had)",
             compared ? row->lesson->first : "");
    svg->y += LINE + 4;
    if (compared)
        draw_decades(chart, rows + has_article(row));
    if (has_article(row)) {
        const struct sluice_article *article = &row->article;
        draw_label(chart, name_article(row));
        draw_bar(chart,
                 &(struct row){.lesson = row->lesson,
                               .over_one = article->over_one,
                               .over_all = article->over_all,
                               .mean = article->ms,
                               .low = article->ms,
                               .high = article->ms},
                 "#d9a441");
    }
    for (int k = 0; k < rows; k++)
        draw_row(chart, &row[k]);
    svg->y += LINE;
}

// The subtitle: the processor with its threads, and the GPU.
static void name_devices(const struct table *table, char *text, size_t size)
{
    const char *threads = "", *gpu = "no GPU";
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        if (row->lesson != table->row[0].lesson)
            break;
        if (row->step == 2)
            threads = row->device;
        if (row->step == 3 && !*row->absent)
            gpu = row->device;
    }
    snprintf(text, size, "%s; %s", threads, gpu);
}

static bool draw_chart(const struct table *table, const struct settings *settings)
{
    struct chart chart = {.most = 100};
    char devices[256], about[512];
    for (int k = 0; k < table->rows; k++) {
        const struct row *row = &table->row[k];
        if (!*row->absent)
            chart.most = fmax(chart.most, row->over_one * row->mean / row->low);
    }
    name_devices(table, devices, sizeof devices);
    machine_about(about, sizeof about, devices);
    if (!svg_open(&chart.svg, LEFT + LENGTH + FIGURES,
                  "A Gaussian of 17x17 on 8-bit gray, and other filters, step by step: longer is "
                  "faster",
                  about))
        return false;
    for (int k = 0, rows; k < table->rows; k += rows) {
        for (rows = 1; k + rows < table->rows && !begins_size(table->row, &table->row[k + rows]);)
            rows++;
        draw_size(&chart, &table->row[k], rows);
    }
    svg_text(
        &chart.svg, SVG_MARGIN, chart.svg.y + 6, "fill=\"#666\"",
        "Logarithmic scale. Bars: the mean of %d runs; lines: from the slowest to the fastest. "
        "Articles measured on machines of their own.",
        table->rows ? table->row->runs : 0);
    chart.svg.y += LINE;
    return write_chart(&chart.svg, settings);
}

// ---- the command ----

int tutorial_command(struct settings *settings)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return EXIT_OTHER;
    table->quiet = settings->quiet || (settings->json && !strcmp(settings->json, "-"));
    int code = exit_code_of(sluice_tutorial(&settings->config, settings->quick, add_row, table));
    if (code == EXIT_WHOLE && settings->json && !write_rows(table, settings))
        code = EXIT_OUTPUT;
    if (code == EXIT_WHOLE && settings->chart && !draw_chart(table, settings))
        code = EXIT_OUTPUT;
    free(table);
    return code;
}
