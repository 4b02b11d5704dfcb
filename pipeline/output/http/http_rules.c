// Which requests are refused, and with what words.
#include "pipeline/output/http/http_internal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- the table ----

static bool is_of_path(const struct http_page *page, const char *path)
{
    size_t length = strlen(page->path);
    if (length && page->path[length - 1] == '*')
        return !strncmp(page->path, path, length - 1);
    return !strcmp(page->path, path);
}

const struct http_page *http_find_page(const struct http *http, const char *method,
                                       const char *path)
{
    if (http->guarded && is_of_path(&http_login_page, path) &&
        (!method || !strcmp(method, http_login_page.method)))
        return &http_login_page;
    for (const struct http_page *page = http->pages; page->path; page++)
        if (is_of_path(page, path) && (!method || !strcmp(method, page->method)))
            return page;
    return NULL;
}

static void add_method(char *to, size_t size, const char *method)
{
    size_t length = strlen(to);
    if (!strstr(to, method))
        snprintf(to + length, size - length, "%s%s", length ? ", " : "", method);
    if (!strcmp(method, MHD_HTTP_METHOD_GET))
        add_method(to, size, MHD_HTTP_METHOD_HEAD);
}

void http_allowed(const struct http *http, const char *path, char *to, size_t size)
{
    *to = 0;
    if (http->guarded && is_of_path(&http_login_page, path))
        add_method(to, size, http_login_page.method);
    for (const struct http_page *page = http->pages; page->path; page++)
        if (is_of_path(page, path))
            add_method(to, size, page->method);
}

// ---- parts of a request ----

bool http_is_target(const char *target)
{
    for (const char *at = target; (at = strchr(at, '%')); at += 3)
        if (!isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2]) ||
            !strncmp(at, "%00", 3))
            return false;
    return true;
}

// True if a path has "..", which no page of ours has: a last "*" stands for names below a folder.
static bool climbs(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at += 3)
        if (!at[3] || at[3] == '/')
            return true;
    return false;
}

uint64_t http_body_size(const struct http_call *call)
{
    const char *size = http_header(call, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (http_header(call, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return UINT64_MAX;
    return size ? strtoull(size, NULL, 10) : 0;
}

// True if the Host header cannot be a stranger's name.
static bool is_our_name(const struct http *http, const struct http_call *call)
{
    const char *asked = http_header(call, MHD_HTTP_HEADER_HOST);
    struct in_addr number;
    char name[256];
    if (!http->listener.loopback || !asked || *asked == '[')
        return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, ":"), asked);
    return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &number) == 1;
}

// True if a browser says that another site's page asks. Sec-Fetch-Site: Fetch Metadata Request
// Headers (W3C); "none" is the address bar.
static bool is_of_other_site(const struct http_call *call)
{
    const char *site = http_header(call, "Sec-Fetch-Site");
    return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

// True if a page of ours sends this, or no browser does. Origin: RFC 6454.
static bool is_our_page(const struct http *http, const struct http_call *call)
{
    const char *origin = http_header(call, MHD_HTTP_HEADER_ORIGIN);
    const char *host = http_header(call, MHD_HTTP_HEADER_HOST);
    const char *scheme = http->listener.secure ? "https://" : "http://";
    if (!origin)
        return !is_of_other_site(call);
    return host && !strncmp(origin, scheme, strlen(scheme)) &&
           !strcasecmp(origin + strlen(scheme), host);
}

// Other sites' pages may link to the page, but neither change anything nor put its pictures and
// streams to work.
static bool may_ask(const struct http *http, const struct http_call *call)
{
    if (!http->page)
        return true;
    if (strcmp(call->method, MHD_HTTP_METHOD_GET) != 0)
        return is_our_page(http, call);
    return strncmp(call->path, "/api/", 5) != 0 || !is_of_other_site(call);
}

static bool is_json(const struct http_call *call)
{
    static const char json[] = "application/json";
    const char *type = http_header(call, MHD_HTTP_HEADER_CONTENT_TYPE);
    return type && !strncasecmp(type, json, strlen(json)) &&
           (!type[strlen(json)] || strchr("; \t", type[strlen(json)]));
}

// ---- the rules ----

// Rules of who asks, which strangers hear of before anything else.
static unsigned check_client(const struct http_call_private *own, const char **sentence)
{
    const struct http *http = own->http;
    bool open = own->page && own->page->open;
    if (own->visit->malformed) {
        *sentence = "The address has a '%' without two digits behind it.";
        return MHD_HTTP_BAD_REQUEST;
    }
    if (!is_our_name(http, &own->call)) {
        *sentence = "This is only shown on this machine, as localhost.";
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (http->guarded && !open && !http_is_known(own)) {
        *sentence = "This needs the token that sluice was started with.";
        return MHD_HTTP_UNAUTHORIZED;
    }
    return 0;
}

// Rules of what is asked for.
static unsigned check_page(const struct http_call_private *own, const char **sentence)
{
    const char *path = own->call.path;
    if (climbs(path) || !http_find_page(own->http, NULL, path)) {
        *sentence = "There is no such page.";
        return MHD_HTTP_NOT_FOUND;
    }
    if (!own->page) {
        *sentence = "This cannot be done with this page.";
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    if (!may_ask(own->http, &own->call)) {
        *sentence = "Pages of other sites may not ask for this.";
        return MHD_HTTP_FORBIDDEN;
    }
    return 0;
}

uint64_t http_body_max(const struct http_page *page)
{
    return page->receive && !page->body_max ? UINT64_MAX : page->body_max;
}

static unsigned check_body(const struct http_call_private *own, const char **sentence)
{
    const struct http_page *page = own->page;
    uint64_t size = http_body_size(&own->call);
    bool json = own->http->page && page->body_max && !page->receive && page != &http_login_page;
    if (size && json && !is_json(&own->call)) {
        *sentence = "The body has to be JSON, as Content-Type: application/json.";
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    if (size > http_body_max(page) && size < UINT64_MAX) {
        *sentence = page->body_max ? "The body is too large." : "This takes no body.";
        return HTTP_TOO_LARGE;
    }
    return 0;
}

unsigned http_check(const struct http_call_private *own, const char **sentence)
{
    unsigned code = check_client(own, sentence);
    if (!code)
        code = check_page(own, sentence);
    if (!code)
        code = check_body(own, sentence);
    return code;
}
