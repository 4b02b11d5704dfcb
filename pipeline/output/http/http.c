#define _GNU_SOURCE
#include "pipeline/output/http/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/http/http_listen.h"

enum { MAX_READ = 64 << 10, MAX_HEADERS = 16 << 10 };

// Visits: connections to the server, and those disconnected that libmicrohttpd has not closed yet.
enum { MAX_VISITS = 2 * HTTP_CONNECTIONS };

static const int64_t second_ns = 1000000000, accept_pause_ns = 250 * INT64_C(1000000);

// A connection, as the server's thread sees it.
struct visit {
    bool used, streams, disconnected;
    int fd;
    uint64_t address;           // see address_key()
    int64_t begin_ns, until_ns; // of the connection; the deadline of its request or answer
};

// A client of a stream. While it waits it is suspended: libmicrohttpd does not touch it until the
// thread resumes it, so its connection cannot be closed meanwhile.
struct client {
    struct http *http;
    struct http_stream *stream;
    struct MHD_Connection *connection;
    struct visit *visit;
    int fd;
    // ---- guarded by lock ----
    bool waits, gone;
    unsigned wakes; // when it began to wait
    struct client *next;
};

struct http {
    const struct http_page *page;
    void *opaque;
    struct log log;
    struct MHD_Daemon *daemon;
    struct http_listener listener;
    int waker, epoll; // `epoll` is libmicrohttpd's
    bool started;
    pthread_t thread;
    atomic_bool done;
    // ---- the thread's ----
    struct visit visit[MAX_VISITS];
    int64_t accepts_ns; // when the next client is accepted
    bool logged_short;
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct client *client; // the list's first
    unsigned wakes;
    bool closing;
};

// ---- streams ----

static void wake_thread(const struct http *http)
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
        wake_thread(http);
}

// True if a client has closed its connection: libmicrohttpd does not watch suspended ones. After
// the request nothing is read but the end.
static bool has_gone(const struct client *client)
{
    char byte;
    ssize_t got = recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
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
        wake_thread(http);
    return streams;
}

// Resume clients for whom something came since they began to wait. The server's thread.
static void resume_clients(struct http *http)
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
    ssize_t got = over ? -1 : client->stream->read(client->stream, to, size);
    client->visit->until_ns = got > 0 ? meter_now_ns() + HTTP_SILENCE * second_ns : INT64_MAX;
    if (got < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
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

static struct MHD_Response *stream_response(struct http *http, struct MHD_Connection *connection,
                                            struct visit *visit, struct http_stream *stream)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct client *client = calloc(1, sizeof *client);
    if (!client) {
        stream->close(stream);
        return NULL;
    }
    *client = (struct client){http, stream, connection, visit, info->connect_fd};
    visit->streams = true;
    pthread_mutex_lock(&http->lock);
    client->next = http->client;
    http->client = client;
    pthread_mutex_unlock(&http->lock);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, MAX_READ, read_stream, client, close_stream);
    if (!response)
        close_stream(client);
    else // no chunks: not every viewer of streams decodes them
        MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    return response;
}

// ---- answers ----

static const char plain[] = "text/plain; charset=utf-8";

void http_say(struct http_answer *answer, unsigned code, const char *type, const char *text)
{
    *answer = (struct http_answer){
        .code = code, .type = type, .text = strdup(text), .size = strlen(text)};
}

void http_say_error(struct http_answer *answer, unsigned code, const char *sentence)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    *answer = (struct http_answer){.code = code, .type = "application/json"};
    if (!to)
        return;
    fputs("{\"ok\":false,\"error\":\"", to);
    for (const unsigned char *at = (const unsigned char *)sentence; *at; at++)
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if (*at < ' ')
            fprintf(to, "\\u%04x", *at);
        else
            fputc(*at, to);
    fputs("\"}\n", to);
    fclose(to);
    answer->text = text;
    answer->size = size;
}

bool http_make_token(char token[HTTP_TOKEN_SIZE])
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t k = 0; k < sizeof random; k++)
        snprintf(token + 2 * k, 3, "%02x", random[k]);
    return true;
}

struct http_call_private {
    struct MHD_Connection *connection;
};

const char *http_query(const struct http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->own->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->own->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result send_answer(struct http *http, struct MHD_Connection *connection,
                                   struct visit *visit, const struct http_answer *answer)
{
    unsigned code = answer->code ? answer->code : MHD_HTTP_OK;
    struct MHD_Response *response = NULL;
    if (answer->stream)
        response = stream_response(http, connection, visit, answer->stream);
    else if (answer->text)
        response = MHD_create_response_from_buffer(answer->size, answer->text,
                                                   answer->borrowed ? MHD_RESPMEM_PERSISTENT
                                                                    : MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static const struct http_page *find_page(const struct http *http, const char *path)
{
    const struct http_page *page = http->page;
    while (page->path && strcmp(page->path, path) != 0)
        page++;
    return page->path ? page : NULL;
}

// True if the Host header cannot be a stranger's name.
static bool is_our_name(const struct http *http, struct MHD_Connection *connection)
{
    const char *asked =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    struct in_addr number;
    char name[256];
    if (!http->listener.loopback || !asked || *asked == '[')
        return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, ":"), asked);
    return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &number) == 1;
}

