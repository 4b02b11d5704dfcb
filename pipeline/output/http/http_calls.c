// A request from its head to its answer. A refusal is sent when the body has come, if that is
// short: a connection that is closed before may lose the answer.
#include "pipeline/output/http/http_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/meter.h"

// ---- lookups ----

static const char *look_up(const struct http_call *call, enum MHD_ValueKind kind, const char *name)
{
    const char *value = NULL;
    if (!MHD_lookup_connection_value_n(call->own->connection, kind, name, strlen(name), &value,
                                       NULL))
        return NULL;
    return value ? value : "";
}

const char *http_query(const struct http_call *call, const char *name)
{
    return look_up(call, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct http_call *call, const char *name)
{
    return look_up(call, MHD_HEADER_KIND, name);
}

// ---- the beginning ----

static void *opaque_of(const struct http_call_private *own)
{
    return own->page == &http_login_page ? own->http : own->http->opaque;
}

// Keep an upload from being late while it moves.
static void extend(struct http_call_private *own)
{
    own->moved = 0;
    own->visit->until_ns = meter_now_ns() + HTTP_SILENCE * HTTP_SECOND;
}

// The rest of a body that receive() has refused: as long as a request may take.
static void decline(struct http_call_private *own)
{
    own->declined = true;
    own->visit->until_ns = meter_now_ns() + HTTP_REQUEST * HTTP_SECOND;
}

static void give(struct http_call_private *own, const char *data, size_t size)
{
    own->taken = true;
    if (!own->page->receive(opaque_of(own), &own->call, &own->call.state, data, size))
        decline(own);
}

static void begin_upload(struct http_call_private *own)
{
    if (http_has_enough(own->http, own->visit)) {
        http_say_refusal(own, MHD_HTTP_SERVICE_UNAVAILABLE,
                         "Your address has as many uploads and streams as it can have.");
        return;
    }
    own->visit->uploads = true;
    extend(own);
    give(own, "", 0);
}

static struct http_call_private *begin_call(struct http *http, struct MHD_Connection *connection,
                                            const char *path, const char *method)
{
    struct http_call_private *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    bool head = !strcmp(method, MHD_HTTP_METHOD_HEAD);
    own->http = http;
    own->connection = connection;
    own->visit = http_visit_of(connection);
    own->call = (struct http_call){
        .method = head ? MHD_HTTP_METHOD_GET : method, .path = path, .body = "", .own = own};
    own->page = http_find_page(http, own->call.method, path);
    const char *sentence = NULL;
    unsigned code = http_check(own, &sentence);
    own->wrong = code == MHD_HTTP_UNAUTHORIZED && http_has_token(own);
    if (code)
        http_say_refusal(own, code, sentence);
    else if (own->page->receive)
        begin_upload(own);
    return own;
}

// True if the answer does not wait for the body: the client does, or the body is long.
static bool is_answered_early(const struct http_call_private *own)
{
    uint64_t size = http_body_size(&own->call);
    if (!own->refused && !own->declined)
        return false;
    return size && (http_header(&own->call, MHD_HTTP_HEADER_EXPECT) ||
                    (size > HTTP_DISCARD && size < UINT64_MAX));
}

// ---- the body ----

// Append to the body, whose last byte is followed by a NUL.
static bool append(struct http_call_private *own, const char *data, size_t size)
{
    size_t needed = own->call.body_size + size + 1;
    if (needed > own->capacity) {
        size_t capacity = needed < 4096 ? 4096 : 2 * needed;
        char *grown = realloc(own->body, capacity);
        if (!grown)
            return false;
        own->body = grown;
        own->capacity = capacity;
    }
    memcpy(own->body + own->call.body_size, data, size);
    own->call.body_size += size;
    own->body[own->call.body_size] = 0;
    own->call.body = own->body;
    return true;
}

static void take_piece(struct http_call_private *own, const char *data, size_t size)
{
    own->moved += size;
    if (own->moved >= HTTP_PIECE)
        extend(own);
    give(own, data, size);
}

// Take a part of the body. False: close the connection.
static bool take_body(struct http_call_private *own, const char *data, size_t size)
{
    own->received += size;
    if (own->declined)
        return true; // until the deadline
    if (own->refused)
        return own->received <= HTTP_DISCARD;
    if (own->received > http_body_max(own->page)) {
        http_say_refusal(own, HTTP_TOO_LARGE, "The body is too large.");
        return true;
    }
    if (!own->page->receive)
        return append(own, data, size);
    take_piece(own, data, size);
    return true;
}

// ---- the end ----

// Keep the answer to a wrong token back, if its client has given several. True if so: the server
// comes again.
static bool is_held(struct http_call_private *own)
{
    if (!own->wrong || own->was_held)
        return false;
    own->was_held = true;
    int64_t wait_ns = http_note_wrong(own->http, own->visit->address);
    if (wait_ns)
        http_hold(own->visit, own->connection, wait_ns);
    return wait_ns;
}

static enum MHD_Result answer_call(struct http_call_private *own)
{
    if (!own->refused && !own->answered) {
        own->answered = true;
        own->page->answer(opaque_of(own), &own->call, &own->answer);
    }
    if (is_held(own))
        return MHD_YES;
    if (own->answer.stream && http_has_enough(own->http, own->visit))
        http_say_refusal(own, MHD_HTTP_SERVICE_UNAVAILABLE,
                         "Your address has as many streams as it can have.");
    return http_send(own);
}

enum MHD_Result http_serve(void *http, struct MHD_Connection *connection, const char *path,
                           const char *method, const char *version, const char *data,
                           size_t *data_size, void **call)
{
    struct http_call_private *own = *call;
    (void)version;
    if (!own) {
        own = *call = begin_call(http, connection, path, method);
        if (!own)
            return MHD_NO;
        return is_answered_early(own) ? answer_call(own) : MHD_YES;
    }
    if (!*data_size)
        return answer_call(own);
    bool goes_on = take_body(own, data, *data_size);
    *data_size = 0;
    return goes_on ? MHD_YES : MHD_NO;
}

void http_note_end(void *http, struct MHD_Connection *connection, void **call,
                   enum MHD_RequestTerminationCode code)
{
    struct http_call_private *own = *call;
    struct visit *visit = http_visit_of(connection);
    (void)http, (void)code;
    visit->streams = visit->uploads = false;
    visit->kept = true;
    visit->idle_ns = meter_now_ns();
    visit->until_ns = visit->idle_ns + HTTP_SILENCE * HTTP_SECOND;
    if (!own)
        return;
    if (own->taken && !own->answered)
        own->page->receive(opaque_of(own), &own->call, &own->call.state, NULL, 0);
    http_drop_answer(&own->answer);
    free(own->body);
    free(own);
    *call = NULL;
}
