// The HTTP server's listening socket, of an address as in http.h.
#pragma once

#include <stdbool.h>

#include "pipeline/output/http/http.h"

struct http_listener {
    int fd;        // does not block
    bool loopback; // nobody else reaches it
    bool secure;   // https
    int port;
    char url[80]; // "http://127.0.0.1:9464"
};

// Listen. The caller closes the descriptor. STATUS_USAGE with a sentence if the address is none,
// STATUS_OUTPUT if it cannot be listened on; the descriptor is -1 then.
enum status http_listen(const struct http_server *server, const struct log *log,
                        struct http_listener *listener);
