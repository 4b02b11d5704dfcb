// Templates for programs that read no files: noise, by names such as "t20x10.3", 20 x 10 samples of
// kind 3, or "t20x10m3", of which some do not count, or "t20x10s3", of which the first and the last
// alone count.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "stages/template.h"

static uint32_t template_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 24;
}

static enum status template_describe(const char *name, struct template *template, char *form,
                                     unsigned *kind, char *why, size_t size)
{
    if (sscanf(name, "t%dx%d%c%u", &template->width, &template->height, form, kind) == 4)
        return STATUS_OK;
    snprintf(why, size, "it is no template of noise");
    return STATUS_USAGE;
}

enum status template_measure(const char *name, struct template *template, char *why, size_t size)
{
    unsigned kind;
    char form;
    return template_describe(name, template, &form, &kind, why, size);
}

enum status template_load(const char *name, struct template *template, char *why, size_t size)
{
    unsigned kind;
    char form;
    enum status status = template_describe(name, template, &form, &kind, why, size);
    if (status)
        return status;
    int width = template->width, height = template->height;
    size_t samples = (size_t)width * (size_t)height;
    uint32_t state = kind;
    template->sample = malloc(samples);
    template->mask = form == '.' ? NULL : malloc(samples);
    if (!template->sample || (form != '.' && !template->mask))
        return STATUS_MEMORY;
    for (size_t k = 0; k < samples; k++) {
        template->sample[k] = (uint8_t)template_random(&state);
        if (form == 'm')
            template->mask[k] = k<2 || template_random(&state)> 80;
        if (form == 's')
            template->mask[k] = k == 0 || k == samples - 1;
    }
    if (form == 's')
        template->sample[samples - 1] = 255 - template->sample[0];
    return STATUS_OK;
}
