// Frames that are objects of Python.
#include <assert.h>

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

static bool lies_so(const struct tensor *tensor, const struct sluice_layout *layout)
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

enum sluice_status sluice_filter_run_objects(struct sluice_filter *filter,
                                             const struct sluice_objects *objects, void *in,
                                             void *out)
{
    assert(filter && objects && in && out);
    struct tensor tensor[2];
    void *object[2] = {in, out}, *stream = NULL;
    struct sluice_frame frame[2][SLUICE_OBJECT_FRAMES];
    if (objects->size < sizeof *objects || objects->count < 1 ||
        objects->count > SLUICE_OBJECT_FRAMES)
        return filter_status(
            log_fail(&filter->log, STATUS_USAGE,
                     "struct sluice_objects has no size, or %d frames; an array has "
                     "1 to %d",
                     objects->count, SLUICE_OBJECT_FRAMES));
    for (int side = 0; side < 2; side++) {
        if (objects->tensor(object[side], &tensor[side]) ||
            !lies_so(&tensor[side], &objects->layout[side]))
            return SLUICE_STATUS_END;
        place_frames(objects, side, &tensor[side], frame[side]);
    }
    if (tensor[0].device_type == ON_CUDA &&
        objects->stream(tensor[0].device_type, tensor[0].device, &stream))
        return SLUICE_STATUS_END;
    void *thread = objects->release ? objects->release() : NULL;
    enum sluice_status status =
        sluice_filter_run_many(filter, frame[0], frame[1], objects->count, stream);
    if (objects->release)
        objects->acquire(thread);
    return status;
}
