#define _GNU_SOURCE
#include "page/page.h"

#include <assert.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/meter.h"
#include "control/verbs.h"
#include "page/api.h"
#include "page/page_state.h"
#include "pipeline/engine/job.h"
#include "pipeline/engine/metrics.h"
#include "pipeline/engine/tap.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/report/trace.h"

// ---- construction ----

static void show_frame(void *preview, const AVFrame *frame, const struct tap_frame *about)
{
    preview_offer(preview, frame, about);
}

static char *copy_of(const char *text)
{
    return text ? strdup(text) : NULL;
}

static enum status check_media(const char *media, const struct log *log)
{
    struct stat about;
    if (!media || (!stat(media, &about) && S_ISDIR(about.st_mode)))
        return STATUS_OK;
    return log_fail(log, STATUS_USAGE, "%s is no folder for the page's media", media);
}

// The token that was given; of a page that others can reach one that is made.
static enum status make_token(struct page *page, const struct page_request *request)
{
    const char *given = request->token;
    if (given && (!*given || strlen(given) >= sizeof page->token))
        return log_fail(&page->log, STATUS_USAGE, "the page's token must have 1 to %zu letters",
                        sizeof page->token - 1);
    if (given)
        strcpy(page->token, given);
    else if (!http_is_local(request->listen) && !http_make_token(page->token))
        return log_fail(&page->log, STATUS_FAILED, "no random numbers are to be had for a token");
    return STATUS_OK;
}

static enum status create_parts(struct page *page, const struct page_request *request)
{
    const struct preview_request preview = {.config = request->config, .log = &page->log};
    page->events = events_create();
    page->later = page->uploads.later = later_create(page);
    page->pages = api_pages((size_t)page->uploads.max);
    if (!page->events || !page->later || !page->pages)
        return STATUS_MEMORY;
    enum status status = preview_create(&preview, &page->preview);
    if (status)
        return status;
    status = player_create(&(struct player_request){.keep = request->keep,
                                                    .keep_bytes = request->keep_bytes,
                                                    .show = show_frame,
                                                    .opaque = page->preview},
                           &page->log, &page->player);
    if (status || !page->media)
        return status;
    return record_create(&(struct record_request){page->preview, page->media}, &page->log,
                         &page->record);
}

static void bind_http(struct page *page, struct http *http)
{
    if (page->events)
        events_bind_http(page->events, http);
    if (page->later)
        later_bind_http(page->later, http);
    if (page->preview)
        preview_bind_http(page->preview, http);
}

static enum status open_server(struct page *page, const struct page_request *request)
{
    const struct http_server server = {.address = request->listen,
                                       .name = "the control page",
                                       .pages = page->pages,
                                       .opaque = page,
                                       .token = *page->token ? page->token : NULL,
                                       .tls_cert = request->tls_cert,
                                       .tls_key = request->tls_key,
                                       .page = true};
    enum status status = http_create(&server, &page->log, &page->http);
    if (status)
        return status;
    bind_http(page, page->http);
    if (asprintf(&page->url, "%s/%s%s", http_url(page->http), *page->token ? "#token=" : "",
                 page->token) < 0)
        page->url = NULL;
    return page->url ? STATUS_OK : STATUS_MEMORY;
}

// The chain, until a job joins, is the one that it will begin with.
static void begin_chain(struct page *page, const char *text)
{
    chains_note(&page->chains, text ? text : CHAIN_DEFAULT);
    if (page->chains.text)
        preview_set_chain(page->preview, page->chains.text);
}

static enum status start(struct page *page, const struct page_request *request)
{
    enum status status = check_media(request->media, &page->log);
    if (!status)
        status = make_token(page, request);
    if (!status)
        status = create_parts(page, request);
    if (!status)
        begin_chain(page, request->config->chain);
    if (!status)
        status = open_server(page, request);
    if (!status && page->chooses &&
        request->config->metrics) // one address for one job after another
        status = metrics_create(request->config->metrics, &page->log, &page->metrics);
    if (status)
        return status;
    page->ticks = !pthread_create(&page->ticker, NULL, page_tick, page);
    return page->ticks
               ? STATUS_OK
               : log_fail(&page->log, STATUS_FAILED, "the page's thread could not be started");
}

enum status page_create(const struct page_request *request, const struct log *log,
                        struct page **page)
{
    static const int64_t upload_max = INT64_C(4) << 30;
    assert(request->listen && request->config);
    struct page *made = *page = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = *log;
    made->config = request->config;
    made->media = copy_of(request->media);
    made->options = copy_of(request->options);
    made->input_options = copy_of(request->input_options);
    made->output_options = copy_of(request->output_options);
    made->uploads = (struct uploads){.media = made->media,
                                     .folder = copy_of(request->uploads),
                                     .max = request->upload_max ? request->upload_max : upload_max};
    uploads_read_mask(&made->uploads);
    made->chooses = request->chooses;
    made->input.since_s = time(NULL);
    monitor_init(&made->lock);
    enum status status = start(made, request);
    if (status)
        page_destroy(page);
    return status;
}

