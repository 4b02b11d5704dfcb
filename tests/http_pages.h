// A server of pages that echo what is asked, take uploads and stream, for tests of the HTTP server.
#pragma once

#include "tests/unit.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/output/http/http.h"
#include "tests/http_client.h"

#define HOST "Host: localhost\r\n"
#define END "Connection: close\r\n\r\n"
#define JSON "Content-Type: application/json\r\n"
#define LOGIN(more) "POST /login HTTP/1.1\r\n" HOST more "Content-Length: 6\r\n" END

// The uploads as their taker has seen them; written by the server's thread.
static struct {
    atomic_int begun, answered, gone;
    atomic_size_t bytes;
    atomic_size_t refuse_at; // bytes; 0: at the beginning
} upload;

struct upload_state {
    size_t bytes;
    unsigned sum;
};

static inline bool take_upload(void *opaque, const struct http_call *call, void **state,
                               const char *data, size_t size)
{
    struct upload_state *own = *state;
    (void)opaque, (void)call;
    if (!data) {
        free(own);
        upload.gone++;
        return true;
    }
    if (!own)
        upload.begun++;
    if (!own)
        own = *state = calloc(1, sizeof *own);
    own->bytes += size;
    upload.bytes += size;
    for (size_t k = 0; k < size; k++)
        own->sum = own->sum * 31 + (unsigned char)data[k];
    return own->bytes < upload.refuse_at;
}

static inline void answer_upload(void *opaque, const struct http_call *call,
                                 struct http_answer *answer)
{
    struct upload_state *own = call->state;
    char text[64];
    (void)opaque;
    snprintf(text, sizeof text, "%zu %u\n", own->bytes, own->sum);
    http_say(answer, own->bytes < upload.refuse_at ? 200 : 507, "text/plain", text);
    free(own);
    upload.answered++;
}

static inline void answer_echo(void *opaque, const struct http_call *call,
                               struct http_answer *answer)
{
    char text[8192];
    const char *a = http_query(call, "a"), *b = http_query(call, "b"), *x = http_header(call, "x");
    (void)opaque;
    snprintf(text, sizeof text, "%s %s a=%s b=%s x=%s %zu:%s\n", call->method, call->path,
             a ? a : "(none)", b ? b : "(none)", x ? x : "(none)", call->body_size, call->body);
    http_say(answer, 0, "text/plain", text);
}

static char style[] = "body{}";

static inline void answer_style(void *opaque, const struct http_call *call,
                                struct http_answer *answer)
{
    (void)opaque, (void)call;
    *answer = (struct http_answer){.type = "text/css",
                                   .text = style,
                                   .size = strlen(style),
                                   .borrowed = true,
                                   .cache = "no-cache",
                                   .encoding = "gzip",
                                   .disposition = "attachment; filename=\"a.css\"",
                                   .etag = "\"1a\""};
}

// A stream of ten bytes, in fives, or one that waits.
struct digits {
    struct http_stream base;
    int pieces;
    bool waits;
};

static inline ssize_t read_digits(struct http_stream *stream, char *to, size_t size)
{
    struct digits *digits = (struct digits *)stream;
    assert(size >= 5);
    if (digits->pieces == 2)
        return digits->waits ? 0 : -1;
    memcpy(to, digits->pieces++ ? "56789" : "01234", 5);
    return 5;
}

static inline void close_digits(struct http_stream *stream)
{
    free(stream);
}

static inline void answer_digits(void *opaque, const struct http_call *call,
                                 struct http_answer *answer)
{
    struct digits *digits = calloc(1, sizeof *digits);
    (void)opaque;
    *digits = (struct digits){{read_digits, close_digits}, 0, http_query(call, "wait") != NULL};
    answer->type = "text/plain";
    answer->size = http_query(call, "sized") ? 10 : 0;
    answer->stream = &digits->base;
}

static const struct http_page pages[] = {
    {"GET", "/", answer_echo, .open = true},
    {"GET", "/style.css", answer_style},
    {"GET", "/api/echo", answer_echo},
    {"PUT", "/api/echo", answer_echo, .body_max = 4000},
    {"PATCH", "/api/echo", answer_echo, .body_max = 4000},
    {"POST", "/api/undo", answer_echo},
    {"GET", "/api/files/*", answer_echo},
    {"POST", "/api/upload", answer_upload, .body_max = 64 << 20, .receive = take_upload},
    {"POST", "/api/any", answer_upload, .receive = take_upload},
    {"GET", "/digits", answer_digits},
    {"GET", "/chunks", answer_digits, .chunked = true},
    {NULL},
};

static inline struct http *serve_as(const struct http_server *differences)
{
    struct http *http;
    struct http_server server = *differences;
    server.address = "127.0.0.1:0";
    server.name = "a test";
    server.pages = pages;
    upload.begun = upload.answered = upload.gone = 0;
    upload.bytes = 0;
    upload.refuse_at = SIZE_MAX;
    assert_int_equal(http_create(&server, &silent, &http), STATUS_OK);
    return http;
}

static inline struct http *serve(void)
{
    return serve_as(&(struct http_server){.page = true});
}

static inline void destroy_at_once(struct http **http)
{
    int64_t begin = meter_now_ns();
    http_destroy(http);
    assert_true(meter_now_ns() - begin < second_ns);
}

static inline void await(atomic_int *counter, int count)
{
    int64_t until = meter_now_ns() + 5 * second_ns;
    while (*counter != count) {
        assert_true(meter_now_ns() < until);
        wait_ms(5);
    }
}

// A request, and what its answer has to be.
struct row {
    const char *request;
    int code;
    const char *holds; // (optional)
};

static inline void expect(const struct http *http, const struct row *row)
{
    char answer[16384];
    int code = exchange(http_url(http), row->request, answer, sizeof answer);
    if (code != row->code)
        fail_msg("%s\nis answered by %d instead of %d:\n%s", row->request, code, row->code, answer);
    if (row->holds && !strstr(answer, row->holds))
        fail_msg("%s\nis answered without '%s':\n%s", row->request, row->holds, answer);
}

#define EXPECT_ALL(http, rows)                                    \
    for (size_t k_ = 0; k_ < sizeof(rows) / sizeof *(rows); k_++) \
    expect(http, &(rows)[k_])
