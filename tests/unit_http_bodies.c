// Bodies and uploads to the HTTP server, and how long its connections live.
#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pipeline/output/http/http.h"
#include "tests/http_pages.h"

// ---- bodies ----

// A request with a body of `size` times 'x', by length or in chunks of 1000.
static int send_body(const struct http *http, const char *head, size_t size, bool chunked,
                     char *answer, size_t answer_size)
{
    char *request = malloc(size + size / 1000 * 8 + strlen(head) + 200), *to = request;
    int code;
    if (!chunked)
        to += sprintf(to, "%sContent-Length: %zu\r\n" END, head, size);
    else
        to += sprintf(to, "%sTransfer-Encoding: chunked\r\n" END, head);
    for (size_t at = 0; at < size;) {
        size_t piece = chunked && size - at > 1000 ? 1000 : size - at;
        if (chunked)
            to += sprintf(to, "%zx\r\n", piece);
        memset(to, 'x', piece);
        to += piece;
        at += piece;
        if (chunked)
            to += sprintf(to, "\r\n");
    }
    strcpy(to, chunked ? "0\r\n\r\n" : "");
    code = exchange(http_url(http), request, answer, answer_size);
    free(request);
    return code;
}

static void bodies_are_limited(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char put[] = "PUT /api/echo HTTP/1.1\r\n" HOST JSON;
    static const char undo[] = "POST /api/undo HTTP/1.1\r\n" HOST;
    char answer[16384];
    for (int chunked = 0; chunked < 2; chunked++) {
        assert_int_equal(send_body(http, put, 4000, chunked, answer, sizeof answer), 200);
        assert_non_null(strstr(answer, " 4000:xxx"));
        assert_int_equal(send_body(http, put, 4001, chunked, answer, sizeof answer), 413);
        assert_non_null(strstr(answer, "{\"ok\":false"));
        assert_int_equal(send_body(http, put, 300000, chunked, answer, sizeof answer), 413);
        assert_int_equal(send_body(http, undo, 1, chunked, answer, sizeof answer), 413);
    }
    static const struct row rows[] = {
        {"PUT /api/echo HTTP/1.1\r\n" HOST JSON "Content-Length: 99999999999999\r\n" END, 413},
        {"PUT /api/echo HTTP/1.1\r\n" HOST JSON
         "Content-Length: 5000\r\nExpect: 100-continue\r\n" END,
         413},
        {"PUT /api/echo HTTP/1.1\r\n" HOST JSON "Content-Length: x\r\n" END, 400},
        {"PUT /api/echo HTTP/1.1\r\n" HOST JSON "Content-Length: 0\r\n" END, 200, " 0:\n"},
        {"PUT /api/echo HTTP/1.1\r\n" HOST END, 200, " 0:\n"},
    };
    EXPECT_ALL(http, rows);
    destroy_at_once(&http);
}

static void bodies_are_json(void **state)
{
    (void)state;
    struct http *http = serve();
    static const struct row rows[] = {
        {"PUT /api/echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n" END "{}", 415, "{\"ok\":false"},
        {"PUT /api/echo HTTP/1.1\r\n" HOST "Content-Type: text/plain\r\nContent-Length: 2\r\n" END
         "{}",
         415},
        {"PUT /api/echo HTTP/1.1\r\n" HOST
         "Content-Type: application/yaml\r\nContent-Length: 2\r\n" END "{}",
         415},
        {"PUT /api/echo HTTP/1.1\r\n" HOST
         "Content-Type: application/jsonp\r\nContent-Length: 2\r\n" END "{}",
         415},
        {"PUT /api/echo HTTP/1.1\r\n" HOST
         "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n" END "{}",
         200},
        {"POST /api/upload HTTP/1.1\r\n" HOST "Content-Type: video/mp4\r\nContent-Length: 2\r\n" END
         "{}",
         200},
    };
    EXPECT_ALL(http, rows);
    destroy_at_once(&http);
}

// An endless body in chunks that is refused ends with the connection.
static void endless_bodies_end(void **state)
{
    (void)state;
    struct http *http = serve();
    static char chunk[65536 + 16];
    int fd = dial(http_url(http));
    size_t sent = 0;
    say(fd, "PUT /api/echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n");
    int head = sprintf(chunk, "10000\r\n");
    memset(chunk + head, 'x', 65536);
    memcpy(chunk + head + 65536, "\r\n", 2);
    for (ssize_t got = 1; got > 0 && sent<100 << 20; sent += got> 0 ? (size_t)got : 0)
        got = send(fd, chunk, (size_t)head + 65538, MSG_NOSIGNAL);
    assert_in_range(sent, 1 << 20, 50 << 20);
    close(fd);
    destroy_at_once(&http);
}

// ---- uploads ----

