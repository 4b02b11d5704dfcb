// Pages and moving pictures over HTTP, with real sockets on loopback, slow and hanging clients.
#include "tests/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/output/http/http.h"
#include "base/meter.h"
#include "pipeline/output/http/mjpeg.h"
#include "tests/http_client.h"

// ---- viewers ----

// Read a part of the stream; returns how large its picture is, and the first byte of it.
static size_t hear_part(int fd, bool first, char *value)
{
    static char data[1 << 20];
    char head[512], wanted[64];
    unsigned long size = 0;
    if (first)
        assert_int_equal(hear(fd, data, 10), 10);
    if (first)
        assert_memory_equal(data, "--sluice\r\n", 10);
    hear_head(fd, head, sizeof head);
    assert_int_equal(sscanf(head, "Content-Type: %63s\r\nContent-Length: %lu\r\n", wanted, &size),
                     2);
    assert_string_equal(wanted, "image/jpeg");
    assert_in_range(size, 1, sizeof data);
    assert_int_equal(hear(fd, data, size), size);
    *value = data[0];
    for (unsigned long k = 0; k < size; k++)
        assert_int_equal(data[k], *value);
    assert_int_equal(hear(fd, data, 12), 12); // the next boundary, before there is a next picture
    assert_memory_equal(data, "\r\n--sluice\r\n", 12);
    return size;
}

