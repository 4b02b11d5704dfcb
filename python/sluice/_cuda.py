"""What the package asks of CUDA's driver itself, by ctypes: where memory lies, and that a stream waits for another."""

from __future__ import annotations

import ctypes
import functools
from contextlib import contextmanager, nullcontext
from ctypes import POINTER, byref, c_int, c_uint, c_uint64, c_void_p
from typing import Any, Iterator, NamedTuple, Optional

from .errors import DeviceError

DRIVER = "libcuda.so.1"
DEFAULT_STREAM = 1  # the legacy one of a context, which 0 is, too
_CONTEXT, _DEVICE_ORDINAL = 1, 9  # CU_POINTER_ATTRIBUTE_CONTEXT, ..._DEVICE_ORDINAL
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING

# name: arguments; each returns a CUresult
_PROTOTYPES = {
    "cuInit": [c_uint],
    "cuPointerGetAttribute": [c_void_p, c_int, c_uint64],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
}


def device_of(address: int) -> int:
    """The number of the GPU that has this memory; 0 where the driver does not know, or is not there."""
    number = c_int()
    try:
        _call("cuPointerGetAttribute", ctypes.addressof(number), _DEVICE_ORDINAL, address)
    except DeviceError:
        return 0
    return number.value


def let_wait(stream: int, producer: int, device: int, *, of: Optional[int] = None, to: Optional[int] = None) -> None:
    """Let what is put on `stream` from now on wait for what is on `producer` by now, both streams of that GPU: of the
    context `to` and of the context `of`, None being the primary one. The call itself waits for nothing."""
    event = c_void_p()
    with _current(device, of):
        _call("cuEventCreate", byref(event), _DISABLE_TIMING)
        try:
            _call("cuEventRecord", event, producer)
            with nullcontext() if to == of else _current(device, to):
                _call("cuStreamWaitEvent", stream, event, 0)
        finally:
            _call("cuEventDestroy_v2", event)  # the driver keeps it until it has happened


class Lender(NamedTuple):
    """Who lends memory of a GPU, and makes and reuses it on the default stream of its own context."""

    device: int
    context: Optional[int]  # None: the primary one

    def lend(self, stream: int) -> None:
        """Let `stream` wait for what makes the memory."""
        if not self._is(stream):
            let_wait(stream, DEFAULT_STREAM, self.device, of=self.context)

    def take_back(self, stream: int) -> None:
        """Let what next goes into the memory wait for what reads it on `stream`."""
        if not self._is(stream):
            let_wait(DEFAULT_STREAM, stream or DEFAULT_STREAM, self.device, to=self.context)

    def _is(self, stream: int) -> bool:
        return self.context is None and stream in (0, DEFAULT_STREAM)


def lender_of(address: int, device: int) -> Lender:
    """Whose memory of that GPU it is."""
    owner = c_void_p()
    _call("cuPointerGetAttribute", ctypes.addressof(owner), _CONTEXT, address)
    with _current(device, None) as primary:
        return Lender(device, None if owner.value in (None, primary) else owner.value)


@contextmanager
def _current(device: int, context: Optional[int]) -> Iterator[int]:
    """The context is current meanwhile, and its handle given; None: the primary one."""
    if context is None:
        with _primary_context(device) as primary:
            yield primary
        return
    _call("cuCtxPushCurrent_v2", context)
    try:
        yield context
    finally:
        _call("cuCtxPopCurrent_v2", byref(c_void_p()))


@contextmanager
def _primary_context(device: int) -> Iterator[int]:
    """Where the CUDA runtime, torch and CuPy have their streams is current meanwhile."""
    number, context = c_int(), c_void_p()
    _call("cuDeviceGet", byref(number), device)
    _call("cuDevicePrimaryCtxRetain", byref(context), number)
    try:
        _call("cuCtxPushCurrent_v2", context)
        try:
            yield context.value or 0
        finally:
            _call("cuCtxPopCurrent_v2", byref(context))
    finally:
        _call("cuDevicePrimaryCtxRelease_v2", number)


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status:
        raise DeviceError(f"the CUDA driver fails in {name}() with status {status}")


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as problem:
        raise DeviceError(f"the frame lies in a GPU's memory, and there is no CUDA driver: {problem}") from problem
    for name, arguments in _PROTOTYPES.items():
        getattr(driver, name).argtypes = arguments
    status = driver.cuInit(0)
    if status:
        raise DeviceError(f"the CUDA driver fails in cuInit() with status {status}")
    return driver
