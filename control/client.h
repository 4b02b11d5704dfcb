// A client of the control socket: commands in lines, and an answer of one line to each, in their
// order. Nothing here waits: the next command is read when the last answer is sent.
//
// Thread-safety: one thread.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/buffer.h"

struct client {
    int fd;                // -1: none
    struct buffer in, out; // not handled yet, not sent yet
    bool too_long;         // the beginning of the command that comes in is thrown away
    int64_t moved_ms;      // when the client last took some of `out`
};

// Callback that answers a command, which it may change; the answer is the client's. NULL: there is no memory.
typedef json_t *client_answer(void *opaque, char *line);

// Whether there is something to send, so that the client is not read from.
bool client_waits(const struct client *client);

// Go on with a client: `ready` to be read from or, if it waits, to be sent to. One that has gone,
// takes no answer for ten seconds or has no memory left is dropped.
void client_serve(struct client *client, bool ready, client_answer *answer, void *opaque);

// Send an answer, which may be NULL without memory: the client is dropped then.
void client_tell(struct client *client, json_t *answer);

// Close the connection; leaves -1.
void client_drop(struct client *client);
