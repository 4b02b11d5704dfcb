#include "pipeline/output/transport/window.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/check.h"

// ---- SDL's interface ----

// The numbers and layouts of SDL 2's headers, which no version of SDL 2 changes.
static const char library[] = "libSDL2-2.0.so.0";
enum {
    INIT_VIDEO = 0x20,
    POSITION_ANY = 0x1fff0000,
    WINDOW_RESIZABLE = 0x20,
    ACCESS_STREAMING = 1
};
enum { EVENT_WINDOW = 0x200, EVENT_KEY_DOWN = 0x300, WINDOW_CLOSE = 14, KEY_ESCAPE = 27 };
static const uint32_t pixels_iyuv = 0x56555949;

// SDL_WindowEvent and SDL_KeyboardEvent in one, with room for all others.
struct event {
    uint32_t type, time, window;
    uint8_t what, unused[3];
    uint32_t scancode;
    int32_t key;
    uint8_t room[104];
};

struct rectangle {
    int x, y, width, height;
};

struct sdl_window;
struct sdl_renderer;
struct sdl_texture;

static struct {
    int (*init)(uint32_t systems);
    void (*quit)(uint32_t systems);
    int (*set_hint)(const char *name, const char *value);
    const char *(*error)(void);
    int (*bounds)(int display, struct rectangle *bounds);
    struct sdl_window *(*window)(const char *title, int x, int y, int w, int h, uint32_t flags);
    uint32_t (*window_id)(struct sdl_window *window);
    void (*destroy_window)(struct sdl_window *window);
    struct sdl_renderer *(*renderer)(struct sdl_window *window, int index, uint32_t flags);
    void (*destroy_renderer)(struct sdl_renderer *renderer);
    int (*logical_size)(struct sdl_renderer *renderer, int width, int height);
    struct sdl_texture *(*texture)(struct sdl_renderer *renderer, uint32_t pixels, int access,
                                   int width, int height);
    void (*matrix)(int mode);
    int (*update)(struct sdl_texture *texture, const struct rectangle *part, const uint8_t *y,
                  int y_stride, const uint8_t *u, int u_stride, const uint8_t *v, int v_stride);
    int (*clear)(struct sdl_renderer *renderer);
    int (*copy)(struct sdl_renderer *renderer, struct sdl_texture *texture,
                const struct rectangle *from, const struct rectangle *to);
    void (*present)(struct sdl_renderer *renderer);
    int (*poll)(struct event *event);
} sdl;

static bool loaded;

static void load(void)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"SDL_InitSubSystem", &sdl.init},
        {"SDL_QuitSubSystem", &sdl.quit},
        {"SDL_SetHint", &sdl.set_hint},
        {"SDL_GetError", &sdl.error},
        {"SDL_GetDisplayUsableBounds", &sdl.bounds},
        {"SDL_CreateWindow", &sdl.window},
        {"SDL_GetWindowID", &sdl.window_id},
        {"SDL_DestroyWindow", &sdl.destroy_window},
        {"SDL_CreateRenderer", &sdl.renderer},
        {"SDL_DestroyRenderer", &sdl.destroy_renderer},
        {"SDL_RenderSetLogicalSize", &sdl.logical_size},
        {"SDL_CreateTexture", &sdl.texture},
        {"SDL_SetYUVConversionMode", &sdl.matrix},
        {"SDL_UpdateYUVTexture", &sdl.update},
        {"SDL_RenderClear", &sdl.clear},
        {"SDL_RenderCopy", &sdl.copy},
        {"SDL_RenderPresent", &sdl.present},
        {"SDL_PollEvent", &sdl.poll},
    };
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    loaded = handle;
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted && loaded; k++) {
        void *function = dlsym(handle, wanted[k].name);
        *(void **)wanted[k].function = function;
        loaded = function;
    }
    if (loaded)
        sdl.set_hint("SDL_NO_SIGNAL_HANDLERS", "1"); // signals are the program's
}

// Without any of them SDL may draw where nobody sees it.
static bool has_screen(void)
{
    return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") || getenv("SDL_VIDEODRIVER");
}

enum status window_check(const char *shown, const struct log *log)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!has_screen())
        return log_fail(log, STATUS_OUTPUT,
                        "%s needs a screen; neither DISPLAY nor WAYLAND_DISPLAY names one", shown);
    pthread_once(&once, load);
    if (loaded)
        return STATUS_OK;
    return log_fail(log, STATUS_OUTPUT,
                    "%s needs SDL 2 (%s), which is not here; Debian has it in libsdl2-2.0-0", shown,
                    library);
}

// ---- windows ----

