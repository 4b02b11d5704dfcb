"""Arrays of NumPy, torch and CuPy by their own attributes: addresses, and layouts as keys.

DLPack and the array interfaces (_arrays) say the same of any array, and take many times as long. What these finders
are not certain of they leave to them, errors included.
"""

from __future__ import annotations

import sys
from ctypes import addressof, c_char
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

Layout = Tuple[Any, ...]  # of arrays of one layout all that a filter checks is the same; it keeps no array
Places = Tuple[Tuple[int, ...], Layout, int]  # the address of each plane, their layout, and the stream that is for


class Finder(NamedTuple):
    """How arrays of one type say where they lie."""

    stream: Callable[[Any], int]  # the current CUDA stream; 0 in host memory
    # For a stream, or for the current one where that is None. It gives back None where the general way has to be asked.
    find: Callable[[Any, Optional[int]], Optional[Places]]


def _of_numpy(numpy: Any) -> Finder:
    kind = numpy.ndarray

    def find(array: Any, stream: Optional[int]) -> Optional[Places]:
        flags = array.flags
        writable, dense = flags.writeable, flags.c_contiguous
        if not (writable and dense):
            address = array.__array_interface__["data"][0]
        else:
            try:
                address = addressof(c_char.from_buffer(array))  # the fastest way to it
            except (BufferError, TypeError, ValueError):  # no samples, or such as buffers do not have
                return None
        return (address,), (kind, array.dtype, array.shape, dense or array.strides, writable), stream or 0

    return Finder(lambda array: 0, find)


def _of_torch(torch: Any) -> Optional[Finder]:
    if getattr(torch.version, "hip", None):
        return None
    kind = torch.Tensor
    current = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
        lambda device: int(torch.cuda.current_stream(device).cuda_stream))
    current_device = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device

    def stream(array: Any) -> int:
        return int(current(array.get_device())) if array.is_cuda else 0

    def find(array: Any, stream: Optional[int]) -> Optional[Places]:
        """DLPack makes other streams wait for torch's, and has its own words about tensors of other GPUs."""
        if array.is_cuda:
            place = array.get_device()
            now = current(place)
            if place != current_device() or stream not in (None, now):
                return None
            stream = now
        else:
            place = array.device
        try:
            dense = array.is_contiguous() or array.stride()
            return (array.data_ptr(),), (kind, array.dtype, array.shape, dense, place), stream or 0
        except RuntimeError:  # sparse ones, and those that stand for others, have no address
            return None

    return Finder(stream, find)


def _of_cupy(cupy: Any) -> Optional[Finder]:
    if getattr(cupy.cuda.runtime, "is_hip", False):
        return None
    kind, current = cupy.ndarray, cupy.cuda.get_current_stream

    def find(array: Any, stream: Optional[int]) -> Optional[Places]:
        now = int(current().ptr)
        if stream not in (None, now):  # DLPack makes it wait for CuPy's
            return None
        memory = array.data
        return (memory.ptr,), (kind, array.dtype, array.shape, array.strides, memory.device_id), now

    return Finder(lambda array: int(current().ptr), find)


_LIBRARIES: Dict[str, Tuple[str, Callable[[Any], Optional[Finder]]]] = {
    "numpy": ("ndarray", _of_numpy), "torch": ("Tensor", _of_torch), "cupy": ("ndarray", _of_cupy)}
_finders: Dict[type, Optional[Finder]] = {}  # of those types alone: subclasses may mean something else


def finder_of(array: Any) -> Optional[Finder]:
    """The finder of an array's type; None: it has none."""
    kind = type(array)
    if kind in _finders:
        return _finders[kind]
    for library, (name, finder) in _LIBRARIES.items():
        module = sys.modules.get(library)
        if module is not None and kind is getattr(module, name, None):
            return _finders.setdefault(kind, finder(module))
    return None


def places_of(frame: Any, stream: Optional[int]) -> Optional[Places]:
    """Where an array or a tuple or list of them lies, if all are known, for a stream, or for the current one of the
    first."""
    finder = _finders.get(type(frame)) or finder_of(frame)  # mostly without a call
    if finder is not None:
        return finder.find(frame, stream)
    if not isinstance(frame, (tuple, list)) or not frame:
        return None
    addresses: Tuple[int, ...] = ()
    layouts = []
    for plane in frame:
        part = None if isinstance(plane, (tuple, list)) else places_of(plane, stream)
        if part is None:
            return None
        address, layout, stream = part
        addresses += address
        layouts.append(layout)
    return addresses, tuple(layouts), stream or 0
