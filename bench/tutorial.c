#include "bench/tutorial.h"

#include <stdio.h>

#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/check.h"

enum { QUICK_SHAPES = 2, MAX_SIDE = 65535 };

static enum status find_gpu(struct tutorial *tutorial)
{
    const struct sluice_config *config = tutorial->config;
    snprintf(tutorial->absent, sizeof tutorial->absent, "the CPU was asked for");
    if (config->backend == SLUICE_BACKEND_CPU)
        return STATUS_OK;
    struct devices devices;
    enum status status = config_devices(config->device, &tutorial->log, &devices);
    if (!status && (devices.all || devices.count > 1))
        status = log_fail(&tutorial->log, STATUS_USAGE,
                          "--device is '%s'; the tutorial runs on one GPU, as --device 0",
                          config->device);
    if (status)
        return status;
    status = backend_cuda_create(devices.device[0], &tutorial->log, &tutorial->backend[CUDA_GPU],
                                 tutorial->absent, sizeof tutorial->absent);
    if (status == STATUS_DEVICE && config->backend == SLUICE_BACKEND_CUDA)
        return log_fail(&tutorial->log, status, "the GPU was asked for and cannot be used: %s",
                        tutorial->absent);
    return status == STATUS_DEVICE ? STATUS_OK : status;
}

static void name_devices(struct tutorial *tutorial)
{
    const struct backend *gpu = tutorial->backend[CUDA_GPU];
    int threads = tutorial->backend[ALL_THREADS]->parallel;
    snprintf(tutorial->device[REFERENCE], sizeof *tutorial->device, "1 thread");
    snprintf(tutorial->device[ONE_THREAD], sizeof *tutorial->device, "1 thread");
    snprintf(tutorial->device[ALL_THREADS], sizeof *tutorial->device, "%d thread%s", threads,
             threads == 1 ? "" : "s");
    if (gpu)
        snprintf(tutorial->device[CUDA_GPU], sizeof *tutorial->device, "%s", gpu->description);
}

static enum status find_devices(struct tutorial *tutorial)
{
    enum status status = find_gpu(tutorial);
    if (!status)
        status = backend_scalar_create(&tutorial->log, &tutorial->backend[REFERENCE]);
    if (!status)
        status = backend_cpu_create(1, &tutorial->log, &tutorial->backend[ONE_THREAD]);
    if (!status)
        status = backend_cpu_create(tutorial->config->threads, &tutorial->log,
                                    &tutorial->backend[ALL_THREADS]);
    if (!status)
        name_devices(tutorial);
    return status;
}

static enum status check_config(const struct tutorial *tutorial, struct shape *own)
{
    const struct sluice_config *config = tutorial->config;
    const char *what = config->input                              ? "an input"
                       : config->chain                            ? "--filter"
                       : config->input_pixfmt                     ? "--pix-fmt"
                       : config->backend == SLUICE_BACKEND_SCALAR ? "--backend scalar"
                                                                  : NULL;
    if (what)
        return log_fail(
            &tutorial->log, STATUS_USAGE,
            "--ladder and %s do not go together: it has filters of its own, on 8-bit noise, by "
            "the CPU and the GPU",
            what);
    enum status status = config->input_width ? shape_init(config->input_width, config->input_height,
                                                          &tutorial->log, own)
                                             : STATUS_OK;
    if (!status && (own->width > MAX_SIDE || own->height > MAX_SIDE))
        return log_fail(&tutorial->log, STATUS_USAGE,
                        "--size is %s; the tutorial's sides go up to %d", own->name, MAX_SIDE);
    return status;
}

enum sluice_status sluice_tutorial(const struct sluice_config *config, bool quick,
                                   void (*row)(void *opaque, const struct sluice_tutorial_row *row),
                                   void *opaque)
{
    struct tutorial tutorial = {
        .config = config,
        .runs = quick ? QUICK_RUNS : RUNS,
        .row = row,
        .opaque = opaque,
    };
    tutorial.log = config_log(config, &tutorial.log_target);
    struct shape own = {0};
    enum status status = check_config(&tutorial, &own);
    if (!status)
        status = find_devices(&tutorial);
    const struct shape *shapes = *own.name ? &own : usual_shapes;
    int count = *own.name ? 1 : quick ? QUICK_SHAPES : SHAPES;
    for (int k = 0; k < count && !status; k++)
        status = tutorial_gaussian(&tutorial, &shapes[k]);
    for (int k = 0; k < count && !status; k++)
        status = tutorial_matching(&tutorial, &shapes[k]);
    for (int k = 0; k < count && !status; k++)
        status = tutorial_edges(&tutorial, &shapes[k]);
    if (!status)
        status = tutorial_wavelet(&tutorial, *own.name ? &own : NULL, quick);
    for (int k = 0; k < PROCESSORS; k++)
        backend_destroy(&tutorial.backend[k]);
    return (enum sluice_status)status;
}