static void end_ticker(struct page *page)
{
    monitor_lock(&page->lock);
    page->closing = true;
    monitor_notify(&page->lock);
    monitor_unlock(&page->lock);
    if (page->ticks)
        pthread_join(page->ticker, NULL);
}

void page_destroy(struct page **page)
{
    struct page *old = *page;
    if (!old)
        return;
    assert(!old->job);
    end_ticker(old);
    bind_http(old, NULL);
    http_destroy(&old->http);
    metrics_destroy(&old->metrics);
    later_destroy(&old->later);
    record_destroy(&old->record);
    player_destroy(&old->player);
    preview_destroy(&old->preview);
    events_destroy(&old->events);
    uploads_remove(&old->uploads);
    chains_finish(&old->chains);
    json_decref(old->last_stats);
    json_decref(old->cameras);
    monitor_finish(&old->lock);
    free(old->chosen);
    free(old->shown);
    free(old->pages);
    free(old->media);
    free(old->options);
    free(old->input_options);
    free(old->output_options);
    free(old->url);
    free(old);
    *page = NULL;
}

const char *page_url(const struct page *page)
{
    return page->url;
}

// ---- the tap ----

static void tap_packet(void *page, const struct packet *packet)
{
    player_packet(((struct page *)page)->player, packet);
}

static void tap_frame(void *page_, const AVFrame *frame, const struct tap_frame *about)
{
    struct page *page = page_;
    page->width = frame->width;
    page->height = frame->height;
    page->pixel = frame->hw_frames_ctx ? (int)about->software_pixel : frame->format;
    player_frame(page->player, frame, about);
}

// ---- a job ----

void page_show_chain_locked(struct page *page)
{
    preview_set_chain(page->preview, page->chains.text);
    events_post(page->events, EVENT_CHAIN, chains_json(&page->chains));
}

// The first frame has come.
static void begin_showing_locked(struct page *page)
{
    if (page->job && page->input.state == INPUT_OPENING && !page->chosen)
        page_set_input_locked(page, INPUT_RUNNING, NULL, NULL);
}

void page_catch_up_locked(struct page *page)
{
    if (!page->job || !atomic_exchange(&page->changed, false))
        return;
    begin_showing_locked(page);
    char *text = sluice_job_chain(page->job);
    if (text && chains_note(&page->chains, text))
        page_show_chain_locked(page);
    free(text);
}

// Make the job's chain the page's; what a visitor has asked for meanwhile becomes the job's first.
static void agree_on_chain_locked(struct page *page)
{
    char why[1024];
    if (page->asked && sluice_job_set_chain(page->job, page->chains.text, why, sizeof why))
        log_print(&page->log, LOG_WARNING, "the chain that was asked for is left out: %s", why);
    page->asked = false;
    char *text = sluice_job_chain(page->job);
    if (text)
        chains_note(&page->chains, text);
    free(text);
    page_show_chain_locked(page);
}

static void note_opening(void *page_, struct sluice_job *job)
{
    struct page *page = page_;
    monitor_lock(&page->lock);
    page->opening = job;
    if (job && page->chosen)
        sluice_job_stop(job);
    monitor_unlock(&page->lock);
}

enum sluice_status page_create_job(struct page *page, const struct sluice_config *config,
                                   struct sluice_job **job)
{
    return job_create(config, &(struct job_begun){note_opening, page}, job);
}

enum status page_join(struct page *page, struct sluice_job *job, const struct sluice_config *config)
{
    assert(page && job && config && !page->job);
    enum status status = player_join(page->player, job, config);
    if (status) {
        note_opening(page, NULL);
        return status;
    }
    page->width = page->height = 0;
    trace_keep(job->trace);
    job_tap(job, &(struct tap){page, tap_packet, tap_frame, player_memory(page->player)});
    monitor_lock(&page->lock);
    page->job = job;
    page->opening = NULL;
    page->job_config = config;
    page->sampled = 0;
    page->changed = false;
    agree_on_chain_locked(page);
    page_set_input_locked(page, INPUT_OPENING, config->input, NULL);
    monitor_unlock(&page->lock);
    metrics_watch(page->metrics, job);
    return STATUS_OK;
}

