"""Arrays that C can describe: frames of one layout go through the library without a look at them by Python."""

from __future__ import annotations

import ctypes
from ctypes import (POINTER, PYFUNCTYPE, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_uint8,
                    c_uint16, c_uint32, c_void_p, py_object)
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._arrays import _pointer, _Tensor
from ._engine import Engine
from ._library import OK, Frame, Sized, filter_library

_DIMENSIONS, _FRAMES = 4, 64  # include/sluice/python.h
_MAJOR = 1  # of DLPack's versions
_API_NAME, _OBJECTS_NAME = b"dlpack_exchange_api", b"sluice_objects"
_ON_HOST, _ON_CUDA, _PINNED, _UNSIGNED = 1, 2, 3, 1  # kDLCPU, kDLCUDA, kDLCUDAHost; kDLUInt
_FASTCALL = 0x80  # METH_FASTCALL


class _Api(ctypes.Structure):
    """DLPackExchangeAPI (DLPack 1.3, dlpack.h)."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("before", c_void_p), ("allocate", c_void_p),
                ("managed_from", c_void_p), ("managed_to", c_void_p), ("tensor", c_void_p), ("stream", c_void_p)]


class _Layout(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device", c_int32), ("dimensions", c_int32), ("type", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", c_int64 * _DIMENSIONS),
                ("stride", c_int64 * _DIMENSIONS)]


class _Objects(Sized):
    _fields_ = [("size", c_size_t), ("filter", c_void_p), ("tensor", c_void_p), ("stream", c_void_p),
                ("layout", _Layout * 2), ("frame", POINTER(Frame) * 2), ("step", c_ssize_t * 2), ("count", c_int)]


class _Python(Sized):
    _fields_ = [("size", c_size_t), ("none", py_object), ("save_thread", c_void_p), ("restore_thread", c_void_p),
                ("inc_ref", c_void_p), ("clear_error", c_void_p), ("from_long", c_void_p),
                ("capsule_pointer", c_void_p), ("get_buffer", c_void_p), ("release_buffer", c_void_p)]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("help", c_char_p)]


# ---- layouts ----


def _api_of(kind: type) -> Optional[_Api]:
    """The exchange API of a type; None: it has none that is known."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    try:
        address = _pointer(capsule, _API_NAME)
    except ValueError:  # no capsule, or one of another name
        return None
    while address:
        api = _Api.from_address(address)
        if api.major == _MAJOR:
            return api if api.tensor and api.stream else None
        address = api.before
    return None


_apis: Dict[type, Optional[_Api]] = {}


def _layout_of(api: Optional[_Api], array: Any) -> Optional[_Layout]:
    return _layout_of_buffer(array) if api is None else _layout_of_tensor(api, array)


def _layout_of_tensor(api: _Api, array: Any) -> Optional[_Layout]:
    tensor = _Tensor()
    try:
        status = PYFUNCTYPE(c_int, py_object, POINTER(_Tensor))(api.tensor)(array, ctypes.byref(tensor))
    except (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError):  # the type's own; no other's
        return None
    if status or not 0 < tensor.ndim <= _DIMENSIONS or not tensor.strides or \
            tensor.device_type not in (_ON_HOST, _ON_CUDA, _PINNED):
        return None
    layout = _Layout(tensor.device_type, tensor.device_id, tensor.ndim, tensor.code, tensor.bits, tensor.lanes)
    for k in range(tensor.ndim):
        layout.shape[k], layout.stride[k] = tensor.shape[k], tensor.strides[k]
    return layout


def _layout_of_buffer(array: Any) -> Optional[_Layout]:
    try:
        view = memoryview(array)
    except (TypeError, ValueError, BufferError):  # it has none
        return None
    if view.format not in ("B", "H") or not 0 < view.ndim <= _DIMENSIONS or view.shape is None or \
            view.strides is None or any(stride % view.itemsize for stride in view.strides):
        return None
    layout = _Layout(_ON_HOST, 0, view.ndim, _UNSIGNED, 8 * view.itemsize, 1)
    for k, (extent, stride) in enumerate(zip(view.shape, view.strides)):
        layout.shape[k], layout.stride[k] = extent, stride // view.itemsize
    return layout


# ---- the function ----


