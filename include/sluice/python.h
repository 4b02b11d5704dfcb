// Frames that are objects of Python: what a binding saves itself for each of them. (Since 1.1.)
//
// Python's ways to an array's memory (__dlpack__, array interfaces, attributes) take longer than the
// launch of a kernel. Types that have DLPack's exchange API in C, as torch.Tensor from torch 2.10 on,
// tell within tens of nanoseconds where an object lies; so a binding looks at an object by Python once,
// and objects that are laid out alike go through sluice_filter_run_objects().
//
// Source: DLPack 1.3, dlpack.h, struct DLPackExchangeAPI; the type's attribute __dlpack_c_exchange_api__
// is a capsule of it, "dlpack_exchange_api".
#pragma once

#include "sluice/filter.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLUICE_DIMENSIONS = 4, SLUICE_OBJECT_FRAMES = 64 };

// How an array lies in memory, as DLPack's DLTensor says it: all but where.
struct sluice_layout {
    int32_t device_type, device; // kDLCPU is 1, kDLCUDA 2
    int32_t dimensions;
    uint8_t type, bits; // kDLUInt is 1
    uint16_t lanes;
    int64_t shape[SLUICE_DIMENSIONS], stride[SLUICE_DIMENSIONS]; // strides in samples
};

// What frames in arrays of two layouts have in common: sources and results.
struct sluice_objects {
    size_t size;

    // Of the arrays' type: dltensor_from_py_object_no_sync and current_work_stream of its exchange
    // API. They return 0, or leave an exception to Python.
    int (*tensor)(void *object, void *tensor);
    int (*stream)(int device_type, int32_t device, void **stream);

    // Of the interpreter, whose lock others have while frames are filtered: PyEval_SaveThread and
    // PyEval_RestoreThread. NULL: it is kept.
    void *(*release)(void);
    void (*acquire)(void *thread);

    struct sluice_layout layout[2]; // of what comes in, of what goes out
    struct sluice_frame frame[2];   // all but data[0], which is where the array begins
    ptrdiff_t step[2];              // bytes from frame to frame of an array of several
    int count;                      // frames in an array: 1 to SLUICE_OBJECT_FRAMES
};

// sluice_filter_run_many() of the frames of one plane in `in`, into `out`, which are objects of that
// type (PyObject *), on the current stream of the source's type and device. The caller has the
// interpreter's lock, and a reference to each. SLUICE_STATUS_END: one of them is laid out otherwise, or
// did not tell, and nothing was done.
SLUICE_API enum sluice_status sluice_filter_run_objects(struct sluice_filter *filter,
                                                        const struct sluice_objects *objects,
                                                        void *in, void *out);

#ifdef __cplusplus
}
#endif
