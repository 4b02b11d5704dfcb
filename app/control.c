#define _GNU_SOURCE
// `--control PATH`: a socket through which a running job is asked and changed, a line at a time, by
// the verbs of control/verbs.h. Every line is answered by one line of JSON with "ok", and "error"
// where that is false; the next one when that answer has been taken.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "app/app.h"
#include "control/clock.h"
#include "control/verbs.h"

// The longest command gives the numbers of the largest kernel, 511x511.
enum { CLIENTS = 16, MAX_COMMAND = 4 << 20, LOOK_MS = 100, ACCEPT_MS = 250, ANSWER_MS = 10000 };

struct text {
    char *data;
    size_t size, room;
};

struct client {
    int fd;              // -1: none
    struct text in, out; // not handled yet, not sent yet
    bool too_long;       // the beginning of the command that comes in is thrown away
    int64_t moved_ms;    // when the client last took some of `out`
};

struct control {
    const char *path;
    int listener;
    int spare;          // a descriptor to refuse clients with when there is no other; -1: none
    int64_t accepts_ms; // when the next client is accepted
    pthread_t thread;
    atomic_bool done;
    atomic_bool quits; // a client has asked for the end
    struct client client[CLIENTS];
    pthread_mutex_t lock; // held while a job answers
    // ---- guarded by lock ----
    struct sluice_job *job; // NULL: none now
};

// ---- text ----

static bool text_add(struct text *text, const char *data, size_t size)
{
    size_t wanted = text->size + size;
    if (wanted > text->room) {
        size_t room = wanted > 2 * text->room ? wanted : 2 * text->room;
        char *larger = realloc(text->data, room);
        if (!larger)
            return false;
        text->data = larger;
        text->room = room;
    }
    memcpy(text->data + text->size, data, size);
    text->size = wanted;
    return true;
}

// Remove the beginning.
static void text_remove(struct text *text, size_t size)
{
    text->size -= size;
    memmove(text->data, text->data + size, text->size);
}

static void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

// ---- clients ----

static void drop_client(struct client *client)
{
    close(client->fd);
    text_free(&client->in);
    text_free(&client->out);
    *client = (struct client){.fd = -1};
}

// Send what the client takes at once; the rest waits for it.
static void send_answers(struct client *client)
{
    ssize_t sent =
        send(client->fd, client->out.data, client->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0) {
        drop_client(client);
        return;
    }
    text_remove(&client->out, (size_t)sent);
    client->moved_ms = now_ms();
    if (!client->out.size)
        text_free(&client->out);
}

// `answer` may be NULL, without memory.
static void answer_client(struct client *client, json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    bool added =
        text && text_add(&client->out, text, strlen(text)) && text_add(&client->out, "\n", 1);
    free(text);
    json_decref(answer);
    client->moved_ms = now_ms();
    if (added)
        send_answers(client);
    else
        drop_client(client);
}

static json_t *ask_job(struct control *control, char *line)
{
    bool quits = !strcmp(line, "quit");
    json_t *answer;
    control->quits |= quits;
    pthread_mutex_lock(&control->lock);
    if (control->job)
        answer = verb_answer(control->job, line);
    else
        answer = quits ? json_pack("{s:b}", "ok", 1) : verb_refusal("there is no input now");
    pthread_mutex_unlock(&control->lock);
    return answer;
}

static json_t *answer_line(struct control *control, const struct client *client, char *line)
{
    char why[64];
    if (!client->too_long)
        return ask_job(control, line);
    snprintf(why, sizeof why, "the command is longer than %d bytes", MAX_COMMAND);
    return verb_refusal(why);
}

// Answer the lines that have come, one after another: the next when the last answer is sent.
static void answer_lines(struct control *control, struct client *client)
{
    struct text *in = &client->in;
    char *end;
    while (in->size && !client->out.size && (end = memchr(in->data, '\n', in->size))) {
        size_t length = (size_t)(end - in->data) + 1;
        *end = 0;
        if (end > in->data && end[-1] == '\r')
            end[-1] = 0;
        json_t *answer = answer_line(control, client, in->data);
        client->too_long = false;
        text_remove(in, length);
        answer_client(client, answer); // a client that is dropped has no text
    }
    if (in->size > MAX_COMMAND && !client->out.size) {
        client->too_long = true;
        in->size = 0;
    }
    if (!in->size)
        text_free(in);
}

