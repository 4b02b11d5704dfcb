#include "hosts/gstreamer/cuda.h"

#include <dlfcn.h>
#include <gst/cuda/cuda-gst.h>
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>
#include <string.h>

const char *const cuda_feature = GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY;

// GStreamer 1.22 ends the program that asks it for memory of another one.
const char cuda_formats[] =
    "{ I420, NV12, Y444, Y42B, NV21, YUY2, UYVY, RGB, BGR, RGBA, BGRA, ARGB, ABGR, RGBx, "
    "BGRx, GBR, GBRA, I420_10LE, I422_10LE, I422_12LE, Y444_16LE, P010_10LE, P016_LE }";

// ---- contexts ----

// GStreamer's loader has no function for primary contexts. The library stays open.
static CUcontext retain_primary(CUdevice device)
{
    typedef CUresult retain(CUcontext *, CUdevice);
    CUcontext context = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    retain *call = driver ? (retain *)dlsym(driver, "cuDevicePrimaryCtxRetain") : NULL;
    return call && call(&context, device) == CUDA_SUCCESS ? context : NULL;
}

static GstObject *wrap_primary(int number)
{
    CUdevice device;
    if (!gst_cuda_load_library() || CuInit(0) != CUDA_SUCCESS ||
        CuDeviceGet(&device, number) != CUDA_SUCCESS)
        return NULL;
    gst_cuda_memory_init_once();
    CUcontext primary = retain_primary(device);
    GstCudaContext *context = primary ? gst_cuda_context_new_wrapped(primary, device) : NULL;
    if (context)
        GST_OBJECT_FLAG_SET(context, GST_OBJECT_FLAG_MAY_BE_LEAKED);
    return GST_OBJECT_CAST(context);
}

GstObject *cuda_context(int device)
{
    static GMutex lock;
    static GHashTable *contexts; // of devices by number; NULL of those that are not there
    gpointer context, number = GINT_TO_POINTER(device);
    g_mutex_lock(&lock);
    if (!contexts)
        contexts = g_hash_table_new(NULL, NULL);
    if (!g_hash_table_lookup_extended(contexts, number, NULL, &context)) {
        context = wrap_primary(device);
        g_hash_table_insert(contexts, number, context);
    }
    g_mutex_unlock(&lock);
    return context;
}

bool cuda_answer(GstQuery *query, GstElement *element, GstObject *context)
{
    return context && gst_cuda_handle_context_query(element, query, GST_CUDA_CONTEXT(context));
}

void cuda_offer(GstElement *element, GstObject *context)
{
    GstContext *set = gst_element_get_context(element, GST_CUDA_CONTEXT_TYPE);
    if (set)
        gst_context_unref(set);
    else if (context)
        gst_element_post_message(
            element,
            gst_message_new_have_context(GST_OBJECT_CAST(element),
                                         gst_context_new_cuda_context(GST_CUDA_CONTEXT(context))));
}

// ---- pools ----

// A pool of pictures of `caps`. Its buffers are larger than the caps say, as rows are padded.
static GstBufferPool *pool_create(GstObject *context, GstCaps *caps, guint min, guint *size)
{
    GstVideoInfo info;
    if (!context || !caps || !gst_video_info_from_caps(&info, caps))
        return NULL;
    GstBufferPool *pool = gst_cuda_buffer_pool_new(GST_CUDA_CONTEXT(context));
    GstStructure *config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    gst_buffer_pool_config_set_params(config, caps, (guint)info.size, min, 0);
    if (!gst_buffer_pool_set_config(pool, config))
        gst_clear_object(&pool);
    if (!pool)
        return NULL;
    config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_get_params(config, NULL, size, NULL, NULL);
    gst_structure_free(config);
    return pool;
}

bool cuda_propose(GstQuery *query, GstObject *context)
{
    GstCaps *caps = NULL;
    guint size = 0;
    gst_query_parse_allocation(query, &caps, NULL);
    GstBufferPool *pool = pool_create(context, caps, 0, &size);
    if (!pool)
        return false;
    gst_query_add_allocation_pool(query, pool, size, 0, 0);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);
    gst_object_unref(pool);
    return true;
}

bool cuda_decide(GstQuery *query, GstObject *context)
{
    GstCaps *caps = NULL;
    guint size = 0, min = 0, max = 0;
    bool asked = gst_query_get_n_allocation_pools(query) > 0;
    gst_query_parse_allocation(query, &caps, NULL);
    if (asked)
        gst_query_parse_nth_allocation_pool(query, 0, NULL, NULL, &min, &max);
    GstBufferPool *pool = pool_create(context, caps, min, &size);
    if (!pool)
        return false;
    if (asked)
        gst_query_set_nth_allocation_pool(query, 0, pool, size, min, 0);
    else
        gst_query_add_allocation_pool(query, pool, size, min, 0);
    gst_object_unref(pool);
    return true;
}

// ---- buffers ----

static GstCudaMemory *memory_of(GstBuffer *buffer)
{
    GstMemory *memory = gst_buffer_n_memory(buffer) == 1 ? gst_buffer_peek_memory(buffer, 0) : NULL;
    return memory && gst_is_cuda_memory(memory) ? GST_CUDA_MEMORY_CAST(memory) : NULL;
}

bool cuda_holds(GstBuffer *buffer)
{
    return memory_of(buffer);
}

bool cuda_reaches(GstObject *context, GstBuffer *buffer)
{
    GstCudaMemory *memory = memory_of(buffer);
    return context && memory &&
           gst_cuda_context_get_handle(memory->context) ==
               gst_cuda_context_get_handle(GST_CUDA_CONTEXT(context));
}

// Rows are padded: a meta says how far, else the memory itself does.
bool cuda_map(GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags,
              bool device)
{
    GstCudaMemory *memory = memory_of(buffer);
    GstVideoInfo padded = *info;
    if (memory && !gst_buffer_get_video_meta(buffer)) {
        memcpy(padded.stride, memory->info.stride, sizeof padded.stride);
        memcpy(padded.offset, memory->info.offset, sizeof padded.offset);
        padded.size = memory->info.size;
    }
    return gst_video_frame_map(frame, &padded, buffer, flags | (device ? GST_MAP_CUDA : 0));
}

bool cuda_is_mapped(const GstVideoFrame *frame)
{
    return frame->map[0].flags & GST_MAP_CUDA;
}

// ---- order ----

// Before GStreamer 1.24 what neighbours do on streams of their own is done when they hand it over.
static void *stream_of(const GstVideoFrame *frame)
{
#if GST_CHECK_VERSION(1, 24, 0)
    GstCudaStream *stream = gst_cuda_memory_get_stream(memory_of(frame->buffer));
    return stream ? gst_cuda_stream_get_handle(stream) : NULL;
#else
    (void)frame;
    return NULL;
#endif
}

static bool await(GstObject *context, void *stream)
{
    if (!gst_cuda_context_push(GST_CUDA_CONTEXT(context)))
        return false;
    bool done = CuStreamSynchronize(stream) == CUDA_SUCCESS;
    return gst_cuda_context_pop(NULL) && done;
}

// A buffer that comes from a pool may still be read on its stream.
bool cuda_begin(GstObject *context, const GstVideoFrame *in, const GstVideoFrame *out,
                void **stream)
{
    void *into = cuda_is_mapped(out) ? stream_of(out) : NULL;
    *stream = cuda_is_mapped(in) ? stream_of(in) : into;
    return !cuda_is_mapped(out) || into == *stream || await(context, into);
}

bool cuda_end(GstObject *context, const GstVideoFrame *out, void *stream)
{
    return !cuda_is_mapped(out) || await(context, stream);
}
