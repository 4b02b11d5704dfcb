// Figures: /api/stats, /api/events, /api/histogram, /api/timeline, /api/command.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/verbs.h"
#include "control/shell.h"
#include "page/api.h"
#include "pipeline/engine/job.h"
#include "pipeline/report/trace.h"

static void answer_stats(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    (void)call;
    monitor_lock(&page->lock);
    api_say(answer, 200, page_stats_locked(page));
    monitor_unlock(&page->lock);
}

static void answer_events(void *page, const struct http_call *call, struct http_answer *answer)
{
    (void)call;
    events_answer(((struct page *)page)->events, answer);
}

static void answer_histogram(void *page, const struct http_call *call, struct http_answer *answer)
{
    struct preview_figures figures;
    json_t *bins = json_array();
    (void)call;
    preview_figures(((struct page *)page)->preview, &figures);
    for (int k = 0; k < 256; k++)
        json_array_append_new(bins, json_integer((json_int_t)figures.histogram[k]));
    api_say(answer, 200, json_pack("{s:b, s:o}", "ok", 1, "bins", bins));
}

// ---- the timeline ----

static json_t *span_json(const struct trace_kept *span)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:I, s:o}", "part", span->part, "name", span->name,
                     "slot", span->slot < 0 ? json_null() : json_integer(span->slot), "begin_us",
                     (json_int_t)span->begin_us, "end_us", (json_int_t)span->end_us, "frame",
                     span->frame < 0 ? json_null() : json_integer((json_int_t)span->frame));
}

static json_t *timeline_json(struct trace *trace)
{
    static const int64_t second_us = 1000000;
    struct trace_kept *span = calloc(TRACE_KEPT, sizeof *span);
    if (!span)
        return NULL;
    int64_t now_us = trace_now_us(trace);
    int count = trace_recent(trace, now_us - second_us, span, TRACE_KEPT);
    json_t *spans = json_array();
    for (int k = 0; k < count; k++)
        json_array_append_new(spans, span_json(&span[k]));
    free(span);
    return json_pack("{s:b, s:I, s:o}", "ok", 1, "now_us", (json_int_t)now_us, "spans", spans);
}

static void answer_timeline(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    (void)call;
    monitor_lock(&page->lock);
    json_t *timeline = page->job ? timeline_json(page->job->trace)
                                 : json_pack("{s:b, s:i, s:[]}", "ok", 1, "now_us", 0, "spans");
    monitor_unlock(&page->lock);
    api_say(answer, 200, timeline);
}

// ---- the command line ----

static void print_name(FILE *to, const char *name)
{
    char shown[4096];
    sluice_public_name(name, shown, sizeof shown);
    fputc(' ', to);
    shell_word(to, shown);
}

// The output: the job's, unless it is nobody's.
static const char *output_of(const struct sluice_config *config)
{
    const char *name = config ? config->output.name : NULL;
    return name && strcmp(name, "null:") != 0 ? name : "out.mkv";
}

// The input: the job's, or the one that is opened, or that will be.
static const char *input_of_locked(const struct page *page)
{
    const char *typed = page->config->input;
    if (page->job_config)
        return page->job_config->input;
    return *page->input.name ? page->input.name : typed ? typed : "in.mp4";
}

// The command line's options of its input do not hold for another one.
static bool is_typed_locked(const struct page *page)
{
    const char *typed = page->config->input;
    return !typed || !page->job_config || !strcmp(page->job_config->input, typed);
}

static void print_options(FILE *to, const char *options)
{
    fputs(options ? options : "", to);
}

static void print_command_locked(FILE *to, const struct page *page)
{
    const struct sluice_config *config = page->job_config;
    char *chain = page->chains.text ? sluice_public_chain(page->chains.text) : NULL;
    fputs("sluice", to);
    print_options(to, page->options);
    print_options(to, is_typed_locked(page) ? page->input_options : NULL);
    print_name(to, input_of_locked(page));
    print_name(to, output_of(config));
    print_options(to, page->output_options);
    if (chain) {
        fputs(" -f ", to);
        shell_word(to, chain);
    }
    free(chain);
}

static void answer_command(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    (void)call;
    if (!to)
        return;
    monitor_lock(&page->lock);
    page_catch_up_locked(page);
    print_command_locked(to, page);
    monitor_unlock(&page->lock);
    fclose(to);
    api_say(answer, 200, json_pack("{s:b, s:o}", "ok", 1, "command", text_json(text)));
    free(text);
}

const struct http_page figure_pages[] = {
    {"GET", "/api/stats", answer_stats},
    {"GET", "/api/events", answer_events, .chunked = true},
    {"GET", "/api/histogram", answer_histogram},
    {"GET", "/api/timeline", answer_timeline},
    {"GET", "/api/command", answer_command},
    {NULL},
};