static int watch_as(const char *url, unsigned client)
{
    char head[2048];
    int fd = dial_as(url, client);
    say(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear_head(fd, head, sizeof head);
    assert_non_null(strstr(head, " 200 "));
    assert_non_null(strstr(head, "Content-Type: multipart/x-mixed-replace; boundary=sluice\r\n"));
    assert_null(strstr(head, "chunked"));
    return fd;
}

static int watch(const char *url)
{
    return watch_as(url, 1);
}

// ---- pictures ----

static void show(struct mjpeg *mjpeg, char value, int size)
{
    AVPacket *packet = av_packet_alloc();
    assert_int_equal(av_new_packet(packet, size), 0);
    memset(packet->data, value, (size_t)size);
    assert_int_equal(mjpeg_show(mjpeg, packet), STATUS_OK);
    av_packet_free(&packet);
}

static struct mjpeg *serve(void)
{
    struct mjpeg *mjpeg;
    assert_int_equal(mjpeg_create("127.0.0.1:0", "<cam>", &silent, &mjpeg), STATUS_OK);
    return mjpeg;
}

static void await_watchers(struct mjpeg *mjpeg, int count)
{
    int64_t until = meter_now_ns() + 5 * second_ns;
    while (mjpeg_watchers(mjpeg) != count) {
        assert_true(meter_now_ns() < until);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static void destroy_at_once(struct mjpeg **mjpeg)
{
    int64_t begin = meter_now_ns();
    mjpeg_destroy(mjpeg);
    assert_true(meter_now_ns() - begin < second_ns);
    assert_null(*mjpeg);
}

// ---- the server ----

static void answer(void *opaque, const struct http_call *call, struct http_answer *to)
{
    (void)call;
    http_say(to, 0, "text/plain", opaque);
}

static const struct http_page pages[] = {{"GET", "/a", answer}, {NULL}};

static enum status try_address(const char *address)
{
    struct http *http;
    const struct http_server server = {address, "a test", pages, (void *)"hello"};
    enum status status = http_create(&server, &silent, &http);
    assert_true((status == STATUS_OK) == (http != NULL));
    http_destroy(&http);
    return status;
}

// A bare system has no /etc/hosts.
static bool knows_localhost(void)
{
    struct addrinfo *found = NULL;
    bool known = !getaddrinfo("localhost", NULL, NULL, &found);
    if (known)
        freeaddrinfo(found);
    return known;
}

static void addresses_are_checked(void **state)
{
    (void)state;
    static const char *const fine[] = {"0", ":0", "127.0.0.1:0", "0.0.0.0:0"};
    static const char *const bad[] = {"",        ":",
                                      "x",       "-1",
                                      "65536",   "1 ",
                                      "[::1]",   "[::1:80",
                                      "[]:80",   "::1:80",
                                      "h:",      "h:80x",
                                      "1.2.3:x", "127.0.0.1",
                                      "[::1]80", "+80",
                                      "0x50",    "80:h",
                                      "h:0:80",  "999999",
                                      ":65536",  "a b.invalid:80"};
    for (size_t k = 0; k < sizeof fine / sizeof *fine; k++)
        if (try_address(fine[k]))
            fail_msg("'%s' is refused", fine[k]);
    if (knows_localhost() && try_address("localhost:0"))
        fail_msg("'localhost:0' is refused");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        if (try_address(bad[k]) != STATUS_USAGE)
            fail_msg("'%s' is taken", bad[k]);
}

static void ipv6_is_listened_on(void **state)
{
    (void)state;
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&loopback, sizeof loopback);
    if (fd >= 0)
        close(fd);
    if (!has)
        skip();
    assert_int_equal(try_address("[::1]:0"), STATUS_OK);
    assert_int_equal(try_address("[::]:0"), STATUS_OK);
}

static void a_port_in_use_is_refused(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    assert_int_equal(try_address(strrchr(mjpeg_url(mjpeg), '/') + 1), STATUS_OUTPUT);
    destroy_at_once(&mjpeg);
}

static void only_looking_is_allowed(void **state)
{
    (void)state;
    struct http *http;
    char text[2048];
    const struct http_server server = {"0", "a test", pages, (void *)"hello"};
    assert_int_equal(http_create(&server, &silent, &http), STATUS_OK);
    const char *url = http_url(http);
    static const struct {
        const char *request;
        int code;
    } rows[] = {
        {"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
        {"GET /a?b=c HTTP/1.1\r\nHost: LOCALHOST:80\r\n\r\n", 200},
        {"GET /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", 200},
        {"GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200},
        {"GET /a HTTP/1.0\r\n\r\n", 200},
        {"HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
        {"GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
        {"GET /a HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421},
        {"GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
        {"GET /a/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
        {"GET /../a HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
        {"PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", 405},
        {"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx", 405},
        {"DELETE /a HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (code_of(url, rows[k].request) != rows[k].code)
            fail_msg("%s is not answered by %d", rows[k].request, rows[k].code);
    int fd = dial(url);
    say(fd, "HEAD /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    text[hear(fd, text, sizeof text - 1)] = 0;
    assert_non_null(strstr(text, "Content-Length: 5\r\n"));
    assert_string_equal(text + strlen(text) - 4, "\r\n\r\n"); // and no more
    close(fd);
    http_destroy(&http);
    http_destroy(&http); // accepts NULL
}

static void idle_connections_do_not_shut_others_out(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    int64_t begin_ns = meter_process_ns();
    int fd[3 * HTTP_CONNECTIONS];
    for (int k = 0; k < 3 * HTTP_CONNECTIONS; k++)
        fd[k] = dial(mjpeg_url(mjpeg));
    // Those that never ask are dismissed after their time.
    int64_t until = meter_now_ns() + 3 * HTTP_SILENCE * second_ns;
    char head[2048] = "";
    while (!strstr(head, " 503 ")) {
        int one = ask(mjpeg_url(mjpeg), "/snapshot.jpg");
        head[hear(one, head, sizeof head - 1)] = 0;
        close(one);
        assert_true(meter_now_ns() < until);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    assert_true(meter_process_ns() - begin_ns < second_ns); // nor is there a loop that spins
    for (int k = 0; k < 3 * HTTP_CONNECTIONS; k++)
        close(fd[k]);
    destroy_at_once(&mjpeg);
}

// They come again when they are dismissed, and never end their requests. Whoever asks meanwhile is
// answered at once, of the same address or not.
static void clients_that_drip_keep_nobody_away(void **state)
{
    (void)state;
    enum { DRIPS = 300 };
    struct mjpeg *mjpeg = serve();
    static const char get[] = "GET /snapshot.jpg HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd[DRIPS];
    for (int k = 0; k < DRIPS; k++)
        fd[k] = dial(mjpeg_url(mjpeg));
    int64_t until = meter_now_ns() + 4 * second_ns;
    for (int round = 0; meter_now_ns() < until; round++) {
        for (int k = 0; k < DRIPS; k++) {
            if (is_closed(fd[k]) && !close(fd[k]))
                fd[k] = dial(mjpeg_url(mjpeg));
            (void)!send(fd[k], &"GET /aaaaaa"[round < 11 ? round : 10], 1, MSG_NOSIGNAL);
        }
        int64_t begin = meter_now_ns();
        assert_int_equal(code_of(mjpeg_url(mjpeg), get), 503);
        assert_true(meter_now_ns() - begin < second_ns);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    for (int k = 0; k < DRIPS; k++)
        close(fd[k]);
    destroy_at_once(&mjpeg);
}

static void a_request_has_a_deadline(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    int fd = dial(mjpeg_url(mjpeg));
    int64_t begin = meter_now_ns();
    say(fd, "GET /");
    while (!is_closed(fd) && meter_now_ns() - begin < 2 * HTTP_REQUEST * second_ns) {
        (void)!send(fd, "a", 1, MSG_NOSIGNAL);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    assert_true(is_closed(fd));
    assert_true(meter_now_ns() - begin >= (HTTP_REQUEST - 1) * second_ns);
    close(fd);
    destroy_at_once(&mjpeg);
}

// ---- moving pictures ----

static void pictures_are_parts(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    char value;
    int fd = watch(mjpeg_url(mjpeg)); // before there is any
    await_watchers(mjpeg, 1);
    show(mjpeg, 'a', 1000);
    assert_int_equal(hear_part(fd, true, &value), 1000);
    assert_int_equal(value, 'a');
    show(mjpeg, 'b', 300000);
    assert_int_equal(hear_part(fd, false, &value), 300000);
    assert_int_equal(value, 'b');
    int late = watch(mjpeg_url(mjpeg)); // gets what is there
    assert_int_equal(hear_part(late, true, &value), 300000);
    await_watchers(mjpeg, 2);
    close(fd);
    await_watchers(mjpeg, 1); // without any new picture
    close(late);
    await_watchers(mjpeg, 0);
    destroy_at_once(&mjpeg);
}

static void a_snapshot_is_the_newest_picture(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    char text[4096];
    static const char get[] = "GET /snapshot.jpg HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_int_equal(code_of(mjpeg_url(mjpeg), get), 503);
    show(mjpeg, 'a', 100);
    show(mjpeg, 'b', 200);
    int fd = ask(mjpeg_url(mjpeg), "/snapshot.jpg");
    hear_head(fd, text, sizeof text);
    assert_non_null(strstr(text, "Content-Type: image/jpeg\r\n"));
    assert_non_null(strstr(text, "Content-Length: 200\r\n"));
    assert_int_equal(hear(fd, text, 200), 200);
    assert_int_equal(text[199], 'b');
    close(fd);
    fd = ask(mjpeg_url(mjpeg), "/");
    hear_head(fd, text, sizeof text);
    assert_non_null(strstr(text, "text/html"));
    ssize_t heard = read(fd, text, sizeof text - 1);
    assert_true(heard > 0);
    text[heard] = 0;
    assert_non_null(strstr(text, "<title>&lt;cam&gt;</title>"));
    assert_non_null(strstr(text, "display:block"));
    close(fd);
    static const char age[] = "GET /age HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_int_equal(code_of(mjpeg_url(mjpeg), age), 200);
    assert_int_equal(mjpeg_watchers(mjpeg), 0);
    destroy_at_once(&mjpeg);
}

// One client never reads; the other gets every picture meanwhile, and the newest at last.
static void a_stuck_client_costs_others_nothing(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    char value;
    int stuck = ask(mjpeg_url(mjpeg), "/stream"), fd = watch(mjpeg_url(mjpeg));
    await_watchers(mjpeg, 2);
    int64_t begin = meter_now_ns();
    for (int k = 0; k < 60; k++) { // 30 MB, more than sockets hold
        show(mjpeg, (char)('0' + k), 500000);
        assert_int_equal(hear_part(fd, k == 0, &value), 500000);
        assert_int_equal(value, '0' + k);
    }
    assert_true(meter_now_ns() - begin < HTTP_SILENCE * second_ns);
    assert_int_equal(mjpeg_watchers(mjpeg), 2);
    int64_t until = meter_now_ns() + 3 * HTTP_SILENCE * second_ns;
    while (mjpeg_watchers(mjpeg) == 2 && meter_now_ns() < until) // it is dismissed
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(mjpeg_watchers(mjpeg), 1);
    close(stuck);
    close(fd);
    destroy_at_once(&mjpeg);
}

// Pictures that come faster than a client reads are left out, and the last one is not.
static void the_latest_picture_wins(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    char value = 0;
    int parts = 0, fd = watch(mjpeg_url(mjpeg));
    await_watchers(mjpeg, 1);
    for (int k = 0; k < 80; k++)
        show(mjpeg, (char)('!' + k), 500000);
    for (; value != '!' + 79; parts++) {
        char before = value;
        hear_part(fd, parts == 0, &value);
        assert_true(value > before);
    }
    assert_in_range(parts, 1, 79);
    close(fd);
    destroy_at_once(&mjpeg);
}

static void watchers_are_limited(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    int fd[MJPEG_WATCHERS];
    static const char get[] = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (int k = 0; k < HTTP_CLIENT_STREAMS; k++)
        fd[k] = watch_as(mjpeg_url(mjpeg), 2);
    int refused = dial_as(mjpeg_url(mjpeg), 2);
    char head[2048];
    say(refused, get);
    hear_head(refused, head, sizeof head);
    assert_non_null(strstr(head, " 503 ")); // but others are served
    close(refused);
    for (int k = HTTP_CLIENT_STREAMS; k < MJPEG_WATCHERS; k++)
        fd[k] = watch(mjpeg_url(mjpeg));
    await_watchers(mjpeg, MJPEG_WATCHERS);
    assert_int_equal(code_of(mjpeg_url(mjpeg), get), 503);
    close(fd[0]);
    await_watchers(mjpeg, MJPEG_WATCHERS - 1);
    fd[0] = watch(mjpeg_url(mjpeg));
    for (int k = 0; k < MJPEG_WATCHERS; k++)
        close(fd[k]);
    await_watchers(mjpeg, 0);
    destroy_at_once(&mjpeg);
}

// A client that takes a picture in drips is not waited for, though it is never silent.
static void a_stream_that_drips_ends(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    char bytes[200];
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_port = htons((uint16_t)atoi(strrchr(mjpeg_url(mjpeg), ':') + 1));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), least = 1, segment = 536;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    say(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await_watchers(mjpeg, 1);
    show(mjpeg, 'a', 20 << 20);
    int64_t until = meter_now_ns() + 3 * HTTP_SILENCE * second_ns;
    while (mjpeg_watchers(mjpeg) && meter_now_ns() < until) {
        (void)!recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    assert_int_equal(mjpeg_watchers(mjpeg), 0);
    close(fd);
    destroy_at_once(&mjpeg);
}

// Clients that wait, that never read, that never finished asking and that never asked.
static void the_end_waits_for_nobody(void **state)
{
    (void)state;
    struct mjpeg *mjpeg = serve();
    char byte;
    int waits = watch(mjpeg_url(mjpeg)), stuck = ask(mjpeg_url(mjpeg), "/stream");
    int half = dial(mjpeg_url(mjpeg)), mute = dial(mjpeg_url(mjpeg));
    say(half, "GET /str");
    await_watchers(mjpeg, 2);
    for (int k = 0; k < 40; k++)
        show(mjpeg, 'a', 500000);
    destroy_at_once(&mjpeg);
    while (recv(waits, &byte, 1, 0) > 0) // it is closed
        ;
    close(waits);
    close(stuck);
    close(half);
    close(mute);
}

static void it_ends_while_clients_wait(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct mjpeg *mjpeg = serve();
        int fd[4];
        for (int k = 0; k < 4; k++)
            fd[k] = ask(mjpeg_url(mjpeg), "/stream");
        if (round % 2)
            await_watchers(mjpeg, 4);
        show(mjpeg, 'a', 100);
        destroy_at_once(&mjpeg);
        for (int k = 0; k < 4; k++)
            close(fd[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(ipv6_is_listened_on),
        cmocka_unit_test(a_port_in_use_is_refused),
        cmocka_unit_test(only_looking_is_allowed),
        cmocka_unit_test(idle_connections_do_not_shut_others_out),
        cmocka_unit_test(clients_that_drip_keep_nobody_away),
        cmocka_unit_test(a_request_has_a_deadline),
        cmocka_unit_test(pictures_are_parts),
        cmocka_unit_test(a_snapshot_is_the_newest_picture),
        cmocka_unit_test(a_stuck_client_costs_others_nothing),
        cmocka_unit_test(the_latest_picture_wins),
        cmocka_unit_test(watchers_are_limited),
        cmocka_unit_test(a_stream_that_drips_ends),
        cmocka_unit_test(the_end_waits_for_nobody),
        cmocka_unit_test(it_ends_while_clients_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