static void uploads_come_by_pieces(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char post[] = "POST /api/upload?name=a HTTP/1.1\r\n" HOST;
    enum { SIZE = 10 << 20 };
    char answer[4096], wanted[64];
    unsigned sum = 0;
    for (int k = 0; k < SIZE; k++)
        sum = sum * 31 + 'x';
    snprintf(wanted, sizeof wanted, "\r\n\r\n%d %u\n", SIZE, sum);
    for (int chunked = 0; chunked < 2; chunked++) {
        assert_int_equal(send_body(http, post, SIZE, chunked, answer, sizeof answer), 200);
        assert_non_null(strstr(answer, wanted));
    }
    assert_int_equal(send_body(http, post, 0, false, answer, sizeof answer), 200);
    assert_int_equal(upload.begun, 3);
    assert_int_equal(upload.answered, 3);
    assert_int_equal(upload.gone, 0);
    expect(http,
           &(struct row){"POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n" END,
                         413});
    assert_int_equal(upload.begun, 3);
    static const char any[] = "POST /api/any HTTP/1.1\r\n" HOST;
    for (int chunked = 0; chunked < 2; chunked++)
        assert_int_equal(send_body(http, any, SIZE, chunked, answer, sizeof answer), 200);
    destroy_at_once(&http);
}

static void uploads_are_refused_by_their_taker(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char post[] = "POST /api/upload HTTP/1.1\r\n" HOST;
    char answer[4096];
    upload.refuse_at = 0; // before the body
    expect(http,
           &(struct row){"POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 9000000\r\n" END,
                         507, "\r\n\r\n0 "});
    assert_int_equal(send_body(http, post, 5000, true, answer, sizeof answer), 507);
    assert_int_equal(upload.bytes, 0);
    upload.refuse_at = 1000000; // within it: no piece comes afterwards
    assert_int_equal(send_body(http, post, 5 << 20, false, answer, sizeof answer), 507);
    assert_in_range(upload.bytes, 1000000, 1100000);
    assert_int_equal(upload.begun, 3);
    assert_int_equal(upload.answered, 3);
    assert_int_equal(upload.gone, 0);
    destroy_at_once(&http);
}

// A client that goes, one that sends more than it may in chunks, and the server's end.
static void broken_uploads_are_told(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char head[] =
        "POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\nsome";
    int fd = dial(http_url(http));
    say(fd, head);
    await(&upload.begun, 1);
    close(fd);
    await(&upload.gone, 1);
    fd = dial(http_url(http));
    say(fd, head);
    await(&upload.begun, 2);
    destroy_at_once(&http);
    assert_int_equal(upload.gone, 2);
    assert_int_equal(upload.answered, 0);
    close(fd);
}

static void uploads_are_limited(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char head[] =
        "POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\nsome";
    int fd[HTTP_PAGE_STREAMS];
    for (int k = 0; k < HTTP_PAGE_STREAMS; k++) {
        fd[k] = dial(http_url(http));
        say(fd[k], head);
    }
    await(&upload.begun, HTTP_PAGE_STREAMS);
    expect(http, &(struct row){"POST /api/upload HTTP/1.1\r\n" HOST END, 503, "{\"ok\":false"});
    expect(http, &(struct row){"GET /api/echo HTTP/1.1\r\n" HOST END, 200});
    for (int k = 0; k < HTTP_PAGE_STREAMS; k++)
        close(fd[k]);
    await(&upload.gone, HTTP_PAGE_STREAMS);
    destroy_at_once(&http);
}

// Uploads that have come count no more, though their connections are kept.
static void finished_uploads_do_not_count(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char post[] = "POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx";
    char head[2048];
    int fd[HTTP_PAGE_STREAMS];
    for (int k = 0; k < HTTP_PAGE_STREAMS; k++) {
        say(fd[k] = dial(http_url(http)), post);
        hear_head(fd[k], head, sizeof head);
        assert_non_null(strstr(head, " 200 "));
    }
    assert_int_equal(code_of(http_url(http), post), 200);
    for (int k = 0; k < HTTP_PAGE_STREAMS; k++)
        close(fd[k]);
    destroy_at_once(&http);
}

// ---- connections ----

