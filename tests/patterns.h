// Templates for programs that read no files: noise, by names such as "t20x10.3", 20 x 10 samples of
// kind 3, or "t20x10m3", of which some do not count, or "t20x10s3", of which the first and the last
// alone count.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "stages/pattern.h"

static uint32_t pattern_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 24;
}

static enum status pattern_describe(struct pattern *pattern, char *form, unsigned *kind, char *why,
                                    size_t size)
{
    if (sscanf(pattern->name, "t%dx%d%c%u", &pattern->width, &pattern->height, form, kind) == 4)
        return STATUS_OK;
    snprintf(why, size, "it is no template of noise");
    return STATUS_USAGE;
}

static enum status pattern_measure(const struct picture_reader *reader, struct pattern *pattern,
                                   char *why, size_t size)
{
    (void)reader;
    unsigned kind;
    char form;
    return pattern_describe(pattern, &form, &kind, why, size);
}

static enum status pattern_load(const struct picture_reader *reader, struct pattern *pattern,
                                char *why, size_t size)
{
    (void)reader;
    unsigned kind;
    char form;
    enum status status = pattern_describe(pattern, &form, &kind, why, size);
    if (status)
        return status;
    int width = pattern->width, height = pattern->height;
    size_t samples = (size_t)width * (size_t)height;
    uint32_t state = kind;
    pattern->sample = malloc(samples);
    pattern->mask = form == '.' ? NULL : malloc(samples);
    if (!pattern->sample || (form != '.' && !pattern->mask))
        return STATUS_MEMORY;
    for (size_t k = 0; k < samples; k++) {
        pattern->sample[k] = (uint8_t)pattern_random(&state);
        if (form == 'm')
            pattern->mask[k] = k < 2 || pattern_random(&state) > 80;
        if (form == 's')
            pattern->mask[k] = k == 0 || k == samples - 1;
    }
    if (form == 's')
        pattern->sample[samples - 1] = 255 - pattern->sample[0];
    return STATUS_OK;
}

static const struct picture_reader noise_reader = {.measure = pattern_measure,
                                                   .load = pattern_load};
