// Requests to the HTTP server: which are refused, and what answers say.
#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/output/http/http.h"
#include "tests/http_pages.h"

// ---- what is asked ----

static void methods_and_paths_are_looked_up(void **state)
{
    (void)state;
    struct http *http = serve();
    static const struct row rows[] = {
        {"GET /api/echo HTTP/1.1\r\n" HOST END, 200, "\r\n\r\nGET /api/echo a=(none)"},
        {"PATCH /api/echo HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\n" END "{}", 200,
         "\r\n\r\nPATCH /api/echo a=(none) b=(none) x=(none) 2:{}\n"},
        {"POST /api/undo HTTP/1.1\r\n" HOST END, 200, "POST /api/undo"},
        {"POST /api/echo HTTP/1.1\r\n" HOST END, 405, "\r\nAllow: GET, HEAD, PUT, PATCH\r\n"},
        {"POST /api/echo HTTP/1.1\r\n" HOST END, 405, "\r\nContent-Type: application/json\r\n"},
        {"POST /api/echo HTTP/1.1\r\n" HOST END, 405, "{\"ok\":false,\"error\":\""},
        {"POST /style.css HTTP/1.1\r\n" HOST END, 405, "\r\nAllow: GET, HEAD\r\n"},
        {"POST /style.css HTTP/1.1\r\n" HOST END, 405, "\r\nContent-Type: text/plain"},
        {"OPTIONS /api/undo HTTP/1.1\r\n" HOST END, 405, "\r\nAllow: POST\r\n"},
        {"GET /api/none HTTP/1.1\r\n" HOST END, 404, "{\"ok\":false,\"error\":\"There is no"},
        {"GET /none HTTP/1.1\r\n" HOST END, 404, "\r\n\r\nThere is no"},
        {"GET /api/echo/ HTTP/1.1\r\n" HOST END, 404},
        {"GET /api/files/a.mkv HTTP/1.1\r\n" HOST END, 200, "GET /api/files/a.mkv "},
        {"GET /api/files/ HTTP/1.1\r\n" HOST END, 200},
        {"GET /api/files HTTP/1.1\r\n" HOST END, 404},
        {"GET /api/files/../echo HTTP/1.1\r\n" HOST END, 404},
        {"GET /api/files/%2e%2E%2fecho HTTP/1.1\r\n" HOST END, 404},
        {"GET /api/files/.. HTTP/1.1\r\n" HOST END, 404},
        {"GET /api/files/..a HTTP/1.1\r\n" HOST END, 200},
        {"HEAD /api/echo HTTP/1.1\r\n" HOST END, 200, "\r\nContent-Length: "},
        {"POST /login HTTP/1.1\r\n" HOST END, 404}, // there is no token
    };
    EXPECT_ALL(http, rows);
    destroy_at_once(&http);
}

static void queries_and_headers_are_decoded(void **state)
{
    (void)state;
    struct http *http = serve();
    static const struct row rows[] = {
        {"GET /api/echo?a=1&b=two HTTP/1.1\r\n" HOST END, 200, " a=1 b=two x=(none) "},
        {"GET /api/echo?a=%41%2f+c%26&a=2 HTTP/1.1\r\n" HOST END, 200, " a=A/ c& b=(none) "},
        {"GET /api/echo?b&a= HTTP/1.1\r\n" HOST "X: y\r\n" END, 200, " a= b= x=y "},
        {"GET /api/%65cho HTTP/1.1\r\n" HOST END, 200, "GET /api/echo "},
        {"GET /api/echo?a=% HTTP/1.1\r\n" HOST END, 400, "{\"ok\":false"},
        {"GET /api/echo?a=%4 HTTP/1.1\r\n" HOST END, 400},
        {"GET /api/echo?a=%zz HTTP/1.1\r\n" HOST END, 400},
        {"GET /api/echo?a=1%00 HTTP/1.1\r\n" HOST END, 400},
        {"GET /api/ech%o HTTP/1.1\r\n" HOST END, 400},
    };
    EXPECT_ALL(http, rows);
    destroy_at_once(&http);
}

