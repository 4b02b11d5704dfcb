// Stands in for cuda.c in builds without CUDA, or without GStreamer's headers for it.
#include "hosts/gstreamer/cuda.h"

const char *const cuda_feature = NULL;
const char cuda_formats[] = "{ }";

GstObject *cuda_context(int device)
{
    (void)device;
    return NULL;
}

bool cuda_answer(GstQuery *query, GstElement *element, GstObject *context)
{
    (void)query, (void)element, (void)context;
    return false;
}

void cuda_offer(GstElement *element, GstObject *context)
{
    (void)element, (void)context;
}

bool cuda_propose(GstQuery *query, GstObject *context)
{
    (void)query, (void)context;
    return false;
}

bool cuda_decide(GstQuery *query, GstObject *context)
{
    (void)query, (void)context;
    return false;
}

bool cuda_holds(GstBuffer *buffer)
{
    (void)buffer;
    return false;
}

bool cuda_reaches(GstObject *context, GstBuffer *buffer)
{
    (void)context, (void)buffer;
    return false;
}

bool cuda_map(GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags,
              bool device)
{
    (void)device;
    return gst_video_frame_map(frame, info, buffer, flags);
}

bool cuda_is_mapped(const GstVideoFrame *frame)
{
    (void)frame;
    return false;
}

bool cuda_begin(GstObject *context, const GstVideoFrame *in, const GstVideoFrame *out,
                void **stream)
{
    (void)context, (void)in, (void)out;
    *stream = NULL;
    return true;
}

bool cuda_end(GstObject *context, const GstVideoFrame *out, void *stream)
{
    (void)context, (void)out, (void)stream;
    return true;
}
