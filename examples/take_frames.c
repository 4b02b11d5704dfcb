// Take the frames of a video that sluice has decoded and filtered: the share of edges in each.
//
//     cc take_frames.c $(pkg-config --cflags --libs sluice) -o take_frames
//     ./take_frames in.mp4 100
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>

struct taker {
    long taken, wanted;
};

// Called for one frame after another; sluice waits for it.
static enum sluice_status take(void *opaque, int output, const struct sluice_format *format,
                               const struct sluice_frame *frame)
{
    struct taker *taker = opaque;
    long edges = 0;
    (void)output; // there is one
    for (int y = 0; y < format->height; y++) {
        const uint8_t *row = frame->data[0] + y * frame->stride[0];
        for (int x = 0; x < format->width; x++)
            edges += row[x] >= 128;
    }
    printf("%.3f s: %.2f %% edges\n", (double)frame->pts * 1e-6,
           100.0 * (double)edges / format->width / format->height);
    return ++taker->taken == taker->wanted ? SLUICE_STATUS_END : SLUICE_STATUS_OK;
}

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= SLUICE_LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

int main(int argc, char **argv)
{
    struct taker taker = {.wanted = argc > 2 ? atol(argv[2]) : 0};
    struct sluice_config config = {
        .size = sizeof config,
        .input = argc > 1 ? argv[1] : "in.mp4",
        .chain = "gray,gaussian=1.4,sobel", // what comes out is 8-bit gray, one plane
        .output.pixfmt = "gray",            // also of videos with more bits
        .take = take,
        .log = print,
        .opaque = &taker,
    };
    struct sluice_job *job;
    enum sluice_status status = sluice_job_create(&config, &job);
    if (!status)
        status = sluice_job_run(job);
    sluice_job_destroy(&job);
    return status != SLUICE_STATUS_OK && status != SLUICE_STATUS_STOPPED;
}
