// Pictures: /api/video, /api/snapshot, /api/compare; and the player, /api/player.
#include <libavutil/avutil.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/api.h"
#include "page/visited.h"

// ---- views ----

// Another chain to compare with, which a visitor names, as it is read; false, and answered, for what is
// longer than `other`.
static bool keep_other(const char *text, struct view *view, struct http_answer *answer)
{
    bool fits = strlen(text) < sizeof view->other;
    if (fits)
        strcpy(view->other, text);
    else
        api_refuse(answer, 400, "the other chain is longer than %zu bytes", sizeof view->other - 1);
    return fits;
}

static bool take_other(struct page *page, const char *text, struct view *view,
                       struct http_answer *answer)
{
    char why[1024], *admitted;
    if (!text)
        return true;
    if (!keep_other(text, view, answer)) // before it is read, and shown in a sentence
        return false;
    monitor_lock(&page->lock);
    enum status status = visited_chain(&page->chains, text, &admitted, why, sizeof why);
    monitor_unlock(&page->lock);
    if (status) {
        http_say_error(answer, 422, why);
        return false;
    }
    bool fits = keep_other(admitted, view, answer);
    free(admitted);
    return fits;
}

// The view that a query asks for; false, and answered, if it is none.
static bool take_view(struct page *page, const struct http_call *call, struct view *view,
                      struct http_answer *answer)
{
    static const char *const kinds[] = {"after", "before", "split", "difference", NULL};
    static const char *const codecs[] = {"h264", "mjpeg", NULL};
    int kind = api_word("kind", http_query(call, "kind"), kinds, answer), codec, stage = -1;
    if (kind < 0 || (codec = api_word("codec", http_query(call, "codec"), codecs, answer)) < 0 ||
        !api_query_int(call, "stage", -1, 999, &stage, answer))
        return false;
    *view = (struct view){
        .kind = (enum view_kind)kind, .stage = stage, .codec = (enum view_codec)codec};
    return take_other(page, http_query(call, "other"), view, answer);
}

static void answer_video(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    struct view *view = malloc(sizeof *view);
    if (view && take_view(page, call, view, answer))
        preview_answer_stream(page->preview, view, answer);
    free(view);
}

// ---- stills ----

static void make_snapshot(void *page, const void *view, char **text, size_t *size)
{
    if (preview_picture(((struct page *)page)->preview, view, text, size))
        *text = NULL;
}

bool api_has_picture(const struct page *page, struct http_answer *answer)
{
    struct preview_figures figures;
    preview_figures(page->preview, &figures);
    if (figures.pts_us != AV_NOPTS_VALUE)
        return true;
    api_refuse(answer, 409, "there is no picture yet: %s",
               page->chooses ? "choose an input" : "the input has shown none");
    return false;
}

static void answer_snapshot(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    struct view *view = malloc(sizeof *view);
    if (!view || !take_view(page, call, view, answer) || !api_has_picture(page, answer)) {
        free(view);
        return;
    }
    later_answer(page->later, make_snapshot, view, "image/png", answer);
    if (answer->stream)
        answer->disposition = "inline; filename=\"sluice.png\"";
}

// ---- the player ----

// A number of a body, from min to max; NAN if there is none; false, and answered, if it is no such
// number.
static bool take_number(const json_t *body, const char *name, double min, double max, double *value,
                        struct http_answer *answer)
{
    const json_t *number = json_object_get(body, name);
    *value = number ? json_number_value(number) : NAN;
    if (!number || (json_is_number(number) && *value >= min && *value <= max))
        return true;
    api_refuse(answer, 400, "\"%s\" is a number from %.4g to %.4g", name, min, max);
    return false;
}

// Take an order's numbers, seconds as microseconds; false, and answered, if they are no order.
static bool take_order(const json_t *body, struct player_order *order, struct http_answer *answer)
{
    double at, frames, rate;
    if (!take_number(body, "at", -1e9, 1e9, &at, answer) ||
        !take_number(body, "frames", -1000, 1000, &frames, answer) ||
        !take_number(body, "rate", 0.0625, 16, &rate, answer))
        return false;
    if (order->action == PLAYER_SEEK && isnan(at)) {
        api_refuse(answer, 400, "a seek needs \"at\", seconds");
        return false;
    }
    if (!isnan(frames) && frames != trunc(frames)) {
        api_refuse(answer, 400, "\"frames\" is a whole number");
        return false;
    }
    order->at_us = order->action == PLAYER_SEEK ? (int64_t)llround(at * 1e6) : 0;
    order->frames = isnan(frames) ? 0 : (int)frames;
    order->rate = isnan(rate) ? 0 : rate;
    return true;
}

static void do_order(struct page *page, const json_t *body, struct http_answer *answer)
{
    static const char *const actions[] = {"live", "pause", "play", "seek", "step", NULL};
    const char *word = api_text(body, "action", answer);
    int action = word ? api_word("action", word, actions, answer) : -1;
    struct player_order order = {.action = (enum player_action)action};
    char why[512] = "";
    if (action < 0 || !take_order(body, &order, answer))
        return;
    if (player_do(page->player, &order, why, sizeof why))
        http_say_error(answer, 422, *why ? why : "the player cannot do that now");
    else
        api_say(answer, 200, page_player_json(page));
    events_post(page->events, EVENT_PLAYER, page_player_json(page));
}

static void answer_order(void *page, const struct http_call *call, struct http_answer *answer)
{
    static const char *const names[] = {"action", "at", "frames", "rate", NULL};
    json_t *body = api_body(call, names, answer);
    if (body)
        do_order(page, body, answer);
    json_decref(body);
}

static void answer_player(void *page, const struct http_call *call, struct http_answer *answer)
{
    (void)call;
    api_say(answer, 200, page_player_json(page));
}

const struct http_page view_pages[] = {
    {"GET", "/api/video", answer_video, .chunked = true},
    {"GET", "/api/snapshot", answer_snapshot, .chunked = true},
    {"GET", "/api/player", answer_player},
    {"POST", "/api/player", answer_order, .body_max = SMALL_BODY_MAX},
    {NULL},
};
