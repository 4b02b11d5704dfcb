"""One filter of the C library, for one kind of frame."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p
from typing import Any, Callable, ClassVar, List, NamedTuple, Optional, Set, Tuple

from ._arrays import view_of
from ._formats import Plane, planes_of
from ._library import (AGAIN, OK, PICTURE, PROTOTYPES, FilterConfig, Format, Frame, Notes, bytes_of, filter_library,
                       taken_text, text_of)
from ._under_way import UnderWay
from .errors import UsageError, error_of


# At the end of a run() all of its frames are waited for, so one takes several times as many as may be under way;
# more of them would delay Ctrl-C.
RUNS = 4


class Key(NamedTuple):
    """What all frames of one engine have in common."""

    pixfmt: str
    width: int
    height: int
    range: int
    matrix: int
    siting: int
    device: Optional[int]  # that the frames lie on; None: host memory
    alone: bool  # one frame at a time, by all threads of the CPU


class Settings(NamedTuple):
    """What all engines of one Filter have in common."""

    output_pixfmt: Optional[str]
    output_range: int
    backend: int
    device: int
    threads: int
    frames_in_flight: int
    wavelet_planes: bool
    pictures: "Pictures"


class Pictures:
    """The templates that a chain names, as the library asks for them."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._kept: List[Any] = []  # what the library reads until its call returns
        self.largest = (0, 0)
        self.problem: Optional[Exception] = None
        self.callback = PICTURE(self._find)

    def check(self) -> None:
        """After the call that parsed the chain: forget what it read, and raise what went wrong."""
        self._kept.clear()
        problem, self.problem = self.problem, None
        if problem is not None:
            raise problem

    def _find(self, opaque: int, name: bytes, to: Any) -> int:
        try:
            found = self._source(name.decode()) if callable(self._source) else self._source.get(name.decode())
            if found is None:
                return UsageError.status
            sample, mask = found if isinstance(found, tuple) else (found, None)
            to[0].sample, shape = self._plane(sample, name)
            to[0].height, to[0].width = shape
            self.largest = max(self.largest[0], shape[1]), max(self.largest[1], shape[0])
            if mask is not None:
                to[0].mask, of_mask = self._plane(mask, name)
                if of_mask != shape:
                    raise UsageError(f"the mask of {name.decode()!r} is of another size than its picture")
            return OK
        except Exception as problem:  # it cannot go through the library: check() raises it
            self.problem = problem
            return UsageError.status

    def _plane(self, array: Any, name: bytes) -> Tuple[int, Tuple[int, int]]:
        view = view_of(array, None)
        if view.bytes != 1 or len(view.shape) != 2 or view.device is not None:
            raise UsageError(f"the picture {name.decode()!r} is no array of height x width uint8 in host memory")
        rows, columns = view.shape
        samples = (ctypes.c_uint8 * max(rows * columns, 1))()
        down, right = view.strides
        if right == 1 or columns == 1:
            for row in range(rows):
                ctypes.memmove(byref(samples, row * columns), view.data + row * down, columns)
        else:
            for at in range(rows * columns):
                samples[at] = ctypes.c_uint8.from_address(
                    view.data + at // columns * down + at % columns * right).value
        self._kept.append(samples)
        return ctypes.addressof(samples), (rows, columns)


class _Handle:
    """A struct sluice_filter, which is destroyed when neither its engine nor memory of it is used any more.

    The library reads and writes arrays of the frames under way until it has given them back, or is destroyed. So long
    the class owns them: an engine that is dropped does not take them along, whatever comes first, and neither does the
    end of the program, where the globals of modules go before the last objects do.
    """

    _owned: ClassVar[Set[UnderWay[Any]]] = set()

    def __init__(self, library: ctypes.CDLL, config: FilterConfig, arrays: UnderWay[Any]) -> None:
        self._config = config  # which keeps the callbacks
        self.pointer = c_void_p()
        self._at = byref(self.pointer)
        self._destroy, self._free = library.sluice_filter_destroy, library.sluice_filter_free
        self._arrays = arrays
        self._owned.add(arrays)

    def free(self, address: int, size: int) -> None:
        if self.pointer:
            self._free(self.pointer, address, size)

    def __del__(self) -> None:
        self._destroy(self._at)  # waits for frames under way
        self._owned.discard(self._arrays)


class Engine:
    """A filter of the library, with what its callers need to know of its formats. Freed with the last reference."""

    def __init__(self, key: Key, chain: Optional[str], settings: Settings) -> None:
        self._arrays: UnderWay[Any] = UnderWay()  # of frames under way
        self._library = filter_library()
        self._run = self._library.sluice_filter_run_many
        self._begun: List[int] = []
        self._ended: List[int] = []
        self._submit = _noting("sluice_filter_submit", self._begun)
        self._receive = _noting("sluice_filter_receive", self._ended)
        self._notes = Notes()
        self._pictures = settings.pictures
        self.key = key
        self.chain = chain  # as it was last asked for
        config = self._config(key, chain, settings)
        self._handle = _Handle(self._library, config, self._arrays)
        self.handle = self._handle.pointer
        status = self._library.sluice_filter_create(byref(config), byref(self.handle))
        self._pictures.check()
        self.check(status)
        self.planes = planes_of(self._library, config.input)
        output = Format()
        self.check(self._library.sluice_filter_output(self.handle, byref(output)))
        self.output = output
        self.output_planes: List[Plane] = planes_of(self._library, output)
        self._received = Frame()
        self._to = byref(self._received)
        self.most = RUNS * self.frames_in_flight  # frames of a run()

    def _config(self, key: Key, chain: Optional[str], settings: Settings) -> FilterConfig:
        on_gpu = key.device is not None
        config = FilterConfig(chain=None if chain is None else bytes_of(chain, "chain"), output_range=settings.output_range,
                              backend=1 if on_gpu and settings.backend == 0 else settings.backend,
                              device=key.device if on_gpu else settings.device, threads=settings.threads,
                              frames_in_flight=1 if key.alone else settings.frames_in_flight,
                              log=self._notes.callback,
                              wavelet_planes=settings.wavelet_planes, picture=self._pictures.callback)
        if settings.output_pixfmt:
            config.output_pixfmt = bytes_of(settings.output_pixfmt, "output_pixfmt")
        config.input = Format(pixfmt=bytes_of(key.pixfmt, "pixfmt"), width=key.width, height=key.height, range=key.range,
                              matrix=key.matrix, siting=key.siting)
        return config

    def check(self, status: int) -> None:
        """Raise what a status of the library means, unless it is success."""
        if status == AGAIN:
            raise error_of(status, "as many frames are under way as fit: receive() one first")
        self._notes.check(status, f"the filter of {self.key.pixfmt} failed")

    # ---- frames ----

    def run(self, sources: Any, targets: Any, count: int, stream: int) -> None:
        """So many structs sluice_frame each in arrays of words. None is under way before it, or after it, whatever it
        raises."""
        status = self._run(self.handle, sources.buffer_info()[0], targets.buffer_info()[0], count, stream)
        if status != OK:
            self.check(status)

    def begin(self, arrays: Any) -> List[int]:
        """Before submit(): own all that lives in the memory of the frame. What the library says will be in the list,
        which is empty, as soon as it has: with Ctrl-C submit() may not come back."""
        self._arrays.count()
        self._begun.clear()
        self._arrays.begin(self._begun, [arrays])
        return self._begun

    def submit(self, source: Frame, target: Frame, stream: int) -> None:
        """Full: there is no room for it."""
        self._submit(self.handle, source, target, stream)
        self.check(self._begun[0])

    def end(self) -> List[int]:
        """Before receive(), as begin() before submit()."""
        self._arrays.count()
        self._ended.clear()
        self._arrays.end(self._ended)
        return self._ended

    def receive(self) -> Frame:
        """The oldest one."""
        self._receive(self.handle, self._to)
        self._arrays.count()
        self.check(self._ended[0])
        return self._received

    @property
    def frames_in_flight(self) -> int:
        return int(self._library.sluice_filter_frames_in_flight(self.handle))

    # ---- chain ----

    def _ask(self, function: Callable[..., int], text: str) -> None:
        """A change of the chain, which tells its own reason."""
        why = ctypes.create_string_buffer(2048)
        status = function(self.handle, bytes_of(text, "chain"), why, len(why))
        self._pictures.check()
        if status != OK:
            self._notes.forget()
            raise error_of(status, text_of(why.value) or "the chain cannot be changed so")

    def set(self, options: str) -> None:
        self._ask(self._library.sluice_filter_set, options)
        self.chain = self.text("chain")

    def set_chain(self, chain: str) -> None:
        self._ask(self._library.sluice_filter_set_chain, chain)
        self.chain = chain

    def text(self, what: str) -> str:
        """ "chain" or "plan"."""
        return taken_text(getattr(self._library, f"sluice_filter_{what}")(self.handle))

    @property
    def backend(self) -> str:
        return text_of(self._library.sluice_filter_backend(self.handle))

    def alloc(self, size: int) -> Any:
        """Host memory that the backend copies fastest, as a buffer that keeps what it is of."""
        address = self._library.sluice_filter_alloc(self.handle, size)
        if not address:
            raise error_of(4, f"no memory is left for {size} bytes")
        return _Memory(self._handle, address, size).buffer()

    def __del__(self) -> None:
        """Wait for frames of which nobody wants to hear any more. The handle would, but for arrays among them that are
        memory of its own, and keep it. It may be gone first where the collector of garbage takes both. A GPU that has
        failed gives its frames back as well, each with that status."""
        for _ in range(self._arrays.count()):
            if self.handle:
                self.end()
                self._receive(self.handle, self._to)
                self._arrays.count()
        self._arrays.forget_refused()


def _noting(name: str, told: List[int]) -> Any:
    """A function of the library that appends its status to a list, before anything can be raised, and returns None."""
    function = filter_library()[name]  # one of our own, unlike the attribute of that name
    function.argtypes = PROTOTYPES[name][1]
    function.restype = told.append
    return function


class _Memory:
    """Memory of a filter: given back when nothing looks at it any more."""

    def __init__(self, handle: _Handle, address: int, size: int) -> None:
        self._handle, self._address, self._size = handle, address, size

    def buffer(self) -> Any:
        buffer: Any = (ctypes.c_uint8 * self._size).from_address(self._address)
        buffer.memory = self  # arrays made of the buffer keep it, and it keeps this
        return buffer

    def __del__(self) -> None:
        self._handle.free(self._address, self._size)
