#include "pipeline/output/http/mjpeg.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "pipeline/output/http/http.h"

#define BOUNDARY "sluice"
#define NEXT_PART "\r\n--" BOUNDARY "\r\n"

struct mjpeg {
    struct http *http;
    char *title; // as HTML
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    AVPacket *newest;
    unsigned shown;   // pictures so far; 0: none
    int64_t shown_ns; // when the newest came
    // ---- mjpeg_show()'s ----
    AVPacket *next;
};

// A client and its part: the head, the picture, the boundary behind it.
struct watcher {
    struct http_stream base;
    struct mjpeg *mjpeg;
    unsigned seen; // the picture it has or had; 0: none
    AVPacket *picture;
    char before[128];
    size_t before_size, at;
};

// ---- the stream ----

// Begin a part with the newest picture, if it is new to this client.
static bool take_newest(struct watcher *watcher)
{
    struct mjpeg *mjpeg = watcher->mjpeg;
    pthread_mutex_lock(&mjpeg->lock);
    bool taken =
        watcher->seen != mjpeg->shown && av_packet_ref(watcher->picture, mjpeg->newest) >= 0;
    bool first = !watcher->seen;
    if (taken)
        watcher->seen = mjpeg->shown;
    pthread_mutex_unlock(&mjpeg->lock);
    watcher->at = 0;
    watcher->before_size = 0;
    if (taken)
        watcher->before_size =
            (size_t)snprintf(watcher->before, sizeof watcher->before,
                             "%sContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n",
                             first ? "--" BOUNDARY "\r\n" : "", watcher->picture->size);
    return taken;
}

// Copy the rest of a piece that begins at `begin` of the part.
static size_t copy_piece(struct watcher *watcher, size_t begin, const void *piece,
                         size_t piece_size, char *to, size_t size)
{
    if (watcher->at < begin || watcher->at >= begin + piece_size)
        return 0;
    size_t left = begin + piece_size - watcher->at, count = left < size ? left : size;
    memcpy(to, (const char *)piece + (watcher->at - begin), count);
    watcher->at += count;
    return count;
}

static ssize_t watcher_read(struct http_stream *stream, char *to, size_t size)
{
    struct watcher *watcher = (struct watcher *)stream;
    const AVPacket *picture = watcher->picture;
    if (!picture->data && !take_newest(watcher))
        return 0;
    size_t before = watcher->before_size, data = (size_t)picture->size, done = 0;
    done += copy_piece(watcher, 0, watcher->before, before, to, size);
    done += copy_piece(watcher, before, picture->data, data, to + done, size - done);
    done +=
        copy_piece(watcher, before + data, NEXT_PART, strlen(NEXT_PART), to + done, size - done);
    if (watcher->at == before + data + strlen(NEXT_PART))
        av_packet_unref(watcher->picture);
    return (ssize_t)done;
}

static void watcher_close(struct http_stream *stream)
{
    struct watcher *watcher = (struct watcher *)stream;
    av_packet_free(&watcher->picture);
    free(watcher);
}

// ---- pages ----

static void answer_stream(void *mjpeg_, const struct http_call *call, struct http_answer *answer)
{
    struct mjpeg *mjpeg = mjpeg_;
    (void)call;
    if (mjpeg_watchers(mjpeg) >= MJPEG_WATCHERS) {
        http_say(answer, 503, "text/plain", "As many as can be are watching already.\n");
        return;
    }
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (!watcher)
        return;
    *watcher = (struct watcher){
        .base = {watcher_read, watcher_close}, .mjpeg = mjpeg, .picture = av_packet_alloc()};
    answer->type = "multipart/x-mixed-replace; boundary=" BOUNDARY;
    if (watcher->picture)
        answer->stream = &watcher->base;
    else
        watcher_close(&watcher->base);
}

static void answer_snapshot(void *mjpeg_, const struct http_call *call, struct http_answer *answer)
{
    struct mjpeg *mjpeg = mjpeg_;
    (void)call;
    answer->type = "image/jpeg";
    pthread_mutex_lock(&mjpeg->lock);
    bool shown = mjpeg->shown;
    if (shown)
        answer->text = malloc((size_t)mjpeg->newest->size);
    if (answer->text) {
        answer->size = (size_t)mjpeg->newest->size;
        memcpy(answer->text, mjpeg->newest->data, answer->size);
    }
    pthread_mutex_unlock(&mjpeg->lock);
    if (!shown)
        http_say(answer, 503, "text/plain", "There is no picture yet.\n");
}

