// The HTTP server's parts among themselves; everyone else includes http.h.
//
//   http.c          the thread, the beginning and the end
//   http_visits.c   connections: who may come, deadlines
//   http_calls.c    a request from its head to its answer: bodies, uploads
//   http_rules.c    which requests are refused: Host, token, Origin, method, body
//   http_login.c    the token and its cookie
//   http_answers.c  what is sent, with its headers
//   http_streams.c  bodies without an end, whose clients wait
//   http_tls.c      certificate and key
//   http_listen.c   the address
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/output/http/http.h"
#include "pipeline/output/http/http_listen.h"

// Visits: connections to the server, and those disconnected that libmicrohttpd has not closed yet.
enum { HTTP_VISITS = 2 * HTTP_CONNECTIONS };
enum { HTTP_PIECE = 64 << 10 };  // bytes that a stream or an upload has to move in HTTP_SILENCE
enum { HTTP_DISCARD = 1 << 20 }; // bytes of a refused body that are read, so that the client reads
enum { HTTP_COOKIE_SIZE = 65 };  // a cookie's value and its NUL
enum { HTTP_COOKIE_NAME = 16 };  // ... its name and its NUL
enum { HTTP_TOO_LARGE = 413 };   // libmicrohttpd has called this code by several names
#define HTTP_SECOND INT64_C(1000000000) // nanoseconds

// Who gives wrong tokens: the last so many addresses, until there was none for HTTP_FORGET seconds.
// The first HTTP_TRIES are answered at once, each further one after twice the time.
enum { HTTP_STRANGERS = 64, HTTP_FORGET = 600, HTTP_TRIES = 8 };

struct stranger {
    uint64_t address;
    int wrong;       // tokens; 0: the place is free
    int64_t last_ns; // when the last came
};

// A connection, as the server's thread sees it.
struct visit {
    bool used, streams, uploads, disconnected;
    bool kept;      // a request of it has been answered
    bool malformed; // its request's target is
    int fd;
    uint64_t address; // whose it is: see http_visits.c
    int64_t idle_ns;  // when it came, or its last request was answered
    int64_t until_ns; // the deadline of its request or answer
    // The connection, suspended: its answer is kept back until then; NULL: it is not.
    struct MHD_Connection *held;
    int64_t held_until_ns;
};

struct http {
    const struct http_page *pages;
    void *opaque;
    bool page, guarded;            // see struct http_server; a token is needed
    char cookie[HTTP_COOKIE_SIZE]; // what a client with the token has
    struct log log;
    struct MHD_Daemon *daemon;
    struct http_listener listener;
    int waker, epoll; // `epoll` is libmicrohttpd's
    bool started;
    pthread_t thread;
    atomic_bool done;
    // ---- the thread's ----
    struct visit visit[HTTP_VISITS];
    struct stranger stranger[HTTP_STRANGERS];
    int64_t accepts_ns; // when the next client is accepted
    bool logged_short;
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct client *client; // the list's first
    unsigned wakes;
    bool closing;
};

// A request from its head to its end. The server's thread.
struct http_call_private {
    struct http *http;
    struct MHD_Connection *connection;
    struct visit *visit;
    const struct http_page *page; // NULL: there is none
    struct http_call call;
    bool refused;  // a rule did so: `answer` says why
    bool taken;    // receive() has been called
    bool declined; // receive() did so: answer() says why
    bool answered;
    struct http_answer answer;
    char *body;
    size_t capacity;
    uint64_t received; // bytes of the body
    size_t moved;      // bytes of an upload since its deadline was set
    bool logged_in;    // the answer sets the cookie
    bool wrong;        // the token is
    bool was_held;     // the answer, for that
};

// ---- http_visits.c ----

// Called by libmicrohttpd for a new connection, and for one that closes; and for a request's first
// line, before it is decoded.
void http_note_visit(void *http, struct MHD_Connection *connection, void **visit,
                     enum MHD_ConnectionNotificationCode code);
void *http_note_request(void *http, const char *target, struct MHD_Connection *connection);

struct visit *http_visit_of(struct MHD_Connection *connection);

// True if a client has its share of streams and uploads.
bool http_has_enough(const struct http *http, const struct visit *visit);

// Accept clients, as there is room for them.
void http_accept(struct http *http);

// Keep the answer of a request back: its handler is called again then. The connection keeps its
// place also if the client goes, so that nobody asks faster by not waiting.
void http_hold(struct visit *visit, struct MHD_Connection *connection, int64_t ns);

// Let those go on who have waited, and at the end all.
void http_release(struct http *http, int64_t now_ns);

// Disconnect those whose deadline has passed; milliseconds until the next.
void http_dismiss_late(struct http *http, int64_t now_ns);
int http_patience_ms(const struct http *http, int64_t now_ns);

// ---- http_calls.c ----

// Called by libmicrohttpd for the parts of a request, and at its end.
enum MHD_Result http_serve(void *http, struct MHD_Connection *connection, const char *path,
                           const char *method, const char *version, const char *data,
                           size_t *data_size, void **call);
void http_note_end(void *http, struct MHD_Connection *connection, void **call,
                   enum MHD_RequestTerminationCode code);

// ---- http_rules.c ----

// Find the page of a request: by method and path; NULL: by path only.
const struct http_page *http_find_page(const struct http *http, const char *method,
                                       const char *path);

// The bytes that a request's head announces; UINT64_MAX: some.
uint64_t http_body_size(const struct http_call *call);

// The bytes that a page's bodies may have.
uint64_t http_body_max(const struct http_page *page);

// A rule that refuses the request: a code and a sentence; 0: none does.
unsigned http_check(const struct http_call_private *own, const char **sentence);

// The methods of a path, "GET, HEAD, PUT".
void http_allowed(const struct http *http, const char *path, char *to, size_t size);

// True if the target of a request is one: escapes are whole, and none is a NUL.
bool http_is_target(const char *target);

// ---- http_login.c ----

// POST /login, of servers with a token.
extern const struct http_page http_login_page;

// The name of a server's cookie, "sluice-8080": browsers send the cookies of a host to all of its
// ports, where other servers may have other tokens.
void http_cookie_name(const struct http *http, char name[HTTP_COOKIE_NAME]);

// The cookie of a token. STATUS_MEMORY.
enum status http_make_cookie(const char *token, char cookie[HTTP_COOKIE_SIZE]);

// True if a request has the token or its cookie.
bool http_is_known(const struct http_call_private *own);

// True if a request has something in their place.
bool http_has_token(const struct http_call_private *own);

// Count a wrong token; how long its answer is kept back.
int64_t http_note_wrong(struct http *http, uint64_t address);

// ---- http_answers.c ----

// Fill the answer with a sentence, in the way of the path: JSON under /api/.
void http_say_refusal(struct http_call_private *own, unsigned code, const char *sentence);

// Send the answer, whose text and stream are gone afterwards.
enum MHD_Result http_send(struct http_call_private *own);

// Free an answer that is not sent.
void http_drop_answer(struct http_answer *answer);

// ---- http_streams.c ----

// A response with the answer's stream, which it closes; NULL without memory.
struct MHD_Response *http_stream_response(struct http_call_private *own);

// Resume clients for whom something came since they began to wait.
void http_resume_clients(struct http *http);

void http_wake_thread(const struct http *http);

// ---- http_tls.c ----

// The texts of certificate and key; both NULL without. http_tls_free() overwrites the key.
struct http_tls {
    char *cert, *key;
};
enum status http_tls_read(const struct http_server *server, const struct log *log,
                          struct http_tls *tls);
void http_tls_free(struct http_tls *tls);
