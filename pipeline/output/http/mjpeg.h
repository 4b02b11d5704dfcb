// Motion JPEG over HTTP: a picture that moves, for browsers, FFmpeg, OpenCV and mpv.
//
//   /              a page with the picture, which says so when none comes, and goes on by itself
//   /age           the milliseconds since the newest picture, as text; -1: there is none
//   /stream        multipart/x-mixed-replace, a JPEG a part; MJPEG_WATCHERS at a time
//   /snapshot.jpg  the newest picture; 503 while there is none
//
// Whoever watches gets the newest picture whenever he can take one, and never sees those between:
// nobody is waited for, and a client that is stuck keeps one picture in memory, for HTTP_SILENCE
// seconds at most. Each part is followed by the next boundary at once, because browsers show a part
// when they see its end.
#pragma once

#include <libavcodec/packet.h>

#include "base/log.h"
#include "base/status.h"

enum { MJPEG_WATCHERS = 32 };

struct mjpeg;

// Listen at an address as http.h has them; the page is called `title` (optional). STATUS_USAGE and
// STATUS_FAILED with a sentence.
enum status mjpeg_create(const char *address, const char *title, const struct log *log,
                         struct mjpeg **mjpeg);

// Within a second, whatever the clients do. Leaves NULL, accepts NULL behind it.
void mjpeg_destroy(struct mjpeg **mjpeg);

// "http://127.0.0.1:8090". Lives as long as the server.
const char *mjpeg_url(const struct mjpeg *mjpeg);

// Show a picture, a JPEG whole in a packet, from now on. Its data are referred to, not copied,
// where they are reference-counted. The packet stays the caller's. One thread; never waits.
enum status mjpeg_show(struct mjpeg *mjpeg, const AVPacket *jpeg);

// How many watch: while nobody does, pictures need not be encoded, but that a snapshot is then as
// old as the last that was. Any thread; does not wait.
int mjpeg_watchers(struct mjpeg *mjpeg);
