#define _GNU_SOURCE
#include "control/socket.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/buffer.h"
#include "control/clock.h"
#include "control/verbs.h"

// The longest command gives the numbers of the largest kernel, 511x511.
enum { CLIENTS = 16, MAX_COMMAND = 4 << 20, LOOK_MS = 100, ACCEPT_MS = 250, ANSWER_MS = 10000 };

struct client {
    int fd;                // -1: none
    struct buffer in, out; // not handled yet, not sent yet
    bool too_long;         // the beginning of the command that comes in is thrown away
    int64_t moved_ms;      // when the client last took some of `out`
};

struct socket_server {
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

// ---- clients ----

static void drop_client(struct client *client)
{
    close(client->fd);
    buffer_free(&client->in);
    buffer_free(&client->out);
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
    buffer_remove(&client->out, (size_t)sent);
    client->moved_ms = now_ms();
    if (!client->out.size)
        buffer_free(&client->out);
}

// `answer` may be NULL, without memory.
static void answer_client(struct client *client, json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    bool added =
        text && buffer_add(&client->out, text, strlen(text)) && buffer_add(&client->out, "\n", 1);
    free(text);
    json_decref(answer);
    client->moved_ms = now_ms();
    if (added)
        send_answers(client);
    else
        drop_client(client);
}

static json_t *ask_job(struct socket_server *server, char *line)
{
    bool quits = !strcmp(line, "quit");
    json_t *answer;
    server->quits |= quits;
    pthread_mutex_lock(&server->lock);
    if (server->job)
        answer = verb_answer(server->job, line);
    else
        answer = quits ? json_pack("{s:b}", "ok", 1) : verb_refusal("there is no input now");
    pthread_mutex_unlock(&server->lock);
    return answer;
}

static json_t *answer_line(struct socket_server *server, const struct client *client, char *line)
{
    char why[64];
    if (!client->too_long)
        return ask_job(server, line);
    snprintf(why, sizeof why, "the command is longer than %d bytes", MAX_COMMAND);
    return verb_refusal(why);
}

// Answer the lines that have come, one after another: the next when the last answer is sent.
static void answer_lines(struct socket_server *server, struct client *client)
{
    struct buffer *in = &client->in;
    char *end;
    while (in->size && !client->out.size && (end = memchr(in->data, '\n', in->size))) {
        size_t length = (size_t)(end - in->data) + 1;
        *end = 0;
        if (end > in->data && end[-1] == '\r')
            end[-1] = 0;
        json_t *answer = answer_line(server, client, in->data);
        client->too_long = false;
        buffer_remove(in, length);
        answer_client(client, answer); // a client that is dropped has no text
    }
    if (in->size > MAX_COMMAND && !client->out.size) {
        client->too_long = true;
        in->size = 0;
    }
    if (!in->size)
        buffer_free(in);
}

static void read_client(struct socket_server *server, struct client *client)
{
    char data[16384];
    ssize_t got = recv(client->fd, data, sizeof data, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && buffer_add(&client->in, data, (size_t)got))
        answer_lines(server, client);
    else
        drop_client(client);
}

// A client whose answer waits is not read from, and not waited for without end.
static void serve_client(struct socket_server *server, struct client *client, bool ready)
{
    bool waits = client->out.size;
    if (ready && !waits)
        read_client(server, client);
    else if (ready)
        send_answers(client);
    else if (waits && now_ms() - client->moved_ms > ANSWER_MS)
        drop_client(client);
    if (ready && waits && client->fd >= 0)
        answer_lines(server, client);
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
static void refuse_client(struct socket_server *server)
{
    if (server->spare >= 0)
        close(server->spare);
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        refuse_fd(fd, "the run has no file descriptor left for a client (ulimit -n)");
    server->spare = fcntl(server->listener, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        server->accepts_ms = now_ms() + ACCEPT_MS;
}

static void accept_client(struct socket_server *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        refuse_client(server);
    for (int k = 0; fd >= 0 && k < CLIENTS; k++) {
        if (server->client[k].fd >= 0)
            continue;
        server->client[k] = (struct client){.fd = fd};
        return;
    }
    if (fd >= 0)
        refuse_fd(fd, "too many clients are connected to this socket; try again later");
}

// Wait for what clients do, without the seats that are free: poll() takes no more than a process
// may have descriptors. Fills `ready` of each client; returns whether there may be a new one.
static bool await_clients(const struct socket_server *server, bool *ready)
{
    bool accepts = now_ms() >= server->accepts_ms;
    struct pollfd waits[CLIENTS + 1] = {{.fd = accepts ? server->listener : -1, .events = POLLIN}};
    int count = 1, seat[CLIENTS + 1];
    for (int k = 0; k < CLIENTS; k++) {
        const struct client *client = &server->client[k];
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

static void *socket_run(void *server_)
{
    struct socket_server *server = server_;
    bool ready[CLIENTS];
    while (!server->done) {
        bool another = await_clients(server, ready);
        for (int k = 0; k < CLIENTS; k++)
            if (server->client[k].fd >= 0)
                serve_client(server, &server->client[k], ready[k]);
        if (another)
            accept_client(server);
    }
    return NULL;
}

// ---- the socket ----

bool socket_address(const char *path, struct sockaddr_un *address)
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

int socket_connect(const struct sockaddr_un *address)
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
    if (!socket_address(path, &address))
        return -1;
    int other = socket_connect(&address);
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

bool socket_start(struct sluice_job *job, const char *path, struct socket_server **server)
{
    assert(server);
    *server = NULL;
    if (!path)
        return true;
    struct socket_server *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->job = job;
    made->path = path;
    pthread_mutex_init(&made->lock, NULL);
    for (int k = 0; k < CLIENTS; k++)
        made->client[k].fd = -1;
    made->listener = listen_on(path);
    made->spare = made->listener < 0 ? -1 : fcntl(made->listener, F_DUPFD_CLOEXEC, 0);
    if (made->listener >= 0 && !pthread_create(&made->thread, NULL, socket_run, made)) {
        *server = made;
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

void socket_turn(struct socket_server *server, struct sluice_job *job)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->lock);
    server->job = job;
    pthread_mutex_unlock(&server->lock);
}

bool socket_quits(const struct socket_server *server)
{
    return server && server->quits;
}

void socket_stop(struct socket_server **server)
{
    assert(server);
    struct socket_server *old = *server;
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
    *server = NULL;
}
