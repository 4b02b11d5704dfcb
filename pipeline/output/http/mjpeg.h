// Motion JPEG over HTTP: a moving picture for browsers, FFmpeg, OpenCV and mpv.
//
//   /              a page with the picture; it shows when none comes, and reconnects by itself
//   /age           the milliseconds since the newest picture, as text; -1: there is none
//   /stream        multipart/x-mixed-replace, a JPEG a part; MJPEG_WATCHERS at a time
//   /snapshot.jpg  the newest picture; 503 while there is none
//
// A viewer gets the newest picture whenever it can take one, and skips those between: nobody is
// waited for, and a stuck client keeps one picture in memory, for HTTP_SILENCE seconds at most.
// Each part is followed by the next boundary at once, because browsers show a part when they see
// its end.
#pragma once

#include <libavcodec/packet.h>

#include "base/log.h"
#include "base/status.h"

enum { MJPEG_WATCHERS = 32 };

struct mjpeg;

// Listen at an address as in http.h; the page is called `title` (optional). STATUS_USAGE,
// STATUS_OUTPUT and STATUS_FAILED with a sentence, as http_create().
enum status mjpeg_create(const char *address, const char *title, const struct log *log,
                         struct mjpeg **mjpeg);

// Takes a second at most, whatever the clients do. Leaves NULL, accepts NULL behind it.
void mjpeg_destroy(struct mjpeg **mjpeg);

// "http://127.0.0.1:8090". Lives as long as the server.
const char *mjpeg_url(const struct mjpeg *mjpeg);

// Show a picture, a whole JPEG in a packet, from now on. Reference-counted data are not copied. The
// packet stays the caller's. One thread; never waits.
enum status mjpeg_show(struct mjpeg *mjpeg, const AVPacket *jpeg);

// The number of viewers: without any pictures need not be encoded, though a snapshot is then as old
// as the last that was. Any thread; does not wait.
int mjpeg_watchers(struct mjpeg *mjpeg);
