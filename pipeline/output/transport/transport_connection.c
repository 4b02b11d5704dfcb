// Transport to an address: a lost connection is made again with back-off, and goes on with the next
// key frame.
#include <stdlib.h>

#include "base/backoff.h"
#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/transport/transport.h"

static const int64_t second_ns = 1000 * INT64_C(1000000);
static const int64_t good_ns = 100 * INT64_C(1000000); // a longer connection resets the back-off

struct connection {
    struct transport base;
    struct muxer_streams streams; // owned
    bool awaits_key;              // packets before it are of no use
    int attempts;                 // since a connection was good, including the one that succeeded
    unsigned seed;
    int64_t lost_ns, connected_ns;
};

static struct connection *connection_of(struct transport *transport)
{
    return (struct connection *)transport;
}

static const char *name_of(const struct connection *self)
{
    return self->base.request.destination->shown;
}

// Which streams the muxer takes is known before the address is reached.
static enum status open_connection(struct transport *transport, const struct muxer_streams *streams)
{
    struct connection *self = connection_of(transport);
    const struct transport_request *request = &transport->request;
    self->seed = (unsigned)meter_now_ns();
    transport->away = true;
    enum status status = muxer_streams_copy(streams, &self->streams);
    if (!status)
        status = muxer_create(request->destination, request->destination->name, request->log,
                              request->stop, &transport->guard, &transport->muxer);
    if (!status)
        status = muxer_add_streams(transport->muxer, streams, request->options);
    if (!status)
        status = transport_note_accepted(transport, streams);
    muxer_destroy(&transport->muxer);
    self->streams.again = true;
    return status;
}

// ---- attempts ----

static void log_lost(struct connection *self, const char *why)
{
    log_print(self->base.request.log, LOG_WARNING,
              self->base.connects ? "%s is lost (%s); it is connected again"
                                  : "%s is not reached (%s); it is tried again",
              name_of(self), why);
    self->lost_ns = meter_now_ns();
}

static void log_connected(struct connection *self)
{
    if (self->lost_ns)
        log_print(self->base.request.log, LOG_WARNING, "%s is %s after %.1f s", name_of(self),
                  self->base.connects ? "back" : "reached",
                  (double)(meter_now_ns() - self->lost_ns) / (double)second_ns);
    self->lost_ns = 0;
}

static bool has_given_up(const struct connection *self)
{
    return self->attempts > backoff_max_attempts(self->base.request.reconnects);
}

static bool is_last_attempt(const struct connection *self)
{
    bool must = !self->base.connects && self->base.request.must_connect;
    return must || has_given_up(self);
}

// Close the muxer and schedule the next attempt: at once, then with growing delays.
static void await_next_attempt(struct connection *self)
{
    self->base.next_attempt_ns = meter_now_ns() + backoff_ns(self->attempts - 1, &self->seed);
    self->base.away = true;
    transport_close(&self->base);
}

static enum status attempt_failed(struct connection *self)
{
    const struct log *log = self->base.request.log;
    const char *why = muxer_error(self->base.muxer);
    enum status status = STATUS_OK;
    if (self->base.guard.over)
        status = STATUS_EOF;
    else if (is_last_attempt(self))
        status = log_fail(log, STATUS_OUTPUT, "%s is not reached: %s", name_of(self), why);
    else if (!self->lost_ns)
        log_lost(self, why);
    else
        log_print(log, LOG_DEBUG, "%s is not reached (attempt %d): %s", name_of(self),
                  self->attempts, why);
    await_next_attempt(self);
    return status;
}

static enum status attempt_connection(struct transport *transport, bool *stale)
{
    struct connection *self = connection_of(transport);
    self->attempts++;
    enum status status =
        transport_begin(transport, transport->request.destination->name, &self->streams);
    if (status == STATUS_EOF)
        return attempt_failed(self);
    if (status)
        return status;
    *stale = self->lost_ns != 0;
    log_connected(self);
    self->connected_ns = meter_now_ns();
    self->awaits_key = true;
    transport->connects++;
    transport->connected = true;
    transport->wants_key = true;
    transport->away = false;
    return STATUS_OK;
}

// ---- packets ----

// The connection was lost. A server that accepts connections and ends them at once does not reset
// the back-off.
static enum status lost(struct connection *self)
{
    const struct log *log = self->base.request.log;
    const char *why = muxer_error(self->base.muxer);
    enum status status = STATUS_OK;
    if (meter_now_ns() - self->connected_ns > good_ns)
        self->attempts = 1;
    if (self->base.guard.over)
        status = STATUS_EOF;
    else if (has_given_up(self))
        status = log_fail(log, STATUS_OUTPUT, "%s is lost: %s", name_of(self), why);
    else
        log_lost(self, why);
    self->base.connected = false;
    await_next_attempt(self);
    return status;
}

static enum status write_connection(struct transport *transport, struct packet *packet,
                                    bool *written)
{
    struct connection *self = connection_of(transport);
    bool video = transport_is_video(transport, packet), key = packet->av->flags & AV_PKT_FLAG_KEY;
    self->awaits_key = self->awaits_key && !(video && key);
    if (self->awaits_key)
        return STATUS_OK;
    transport->guard.deadline_ns = meter_now_ns() + transport->request.stall_ns;
    enum status status = muxer_write(transport->muxer, packet->av);
    transport_note_size(transport);
    *written = !status;
    return status == STATUS_EOF ? lost(self) : status;
}

// Finish; a connection lost meanwhile is no failure.
static enum status finish_connection(struct transport *transport)
{
    transport->guard.deadline_ns = meter_now_ns() + second_ns;
    enum status status = transport->muxer ? muxer_finish(transport->muxer) : STATUS_OK;
    return status == STATUS_EOF ? STATUS_OK : status;
}

static void free_connection(struct transport *transport)
{
    muxer_streams_free(&connection_of(transport)->streams);
}

struct transport *transport_connection_new(void)
{
    struct connection *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base = (struct transport){.open = open_connection,
                                    .write = write_connection,
                                    .attempt = attempt_connection,
                                    .finish = finish_connection,
                                    .free = free_connection};
    return &self->base;
}
