// Attacked: the server of the control page, by one connection's bytes: the page itself, its files,
// and every route of its interface, without a job.
//
// Must hold: each connection is answered by HTTP or closed; afterwards the page answers a visitor as
// before. Uploads are not sent: they are files.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "page/page.h"
#include "tests/fuzz/fuzz.h"

enum { ANSWER_MS = 2000, IDLE_MS = 1, OFTEN = 64, UNFINISHED = 8 };

static struct page *page;
static uint16_t port;

static void take_log(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque, (void)level, (void)sentence;
}

static void stop(void)
{
    page_destroy(&page);
}

static void start(void)
{
    static const struct log log = {.print = take_log};
    static struct sluice_config config = {.size = sizeof config};
    struct page_request request = {.listen = "127.0.0.1:0", .chooses = true, .config = &config};
    FUZZ_REQUIRE(!page_create(&request, &log, &page));
    port = (uint16_t)atoi(strrchr(page_url(page), ':') + 1);
    atexit(stop);
}

// The alarm by which libFuzzer watches the time interrupts calls.
static bool comes(int fd, short event, int wait_ms)
{
    struct pollfd wait = {.fd = fd, .events = event};
    int count;
    do
        count = poll(&wait, 1, wait_ms);
    while (count < 0 && errno == EINTR);
    return count > 0;
}

static bool connects(int fd, const struct sockaddr_in *to)
{
    int error = 0;
    if (!connect(fd, (const struct sockaddr *)to, sizeof *to))
        return true;
    return errno == EINTR && comes(fd, POLLOUT, ANSWER_MS) &&
           !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}) && !error;
}

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct linger at_once = {.l_onoff = 1}; // no port waits for its end
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_REQUIRE(fd >= 0 && connects(fd, &to));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return fd;
}

// What comes until the other side closes or has been silent for so long; of an answer that has begun
// what is there. Returns its first bytes' number.
static size_t hear(int fd, char *to, size_t size, int wait_ms)
{
    char rest[4096] = "";
    size_t got = 0;
    for (int more = 256; more > 0 && comes(fd, POLLIN, got < size ? wait_ms : 0); more--) {
        bool room = got < size;
        ssize_t count = recv(fd, room ? to + got : rest, room ? size - got : sizeof rest, 0);
        if (count <= 0)
            break;
        got += room ? (size_t)count : 0;
    }
    return got;
}

static void check_page(void)
{
    static const char request[] = "GET /api/stats HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n";
    char answer[16];
    int fd = dial();
    FUZZ_REQUIRE(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
    FUZZ_REQUIRE(hear(fd, answer, sizeof answer, ANSWER_MS) == sizeof answer);
    FUZZ_REQUIRE(!memcmp(answer, "HTTP/1.1 ", 9));
    close(fd);
}

static void ask(const uint8_t *data, size_t size, bool ends)
{
    static const char end[] = "\r\n\r\n";
    char answer[16];
    int fd = dial();
    (void)!send(fd, data, size, MSG_NOSIGNAL | (ends ? MSG_MORE : 0));
    if (ends)
        (void)!send(fd, end, strlen(end), MSG_NOSIGNAL);
    size_t got = hear(fd, answer, sizeof answer, IDLE_MS);
    FUZZ_REQUIRE(got < 7 || !memcmp(answer, "HTTP/1.", 7));
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int count;
    if (!page)
        start();
    char *text = fuzz_text(data, size);
    bool whole = strstr(text, "\r\n\r\n"), uploads = strstr(text, "upload");
    bool leaves = !fuzz_share(data, size, UNFINISHED);
    if (!uploads && (whole || leaves || fuzz_replays))
        ask(data, size, false);
    if (!uploads && !whole && (!leaves || fuzz_replays)) // nothing comes of a head without an end
        ask(data, size, true);
    free(text);
    if (count++ % OFTEN == 0)
        check_page();
    return 0;
}
