// Attacked: the control socket of a job, by lines as clients send them, in pieces.
//
// Must hold: every line gets one line of JSON with "ok", and with "error" where that is false, in
// the order of the lines; the job takes a chain afterwards as before. `snapshot` waits for a frame
// and writes files, and `quit` ends the job: they are tried elsewhere.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/socket.h"
#include "tests/fuzz/fuzz.h"

static const char usual[] = "chain gray,gaussian=1.4,threshold=20:240\n";

static struct sluice_job *job;
static struct socket_server *server;
static char path[64];
static struct sockaddr_un address;

static void stop(void)
{
    socket_stop(&server);
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
    snprintf(path, sizeof path, "/tmp/sluice-fuzz-%d", (int)getpid());
    FUZZ_REQUIRE(!sluice_job_create(&config, &job));
    FUZZ_REQUIRE(socket_address(path, &address) && socket_start(job, path, &server));
    atexit(stop);
}

// Read so many answers.
static void hear(FILE *from, int count, bool fine)
{
    char *line = NULL;
    size_t room = 0;
    for (int k = 0; k < count; k++) {
        FUZZ_REQUIRE(getline(&line, &room, from) > 0);
        json_t *answer = json_loads(line, 0, NULL);
        const json_t *ok = json_object_get(answer, "ok");
        FUZZ_REQUIRE(json_is_boolean(ok));
        FUZZ_REQUIRE(json_is_true(ok) || json_is_string(json_object_get(answer, "error")));
        FUZZ_REQUIRE(!fine || json_is_true(ok));
        json_decref(answer);
    }
    free(line);
}

static void say(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        FUZZ_REQUIRE(sent > 0);
        data += sent;
        size -= (size_t)sent;
    }
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
    int lines = 0;
    size_t begin = 0, piece = 1 + (size ? data[0] : 0);
    char *text = fuzz_text(data, size);
    for (size_t k = 0; k < size; k++)
        if (text[k] == '\n') {
            leaves_out |= is_left_out(text + begin);
            begin = k + 1;
            lines++;
        }
    if (!leaves_out) {
        int fd = socket_connect(&address);
        FILE *from = fd >= 0 ? fdopen(fd, "r") : NULL;
        FUZZ_REQUIRE(from);
        say(fd, usual, strlen(usual));
        hear(from, 1, true);
        for (size_t k = 0; k < begin; k += piece)
            say(fd, text + k, begin - k < piece ? begin - k : piece);
        hear(from, lines, false);
        say(fd, text + begin, size - begin); // a line without an end
        fclose(from);
    }
    free(text);
    return 0;
}
