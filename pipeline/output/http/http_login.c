// The token: who has it gets a cookie, which is a digest of it, so that browsers do not keep the token.
#include "pipeline/output/http/http_internal.h"

#include <assert.h>
#include <ctype.h>
#include <libavutil/hmac.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

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

bool http_is_known(const struct http_call_private *own)
{
    static const char bearer[] = "Bearer ";
    const char *given = http_header(&own->call, MHD_HTTP_HEADER_AUTHORIZATION);
    char name[HTTP_COOKIE_NAME];
    http_cookie_name(own->http, name);
    const char *cookie = MHD_lookup_connection_value(own->connection, MHD_COOKIE_KIND, name);
    if (given && !strncasecmp(given, bearer, strlen(bearer)) &&
        is_token(own->http, given + strlen(bearer), strlen(given + strlen(bearer))))
        return true;
    return cookie && strlen(cookie) == HTTP_COOKIE_SIZE - 1 && are_equal(cookie, own->http->cookie);
}

static void answer_login(void *http, const struct http_call *call, struct http_answer *answer)
{
    size_t size = call->body_size;
    while (size && isspace((unsigned char)call->body[size - 1]))
        size--;
    call->own->logged_in = is_token(http, call->body, size);
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
