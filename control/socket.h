// `--control PATH`: a socket through which a running job is asked and changed, a line at a time, by
// the verbs of control/verbs.h. Every line is answered by one line of JSON with "ok", and "error"
// where that is false; the next one when that answer has been taken.
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "sluice/sluice.h"

// Listen on a socket for questions and changes, in a thread of its own; a path that is NULL: do
// not. With a sentence: SLUICE_STATUS_USAGE if the path is too long, SLUICE_STATUS_OUTPUT if it cannot be
// listened on, SLUICE_STATUS_FAILED if there is no thread for it, SLUICE_STATUS_MEMORY. `path` has to live
// as long as the server.
//
// socket_turn() names another job to ask, NULL for none, once the one before has answered;
// socket_quits() says whether the end was asked for. Both take NULL. socket_stop() waits for the
// thread and removes the socket.
struct socket_server;
enum sluice_status socket_start(struct sluice_job *job, const char *path,
                                struct socket_server **server);
void socket_turn(struct socket_server *server, struct sluice_job *job);
bool socket_quits(const struct socket_server *server);
void socket_stop(struct socket_server **server);

// The address of a path; false with a sentence if that is too long.
bool socket_address(const char *path, struct sockaddr_un *address);

// Connect to who listens there. Returns a descriptor, or -1 with errno.
int socket_connect(const struct sockaddr_un *address);
