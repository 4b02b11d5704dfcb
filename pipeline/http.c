#include "pipeline/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pipeline/check.h"

enum { READ_MOST = 64 << 10, HEADERS_MOST = 16 << 10 };

// A client of a stream. One that waits is suspended: libmicrohttpd leaves it alone until whoever
// clears `waits` resumes it, so its connection cannot go meanwhile.
struct client {
    struct http *http;
    struct http_stream *stream;
    struct MHD_Connection *connection;
    int fd;
    // ---- guarded by lock ----
    bool waits, gone;
    struct client *next;
};

struct http {
    const struct http_page *page;
    void *opaque;
    struct MHD_Daemon *daemon;
    bool loopback;
    char url[80];
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct client *client; // the first of all
    unsigned wakes;
    bool closing;
};

// ---- addresses ----

struct address {
    char host[256], port[6];
};

static bool parse_port(const char *text, char *port)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 5 || text[digits] || atoi(text) > 65535)
        return false;
    strcpy(port, text);
    return true;
}

static bool parse_address(const char *text, struct address *address)
{
    bool bracketed = *text == '[';
    const char *host = text + bracketed, *colon = strrchr(text, ':');
    const char *end = bracketed ? strchr(text, ']') : colon;
    if (bracketed && (!end || end + 1 != colon))
        return false;
    if (!colon)
        host = end = "127.0.0.1";
    size_t length = colon ? (size_t)(end - host) : strlen(host);
    if (length >= sizeof address->host || (!bracketed && colon && memchr(host, ':', length)))
        return false;
    snprintf(address->host, sizeof address->host, "%.*s", (int)length, host);
    if (!length && !bracketed)
        strcpy(address->host, "127.0.0.1");
    return *address->host && parse_port(colon ? colon + 1 : text, address->port);
}

// Where to listen; of a name that has both, the older protocol's address.
static enum status resolve(const struct http_request *request, const struct log *log,
                           struct sockaddr_storage *to, socklen_t *size)
{
    struct address address;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    if (!parse_address(request->address, &address))
        return fail(log, STATUS_USAGE,
                    "'%s' is no address for %s; it takes PORT (on this machine only), HOST:PORT, "
                    "[IPV6]:PORT or 0.0.0.0:PORT",
                    request->address, request->name);
    int error = getaddrinfo(address.host, address.port, &hints, &found);
    if (error)
        return fail(log, STATUS_USAGE, "%s is no address for %s: %s", request->address,
                    request->name, gai_strerror(error));
    const struct addrinfo *best = found;
    while (best->ai_next && best->ai_family != AF_INET)
        best = best->ai_next;
    if (best->ai_family != AF_INET)
        best = found;
    memcpy(to, best->ai_addr, best->ai_addrlen);
    *size = best->ai_addrlen;
    freeaddrinfo(found);
    return STATUS_OK;
}

static enum status listen_on(const struct http_request *request, const struct log *log,
                             const struct sockaddr_storage *address, socklen_t size, int *fd)
{
    const int yes = 1, no = 0;
    *fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0) {
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no); // [::] is everywhere
    }
    if (*fd >= 0 && !bind(*fd, (const struct sockaddr *)address, size) &&
        !listen(*fd, HTTP_CONNECTIONS))
        return STATUS_OK;
    int error = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return fail(log, STATUS_FAILED, "%s cannot be shown at %s: %s", request->name, request->address,
                strerror(error));
}

static void note_url(struct http *http, int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "", port[8] = "";
    getsockname(fd, (struct sockaddr *)&address, &size);
    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    bool v6 = address.ss_family == AF_INET6;
    http->loopback = v6 ? !strcmp(host, "::1") : !strncmp(host, "127.", 4);
    snprintf(http->url, sizeof http->url, v6 ? "http://[%s]:%s" : "http://%s:%s", host, port);
}

// ---- streams ----

// Take what waits and `wanted` (NULL: all) says so; the caller resumes it, without the lock.
static int take_waiting_locked(struct http *http, bool (*wanted)(struct client *client),
                               struct MHD_Connection **taken)
{
    int count = 0;
    for (struct client *client = http->client; client; client = client->next)
        if (client->waits && count < HTTP_CONNECTIONS && (!wanted || wanted(client))) {
            client->waits = false;
            taken[count++] = client->connection;
        }
    return count;
}

static void resume(struct MHD_Connection *const *taken, int count)
{
    for (int k = 0; k < count; k++)
        MHD_resume_connection(taken[k]);
}

void http_wake(struct http *http)
{
    struct MHD_Connection *taken[HTTP_CONNECTIONS];
    pthread_mutex_lock(&http->lock);
    http->wakes++;
    int count = take_waiting_locked(http, NULL, taken);
    pthread_mutex_unlock(&http->lock);
    resume(taken, count);
}

// What waits is not watched by libmicrohttpd. There is nothing more to be read from a client that
// has asked, but its end.
static bool has_gone(struct client *client)
{
    char byte;
    ssize_t got = recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    client->gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return client->gone;
}

