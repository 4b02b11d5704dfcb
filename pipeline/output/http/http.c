// The server's thread, its beginning and its end.
#include "pipeline/output/http/http_internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"

// The memory of a connection: the head of a request, and a piece of a body.
enum { MAX_HEADERS = 16 << 10 };

// ---- the thread ----

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
        if (poll(waits, 3, http_patience_ms(http, now_ns)) < 0 && errno != EINTR)
            nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
        if (waits[0].revents)
            http_accept(http);
        if (waits[2].revents)
            rest_waker(http);
        http_resume_clients(http);
        http_dismiss_late(http, meter_now_ns());
        http_release(http, meter_now_ns());
        MHD_run(http->daemon);
    }
    return NULL;
}

// ---- construction ----

static struct MHD_Daemon *start_daemon(struct http *http, const struct http_tls *tls)
{
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, tls->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(
        flags | (tls->cert ? MHD_USE_TLS : 0), 0, NULL, NULL, http_serve, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_VISITS, MHD_OPTION_NOTIFY_CONNECTION,
        http_note_visit, http, MHD_OPTION_URI_LOG_CALLBACK, http_note_request, http,
        MHD_OPTION_NOTIFY_COMPLETED, http_note_end, http, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)HTTP_SILENCE, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_HEADERS,
        MHD_OPTION_ARRAY, tls->cert ? secure : secure + 3, MHD_OPTION_END);
}

static bool start(struct http *http)
{
    const union MHD_DaemonInfo *about = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    http->epoll = about ? about->epoll_fd : -1;
    http->waker = about ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    http->started = http->waker >= 0 && !pthread_create(&http->thread, NULL, http_run, http);
    return http->started;
}

// A token, where strangers could come; an empty one protects nothing.
static enum status take_token(struct http *http, const struct http_server *server)
{
    http->guarded = server->token;
    if (server->token && !*server->token)
        return log_fail(&http->log, STATUS_USAGE, "the token of %s is empty", server->name);
    if (!server->token && server->page && !http->listener.loopback)
        return log_fail(&http->log, STATUS_USAGE,
                        "%s at %s could be used by everyone who reaches it; it needs a token there",
                        server->name, server->address);
    return server->token ? http_make_cookie(server->token, http->cookie) : STATUS_OK;
}

static enum status begin(struct http *http, const struct http_server *server)
{
    struct http_tls tls;
    enum status status = http_tls_read(server, &http->log, &tls);
    if (!status)
        status = http_listen(server, &http->log, &http->listener);
    if (!status)
        status = take_token(http, server);
    if (!status)
        http->daemon = start_daemon(http, &tls);
    bool secure = tls.cert;
    http_tls_free(&tls);
    if (status)
        return status;
    if (!http->daemon && secure)
        return log_fail(
            &http->log, STATUS_USAGE,
            "the certificate %s and the key %s cannot be used: one of them is damaged, or "
            "they do not belong together",
            server->tls_cert, server->tls_key);
    if (!http->daemon || !start(http))
        return log_fail(&http->log, STATUS_FAILED, "the server of %s could not be started",
                        server->name);
    return STATUS_OK;
}

enum status http_create(const struct http_server *server, const struct log *log, struct http **http)
{
    assert(server->address && server->name && server->pages && server->pages->path);
    struct http *made = *http = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->pages = server->pages;
    made->opaque = server->opaque;
    made->page = server->page;
    made->log = *log;
    made->waker = made->listener.fd = -1;
    pthread_mutex_init(&made->lock, NULL);
    enum status status = begin(made, server);
    if (status)
        http_destroy(http);
    return status;
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
    if (old->started) {
        http_wake_thread(old);
        pthread_join(old->thread, NULL);
    }
    http_release(old, 0);
    http_resume_clients(old); // nothing may be suspended when libmicrohttpd ends
    if (old->daemon)
        MHD_stop_daemon(old->daemon);
    if (old->listener.fd >= 0)
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
