#define _GNU_SOURCE
// `--control PATH`: a socket through which a running job is asked and changed, a line at a time.
//
//   get                      the chain
//   set STAGE.OPTION=V, ...  other options from the next frame on, all at once
//   chain CHAIN              another chain
//   stats                    how it goes
//   snapshot FILE            write the next picture into an image file
//   quit                     stop, as SIGINT does
//
// Every line is answered by one line of JSON with "ok", and "error" where that is false.
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/app.h"

enum { CLIENTS = 16, LINE = 4096, LOOK_MS = 100 };

struct client {
    int fd; // -1: none
    size_t used;
    char line[LINE];
};

struct control {
    struct sluice_job *job;
    const char *path;
    int listener;
    pthread_t thread;
    atomic_bool done;
    struct client client[CLIENTS];
};

// ---- answers ----

static json_t *refusal(const char *why)
{
    json_t *text = json_string(why);
    return json_pack("{s:b, s:o}", "ok", 0, "error", text ? text : json_string("not UTF-8"));
}

static json_t *chain_answer(struct sluice_job *job)
{
    char *chain = sluice_job_chain(job);
    json_t *answer = json_pack("{s:b, s:s}", "ok", 1, "chain", chain ? chain : "");
    free(chain);
    return answer;
}

static json_t *ledger_stats(const struct sluice_progress *now)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "in",
                     (json_int_t)now->frames_in, "filled", (json_int_t)now->frames_filled, "out",
                     (json_int_t)now->frames_out, "dropped_range", (json_int_t)now->dropped_range,
                     "dropped_stop", (json_int_t)now->dropped_stop, "dropped_clock",
                     (json_int_t)now->dropped_clock, "dropped_late", (json_int_t)now->dropped_late,
                     "damaged_frames", (json_int_t)now->frames_damaged, "damaged_packets",
                     (json_int_t)now->packets_damaged);
}

static json_t *live_stats(const struct sluice_progress *now)
{
    return json_pack("{s:b, s:I, s:I, s:f, s:{s:f, s:f, s:f}, s:I}", "lost", now->lost, "losses",
                     (json_int_t)now->losses, "reconnects", (json_int_t)now->reconnects, "lost_s",
                     now->lost_seconds, "latency_s", "p50", now->latency.quantile[0], "p95",
                     now->latency.quantile[1], "p99", now->latency.quantile[2], "bytes",
                     (json_int_t)now->bytes_out);
}

// Names are those of the closing summary.
static json_t *stats_answer(const struct sluice_job *job)
{
    struct sluice_progress progress;
    sluice_job_progress(job, &progress);
    double fps = progress.seconds > 0 ? (double)progress.frames / progress.seconds : 0;
    json_t *ledger = ledger_stats(&progress), *live = live_stats(&progress);
    json_t *answer =
        json_pack("{s:b, s:I, s:f, s:f, s:f, s:I}", "ok", 1, "frames", (json_int_t)progress.frames,
                  "fps", fps, "wall_s", progress.seconds, "media_s", progress.media_seconds,
                  "damaged", (json_int_t)progress.damaged);
    json_object_update(answer, ledger);
    json_object_update(answer, live);
    json_decref(ledger);
    json_decref(live);
    return answer;
}

static json_t *answer_to(struct sluice_job *job, char *line)
{
    char why[1024];
    char *rest = line + strcspn(line, " \t");
    if (*rest)
        *rest++ = 0;
    if (!strcmp(line, "get"))
        return chain_answer(job);
    if (!strcmp(line, "set") || !strcmp(line, "chain")) {
        enum sluice_status status = !strcmp(line, "set")
                                        ? sluice_job_set(job, rest, why, sizeof why)
                                        : sluice_job_set_chain(job, rest, why, sizeof why);
        return status ? refusal(*why ? why : sluice_status_name(status)) : chain_answer(job);
    }
    if (!strcmp(line, "stats"))
        return stats_answer(job);
    if (!strcmp(line, "snapshot")) {
        enum sluice_status status = sluice_job_snapshot(job, rest, why, sizeof why);
        return status ? refusal(*why ? why : sluice_status_name(status))
                      : json_pack("{s:b}", "ok", 1);
    }
    if (!strcmp(line, "quit")) {
        sluice_job_stop(job);
        return json_pack("{s:b}", "ok", 1);
    }
    return refusal(
        "the commands are get, set STAGE.OPTION=VALUE, chain CHAIN, stats, snapshot FILE and quit");
}

// ---- clients ----

static void drop_client(struct client *client)
{
    close(client->fd);
    client->fd = -1;
}