static void read_client(struct control *control, struct client *client)
{
    char data[16384];
    ssize_t got = recv(client->fd, data, sizeof data, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && text_add(&client->in, data, (size_t)got))
        answer_lines(control, client);
    else
        drop_client(client);
}

// A client whose answer waits is not read from, and not waited for without end.
static void serve_client(struct control *control, struct client *client, bool ready)
{
    bool waits = client->out.size;
    if (ready && !waits)
        read_client(control, client);
    else if (ready)
        send_answers(client);
    else if (waits && now_ms() - client->moved_ms > ANSWER_MS)
        drop_client(client);
    if (ready && waits && client->fd >= 0)
        answer_lines(control, client);
}

// ---- new clients ----

// Refuse a client: a sentence, then the end.
static void refuse_fd(int fd, const char *why)
{
    struct client client = {.fd = fd};
    answer_client(&client, verb_refusal(why));
    if (client.fd >= 0)
        drop_client(&client);
}

// No descriptor is left: the spare one serves to say so. Where even that fails, the client waits in
// the listener's queue, which is not looked at meanwhile: it would be ready at every look.
static void refuse_client(struct control *control)
{
    if (control->spare >= 0)
        close(control->spare);
    int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        refuse_fd(fd, "the run has no file descriptor left for a client (ulimit -n)");
    control->spare = fcntl(control->listener, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        control->accepts_ms = now_ms() + ACCEPT_MS;
}

static void accept_client(struct control *control)
{
    int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        refuse_client(control);
    for (int k = 0; fd >= 0 && k < CLIENTS; k++) {
        if (control->client[k].fd >= 0)
            continue;
        control->client[k] = (struct client){.fd = fd};
        return;
    }
    if (fd >= 0)
        refuse_fd(fd, "too many clients are connected to this socket; try again later");
}

// Wait for what clients do, without the seats that are free: poll() takes no more than a process
// may have descriptors. Fills `ready` of each client; returns whether there may be a new one.
static bool await_clients(const struct control *control, bool *ready)
{
    bool accepts = now_ms() >= control->accepts_ms;
    struct pollfd waits[CLIENTS + 1] = {{.fd = accepts ? control->listener : -1, .events = POLLIN}};
    int count = 1, seat[CLIENTS + 1];
    for (int k = 0; k < CLIENTS; k++) {
        const struct client *client = &control->client[k];
        ready[k] = false;
        if (client->fd < 0)
            continue;
        seat[count] = k;
        waits[count++] =
            (struct pollfd){.fd = client->fd, .events = client->out.size ? POLLOUT : POLLIN};
    }
    if (poll(waits, (nfds_t)count, LOOK_MS) < 0) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
        return false;
    }
    for (int k = 1; k < count; k++)
        ready[seat[k]] = waits[k].revents;
    return waits[0].revents;
}

static void *control_run(void *control_)
{
    struct control *control = control_;
    bool ready[CLIENTS];
    while (!control->done) {
        bool another = await_clients(control, ready);
        for (int k = 0; k < CLIENTS; k++)
            if (control->client[k].fd >= 0)
                serve_client(control, &control->client[k], ready[k]);
        if (another)
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
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    bool failed = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64);
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
    assert(control);
    *control = NULL;
    if (!path)
        return true;
    struct control *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->job = job;
    made->path = path;
    pthread_mutex_init(&made->lock, NULL);
    for (int k = 0; k < CLIENTS; k++)
        made->client[k].fd = -1;
    made->listener = listen_on(path);
    made->spare = made->listener < 0 ? -1 : fcntl(made->listener, F_DUPFD_CLOEXEC, 0);
    if (made->listener >= 0 && !pthread_create(&made->thread, NULL, control_run, made)) {
        *control = made;
        return true;
    }
    if (made->listener >= 0) {
        fprintf(stderr, "sluice: no thread could be started for the socket %s\n", path);
        close(made->listener);
        unlink(path);
    }
    if (made->spare >= 0)
        close(made->spare);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return false;
}

