// Frames that are objects of Python.
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/minmax.h"
#include "filter/filter_private.h"
#include "sluice/python.h"

enum { ON_HOST = 1, ON_CUDA = 2 }; // kDLCPU, kDLCUDA
enum { UNSIGNED = 1 };             // kDLUInt

// PyBUF_WRITABLE, PyBUF_FORMAT and PyBUF_STRIDES.
enum { BUFFER_WRITABLE = 1, BUFFER_FORMAT = 4, BUFFER_STRIDES = 24 };

// DLTensor of DLPack (dlpack.h), the same in every version so far.
struct tensor {
    void *data;
    int32_t device_type, device;
    int32_t dimensions;
    uint8_t type, bits;
    uint16_t lanes;
    const int64_t *shape, *stride;
    uint64_t offset; // bytes
};

// Py_buffer of Python.
struct buffer {
    void *data, *owner;
    ptrdiff_t bytes, sample_bytes;
    int read_only, dimensions;
    const char *format;
    const ptrdiff_t *shape, *stride, *suboffset;
    void *internal;
};

// A view of an object. What a buffer describes is held until the buffer is released.
struct view {
    struct tensor tensor;
    bool held;
    struct buffer buffer;
    int64_t shape[SLUICE_DIMENSIONS], stride[SLUICE_DIMENSIONS]; // of a buffer
};

// Written once, by the first sluice_python_init(), before anybody reads it.
static struct sluice_python interpreter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum sluice_status sluice_python_init(const struct sluice_python *python)
{
    assert(python);
    if (python->size < sizeof *python)
        return SLUICE_STATUS_USAGE;
    pthread_mutex_lock(&lock);
    if (!interpreter.size)
        interpreter = *python;
    pthread_mutex_unlock(&lock);
    return SLUICE_STATUS_OK;
}

static bool matches_layout(const struct tensor *tensor, const struct sluice_layout *layout)
{
    bool matches = tensor->device_type == layout->device_type && tensor->device == layout->device &&
                   tensor->dimensions == layout->dimensions && tensor->type == layout->type &&
                   tensor->bits == layout->bits && tensor->lanes == layout->lanes && tensor->stride;
    for (int k = 0; matches && k < layout->dimensions; k++)
        matches = tensor->shape[k] == layout->shape[k] && tensor->stride[k] == layout->stride[k];
    return matches;
}

// A buffer of samples of one or two bytes as a tensor; others have a type of their own.
static void describe_buffer(struct view *view)
{
    const struct buffer *buffer = &view->buffer;
    bool known = buffer->format && (!strcmp(buffer->format, "B") || !strcmp(buffer->format, "H"));
    view->tensor = (struct tensor){.data = buffer->data,
                                   .device_type = ON_HOST,
                                   .dimensions = buffer->dimensions,
                                   .type = known ? UNSIGNED : UINT8_MAX,
                                   .bits = known ? (uint8_t)(8 * buffer->sample_bytes) : 0,
                                   .lanes = 1,
                                   .shape = view->shape,
                                   .stride = view->stride};
    for (int k = 0; known && k < min_int(buffer->dimensions, SLUICE_DIMENSIONS); k++) {
        view->shape[k] = buffer->shape[k];
        view->stride[k] = buffer->stride[k] / buffer->sample_bytes;
        if (buffer->stride[k] % buffer->sample_bytes)
            view->tensor.type = UINT8_MAX;
    }
}

// False: the object cannot be described, and there may be an exception.
static bool view_object(const struct sluice_objects *objects, void *object, bool writing,
                        struct view *view)
{
    view->held = false;
    if (objects->tensor)
        return !objects->tensor(object, &view->tensor);
    int flags = BUFFER_STRIDES | BUFFER_FORMAT | (writing ? BUFFER_WRITABLE : 0);
    view->held = !interpreter.get_buffer(object, &view->buffer, flags);
    if (view->held)
        describe_buffer(view);
    return view->held;
}

// Views of source and target, and the stream that they are on; false: they are not of these layouts, or
// cannot be described, and there may be an exception.
static bool view_objects(const struct sluice_objects *objects, void *const *object,
                         struct view view[2], void **stream)
{
    view[1].held = false;
    for (int side = 0; side < 2; side++)
        if (!view_object(objects, object[side], side == 1, &view[side]) ||
            !matches_layout(&view[side].tensor, &objects->layout[side]))
            return false;
    const struct tensor *source = &view[0].tensor;
    *stream = NULL;
    return source->device_type != ON_CUDA ||
           !objects->stream(source->device_type, source->device, stream);
}

static void place_frames(const struct sluice_objects *objects, int side,
                         const struct tensor *tensor, struct sluice_frame *frame)
{
    struct sluice_frame like = {0};
    memcpy(&like, objects->frame[side], objects->frame[side]->size);
    like.size = sizeof like;
    uint8_t *data = (uint8_t *)tensor->data + tensor->offset;
    for (int k = 0; k < objects->count; k++) {
        frame[k] = like;
        frame[k].data[0] = data + k * objects->step[side];
    }
}

// Filter the frames of arrays without the interpreter's lock.
static enum sluice_status filter_arrays(const struct sluice_objects *objects,
                                        const struct view view[2], void *stream)
{
    struct sluice_frame frame[2][SLUICE_OBJECT_FRAMES];
    for (int side = 0; side < 2; side++)
        place_frames(objects, side, &view[side].tensor, frame[side]);
    void *thread = interpreter.save_thread();
    enum sluice_status status =
        sluice_filter_run_many(objects->filter, frame[0], frame[1], objects->count, stream);
    interpreter.restore_thread(thread);
    return status;
}

// True if arguments, numbers and sizes are as the header says.
static bool is_call(const struct sluice_objects *objects, ptrdiff_t arguments)
{
    bool valid = objects->size >= sizeof *objects && arguments == 2 && objects->count >= 1 &&
                 objects->count <= SLUICE_OBJECT_FRAMES;
    for (int side = 0; side < 2 && valid; side++)
        valid = objects->frame[side]->size >= sizeof(size_t) &&
                objects->frame[side]->size <= sizeof *objects->frame[side] &&
                objects->layout[side].dimensions <= SLUICE_DIMENSIONS;
    return valid;
}

static void *new_reference(void *object)
{
    interpreter.inc_ref(object);
    return object;
}

void *sluice_filter_objects(void *self, void *const *argument, ptrdiff_t arguments)
{
    struct view view[2];
    void *stream;
    assert(interpreter.capsule_pointer);
    const struct sluice_objects *objects = interpreter.capsule_pointer(self, "sluice_objects");
    if (!objects)
        return NULL;
    if (!is_call(objects, arguments))
        return interpreter.from_long(SLUICE_STATUS_USAGE);
    bool match = view_objects(objects, argument, view, &stream);
    enum sluice_status status = match ? filter_arrays(objects, view, stream) : SLUICE_STATUS_OK;
    for (int side = 0; side < 2; side++)
        if (view[side].held)
            interpreter.release_buffer(&view[side].buffer);
    if (!match)
        interpreter.clear_error();
    return status ? interpreter.from_long(status)
                  : new_reference(match ? argument[1] : interpreter.none);
}