static void answer_line(struct control *control, struct client *client, char *line)
{
    json_t *answer = answer_to(control->job, line);
    char *text = answer ? json_dumps(answer, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    // A client that does not read is not waited for.
    if (!text || send(client->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ||
        send(client->fd, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        drop_client(client);
    free(text);
    json_decref(answer);
}

static void read_client(struct control *control, struct client *client)
{
    ssize_t got = recv(client->fd, client->line + client->used, LINE - 1 - client->used, 0);
    if (got <= 0) {
        drop_client(client);
        return;
    }
    client->used += (size_t)got;
    char *end;
    while (client->fd >= 0 && (end = memchr(client->line, '\n', client->used))) {
        size_t length = (size_t)(end - client->line) + 1;
        *end = 0;
        if (end > client->line && end[-1] == '\r')
            end[-1] = 0;
        answer_line(control, client, client->line);
        client->used -= length;
        memmove(client->line, client->line + length, client->used);
    }
    if (client->fd >= 0 && client->used == LINE - 1)
        drop_client(client); // no line is so long
}

static void accept_client(struct control *control)
{
    int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC);
    for (int k = 0; fd >= 0 && k < CLIENTS; k++) {
        if (control->client[k].fd >= 0)
            continue;
        control->client[k].fd = fd;
        control->client[k].used = 0;
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void *control_run(void *control_)
{
    struct control *control = control_;
    while (!control->done) {
        struct pollfd waits[CLIENTS + 1] = {{.fd = control->listener, .events = POLLIN}};
        for (int k = 0; k < CLIENTS; k++)
            waits[k + 1] = (struct pollfd){.fd = control->client[k].fd, .events = POLLIN};
        if (poll(waits, CLIENTS + 1, LOOK_MS) <= 0)
            continue;
        for (int k = 0; k < CLIENTS; k++)
            if (control->client[k].fd >= 0 && waits[k + 1].revents)
                read_client(control, &control->client[k]);
        if (waits[0].revents)
            accept_client(control);
    }
    return NULL;
}

// ---- the socket ----

static bool make_address(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) < sizeof address->sun_path) {
        strcpy(address->sun_path, path);
        return true;
    }
    fprintf(stderr, "sluice: the socket's name %s is too long; it may have %zu bytes\n", path,
            sizeof address->sun_path - 1);
    return false;
}

static int connect_to(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// Listen there, for this user only. What an earlier run left there is removed; a socket that
// somebody listens on, or anything else, is not.
static int listen_on(const char *path)
{
    struct sockaddr_un address;
    struct stat about;
    if (!make_address(path, &address))
        return -1;
    int other = connect_to(&address);
    if (other >= 0) {
        close(other);
        fprintf(stderr, "sluice: another run listens on %s\n", path);
        return -1;
    }
    if (!lstat(path, &about) && S_ISSOCK(about.st_mode))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t mask = umask(0177);
    bool failed = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 8);
    int error = errno;
    umask(mask);
    if (!failed)
        return fd;
    fprintf(stderr, "sluice: %s cannot be listened on: %s\n", path, strerror(error));
    if (fd >= 0)
        close(fd);
    return -1;
}

bool control_start(struct sluice_job *job, const char *path, struct control **control)
{
    *control = NULL;
    if (!path)
        return true;
    struct control *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->job = job;
    made->path = path;
    for (int k = 0; k < CLIENTS; k++)
        made->client[k].fd = -1;
    made->listener = listen_on(path);
    if (made->listener < 0 || pthread_create(&made->thread, NULL, control_run, made)) {
        free(made);
        return false;
    }
    *control = made;
    return true;
}

void control_stop(struct control **control)
{
    struct control *old = *control;
    if (!old)
        return;
    old->done = true;
    pthread_join(old->thread, NULL);
    for (int k = 0; k < CLIENTS; k++)
        if (old->client[k].fd >= 0)
            close(old->client[k].fd);
    close(old->listener);
    unlink(old->path);
    free(old);
    *control = NULL;
}

// ---- the other side ----

// A line of the words; the name of a file from here, since the job may be elsewhere.
static void send_words(FILE *to, char *const *word, int words)
{
    char folder[4096];
    bool file = words > 1 && !strcmp(word[0], "snapshot") && *word[1] != '/';
    bool known = file && getcwd(folder, sizeof folder);
    for (int k = 0; k < words; k++)
        fprintf(to, "%s%s%s%s", known && k == 1 ? folder : "", known && k == 1 ? "/" : "", word[k],
                k + 1 < words ? " " : "\n");
    fflush(to);
}

int ctl_command(struct settings *settings)
{
    struct sockaddr_un address;
    char answer[65536];
    size_t used = 0;
    if (!settings->topic || !settings->words)
        return fprintf(stderr,
                       "sluice: usage: sluice ctl PATH get|set|chain|stats|snapshot|quit ...\n"),
               EXIT_USAGE;
    if (!make_address(settings->topic, &address))
        return EXIT_USAGE;
    int fd = connect_to(&address);
    if (fd < 0) {
        fprintf(stderr, "sluice: nobody listens on %s: %s\n", settings->topic, strerror(errno));
        return EXIT_INPUT;
    }
    FILE *to = fdopen(fd, "w");
    if (to)
        send_words(to, settings->word, settings->words);
    while (used < sizeof answer - 1 && !memchr(answer, '\n', used)) {
        ssize_t got = recv(fd, answer + used, sizeof answer - 1 - used, 0);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    answer[used] = 0;
    fputs(answer, stdout);
    if (to)
        fclose(to);
    return strstr(answer, "\"ok\":true") ? EXIT_WHOLE : used ? EXIT_USAGE : EXIT_INPUT;
}