static struct visit *visit_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

// True if a client has its share of streams.
static bool has_streams_enough(const struct http *http, const struct visit *visit)
{
    int count = 0;
    for (int k = 0; k < MAX_VISITS; k++) {
        const struct visit *other = &http->visit[k];
        count += other->used && !other->disconnected && other->streams &&
                 other->address == visit->address;
    }
    return count >= HTTP_CLIENT_STREAMS;
}

static void refuse_stream(struct http_answer *answer)
{
    answer->stream->close(answer->stream);
    http_say(answer, MHD_HTTP_SERVICE_UNAVAILABLE, plain,
             "Your address has as many streams as it can have.\n");
}

// Answer a request. Answering at the first call closes the connection afterwards: no second request
// or body is waited for.
static enum MHD_Result serve(void *http_, struct MHD_Connection *connection, const char *path,
                             const char *method, const char *version, const char *data,
                             size_t *data_size, void **state)
{
    struct http *http = http_;
    struct http_answer answer = {0};
    struct visit *visit = visit_of(connection);
    struct http_call_private own = {connection};
    const struct http_call call = {.method = "GET", .path = path, .body = "", .own = &own};
    const struct http_page *page = find_page(http, path);
    (void)version, (void)data, (void)data_size, (void)state;
    if (!is_our_name(http, connection))
        http_say(&answer, 421, plain, "This is only shown on this machine, as localhost.\n");
    else if (!page)
        http_say(&answer, MHD_HTTP_NOT_FOUND, plain, "There is no such page.\n");
    else if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
        http_say(&answer, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "This can only be looked at.\n");
    else
        page->answer(http->opaque, &call, &answer);
    if (answer.stream && has_streams_enough(http, visit))
        refuse_stream(&answer);
    visit->until_ns = meter_now_ns() + (answer.stream ? HTTP_SILENCE : HTTP_ANSWER) * second_ns;
    return send_answer(http, connection, visit, &answer);
}

// ---- visits ----

// The key of a client: its address, of IPv6 the network's part.
static uint64_t address_key(const struct sockaddr *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    uint64_t key = 0;
    if (address->sa_family == AF_INET)
        v4 = ((const struct sockaddr_in *)address)->sin_addr;
    else
        v6 = ((const struct sockaddr_in6 *)address)->sin6_addr;
    if (address->sa_family == AF_INET)
        return v4.s_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6))
        memcpy(&key, (const char *)&v6 + 12, 4);
    else
        memcpy(&key, &v6, sizeof key);
    return key;
}

// Called by libmicrohttpd for a new connection, and for one that closes.
static void note_visit(void *http_, struct MHD_Connection *connection, void **visit_,
                       enum MHD_ConnectionNotificationCode code)
{
    struct http *http = http_;
    struct visit *visit = http->visit;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        ((struct visit *)*visit_)->used = false;
        return;
    }
    while (visit->used)
        visit++; // there are as many as libmicrohttpd's connections
    assert(visit < http->visit + MAX_VISITS);
    *visit = (struct visit){
        .used = true,
        .fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
        .address = address_key(
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr),
        .begin_ns = meter_now_ns(),
    };
    visit->until_ns = visit->begin_ns + HTTP_REQUEST * second_ns;
    *visit_ = visit;
}

// Disconnect a visit; libmicrohttpd closes it at its next turn.
static void disconnect(struct visit *visit)
{
    visit->disconnected = true;
    shutdown(visit->fd, SHUT_RDWR);
}

static void dismiss_late(struct http *http, int64_t now_ns)
{
    for (int k = 0; k < MAX_VISITS; k++) {
        struct visit *visit = &http->visit[k];
        if (visit->used && !visit->disconnected && visit->until_ns <= now_ns)
            disconnect(visit);
    }
}

// Make room for a client: at the limit, or that of its address, the oldest connection that is no
// stream is closed, so that slow clients do not keep others out. False if there are only streams.
static bool make_room(struct http *http, uint64_t address)
{
    struct visit *oldest = NULL, *own = NULL;
    int count = 0, of_address = 0;
    for (int k = 0; k < MAX_VISITS; k++) {
        struct visit *visit = &http->visit[k];
        if (!visit->used || visit->disconnected)
            continue;
        bool same = visit->address == address;
        count++;
        of_address += same;
        if (!visit->streams && (!oldest || visit->begin_ns < oldest->begin_ns))
            oldest = visit;
        if (!visit->streams && same && (!own || visit->begin_ns < own->begin_ns))
            own = visit;
    }
    if (count < HTTP_CONNECTIONS && of_address < HTTP_CLIENT_CONNECTIONS)
        return true;
    struct visit *leaving = of_address < HTTP_CLIENT_CONNECTIONS ? oldest : own;
    if (leaving)
        disconnect(leaving);
    return leaving;
}

