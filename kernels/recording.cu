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

cudaError_t recording_launch(const struct recording *recording)
{
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < recording->launches && !error; k++) {
        const struct recorded_launch *launch = &recording->launch[k];
        void *argument[RECORDED_ARGUMENTS];
        recording_arguments(recording, k, argument);
        error = cudaLaunchKernel(launch->kernel, launch->grid, launch->block, argument,
                                 launch->shared, recording->stream);
    }
    return error;
}

// By the driver. Its errors are told by the runtime, which fails as well.
static bool launch_by_driver(const struct recorded_launch *launch, cudaStream_t stream,
                             void **argument, struct driver_launch *driver)
{
    if (!driver->launch)
        return false;
    if (driver->kernel != launch->kernel) {
        driver->kernel = NULL;
        if (cudaGetFuncBySymbol(&driver->function, launch->kernel)) {
            cudaGetLastError(); // it would pass for that of the next launch
            return false;
        }
        driver->kernel = launch->kernel;
    }
    CUlaunchAttribute dependent;
    dependent.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    dependent.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {
        .gridDimX = launch->grid.x,
        .gridDimY = launch->grid.y,
        .gridDimZ = launch->grid.z,
        .blockDimX = launch->block.x,
        .blockDimY = launch->block.y,
        .blockDimZ = launch->block.z,
        .sharedMemBytes = (unsigned)launch->shared,
        .hStream = stream,
        .attrs = &dependent,
        .numAttrs = 1,
    };
    return driver->launch(&config, (CUfunction)driver->function, argument, NULL) == CUDA_SUCCESS;
}

cudaError_t recording_launch_dependent(const struct recording *recording,
                                       struct driver_launch *driver)
{
    const struct recorded_launch *launch = &recording->launch[0];
    void *argument[RECORDED_ARGUMENTS];
    assert(recording_is_dependent(recording));
    recording_arguments(recording, 0, argument);
    if (launch_by_driver(launch, recording->stream, argument, driver))
        return cudaSuccess;
    cudaLaunchAttribute dependent = {};
    cudaLaunchConfig_t config = {};
    dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    dependent.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = launch->grid;
    config.blockDim = launch->block;
    config.dynamicSmemBytes = launch->shared;
    config.stream = recording->stream;
    config.attrs = &dependent;
    config.numAttrs = 1;
    return cudaLaunchKernelExC(&config, launch->kernel, argument);
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
    recording_launch(recording);
    recording->launches = 0;
    recording_end();
    return NULL;
}

void recording_add_launch(struct recording *recording, const void *kernel, dim3 grid, dim3 block,
                          size_t shared)
{
    struct recorded_launch *launch = &recording->launch[recording->launches++];
    launch->kernel = kernel;
    launch->grid = grid;
    launch->block = block;
    launch->shared = shared;
    launch->dependent = launch->frames_alone = false;
    launch->argument = recording->arguments;
    launch->arguments = 0;
    launch->bytes_begin = launch->bytes_end = recording->bytes;
}

void recording_mark_dependent(void)
{
    current->launch[current->launches - 1].dependent = true;
}

void recording_mark_frames_alone(void)
{
    if (current)
        current->launch[current->launches - 1].frames_alone = true;
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
