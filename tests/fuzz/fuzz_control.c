// Attacked: a client's end of the control socket, by lines as clients send them, in pieces; the
// thread that accepts clients is left out.
//
// Must hold: every line gets one line of JSON with "ok", and with "error" where that is false, in
// the order of the lines; the job takes a chain afterwards as before. `snapshot` waits for a frame
// and writes files, and `quit` ends the job: they are tried elsewhere.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/client.h"
#include "control/verbs.h"
#include "sluice/sluice.h"
#include "tests/fuzz/fuzz.h"

static const char usual[] = "chain gray,gaussian=1.4,threshold=20:240\n";

static struct sluice_job *job;

static void stop(void)
{
    sluice_job_destroy(&job);
}

// A job that waits for its first frame.
static void start(void)
{
    static const struct sluice_format format = {
        .size = sizeof format, .pixfmt = "yuv420p", .width = 64, .height = 48};
    struct sluice_config config = {.size = sizeof config,
                                   .push = &format,
                                   .output.name = "null:",
                                   .backend = SLUICE_BACKEND_SCALAR};
    FUZZ_REQUIRE(!sluice_job_create(&config, &job));
    atexit(stop);
}

static json_t *answer(void *opaque, char *line)
{
    return verb_answer(opaque, line);
}

// Send the bytes; what there is of answers is read into `heard`.
static void say(struct client *client, int fd, const char *data, size_t size, struct buffer *heard)
{
    char some[16384];
    ssize_t got;
    FUZZ_REQUIRE(!size || send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
    for (int more = size > 0; more || client_waits(client); more = 0) {
        client_serve(client, true, answer, job);
        FUZZ_REQUIRE(client->fd >= 0);
        while ((got = recv(fd, some, sizeof some, MSG_DONTWAIT)) > 0)
            FUZZ_REQUIRE(buffer_add(heard, some, (size_t)got));
    }
}

// There are so many answers, and the first is a good one.
static void check_answers(struct buffer *heard, int count)
{
    FUZZ_REQUIRE(buffer_add(heard, "", 1));
    char *rest = heard->data;
    for (int k = 0; k < count; k++) {
        FUZZ_REQUIRE(strchr(rest, '\n'));
        json_t *json = json_loads(fuzz_line(&rest), 0, NULL);
        const json_t *ok = json_object_get(json, "ok");
        FUZZ_REQUIRE(json_is_boolean(ok));
        FUZZ_REQUIRE(json_is_true(ok) || json_is_string(json_object_get(json, "error")));
        FUZZ_REQUIRE(k || json_is_true(ok));
        json_decref(json);
    }
    FUZZ_REQUIRE(!*rest);
}

static void talk(const char *text, size_t lines_end, size_t size, int lines)
{
    int fd[2];
    size_t piece = 1 + (size ? (uint8_t)*text : 0);
    struct buffer heard = {0};
    FUZZ_REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    struct client client = {.fd = fd[1]};
    say(&client, fd[0], usual, strlen(usual), &heard);
    for (size_t k = 0; k < lines_end; k += piece)
        say(&client, fd[0], text + k, lines_end - k < piece ? lines_end - k : piece, &heard);
    say(&client, fd[0], text + lines_end, size - lines_end, &heard); // a line without an end
    check_answers(&heard, lines + 1);
    buffer_free(&heard);
    close(fd[0]);
    client_serve(&client, true, answer, job); // notes that the other end has gone
    FUZZ_REQUIRE(client.fd < 0);
}

static bool is_left_out(const char *line)
{
    return !strncmp(line, "snapshot", 8) || !strncmp(line, "quit", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!job)
        start();
    bool leaves_out = false;
    int lines = 0, descriptor = fuzz_next_descriptor();
    size_t begin = 0;
    char *text = fuzz_text(data, size);
    for (size_t k = 0; k < size; k++)
        if (text[k] == '\n') {
            leaves_out |= is_left_out(text + begin);
            begin = k + 1;
            lines++;
        }
    if (!leaves_out)
        talk(text, begin, size, lines);
    free(text);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}
