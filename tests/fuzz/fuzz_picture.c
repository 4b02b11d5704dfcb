// Attacked: files of templates ("match=FILE"): what finds a picture's size, and what decodes it.
//
// Must hold: a refusal has a reason; a picture has as many samples as was found before it was
// decoded, and a mask of ones and zeros; no memory or descriptor is left behind.
#include <stdlib.h>
#include <string.h>

#include <libavutil/log.h>

#include "pipeline/input/picture.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_SAMPLES = 1 << 18 };

static void check_samples(const struct pattern *pattern, int64_t count)
{
    unsigned sum = 0;
    FUZZ_REQUIRE(pattern->sample);
    for (int64_t k = 0; k < count; k++) {
        sum += pattern->sample[k]; // sanitizers look at each
        FUZZ_REQUIRE(!pattern->mask || pattern->mask[k] <= 1);
    }
    FUZZ_REQUIRE(sum <= 255 * count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[512] = "";
    struct pattern pattern = {.name = (char *)fuzz_file(data, size)};
    int descriptor = fuzz_next_descriptor();
    av_log_set_level(AV_LOG_QUIET);
    enum status status = picture_reader.measure(&picture_reader, &pattern, why, sizeof why);
    FUZZ_REQUIRE(status != STATUS_USAGE || *why);
    if (!status) {
        int64_t count = (int64_t)pattern.width * pattern.height;
        int width = pattern.width, height = pattern.height;
        FUZZ_REQUIRE(width > 0 && height > 0);
        if (count <= MAX_SAMPLES) {
            *why = 0;
            status = picture_reader.load(&picture_reader, &pattern, why, sizeof why);
            FUZZ_REQUIRE(!pattern.file && (status != STATUS_USAGE || *why));
            if (!status) {
                FUZZ_REQUIRE(pattern.width == width && pattern.height == height);
                check_samples(&pattern, count);
            }
        }
    }
    if (pattern.file && picture_reader.forget)
        picture_reader.forget(&pattern.file);
    free(pattern.sample);
    free(pattern.mask);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}
