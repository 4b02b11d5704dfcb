// The HTTP server's certificates, and clients by TLS, where there is an openssl command.
#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/output/http/http.h"
#include "tests/http_pages.h"

static char folder[] = "/tmp/sluice-http-XXXXXX";

static bool make_certificate(const char *name)
{
    char command[512];
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
             "subjectAltName=IP:127.0.0.1 -keyout %s/%s.key -out %s/%s.crt 2>/dev/null",
             folder, name, folder, name);
    return !system(command);
}

static const char *in_folder(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *to = fopen(in_folder(name), "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

static char complaint[512];

static void note_complaint(void *opaque, enum log_level level, const char *text)
{
    (void)opaque, (void)level;
    snprintf(complaint, sizeof complaint, "%s", text);
}

static void certificates_are_checked(void)
{
    static const struct {
        const char *cert, *key, *says;
    } rows[] = {
        {"one.crt", NULL, "the key is missing"},
        {NULL, "one.key", "the certificate is missing"},
        {"none", "one.key", "No such file"},
        {"one.crt", "none", "No such file"},
        {"empty", "one.key", "is empty"},
        {"one.key", "one.key", "holds no certificate"},
        {"one.crt", "one.crt", "holds no private key"},
        {"one.crt", "locked.key", "has a password"},
        {"one.crt", "other.key", "do not belong together"},
        {"broken", "one.key", "damaged"},
    };
    const struct log log = {.print = note_complaint};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct http *http;
        const struct http_server server = {"127.0.0.1:0", "a test", pages,
                                           .tls_cert =
                                               rows[k].cert ? in_folder(rows[k].cert) : NULL,
                                           .tls_key = rows[k].key ? in_folder(rows[k].key) : NULL};
        *complaint = 0;
        assert_int_equal(http_create(&server, &log, &http), STATUS_USAGE);
        assert_null(http);
        if (!strstr(complaint, rows[k].says))
            fail_msg("'%s' does not say '%s'", complaint, rows[k].says);
    }
}

static void ask_by_tls(const struct http *http, const char *request, char *answer, size_t size)
{
    char command[512];
    write_text("request", request);
    snprintf(command, sizeof command,
             "openssl s_client -quiet -verify_quiet -CAfile %s -verify_return_error -connect "
             "127.0.0.1:%s -verify_ip 127.0.0.1 <%s 2>/dev/null",
             in_folder("one.crt"), strrchr(http_url(http), ':') + 1, in_folder("request"));
    FILE *from = popen(command, "r");
    assert_non_null(from);
    answer[fread(answer, 1, size - 1, from)] = 0;
    pclose(from);
}

static void pages_are_secure(void)
{
    char answer[4096];
    struct http *http = serve_as(&(struct http_server){.page = true,
                                                       .token = "token",
                                                       .tls_cert = in_folder("one.crt"),
                                                       .tls_key = in_folder("one.key")});
    assert_memory_equal(http_url(http), "https://127.0.0.1:", 18);
    ask_by_tls(http, "GET / HTTP/1.1\r\n" HOST END, answer, sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    ask_by_tls(http, LOGIN("Origin: https://localhost\r\n") "token\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "; HttpOnly; SameSite=Strict; Secure\r\n"));
    ask_by_tls(http, LOGIN("Origin: http://localhost\r\n") "token\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 403 "));
    int64_t begin = meter_now_ns();
    int mute = dial(http_url(http)); // never shakes hands
    int plain = dial(http_url(http));
    say(plain, "GET / HTTP/1.1\r\n" HOST END);
    assert_true(hear(plain, answer, sizeof answer) < 20); // an alert at most
    close(plain);
    ask_by_tls(http, "GET / HTTP/1.1\r\n" HOST END, answer, sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    while (!is_closed(mute) && meter_now_ns() - begin < 2 * HTTP_REQUEST * second_ns)
        wait_ms(50);
    assert_true(is_closed(mute));
    close(mute);
    destroy_at_once(&http);
}

// Streams by TLS, too, come as they are, and end with their clients.
static void streams_are_secure(void)
{
    char answer[4096], command[512];
    struct http *http = serve_as(&(struct http_server){
        .page = true, .tls_cert = in_folder("one.crt"), .tls_key = in_folder("one.key")});
    ask_by_tls(http, "GET /digits HTTP/1.1\r\n" HOST END, answer, sizeof answer);
    assert_non_null(strstr(answer, "\r\n\r\n0123456789"));
    write_text("request", "GET /chunks?wait HTTP/1.1\r\n" HOST "\r\n");
    snprintf(command, sizeof command,
             "timeout 2 openssl s_client -quiet -connect 127.0.0.1:%s <%s 2>/dev/null",
             strrchr(http_url(http), ':') + 1, in_folder("request"));
    FILE *from = popen(command, "r");
    assert_non_null(from);
    size_t got = 0;
    for (*answer = 0; !strstr(answer, "56789"); answer[got] = 0) {
        size_t more = fread(answer + got, 1, 1, from);
        assert_true(more && got + 1 < sizeof answer);
        got += more;
    }
    assert_int_equal(http_streams(http), 1);
    pclose(from);
    int64_t until = meter_now_ns() + 2 * second_ns;
    while (http_streams(http) && meter_now_ns() < until)
        wait_ms(5);
    assert_int_equal(http_streams(http), 0);
    destroy_at_once(&http);
}

static void https_is_served(void **state)
{
    (void)state;
    if (system("command -v openssl >/dev/null"))
        skip();
    assert_non_null(mkdtemp(folder));
    char command[256];
    assert_true(make_certificate("one") && make_certificate("other"));
    write_text("empty", "");
    write_text("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    snprintf(command, sizeof command,
             "openssl pkey -aes128 -passout pass:word -in %s -out %s 2>/dev/null",
             in_folder("one.key"), in_folder("locked.key"));
    assert_int_equal(system(command), 0);
    certificates_are_checked();
    pages_are_secure();
    streams_are_secure();
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(https_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
