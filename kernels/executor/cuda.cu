// The CUDA backend: one GPU, its host memory and its streams.
//
// It lives in the GPU's primary context, as every user of the CUDA runtime does; FFmpeg's decoders
// join it there. Any thread may call in: each call makes the device current first.
#include "kernels/executor/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/launch.h"
#include "kernels/stencil/transform.h"

// Products of a convolution that cost as much as its transforms: on an H200, whose memory bounds
// these, 300 of 8-bit samples, by time, and fewer of deeper ones. Where double precision is a small
// part of single, that bounds them: modelled.
static int transform_products(int device)
{
    int ratio = 0;
    if (!transform_is_there())
        return 0;
    cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, device);
    return 30 * ratio > 300 ? 30 * ratio : 300;
}

static struct cuda_backend *self_of(struct backend *backend)
{
    return (struct cuda_backend *)backend;
}

enum status cuda_fail(struct cuda_backend *backend, cudaError_t error, const char *call)
{
    pthread_mutex_lock(&backend->failing);
    if (!backend->failed)
        log_print(backend->log, LOG_ERROR, "GPU %d failed in %.*s: %s", backend->device,
                  (int)strcspn(call, "("), call, cudaGetErrorString(error));
    backend->failed = true;
    pthread_mutex_unlock(&backend->failing);
    cudaGetLastError();
    return STATUS_DEVICE;
}

// ---- the driver's side ----

// A function of the driver, which is found at run time: the program does not link to it. As of CUDA
// `version`; NULL: an older driver.
static void *driver_function(const char *name, unsigned version)
{
    void *function = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault);
#else
    (void)version;
    cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault);
#endif
    cudaGetLastError();
    return error ? NULL : function;
}

static void find_driver_calls(struct driver_calls *driver)
{
    *(void **)&driver->get_current = driver_function("cuCtxGetCurrent", 11000);
    *(void **)&driver->is_capturing = driver_function("cuStreamIsCapturing", 11000);
    *(void **)&driver->stream_id = driver_function("cuStreamGetId", 12000);
    *(void **)&driver->launch = driver_function("cuLaunchKernelEx", 11080);
}

static void *device_context(struct backend *backend)
{
    struct cuda_backend *self = self_of(backend);
    CUcontext context = NULL;
    if (CUDA_CHECK(self, cudaSetDevice(self->device)) || !self->driver.get_current)
        return NULL;
    return self->driver.get_current(&context) == CUDA_SUCCESS ? context : NULL;
}

// ---- memory and streams ----

// Pinned for every device; not write-combined, as decoders read what they wrote.
static void *host_alloc(struct backend *backend, size_t bytes)
{
    void *memory = NULL;
    const struct callers_device callers(self_of(backend));
    cudaSetDevice(self_of(backend)->device);
    if (cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocPortable) == cudaSuccess)
        return memory;
    cudaGetLastError();
    return NULL;
}

static void host_free(struct backend *backend, void *memory, size_t bytes)
{
    (void)bytes;
    const struct callers_device callers(self_of(backend));
    cudaSetDevice(self_of(backend)->device);
    cudaFreeHost(memory);
}

static size_t device_room(struct backend *backend)
{
    size_t available = 0, total = 0;
    const struct callers_device callers(self_of(backend));
    cudaSetDevice(self_of(backend)->device);
    if (cudaMemGetInfo(&available, &total))
        cudaGetLastError();
    return available;
}

// An error that ends a context is the answer of every later call.
static bool is_lost(struct backend *backend)
{
    const struct callers_device callers(self_of(backend));
    cudaError_t error = cudaSetDevice(self_of(backend)->device);
    if (!error)
        error = cudaStreamQuery(cudaStreamPerThread);
    cudaGetLastError();
    return error != cudaSuccess && error != cudaErrorNotReady;
}

static enum memory_kind memory_kind(struct backend *backend, const void *address)
{
    struct cudaPointerAttributes about = {};
    const struct callers_device callers(self_of(backend));
    cudaSetDevice(self_of(backend)->device);
    if (cudaPointerGetAttributes(&about, address))
        cudaGetLastError();
    switch (about.type) {
    case cudaMemoryTypeHost:
        return MEMORY_PINNED;
    case cudaMemoryTypeDevice:
        return about.device == self_of(backend)->device ? MEMORY_DEVICE : MEMORY_PEER;
    case cudaMemoryTypeManaged:
        return MEMORY_MANAGED;
    default:
        return MEMORY_HOST;
    }
}

static void *device_copy(struct backend *backend, const void *data, size_t bytes)
{
    void *memory = NULL;
    cudaSetDevice(self_of(backend)->device);
    if (cudaMalloc(&memory, bytes) == cudaSuccess &&
        cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice) == cudaSuccess)
        return memory;
    cudaGetLastError();
    cudaFree(memory);
    return NULL;
}

static void device_free(struct backend *backend, void *memory)
{
    cudaSetDevice(self_of(backend)->device);
    cudaFree(memory);
}