static void connections_are_kept(void **state)
{
    (void)state;
    struct http *http = serve();
    char head[2048];
    int fd = dial(http_url(http));
    for (int k = 0; k < 3; k++) {
        say(fd, "HEAD /api/echo HTTP/1.1\r\n" HOST "\r\n");
        hear_head(fd, head, sizeof head);
        assert_non_null(strstr(head, " 200 "));
        say(fd, "POST /api/undo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
        hear_head(fd, head, sizeof head);
        assert_non_null(strstr(head, " 413 "));
        unsigned long size = strtoul(strstr(head, "Content-Length: ") + 16, NULL, 10);
        assert_int_equal(hear(fd, head, size), size);
    }
    close(fd);
    destroy_at_once(&http);
}

// Five clients at once, each with its own pace: which are closed, and when.
static void every_pace_has_its_limit(void **state)
{
    (void)state;
    struct http *http = serve();
    enum { DRIP, KEPT, AGAIN, CRAWL, MOVE, CLIENTS };
    static char block[HTTP_REQUEST * 8 << 10];
    static const char *const heads[CLIENTS] = {
        [DRIP] = "PUT /api/echo HTTP/1.1\r\n" HOST JSON "Content-Length: 1000\r\n\r\n",
        [KEPT] = "HEAD /api/echo HTTP/1.1\r\n" HOST "\r\n",
        [AGAIN] = "HEAD /api/echo HTTP/1.1\r\n" HOST "\r\n",
        [CRAWL] = "POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n",
        [MOVE] = "POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 4000000\r\n\r\n",
    };
    int fd[CLIENTS];
    double ended[CLIENTS] = {0};
    char head[2048];
    int64_t begin = meter_now_ns();
    for (int k = 0; k < CLIENTS; k++)
        say(fd[k] = dial(http_url(http)), heads[k]);
    hear_head(fd[KEPT], head, sizeof head);
    hear_head(fd[AGAIN], head, sizeof head);
    double now = 0;
    bool asked = false;
    while ((now = (double)(meter_now_ns() - begin) / 1e9) < HTTP_SILENCE + 3) {
        for (int k = 0; k < CLIENTS; k++)
            if (!ended[k] && is_closed(fd[k]))
                ended[k] = now;
        (void)!send(fd[DRIP], "x", 1, MSG_NOSIGNAL);
        if (now > 3 && !asked) // a second request, whose head never ends
            (void)!send(fd[AGAIN], heads[AGAIN], strlen(heads[AGAIN]) - 4, MSG_NOSIGNAL);
        asked = now > 3;
        (void)!send(fd[AGAIN], "x", asked, MSG_NOSIGNAL);
        (void)!send(fd[CRAWL], "x", 1, MSG_NOSIGNAL);
        (void)!send(fd[MOVE], block, 8 << 10, MSG_NOSIGNAL);
        wait_ms(100);
    }
    assert_in_range(10 * ended[DRIP], 10 * HTTP_REQUEST - 10, 10 * HTTP_REQUEST + 15);
    assert_in_range(10 * ended[KEPT], 10 * HTTP_SILENCE - 10, 10 * HTTP_SILENCE + 15);
    assert_in_range(10 * ended[AGAIN], 30 + 10 * HTTP_REQUEST - 10, 30 + 10 * HTTP_REQUEST + 15);
    assert_in_range(10 * ended[CRAWL], 10 * HTTP_SILENCE - 10, 10 * HTTP_SILENCE + 15);
    assert_true(ended[MOVE] == 0);
    for (int k = 0; k < CLIENTS; k++)
        close(fd[k]);
    destroy_at_once(&http);
}

// An upload goes on meanwhile, and whoever asks is answered at once.
static void five_hundred_connections_keep_nobody_away(void **state)
{
    (void)state;
    enum { MANY = 500 };
    struct rlimit files;
    struct http *http = serve();
    static const char get[] = "GET /api/echo HTTP/1.1\r\n" HOST "\r\n";
    static int fd[MANY];
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < MANY + 2 * HTTP_CONNECTIONS + 50)
        skip();
    int sending = dial(http_url(http));
    say(sending, "POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n" END);
    await(&upload.begun, 1);
    for (int k = 0; k < MANY; k++) {
        fd[k] = dial_as(http_url(http), 1 + (unsigned)k % 7);
        (void)!send(fd[k], get, k % 3 ? k % 3 == 1 ? 20 : strlen(get) : 0, MSG_NOSIGNAL);
        if (k % 50)
            continue;
        int64_t begin = meter_now_ns();
        assert_int_equal(code_of(http_url(http), get), 200);
        assert_true(meter_now_ns() - begin < second_ns);
    }
    char piece[1001] = "", answer[2048];
    memset(piece, 'x', 1000);
    say(sending, piece);
    answer[hear(sending, answer, sizeof answer - 1)] = 0;
    assert_non_null(strstr(answer, " 200 "));
    close(sending);
    for (int k = 0; k < MANY; k++)
        close(fd[k]);
    destroy_at_once(&http);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_limited),
        cmocka_unit_test(bodies_are_json),
        cmocka_unit_test(endless_bodies_end),
        cmocka_unit_test(uploads_come_by_pieces),
        cmocka_unit_test(uploads_are_refused_by_their_taker),
        cmocka_unit_test(broken_uploads_are_told),
        cmocka_unit_test(uploads_are_limited),
        cmocka_unit_test(finished_uploads_do_not_count),
        cmocka_unit_test(connections_are_kept),
        cmocka_unit_test(every_pace_has_its_limit),
        cmocka_unit_test(five_hundred_connections_keep_nobody_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
