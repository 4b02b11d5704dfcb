// Streams: a client for whom there is nothing is suspended, and resumed by http_wake().
#define _GNU_SOURCE
#include "pipeline/output/http/http_internal.h"

#include <assert.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/meter.h"

// A client of a stream. While it waits it is suspended: libmicrohttpd does not touch it until the
// thread resumes it, so its connection cannot be closed meanwhile.
struct client {
    struct http *http;
    struct http_stream *stream;
    struct MHD_Connection *connection;
    struct visit *visit;
    // ---- guarded by lock ----
    bool waits, gone;
    unsigned wakes; // when it began to wait
    struct client *next;
};

void http_wake_thread(const struct http *http)
{
    const uint64_t one = 1;
    ssize_t written = write(http->waker, &one, sizeof one);
    (void)written; // a full counter: the thread is awake
}

void http_wake(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    http->wakes++;
    bool any = http->client;
    pthread_mutex_unlock(&http->lock);
    if (any)
        http_wake_thread(http);
}

// True if a client has closed its connection: libmicrohttpd does not watch suspended ones.
static bool has_gone(const struct client *client)
{
    struct pollfd wait = {.fd = client->visit->fd, .events = POLLRDHUP};
    return poll(&wait, 1, 0) > 0;
}

int http_streams(struct http *http)
{
    int streams = 0;
    bool left = false;
    pthread_mutex_lock(&http->lock);
    for (struct client *client = http->client; client; client = client->next) {
        if (client->waits && !client->gone)
            left |= client->gone = has_gone(client);
        streams += !client->gone;
    }
    pthread_mutex_unlock(&http->lock);
    if (left)
        http_wake_thread(http);
    return streams;
}

void http_resume_clients(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    for (struct client *client = http->client; client; client = client->next)
        if (client->waits && (client->wakes != http->wakes || client->gone || http->closing)) {
            client->waits = false;
            MHD_resume_connection(client->connection);
        }
    pthread_mutex_unlock(&http->lock);
}

static void wait_for_more(struct client *client, unsigned wakes)
{
    struct http *http = client->http;
    MHD_suspend_connection(client->connection);
    pthread_mutex_lock(&http->lock);
    client->wakes = wakes;
    client->waits = true;
    pthread_mutex_unlock(&http->lock);
}

static ssize_t read_stream(void *client_, uint64_t at, char *to, size_t size)
{
    struct client *client = client_;
    struct http *http = client->http;
    (void)at;
    pthread_mutex_lock(&http->lock);
    unsigned wakes = http->wakes;
    bool over = http->closing || client->gone;
    pthread_mutex_unlock(&http->lock);
    ssize_t got = over ? HTTP_END : client->stream->read(client->stream, to, size);
    assert(got <= (ssize_t)size);
    client->visit->until_ns = got > 0 ? meter_now_ns() + HTTP_SILENCE * HTTP_SECOND : INT64_MAX;
    if (got < 0)
        return got == HTTP_BROKEN ? MHD_CONTENT_READER_END_WITH_ERROR
                                  : MHD_CONTENT_READER_END_OF_STREAM;
    if (got == 0)
        wait_for_more(client, wakes);
    return got;
}

static void close_stream(void *client_)
{
    struct client *client = client_;
    struct http *http = client->http;
    pthread_mutex_lock(&http->lock);
    struct client **at = &http->client;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    pthread_mutex_unlock(&http->lock);
    client->stream->close(client->stream);
    free(client);
}

static struct client *add_client(struct http_call_private *own)
{
    struct http *http = own->http;
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    *client = (struct client){http, own->answer.stream, own->connection, own->visit};
    own->visit->streams = true;
    pthread_mutex_lock(&http->lock);
    client->next = http->client;
    http->client = client;
    pthread_mutex_unlock(&http->lock);
    return client;
}

struct MHD_Response *http_stream_response(struct http_call_private *own)
{
    uint64_t size = own->answer.size ? own->answer.size : MHD_SIZE_UNKNOWN;
    struct client *client = add_client(own);
    if (!client) {
        own->answer.stream->close(own->answer.stream);
        return NULL;
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback(size, HTTP_PIECE, read_stream, client, close_stream);
    if (!response)
        close_stream(client);
    else if (!own->answer.size && !own->page->chunked) // not every viewer decodes chunks
        MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    return response;
}
