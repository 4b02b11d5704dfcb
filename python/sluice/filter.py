"""A chain of stages as a filter of arrays."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import analysis as _analysis
from ._arrays import as_array, maker
from ._cuda import Lender
from ._engine import Engine, Key, Pictures, Settings
from ._formats import canonical
from ._known import Places, finder_of, places_of
from ._library import (BACKENDS, DEVICE, HOST, MATRICES, RANGES, SITINGS, Frame, choice,
                       filter_library, whole_of)
from ._objects import Objects
from ._pictures import Arrays, Picture, caller_stream, picture_of
from ._under_way import UnderWay
from ._ways import NO_KIND, Batch, Kind, Way, Ways, lies_at, step_of, words_of
from .errors import DeviceError, Error, Full, UsageError


class Received(NamedTuple):
    """A frame that Filter.receive() gives back."""

    frame: Any  # the result
    pts: int  # as it was submitted
    opaque: Any  # as it was submitted


class _Work(NamedTuple):
    """A frame on its way. Its engine owns `keep` until it is received."""

    engine: Engine
    result: Any
    keep: Any  # whose memory the frame and the result are
    source: Frame
    target: Frame
    stream: int
    opaque: Any
    lender: Optional[Lender] = None  # of the frame

    def ended(self) -> None:
        """The frame was received: what is put on the stream from now on comes behind it."""
        if self.lender is not None:
            self.lender.take_back(self.stream)


class _Repeats:
    """The faster ways of arrays like those that came last, with no stream given. A change of the chain replaces it, so
    that a call which the change interrupts notes its way in what nobody reads any more."""

    def __init__(self) -> None:
        self.call: Optional[Objects] = None
        self.batch: Optional[Objects] = None


class Filter:
    """A chain of stages, applied to frames in the memory of the host or of a GPU.

    >>> edges = sluice.Filter("gray,gaussian=2,sobel")
    >>> result = edges(frame)

    Frames are arrays of height x width (gray), height x width x 3 (RGB) or x 4 (RGBA), uint8 or
    uint16; with `pixfmt` (FFmpeg's names: "bgr24", "gray10le", "yuv420p", "nv12") whatever it says,
    several planes as a tuple. NumPy arrays, torch tensors, CuPy arrays and av.VideoFrame are taken,
    and anything with `__dlpack__`, `__array_interface__` or `__cuda_array_interface__`. Results are
    of the kind that came in; of other kinds they are NumPy arrays in host memory, and in a GPU's
    memory `out=` has to be given. Samples are not copied, except where rows of a frame have gaps
    between samples.

    Frames in a GPU's memory are filtered there, on `stream=`: a number (cudaStream_t), or a stream
    of torch, CuPy or CUDA Python; None is torch's or CuPy's current stream, else the one that the
    frame's `__cuda_array_interface__` names, else the default one. What makes the frame on another
    stream comes first, as DLPack and that interface tell. The calls do not wait for the GPU; what is
    put on the stream afterwards finds the result. New tensors and arrays are those of the current
    stream: with another one `out=` is safer.

    A filter takes frames of several sizes and formats: it keeps what it needs for the last `sizes`
    of them. Calls release the GIL. One thread submits, calls and sets, another may receive; calls
    from more threads wait for each other. Filters of their own run at the same time.

    chain:            docs/stages.md; None is "gray,gaussian=1.4,sobel,threshold=20:240".
    pixfmt:           what the frames are. None: as their shape says, or as av.VideoFrame says.
    range:            of code values that come in: "limited", "full"; None: as usual.
    matrix:           "bt709", "bt601", "bt2020", "fcc", "smpte240m"; None: by size, as players do.
    siting:           of chroma: "left", "center", "top_left".
    interlaced:       rows are those of two fields.
    output_pixfmt:    of results; None: what the chain leaves, see `output_pixfmt` of the object.
    output_range:     "limited", "full"; None: as the chain leaves it.
    backend:          "auto", "cuda", "cpu", "scalar"; the results are the same bits.
    device:           which GPU filters frames in host memory; others are filtered where they lie.
    threads:          of the CPU; 0: one per usable core.
    frames_in_flight: that may be under way; 0: as many as keep the backend busy, each by a thread of
                      the CPU, and where frames come one at a time, by calls, one by all threads.
    wavelet_planes:   `wavelet` delivers every value of every scale, too.
    picture:          templates of `match` by name: a dict, or a function of the name; height x width
                      arrays of uint8 luma, or pairs of them and a mask of 0 and 1.
    sizes:            how many sizes and formats are kept ready.

    Raises UsageError if the chain is none, DeviceError if the GPU that was required is not there.
    """

    def __init__(self, chain: Optional[str] = None, *, pixfmt: Optional[str] = None,
                 range: Optional[str] = None, matrix: Optional[str] = None, siting: str = "left",
                 interlaced: bool = False, output_pixfmt: Optional[str] = None,
                 output_range: Optional[str] = None, backend: str = "auto", device: int = 0,
                 threads: int = 0, frames_in_flight: int = 0, wavelet_planes: bool = False,
                 picture: Any = None, sizes: int = 4) -> None:
        filter_library()
        self._pixfmt = canonical(pixfmt)
        self._tags = (choice(RANGES, range, "range"), choice(MATRICES, matrix, "matrix"),
                      choice(SITINGS, siting, "siting"))
        self._interlaced = interlaced
        self._sizes = max(sizes, 1)
        self._settings = Settings(output_pixfmt, choice(RANGES, output_range, "output_range"),
                                  choice(BACKENDS, backend, "backend"), whole_of(device, "device"),
                                  whole_of(threads, "threads"),
                                  whole_of(frames_in_flight, "frames_in_flight"), wavelet_planes, Pictures(picture or {}))
        self._submitting, self._receiving = threading.RLock(), threading.RLock()
        self._engines: OrderedDict[Key, Engine] = OrderedDict()
        self._ways: Ways[Way] = Ways()
        self._batches: Ways[Batch] = Ways()
        self._repeats = _Repeats()
        self._under_way: UnderWay[_Work] = UnderWay()
        self._newest: Optional[Engine] = self._trial(chain)
        self._received: Optional[Engine] = None
        self._chain = chain if chain is not None else self._newest.text("chain")

    def _trial(self, chain: Optional[str]) -> Engine:
        """An engine before there is a frame. So mistakes show at once."""
        problems: List[UsageError] = []
        for pixfmt in [self._pixfmt] if self._pixfmt else ["rgb24", "gray"]:
            try:
                return self._trial_of(pixfmt, chain)
            except UsageError as problem:
                problems.append(problem)
        raise problems[0]

    def _trial_of(self, pixfmt: str, chain: Optional[str]) -> Engine:
        """Of 1080p, or of the largest template: how large they are is known when the chain has been read."""
        settings = self._settings._replace(wavelet_planes=False)
        while True:
            largest = width, height = settings.pictures.largest
            key = Key(pixfmt, max(width, 1920), max(height, 1080), *self._tags, None, True)
            try:
                return Engine(key, chain, settings)
            except UsageError:
                if settings.pictures.largest == largest:
                    raise

    def _last(self) -> Engine:
        """The engine of the frame that came last; where none has come, or it is closed, one of 1080p."""
        if self._newest is None:
            self._newest = self._trial(self._chain)
        return self._newest

    # ---- frames ----

    def __call__(self, frame: Any, out: Any = None, *, stream: Any = None) -> Any:
        """Filter one frame, into `out` if given, which may be the frame itself. Returns the result."""
        with self._submitting, self._receiving:
            self._none_under_way("call")
            repeats = self._repeats
            result = None if stream is not None else self._as_last(repeats.call, frame, out)
            if result is not None:
                return result
            kind, source, target = _kind_of(frame, out, stream, alone=True)
            way = self._ways.find(kind)
            if way is not None and source is not None:
                self._use(way.engine)
                result = way.new() if out is None else out
                held = _held(frame), _held(result)  # until the call is over
                if stream is None:
                    repeats.call = way.objects(frame, result)
                way.run(source, target or _new_at(result, source))
                self._received = way.engine
                del held
                return result
            work = self._prepare(frame, out, stream, 0, None, alone=True)
            self._run([work])
            return work.result

    def submit(self, frame: Any, out: Any = None, *, pts: int = 0, opaque: Any = None,
               stream: Any = None) -> None:
        """Begin a frame and return; receive() gives it back, with `pts` and `opaque`.

        The frame and `out` stay as they are until then. Full: receive() one first.
        """
        with self._submitting:
            self._begin(self._prepare(frame, out, stream, whole_of(pts, "pts", 64), opaque))

    def receive(self) -> Received:
        """The oldest frame under way. Waits for a result in host memory. IndexError: none is under way."""
        with self._receiving:
            if not self.under_way:
                raise IndexError("no frame is under way: submit() one first")
            work = self._under_way.oldest
            engine = work.engine
            self._under_way.end(engine.end())
            try:
                frame = engine.receive()
            finally:
                self._under_way.count()
            work.ended()
            self._received = engine
            return Received(work.result, frame.pts, work.opaque)

    def map(self, frames: Iterable[Any], *, stream: Any = None) -> Iterator[Any]:
        """Filter frames one after another, with as many under way as keep the backend busy.

        Results come in order. Frames are not changed until their result has come.
        """
        with self._submitting, self._receiving:
            self._none_under_way("map")
        try:
            yield from self._results(frames, stream)
        finally:
            self._drain()

    # Loops are in functions of their own: an exception of a signal's handler at the end of a `while` goes past the
    # `with` and the `try` around it in CPython 3.13, not past those around a call.

    def _results(self, frames: Iterable[Any], stream: Any) -> Iterator[Any]:
        for frame in frames:
            while not self._has_begun(frame, stream):
                yield self.receive().frame
        while self.under_way:
            yield self.receive().frame

    def batch(self, frames: Any, out: Any = None, *, stream: Any = None) -> Any:
        """Filter a list of frames, or an array with an axis of frames in front, with less overhead for each.

        Small ones of a GPU go up to eight a launch. Results come as a list, or as an array with
        that axis where an array came in and the result has one plane.
        """
        with self._submitting, self._receiving:
            self._none_under_way("batch")
            results = None if stream is not None else self._as_last(self._repeats.batch, frames, out)
            if results is not None:
                return results
            known = self._batch_as_before(frames, out, stream)
            if known is not None:
                return known
            results, targets = self._targets(frames, out)
            works = [self._prepare(frame, target, stream, 0, None)
                     for frame, target in zip(frames, targets)]
            if results is not None and works and not isinstance(frames, (list, tuple)) and \
                    not isinstance(results, (list, tuple)):
                self._note_batch(frames, out, results, works)
            for some in _runs(works):
                self._run(some)
            return [work.result for work in works] if results is None else results

    def buffers(self, frame: Any) -> Tuple[Any, Any]:
        """New NumPy arrays for a frame like this one and for its result, in host memory that goes to and from a
        GPU without a copy by this thread, and begins at multiples of 64 bytes. Several planes are tuples."""
        with self._submitting:
            engine = self._engine(self._picture(frame, None))
            both = [[as_array(engine.alloc(plane.row_bytes * plane.rows), plane.shape, plane.size)
                     for plane in planes] for planes in (engine.planes, engine.output_planes)]
            source, target = (some[0] if len(some) == 1 else tuple(some) for some in both)
            return source, target

    def _none_under_way(self, call: str) -> None:
        under_way = self._under_way.count()
        if under_way:
            raise UsageError(f"{under_way} submitted frames are under way: receive() them before "
                             f"{call}()")

    def _has_begun(self, frame: Any, stream: Any) -> bool:
        try:
            self.submit(frame, stream=stream)
            return True
        except Full:
            return False

    def _begin(self, work: _Work) -> None:
        self._under_way.count()
        engine = work.engine
        self._under_way.begin(engine.begin(work.keep), [work])
        engine.submit(work.source, work.target, work.stream)

    def _run(self, works: List[_Work]) -> None:
        """Frames of one engine and stream, no more than a call takes."""
        first = works[0]
        sources, targets = (words_of(frames) for frames in zip(*((work.source, work.target) for work in works)))
        try:
            first.engine.run(sources, targets, len(works), first.stream)
        except BaseException:  # of those behind a failure nothing was begun, which does no harm
            with suppress(DeviceError):  # where the GPU failed, its reason counts
                for work in works:
                    work.ended()
            raise
        for work in works:
            work.ended()
        self._received = first.engine

    def _drain(self) -> None:
        """Receive what is under way, of which nobody wants to hear any more."""
        with self._receiving:
            self._receive_all()

    def _receive_all(self) -> None:
        while self.under_way:
            with suppress(Error):  # it is under way no more
                self.receive()

    def _targets(self, frames: Any, out: Any) -> Tuple[Any, Iterable[Any]]:
        """For a batch: an array for all results, or None, and where each goes."""
        if out is not None:
            if len(out) != len(frames):
                raise UsageError(f"out= holds {len(out)} frames, {len(frames)} came in")
            return out, out
        if isinstance(frames, (list, tuple)) or not len(frames):
            return None, [None] * len(frames)
        picture = self._picture(frames[0], None)
        planes = self._engine(picture).output_planes
        if len(planes) != 1:
            return None, [None] * len(frames)
        results = maker(frames, picture.device, (len(frames), *planes[0].shape), planes[0].size)()
        return results, results

    def _batch_as_before(self, frames: Any, out: Any, stream: Any) -> Any:
        """The results, if there was one of this kind; else None."""
        in_list = isinstance(frames, (list, tuple))
        if out is not None and not isinstance(out, (list, tuple)) and finder_of(out) is None:
            return None
        if in_list:
            same = frames and (out is None or len(out) == len(frames))
            return self._list_as_before(frames, out, stream) if same else None
        return None if isinstance(out, (list, tuple)) else self._array_as_before(frames, out, stream)

    def _array_as_before(self, frames: Any, out: Any, stream: Any) -> Any:
        repeats = self._repeats
        kind, source, target = _kind_of(frames, out, stream)
        batch = self._batches.find(kind)
        if batch is None or source is None:
            return None
        self._use(batch.engine)
        results = out if batch.make is None else batch.make()
        if stream is None:
            repeats.batch = batch.objects(frames, results)
        batch.run(source, target or _new_at(results, source))
        self._received = batch.engine
        return results

    def _list_as_before(self, frames: Any, out: Any, stream: Any) -> Any:
        """Of frames that are all of one kind."""
        first, begin, _ = _kind_of(frames[0], None if out is None else out[0], stream)
        way = self._ways.find(first)
        if way is None or begin is None:
            return None
        stream_of_all = begin[2]
        sources, targets, results, held = [], [], [], []
        for frame, given in zip(frames, [None] * len(frames) if out is None else out):
            kind, source, target = _kind_of(frame, given, stream)
            if kind != first or source is None or source[2] != stream_of_all:
                return None
            result = way.new() if out is None else given
            target = target or _new_at(result, source)
            sources.append(source[0])
            targets.append(target[0])
            results.append(result)
            held.append((_held(frame), _held(result)))  # until all is over
        self._use(way.engine)
        way.run_many(sources, targets, stream_of_all)
        self._received = way.engine
        del held
        return results if out is None else out

    def _note_batch(self, frames: Any, out: Any, results: Any, works: List[_Work]) -> None:
        """The next batch in arrays of these layouts goes as this one, if all of its frames lie where they seem to."""
        first = works[0]
        kind, source, _ = _kind_of(frames, out, first.stream)
        target = None if source is None else places_of(results, first.stream)
        alike = all(work.engine is first.engine and work.stream == first.stream and work.lender is None
                    for work in works)
        if source is None or target is None or not alike:
            return
        down = step_of([work.source.data[0] for work in works], source[0][0])
        to = step_of([work.target.data[0] for work in works], target[0][0])
        if down is None or to is None:
            return
        plane = first.engine.output_planes[0]
        make = maker(frames, first.engine.key.device, (len(works), *plane.shape), plane.size) if out is None else None
        self._batches.add(kind, Batch(Way(first.engine, first.source, first.target, []), len(works), down, to, make))

    # ---- from a frame to what the library takes ----

    def _as_last(self, last: Optional[Objects], frame: Any, out: Any) -> Any:
        """The result, if the frame and `out` have the layouts of the last ones; else None."""
        if last is None:
            return None
        self._use(last.engine)
        result = last.filtered(frame, out)
        if result is not None:
            self._received = last.engine
        return result

    def _forget_ways(self) -> None:
        self._repeats = _Repeats()
        self._ways.forget()
        self._batches.forget()

    def _use(self, engine: Engine) -> None:
        """It is the one that was used last, unless a signal's handler has just closed it."""
        if engine is not self._newest and self._engines.get(engine.key) is engine:
            self._engines.move_to_end(engine.key)
            self._newest = engine

    def _picture(self, frame: Any, stream: Optional[int]) -> Picture:
        return picture_of(frame, stream, self._pixfmt)

    def _prepare(self, frame: Any, out: Any, stream: Any, pts: int, opaque: Any,
                 alone: bool = False) -> _Work:
        """A frame ready to begin: as one of its kind was before, or by finding out all about it."""
        kind, source, target = _kind_of(frame, out, stream, alone)
        if source is None:
            return self._explore(frame, out, stream, caller_stream(frame, stream), pts, opaque, alone)[0]
        way = self._ways.find(kind)
        if way is not None:
            return self._repeat(way, frame, out, source, target, pts, opaque)
        work, picture = self._explore(frame, out, stream, source[2], pts, opaque, alone)
        if target is None:
            target = places_of(work.result, source[2])
        if target is not None and lies_at(work.source, source) and lies_at(work.target, target):
            makers = picture.makers(work.engine.output_planes) if out is None else []
            self._ways.add(kind, Way(work.engine, work.source, work.target, makers))
        return work

    def _repeat(self, way: Way, frame: Any, out: Any, source: Places, target: Optional[Places], pts: int,
                opaque: Any) -> _Work:
        self._use(way.engine)
        result = way.new() if out is None else out
        keep = _held(frame), _held(result)
        frames = way.frames(source, target or _new_at(result, source), pts)
        return _Work(way.engine, result, keep, *frames, source[2], opaque)

    def _explore(self, frame: Any, out: Any, stream: Any, number: int, pts: int, opaque: Any,
                 alone: bool) -> Tuple[_Work, Any]:
        """The work, with the picture that its frame is."""
        source = self._picture(frame, number)
        engine = self._engine(source, alone)
        on_current_stream = stream is None or source.device is None
        places = source.places(engine.planes, writing=False, copying=on_current_stream)
        result = source.new(engine.output, engine.output_planes) if out is None else out
        target = picture_of(result, number, engine.output.pixfmt.decode())
        target.check_target(engine.output)
        if target.device != source.device:
            raise UsageError("out= lies in another memory than the frame: give one in the same")
        into = target.places(engine.output_planes, writing=True)
        work = _Work(engine, result, (source.keep, target.keep), self._frame(source, places, pts),
                     self._frame(target, into, pts), number, opaque, source.lender)
        return work, source

    def _frame(self, picture: Picture, places: List[Tuple[int, int]], pts: int) -> Frame:
        frame = Frame(memory=HOST if picture.device is None else DEVICE, pts=pts,
                      interlaced=self._interlaced or picture.interlaced)
        for plane, (data, stride) in enumerate(places):
            frame.data[plane], frame.stride[plane] = data, stride
        return frame

    def _engine(self, picture: Picture, alone: bool = False) -> Engine:
        """The engine of frames like this one, with the chain of now. In host memory frames that come one at a time
        have another than those of which many are under way, each by a thread."""
        ranges, matrix, siting = self._tags
        width, height = picture.size
        key = Key(picture.pixfmt, width, height, ranges or picture.range, matrix or picture.matrix,
                  siting, picture.device,
                  alone and picture.device is None and not self._settings.frames_in_flight)
        if key.device is not None and self._settings.backend > BACKENDS["cuda"]:
            raise UsageError("the frame lies in a GPU's memory, and the filter is one of the CPU")
        engine = self._engines.get(key)
        if engine is None or not self._is_current(engine):
            self._forget_ways()
            engine = self._engines[key] = Engine(key, self._chain, self._settings)
        self._engines.move_to_end(key)
        while len(self._engines) > 2 * self._sizes:
            self._engines.popitem(last=False)
        self._newest = engine
        return engine

    def _is_current(self, engine: Engine) -> bool:
        """Whether it has the chain of now, or can take it: not one from which another format comes out."""
        if engine.chain == self._chain:
            return True
        try:
            engine.set_chain(self._chain)
            return True
        except UsageError:
            return False

    # ---- chain ----

    @property
    def chain(self) -> str:
        """The chain of the next frame. Setting it changes it from that frame on; UsageError leaves it."""
        with self._submitting:
            return self._chain if self._newest is None else self._newest.text("chain")

    @chain.setter
    def chain(self, chain: str) -> None:
        with self._submitting:
            self._forget_ways()
            last = self._last()
            if last.chain != chain:
                try:
                    last.set_chain(chain)
                except UsageError:
                    self._newest = self._instead_of(last, chain)  # another format comes out, or no chain
            self._chain = chain

    def _instead_of(self, engine: Engine, chain: str) -> Engine:
        """One of another chain, which that engine cannot take."""
        if self._engines.get(engine.key) is not engine:
            return self._trial(chain)
        new = self._engines[engine.key] = Engine(engine.key, chain, self._settings)
        return new

    def set(self, options: str) -> None:
        """Filter with other options from the next frame on: "gaussian.sigma=3, threshold.t1=30".

        Of the second of two: "gaussian#2.sigma=1". All of them, or none with a UsageError.
        """
        with self._submitting:
            self._forget_ways()
            last = self._last()
            last.set(options)
            self._chain = last.text("chain")

    @property
    def plan(self) -> str:
        """What the chain comes to, as text: passes, halos, bytes. Of frames like the last one, or of 1080p."""
        with self._submitting:
            return self._last().text("plan")

    @property
    def backend(self) -> str:
        """What filters, for people: "cuda, NVIDIA H200, compute capability 9.0"."""
        with self._submitting:
            return self._last().backend

    @property
    def output_pixfmt(self) -> str:
        """The pixel format of the result of frames like the last one."""
        with self._submitting:
            return str(self._last().output.pixfmt.decode())

    @property
    def analysis(self) -> Tuple[_analysis.Found, ...]:
        """What `stats`, `match` and `wavelet` found in the frame that came last, in the order of the chain; nothing
        after close()."""
        with self._receiving:
            engine = self._received
            return () if engine is None else _analysis.read(filter_library(), engine.handle)

    # ---- as an object ----

    @property
    def under_way(self) -> int:
        """Frames that were submitted and not received."""
        return self._under_way.count()

    @property
    def frames_in_flight(self) -> int:
        """Frames that may be under way at once, of frames like the last one; 1 after a call."""
        with self._submitting:
            return self._last().frames_in_flight

    def close(self) -> None:
        """Wait for frames under way and drop them, and free what was kept for sizes and the analysis of the last
        frame. It may be used again, with the chain that it has."""
        with self._submitting, self._receiving:
            self._drain()
            self._chain = self.chain
            self._forget_ways()
            self._engines.clear()
            self._newest = self._received = None
            self._under_way.forget_refused()

    def __enter__(self) -> Filter:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"sluice.Filter({self._chain!r})"


def _held(frame: Any) -> Any:
    """The arrays of a frame, in what nobody else changes."""
    return tuple(frame) if isinstance(frame, list) else frame


def _new_at(result: Any, source: Places) -> Places:
    """Where a new result lies."""
    at = places_of(result, source[2])
    assert at is not None, "a new array is as the frame that it was made for"
    return at


def _kind_of(frame: Any, out: Any, stream: Any, alone: bool = False
             ) -> Tuple[Kind, Optional[Places], Optional[Places]]:
    """What kind of frame and target that is, and where they lie; of other arrays than those that are known, nowhere."""
    number = None if stream is None else caller_stream(frame, stream)
    source = places_of(frame, number)
    if source is None:
        return NO_KIND, None, None
    _, layout, number = source
    if out is None:
        return (layout, None, alone), source, None
    target = places_of(out, number)
    return (NO_KIND, None, None) if target is None else ((layout, target[1], alone), source, target)


def _runs(works: List[_Work]) -> Iterator[List[_Work]]:
    """Works of one engine and stream that stand together, no more than a call takes."""
    some: List[_Work] = []
    for work in works:
        if some and (work.engine is not some[0].engine or work.stream != some[0].stream
                     or len(some) >= some[0].engine.most):
            yield some
            some = []
        some.append(work)
    if some:
        yield some
