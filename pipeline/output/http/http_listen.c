#include "pipeline/output/http/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"

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

// Resolve the address to listen on; IPv4 where a name has both.
static enum status resolve(const struct http_server *server, const struct log *log,
                           struct sockaddr_storage *to, socklen_t *size)
{
    struct address address;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    if (!parse_address(server->address, &address))
        return log_fail(
            log, STATUS_USAGE,
            "'%s' is no address for %s; it takes PORT (on this machine only), HOST:PORT, "
            "[IPV6]:PORT or 0.0.0.0:PORT",
            server->address, server->name);
    int error = getaddrinfo(address.host, address.port, &hints, &found);
    if (error)
        return log_fail(log, STATUS_USAGE, "%s is no address for %s: %s", server->address,
                        server->name, gai_strerror(error));
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

static enum status bind_to(const struct http_server *server, const struct log *log,
                           const struct sockaddr_storage *address, socklen_t size, int *fd)
{
    const int yes = 1, no = 0;
    *fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0) {
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no); // [::] is everywhere
    }
    if (*fd >= 0 && !bind(*fd, (const struct sockaddr *)address, size) &&
        !listen(*fd, 8 * HTTP_CONNECTIONS))
        return STATUS_OK;
    int error = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return log_fail(log, STATUS_OUTPUT, "%s cannot be shown at %s: %s", server->name,
                    server->address, strerror(error));
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void describe(struct http_listener *listener)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "", port[8] = "";
    getsockname(listener->fd, (struct sockaddr *)&address, &size);
    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    bool v6 = address.ss_family == AF_INET6;
    listener->loopback = is_loopback(&address);
    listener->port = atoi(port);
    snprintf(listener->url, sizeof listener->url, "%s://%s%s%s:%s",
             listener->secure ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

enum status http_listen(const struct http_server *server, const struct log *log,
                        struct http_listener *listener)
{
    struct sockaddr_storage address;
    socklen_t size = 0;
    *listener = (struct http_listener){.fd = -1, .secure = server->tls_cert};
    enum status status = resolve(server, log, &address, &size);
    if (!status)
        status = bind_to(server, log, &address, size, &listener->fd);
    if (!status)
        describe(listener);
    return status;
}

bool http_is_local(const char *address)
{
    const struct http_server server = {.address = address, .name = ""};
    struct sockaddr_storage found;
    socklen_t size = 0;
    const struct log silent = {0};
    return !resolve(&server, &silent, &found, &size) && is_loopback(&found);
}
