// Frames that are objects of Python.
#include <assert.h>
#include <pthread.h>

#include "filter/filter_private.h"
#include "sluice/python.h"

enum { ON_CUDA = 2 }; // kDLCUDA

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

static void place_frames(const struct sluice_objects *objects, int side,
                         const struct tensor *tensor, struct sluice_frame *frame)
{
    uint8_t *data = (uint8_t *)tensor->data + tensor->offset;
    for (int k = 0; k < objects->count; k++) {
        frame[k] = objects->frame[side];
        frame[k].data[0] = data + k * objects->step[side];
    }
}

// Filter the frames of arrays that lie there, without the interpreter's lock.
static enum sluice_status filter_arrays(const struct sluice_objects *objects,
                                        const struct tensor *tensor, void *stream)
{
    struct sluice_frame frame[2][SLUICE_OBJECT_FRAMES];
    for (int side = 0; side < 2; side++)
        place_frames(objects, side, &tensor[side], frame[side]);
    void *thread = interpreter.release();
    enum sluice_status status =
        sluice_filter_run_many(objects->filter, frame[0], frame[1], objects->count, stream);
    interpreter.acquire(thread);
    return status;
}

// True if arguments and numbers are as the header says.
static bool is_call(const struct sluice_objects *objects, ptrdiff_t arguments)
{
    return objects->size >= sizeof *objects && arguments == 2 && objects->count >= 1 &&
           objects->count <= SLUICE_OBJECT_FRAMES;
}

void *sluice_filter_objects(void *self, void *const *argument, ptrdiff_t arguments)
{
    struct tensor tensor[2];
    void *stream = NULL;
    assert(interpreter.pointer);
    const struct sluice_objects *objects = interpreter.pointer(self, "sluice_objects");
    if (!objects)
        return NULL;
    if (!is_call(objects, arguments))
        return interpreter.number(SLUICE_STATUS_USAGE);
    for (int side = 0; side < 2; side++) {
        if (objects->tensor(argument[side], &tensor[side]))
            return NULL;
        if (!is_laid_out_so(&tensor[side], &objects->layout[side]))
            return interpreter.number(SLUICE_STATUS_END);
    }
    if (tensor[0].device_type == ON_CUDA &&
        objects->stream(tensor[0].device_type, tensor[0].device, &stream))
        return NULL;
    enum sluice_status status = filter_arrays(objects, tensor, stream);
    if (status)
        return interpreter.number(status);
    interpreter.keep(argument[1]);
    return argument[1];
}
