// Frames that are objects of Python: what a binding saves itself for each of them. (Since 1.1.)
//
// Python's ways to an array's memory (__dlpack__, array interfaces, attributes) take longer than the
// launch of a kernel. Types that have DLPack's exchange API in C, as torch.Tensor from torch 2.10 on,
// or the buffer protocol, as numpy.ndarray, describe an object within tens of nanoseconds. So a binding
// looks at an object by Python once, and objects of the same layout go through sluice_filter_objects(),
// a function of Python that was compiled without Python's headers: it is told what it needs of the
// interpreter.
//
// Sources: DLPack 1.3, dlpack.h, struct DLPackExchangeAPI, of which a type's attribute
// __dlpack_c_exchange_api__ is a capsule, "dlpack_exchange_api"; Python's stable ABI, METH_FASTCALL since
// 3.10 and Py_buffer since 3.11, both of the same form in 3.9.
#pragma once

#include "sluice/filter.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLUICE_DIMENSIONS = 4, SLUICE_OBJECT_FRAMES = 64 };

// The layout of an array, as DLPack's DLTensor describes it: all but the address. It has no size, as it
// does not grow.
struct sluice_layout {
    int32_t device_type, device; // kDLCPU is 1, kDLCUDA 2
    int32_t dimensions;
    uint8_t type, bits; // kDLUInt is 1; of buffers nothing else is known
    uint16_t lanes;
    int64_t shape[SLUICE_DIMENSIONS], stride[SLUICE_DIMENSIONS]; // strides in samples
};

// The interpreter.
struct sluice_python {
    size_t size;
    void *none;                                                // Py_None
    void *(*save_thread)(void);                                // PyEval_SaveThread
    void (*restore_thread)(void *thread);                      // PyEval_RestoreThread
    void (*inc_ref)(void *object);                             // Py_IncRef
    void (*clear_error)(void);                                 // PyErr_Clear
    void *(*from_long)(long value);                            // PyLong_FromLong
    void *(*capsule_pointer)(void *capsule, const char *name); // PyCapsule_GetPointer
    int (*get_buffer)(void *object, void *view, int flags);    // PyObject_GetBuffer
    void (*release_buffer)(void *view);                        // PyBuffer_Release
};

// Calls of one function have this in common. `filter`, `frame` and this struct are the caller's, and stay
// as long as calls come.
struct sluice_objects {
    size_t size;
    struct sluice_filter *filter;

    // The exchange API of the objects' type: dltensor_from_py_object_no_sync and current_work_stream,
    // which return 0 on success. NULL, both: the type has the buffer protocol.
    int (*tensor)(void *object, void *tensor);
    int (*stream)(int device_type, int32_t device, void **stream);

    // Index 0 is the source's, index 1 the target's.
    struct sluice_layout layout[2];
    // `frame` has all but data[0], which is where the array begins; its size may be an earlier version's.
    const struct sluice_frame *frame[2];
    ptrdiff_t step[2]; // bytes from frame to frame of an array of several
    int count;         // frames in an array: 1 to SLUICE_OBJECT_FRAMES
};

// Tell what interpreter it is, of which a process has one: the first call counts. It has returned before
// sluice_filter_objects() is called. SLUICE_STATUS_USAGE if the struct is of an earlier version. Any thread.
SLUICE_API enum sluice_status sluice_python_init(const struct sluice_python *python);

// A function of Python (METH_FASTCALL) of two arguments, source and target, which are objects of the type
// that the caller has checked: sluice_filter_run_many() of the source's frames, of one plane, into the
// target, on the current stream of the type and the source's device. `self` is a capsule of struct
// sluice_objects, "sluice_objects".
//
// Returns the target; None, with nothing done and no exception, if an object has another layout or cannot
// be described; or an int: SLUICE_STATUS_USAGE for other numbers of arguments, frames or dimensions or a
// struct of another version, or what sluice_filter_run_many() failed with. NULL, with an exception, for
// another capsule. Called with the interpreter's lock (GIL), which is released while frames are filtered;
// one thread at a time for a filter.
SLUICE_API void *sluice_filter_objects(void *self, void *const *argument, ptrdiff_t arguments);

#ifdef __cplusplus
}
#endif
