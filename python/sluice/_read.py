"""Frames of a video, filtered, as NumPy arrays."""

from __future__ import annotations

import queue
import threading
from ctypes import c_char
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy

from ._formats import Plane, planes_of
from ._job_config import Name, Target
from ._job_library import TAKE, job_library
from ._library import END, MATRICES, OK, RANGES, SITINGS, Format, Frame
from .errors import UsageError
from .filter import Filter
from .job import Job
from .job_figures import Summary


class _Timed:
    pts_us: int = 0

    @property
    def pts(self) -> float:
        """When it is shown, in seconds."""
        return self.pts_us / 1e6


class VideoArray(_Timed, numpy.ndarray):  # type: ignore[type-arg]
    """A frame as an array, with its time: `pts` in seconds, `pts_us` in microseconds."""

    def __array_finalize__(self, of: Any) -> None:
        self.pts_us = getattr(of, "pts_us", 0)

    def __array_wrap__(self, array: Any, *context: Any) -> Any:
        """What is computed from a frame is no frame."""
        return array[()] if array.shape == () else array.view(numpy.ndarray)


class VideoPlanes(_Timed, Tuple[Any, ...]):
    """A frame of several planes, each an array, with its time."""


_Planes = List[Any]
_NUMBERS: Tuple[Dict[Any, int], ...] = (RANGES, MATRICES, SITINGS)
_RANGE, _MATRIX, _SITING = ({number: name for name, number in of.items()} for of in _NUMBERS)
_inside = threading.local()  # .taking: this thread is a job's, which waits for what it does here
_GLANCE = 0.1  # seconds between looks at whether the other side has closed
_LEFT = 2.0  # seconds that an input has to close after a reader that nobody has any more


def _copy(frame: Frame, planes: List[Plane]) -> _Planes:
    """The planes as arrays of their own."""
    return [_plane(frame.data[k], frame.stride[k], plane).copy() for k, plane in enumerate(planes)]


def _plane(data: int, stride: int, plane: Plane) -> Any:
    below = min(stride * (plane.rows - 1), 0)
    size = abs(stride) * (plane.rows - 1) + plane.row_bytes
    memory = (c_char * size).from_address(data + below)
    inner = [plane.size]
    for length in reversed(plane.shape[2:]):
        inner.insert(0, inner[0] * length)
    return numpy.ndarray(plane.shape, f"<u{plane.size}", memory, -below, (stride, *inner))  # type: ignore[arg-type]


class _Inbox:
    """Frames on their way from the job's threads to the reader. The job keeps it, and it keeps no reader, so
    that one which nobody has any more goes away at once."""

    def __init__(self, size: int) -> None:
        self.queue: "queue.Queue[Any]" = queue.Queue(max(size, 1))
        self.closed = False
        self.problem: Optional[BaseException] = None
        self.callback = TAKE(self._take)

    def _take(self, opaque: int, output: int, format: Any, frame: Any) -> int:
        _inside.taking = True
        try:
            of = format[0]
            about = (of.pixfmt.decode(), of.range, of.matrix, of.siting)
            planes = _copy(frame[0], planes_of(job_library(), of))
            return OK if self._put((about, frame[0].pts, planes)) else END
        except Exception as problem:
            self.problem = problem
            return END

    def _put(self, item: Any) -> bool:
        """Hand over to the reader. False: nobody reads any more."""
        while not self.closed:
            try:
                self.queue.put(item, timeout=_GLANCE)
                return True
            except queue.Full:
                continue
        return False

    def end(self) -> None:
        _inside.taking = True
        self._put(None)

    def next(self) -> Any:
        """Wait for what comes next. None: that was all, or it is closed, by whatever thread. A finalizer may close it
        under the lock of the queue itself, so it cannot wake who waits there: who waits looks up now and then."""
        while not self.closed:
            try:
                return self.queue.get(timeout=_GLANCE)
            except queue.Empty:
                continue
        return None

    def close(self) -> None:
        self.closed = True


