// Frames that are objects of Python.
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "filter/filter_private.h"
#include "sluice/python.h"

enum { ON_HOST = 1, ON_CUDA = 2 };                                    // kDLCPU, kDLCUDA
enum { UNSIGNED = 1 };                                                // kDLUInt
enum { BUFFER_WRITABLE = 1, BUFFER_FORMAT = 4, BUFFER_STRIDES = 24 }; // PyBUF_WRITABLE and so on

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

// Py_buffer of Python's stable ABI.
struct buffer {
    void *data, *owner;
    ptrdiff_t bytes, sample_bytes;
    int read_only, dimensions;
    const char *format;
    const ptrdiff_t *shape, *stride, *suboffset;
    void *internal;
};

// Where an object lies. What tells by a buffer has it until it is let go.
struct told {
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

static bool is_laid_out_so(const struct tensor *tensor, const struct sluice_layout *layout)
{
    bool so = tensor->device_type == layout->device_type && tensor->device == layout->device &&
              tensor->dimensions == layout->dimensions && tensor->type == layout->type &&
              tensor->bits == layout->bits && tensor->lanes == layout->lanes && tensor->stride;
    for (int k = 0; so && k < layout->dimensions; k++)
        so = tensor->shape[k] == layout->shape[k] && tensor->stride[k] == layout->stride[k];
    return so;
}

// A buffer of samples of one or two bytes as a tensor; others have a type of their own.
static void describe_buffer(struct told *told)
{
    const struct buffer *buffer = &told->buffer;
    bool known = buffer->format && (!strcmp(buffer->format, "B") || !strcmp(buffer->format, "H"));
    told->tensor = (struct tensor){.data = buffer->data,
                                   .device_type = ON_HOST,
                                   .dimensions = buffer->dimensions,
                                   .type = known ? UNSIGNED : UINT8_MAX,
                                   .bits = known ? (uint8_t)(8 * buffer->sample_bytes) : 0,
                                   .lanes = 1,
                                   .shape = told->shape,
                                   .stride = told->stride};
    for (int k = 0; known && k < buffer->dimensions && k < SLUICE_DIMENSIONS; k++) {
        told->shape[k] = buffer->shape[k];
        told->stride[k] = buffer->stride[k] / buffer->sample_bytes;
        if (buffer->stride[k] % buffer->sample_bytes)
            told->tensor.type = UINT8_MAX;
    }
}

// False: the object did not tell, and left an exception.
static bool find_place(const struct sluice_objects *objects, void *object, bool writing,
                       struct told *told)
{
    told->held = false;
    if (objects->tensor)
        return !objects->tensor(object, &told->tensor);
    int flags = BUFFER_STRIDES | BUFFER_FORMAT | (writing ? BUFFER_WRITABLE : 0);
    if (interpreter.buffer(object, &told->buffer, flags))
        return false;
    told->held = true;
    describe_buffer(told);
    return true;
}

static void place_frames(const struct sluice_objects *objects, int side,
                         const struct tensor *tensor, struct sluice_frame *frame)
{
    uint8_t *data = (uint8_t *)tensor->data + tensor->offset;
    for (int k = 0; k < objects->count; k++) {
        frame[k] = *objects->frame[side];
        frame[k].data[0] = data + k * objects->step[side];
    }
}

// Filter the frames of arrays that lie there, without the interpreter's lock.
static enum sluice_status filter_arrays(const struct sluice_objects *objects,
                                        const struct told *told, void *stream)
{
    struct sluice_frame frame[2][SLUICE_OBJECT_FRAMES];
    for (int side = 0; side < 2; side++)
        place_frames(objects, side, &told[side].tensor, frame[side]);
    void *thread = interpreter.release();
    enum sluice_status status =
        sluice_filter_run_many(objects->filter, frame[0], frame[1], objects->count, stream);
    interpreter.acquire(thread);
    return status;
}

// What was returned for two objects whose places are known: the second, or a number; NULL with an exception.
static void *filter_at(const struct sluice_objects *objects, const struct told *told, void *out)
{
    const struct tensor *source = &told[0].tensor;
    void *stream = NULL;
    for (int side = 0; side < 2; side++)
        if (!is_laid_out_so(&told[side].tensor, &objects->layout[side]))
            return interpreter.number(SLUICE_STATUS_END);
    if (source->device_type == ON_CUDA &&
        objects->stream(source->device_type, source->device, &stream))
        return NULL;
    enum sluice_status status = filter_arrays(objects, told, stream);
    if (status)
        return interpreter.number(status);
    interpreter.keep(out);
    return out;
}

// True if arguments and numbers are as the header says.
static bool is_call(const struct sluice_objects *objects, ptrdiff_t arguments)
{
    return objects->size >= sizeof *objects && arguments == 2 && objects->count >= 1 &&
           objects->count <= SLUICE_OBJECT_FRAMES &&
           objects->frame[0]->size == sizeof *objects->frame[0] &&
           objects->frame[1]->size == sizeof *objects->frame[1];
}

void *sluice_filter_objects(void *self, void *const *argument, ptrdiff_t arguments)
{
    struct told told[2];
    void *result = NULL;
    assert(interpreter.pointer);
    const struct sluice_objects *objects = interpreter.pointer(self, "sluice_objects");
    if (!objects)
        return NULL;
    if (!is_call(objects, arguments))
        return interpreter.number(SLUICE_STATUS_USAGE);
    told[1].held = false;
    if (find_place(objects, argument[0], false, &told[0]) &&
        find_place(objects, argument[1], true, &told[1]))
        result = filter_at(objects, told, argument[1]);
    for (int side = 0; side < 2; side++)
        if (told[side].held)
            interpreter.let_go(&told[side].buffer);
    return result;
}
