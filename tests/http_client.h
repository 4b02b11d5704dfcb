// Clients of the HTTP server, with real sockets on loopback.
#pragma once

#include "tests/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/meter.h"

static const struct log silent;
static const int64_t second_ns = 1000000000;

// Connect as the client 127.0.0.N.
static inline int dial_as(const char *url, unsigned client)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct sockaddr_in own = {.sin_family = AF_INET};
    own.sin_addr.s_addr = htonl((127u << 24) + client);
    address.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static inline int dial(const char *url)
{
    return dial_as(url, 1);
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static inline int ask(const char *url, const char *path)
{
    char request[256];
    int fd = dial(url);
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    say(fd, request);
    return fd;
}

// Bytes that come until `size` of them are there, the other side closes or five seconds are over.
static inline size_t hear(int fd, char *to, size_t size)
{
    size_t got = 0;
    int64_t until = meter_now_ns() + 5 * second_ns;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (got < size && meter_now_ns() < until && poll(&wait, 1, 100) >= 0) {
        ssize_t count = wait.revents ? recv(fd, to + got, size - got, 0) : 0;
        if (wait.revents && count <= 0)
            break;
        got += (size_t)count;
    }
    return got;
}

// The first line and all the headers of an answer.
static inline void hear_head(int fd, char *head, size_t size)
{
    size_t got = 0;
    while (got + 1 < size && hear(fd, head + got, 1) == 1) {
        head[++got] = 0;
        if (got >= 4 && !strcmp(head + got - 4, "\r\n\r\n"))
            return;
    }
    head[got] = 0;
    fail_msg("no whole head: '%s'", head);
}

// Ask, and give back the code.
static inline int code_of(const char *url, const char *request)
{
    char head[2048];
    int fd = dial(url), code = 0;
    say(fd, request);
    hear_head(fd, head, sizeof head);
    close(fd);
    assert_int_equal(sscanf(head, "HTTP/1.%*d %d", &code), 1);
    return code;
}

// True if the other side has closed it.
static inline bool is_closed(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static inline void wait_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

// Say a request on a fresh connection, and hear the whole answer; the code of it.
static inline int exchange(const char *url, const char *request, char *answer, size_t size)
{
    int fd = dial(url), code = 0;
    say(fd, request);
    answer[hear(fd, answer, size - 1)] = 0;
    close(fd);
    (void)!sscanf(answer, "HTTP/1.%*d %d", &code);
    return code;
}
