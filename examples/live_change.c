// Change what filters while frames go through: each second of a film that is made here is blurred
// more, and its last one is filtered by another chain.
//
//     cc live_change.c $(pkg-config --cflags --libs sluice-filter) -o live_change
//     ./live_change
#include <sluice/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 320, HEIGHT = 240, RATE = 25, SECONDS = 5, AT_ONCE = 4 };

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= SLUICE_LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

// A bar of 16 columns that moves by one each frame.
static void draw(unsigned char *samples, int frame)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            samples[y * WIDTH + x] = (x + frame) % 32 < 16 ? 255 : 0;
}

// Print once a second the statistics of the frame that came out.
static void tell(struct sluice_filter *filter, const struct sluice_frame *frame)
{
    struct sluice_analysis found = {.size = sizeof found};
    if (frame->pts % RATE == 0 && !sluice_filter_analysis(filter, 0, &found))
        printf("second %d: deviation %.1f\n", (int)(frame->pts / RATE), found.deviation);
}

static int receive(struct sluice_filter *filter)
{
    struct sluice_frame frame = {.size = sizeof frame};
    enum sluice_status status = sluice_filter_receive(filter, &frame);
    if (!status)
        tell(filter, &frame);
    return status;
}

// The change takes effect with the next frame that is submitted; those under way keep what they had.
static void change(struct sluice_filter *filter, int second)
{
    char options[64], why[256];
    snprintf(options, sizeof options, "gaussian.sigma=%d", 1 + 3 * second);
    enum sluice_status status =
        second < SECONDS - 1
            ? sluice_filter_set(filter, options, why, sizeof why)
            : sluice_filter_set_chain(filter, "invert,binarize,stats", why, sizeof why);
    if (status)
        fprintf(stderr, "%s\n", why);
}

int main(void)
{
    struct sluice_filter_config config = {
        .size = sizeof config,
        .chain = "gaussian=1,stats",
        .input = {.size = sizeof config.input, .pixfmt = "gray", .width = WIDTH, .height = HEIGHT},
        .frames_in_flight = AT_ONCE,
        .log = print,
    };
    struct sluice_filter *filter;
    if (sluice_filter_create(&config, &filter))
        return 1;
    // Frame n uses buffer n % AT_ONCE, which is free when frame n - AT_ONCE was received.
    unsigned char *samples = sluice_filter_alloc(filter, AT_ONCE * WIDTH * HEIGHT);
    enum sluice_status status = samples ? SLUICE_STATUS_OK : SLUICE_STATUS_MEMORY;
    for (int n = 0; n < SECONDS * RATE && !status; n++) {
        unsigned char *at = samples + n % AT_ONCE * WIDTH * HEIGHT;
        struct sluice_frame frame = {
            .size = sizeof frame, .data = {at}, .stride = {WIDTH}, .pts = n};
        if (n && n % RATE == 0)
            change(filter, n / RATE);
        if (n >= AT_ONCE)
            status = receive(filter);
        draw(at, n);
        if (!status)
            status = sluice_filter_submit(filter, &frame, &frame, NULL); // in place
    }
    while (!receive(filter))
        ;
    sluice_filter_free(filter, samples, AT_ONCE * WIDTH * HEIGHT);
    sluice_filter_destroy(&filter);
    return status != SLUICE_STATUS_OK;
}
