// The token: who has it gets a cookie, which is a digest of it, so that browsers do not keep the token.
#include "pipeline/output/http/http_internal.h"

#include <assert.h>
#include <ctype.h>
#include <libavutil/hmac.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/meter.h"
#include "base/status.h"

enum { DIGEST = 32, TOKEN_MAX = 1024 };

bool http_make_token(char token[HTTP_TOKEN_SIZE])
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t k = 0; k < sizeof random; k++)
        snprintf(token + 2 * k, 3, "%02x", random[k]);
    return true;
}

// HMAC-SHA-256 (RFC 2104) of a fixed text with the token as key.
static enum status digest(const char *token, size_t size, char cookie[HTTP_COOKIE_SIZE])
{
    static const uint8_t text[] = "sluice's cookie";
    uint8_t bytes[DIGEST];
    AVHMAC *hmac = av_hmac_alloc(AV_HMAC_SHA256);
    if (!hmac)
        return STATUS_MEMORY;
    av_hmac_calc(hmac, text, sizeof text, (const uint8_t *)token, (unsigned)size, bytes,
                 sizeof bytes);
    av_hmac_free(hmac);
    for (int k = 0; k < DIGEST; k++)
        snprintf(cookie + 2 * k, 3, "%02x", bytes[k]);
    return STATUS_OK;
}

enum status http_make_cookie(const char *token, char cookie[HTTP_COOKIE_SIZE])
{
    return digest(token, strlen(token), cookie);
}

void http_cookie_name(const struct http *http, char name[HTTP_COOKIE_NAME])
{
    snprintf(name, HTTP_COOKIE_NAME, "sluice-%d", http->listener.port);
}

// The time of it does not depend on where they differ.
static bool are_equal(const char *a, const char *b)
{
    unsigned difference = 0;
    for (int k = 0; k < HTTP_COOKIE_SIZE - 1; k++)
        difference |= (unsigned char)a[k] ^ (unsigned char)b[k];
    return !difference;
}

// Digests are compared, so that the time of it says nothing of the token's length either.
static bool is_token(const struct http *http, const char *text, size_t size)
{
    char cookie[HTTP_COOKIE_SIZE];
    return size && size <= TOKEN_MAX && !digest(text, size, cookie) &&
           are_equal(cookie, http->cookie);
}

static const char *given_token(const struct http_call_private *own)
{
    return http_header(&own->call, MHD_HTTP_HEADER_AUTHORIZATION);
}

static const char *given_cookie(const struct http_call_private *own)
{
    char name[HTTP_COOKIE_NAME];
    http_cookie_name(own->http, name);
    return MHD_lookup_connection_value(own->connection, MHD_COOKIE_KIND, name);
}

bool http_has_token(const struct http_call_private *own)
{
    return given_token(own) || given_cookie(own);
}

bool http_is_known(const struct http_call_private *own)
{
    static const char bearer[] = "Bearer ";
    const char *given = given_token(own), *cookie = given_cookie(own);
    if (given && !strncasecmp(given, bearer, strlen(bearer)) &&
        is_token(own->http, given + strlen(bearer), strlen(given + strlen(bearer))))
        return true;
    return cookie && strlen(cookie) == HTTP_COOKIE_SIZE - 1 && are_equal(cookie, own->http->cookie);
}

// ---- wrong ones ----

static bool is_forgotten(const struct stranger *stranger, int64_t now_ns)
{
    return !stranger->wrong || now_ns - stranger->last_ns > HTTP_FORGET * HTTP_SECOND;
}

// The place of an address: its own, one that is free, or that of whom nothing came for longest.
static struct stranger *find_stranger(struct http *http, uint64_t address, int64_t now_ns)
{
    struct stranger *best = NULL;
    for (int k = 0; k < HTTP_STRANGERS; k++) {
        struct stranger *stranger = &http->stranger[k];
        if (is_forgotten(stranger, now_ns))
            *stranger = (struct stranger){0};
        if (stranger->wrong && stranger->address == address)
            return stranger;
        if (!best || stranger->last_ns < best->last_ns)
            best = stranger;
    }
    *best = (struct stranger){.address = address};
    return best;
}

int64_t http_note_wrong(struct http *http, uint64_t address)
{
    enum { FIRST_MS = 250, DOUBLED = 7 }; // up to 32 s
    int64_t now_ns = meter_now_ns();
    struct stranger *stranger = find_stranger(http, address, now_ns);
    int past = stranger->wrong++ - HTTP_TRIES;
    stranger->last_ns = now_ns;
    if (stranger->wrong > HTTP_TRIES + DOUBLED + 1)
        stranger->wrong = HTTP_TRIES + DOUBLED + 1;
    return past < 0 ? 0 : (FIRST_MS * HTTP_SECOND / 1000) << past;
}

// ---- the page ----

static void answer_login(void *http, const struct http_call *call, struct http_answer *answer)
{
    size_t size = call->body_size;
    while (size && isspace((unsigned char)call->body[size - 1]))
        size--;
    call->own->logged_in = is_token(http, call->body, size);
    call->own->wrong = !call->own->logged_in;
    if (call->own->logged_in)
        http_say(answer, MHD_HTTP_OK, "application/json", "{\"ok\":true}\n");
    else
        http_say_error(answer, MHD_HTTP_UNAUTHORIZED, "This is not the token.");
}

const struct http_page http_login_page = {.method = "POST",
                                          .path = "/login",
                                          .answer = answer_login,
                                          .body_max = TOKEN_MAX + 2,
                                          .open = true};
