// Connections: how many of whom, and until when.
#define _GNU_SOURCE
#include "pipeline/output/http/http_internal.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/meter.h"

static const int64_t accept_pause_ns = 250 * INT64_C(1000000);

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

struct visit *http_visit_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void http_note_visit(void *http_, struct MHD_Connection *connection, void **visit_,
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
    assert(visit < http->visit + HTTP_VISITS);
    *visit = (struct visit){
        .used = true,
        .fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
        .address = address_key(
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr),
        .idle_ns = meter_now_ns(),
    };
    visit->until_ns = visit->idle_ns + HTTP_REQUEST * HTTP_SECOND;
    *visit_ = visit;
}

// The first request's time counts from the connection's beginning, that of others from their first
// line.
void *http_note_request(void *http, const char *target, struct MHD_Connection *connection)
{
    struct visit *visit = http_visit_of(connection);
    (void)http;
    if (visit->kept)
        visit->until_ns = meter_now_ns() + HTTP_REQUEST * HTTP_SECOND;
    visit->malformed = !http_is_target(target);
    return NULL;
}

static bool is_busy(const struct visit *visit)
{
    return visit->streams || visit->uploads;
}

bool http_has_enough(const struct http *http, const struct visit *visit)
{
    int count = 0;
    for (int k = 0; k < HTTP_VISITS; k++) {
        const struct visit *other = &http->visit[k];
        count += other->used && !other->disconnected && is_busy(other) &&
                 other->address == visit->address;
    }
    return count >= (http->page ? HTTP_PAGE_STREAMS : HTTP_CLIENT_STREAMS);
}

void http_hold(struct visit *visit, struct MHD_Connection *connection, int64_t ns)
{
    visit->held = connection;
    visit->held_until_ns = meter_now_ns() + ns;
    visit->until_ns = INT64_MAX;
    MHD_suspend_connection(connection);
}

void http_release(struct http *http, int64_t now_ns)
{
    for (int k = 0; k < HTTP_VISITS; k++) {
        struct visit *visit = &http->visit[k];
        struct MHD_Connection *held = visit->held;
        if (!held || (visit->held_until_ns > now_ns && !visit->disconnected && !http->done))
            continue;
        visit->held = NULL;
        MHD_resume_connection(held);
    }
}

// Disconnect a visit; libmicrohttpd closes it at its next turn.
static void disconnect(struct visit *visit)
{
    visit->disconnected = true;
    shutdown(visit->fd, SHUT_RDWR);
}

void http_dismiss_late(struct http *http, int64_t now_ns)
{
    for (int k = 0; k < HTTP_VISITS; k++) {
        struct visit *visit = &http->visit[k];
        if (visit->used && !visit->disconnected && visit->until_ns <= now_ns)
            disconnect(visit);
    }
}

// Make room for a client: at the limit, or that of its address, the connection that has been idle or
// asking for longest is closed, so that slow clients do not keep others out. False if there are only
// streams and uploads.
static bool make_room(struct http *http, uint64_t address)
{
    struct visit *oldest = NULL, *own = NULL;
    int count = 0, of_address = 0;
    for (int k = 0; k < HTTP_VISITS; k++) {
        struct visit *visit = &http->visit[k];
        if (!visit->used || visit->disconnected)
            continue;
        bool same = visit->address == address, may_go = !is_busy(visit);
        count++;
        of_address += same;
        if (may_go && (!oldest || visit->idle_ns < oldest->idle_ns))
            oldest = visit;
        if (may_go && same && !visit->held && (!own || visit->idle_ns < own->idle_ns))
            own = visit;
    }
    if (count < HTTP_CONNECTIONS && of_address < HTTP_CLIENT_CONNECTIONS)
        return true;
    struct visit *leaving = of_address < HTTP_CLIENT_CONNECTIONS ? oldest : own;
    if (leaving)
        disconnect(leaving);
    return leaving;
}

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

static bool accept_one(struct http *http)
{
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd =
        accept4(http->listener.fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        note_shortage(http, meter_now_ns());
    if (fd < 0)
        return false;
    if (make_room(http, address_key((const struct sockaddr *)&from)))
        MHD_add_connection(http->daemon, fd, (const struct sockaddr *)&from, size);
    else
        close(fd);
    return true;
}

// Clients at a turn: as many as can be disconnected for them before libmicrohttpd closes those.
void http_accept(struct http *http)
{
    for (int k = 0; k < (HTTP_VISITS - HTTP_CONNECTIONS) / 2; k++)
        if (!accept_one(http))
            return;
}

int http_patience_ms(const struct http *http, int64_t now_ns)
{
    MHD_UNSIGNED_LONG_LONG own_ms;
    int64_t until_ns = now_ns + HTTP_SECOND;
    for (int k = 0; k < HTTP_VISITS; k++) {
        const struct visit *visit = &http->visit[k];
        if (visit->used && !visit->disconnected && visit->until_ns < until_ns)
            until_ns = visit->until_ns;
        if (visit->held && visit->held_until_ns < until_ns)
            until_ns = visit->held_until_ns;
    }
    if (http->accepts_ns > now_ns && http->accepts_ns < until_ns)
        until_ns = http->accepts_ns;
    int64_t ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0;
    if (MHD_get_timeout(http->daemon, &own_ms) == MHD_YES && (int64_t)own_ms < ms)
        ms = (int64_t)own_ms;
    return (int)ms;
}
