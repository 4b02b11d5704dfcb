// Pictures that a chain names, from the caller's callback.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter_private.h"

// A picture from measure() to load(): its samples follow, then the mask if there is one.
struct kept {
    bool masked;
    uint8_t byte[];
};

static enum status refuse(char *why, size_t size, const char *reason)
{
    snprintf(why, size, "%s", reason);
    return STATUS_USAGE;
}

static enum status keep(const struct sluice_picture *picture, struct pattern *pattern)
{
    size_t samples = (size_t)picture->width * (size_t)picture->height;
    struct kept *kept = malloc(sizeof *kept + 2 * samples);
    if (!kept)
        return STATUS_MEMORY;
    kept->masked = picture->mask != NULL;
    memcpy(kept->byte, picture->sample, samples);
    for (size_t k = 0; k < samples && kept->masked; k++)
        kept->byte[samples + k] = picture->mask[k] != 0;
    *pattern = (struct pattern){
        .name = pattern->name, .width = picture->width, .height = picture->height, .file = kept};
    return STATUS_OK;
}

static enum status measure(const struct picture_reader *reader, struct pattern *pattern, char *why,
                           size_t size)
{
    const struct sluice_filter *filter = (const struct sluice_filter *)reader;
    struct sluice_picture picture = {.size = sizeof picture};
    if (!filter->picture)
        return refuse(why, size, "the filter was made without a `picture` callback");
    enum sluice_status status = filter->picture(filter->opaque, pattern->name, &picture);
    if (status == SLUICE_STATUS_MEMORY)
        return STATUS_MEMORY;
    if (status)
        return refuse(why, size, "the `picture` callback has none of this name");
    if (!picture.sample || picture.width < 1 || picture.height < 1)
        return refuse(why, size, "the `picture` callback gave no samples");
    if (picture.width > MAX_PATTERN_SIDE || picture.height > MAX_PATTERN_SIDE ||
        (int64_t)picture.width * picture.height > MAX_PATTERN_SAMPLES)
        return refuse(why, size, "it is larger than templates can be");
    return keep(&picture, pattern);
}

static enum status load(const struct picture_reader *reader, struct pattern *pattern, char *why,
                        size_t size)
{
    (void)reader, (void)why, (void)size;
    struct kept *kept = pattern->file;
    size_t samples = (size_t)pattern->width * (size_t)pattern->height;
    if (!kept) // a load before this one had no memory
        return STATUS_MEMORY;
    pattern->file = NULL;
    pattern->sample = malloc(samples);
    pattern->mask = kept->masked ? malloc(samples) : NULL;
    bool there = pattern->sample && (pattern->mask || !kept->masked);
    if (there)
        memcpy(pattern->sample, kept->byte, samples);
    if (there && kept->masked)
        memcpy(pattern->mask, kept->byte + samples, samples);
    free(kept);
    return there ? STATUS_OK : STATUS_MEMORY;
}

static void forget(void **file)
{
    free(*file);
    *file = NULL;
}

const struct picture_reader pictures_reader = {.measure = measure, .load = load, .forget = forget};
