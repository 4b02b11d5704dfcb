// A small HTTP server for a table of pages.
//
// One thread (libmicrohttpd runs in it) serves all connections and waits for none: a slow, stuck or
// hostile client costs its connection's few kilobytes and holds nothing up, and the end is at once.
//
//   - HTTP_CONNECTIONS at a time, HTTP_CLIENT_CONNECTIONS of one address (IPv6: of one network of
//     64 bits); one more replaces the oldest of them that is no stream, so that slow clients do not
//     keep others out. HTTP_CLIENT_STREAMS of one address
//   - limits: HTTP_REQUEST seconds for a whole request, HTTP_ANSWER for a whole answer, and
//     HTTP_SILENCE without a byte moved, or without 64 KB of a stream that has them
//   - without file descriptors clients wait, which is logged once
//   - GET and HEAD; other methods get 405, other paths 404
//   - a server on loopback answers to "localhost" and to numbers only, others get 421, against DNS
//     rebinding
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/status.h"

enum { HTTP_CONNECTIONS = 64, HTTP_CLIENT_CONNECTIONS = 48, HTTP_CLIENT_STREAMS = 24 };
enum { HTTP_SILENCE = 10, HTTP_REQUEST = 5, HTTP_ANSWER = 30 }; // seconds

// A body without an end, embedded in an object of the page's.
struct http_stream {
    // Write up to `size` bytes and return how many; 0: nothing now, called again after http_wake();
    // below 0: the end.
    ssize_t (*read)(struct http_stream *stream, char *to, size_t size);
    // Free the stream: the client has gone, or the server ends.
    void (*close)(struct http_stream *stream);
};

// An answer: text or a stream.
struct http_answer {
    unsigned code;    // 0: 200
    const char *type; // of the content; static
    char *text;       // malloc()ed, the server frees it; NULL: out of memory, unless there is a
    size_t size;      // stream
    struct http_stream *stream; // (optional) the server closes it
};

struct http_page {
    const char *path;
    // Fill the zeroed answer. Called by the server's thread; must not block.
    void (*answer)(void *opaque, struct http_answer *answer);
};

struct http_request {
    // "PORT" and ":PORT" on loopback, "HOST:PORT", "[V6]:PORT"; "0.0.0.0:PORT" and "[::]:PORT" are
    // everywhere. Port 0 is any that is free: http_url() says which.
    const char *address;
    const char *name;             // of the pages, for messages: "metrics"
    const struct http_page *page; // ended by a NULL path; outlives the server
    void *opaque;                 // of answer()
};

struct http;

// Listen. The log outlives the server. STATUS_USAGE with a sentence if the address is none,
// STATUS_FAILED if it cannot be listened on.
enum status http_create(const struct http_request *request, const struct log *log,
                        struct http **http);

// Close every connection, whatever the clients do, and free everything. Nobody may be in any other
// function. Leaves NULL, accepts NULL behind it.
void http_destroy(struct http **http);

// "http://127.0.0.1:9464". Lives as long as the server.
const char *http_url(const struct http *http);

// Wake streams that had nothing to read. Any thread; does not wait.
void http_wake(struct http *http);

// The number of streams. Finds clients that went while there was nothing to send. Any thread; does
// not wait.
int http_streams(struct http *http);

// Fill an answer with a copy of a text.
void http_say(struct http_answer *answer, unsigned code, const char *type, const char *text);