#define PUT_JSON "PUT /api/echo HTTP/1.1\r\n" JSON "Content-Length: 2\r\n"

static void strangers_are_refused(void **state)
{
    (void)state;
    struct http *http = serve();
    static const struct row rows[] = {
        {PUT_JSON HOST END "{}", 200},
        {PUT_JSON "Host: localhost:8080\r\nOrigin: http://localhost:8080\r\n" END "{}", 200},
        {PUT_JSON "Host: LOCALHOST\r\nOrigin: http://localhost\r\n" END "{}", 200},
        {PUT_JSON HOST "Sec-Fetch-Site: same-origin\r\n" END "{}", 200},
        {PUT_JSON HOST "Sec-Fetch-Site: none\r\n" END "{}", 200},
        {PUT_JSON HOST "Sec-Fetch-Site: cross-site\r\n" END "{}", 403, "{\"ok\":false"},
        {PUT_JSON HOST "Sec-Fetch-Site: same-site\r\n" END "{}", 403},
        {PUT_JSON HOST "Origin: http://evil.example\r\n" END "{}", 403},
        {PUT_JSON HOST "Origin: http://localhost:81\r\n" END "{}", 403},
        {PUT_JSON HOST "Origin: https://localhost\r\n" END "{}", 403},
        {PUT_JSON HOST "Origin: http://localhost.evil.example\r\n" END "{}", 403},
        {PUT_JSON HOST "Origin: file://localhost\r\n" END "{}", 403},
        {PUT_JSON HOST "Origin: null\r\n" END "{}", 403},
        {"POST /api/undo HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n" END, 403},
        {"POST /api/upload HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n" END, 403},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n" END, 200},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Sec-Fetch-Site: same-origin\r\n" END, 200},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Sec-Fetch-Site: none\r\n" END, 200},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n" END, 403},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Sec-Fetch-Site: same-site\r\n" END, 403},
        {"GET / HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n" END, 200}, // a link
        {PUT_JSON "Host: evil.example\r\n" END "{}", 421, "{\"ok\":false"},
        {PUT_JSON "Host: evil.example\r\nOrigin: http://evil.example\r\n" END "{}", 421},
        {"GET / HTTP/1.1\r\nHost: evil.example\r\n" END, 421},
    };
    EXPECT_ALL(http, rows);
    assert_int_equal(upload.begun, 0);
    destroy_at_once(&http);
}

static void answers_have_walls(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char get[] = "GET / HTTP/1.1\r\n" HOST END;
    static const char missing[] = "GET /none HTTP/1.1\r\n" HOST END;
    static const char policy[] =
        "\r\nContent-Security-Policy: default-src 'self'; img-src 'self' blob:; media-src 'self' "
        "blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n";
    static const char *const walls[] = {policy,
                                        "\r\nX-Frame-Options: DENY\r\n",
                                        "\r\nReferrer-Policy: no-referrer\r\n",
                                        "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
                                        "\r\nX-Content-Type-Options: nosniff\r\n",
                                        "\r\nCache-Control: no-store\r\n"};
    for (size_t k = 0; k < sizeof walls / sizeof *walls; k++) {
        expect(http, &(struct row){get, 200, walls[k]});
        expect(http, &(struct row){missing, 404, walls[k]});
    }
    destroy_at_once(&http);
}

// ---- the token ----

#define GUESS(token) "GET /api/echo HTTP/1.1\r\n" HOST "Authorization: Bearer " token "\r\n" END

// Milliseconds until the answer.
static double time_answer(const char *url, const char *request, int code)
{
    char answer[4096];
    int64_t begin_ns = meter_now_ns();
    assert_int_equal(exchange(url, request, answer, sizeof answer), code);
    return (double)(meter_now_ns() - begin_ns) * 1e-6;
}

