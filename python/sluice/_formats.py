"""Pixel formats: which one an array is, and what arrays a picture of one consists of."""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import byref, c_int, c_size_t
from typing import Any, List, NamedTuple, Optional, Tuple

from ._arrays import View, name_of, packed
from ._library import OK, PLANES, Format, filter_library, text_of
from .errors import UsageError


class Plane(NamedTuple):
    """One plane of a pixel format at a size."""

    row_bytes: int
    rows: int
    size: int  # bytes of a sample
    shape: Tuple[int, ...]  # of the array that holds it


_ARRAYS = {(1, 1): "gray", (1, 2): "gray16le", (3, 1): "rgb24", (3, 2): "rgb48le",
           (4, 1): "rgba", (4, 2): "rgba64le"}
_PAIRS = ("nv", "p0", "p2", "p4")  # chroma in one plane, Cb and Cr by turns
_PACKED = ("yuyv", "uyvy", "yvyu", "y21")  # 4:2:2 in one plane: two pixels are four samples


@functools.lru_cache(maxsize=None)
def names() -> Tuple[str, ...]:
    """Of the pixel formats that filters read and write."""
    found: List[str] = []
    while name := filter_library().sluice_format_name(len(found)):
        found.append(text_of(name))
    return tuple(found)


def canonical(pixfmt: Any) -> Any:
    """The library's own name of a pixel format, which ends in a byte order where samples have 16 bits: without one it
    is that of the machine. What the library does not know is left as it is: it says so itself."""
    native = f"{pixfmt}{sys.byteorder[0]}e"
    return native if native in names() else pixfmt


def guess(view: View, frame: Any) -> str:
    """The pixel format of an array that has no other: gray, RGB or RGBA, of 8 or 16 bits."""
    channels = 1 if len(view.shape) == 2 else view.shape[2] if len(view.shape) == 3 else 0
    if (channels, view.bytes) not in _ARRAYS:
        raise UsageError(f"{name_of(frame)} has the shape {view.shape}: wanted is height x width, with 3 or 4 "
                         "channels behind if any, or pixfmt= that says what it is")
    return _ARRAYS[channels, view.bytes]


def planes_of(library: ctypes.CDLL, format: Format) -> List[Plane]:
    """The planes of a picture, as the library says."""
    planes = []
    row_bytes, rows = c_size_t(), c_int()
    for index in range(PLANES):
        if library.sluice_format_plane(byref(format), index, byref(row_bytes), byref(rows)) != OK:
            break
        planes.append((row_bytes.value, rows.value))
    name = format.pixfmt.decode()
    size = 2 if name.endswith(("le", "be")) else 1
    return [Plane(row, count, size, _shape(name, format.width, row // size, count, len(planes), k))
            for k, (row, count) in enumerate(planes)]


def _shape(name: str, width: int, samples: int, rows: int, planes: int, index: int) -> Tuple[int, ...]:
    """Packed pixels and pairs of chroma have an axis of their own."""
    if planes == 1 and samples > width and samples % width == 0:
        return rows, width, samples // width
    if planes == 2 and index == 1 and name.startswith(_PAIRS):
        return rows, samples // 2, 2
    return rows, samples


def fits(view: View, plane: Plane) -> bool:
    """Whether the array has the rows and the bytes of the plane."""
    samples = 1
    for length in view.shape[1:]:
        samples *= length
    return (len(view.shape) >= 2 and view.shape[0] == plane.rows and view.bytes == plane.size
            and samples * view.bytes == plane.row_bytes)


def wanted(pixfmt: str, plane: Plane) -> str:
    """What a frame's plane should have been. Rows of packed 4:2:2 are as long for an odd width as for the even one
    behind it, so an array cannot tell an odd one."""
    if pixfmt.startswith(_PACKED):
        return (f"{pixfmt} is height x width x 2 uint{8 * plane.size}, of an even width: give frames of an odd one as "
                "an av.VideoFrame, or as the planes of a planar format of 4:2:2")
    return f"wanted is {described(plane.shape, plane.size)}"


def described(shape: Tuple[int, ...], size: int) -> str:
    return f"{' x '.join(map(str, shape))} uint{8 * size}"


def row_stride(view: View) -> Optional[int]:
    """Bytes from row to row; None if rows have gaps between samples or share memory."""
    rows, row = view.shape[0], packed((1, *view.shape[1:]), view.bytes)
    for length, stride, wanted in zip(view.shape[1:], view.strides[1:], row[1:]):
        if length != 1 and stride != wanted:
            return None
    if rows == 1:
        return row[0]
    return view.strides[0] if abs(view.strides[0]) >= row[0] else None