static void answer_age(void *mjpeg_, const struct http_call *call, struct http_answer *answer)
{
    struct mjpeg *mjpeg = mjpeg_;
    char text[32];
    (void)call;
    pthread_mutex_lock(&mjpeg->lock);
    int64_t age_ms = mjpeg->shown ? (meter_now_ns() - mjpeg->shown_ns) / 1000000 : -1;
    pthread_mutex_unlock(&mjpeg->lock);
    snprintf(text, sizeof text, "%lld\n", (long long)age_ms);
    http_say(answer, 200, "text/plain", text);
}

// The picture fills the window. Once a second the page asks how old it is, says so when none comes,
// and begins the stream anew when the server is back.
static const char page[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>%s</title>\n"
    "<body style=\"margin:0;background:#000;color:#fff;font:16px sans-serif\">\n"
    "<img id=\"picture\" src=\"stream\" alt=\"live picture\" "
    "style=\"display:block;width:100vw;height:100vh;object-fit:contain\">\n"
    "<div style=\"position:fixed;left:8px;top:8px;background:#0008;padding:2px 6px\">%s "
    "<span id=\"state\"></span></div>\n<script>\n"
    "let gone = false\n"
    "const state = document.getElementById('state'), picture = document.getElementById('picture')\n"
    "setInterval(() => fetch('age').then(answer => answer.text()).then(age => {\n"
    "  if (gone) picture.src = 'stream?' + Date.now()\n"
    "  gone = false\n"
    "  state.textContent = age < 0 ? 'no picture yet'\n"
    "    : age > 3000 ? 'no new picture for ' + Math.round(age / 1000) + ' s' : ''\n"
    "}).catch(() => { gone = true; state.textContent = 'not connected' }), 1000)\n"
    "</script>\n</html>\n";

static void answer_page(void *mjpeg_, const struct http_call *call, struct http_answer *answer)
{
    const struct mjpeg *mjpeg = mjpeg_;
    size_t size = sizeof page + 2 * strlen(mjpeg->title);
    char *text = malloc(size);
    (void)call;
    if (!text)
        return;
    snprintf(text, size, page, mjpeg->title, mjpeg->title);
    http_say(answer, 200, "text/html; charset=utf-8", text);
    free(text);
}

static const struct http_page pages[] = {{"GET", "/", answer_page},
                                         {"GET", "/age", answer_age},
                                         {"GET", "/stream", answer_stream},
                                         {"GET", "/snapshot.jpg", answer_snapshot},
                                         {NULL}};

// A copy escaped for HTML; NULL without memory.
static char *html_of(const char *text)
{
    char *made = malloc(6 * strlen(text) + 1), *to = made;
    for (; made && *text; text++) {
        const char *entity = *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity)
            to = stpcpy(to, entity);
        else
            *to++ = *text;
    }
    if (made)
        *to = 0;
    return made;
}

// ---- the other side ----

enum status mjpeg_create(const char *address, const char *title, const struct log *log,
                         struct mjpeg **mjpeg)
{
    struct mjpeg *made = *mjpeg = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    const struct http_server server = {address, "the picture", pages, made};
    pthread_mutex_init(&made->lock, NULL);
    made->title = html_of(title ? title : "sluice");
    made->newest = av_packet_alloc();
    made->next = av_packet_alloc();
    enum status status = made->title && made->newest && made->next
                             ? http_create(&server, log, &made->http)
                             : STATUS_MEMORY;
    if (status)
        mjpeg_destroy(mjpeg);
    return status;
}

void mjpeg_destroy(struct mjpeg **mjpeg)
{
    if (!*mjpeg)
        return;
    http_destroy(&(*mjpeg)->http);
    free((*mjpeg)->title);
    av_packet_free(&(*mjpeg)->newest);
    av_packet_free(&(*mjpeg)->next);
    pthread_mutex_destroy(&(*mjpeg)->lock);
    free(*mjpeg);
    *mjpeg = NULL;
}

const char *mjpeg_url(const struct mjpeg *mjpeg)
{
    return http_url(mjpeg->http);
}

enum status mjpeg_show(struct mjpeg *mjpeg, const AVPacket *jpeg)
{
    assert(jpeg->size > 0);
    if (av_packet_ref(mjpeg->next, jpeg) < 0)
        return STATUS_MEMORY;
    pthread_mutex_lock(&mjpeg->lock);
    AVPacket *old = mjpeg->newest;
    mjpeg->newest = mjpeg->next;
    mjpeg->next = old;
    mjpeg->shown++;
    mjpeg->shown_ns = meter_now_ns();
    pthread_mutex_unlock(&mjpeg->lock);
    av_packet_unref(old);
    http_wake(mjpeg->http);
    return STATUS_OK;
}

int mjpeg_watchers(struct mjpeg *mjpeg)
{
    return http_streams(mjpeg->http);
}