// ---- the thread ----

// Stop accepting for a while, without descriptors: the client stays in the listener's queue, which
// would be ready at every poll.
static void note_shortage(struct http *http, int64_t now_ns)
{
    http->accepts_ns = now_ns + accept_pause_ns;
    if (!http->logged_short)
        log_print(&http->log, LOG_WARNING,
                  "clients of %s have to wait: there is no file descriptor left (ulimit -n)",
                  http->listener.url);
    http->logged_short = true;
}

static void accept_client(struct http *http)
{
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd =
        accept4(http->listener.fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        note_shortage(http, meter_now_ns());
    if (fd < 0)
        return;
    if (make_room(http, address_key((const struct sockaddr *)&from)))
        MHD_add_connection(http->daemon, fd, (const struct sockaddr *)&from, size);
    else
        close(fd);
}

// Milliseconds until the next deadline.
static int patience_ms(const struct http *http, int64_t now_ns)
{
    MHD_UNSIGNED_LONG_LONG own_ms;
    int64_t until_ns = now_ns + second_ns;
    for (int k = 0; k < MAX_VISITS; k++) {
        const struct visit *visit = &http->visit[k];
        if (visit->used && !visit->disconnected && visit->until_ns < until_ns)
            until_ns = visit->until_ns;
    }
    if (http->accepts_ns > now_ns && http->accepts_ns < until_ns)
        until_ns = http->accepts_ns;
    int64_t ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0;
    if (MHD_get_timeout(http->daemon, &own_ms) == MHD_YES && (int64_t)own_ms < ms)
        ms = (int64_t)own_ms;
    return (int)ms;
}

static void rest_waker(const struct http *http)
{
    uint64_t times;
    ssize_t got = read(http->waker, &times, sizeof times);
    (void)got;
}

static void *http_run(void *http_)
{
    struct http *http = http_;
    while (!http->done) {
        int64_t now_ns = meter_now_ns();
        struct pollfd waits[] = {
            {.fd = now_ns >= http->accepts_ns ? http->listener.fd : -1, .events = POLLIN},
            {.fd = http->epoll, .events = POLLIN},
            {.fd = http->waker, .events = POLLIN},
        };
        if (poll(waits, 3, patience_ms(http, now_ns)) < 0 && errno != EINTR)
            nanosleep(&(struct timespec){.tv_nsec = accept_pause_ns}, NULL);
        if (waits[0].revents)
            accept_client(http);
        if (waits[2].revents)
            rest_waker(http);
        resume_clients(http);
        dismiss_late(http, meter_now_ns());
        MHD_run(http->daemon);
    }
    return NULL;
}

// ---- construction ----

static bool start(struct http *http)
{
    http->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, serve,
        http, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_VISITS, MHD_OPTION_NOTIFY_CONNECTION,
        note_visit, http, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SILENCE,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_HEADERS, MHD_OPTION_END);
    if (!http->daemon || http->waker < 0)
        return false;
    http->epoll = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    http->started = !pthread_create(&http->thread, NULL, http_run, http);
    return http->started;
}

enum status http_create(const struct http_server *server, const struct log *log, struct http **http)
{
    assert(server->address && server->pages && server->pages->path);
    struct http_listener listener;
    *http = NULL;
    enum status status = http_listen(server, log, &listener);
    if (status)
        return status;
    struct http *made = *http = calloc(1, sizeof *made);
    if (!made) {
        close(listener.fd);
        return STATUS_MEMORY;
    }
    made->page = server->pages;
    made->opaque = server->opaque;
    made->log = *log;
    made->listener = listener;
    pthread_mutex_init(&made->lock, NULL);
    if (start(made))
        return STATUS_OK;
    http_destroy(http);
    return fail(log, STATUS_FAILED, "the server of %s could not be started", server->name);
}

void http_destroy(struct http **http)
{
    if (!*http)
        return;
    struct http *old = *http;
    pthread_mutex_lock(&old->lock);
    old->closing = true;
    pthread_mutex_unlock(&old->lock);
    old->done = true;
    wake_thread(old);
    if (old->started)
        pthread_join(old->thread, NULL);
    resume_clients(old); // nothing may be suspended when libmicrohttpd ends
    if (old->daemon)
        MHD_stop_daemon(old->daemon);
    close(old->listener.fd);
    if (old->waker >= 0)
        close(old->waker);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *http = NULL;
}

const char *http_url(const struct http *http)
{
    return http->listener.url;
}
