// A small HTTP server for a table of pages.
//
// One thread (libmicrohttpd runs in it) serves all connections and waits for none: a slow, stuck or
// hostile client costs its connection's few kilobytes and holds nothing up, and the end is at once.
//
//   - HTTP_CONNECTIONS at a time, HTTP_CLIENT_CONNECTIONS of one address (IPv6: of one network of
//     64 bits); one more replaces the one of them that has been idle or asking for longest, so that
//     slow clients do not keep others out. HTTP_CLIENT_STREAMS streams and uploads of one address,
//     HTTP_PAGE_STREAMS for pages, whose viewers have several and may come by one proxy
//   - limits: HTTP_REQUEST seconds for a whole request, HTTP_ANSWER for a whole answer, and
//     HTTP_SILENCE without a byte moved, without 64 KB of a stream that has them, or of an upload;
//     connections are kept for further requests, HTTP_SILENCE seconds
//   - a wrong token is answered ever later after the first eight of one address (of the last 64 that
//     gave any), up to 32 s, and holds its connection meanwhile; right ones are answered at once
//   - without file descriptors clients wait, which is logged once
//   - what no page answers is refused by a sentence, under /api/ as JSON: 400 bad escapes, 401 without
//     the token, 403 other sites' pages, 404 no such path, 405 another method (with Allow), 413 body
//     too large, 415 body that is no JSON
//   - a server on loopback answers to "localhost" and to numbers only, others get 421, against DNS
//     rebinding
//   - paths with ".." are those of no page; a last "*" of a page may stand for anything else
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/status.h"

enum { HTTP_CONNECTIONS = 64, HTTP_CLIENT_CONNECTIONS = 48 };
enum { HTTP_CLIENT_STREAMS = 24, HTTP_PAGE_STREAMS = 40 };
enum { HTTP_SILENCE = 10, HTTP_REQUEST = 5, HTTP_ANSWER = 30 }; // seconds

enum { HTTP_END = -1, HTTP_BROKEN = -2 };

// A body without an end, embedded in an object of the page's.
struct http_stream {
    // Write up to `size` bytes and return how many; 0: nothing now, called again after http_wake();
    // HTTP_END behind the last; HTTP_BROKEN: it breaks off, which the client sees.
    ssize_t (*read)(struct http_stream *stream, char *to, size_t size);
    // Free the stream: the client has gone, or the server ends.
    void (*close)(struct http_stream *stream);
};

// A request, for the time of answer() and receive().
struct http_call {
    const char *method, *path; // "GET" also for HEAD; the path is decoded, without its query
    const char *body;          // NUL behind it; "" without
    size_t body_size;
    void *state; // what receive() made
    struct http_call_private *own;
};

// A value of the query, decoded; "" for "?name" alone; NULL if it is absent. Lives as long as the call.
const char *http_query(const struct http_call *call, const char *name);

// A header's value; NULL if it is absent. Lives as long as the call.
const char *http_header(const struct http_call *call, const char *name);

// An answer: text or a stream. The strings that are no text are copied when answer() has returned.
struct http_answer {
    unsigned code;    // 0: 200
    const char *type; // the content's
    char *text;       // malloc()ed, the server frees it; NULL: out of memory, unless there is a
    size_t size;      // stream; of a stream: its length, 0: not known
    struct http_stream *stream; // (optional) the server closes it
    bool borrowed;              // the text outlives the server, which does not free it
    const char *cache;          // Cache-Control; NULL: "no-store"
    const char *encoding;       // (optional) Content-Encoding: "gzip"
    const char *disposition;    // (optional) Content-Disposition: "attachment; filename=\"a.mkv\""
    const char *etag;           // (optional) with quotes; a request that has it is answered by 304
};

// A row of the server's table. Several may have the same path and other methods.
struct http_page {
    const char *method; // "GET" (answers HEAD, too), "PUT", "PATCH", "POST", "DELETE"
    const char *path;   // "/api/chain"; NULL ends the table; a last "*" stands for the rest
    // Fill the zeroed answer. Called by the server's thread; must not block.
    void (*answer)(void *opaque, const struct http_call *call, struct http_answer *answer);
    size_t body_max; // larger bodies get 413; 0: no body, or what receive() takes
    bool open;       // needs no token
    bool chunked;    // streams are sent in chunks to clients of HTTP/1.1
    // (optional) Take the body of an upload piece by piece, in the server's thread; *state is the
    // taker's, NULL at first. Called before the first byte with size 0 and data "": a refusal then
    // saves the client the sending. At the end answer() is called, with call->state, and frees it.
    // False: refuse; the rest is thrown away, and answer() says why and frees the state. Size 0 and
    // data NULL: the client has gone or the server ends; free the state, answer() is not called.
    bool (*receive)(void *opaque, const struct http_call *call, void **state, const char *data,
                    size_t size);
};

struct http_server {
    // "PORT" and ":PORT" on loopback, "HOST:PORT", "[V6]:PORT"; "0.0.0.0:PORT" and "[::]:PORT" are
    // everywhere. Port 0 is any that is free: http_url() says which.
    const char *address;
    const char *name;              // the pages', for messages: "metrics"
    const struct http_page *pages; // ended by a NULL path; outlives the server
    void *opaque;                  // answer()'s
    // (optional) What every request needs, but of open pages: "Authorization: Bearer TOKEN", or the
    // cookie that POST /login with the token as body sets. Others get 401.
    const char *token;
    const char *tls_cert, *tls_key; // (optional) PEM files: https
    // Pages for browsers: headers that keep other sites' scripts and frames away; requests that
    // change something (all but GET and HEAD) must come from the server's own pages or from no
    // browser, and those under /api/ not from other sites' pages, or they get 403; bodies that
    // receive() does not take must be application/json (415).
    bool page;
};

struct http;

// Listen. The log outlives the server. STATUS_USAGE with a sentence if the address is none,
// STATUS_OUTPUT if it cannot be listened on, STATUS_FAILED if there is no thread for it.
enum status http_create(const struct http_server *server, const struct log *log,
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

// Fill an answer with {"ok":false,"error":"the sentence"}.
void http_say_error(struct http_answer *answer, unsigned code, const char *sentence);

// True if an address, as in struct http_server, can be reached from this machine only. False, too,
// of what is no address. Resolves names.
bool http_is_local(const char *address);

// A fresh token, 128 random bits in hexadecimal digits. False without randomness.
enum { HTTP_TOKEN_SIZE = 33 };
bool http_make_token(char token[HTTP_TOKEN_SIZE]);
