#include "pipeline/mjpeg.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/http.h"

#define BOUNDARY "sluice"
#define NEXT_PART "\r\n--" BOUNDARY "\r\n"

struct mjpeg {
    struct http *http;
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    AVPacket *newest;
    unsigned shown; // pictures so far; 0: none
    // ---- mjpeg_show()'s ----
    AVPacket *next;
};

// A client, in the midst of a part: what comes before the picture, the picture, what comes behind.
struct watcher {
    struct http_stream base;
    struct mjpeg *mjpeg;
    unsigned seen; // the picture it has or had; 0: none
    AVPacket *picture;
    char before[128];
    size_t before_size, at;
};

// ---- the stream ----

// Begin with the newest picture, if it is new to this client.
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

// Copy what is left of a piece that begins at `begin` of the part.
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

static void answer_stream(void *mjpeg_, struct http_answer *answer)
{
    struct mjpeg *mjpeg = mjpeg_;
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

static void answer_snapshot(void *mjpeg_, struct http_answer *answer)
{
    struct mjpeg *mjpeg = mjpeg_;
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

static void answer_page(void *mjpeg, struct http_answer *answer)
{
    (void)mjpeg;
    http_say(answer, 200, "text/html; charset=utf-8",
             "<!DOCTYPE html>\n<html lang=\"en\">\n<title>sluice</title>\n"
             "<body style=\"margin:0;background:#000\">\n"
             "<img src=\"stream\" alt=\"live picture\" "
             "style=\"width:100vw;height:100vh;object-fit:contain\">\n</html>\n");
}

static const struct http_page pages[] = {
    {"/", answer_page}, {"/stream", answer_stream}, {"/snapshot.jpg", answer_snapshot}, {NULL}};

// ---- the other side ----

enum status mjpeg_create(const char *address, const struct log *log, struct mjpeg **mjpeg)
{
    struct mjpeg *made = *mjpeg = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    const struct http_request request = {address, "the picture", pages, made};
    pthread_mutex_init(&made->lock, NULL);
    made->newest = av_packet_alloc();
    made->next = av_packet_alloc();
    enum status status =
        made->newest && made->next ? http_create(&request, log, &made->http) : STATUS_MEMORY;
    if (status)
        mjpeg_destroy(mjpeg);
    return status;
}

void mjpeg_destroy(struct mjpeg **mjpeg)
{
    if (!*mjpeg)
        return;
    http_destroy(&(*mjpeg)->http);
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
    pthread_mutex_unlock(&mjpeg->lock);
    av_packet_unref(old);
    http_wake(mjpeg->http);
    return STATUS_OK;
}

int mjpeg_watchers(struct mjpeg *mjpeg)
{
    return http_streams(mjpeg->http);
}