static enum status stream_create(struct backend *backend, void **stream)
{
    struct cuda_backend *self = self_of(backend);
    cudaStream_t made = NULL;
    enum status status = CUDA_CHECK(self, cudaSetDevice(self->device));
    if (!status)
        status = CUDA_CHECK(self, cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    *stream = made;
    return status;
}

static void stream_destroy(struct backend *backend, void **stream)
{
    cudaSetDevice(self_of(backend)->device);
    if (*stream)
        cudaStreamDestroy((cudaStream_t)*stream);
    *stream = NULL;
}

// ---- construction ----

static void destroy(struct backend **backend)
{
    pthread_mutex_destroy(&self_of(*backend)->failing);
    free(*backend);
    *backend = NULL;
}

// Why there are no devices, in one sentence.
static void explain_absence(cudaError_t error, char *reason, size_t size)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (error == cudaErrorInsufficientDriver && driver == 0)
        snprintf(reason, size, "no NVIDIA driver is installed");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(reason, size,
                 "the NVIDIA driver is made for CUDA %d.%d, this program needs %d.%d or newer",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    else if (error == cudaErrorNoDevice || error == cudaSuccess)
        snprintf(reason, size, "there is no NVIDIA GPU");
    else
        snprintf(reason, size, "the NVIDIA driver does not work: %s", cudaGetErrorString(error));
}

// How many GPUs there are; 0 with the reason.
static int count_devices(char *reason, size_t size)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return count;
    explain_absence(error, reason, size);
    cudaGetLastError();
    return 0;
}

// Make the device current, its context with it, and see that it runs our code. Threads that wait
// for the GPU are to sleep. *version: of the PTX that our code was made from, 90 for sm_90.
static cudaError_t open_device(int device, int *version)
{
    cudaError_t error = cudaSetDevice(device);
    if (!error)
        error = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
    if (error == cudaErrorSetOnActiveProcess) // an old runtime, and someone else came first
        error = cudaSuccess;
    if (!error)
        error = cudaFree(NULL);
    return error ? error : pointwise_probe(version);
}

static void explain_failure(cudaError_t error, const struct cudaDeviceProp *properties,
                            char *reason, size_t size)
{
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
        snprintf(reason, size,
                 "this build is for " CUDA_BUILT_FOR
                 " and has no code for the %s (compute capability %d.%d)",
                 properties->name, properties->major, properties->minor);
    else
        snprintf(reason, size, "the %s cannot be used: %s", properties->name,
                 cudaGetErrorString(error));
}

// Stencils of all components of a pixel at once: of planes that these are taken apart into. Transforms
// work on one plane.
static bool joins(const struct plan_step *stencil)
{
    return !stencil->transform;
}

static enum status create(int device, const struct log *log, struct backend **backend, char *reason,
                          size_t size)
{
    struct cudaDeviceProp properties = {};
    struct cuda_backend made = {.log = log, .device = device};
    int count = count_devices(reason, size);
    if (!count)
        return STATUS_DEVICE;
    find_driver_calls(&made.driver);
    const struct callers_device callers(&made);
    if (device < 0 || device >= count) {
        snprintf(reason, size, "there is no GPU %d: this machine has %d, counted from 0", device,
                 count);
        return STATUS_DEVICE;
    }
    int version = 0;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (!error)
        error = open_device(device, &version);
    if (!error && made.driver.get_current && made.driver.get_current(&made.context))
        made.context = NULL;
    if (error) {
        explain_failure(error, &properties, reason, size);
        cudaGetLastError();
        return STATUS_DEVICE;
    }
    struct cuda_backend *self = (struct cuda_backend *)calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    *self = made;
    // Elsewhere (WSL) addresses of memory that a caller registered are only the host's, which that call
    // does not ask about.
    self->copies_at_once = CUDART_VERSION >= 13000 && properties.canUseHostPointerForRegisteredMem;
    self->dependent_launches = version >= 90;
    pthread_mutex_init(&self->failing, NULL);
    self->base = {
        .name = "cuda",
        .limits = {.stencils = 2,
                   .radius = 32,
                   .joins = joins,
                   .transform = transform_products(device),
                   .transform_size = transform_size,
                   .transform_library = &transform_library},
        .has_device_memory = true,
        .reads_first = true,
        .gpus = 1,
        .parallel = 3, // one uploaded, one computed, one downloaded
        // Fewer leave the link idle: 31 against 39 Gpx/s of 1080p on an H200.
        .in_flight = BACKEND_CUDA_IN_FLIGHT,
        .executor_create = cuda_executor_create,
        .executor_measure = cuda_executor_measure,
        .is_lost = is_lost,
        .device_room = device_room,
        .alloc = host_alloc,
        .free = host_free,
        .memory_kind = memory_kind,
        .device_context = device_context,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .device_copy = device_copy,
        .device_free = device_free,
        .measure_copy = cuda_measure_copy,
        .measure_link = cuda_measure_link,
        .destroy = destroy,
    };
    snprintf(self->base.description, sizeof self->base.description,
             "%.60s, compute capability %d.%d", properties.name, properties.major,
             properties.minor);
    *backend = &self->base;
    return STATUS_OK;
}

enum status backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                char *reason, size_t reason_size)
{
    char unread[1];
    *backend = NULL;
    return create(device, log, backend, reason ? reason : unread, reason ? reason_size : 1);
}

int backend_cuda_describe(int device, char *line, size_t size)
{
    char unread[1];
    struct cudaDeviceProp properties;
    if (!line) {
        line = unread;
        size = 1;
    }
    int count = count_devices(line, size);
    if (!count)
        return 0;
    if (device < 0 || device >= count || cudaGetDeviceProperties(&properties, device))
        snprintf(line, size, "there is no GPU %d", device);
    else
        snprintf(line, size, "%s, compute capability %d.%d, %zu MiB", properties.name,
                 properties.major, properties.minor, properties.totalGlobalMem >> 20);
    cudaGetLastError();
    return count;
}

bool backend_cuda_may_be_there(void)
{
    return !access("/dev/nvidiactl", R_OK | W_OK);
}

bool backend_cuda_is_absent(void)
{
    int count = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    return error == cudaErrorInsufficientDriver ? !driver
           : error                              ? error == cudaErrorNoDevice
                                                : !count;
}

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

const char *backend_cuda_version(void)
{
    return "CUDA " TEXT(__CUDACC_VER_MAJOR__) "." TEXT(__CUDACC_VER_MINOR__);
}
