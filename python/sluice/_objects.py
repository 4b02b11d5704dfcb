"""Arrays that tell in C where they lie: frames of a layout go through the library without a look at them by Python."""

from __future__ import annotations

import ctypes
import sys
from ctypes import (POINTER, PYFUNCTYPE, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_uint8, c_uint16,
                    c_uint32, c_void_p, py_object)
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._arrays import _pointer, _Tensor
from ._engine import Engine
from ._library import END, Frame, Sized, filter_library

_DIMENSIONS, _FRAMES = 4, 64  # include/sluice/python.h
_MAJOR = 1  # of DLPack's versions
_NAME = b"dlpack_exchange_api"
_OBJECTS = b"sluice_objects"  # which a capsule does not copy
_ON_HOST, _UNSIGNED = 1, 1  # kDLCPU, kDLUInt
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
    _fields_ = [("size", c_size_t), ("release", c_void_p), ("acquire", c_void_p), ("keep", c_void_p),
                ("number", c_void_p), ("pointer", c_void_p), ("buffer", c_void_p), ("let_go", c_void_p)]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("help", c_char_p)]


def _api_of(kind: type) -> Optional[_Api]:
    """The exchange API of a type; None: it has none that is known."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None or sys.implementation.name != "cpython":
        return None
    try:
        address = _pointer(capsule, _NAME)
    except ValueError:  # no capsule, or one of another name
        return None
    while address:
        api = _Api.from_address(address)
        if api.major == _MAJOR:
            return api if api.tensor and api.stream else None
        address = api.before
    return None


_apis: Dict[type, Optional[_Api]] = {}


def _layout_of(api: Optional[_Api], thing: Any) -> Optional[_Layout]:
    return _layout_of_buffer(thing) if api is None else _layout_of_tensor(api, thing)


def _layout_of_tensor(api: _Api, thing: Any) -> Optional[_Layout]:
    tensor = _Tensor()
    try:
        status = PYFUNCTYPE(c_int, py_object, POINTER(_Tensor))(api.tensor)(thing, ctypes.byref(tensor))
    except Exception:  # the type's own, of an array that has no address
        return None
    if status or not 0 < tensor.ndim <= _DIMENSIONS or not tensor.strides:
        return None
    layout = _Layout(tensor.device_type, tensor.device_id, tensor.ndim, tensor.code, tensor.bits, tensor.lanes)
    for k in range(tensor.ndim):
        layout.shape[k], layout.stride[k] = tensor.shape[k], tensor.strides[k]
    return layout


def _layout_of_buffer(thing: Any) -> Optional[_Layout]:
    try:
        view = memoryview(thing)
    except (TypeError, ValueError, BufferError):  # it has none
        return None
    if view.format not in ("B", "H") or not 0 < view.ndim <= _DIMENSIONS:
        return None
    layout = _Layout(_ON_HOST, 0, view.ndim, _UNSIGNED, 8 * view.itemsize, 1)
    for k, (extent, stride) in enumerate(zip(view.shape or (), view.strides or ())):
        layout.shape[k], layout.stride[k] = extent, stride // view.itemsize
    return layout


def _address(function: Any) -> Optional[int]:
    return ctypes.cast(function, c_void_p).value


def _make_method() -> _Method:
    """sluice_filter_objects() as a function of Python, which an extension module would be compiled for."""
    library, python = filter_library(), ctypes.pythonapi
    interpreter = _Python(release=_address(python.PyEval_SaveThread), acquire=_address(python.PyEval_RestoreThread),
                          keep=_address(python.Py_IncRef), number=_address(python.PyLong_FromLong),
                          pointer=_address(python.PyCapsule_GetPointer), buffer=_address(python.PyObject_GetBuffer),
                          let_go=_address(python.PyBuffer_Release))
    library.sluice_python_init(ctypes.byref(interpreter))
    return _Method(b"sluice_filter_objects", _address(library.sluice_filter_objects), _FASTCALL, None)


_methods: List[_Method] = []  # of which functions are made that may live as long as the process


def _function_of(objects: _Objects) -> Callable[[Any, Any], Any]:
    """The function of source and target. It does not keep the struct."""
    if not _methods:
        _methods.append(_make_method())
    new_capsule, new_function = ctypes.pythonapi["PyCapsule_New"], ctypes.pythonapi["PyCFunction_NewEx"]  # nobody else's
    new_capsule.restype = new_function.restype = py_object
    new_capsule.argtypes, new_function.argtypes = [c_void_p, c_char_p, c_void_p], [c_void_p, py_object, c_void_p]
    capsule = new_capsule(ctypes.addressof(objects), _OBJECTS, None)
    function: Callable[[Any, Any], Any] = new_function(ctypes.addressof(_methods[0]), capsule, None)
    return function


class Objects:
    """Frames in arrays of one type and layout, and results likewise, through one engine on the current stream.

    new: makes a result; None: they are given.
    """

    def __init__(self, engine: Engine, kind: type, objects: _Objects, frames: Tuple[Frame, Frame],
                 new: Optional[Callable[[], Any]]) -> None:
        self.engine = engine
        self._kind, self._new = kind, new
        self._keep = objects, frames
        self._filter = _function_of(objects)

    def filtered(self, source: Any, out: Any) -> Any:
        """The result. None: of these it cannot be had so, and nothing was done."""
        if type(source) is not self._kind:
            return None
        if out is None:
            if self._new is None:
                return None
            out = self._new()
        if type(out) is not self._kind:
            return None
        try:
            result = self._filter(source, out)
        except Exception:  # the type's own, of an array that has no address
            return None
        if result is out:
            return out
        if result != END:
            self.engine.check(result)
        return None


def objects_of(engine: Engine, frames: Tuple[Frame, Frame], steps: Tuple[int, int], count: int, source: Any,
               target: Any, new: Optional[Callable[[], Any]]) -> Optional[Objects]:
    """Of those that are laid out as these two, of a type that _known knows, which were filtered by such structs. None:
    they do not tell."""
    kind = type(source)
    if kind not in _apis:
        _apis[kind] = _api_of(kind)
    api = _apis[kind]
    if type(target) is not kind or not 0 < count <= min(_FRAMES, engine.most):
        return None
    layouts = [_layout_of(api, thing) for thing in (source, target)]
    if None in layouts:
        return None
    objects = _Objects(filter=engine.handle, count=count)
    if api is not None:
        objects.tensor, objects.stream = api.tensor, api.stream
    for side in 0, 1:
        objects.layout[side], objects.step[side] = layouts[side], steps[side]
        objects.frame[side] = ctypes.pointer(frames[side])
    return Objects(engine, kind, objects, frames, new)
