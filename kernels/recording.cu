#include "kernels/recording.h"

#include <assert.h>
#include <string.h>

static thread_local struct recording *current;

void recording_begin(struct recording *recording, cudaStream_t stream)
{
    assert(!current);
    recording->stream = stream;
    recording->launches = recording->arguments = 0;
    recording->bytes = 0;
    current = recording;
}

void recording_end(void)
{
    current = NULL;
}

void recording_arguments(const struct recording *recording, int k,
                         void *argument[RECORDED_ARGUMENTS])
{
    const struct recorded_launch *launch = &recording->launch[k];
    for (int n = 0; n < launch->arguments; n++)
        argument[n] = (void *)(recording->data + recording->at[launch->argument + n]);
}

static cudaError_t launch_early(const struct recorded_launch *launch, cudaStream_t stream,
                                void *argument[RECORDED_ARGUMENTS])
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = launch->grid;
    config.blockDim = launch->block;
    config.dynamicSmemBytes = launch->shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    return cudaLaunchKernelExC(&config, launch->kernel, argument);
}

cudaError_t recording_launch(const struct recording *recording, bool early)
{
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < recording->launches && !error; k++) {
        const struct recorded_launch *launch = &recording->launch[k];
        void *argument[RECORDED_ARGUMENTS];
        recording_arguments(recording, k, argument);
        error = early && launch->early
                    ? launch_early(launch, recording->stream, argument)
                    : cudaLaunchKernel(launch->kernel, launch->grid, launch->block, argument,
                                       launch->shared, recording->stream);
    }
    return error;
}

// An error is found by the launcher that meets it: it is the runtime's last.
struct recording *recording_with_room(cudaStream_t stream, int arguments, size_t bytes)
{
    struct recording *recording = current;
    assert(!recording || recording->stream == stream);
    if (!recording || (recording->launches < RECORDED_LAUNCHES &&
                       recording->arguments + arguments <= RECORDED_ARGUMENTS &&
                       recording->bytes + bytes <= RECORDED_BYTES))
        return recording;
    recording_launch(recording, false);
    recording->launches = 0;
    recording_end();
    return NULL;
}

void recording_add_launch(struct recording *recording, const void *kernel, dim3 grid, dim3 block,
                          size_t shared, bool early)
{
    struct recorded_launch *launch = &recording->launch[recording->launches++];
    launch->kernel = kernel;
    launch->grid = grid;
    launch->block = block;
    launch->shared = shared;
    launch->early = early;
    launch->argument = recording->arguments;
    launch->arguments = 0;
    launch->bytes_begin = launch->bytes_end = recording->bytes;
}

void recording_add_argument(struct recording *recording, const void *value, size_t bytes,
                            size_t alignment)
{
    struct recorded_launch *launch = &recording->launch[recording->launches - 1];
    size_t at = (recording->bytes + alignment - 1) / alignment * alignment;
    assert(at + bytes <= RECORDED_BYTES && recording->arguments < RECORDED_ARGUMENTS);
    memcpy(recording->data + at, value, bytes);
    recording->at[recording->arguments++] = (uint16_t)at;
    launch->arguments++;
    launch->bytes_end = recording->bytes = at + bytes;
}