static void wrong_tokens_wait_longer_and_longer(void **state)
{
    (void)state;
    struct http *http = serve_as(&(struct http_server){.page = true, .token = "secret"});
    const char *url = http_url(http);
    for (int k = 0; k < 8; k++)
        assert_true(time_answer(url, k & 1 ? LOGIN("") "guessa" : GUESS("guess"), 401) < 200);
    double ms[3];
    for (int k = 0; k < 3; k++)
        ms[k] = time_answer(url, k == 1 ? LOGIN("") "guessa" : GUESS("guess"), 401);
    assert_true(ms[0] >= 249 && ms[1] >= 499 && ms[2] >= 999 && ms[2] < 2000);
    // Not to wait does not help, the right ones wait for nobody, and nor does the end.
    int guess[3];
    for (int k = 0; k < 3; k++) {
        guess[k] = dial(url);
        say(guess[k], GUESS("guess"));
    }
    close(guess[0]);
    for (int k = 0; k < 3; k++)
        assert_true(time_answer(url, k & 1 ? LOGIN("") "secret" : GUESS("secret"), 200) < 200);
    struct pollfd waits = {.fd = guess[1], .events = POLLIN};
    assert_int_equal(poll(&waits, 1, 300), 0);
    int other = dial_as(url, 2);
    say(other, GUESS("guess"));
    waits.fd = other;
    assert_int_equal(poll(&waits, 1, 200), 1);
    close(other);
    destroy_at_once(&http);
    close(guess[1]);
    close(guess[2]);
}

// Who does not wait for answers keeps nobody else out.
static void guesses_take_no_places(void **state)
{
    (void)state;
    struct http *http = serve_as(&(struct http_server){.page = true, .token = "secret"});
    const char *url = http_url(http);
    enum { GUESSES = 60 };
    int guess[GUESSES];
    char answer[4096];
    for (int k = 0; k < GUESSES; k++) {
        guess[k] = dial_as(url, k & 1 ? 3 : 4);
        send(guess[k], GUESS("guess"), strlen(GUESS("guess")), MSG_NOSIGNAL);
    }
    int fd = dial_as(url, 2);
    say(fd, GUESS("secret"));
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&waits, 1, 1000), 1);
    assert_true(recv(fd, answer, sizeof answer, 0) > 12 && !strncmp(answer + 9, "200", 3));
    close(fd);
    for (int k = 0; k < GUESSES; k++)
        close(guess[k]);
    destroy_at_once(&http);
}

static void a_token_is_needed(void **state)
{
    (void)state;
    struct http *http = serve_as(&(struct http_server){.page = true, .token = "se cret;"});
    static const struct row rows[] = {
        {"GET / HTTP/1.1\r\n" HOST END, 200}, // is open
        {"GET /api/echo HTTP/1.1\r\n" HOST END, 401, "{\"ok\":false"},
        {"GET /api/echo HTTP/1.1\r\n" HOST END, 401, "\r\nWWW-Authenticate: Bearer\r\n"},
        {"GET /none HTTP/1.1\r\n" HOST END, 401},
        {"POST / HTTP/1.1\r\n" HOST END, 401},
        {"POST /api/upload HTTP/1.1\r\n" HOST END, 401},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Authorization: Bearer se cret;\r\n" END, 200},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Authorization: Bearer se cret\r\n" END, 401},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Authorization: Bearer se cret;;\r\n" END, 401},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Authorization: Bearer \r\n" END, 401},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Authorization: Digest se cret;\r\n" END, 401},
        {"GET /api/echo?token=se+cret; HTTP/1.1\r\n" HOST END, 401},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Cookie: sluice-80=\r\n" END, 401},
        {"GET /api/echo HTTP/1.1\r\n" HOST "Cookie: sluice=se cret;\r\n" END, 401},
        {"GET /none HTTP/1.1\r\n" HOST "Authorization: Bearer se cret;\r\n" END, 404},
        {"GET /login HTTP/1.1\r\n" HOST "Authorization: Bearer se cret;\r\n" END, 405,
         "Allow: POST\r\n"},
    };
    EXPECT_ALL(http, rows);
    assert_int_equal(upload.begun, 0);
    destroy_at_once(&http);
}

