"""One filter of the C library, for one kind of frame."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from ._arrays import view_of
from ._formats import Plane, planes_of
from ._library import (AGAIN, OK, PICTURE, PROTOTYPES, FilterConfig, Format, Frame, Notes, bytes_of, filter_library,
                       taken_text, text_of)
from .errors import UsageError, error_of


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


class Engine:
    """A struct sluice_filter, with what its callers need to know of its formats. Freed with the last reference."""

    def __init__(self, key: Key, chain: Optional[str], settings: Settings) -> None:
        self._library = filter_library()
        self._run = self._library.sluice_filter_run
        self.begun: List[int] = []
        self.ended: List[int] = []
        self._submit_many = _noting("sluice_filter_submit_many", self.begun)
        self._receive = _noting("sluice_filter_receive", self.ended)
        self.handle = c_void_p()
        self._notes = Notes()
        self._pictures = settings.pictures
        self.key = key
        self.chain = chain  # as it was last asked for
        config = self._config(key, chain, settings)
        status = self._library.sluice_filter_create(byref(config), byref(self.handle))
        self._pictures.check()
        self._check(status)
        self.planes = planes_of(self._library, config.input)
        output = Format()
        self._check(self._library.sluice_filter_output(self.handle, byref(output)))
        self.output = output
        self.output_planes: List[Plane] = planes_of(self._library, output)
        self._received = Frame()

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

    def _check(self, status: int) -> None:
        if status == AGAIN:
            raise error_of(status, "as many frames are under way as fit: receive() one first")
        self._notes.check(status, f"the filter of {self.key.pixfmt} failed")

    # ---- frames ----

    def run(self, source: Frame, target: Frame, stream: int) -> None:
        status = self._run(self.handle, source, target, stream)
        if status != OK:
            self._check(status)

    def submit(self, sources: Any, targets: Any, count: int, stream: int) -> None:
        """Arrays of struct sluice_frame, or one each. Full: there is no room for all of them. What the library said
        is in `begun`, which was empty, as soon as it has: with Ctrl-C this may not come back."""
        self._submit_many(self.handle, sources, targets, count, stream)
        self._check(self.begun[0])

    def receive(self) -> Frame:
        """The oldest one; what the library said is in `ended`, which was empty."""
        self._receive(self.handle, byref(self._received))
        self._check(self.ended[0])
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
        """Host memory that the backend copies fastest, as a buffer that keeps this engine."""
        address = self._library.sluice_filter_alloc(self.handle, size)
        if not address:
            raise error_of(4, f"no memory is left for {size} bytes")
        return _Memory(self, address, size).buffer()

    def free(self, address: int, size: int) -> None:
        self._library.sluice_filter_free(self.handle, address, size)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.sluice_filter_destroy(byref(self.handle))


def _noting(name: str, told: List[int]) -> Any:
    """A function of the library that appends its status to a list, before anything can be raised, and returns None."""
    function = filter_library()[name]  # one of our own, unlike the attribute of that name
    function.argtypes = PROTOTYPES[name][1]
    function.restype = told.append
    return function


class _Memory:
    """Memory of an engine: given back when nothing looks at it any more."""

    def __init__(self, engine: Engine, address: int, size: int) -> None:
        self._engine, self._address, self._size = engine, address, size

    def buffer(self) -> Any:
        buffer: Any = (ctypes.c_uint8 * self._size).from_address(self._address)
        buffer.memory = self  # arrays made of the buffer keep it, and it keeps this
        return buffer

    def __del__(self) -> None:
        self._engine.free(self._address, self._size)
