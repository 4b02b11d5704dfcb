// Answers and their headers.
#include "pipeline/output/http/http_internal.h"

#include <libavutil/avstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"

void http_say(struct http_answer *answer, unsigned code, const char *type, const char *text)
{
    *answer = (struct http_answer){
        .code = code, .type = type, .text = strdup(text), .size = strlen(text)};
}

static void write_json_string(FILE *to, const char *text)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    fputc('"', to);
    while (at < end) {
        const uint8_t *first = at;
        int32_t letter;
        if (av_utf8_decode(&letter, &at, end, 0) < 0)
            fputc('?', to);
        else if (letter == '"' || letter == '\\')
            fprintf(to, "\\%c", letter);
        else if (letter < ' ')
            fprintf(to, "\\u%04x", letter);
        else
            fwrite(first, 1, (size_t)(at - first), to);
    }
    fputc('"', to);
}

void http_say_error(struct http_answer *answer, unsigned code, const char *sentence)
{
    *answer = (struct http_answer){.code = code, .type = "application/json"};
    FILE *to = open_memstream(&answer->text, &answer->size);
    if (!to)
        return;
    fputs("{\"ok\":false,\"error\":", to);
    write_json_string(to, sentence);
    fputs("}\n", to);
    fclose(to);
}

void http_say_refusal(struct http_call_private *own, unsigned code, const char *sentence)
{
    char line[256];
    http_drop_answer(&own->answer);
    own->refused = true;
    snprintf(line, sizeof line, "%s\n", sentence);
    if (!strncmp(own->call.path, "/api/", 5) || own->page == &http_login_page)
        http_say_error(&own->answer, code, sentence);
    else
        http_say(&own->answer, code, "text/plain; charset=utf-8", line);
}

void http_drop_answer(struct http_answer *answer)
{
    if (answer->stream)
        answer->stream->close(answer->stream);
    if (!answer->borrowed)
        free(answer->text);
    *answer = (struct http_answer){0};
}

// ---- headers ----

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    if (value)
        MHD_add_response_header(response, name, value);
}

// Headers that keep other sites' scripts and frames away from the page.
static void add_walls(struct MHD_Response *response)
{
    add(response, "Content-Security-Policy",
        "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    add(response, "X-Frame-Options", "DENY");
    add(response, "Referrer-Policy", "no-referrer");
    add(response, "Cross-Origin-Resource-Policy", "same-origin");
}

// The cookie; or its end, so that a browser with the cookie of an earlier run does not go on giving
// it.
static void add_cookie(const struct http *http, bool ends, struct MHD_Response *response)
{
    char name[HTTP_COOKIE_NAME], cookie[HTTP_COOKIE_SIZE + HTTP_COOKIE_NAME + 80];
    http_cookie_name(http, name);
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", name,
             ends ? "" : http->cookie, ends ? "; Max-Age=0" : "",
             http->listener.secure ? "; Secure" : "");
    add(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

static void add_headers(const struct http_call_private *own, unsigned code,
                        struct MHD_Response *response)
{
    const struct http_answer *answer = &own->answer;
    char allowed[80];
    add(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    add(response, MHD_HTTP_HEADER_CACHE_CONTROL, answer->cache ? answer->cache : "no-store");
    add(response, MHD_HTTP_HEADER_CONTENT_ENCODING, answer->encoding);
    add(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, answer->disposition);
    add(response, MHD_HTTP_HEADER_ETAG, answer->etag);
    add(response, "X-Content-Type-Options", "nosniff");
    if (own->http->page)
        add_walls(response);
    if (own->logged_in || own->wrong)
        add_cookie(own->http, own->wrong, response);
    if (code == MHD_HTTP_UNAUTHORIZED)
        add(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (code != MHD_HTTP_METHOD_NOT_ALLOWED)
        return;
    http_allowed(own->http, own->call.path, allowed, sizeof allowed);
    add(response, MHD_HTTP_HEADER_ALLOW, allowed);
}

// ---- sending ----

// True if the client has what the answer says, by its ETag.
static bool has_it_already(const struct http_call_private *own, unsigned code)
{
    const char *theirs = http_header(&own->call, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const char *ours = own->answer.etag;
    return code == MHD_HTTP_OK && ours && theirs &&
           (!strcmp(theirs, "*") || strstr(theirs, ours)) &&
           !strcmp(own->call.method, MHD_HTTP_METHOD_GET);
}

static struct MHD_Response *make_response(struct http_call_private *own)
{
    struct http_answer *answer = &own->answer;
    if (answer->stream)
        return http_stream_response(own);
    if (!answer->text)
        return NULL;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->size, answer->text,
        answer->borrowed ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (!response && !answer->borrowed)
        free(answer->text);
    return response;
}

// An answer that is not sent with its body: its strings stay.
static void empty_answer(struct http_answer *answer)
{
    struct http_answer kept = *answer;
    http_drop_answer(answer);
    *answer = kept;
    answer->stream = NULL;
    answer->text = "";
    answer->size = 0;
    answer->borrowed = true;
    answer->type = answer->encoding = answer->disposition = NULL;
}

enum MHD_Result http_send(struct http_call_private *own)
{
    struct http_answer *answer = &own->answer;
    unsigned code = answer->code ? answer->code : MHD_HTTP_OK;
    if (has_it_already(own, code)) {
        code = MHD_HTTP_NOT_MODIFIED;
        empty_answer(answer);
    }
    own->visit->until_ns =
        meter_now_ns() + (answer->stream ? HTTP_SILENCE : HTTP_ANSWER) * HTTP_SECOND;
    struct MHD_Response *response = make_response(own);
    answer->text = NULL;
    answer->stream = NULL;
    if (!response)
        return MHD_NO;
    add_headers(own, code, response);
    enum MHD_Result result = MHD_queue_response(own->connection, code, response);
    MHD_destroy_response(response);
    return result;
}
