// A small HTTP server: a table of pages, for whoever asks.
//
// One thread (libmicrohttpd runs in it) serves all connections and waits for none, so a client that
// is slow, stuck or hostile costs its connection's few kilobytes and holds nothing up. A thread for
// each connection would cost a stack each, and at the end would have to be waited for wherever it
// hangs; with one, the end is at once.
//
//   - HTTP_CONNECTIONS at a time, HTTP_CLIENT_CONNECTIONS of one address (IPv6: of one network of
//     64 bits); one more takes the place of the oldest of them that is no stream, so that whoever
//     asks at once is served, however many ask slowly. HTTP_CLIENT_STREAMS of one address
//   - a whole request may take HTTP_REQUEST seconds, a whole answer HTTP_ANSWER; who moves no byte
//     for HTTP_SILENCE, or of a stream not 64 KB when they are there, is dismissed
//   - without file descriptors clients wait, and the log says so once
//   - GET and HEAD; other methods get 405, other paths 404
//   - a server on loopback answers to "localhost" and to numbers only, others get 421: a name of
//     somebody else's that leads here (DNS rebinding) must not show our pages to his
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/status.h"

enum { HTTP_CONNECTIONS = 64, HTTP_CLIENT_CONNECTIONS = 48, HTTP_CLIENT_STREAMS = 24 };
enum { HTTP_SILENCE = 10, HTTP_REQUEST = 5, HTTP_ANSWER = 30 }; // seconds

// A body without an end, part of an object of the page's.
struct http_stream {
    // Write up to `size` bytes and return how many; 0: there is nothing now, ask again after
    // http_wake(); below 0: the end.
    ssize_t (*read)(struct http_stream *stream, char *to, size_t size);
    // The client has gone, or the server goes. Frees the stream.
    void (*close)(struct http_stream *stream);
};

// What a page gives: text or a stream.
struct http_answer {
    unsigned code;    // 0: 200
    const char *type; // of the content; static
    char *text;       // malloc()ed, the server frees it; NULL: out of memory, unless there is a
    size_t size;      // stream
    struct http_stream *stream; // (optional) the server closes it
};

struct http_page {
    const char *path;
    // Fill the zeroed answer. Called by the server's thread, which must not be kept waiting.
    void (*answer)(void *opaque, struct http_answer *answer);
};

struct http_request {
    // "PORT" and ":PORT" on loopback, "HOST:PORT", "[V6]:PORT"; "0.0.0.0:PORT" and "[::]:PORT" are
    // everywhere. Port 0 is any that is free: http_url() says which.
    const char *address;
    const char *name;             // what there is to see, for messages: "metrics"
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

// There may be something to read for streams that had nothing. Any thread; does not wait.
void http_wake(struct http *http);

// How many streams there are. Clients that went while there was nothing to send are found out here,
// and no longer count. Any thread; does not wait.
int http_streams(struct http *http);

// Fill an answer with a copy of a text.
void http_say(struct http_answer *answer, unsigned code, const char *type, const char *text);