// Browsers send a host's cookies to all of its ports.
static void servers_of_one_host_share_no_cookie(void **state)
{
    (void)state;
    struct http *one = serve_as(&(struct http_server){.page = true, .token = "token1"});
    struct http *two = serve_as(&(struct http_server){.page = true, .token = "token2"});
    char answer[4096], wanted[64];
    for (int k = 0; k < 2; k++) {
        struct http *http = k ? two : one;
        const char *port = strrchr(http_url(http), ':') + 1;
        assert_int_equal(exchange(http_url(http), k ? LOGIN("") "token2" : LOGIN("") "token1",
                                  answer, sizeof answer),
                         200);
        snprintf(wanted, sizeof wanted, "\r\nSet-Cookie: sluice-%s=", port);
        assert_non_null(strstr(answer, wanted));
    }
    destroy_at_once(&one);
    destroy_at_once(&two);
}

static void a_login_makes_a_cookie(void **state)
{
    (void)state;
    struct http *http = serve_as(&(struct http_server){.page = true, .token = "token"});
    static const char cookie_get[] =
        "GET /api/echo HTTP/1.1\r\n" HOST "Cookie: other=1; %s%s\r\n" END;
    char answer[4096], request[512], cookie[96] = "";
    assert_int_equal(exchange(http_url(http), LOGIN("") "token\n", answer, sizeof answer), 200);
    assert_non_null(strstr(answer, "\r\n\r\n{\"ok\":true}"));
    assert_non_null(strstr(answer, "; Path=/; HttpOnly; SameSite=Strict\r\n"));
    assert_null(strstr(answer, "token"));
    assert_int_equal(sscanf(strstr(answer, "Set-Cookie: "), "Set-Cookie: %95[^;]", cookie), 1);
    snprintf(request, sizeof request, cookie_get, cookie, "");
    expect(http, &(struct row){request, 200});
    const size_t places[] = {strcspn(cookie, "=") + 1, 40, strlen(cookie) - 1};
    for (int k = 0; k < 3; k++) {
        cookie[places[k]] ^= 1;
        snprintf(request, sizeof request, cookie_get, cookie, "");
        expect(http, &(struct row){request, 401});
        cookie[places[k]] ^= 1;
    }
    snprintf(request, sizeof request, cookie_get, cookie, "0");
    expect(http, &(struct row){request, 401});
    assert_int_equal(exchange(http_url(http), LOGIN("") "Token\n", answer, sizeof answer), 401);
    assert_non_null(strstr(answer, "{\"ok\":false"));
    assert_non_null(strstr(answer, "=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0\r\n"));
    expect(http, &(struct row){LOGIN("Origin: http://evil.example\r\n") "token\n", 403});
    expect(http, &(struct row){"POST /login HTTP/1.1\r\n" HOST END, 401});
    expect(http,
           &(struct row){"POST /login HTTP/1.1\r\n" HOST "Content-Length: 99999999\r\n" END, 413});
    destroy_at_once(&http);
}

static void tokens_are_checked(void **state)
{
    (void)state;
    struct http *http;
    char one[HTTP_TOKEN_SIZE], other[HTTP_TOKEN_SIZE];
    struct http_server server = {"127.0.0.1:0", "a test", pages, .token = "", .page = true};
    assert_int_equal(http_create(&server, &silent, &http), STATUS_USAGE);
    assert_null(http);
    server = (struct http_server){"0.0.0.0:0", "a test", pages, .page = true};
    assert_int_equal(http_create(&server, &silent, &http), STATUS_USAGE);
    server.token = "token";
    assert_int_equal(http_create(&server, &silent, &http), STATUS_OK);
    http_destroy(&http);
    assert_true(http_make_token(one) && http_make_token(other));
    assert_int_equal(strspn(one, "0123456789abcdef"), HTTP_TOKEN_SIZE - 1);
    assert_string_not_equal(one, other);
    assert_true(http_is_local("8080") && http_is_local("127.1.2.3:0") && http_is_local("[::1]:1"));
    assert_false(http_is_local("0.0.0.0:1") || http_is_local("[::]:1") || http_is_local("x"));
}

