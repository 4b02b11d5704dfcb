"""Arrays of NumPy, torch and CuPy by their own attributes: addresses, and layouts as keys.

DLPack and the array interfaces (_arrays) say the same of any array, and take many times as long. What these finders
are not certain of they leave to them, errors included.
"""

from __future__ import annotations

import sys
from ctypes import addressof, c_char
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

Layout = Tuple[Any, ...]  # of arrays of one layout all that a filter checks is the same; it keeps no array
Found = Tuple[int, Layout, int]  # an address, its layout, and the stream that it is for


class Places:
    """Where a frame lies: the address of each plane, their layouts, and the stream that is for."""

    __slots__ = "addresses", "layout", "stream"

    def __init__(self, addresses: Tuple[int, ...], layout: Layout, stream: int) -> None:
        self.addresses, self.layout, self.stream = addresses, layout, stream


class Finder(NamedTuple):
    """How arrays of one type say where they lie."""

    stream: Callable[[Any], int]  # the current CUDA stream; 0 in host memory
    # For a stream, or for the current one where that is None. It gives back None where the general way has to be asked.
    find: Callable[[Any, Optional[int]], Optional[Found]]


def _of_numpy(numpy: Any) -> Finder:
    kind = numpy.ndarray

    def find(array: Any, stream: Optional[int]) -> Optional[Found]:
        flags = array.flags
        writable = flags.writeable
        if not (writable and flags.c_contiguous):
            address = array.__array_interface__["data"][0]
        else:
            try:
                address = addressof(c_char.from_buffer(array))  # the fastest way to it
            except (BufferError, TypeError, ValueError):  # no samples, or such as buffers do not have
                return None
        return address, (kind, array.dtype, array.shape, array.strides, writable), stream or 0

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

    def find(array: Any, stream: Optional[int]) -> Optional[Found]:
        """DLPack makes other streams wait for torch's, and has its own words about tensors of other GPUs."""
        if array.is_cuda:
            device = array.get_device()
            now = current(device)
            if device != current_device() or stream not in (None, now):
                return None
            stream = now
        try:
            return array.data_ptr(), (kind, array.dtype, array.shape, array.stride(), array.device), stream or 0
        except RuntimeError:  # sparse ones, and those that stand for others, have no address
            return None

    return Finder(stream, find)


def _of_cupy(cupy: Any) -> Optional[Finder]:
    if getattr(cupy.cuda.runtime, "is_hip", False):
        return None
    kind, current = cupy.ndarray, cupy.cuda.get_current_stream

    def find(array: Any, stream: Optional[int]) -> Optional[Found]:
        now = int(current().ptr)
        if stream not in (None, now):  # DLPack makes it wait for CuPy's
            return None
        memory = array.data
        return memory.ptr, (kind, array.dtype, array.shape, array.strides, memory.device_id), now

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
    finder = finder_of(frame)
    if finder is not None:
        found = finder.find(frame, stream)
        if found is None:
            return None
        address, layout, stream = found
        return Places((address,), layout, stream)
    if not isinstance(frame, (tuple, list)) or not frame:
        return None
    parts = []
    for plane in frame:
        part = None if isinstance(plane, (tuple, list)) else places_of(plane, stream)
        if part is None:
            return None
        parts.append(part)
        stream = part.stream
    return Places(tuple(part.addresses[0] for part in parts), tuple(part.layout for part in parts), parts[0].stream)