void page_leave(struct page *page, struct sluice_job *job, enum sluice_status status)
{
    if (!page)
        return;
    monitor_lock(&page->lock);
    bool joined = page->job == job;
    if (joined && job) {
        page_catch_up_locked(page);
        page_keep_stats_locked(page);
        page->job = NULL;
        page->job_config = NULL;
        bool failed = status_is_failure((enum status)status);
        if (!page->chosen)
            page_set_input_locked(page, failed ? INPUT_FAILED : INPUT_ENDED, NULL,
                                  failed ? sluice_status_name(status) : NULL);
    }
    monitor_unlock(&page->lock);
    if (!joined || !job)
        return;
    metrics_watch(page->metrics, NULL);
    player_leave(page->player);
    preview_release(page->preview);
}

void page_changed(struct page *page, int64_t pts_us, const char *chain)
{
    (void)pts_us, (void)chain; // a visitor may have asked for another one meanwhile
    if (!page)
        return;
    page->changed = true;
    if (!monitor_try_lock(&page->lock))
        return; // the ticker tells it
    begin_showing_locked(page);
    monitor_unlock(&page->lock);
}

void page_log(struct page *page, enum sluice_log_level level, const char *sentence)
{
    static const char *const levels[] = {"error", "warning", "info"};
    if (page && level <= SLUICE_LOG_INFO)
        events_log(page->events, levels[level], sentence);
}

char *page_take_chain(struct page *page)
{
    monitor_lock(&page->lock);
    page_catch_up_locked(page);
    char *text = copy_of(page->chains.text);
    page->asked = page->asked && !text;
    monitor_unlock(&page->lock);
    return text;
}

bool page_has_new_chain(struct page *page)
{
    monitor_lock(&page->lock);
    bool asked = page->asked;
    monitor_unlock(&page->lock);
    return asked;
}

bool page_holds(struct page *page)
{
    return player_holds(page->player);
}

// ---- the input ----

// A name as visitors know it: of a file in the page's folders what is behind them.
static const char *public_part(const struct page *page, const char *name)
{
    const char *const folders[] = {page->media, page->uploads.folder};
    for (int k = 0; k < 2; k++) {
        size_t length = folders[k] ? strlen(folders[k]) : 0;
        if (length && !strncmp(name, folders[k], length) && name[length] == '/')
            return name + length + 1;
    }
    return name;
}

json_t *page_input_json_locked(struct page *page)
{
    static const char *const states[] = {"none", "opening", "running", "lost", "ended", "failed"};
    const char *pixel = page->width ? av_get_pix_fmt_name(page->pixel) : NULL;
    const struct input_note *note = &page->input;
    return json_pack("{s:b, s:o, s:i, s:i, s:s, s:s, s:o, s:I}", "ok", 1, "name",
                     text_json(note->name), "width", (int)page->width, "height", (int)page->height,
                     "pixfmt", pixel ? pixel : "", "state", states[note->state], "error",
                     text_json(note->error), "since", (json_int_t)note->since_s);
}

void page_set_input_locked(struct page *page, enum input_state state, const char *name,
                           const char *error)
{
    struct input_note *note = &page->input;
    note->state = state;
    note->since_s = time(NULL);
    if (name)
        sluice_public_name(public_part(page, name), note->name, sizeof note->name);
    snprintf(note->error, sizeof note->error, "%s", error ? error : "");
    events_post(page->events, EVENT_INPUT, page_input_json_locked(page));
}

void page_note_input(struct page *page, const char *name, const char *error)
{
    if (!page)
        return;
    monitor_lock(&page->lock);
    page_set_input_locked(page, error ? INPUT_FAILED : INPUT_OPENING, name, error);
    monitor_unlock(&page->lock);
}

void page_choose(struct page *page, char *name)
{
    monitor_lock(&page->lock);
    free(page->chosen);
    page->chosen = name;
    page_set_input_locked(page, INPUT_OPENING, name, NULL);
    if (page->job)
        sluice_job_stop(page->job);
    if (page->opening)
        sluice_job_stop(page->opening);
    monitor_notify(&page->lock);
    monitor_unlock(&page->lock);
}

enum status page_await_input(struct page *page, const atomic_bool *stop, struct page_input *input)
{
    static const int64_t look_ns = 100000000;
    *input = (struct page_input){0};
    monitor_lock(&page->lock);
    while (!page->chosen && !*stop)
        monitor_wait_until(&page->lock, meter_now_ns() + look_ns);
    input->name = page->chosen;
    input->chain = page->chosen ? copy_of(page->chains.text) : NULL;
    if (page->chosen) {
        free(page->shown);
        page->shown = strdup(page->chosen);
    }
    page->chosen = NULL;
    monitor_unlock(&page->lock);
    return input->name ? STATUS_OK : STATUS_STOPPED;
}

bool page_wants_another(struct page *page)
{
    if (!page)
        return false;
    monitor_lock(&page->lock);
    bool wants = page->chosen;
    monitor_unlock(&page->lock);
    return wants;
}
