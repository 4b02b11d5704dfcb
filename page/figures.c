// Figures of the job, now and over the last second; and the ticker, which tells who listens.
#include <libavutil/avutil.h>
#include <string.h>

#include "base/meter.h"
#include "control/verbs.h"
#include "page/page_state.h"

static const int64_t tick_ns = 1000000000 / TICKS;

static const char *const parts[SLUICE_PART_COUNT] = {"demux",    "decode", "upload", "filter",
                                                     "download", "encode", "mux"};

// ---- the last second ----

static void sample_locked(struct page *page)
{
    struct sluice_progress now = {.size = sizeof now};
    sluice_job_progress(page->job, &now);
    struct sample *sample = &page->sample[page->sampled++ % TICKS];
    *sample = (struct sample){.at_ns = meter_now_ns(), .frames = now.frames};
    memcpy(sample->busy_seconds, now.busy_seconds, sizeof sample->busy_seconds);
}

// The sample before the others, a second ago, or as far back as there is one.
static const struct sample *oldest_locked(const struct page *page)
{
    return &page->sample[page->sampled < TICKS ? 0 : page->sampled % TICKS];
}

static void add_last_second_locked(const struct page *page, const struct sluice_progress *now,
                                   json_t *stats)
{
    const struct sample *before = oldest_locked(page);
    double seconds = (double)(meter_now_ns() - before->at_ns) * 1e-9;
    bool known = page->sampled && seconds > 0;
    json_t *busy = json_object();
    for (int k = 0; k < SLUICE_PART_COUNT; k++) {
        double share = known ? (now->busy_seconds[k] - before->busy_seconds[k]) / seconds : 0;
        json_object_set_new(busy, parts[k], json_real(share < 0 ? 0 : share > 1 ? 1 : share));
    }
    json_object_set_new(stats, "busy", busy);
    json_object_set_new(stats, "fps_now",
                        json_real(known ? (double)(now->frames - before->frames) / seconds : 0));
}

// ---- figures ----

static json_t *preview_json(struct page *page)
{
    struct preview_figures figures;
    preview_figures(page->preview, &figures);
    return json_pack("{s:I, s:I, s:i, s:i, s:f, s:i, s:i}", "rendered",
                     (json_int_t)figures.rendered, "encoded", (json_int_t)figures.encoded,
                     "viewers", figures.viewers, "views", figures.views, "render_ms",
                     figures.render_ms, "width", figures.width, "height", figures.height);
}

// Microseconds of the input as seconds; null where there are none.
static json_t *seconds_json(int64_t us)
{
    return us == AV_NOPTS_VALUE ? json_null() : json_real((double)us * 1e-6);
}

json_t *page_player_json(struct page *page)
{
    static const char *const modes[] = {"live", "paused", "playing"};
    struct player_state state;
    player_state(page->player, &state);
    return json_pack("{s:b, s:s, s:b, s:b, s:o, s:o, s:o, s:f, s:f, s:I, s:f, s:o}", "ok", 1,
                     "mode", modes[state.mode], "whole", state.whole, "busy", state.busy, "at",
                     seconds_json(state.at_us), "begin", seconds_json(state.begin_us), "end",
                     seconds_json(state.end_us), "frame_rate", state.frame_rate, "rate", state.rate,
                     "bytes", (json_int_t)state.bytes, "behind", state.behind, "error",
                     text_json(state.error));
}

static json_t *job_stats_locked(struct page *page)
{
    struct sluice_progress now = {.size = sizeof now};
    json_t *stats = stats_json(page->job);
    sluice_job_progress(page->job, &now);
    json_object_set_new(stats, "ring", json_integer(now.ring));
    json_object_set_new(stats, "ring_used", json_integer(now.ring_used));
    json_object_set_new(stats, "seconds_lost", json_real(now.ledger.lost_seconds));
    add_last_second_locked(page, &now, stats);
    return stats;
}

json_t *page_stats_locked(struct page *page)
{
    json_t *stats = page->job ? job_stats_locked(page) : json_pack("{s:b}", "ok", 1);
    if (!page->job && page->last_stats)
        json_object_update(stats, page->last_stats);
    json_object_set_new(stats, "running", json_boolean(page->job));
    json_object_set_new(stats, "input", text_json(page->input.name));
    json_object_set_new(stats, "preview", preview_json(page));
    json_object_set_new(stats, "player", page_player_json(page));
    json_object_set_new(stats, "recording", page_record_json(page));
    return stats;
}

void page_keep_stats_locked(struct page *page)
{
    json_decref(page->last_stats);
    page->last_stats = job_stats_locked(page);
    json_object_set_new(page->last_stats, "fps_now", json_real(0));
}

// ---- the ticker ----

// The source is lost, or is back.
static void watch_source_locked(struct page *page)
{
    struct sluice_progress now = {.size = sizeof now};
    sluice_job_progress(page->job, &now);
    enum input_state state = page->input.state;
    if (state != INPUT_RUNNING && state != INPUT_LOST)
        return;
    if (now.lost != (state == INPUT_LOST))
        page_set_input_locked(page, now.lost ? INPUT_LOST : INPUT_RUNNING, NULL, NULL);
}

static void tick_locked(struct page *page)
{
    if (page->job) {
        sample_locked(page);
        watch_source_locked(page);
    }
    page_catch_up_locked(page);
    if (!events_listeners(page->events))
        return;
    events_post(page->events, EVENT_STATS, page_stats_locked(page));
    events_post(page->events, EVENT_PLAYER, page_player_json(page));
    events_post(page->events, EVENT_INPUT, page_input_json_locked(page));
}

void *page_tick(void *page_)
{
    struct page *page = page_;
    int64_t next_ns = meter_now_ns();
    monitor_lock(&page->lock);
    while (!page->closing) {
        if (meter_now_ns() >= next_ns) {
            tick_locked(page);
            next_ns = meter_now_ns() + tick_ns;
        }
        monitor_wait_until(&page->lock, next_ns);
    }
    monitor_unlock(&page->lock);
    return NULL;
}