void control_turn(struct control *control, struct sluice_job *job)
{
    if (!control)
        return;
    pthread_mutex_lock(&control->lock);
    control->job = job;
    pthread_mutex_unlock(&control->lock);
}

bool control_quits(const struct control *control)
{
    return control && control->quits;
}

void control_stop(struct control **control)
{
    assert(control);
    struct control *old = *control;
    if (!old)
        return;
    old->done = true;
    pthread_join(old->thread, NULL);
    for (int k = 0; k < CLIENTS; k++)
        if (old->client[k].fd >= 0)
            drop_client(&old->client[k]);
    close(old->listener);
    if (old->spare >= 0)
        close(old->spare);
    unlink(old->path);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *control = NULL;
}

// ---- the other side ----

// A line of the words; the name of a file from here, since the job may be elsewhere.
static bool add_words(struct text *line, char *const *word, int words, bool overwrite)
{
    char folder[4096];
    bool file = words > 1 && !strcmp(word[0], "snapshot"), added = true;
    const char *before = file && overwrite ? "-y " : "";
    if (file && *word[1] != '/' && getcwd(folder, sizeof folder - 1))
        strcat(folder, "/");
    else
        *folder = 0;
    for (int k = 0; k < words && added; k++)
        added = (k != 1 || (text_add(line, before, strlen(before)) &&
                            text_add(line, folder, strlen(folder)))) &&
                text_add(line, word[k], strlen(word[k])) &&
                text_add(line, k + 1 < words ? " " : "\n", 1);
    return added;
}

static void send_line(int fd, const struct text *line)
{
    size_t done = 0;
    ssize_t sent = 0;
    for (; done < line->size && sent >= 0; done += (size_t)sent) {
        sent = send(fd, line->data + done, line->size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            sent = 0;
    }
}

// Read until a line is whole or nothing more comes; true if it is whole.
static bool receive_line(int fd, struct text *line)
{
    char data[16384];
    for (;;) {
        ssize_t got = recv(fd, data, sizeof data, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || !text_add(line, data, (size_t)got))
            return false;
        if (data[got - 1] == '\n') // it answers one line
            return true;
    }
}

// Send the line and print its answer. Returns the exit code.
static int ask(int fd, const char *path, const struct text *line)
{
    static const char fine[] = "{\"ok\":true";
    struct text answer = {0};
    send_line(fd, line); // its failure shows below; why a client is not served has come by then
    bool whole = receive_line(fd, &answer);
    bool ok = whole && answer.size >= strlen(fine) && !memcmp(answer.data, fine, strlen(fine));
    fwrite(answer.data ? answer.data : "", 1, answer.size, stdout);
    if (!whole)
        fprintf(stderr,
                answer.size ? "\nsluice: the answer of %s breaks off\n"
                            : "sluice: %s ended without an answer\n",
                path);
    text_free(&answer);
    return ok ? EXIT_WHOLE : whole ? EXIT_USAGE : EXIT_INPUT;
}

int ctl_command(struct settings *settings)
{
    struct sockaddr_un address;
    struct text line = {0};
    if (!settings->topic || !settings->words)
        return fprintf(stderr,
                       "sluice: usage: sluice ctl PATH get|set|chain|stats|snapshot|quit ...\n"),
               EXIT_USAGE;
    if (!make_address(settings->topic, &address))
        return EXIT_USAGE;
    for (int k = 0; k < settings->words; k++)
        if (strchr(settings->word[k], '\n'))
            return fprintf(stderr, "sluice: a command for %s is one line, and this has several\n",
                           settings->topic),
                   EXIT_USAGE;
    int fd = connect_to(&address);
    if (fd < 0) {
        fprintf(stderr, "sluice: nobody listens on %s: %s\n", settings->topic, strerror(errno));
        return EXIT_INPUT;
    }
    int code = add_words(&line, settings->word, settings->words, settings->config.overwrite)
                   ? ask(fd, settings->topic, &line)
                   : EXIT_OTHER;
    text_free(&line);
    close(fd);
    return code;
}
