// Attacked: a whole job on small video without compression: Y4M, whose header libavformat reads, or
// raw video of a format and size that the first bytes choose.
//
// Must hold: the job ends with a documented status, and a sentence where that is a failure; frames
// that it hands over are whole, of the size that it says; no descriptor is left behind.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice.h"
#include "tests/fuzz/fuzz.h"

enum { RAW = 'R', MAX_PIXELS = 1 << 14, MAX_FRAMES = 8 };

struct ears {
    atomic_bool said;
    unsigned sum;
};

static void take_log(void *opaque, enum sluice_log_level level, const char *sentence)
{
    struct ears *ears = opaque;
    if (level == SLUICE_LOG_ERROR && *sentence)
        ears->said = true;
}

// Look at each byte of the frame.
static enum sluice_status take_frame(void *opaque, int output, const struct sluice_format *format,
                                     const struct sluice_frame *frame)
{
    struct ears *ears = opaque;
    FUZZ_REQUIRE(output == 0 && format->width > 0 && format->height > 0);
    FUZZ_REQUIRE((int64_t)format->width * format->height <= MAX_PIXELS);
    for (int p = 0; p < SLUICE_PLANES && frame->data[p]; p++) {
        int rows;
        size_t bytes;
        if (sluice_format_plane(format, p, &bytes, &rows)) // palettes pass through "null"
            break;
        for (int y = 0; y < rows; y++)
            for (size_t x = 0; x < bytes; x++)
                ears->sum += frame->data[p][y * frame->stride[p] + (ptrdiff_t)x];
    }
    return SLUICE_STATUS_OK;
}

// The options of raw video: "R", then bytes for format, width, height and chain.
static void choose_raw(struct fuzz_bytes *bytes, struct sluice_config *config)
{
    static const char *const formats[] = {"gray", "yuv420p", "yuv422p10le", "gbrp12be", "rgb24",
                                          "nv12", "p010le",  "ya8",         "pal8",     "monow"};
    config->input_format = "rawvideo";
    config->input_pixfmt = formats[fuzz_below(bytes, sizeof formats / sizeof *formats)];
    config->input_width = 1 + fuzz_below(bytes, 64);
    config->input_height = 1 + fuzz_below(bytes, 64);
}

static void run(const struct sluice_config *config, struct ears *ears)
{
    struct sluice_job *job;
    enum sluice_status status = sluice_job_create(config, &job);
    FUZZ_REQUIRE(!status == !!job);
    if (!status)
        status = sluice_job_run(job);
    sluice_job_destroy(&job);
    FUZZ_REQUIRE(status == SLUICE_STATUS_OK || status == SLUICE_STATUS_MEMORY || ears->said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const chains[] = {"invert", "gray,gaussian=1.4,sobel", "null", "stats"};
    struct ears ears = {0};
    struct fuzz_bytes bytes = {data, size};
    struct sluice_config config = {.size = sizeof config,
                                   .output.name = "take:",
                                   .backend = SLUICE_BACKEND_CPU,
                                   .threads = 1,
                                   .codec_threads = 1,
                                   .max_pixels = MAX_PIXELS,
                                   .frames = MAX_FRAMES,
                                   .mem = 64 << 20, // what is free is not asked for each input
                                   .log = take_log,
                                   .take = take_frame,
                                   .opaque = &ears};
    sluice_ffmpeg_log(-8);
    config.input_format = "yuv4mpegpipe";
    config.chain = chains[size % 4];
    if (size && *data == RAW) {
        fuzz_byte(&bytes);
        choose_raw(&bytes, &config);
    }
    config.input = fuzz_file(bytes.at, bytes.left);
    int descriptor = fuzz_next_descriptor();
    run(&config, &ears);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}
