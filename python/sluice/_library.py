"""The C library: where it is found, and its interface as include/sluice/{common,frame,filter}.h say it."""

from __future__ import annotations

import ctypes
import logging
import operator
import os
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_float, c_int,
                    c_int64, c_size_t, c_ssize_t, c_uint64, c_void_p)
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .errors import LibraryMissing, error_of

OK, END, STOPPED, AGAIN = 0, 1, 2, 9
PLANES = 4
ERROR, WARNING, INFO, DEBUG = range(4)
BACKENDS = {"auto": 0, "cuda": 1, "cpu": 2, "scalar": 3}
RANGES = {None: 0, "limited": 1, "full": 2}
MATRICES = {None: 0, "bt709": 1, "bt601": 2, "fcc": 3, "smpte240m": 4, "bt2020": 5}
SITINGS = {"left": 0, "center": 1, "top_left": 2}
HOST, DEVICE = 0, 1
STATISTICS, MATCHES, WAVELET = range(3)
API_VERSION = 1001


class Sized(Structure):
    """A struct that begins with its own size."""

    def __init__(self, **members: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **members)


class StageInfo(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("summary", c_char_p),
                ("formula", c_char_p), ("source", c_char_p), ("options", c_int),
                ("alias", c_char_p)]


class OptionInfo(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("type", c_int), ("unit", c_char_p),
                ("choices", c_char_p), ("derived", c_char_p), ("required", c_bool),
                ("many", c_bool), ("initial", c_double), ("min", c_double), ("max", c_double),
                ("help", c_char_p)]


class Format(Sized):
    _fields_ = [("size", c_size_t), ("pixfmt", c_char_p), ("width", c_int), ("height", c_int),
                ("range", c_int), ("matrix", c_int), ("siting", c_int)]


class Frame(Sized):
    _fields_ = [("size", c_size_t), ("data", c_void_p * PLANES), ("stride", c_ssize_t * PLANES),
                ("memory", c_int), ("interlaced", c_bool), ("pts", c_int64), ("opaque", c_void_p)]


class Picture(Sized):
    _fields_ = [("size", c_size_t), ("width", c_int), ("height", c_int), ("sample", c_void_p),
                ("mask", c_void_p)]


PICTURE = CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(Picture))
LOG = CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class FilterConfig(Sized):
    _fields_ = [("size", c_size_t), ("chain", c_char_p), ("input", Format),
                ("output_pixfmt", c_char_p), ("output_range", c_int), ("backend", c_int),
                ("device", c_int), ("threads", c_int), ("frames_in_flight", c_int),
                ("wavelet_planes", c_bool), ("picture", PICTURE), ("log", LOG),
                ("opaque", c_void_p)]


class Match(Structure):
    _fields_ = [("x", c_float), ("y", c_float), ("score", c_float), ("number", c_int),
                ("width", c_int), ("height", c_int)]


class Analysis(Sized):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("stage", c_char_p), ("width", c_int),
                ("height", c_int), ("component", c_char_p), ("min", c_double), ("max", c_double),
                ("mean", c_double), ("deviation", c_double), ("histogram", POINTER(c_uint64)),
                ("bins", c_int), ("match", POINTER(Match)), ("matches", c_int),
                ("scales", c_int), ("scale", POINTER(c_double)), ("energy", POINTER(c_double)),
                ("plane", POINTER(c_float))]


# name: (result, arguments)
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "sluice_api_version": (c_int, []),
    "sluice_version": (c_char_p, []),
    "sluice_stage": (c_int, [c_int, POINTER(StageInfo)]),
    "sluice_stage_option": (c_int, [c_int, c_int, POINTER(OptionInfo)]),
    "sluice_format_name": (c_char_p, [c_int]),
    "sluice_format_plane": (c_int, [POINTER(Format), c_int, POINTER(c_size_t), POINTER(c_int)]),
    "sluice_filter_create": (c_int, [POINTER(FilterConfig), POINTER(c_void_p)]),
    "sluice_filter_destroy": (None, [POINTER(c_void_p)]),
    "sluice_filter_output": (c_int, [c_void_p, POINTER(Format)]),
    "sluice_filter_backend": (c_char_p, [c_void_p]),
    "sluice_filter_frames_in_flight": (c_int, [c_void_p]),
    "sluice_filter_submit": (c_int, [c_void_p, POINTER(Frame), POINTER(Frame), c_void_p]),
    "sluice_filter_submit_many": (c_int, [c_void_p, POINTER(Frame), POINTER(Frame), c_int,
                                          c_void_p]),
    "sluice_filter_receive": (c_int, [c_void_p, POINTER(Frame)]),
    "sluice_filter_run_many": (c_int, [c_void_p, c_void_p, c_void_p, c_int, c_void_p]),
    "sluice_filter_alloc": (c_void_p, [c_void_p, c_size_t]),
    "sluice_filter_free": (None, [c_void_p, c_void_p, c_size_t]),
    "sluice_filter_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "sluice_filter_set_chain": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "sluice_filter_chain": (c_void_p, [c_void_p]),
    "sluice_filter_plan": (c_void_p, [c_void_p]),
    "sluice_filter_analysis": (c_int, [c_void_p, c_int, POINTER(Analysis)]),
}


