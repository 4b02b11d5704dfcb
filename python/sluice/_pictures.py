"""Frames as callers have them, arrays or planes, as what the library takes."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple, Union

from . import _formats
from ._arrays import maker, name_of, stream_of, stream_of_results, view_of, without_gaps
from ._formats import Plane
from ._known import finder_of
from ._library import Format
from ._video_frames import Tags, VideoFrame, is_video_frame, lies_on_gpu
from .errors import UsageError


class Arrays:
    """A picture in an array, or in a tuple or list of arrays, a plane each."""

    def __init__(self, frame: Any, stream: Optional[int], pixfmt: Optional[str], tags: Optional[Tags] = None) -> None:
        self.interlaced = tags is not None and tags.interlaced
        self.range, self.matrix = (tags.range, tags.matrix) if tags else (0, 0)
        self.arrays = list(frame) if isinstance(frame, (tuple, list)) else [frame]
        if not self.arrays:
            raise UsageError("a frame without planes has no picture")
        if len(self.arrays) > 1 and not pixfmt:
            raise UsageError(f"{len(self.arrays)} planes need pixfmt=, for example Filter(..., pixfmt='yuv420p')")
        self.views = [view_of(array, stream) for array in self.arrays]
        self.pixfmt = pixfmt or _formats.guess(self.views[0], self.arrays[0])
        self.keep: Any = self.views
        self.device, self.lender = self.views[0].device, self.views[0].lender
        if any(view.device != self.device for view in self.views):
            raise UsageError("the planes of a frame lie in different memories: move them to one")
        if len(self.views[0].shape) < 2:
            raise UsageError(f"{name_of(frame)} has the shape {self.views[0].shape}: wanted is height x width")
        self.size = self.views[0].shape[1], self.views[0].shape[0]

    def places(self, planes: List[Plane], writing: bool, copying: bool = False) -> List[Tuple[int, int]]:
        """Address and stride of each plane. What is only read is copied where its rows have gaps, if it may be: by
        the array's own library, on a GPU on its current stream."""
        if len(planes) != len(self.views):
            raise UsageError(f"the frame has {len(self.views)} planes, {self.pixfmt} has {len(planes)}")
        return [self._place(k, plane, writing, copying) for k, plane in enumerate(planes)]

    def _place(self, k: int, plane: Plane, writing: bool, copying: bool) -> Tuple[int, int]:
        view, what = self.views[k], f"plane {k} of the {'target' if writing else 'frame'}"
        if not _formats.fits(view, plane):
            wanted = _formats.wanted("" if writing else self.pixfmt, plane)
            raise UsageError(f"{what} is {_formats.described(view.shape, view.bytes)}, {wanted}")
        if writing and not view.writable:
            raise UsageError(f"{what} may not be written to")
        stride = _formats.row_stride(view)
        if stride is None and not copying:
            raise UsageError(f"rows of {what} have gaps between samples, or share memory: give an array whose rows "
                             "have none")
        if stride is None:
            view = self.views[k] = view_of(without_gaps(self.arrays[k]), None)
            stride = view.strides[0]
        return view.data, stride

    def new(self, output: Format, planes: List[Plane]) -> Any:
        """Arrays of the same kind for the result."""
        return made_by(self.makers(planes))

    def makers(self, planes: List[Plane]) -> List[Callable[[], Any]]:
        """What makes such arrays, again and again."""
        return [maker(self.arrays[0], self.device, plane.shape, plane.size) for plane in planes]

    def check_target(self, output: Format) -> None:
        """places() does all of it."""


Picture = Union[Arrays, VideoFrame]


def made_by(makers: List[Callable[[], Any]]) -> Any:
    """A new array, or a tuple of a plane each."""
    return makers[0]() if len(makers) == 1 else tuple([make() for make in makers])


def picture_of(frame: Any, stream: Optional[int], pixfmt: Optional[str]) -> Picture:
    if not is_video_frame(frame):
        return Arrays(frame, stream, pixfmt)
    if lies_on_gpu(frame):
        tags = Tags(frame, frame.sw_format.name)
        return Arrays(tuple(frame.planes), stream, tags.pixfmt, tags)
    return VideoFrame(frame)


def caller_stream(frame: Any, stream: Any) -> int:
    """The stream as a number; of planes that of the first."""
    finder = finder_of(frame) if stream is None else None
    if finder is not None:
        return finder.stream(frame)  # without a detour, for small frames
    if stream is None and is_video_frame(frame) and lies_on_gpu(frame):
        return stream_of_results(int(frame.planes[0].__dlpack_device__()[1]))
    first = frame[0] if isinstance(frame, (tuple, list)) and frame else frame
    return stream_of(first, stream)
