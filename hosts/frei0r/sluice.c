// A frei0r filter: a chain of stages for Debian's ffmpeg, MLT, Kdenlive and other hosts, on pictures
// of R, G, B and A in 8 bits.
//
// Parameters are texts: "chain", as docs/stages.md describes them, and "backend" (auto, cuda, cpu or
// scalar). A chain that is wrong lets pictures pass as they are, and says so once on standard error:
// the interface has no errors.
//
// Thread-safety: instances share nothing; one thread at a time uses one of them, as frei0r wants.
#include <frei0r.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/filter.h"

enum { PARAMETER_CHAIN, PARAMETER_BACKEND, PARAMETERS };

static const char *const names[PARAMETERS] = {"chain", "backend"};
static const char *const explanations[PARAMETERS] = {
    "stages and their options, as in gray,gaussian=1.4,sobel",
    "what filters: auto, cuda, cpu or scalar",
};
static const char *const initial[PARAMETERS] = {"gray,gaussian=1.4,sobel,threshold=20:240", "auto"};

struct instance {
    int width, height;
    char *parameter[PARAMETERS];
    bool changed;                 // since the filter was made, or failed to be made
    struct sluice_filter *filter; // NULL: pictures pass as they are
};

// ---- the plugin ----

int f0r_init(void)
{
    return 1;
}

void f0r_deinit(void) {}

void f0r_get_plugin_info(f0r_plugin_info_t *info)
{
    *info = (f0r_plugin_info_t){
        .name = "sluice",
        .author = "the authors of sluice",
        .plugin_type = F0R_PLUGIN_TYPE_FILTER,
        .color_model = F0R_COLOR_MODEL_RGBA8888,
        .frei0r_version = FREI0R_MAJOR_VERSION,
        .major_version = SLUICE_API_VERSION / 1000,
        .minor_version = SLUICE_API_VERSION % 1000,
        .num_params = PARAMETERS,
        .explanation = "Blurs, edges, convolutions and more, exactly and fast",
    };
}

void f0r_get_param_info(f0r_param_info_t *info, int index)
{
    *info = (f0r_param_info_t){names[index], F0R_PARAM_STRING, explanations[index]};
}

// ---- instances ----

f0r_instance_t f0r_construct(unsigned int width, unsigned int height)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return NULL;
    *instance = (struct instance){.width = (int)width, .height = (int)height, .changed = true};
    for (int k = 0; k < PARAMETERS; k++)
        instance->parameter[k] = strdup(initial[k]);
    return instance;
}

void f0r_destruct(f0r_instance_t opaque)
{
    struct instance *instance = opaque;
    sluice_filter_destroy(&instance->filter);
    for (int k = 0; k < PARAMETERS; k++)
        free(instance->parameter[k]);
    free(instance);
}

void f0r_set_param_value(f0r_instance_t opaque, f0r_param_t value, int index)
{
    struct instance *instance = opaque;
    const char *text = *(const f0r_param_string *)value;
    if (instance->parameter[index] && !strcmp(instance->parameter[index], text))
        return; // MLT sets all of them before every frame
    char *copy = strdup(text);
    if (!copy)
        return;
    free(instance->parameter[index]);
    instance->parameter[index] = copy;
    instance->changed = true;
}

void f0r_get_param_value(f0r_instance_t opaque, f0r_param_t value, int index)
{
    struct instance *instance = opaque;
    *(f0r_param_string *)value = instance->parameter[index];
}

// ---- filtering ----

static void print_failure(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level == SLUICE_LOG_ERROR)
        fprintf(stderr, "sluice: %s\n", sentence);
}

// Returns false for what is no backend.
static bool read_backend(const char *name, enum sluice_backend *backend)
{
    static const char *const backends[] = {"auto", "cuda", "cpu", "scalar"};
    for (int k = 0; k < 4; k++)
        if (name && !strcmp(name, backends[k])) {
            *backend = (enum sluice_backend)k;
            return true;
        }
    fprintf(stderr, "sluice: backend is '%s'; it can be auto, cuda, cpu or scalar\n",
            name ? name : "");
    return false;
}

// Make the filter that the parameters describe; NULL, after a sentence, if there is none.
static void renew(struct instance *instance)
{
    struct sluice_filter_config config = {
        .size = sizeof config,
        .chain = instance->parameter[PARAMETER_CHAIN],
        .input = {.size = sizeof config.input,
                  .pixfmt = "rgba",
                  .width = instance->width,
                  .height = instance->height},
        .output_pixfmt = "rgba",
        .frames_in_flight = 1,
        .log = print_failure,
    };
    sluice_filter_destroy(&instance->filter);
    instance->changed = false;
    if (read_backend(instance->parameter[PARAMETER_BACKEND], &config.backend))
        sluice_filter_create(&config, &instance->filter);
}

static struct sluice_frame frame_of(const struct instance *instance, const uint32_t *pixels)
{
    return (struct sluice_frame){.size = sizeof(struct sluice_frame),
                                 .data = {(uint8_t *)pixels},
                                 .stride = {(ptrdiff_t)4 * instance->width}};
}

void f0r_update(f0r_instance_t opaque, double time, const uint32_t *in, uint32_t *out)
{
    struct instance *instance = opaque;
    (void)time;
    if (instance->changed)
        renew(instance);
    struct sluice_frame from = frame_of(instance, in), to = frame_of(instance, out);
    if (instance->filter && !sluice_filter_run(instance->filter, &from, &to, NULL))
        return;
    sluice_filter_destroy(&instance->filter);
    memmove(out, in, (size_t)4 * (size_t)instance->width * (size_t)instance->height);
}
