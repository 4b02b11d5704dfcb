"""av.VideoFrame of PyAV (pyav.org): what it says of itself, and as a picture in host memory, by its planes' addresses."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

from ._formats import Plane
from ._library import Format
from .errors import UsageError

# FFmpeg's numbers (libavutil/pixfmt.h) as ours.
_RANGES = {1: 1, 2: 2}
_MATRICES = {1: 1, 4: 3, 5: 2, 6: 2, 7: 4, 9: 5, 10: 5}
_FULL, _LIMITED = 2, 1


def is_video_frame(frame: Any) -> bool:
    av = sys.modules.get("av")
    return av is not None and isinstance(frame, av.VideoFrame)


def lies_on_gpu(frame: Any) -> bool:
    """Whether a hardware decoder made it, so that its planes are read by DLPack."""
    return getattr(frame, "sw_format", None) is not None


class Tags:
    """What a frame of PyAV says of its samples, wherever they are; `name` is their format. Those of PyAV 10, which
    Debian 12 has, do not tell their range and matrix."""

    def __init__(self, frame: Any, name: str) -> None:
        full = name.startswith("yuvj")
        self.pixfmt = name.replace("yuvj", "yuv")
        self.interlaced = bool(frame.interlaced_frame)
        self.range = _FULL if full else _RANGES.get(int(getattr(frame, "color_range", 0)), 0)
        self.matrix = _MATRICES.get(int(getattr(frame, "colorspace", 0)), 0)


class VideoFrame:
    """A frame of PyAV in host memory: its format speaks for itself."""

    device: Optional[int] = None
    lender = None

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.keep = frame
        tags = Tags(frame, frame.format.name)
        self.pixfmt, self.interlaced, self.range, self.matrix = tags.pixfmt, tags.interlaced, tags.range, tags.matrix
        self.size = frame.width, frame.height

    def places(self, planes: List[Plane], writing: bool, copying: bool = False) -> List[Tuple[int, int]]:
        """Address and stride of each plane."""
        if len(planes) != len(self.frame.planes):
            raise UsageError(f"the av.VideoFrame has {len(self.frame.planes)} planes, wanted are {len(planes)}")
        return [(plane.buffer_ptr, plane.line_size) for plane in self.frame.planes]

    def new(self, output: Format, planes: List[Plane]) -> Any:
        """A frame for the result, with the time and the tags of this one."""
        av = sys.modules["av"]
        result = av.VideoFrame(output.width, output.height, output.pixfmt.decode())
        result.pts = self.frame.pts
        if self.frame.time_base is not None:
            result.time_base = self.frame.time_base
        if hasattr(result, "color_range"):
            result.color_range, result.colorspace = output.range, self.frame.colorspace
        return result

    def check_target(self, output: Format) -> None:
        """UsageError: this frame is of another size or format than the result."""
        wanted = output.width, output.height, output.pixfmt.decode()
        if (*self.size, self.pixfmt) != wanted:
            raise UsageError(f"out= is a frame of {self.size[0]}x{self.size[1]} {self.pixfmt}, wanted is "
                             f"{wanted[0]}x{wanted[1]} {wanted[2]}")
