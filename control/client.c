#define _GNU_SOURCE
#include "control/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/clock.h"
#include "control/verbs.h"

// The longest command gives the numbers of the largest kernel, 511x511.
enum { MAX_COMMAND = 4 << 20, ANSWER_MS = 10000 };

void client_drop(struct client *client)
{
    close(client->fd);
    buffer_free(&client->in);
    buffer_free(&client->out);
    *client = (struct client){.fd = -1};
}

bool client_waits(const struct client *client)
{
    return client->out.size;
}

// Send what the client takes at once; the rest waits for it.
static void send_answers(struct client *client)
{
    ssize_t sent =
        send(client->fd, client->out.data, client->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0) {
        client_drop(client);
        return;
    }
    buffer_remove(&client->out, (size_t)sent);
    client->moved_ms = now_ms();
    if (!client->out.size)
        buffer_free(&client->out);
}

void client_tell(struct client *client, json_t *answer)
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
        client_drop(client);
}

static json_t *refuse_long(void)
{
    char why[64];
    snprintf(why, sizeof why, "the command is longer than %d bytes", MAX_COMMAND);
    return verb_refusal(why);
}

// Answer the lines that have come, one after another: the next when the last answer is sent.
static void answer_lines(struct client *client, client_answer *answer, void *opaque)
{
    struct buffer *in = &client->in;
    char *end;
    while (in->size && !client->out.size && (end = memchr(in->data, '\n', in->size))) {
        size_t length = (size_t)(end - in->data) + 1;
        *end = 0;
        if (end > in->data && end[-1] == '\r')
            end[-1] = 0;
        json_t *said = client->too_long ? refuse_long() : answer(opaque, in->data);
        client->too_long = false;
        buffer_remove(in, length);
        client_tell(client, said); // a client that is dropped has no text
    }
    if (in->size > MAX_COMMAND && !client->out.size) {
        client->too_long = true;
        in->size = 0;
    }
    if (!in->size)
        buffer_free(in);
}

static void read_client(struct client *client, client_answer *answer, void *opaque)
{
    char data[16384];
    ssize_t got = recv(client->fd, data, sizeof data, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && buffer_add(&client->in, data, (size_t)got))
        answer_lines(client, answer, opaque);
    else
        client_drop(client);
}

void client_serve(struct client *client, bool ready, client_answer *answer, void *opaque)
{
    bool waits = client_waits(client);
    if (ready && !waits)
        read_client(client, answer, opaque);
    else if (ready)
        send_answers(client);
    else if (waits && now_ms() - client->moved_ms > ANSWER_MS)
        client_drop(client);
    if (ready && waits && client->fd >= 0)
        answer_lines(client, answer, opaque);
}
