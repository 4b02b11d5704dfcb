// Many cameras in one process, a thread and a filter each.
//
//     cc many_cameras.c -lpthread $(pkg-config --cflags --libs sluice-filter) -o many_cameras
//     ./many_cameras 8 100
//
// On a GPU all of them share one CUDA context, which the CUDA runtime makes; on the CPU a filter
// with one frame in flight and one thread each.
#include <pthread.h>
#include <sluice/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 360, MAX_CAMERAS = 64 };

struct camera {
    int number, frames;
    pthread_t thread;
    int done;
    unsigned long sum; // of all results
    char backend[128];
};

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    const struct camera *camera = opaque;
    if (level <= SLUICE_LOG_WARNING)
        fprintf(stderr, "camera %d: %s\n", camera->number, sentence);
}

// Draw the camera's picture: a pattern of its own, in nv12 as capture gives it.
static void capture(const struct camera *camera, int frame, unsigned char *samples)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            samples[y * WIDTH + x] = (unsigned char)((x * y + frame) >> (camera->number % 8));
    memset(samples + WIDTH * HEIGHT, 128, WIDTH * HEIGHT / 2);
}

static void watch(struct camera *camera, struct sluice_filter *filter, unsigned char *memory)
{
    unsigned char *edges = memory + WIDTH * HEIGHT * 3 / 2;
    const struct sluice_frame in = {.size = sizeof in,
                                    .data = {memory, memory + WIDTH * HEIGHT},
                                    .stride = {WIDTH, WIDTH}},
                              out = {.size = sizeof out, .data = {edges}, .stride = {WIDTH}};
    for (; camera->done < camera->frames; camera->done++) {
        capture(camera, camera->done, memory);
        if (sluice_filter_run(filter, &in, &out, NULL))
            return;
        for (int k = 0; k < WIDTH * HEIGHT; k++)
            camera->sum += edges[k];
    }
}

static void *run(void *camera_)
{
    struct camera *camera = camera_;
    struct sluice_filter_config config = {
        .size = sizeof config,
        .chain = "gray,gaussian=1.4,sobel",
        .input = {.size = sizeof config.input, .pixfmt = "nv12", .width = WIDTH, .height = HEIGHT},
        .threads = 1,
        .frames_in_flight = 1,
        .log = print,
        .opaque = camera,
    };
    const size_t bytes = WIDTH * HEIGHT * 5 / 2;
    struct sluice_filter *filter;
    if (sluice_filter_create(&config, &filter))
        return NULL;
    unsigned char *memory = sluice_filter_alloc(filter, bytes);
    if (memory)
        watch(camera, filter, memory);
    snprintf(camera->backend, sizeof camera->backend, "%s", sluice_filter_backend(filter));
    sluice_filter_free(filter, memory, bytes);
    sluice_filter_destroy(&filter);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct camera camera[MAX_CAMERAS];
    int cameras = argc > 1 ? atoi(argv[1]) : 4, frames = argc > 2 ? atoi(argv[2]) : 25, whole = 0;
    if (cameras < 1 || cameras > MAX_CAMERAS || frames < 1)
        return 2;
    for (int k = 0; k < cameras; k++) {
        camera[k] = (struct camera){.number = k, .frames = frames};
        if (pthread_create(&camera[k].thread, NULL, run, &camera[k]))
            return 1;
    }
    for (int k = 0; k < cameras; k++) {
        pthread_join(camera[k].thread, NULL);
        printf("camera %d: %d frames, sum %lu\n", k, camera[k].done, camera[k].sum);
        whole += camera[k].done == frames;
    }
    printf("%d cameras on %s\n", whole, camera[0].backend);
    return whole < cameras;
}
