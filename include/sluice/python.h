// Frames that are objects of Python: what a binding saves itself for each of them. (Since 1.1.)
//
// Python's ways to an array's memory (__dlpack__, array interfaces, attributes) take longer than the
// launch of a kernel. Types that have DLPack's exchange API in C, as torch.Tensor from torch 2.10 on,
// or Python's buffers, as numpy.ndarray, tell within tens of nanoseconds where an object lies. So a binding looks at an object by Python once,
// and objects that are laid out alike go through sluice_filter_objects(), a function of Python that was
// made without Python's headers: what it needs of the interpreter it is told.
//
// Sources: DLPack 1.3, dlpack.h, struct DLPackExchangeAPI, of which a type's attribute
// __dlpack_c_exchange_api__ is a capsule, "dlpack_exchange_api"; Python's stable ABI (PEP 384).
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
    uint8_t type, bits; // kDLUInt is 1; of buffers nothing else is known
    uint16_t lanes;
    int64_t shape[SLUICE_DIMENSIONS], stride[SLUICE_DIMENSIONS]; // strides in samples
};

// Functions of the interpreter.
struct sluice_python {
    size_t size;
    void *(*release)(void);                             // PyEval_SaveThread: others run meanwhile
    void (*acquire)(void *thread);                      // PyEval_RestoreThread
    void (*keep)(void *object);                         // Py_IncRef
    void *(*number)(long value);                        // PyLong_FromLong
    void *(*pointer)(void *capsule, const char *name);  // PyCapsule_GetPointer
    int (*buffer)(void *object, void *view, int flags); // PyObject_GetBuffer
    void (*let_go)(void *view);                         // PyBuffer_Release
};

// What frames in arrays of two layouts have in common: sources and results.
struct sluice_objects {
    size_t size;
    struct sluice_filter *filter;

    // Of the arrays' type: dltensor_from_py_object_no_sync and current_work_stream of its exchange
    // API. They return 0, or leave an exception to Python. NULL, both: the type has Python's buffers.
    int (*tensor)(void *object, void *tensor);
    int (*stream)(int device_type, int32_t device, void **stream);

    // Of what comes in, and of what goes out.
    struct sluice_layout layout[2];
    const struct sluice_frame
        *frame[2];     // all but data[0], which is where the array begins; of this version
    ptrdiff_t step[2]; // bytes from frame to frame of an array of several
    int count;         // frames in an array: 1 to SLUICE_OBJECT_FRAMES
};

// Tell what interpreter it is, of which a process has one: the first call counts. It has returned before
// sluice_filter_objects() is called. SLUICE_STATUS_USAGE if the struct is of an earlier version. Any thread.
SLUICE_API enum sluice_status sluice_python_init(const struct sluice_python *python);

// A function of Python (METH_FASTCALL) of two arguments, objects of that type: sluice_filter_run_many()
// of the frames of one plane in the first, into the second, on the current stream of the source's type
// and device. `self` is a capsule of struct sluice_objects, "sluice_objects". Returns the second one, or
// an int: SLUICE_STATUS_END if one of them is laid out otherwise, and nothing was done;
// SLUICE_STATUS_USAGE for other numbers of arguments or frames, or structs of other versions; what
// sluice_filter_run_many() failed with. NULL, with an exception, if an object did not tell.
SLUICE_API void *sluice_filter_objects(void *self, void *const *argument, ptrdiff_t arguments);

#ifdef __cplusplus
}
#endif
