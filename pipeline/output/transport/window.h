// A window that shows pictures, by SDL 2 (https://www.libsdl.org). The program does not link to
// SDL: it is found when a window is asked for, as libSDL2-2.0.so.0, which is SDL 2 itself or
// sdl2-compat over SDL 3. FFmpeg had an output device of that name until version 7.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

// The matrix from Y'CbCr to the screen's RGB.
enum window_matrix { WINDOW_FULL, WINDOW_BT601, WINDOW_BT709 }; // FULL is BT.601 of full range

struct window_request {
    const char *shown; // what messages call it
    const char *title;
    int width, height; // of pictures
    int shown_width;   // with square samples
    enum window_matrix matrix;
};

// A picture of three planes of 8 bits, 4:2:0.
struct window_picture {
    const uint8_t *plane[3];
    int stride[3];
};

struct window;

// Whether a screen and SDL are here; STATUS_OUTPUT with a sentence if not. `shown` as above. Any
// thread.
enum status window_check(const char *shown, const struct log *log);

// Open a window as large as the picture, or as the screen where that is smaller; users may change
// its size, the picture keeps its shape. STATUS_OUTPUT with a sentence if there can be none.
//
// Thread-safety: the thread that opens it shows pictures in it and destroys it. Several threads may
// have windows.
enum status window_create(const struct window_request *request, const struct log *log,
                          struct window **window);

// Show a picture, which stays the caller's. STATUS_EOF: somebody has closed the window, or pressed
// Escape or q in it. STATUS_OUTPUT with a sentence if it cannot be drawn.
enum status window_show(struct window *window, const struct window_picture *picture);

// Accepts NULL behind the pointer.
void window_destroy(struct window **window);
