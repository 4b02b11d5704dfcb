// Pictures in a GPU's memory: caps with the feature memory:CUDAMemory. Builds without CUDA, or
// without GStreamer's headers for it, have cuda_stub.c, where there is no such memory.
//
// Contexts. GStreamer's CUDA elements share a GstCudaContext: one of them makes it, the others ask
// their neighbours and bins for it. The filter works in the GPU's primary context, which reaches no
// memory of another one. So a GstCudaContext around the primary one is what the element answers and
// offers; memory of any other context is mapped to the host, which is slower and as right.
#pragma once

#include <gst/video/video.h>
#include <stdbool.h>

// "memory:CUDAMemory"; NULL in a build that does not know it.
extern const char *const cuda_feature;

// The formats that it can have, as those of formats_caps: GStreamer knows no others there.
extern const char cuda_formats[];

// The context around the primary one of GPU number `device`, a GstCudaContext; NULL if there is
// none. It belongs to the process, and stays. Any thread.
GstObject *cuda_context(int device);

// In all that follows a context may be NULL: there is none.

// Answer a query for a CUDA context. Returns false, with nothing done, for other queries. Any
// thread.
bool cuda_answer(GstQuery *query, GstElement *element, GstObject *context);

// Offer the context to the bins around the element, unless they have set one.
void cuda_offer(GstElement *element, GstObject *context);

// Add a pool of memory in `context` to an allocation query, and let it be the first one. Returns
// false without a context, or if the query has no caps.
bool cuda_propose(GstQuery *query, GstObject *context);
bool cuda_decide(GstQuery *query, GstObject *context);

// Whether a buffer lies in memory of a GPU, and in that of `context`.
bool cuda_holds(GstBuffer *buffer);
bool cuda_reaches(GstObject *context, GstBuffer *buffer);

// gst_video_frame_map(), to addresses of the GPU if `device`, which wants a buffer that
// cuda_reaches(); and whether it was that.
bool cuda_map(GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags,
              bool device);
bool cuda_is_mapped(const GstVideoFrame *frame);

// The stream (cudaStream_t; NULL: the default one) on which the GPU may read `in` and write `out`;
// then, with all of that on the stream, make `out` ready for everyone, which waits for the GPU.
// Nothing happens to frames of the host. Returns false if the GPU failed.
bool cuda_begin(GstObject *context, const GstVideoFrame *in, const GstVideoFrame *out,
                void **stream);
bool cuda_end(GstObject *context, const GstVideoFrame *out, void *stream);