// ---- answers ----

static void answers_say_what_they_are(void **state)
{
    (void)state;
    struct http *http = serve();
    static const char get[] = "GET /style.css HTTP/1.1\r\n" HOST END;
    static const struct row rows[] = {
        {get, 200, "\r\nContent-Type: text/css\r\n"},
        {get, 200, "\r\nCache-Control: no-cache\r\n"},
        {get, 200, "\r\nContent-Encoding: gzip\r\n"},
        {get, 200, "\r\nContent-Disposition: attachment; filename=\"a.css\"\r\n"},
        {get, 200, "\r\nETag: \"1a\"\r\n"},
        {get, 200, "\r\n\r\nbody{}"},
        {"GET /style.css HTTP/1.1\r\n" HOST "If-None-Match: \"1b\"\r\n" END, 200},
        {"GET /style.css HTTP/1.1\r\n" HOST "If-None-Match: \"1b\", W/\"1a\"\r\n" END, 304,
         "\r\nETag: \"1a\"\r\n"},
        {"GET /digits?sized HTTP/1.1\r\n" HOST END, 200, "\r\nContent-Length: 10\r\n"},
        {"GET /digits?sized HTTP/1.1\r\n" HOST END, 200, "\r\n\r\n0123456789"},
        {"GET /digits HTTP/1.1\r\n" HOST END, 200, "\r\n\r\n0123456789"},
        {"GET /chunks HTTP/1.1\r\n" HOST END, 200, "\r\nTransfer-Encoding: chunked\r\n"},
        {"GET /chunks HTTP/1.1\r\n" HOST END, 200, "\r\n5\r\n56789\r\n0\r\n\r\n"},
        {"GET /chunks HTTP/1.0\r\n" HOST END, 200, "\r\n\r\n0123456789"},
        {"HEAD /chunks HTTP/1.1\r\n" HOST END, 200},
    };
    EXPECT_ALL(http, rows);
    destroy_at_once(&http);
}

static void errors_are_json(void **state)
{
    (void)state;
    struct http_answer answer = {0};
    http_say_error(&answer, 400, "a \"b\" \\ \n");
    assert_int_equal(answer.code, 400);
    assert_string_equal(answer.text, "{\"ok\":false,\"error\":\"a \\\"b\\\" \\\\ \\u000a\"}\n");
    assert_int_equal(answer.size, strlen(answer.text));
    free(answer.text);
}

// A client that has sent more than its request is missed, too, when it goes.
static void a_stream_ends_with_its_client(void **state)
{
    (void)state;
    struct http *http = serve();
    char head[2048];
    int fd = dial(http_url(http));
    say(fd, "GET /chunks?wait HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n");
    hear_head(fd, head, sizeof head);
    assert_int_equal(hear(fd, head, 20), 20);
    wait_ms(50);
    assert_int_equal(http_streams(http), 1);
    close(fd);
    int64_t until = meter_now_ns() + 2 * second_ns;
    while (http_streams(http) && meter_now_ns() < until)
        wait_ms(5);
    assert_int_equal(http_streams(http), 0);
    destroy_at_once(&http);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_and_paths_are_looked_up),
        cmocka_unit_test(queries_and_headers_are_decoded),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(answers_have_walls),
        cmocka_unit_test(a_token_is_needed),
        cmocka_unit_test(wrong_tokens_wait_longer_and_longer),
        cmocka_unit_test(guesses_take_no_places),
        cmocka_unit_test(a_login_makes_a_cookie),
        cmocka_unit_test(servers_of_one_host_share_no_cookie),
        cmocka_unit_test(tokens_are_checked),
        cmocka_unit_test(answers_say_what_they_are),
        cmocka_unit_test(errors_are_json),
        cmocka_unit_test(a_stream_ends_with_its_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
