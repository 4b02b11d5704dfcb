// Names on the timelines of profilers (Nsight Systems): what the host enqueues, with the frame's
// number as payload, and which stream is whose. They cost a few nanoseconds while no profiler
// listens, and nothing in builds whose toolkit lacks NVTX 3.
#pragma once

#include <cuda_runtime_api.h>

#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

// Begin a range on this thread, within the one that is open. `frame` below 0: of no frame.
static inline void range_push(const char *name, long long frame)
{
    nvtxEventAttributes_t about = {};
    about.version = NVTX_VERSION;
    about.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    about.messageType = NVTX_MESSAGE_TYPE_ASCII;
    about.message.ascii = name;
    about.payloadType = frame < 0 ? NVTX_PAYLOAD_UNKNOWN : NVTX_PAYLOAD_TYPE_INT64;
    about.payload.llValue = frame;
    nvtxRangePushEx(&about);
}

// End the range that was begun last on this thread.
static inline void range_pop(void)
{
    nvtxRangePop();
}

static inline void range_name_stream(cudaStream_t stream, const char *name)
{
    nvtxNameCudaStreamA(stream, name);
}

#else

static inline void range_push(const char *name, long long frame)
{
    (void)name;
    (void)frame;
}

static inline void range_pop(void) {}

static inline void range_name_stream(cudaStream_t stream, const char *name)
{
    (void)stream;
    (void)name;
}

#endif
