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

#include "control/client.h"
#include "control/clock.h"
#include "control/verbs.h"

enum { CLIENTS = 16, LOOK_MS = 100, ACCEPT_MS = 250 };

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

static json_t *ask_job(void *server_, char *line)
{
    struct socket_server *server = server_;
    bool quits = !strncmp(line, "quit", 4) && !line[4 + strspn(line + 4, " \t")];
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

// ---- new clients ----

// Refuse a client: a sentence, then the end.
static void refuse_fd(int fd, const char *why)
{
    struct client client = {.fd = fd};
    client_tell(&client, verb_refusal(why));
    if (client.fd >= 0)
        client_drop(&client);
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
            (struct pollfd){.fd = client->fd, .events = client_waits(client) ? POLLOUT : POLLIN};
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
                client_serve(&server->client[k], ready[k], ask_job, server);
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
static enum sluice_status listen_on(const char *path, int *listener)
{
    struct sockaddr_un address;
    struct stat about;
    if (!socket_address(path, &address))
        return SLUICE_STATUS_USAGE;
    int other = socket_connect(&address);
    if (other >= 0) {
        close(other);
        fprintf(stderr, "sluice: another run listens on %s\n", path);
        return SLUICE_STATUS_OUTPUT;
    }
    if (!lstat(path, &about) && S_ISSOCK(about.st_mode))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    bool failed = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64);
    int error = errno;
    umask(mask);
    if (!failed) {
        *listener = fd;
        return SLUICE_STATUS_OK;
    }
    const char *why = error == EADDRINUSE ? "it is there, and is no socket" : strerror(error);
    fprintf(stderr, "sluice: %s cannot be listened on: %s\n", path, why);
    if (fd >= 0)
        close(fd);
    return SLUICE_STATUS_OUTPUT;
}

static enum sluice_status start(struct socket_server *server)
{
    enum sluice_status status = listen_on(server->path, &server->listener);
    if (status)
        return status;
    server->spare = fcntl(server->listener, F_DUPFD_CLOEXEC, 0);
    if (!pthread_create(&server->thread, NULL, socket_run, server))
        return SLUICE_STATUS_OK;
    fprintf(stderr, "sluice: no thread could be started for the socket %s\n", server->path);
    close(server->listener);
    unlink(server->path);
    if (server->spare >= 0)
        close(server->spare);
    return SLUICE_STATUS_FAILED;
}

enum sluice_status socket_start(struct sluice_job *job, const char *path,
                                struct socket_server **server)
{
    assert(server);
    *server = NULL;
    if (!path)
        return SLUICE_STATUS_OK;
    struct socket_server *made = calloc(1, sizeof *made);
    if (!made) {
        fprintf(stderr, "sluice: out of memory for the socket %s\n", path);
        return SLUICE_STATUS_MEMORY;
    }
    made->job = job;
    made->path = path;
    pthread_mutex_init(&made->lock, NULL);
    for (int k = 0; k < CLIENTS; k++)
        made->client[k].fd = -1;
    enum sluice_status status = start(made);
    if (!status) {
        *server = made;
        return SLUICE_STATUS_OK;
    }
    pthread_mutex_destroy(&made->lock);
    free(made);
    return status;
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
            client_drop(&old->client[k]);
    close(old->listener);
    if (old->spare >= 0)
        close(old->spare);
    unlink(old->path);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *server = NULL;
}