struct window {
    const struct log *log;
    const char *shown;
    enum window_matrix matrix;
    struct sdl_window *window;
    struct sdl_renderer *renderer;
    struct sdl_texture *texture;
    bool begun; // SDL, for this window

    // ---- guarded by lock ----
    uint32_t id;
    bool closed;
    struct window *next;
};

// SDL belongs to one thread at a time; an event that one window's thread gets may be for another's.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct window *windows; // guarded by lock

static void take_event_locked(const struct event *event)
{
    bool close = event->type == EVENT_WINDOW && event->what == WINDOW_CLOSE;
    bool key = event->type == EVENT_KEY_DOWN && (event->key == KEY_ESCAPE || event->key == 'q');
    for (struct window *window = windows; window; window = window->next)
        window->closed |= (close || key) && window->id == event->window;
}

static enum status refuse(const struct window *window)
{
    return log_fail(window->log, STATUS_OUTPUT, "%s no window could be opened: %s", window->shown,
                    sdl.error());
}

// Fit a size to the screen, keeping its aspect ratio.
static void fit_screen_locked(int *width, int *height)
{
    struct rectangle screen;
    if (sdl.bounds(0, &screen) < 0 || screen.width < 1 || screen.height < 1)
        return;
    double wide = (double)screen.width / *width, high = (double)screen.height / *height;
    double scale = wide < high ? wide : high;
    if (scale >= 1)
        return;
    *width = (int)(*width * scale) > 0 ? (int)(*width * scale) : 1;
    *height = (int)(*height * scale) > 0 ? (int)(*height * scale) : 1;
}

static enum status open_locked(struct window *window, const struct window_request *request)
{
    int width = request->shown_width, height = request->height;
    window->begun = sdl.init(INIT_VIDEO) >= 0;
    if (!window->begun)
        return refuse(window);
    fit_screen_locked(&width, &height);
    window->window =
        sdl.window(request->title, POSITION_ANY, POSITION_ANY, width, height, WINDOW_RESIZABLE);
    if (window->window)
        window->renderer = sdl.renderer(window->window, -1, 0);
    if (window->renderer)
        window->texture = sdl.texture(window->renderer, pixels_iyuv, ACCESS_STREAMING,
                                      request->width, request->height);
    if (!window->texture ||
        sdl.logical_size(window->renderer, request->shown_width, request->height) < 0)
        return refuse(window);
    window->id = sdl.window_id(window->window);
    window->next = windows;
    windows = window;
    return STATUS_OK;
}

enum status window_create(const struct window_request *request, const struct log *log,
                          struct window **window)
{
    assert(request->width > 0 && request->height > 0 && request->shown_width > 0);
    *window = calloc(1, sizeof **window);
    if (!*window)
        return STATUS_MEMORY;
    **window = (struct window){.log = log, .shown = request->shown, .matrix = request->matrix};
    enum status status = window_check(request->shown, log);
    if (!status) {
        pthread_mutex_lock(&lock);
        status = open_locked(*window, request);
        pthread_mutex_unlock(&lock);
    }
    if (status)
        window_destroy(window);
    return status;
}

static bool draw_locked(const struct window *window, const struct window_picture *picture)
{
    sdl.matrix((int)window->matrix); // for all windows, so it is said each time
    if (sdl.update(window->texture, NULL, picture->plane[0], picture->stride[0], picture->plane[1],
                   picture->stride[1], picture->plane[2], picture->stride[2]) < 0 ||
        sdl.clear(window->renderer) < 0 ||
        sdl.copy(window->renderer, window->texture, NULL, NULL) < 0)
        return false;
    sdl.present(window->renderer);
    return true;
}

enum status window_show(struct window *window, const struct window_picture *picture)
{
    assert(picture->plane[0] && picture->plane[1] && picture->plane[2]);
    struct event event;
    pthread_mutex_lock(&lock);
    while (sdl.poll(&event))
        take_event_locked(&event);
    enum status status = window->closed ? STATUS_EOF : STATUS_OK;
    if (!status && !draw_locked(window, picture))
        status = log_fail(window->log, STATUS_OUTPUT, "%s the picture cannot be drawn: %s",
                          window->shown, sdl.error());
    pthread_mutex_unlock(&lock);
    return status;
}

void window_destroy(struct window **window)
{
    struct window *old = *window;
    if (!old)
        return;
    pthread_mutex_lock(&lock);
    for (struct window **at = &windows; *at; at = &(*at)->next)
        if (*at == old) {
            *at = old->next;
            break;
        }
    if (old->renderer)
        sdl.destroy_renderer(old->renderer); // and its texture
    if (old->window)
        sdl.destroy_window(old->window);
    if (old->begun)
        sdl.quit(INIT_VIDEO);
    pthread_mutex_unlock(&lock);
    free(old);
    *window = NULL;
}