class Reader:
    """Frames one after another; made by read(). close(), the end of a `with` and of a loop end it."""

    def __init__(self, input: Name, chain: Optional[str], pixfmt: Optional[str],
                 range: Optional[str], frames_ahead: int, options: Dict[str, Any]) -> None:
        self._inbox = _Inbox(frames_ahead)
        self._pixfmt = pixfmt
        self._filters: Dict[Tuple[Any, ...], Filter] = {}
        target = Target(None, pixfmt=pixfmt, range=range)
        self.job = Job(input, target, chain=chain, _take=self._inbox.callback, _at_end=self._inbox.end,
                       _at_close=self._inbox.close, **options)

    def __iter__(self) -> Reader:
        return self

    def __next__(self) -> Union[VideoArray, VideoPlanes]:
        item = self._next()
        if item is None:
            raise StopIteration
        about, pts, planes = item
        return self._made(about, pts, planes)

    def _next(self) -> Any:
        """None: the end, of the input or by close()."""
        try:
            if not self._inbox.closed:
                self.job.start()
        except UsageError:
            if not self._inbox.closed:  # by another thread, just now
                raise
        item = self._inbox.next()
        if item is None and not self._inbox.closed:
            self._finish()
        return item

    def _finish(self) -> None:
        self.job._join()
        try:
            if self._inbox.problem is not None:
                raise self._inbox.problem
            self.job._end()
        finally:
            self.close()

    def _made(self, about: Tuple[Any, ...], pts: int, planes: _Planes) -> Union[VideoArray, VideoPlanes]:
        """The frame as its reader wants it. Planes of Y'CbCr become RGB where no format was asked for."""
        result: Union[VideoArray, VideoPlanes]
        if self._pixfmt is None and len(planes) > 1:
            planes = [self._to_rgb(about, planes[0].itemsize)(tuple(planes))]
        result = planes[0].view(VideoArray) if len(planes) == 1 else VideoPlanes(planes)
        result.pts_us = pts
        return result

    def _to_rgb(self, about: Tuple[Any, ...], size: int) -> Filter:
        if about not in self._filters:
            pixfmt, range, matrix, siting = about
            self._filters[about] = Filter(
                "null", pixfmt=pixfmt, range=_RANGE[range], siting=_SITING[siting], backend="cpu",
                matrix=_MATRIX[matrix], output_pixfmt="rgb24" if size == 1 else "rgb48le")
        return self._filters[about]

    @property
    def summary(self) -> Summary:
        """How it went, after the end."""
        return self.job.summary

    def close(self) -> None:
        """Stop reading."""
        self.job.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()

    def __del__(self) -> None:
        """The collector of garbage may come here from the job's own callback, and under any lock: what is left of
        the job ends by itself, and its thread frees it."""
        job = getattr(self, "job", None)
        if job is not None:
            self._inbox.close()
            job.stop()
            if not getattr(_inside, "taking", False):
                job._closed_if_over(_LEFT)


def read(input: Name, *, chain: Optional[str] = "null", pixfmt: Optional[str] = None,
         range: Optional[str] = None, frames_ahead: int = 4, **options: Any) -> Reader:
    """Read a video, a camera or a live source, filtered, frame by frame.

    >>> for frame in sluice.read("in.mp4", chain="gray,sobel"):
    ...     print(frame.pts, frame.shape)

    Frames are NumPy arrays with `pts` (seconds) and `pts_us` (microseconds): height x width where the
    chain leaves gray, else RGB, height x width x 3; of 16 bits where the video has more than 8. With
    `pixfmt` (FFmpeg's names) they are what it says, several planes as a tuple with `pts` and `pts_us`.
    Each is the reader's own. When the loop is left the job is stopped and its input is closed.

    `frames_ahead` are read and filtered before they are asked for. A live source drops frames that are
    too old. Options are those of sluice.Job; chain=None is the default chain of edges.
    """
    return Reader(input, chain, pixfmt, range, frames_ahead, options)