int http_streams(struct http *http)
{
    struct MHD_Connection *taken[HTTP_CONNECTIONS];
    int streams = 0;
    pthread_mutex_lock(&http->lock);
    int count = take_waiting_locked(http, has_gone, taken);
    for (const struct client *client = http->client; client; client = client->next)
        streams += !client->gone;
    pthread_mutex_unlock(&http->lock);
    resume(taken, count);
    return streams;
}

// Wait until there is more, unless there is by now. To be resumed it has to be suspended first.
static void wait_for_more(struct client *client, unsigned wakes)
{
    struct http *http = client->http;
    MHD_suspend_connection(client->connection);
    pthread_mutex_lock(&http->lock);
    bool waits = client->waits = http->wakes == wakes && !http->closing;
    pthread_mutex_unlock(&http->lock);
    if (!waits)
        MHD_resume_connection(client->connection);
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
                                            struct http_stream *stream)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct client *client = calloc(1, sizeof *client);
    if (!client) {
        stream->close(stream);
        return NULL;
    }
    *client = (struct client){http, stream, connection, info->connect_fd};
    pthread_mutex_lock(&http->lock);
    client->next = http->client;
    http->client = client;
    pthread_mutex_unlock(&http->lock);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, READ_MOST, read_stream, client, close_stream);
    if (!response)
        close_stream(client);
    else // no chunks: not everyone who shows streams knows them
        MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    return response;
}

// ---- answers ----

void http_say(struct http_answer *answer, unsigned code, const char *type, const char *text)
{
    *answer = (struct http_answer){
        .code = code, .type = type, .text = strdup(text), .size = strlen(text)};
}

static enum MHD_Result send_answer(struct http *http, struct MHD_Connection *connection,
                                   const struct http_answer *answer)
{
    unsigned code = answer->code ? answer->code : MHD_HTTP_OK;
    struct MHD_Response *response = NULL;
    if (answer->stream)
        response = stream_response(http, connection, answer->stream);
    else if (answer->text)
        response =
            MHD_create_response_from_buffer(answer->size, answer->text, MHD_RESPMEM_MUST_FREE);
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

// Whether the name by which the client calls us can be no one else's.
static bool is_our_name(const struct http *http, struct MHD_Connection *connection)
{
    const char *asked =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    struct in_addr number;
    char name[256];
    if (!http->loopback || !asked || *asked == '[')
        return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, ":"), asked);
    return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &number) == 1;
}

// An answer at the first call closes the connection behind it: there is no second question to wait
// for, and no body to take in.
static enum MHD_Result serve(void *http_, struct MHD_Connection *connection, const char *path,
                             const char *method, const char *version, const char *data,
                             size_t *data_size, void **state)
{
    static const char plain[] = "text/plain; charset=utf-8";
    struct http *http = http_;
    struct http_answer answer = {0};
    const struct http_page *page = find_page(http, path);
    (void)version, (void)data, (void)data_size, (void)state;
    if (!is_our_name(http, connection))
        http_say(&answer, 421, plain, "This is only shown on this machine, as localhost.\n");
    else if (!page)
        http_say(&answer, MHD_HTTP_NOT_FOUND, plain, "There is no such page.\n");
    else if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
        http_say(&answer, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "This can only be looked at.\n");
    else
        page->answer(http->opaque, &answer);
    return send_answer(http, connection, &answer);
}

// ---- construction ----

enum status http_create(const struct http_request *request, const struct log *log,
                        struct http **http)
{
    struct sockaddr_storage address;
    socklen_t size = 0;
    int fd = -1;
    *http = NULL;
    enum status status = resolve(request, log, &address, &size);
    if (!status)
        status = listen_on(request, log, &address, size, &fd);
    if (status)
        return status;
    struct http *made = *http = calloc(1, sizeof *made);
    if (!made) {
        close(fd);
        return STATUS_MEMORY;
    }
    made->page = request->page;
    made->opaque = request->opaque;
    pthread_mutex_init(&made->lock, NULL);
    note_url(made, fd);
    unsigned v6 = address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0;
    made->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | v6, 0, NULL, NULL, serve, made,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, HTTP_CONNECTIONS * 3u / 4,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SILENCE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADERS_MOST, MHD_OPTION_END);
    if (made->daemon)
        return STATUS_OK;
    http_destroy(http); // the socket is libmicrohttpd's
    return fail(log, STATUS_FAILED, "the server of %s could not be started", request->name);
}

void http_destroy(struct http **http)
{
    if (!*http)
        return;
    struct http *old = *http;
    pthread_mutex_lock(&old->lock);
    old->closing = true;
    pthread_mutex_unlock(&old->lock);
    http_wake(old); // nothing may wait when the server ends
    if (old->daemon)
        MHD_stop_daemon(old->daemon);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *http = NULL;
}

const char *http_url(const struct http *http)
{
    return http->url;
}