def _address(function: Any) -> Optional[int]:
    return ctypes.cast(function, c_void_p).value


def _keep_for_good(thing: Any) -> None:
    """Functions that were made of it may be the last that goes, after the globals of modules."""
    increment = ctypes.pythonapi["Py_IncRef"]
    increment.restype, increment.argtypes = None, [py_object]
    increment(thing)


def _make_method() -> Optional[_Method]:
    """sluice_filter_objects() as a method of Python, which needs no extension module. None: the library wants to know
    more of the interpreter."""
    library, python = filter_library(), ctypes.pythonapi
    interpreter = _Python(none=None, save_thread=_address(python.PyEval_SaveThread),
                          restore_thread=_address(python.PyEval_RestoreThread), inc_ref=_address(python.Py_IncRef),
                          clear_error=_address(python.PyErr_Clear), from_long=_address(python.PyLong_FromLong),
                          capsule_pointer=_address(python.PyCapsule_GetPointer),
                          get_buffer=_address(python.PyObject_GetBuffer),
                          release_buffer=_address(python.PyBuffer_Release))
    if library.sluice_python_init(ctypes.byref(interpreter)) != OK:
        return None
    method = _Method(b"sluice_filter_objects", _address(library.sluice_filter_objects), _FASTCALL, None)
    _keep_for_good(method)
    _keep_for_good(_OBJECTS_NAME)  # capsules point at it
    return method


_methods: List[Optional[_Method]] = []  # one, once it was needed


def _function_of(objects: _Objects) -> Optional[Callable[[Any, Any], Any]]:
    """The function of source and target. It does not keep the struct."""
    if not _methods:
        _methods.append(_make_method())
    if _methods[0] is None:
        return None
    new_capsule, new_function = ctypes.pythonapi["PyCapsule_New"], ctypes.pythonapi["PyCFunction_NewEx"]  # nobody else's
    new_capsule.restype = new_function.restype = py_object
    new_capsule.argtypes, new_function.argtypes = [c_void_p, c_char_p, c_void_p], [c_void_p, py_object, c_void_p]
    capsule = new_capsule(ctypes.addressof(objects), _OBJECTS_NAME, None)
    function: Callable[[Any, Any], Any] = new_function(ctypes.addressof(_methods[0]), capsule, None)
    return function


class Objects:
    """Frames in arrays of one type and layout, and results likewise, through one engine on the current stream.

    shape: of the frames' array.
    new:   makes a result; None: results are given.
    """

    def __init__(self, engine: Engine, kind: type, shape: Any, function: Callable[[Any, Any], Any], keep: Any,
                 new: Optional[Callable[[], Any]]) -> None:
        self.engine = engine
        self._kind, self._shape, self._new = kind, shape, new
        self._filter = function
        self._keep = keep  # what the function reads

    def filtered(self, source: Any, out: Any) -> Any:
        """The result. None: source or out is another array than that, and nothing was done."""
        array: Any = source
        if type(source) is not self._kind:
            return None
        if out is None:
            if self._new is None or array.shape != self._shape:
                return None
            out = self._new()
        elif type(out) is not self._kind:
            return None
        result = self._filter(source, out)
        if type(result) is int:
            self.engine.check(result)
        return result


def objects_of(engine: Engine, frames: Tuple[Frame, Frame], steps: Tuple[int, int], count: int, source: Any,
               target: Any, new: Optional[Callable[[], Any]]) -> Optional[Objects]:
    """Objects like these two, of a type that _known knows, which were filtered by such structs. None: C cannot describe
    them."""
    kind = type(source)
    if kind not in _apis:
        _apis[kind] = _api_of(kind)
    api = _apis[kind]
    if type(target) is not kind or not 0 < count <= min(_FRAMES, engine.most):
        return None
    layouts = _layout_of(api, source), _layout_of(api, target)
    if layouts[0] is None or layouts[1] is None:
        return None
    objects = _Objects(filter=engine.handle, count=count)
    if api is not None:
        objects.tensor, objects.stream = api.tensor, api.stream
    for side in 0, 1:
        objects.layout[side], objects.step[side] = layouts[side], steps[side]
        objects.frame[side] = ctypes.pointer(frames[side])
    function = _function_of(objects)
    return None if function is None else Objects(engine, kind, source.shape, function, (objects, frames), new)