class Notes:
    """What the library says while it works: errors are kept for exceptions, the rest goes to the logger.

    An object of its own, so that a callback keeps nothing else alive.
    """

    def __init__(self) -> None:
        self._sentences: List[str] = []
        self.callback = LOG(self._note)

    def _note(self, opaque: int, level: int, sentence: bytes) -> None:
        if level <= ERROR:
            self._sentences.append(text_of(sentence))
        else:
            _log.log(_LEVELS[level], "%s", text_of(sentence))

    def forget(self) -> None:
        """The reason is told already."""
        self._sentences = []

    def check(self, status: int, otherwise: str) -> None:
        """Raise what a status means, unless it is success; `otherwise` where the library gave no reason."""
        if status not in (OK, STOPPED):
            sentences, self._sentences = self._sentences, []
            raise error_of(status, "; ".join(sentences) or otherwise)


_log = logging.getLogger("sluice")
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
FILTER_LIBRARY, FULL_LIBRARY = "libsluice-filter.so.1", "libsluice.so.1"
_loaded: Dict[str, ctypes.CDLL] = {}
_lock = threading.Lock()


def _places(names: Tuple[str, ...]) -> Iterator[str]:
    """Where a library may be: SLUICE_LIBRARY alone, or beside the package, then where the system looks."""
    named = os.environ.get("SLUICE_LIBRARY")
    if named:
        yield named
        return
    beside = (Path(__file__).with_name(name) for name in names)
    yield from (str(file) for file in beside if file.exists())
    yield from names


def _try(place: str, function: str) -> Tuple[Optional[ctypes.CDLL], str]:
    """A library that has the function, or the reason why not."""
    try:
        library = ctypes.CDLL(place)
    except OSError as problem:
        return None, f"{place}: {problem}"
    if not hasattr(library, function):
        return None, f"{place} has no {function}()"
    version = library.sluice_api_version()
    if version // 1000 != API_VERSION // 1000 or version < API_VERSION:
        return None, f"{place} is of interface {version}, wanted is {API_VERSION} or a later minor one"
    return library, ""


def find(names: Tuple[str, ...], function: str, advice: str) -> ctypes.CDLL:
    """The first library of these names with that function. LibraryMissing with the advice: none has it."""
    reasons = []
    for place in _places(names):
        library, reason = _try(place, function)
        if library:
            return library
        reasons.append(reason)
    raise LibraryMissing(f"{advice} ({'; '.join(reasons)})")


def declare(library: ctypes.CDLL, prototypes: Dict[str, Tuple[Any, List[Any]]]) -> None:
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def filter_library() -> ctypes.CDLL:
    """libsluice-filter, or libsluice, which has all of it; loaded once."""
    with _lock:
        if "filter" not in _loaded:
            library = find((FILTER_LIBRARY, FULL_LIBRARY), "sluice_filter_objects",
                           "The library of filters is not there: install the wheel of sluice, or "
                           "libsluice1, or name the file in the environment's SLUICE_LIBRARY")
            declare(library, PROTOTYPES)
            _loaded["filter"] = library
        return _loaded["filter"]


def text_of(data: Optional[bytes]) -> str:
    return data.decode("utf-8", "replace") if data else ""


def taken_text(pointer: Optional[int]) -> str:
    """A text that the caller has to free."""
    if not pointer:
        raise error_of(4, "no memory is left")
    text = text_of(ctypes.string_at(pointer))
    free = ctypes.CDLL(None).free
    free.argtypes = [c_void_p]
    free(pointer)
    return text


def bytes_of(value: Any, what: str) -> bytes:
    """A text as the library takes it: it would end at a zero."""
    if not isinstance(value, str):
        raise error_of(5, f"{what} is {type(value).__name__}; wanted is a text")
    if "\0" in value:
        raise error_of(5, f"{what}={value!r} has a zero character")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise error_of(5, f"{what}={value!r} is no text of Unicode") from None


def whole_of(value: Any, what: str, bits: int = 32) -> int:
    """A number as the library takes it: ctypes would keep its last bits."""
    most = (1 << bits - 1) - 1
    try:
        number = operator.index(value)
    except TypeError:
        raise error_of(5, f"{what}={value!r} is no whole number") from None
    if not -most - 1 <= number <= most:
        raise error_of(5, f"{what}={number} is beyond the {bits} bits of the library's numbers")
    return number


def choice(choices: Dict[Any, int], value: Any, what: str) -> int:
    """The number of a choice. UsageError names the others."""
    if value not in choices:
        known = ", ".join(str(name) for name in choices)
        raise error_of(5, f"{what}={value!r} is none of: {known}")
    return choices[value]
