"""Arrays of NumPy, torch and CuPy by their own attributes: addresses, and layouts as keys.

DLPack and the array interfaces (_arrays) say the same of any array, and take many times as long. What these finders
are not certain of they leave to them, errors included.
"""

from __future__ import annotations

import sys
from ctypes import addressof, c_char
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

Layout = Tuple[Any, ...]  # of arrays of one layout all that a filter checks is the same; it keeps no array


class Finder(NamedTuple):
    """How arrays of one type say where they lie."""

    stream: Callable[[Any], int]  # the current CUDA stream; 0 in host memory
    find: Callable[[Any, int], Optional[Tuple[int, Layout]]]  # None: ask the general way, for that stream


class Places(NamedTuple):
    """Where a frame lies: the address of each plane, and their layouts."""

    addresses: Tuple[int, ...]
    layout: Layout


def _of_numpy(numpy: Any) -> Finder:
    kind = numpy.ndarray

    def find(array: Any, stream: int) -> Optional[Tuple[int, Layout]]:
        flags = array.flags
        writable = flags.writeable
        if not (writable and flags.c_contiguous):
            address = array.__array_interface__["data"][0]
        else:
            try:
                address = addressof(c_char.from_buffer(array))  # the fastest way to it
            except (BufferError, TypeError, ValueError):  # no samples, or such as buffers do not have
                return None
        return address, (kind, array.dtype, array.shape, array.strides, writable)

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

    def find(array: Any, stream: int) -> Optional[Tuple[int, Layout]]:
        """DLPack makes other streams wait for torch's, and has its own words about tensors of other GPUs."""
        if array.is_cuda:
            device = array.get_device()
            if device != current_device() or stream != current(device):
                return None
        try:
            return array.data_ptr(), (kind, array.dtype, array.shape, array.stride(), array.device)
        except RuntimeError:  # sparse ones, and those that stand for others, have no address
            return None

    return Finder(stream, find)


def _of_cupy(cupy: Any) -> Optional[Finder]:
    if getattr(cupy.cuda.runtime, "is_hip", False):
        return None
    kind, current = cupy.ndarray, cupy.cuda.get_current_stream

    def find(array: Any, stream: int) -> Optional[Tuple[int, Layout]]:
        if stream != current().ptr:  # DLPack makes it wait for CuPy's
            return None
        memory = array.data
        return memory.ptr, (kind, array.dtype, array.shape, array.strides, memory.device_id)

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


def places_of(frame: Any, stream: int) -> Optional[Places]:
    """Where an array or a tuple or list of them lies, if all are known."""
    finder = finder_of(frame)
    if finder is not None:
        found = finder.find(frame, stream)
        return None if found is None else Places((found[0],), found[1])
    if not isinstance(frame, (tuple, list)) or not frame:
        return None
    parts = [None if isinstance(plane, (tuple, list)) else places_of(plane, stream) for plane in frame]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Places(tuple(part.addresses[0] for part in known), tuple(part.layout for part in known))
