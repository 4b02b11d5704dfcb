"""What stages found in a frame: `stats`, `match` and `wavelet`. Values are code values of 8 bits, full range."""

from __future__ import annotations

import ctypes
from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from ._arrays import _numpy
from ._library import END, MATCHES, OK, STATISTICS, WAVELET, Analysis, text_of
from .errors import error_of

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True, eq=False)
class Statistics:
    """Least, greatest, mean, standard deviation and histogram of one component, of `stats`."""

    stage: str
    width: int
    height: int
    component: str  # "Y", "R", ...
    min: float
    max: float
    mean: float
    deviation: float
    histogram: numpy.ndarray[Any, Any]  # uint64: samples in each of equal parts of the code values


@dataclass(frozen=True)
class Match:
    """Where a picture was found: its top left corner, to a part of a column and row."""

    x: float
    y: float
    score: float  # 0 to 1
    number: int  # of the picture, in the order of the chain, from 0
    width: int
    height: int


@dataclass(frozen=True)
class Matches:
    """What `match` found, best first. To be iterated over."""

    stage: str
    width: int
    height: int
    matches: Tuple[Match, ...]

    def __iter__(self) -> Iterator[Match]:
        return iter(self.matches)

    def __len__(self) -> int:
        return len(self.matches)

    def __getitem__(self, index: int) -> Match:
        return self.matches[index]


@dataclass(frozen=True, eq=False)
class Wavelet:
    """The continuous wavelet transform of `wavelet`: mean squares, and planes if Filter(wavelet_planes=True)."""

    stage: str
    width: int
    height: int
    scales: numpy.ndarray[Any, Any]  # float64, in samples
    energy: numpy.ndarray[Any, Any]  # float64, a mean square a scale
    planes: Optional[numpy.ndarray[Any, Any]]  # float32, scales x height x width


Found = Union[Statistics, Matches, Wavelet]


def _array(pointer: Any, *shape: int) -> Any:
    """A copy of what the library points at, which lives until the next frame only."""
    return _numpy().ctypeslib.as_array(pointer, shape).copy()


def _statistics(of: Analysis, place: Tuple[str, int, int]) -> Statistics:
    return Statistics(*place, text_of(of.component), of.min, of.max, of.mean, of.deviation,
                      _array(of.histogram, of.bins))


def _matches(of: Analysis, place: Tuple[str, int, int]) -> Matches:
    rows = (of.match[k] for k in range(of.matches))
    return Matches(*place, tuple(Match(m.x, m.y, m.score, m.number, m.width, m.height) for m in rows))


def _wavelet(of: Analysis, place: Tuple[str, int, int]) -> Wavelet:
    planes = _array(of.plane, of.scales, of.height, of.width) if of.plane else None
    return Wavelet(*place, _array(of.scale, of.scales), _array(of.energy, of.scales), planes)


_KINDS: Dict[int, Callable[[Analysis, Tuple[str, int, int]], Found]] = {
    STATISTICS: _statistics, MATCHES: _matches, WAVELET: _wavelet}


def read(library: ctypes.CDLL, handle: Any) -> Tuple[Found, ...]:
    """All that was found in the frame that was received last."""
    found: List[Found] = []
    of = Analysis()
    while (status := library.sluice_filter_analysis(handle, len(found), byref(of))) == OK:
        found.append(_KINDS[of.kind](of, (text_of(of.stage), of.width, of.height)))
    if status != END:
        raise error_of(status, "the analysis of the frame is not to be had")
    return tuple(found)
