"""sluice filters pictures and video: exactly, and at the speed of the hardware.

    import sluice

    edges = sluice.Filter("gray,gaussian=2,sobel")
    result = edges(frame)                   # NumPy, torch, CuPy, av.VideoFrame; host or GPU memory

    sluice.run("in.mp4", "edges.mp4", chain="gray,gaussian=2,sobel")
    for frame in sluice.read("in.mp4", chain="gray,sobel"):
        print(frame.pts, frame.mean())

    help(sluice.stage("gaussian"))          # every stage is in sluice.stages

Results are the same bits from every backend, on every machine, and those of the program `sluice`.
Filters need libsluice-filter, which the wheel brings; jobs, which read and write videos, need
libsluice of the package libsluice1. Messages of the library go to the logger "sluice".
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, List, Tuple

from ._formats import names as _format_names
from ._library import filter_library as _filter_library
from ._library import text_of as _text_of
from ._stages import Option, Stage
from ._stages import read_stages as _read_stages
from .analysis import Match, Matches, Statistics, Wavelet
from .errors import (DeviceError, Error, Full, InputError, LibraryMissing, OutOfMemory, OutputError,
                     UsageError)
from .filter import Filter, Received
from ._job_config import Target
from .job import Job, run
from .job_figures import Change, Latency, Ledger, Output, Progress, Summary

if TYPE_CHECKING:
    from ._read import VideoArray, read

    stages: Tuple[Stage, ...]
    __version__: str

__all__ = [
    "Change", "DeviceError", "Error", "Filter", "Full", "InputError", "Job", "Latency", "Ledger",
    "LibraryMissing", "Match", "Matches", "Option", "OutOfMemory", "Output", "OutputError", "Progress",
    "Received", "Stage", "Statistics", "Summary", "Target", "UsageError", "VideoArray", "Wavelet", "formats",
    "read", "run", "stage", "stages", "version",
]

logging.getLogger("sluice").addHandler(logging.NullHandler())


@functools.lru_cache(maxsize=None)
def _stages() -> Tuple[Stage, ...]:
    return _read_stages()


def stage(name: str) -> Stage:
    """The stage of that name, or former name: help(sluice.stage("gaussian")). UsageError names the others."""
    for one in _stages():
        if name in (one.name, one.alias):
            return one
    raise UsageError(f"there is no stage {name!r}, but: {', '.join(one.name for one in _stages())}")


def formats() -> List[str]:
    """Names of the pixel formats that filters read and write."""
    return list(_format_names())


def version() -> str:
    """The version of the C library, for people."""
    return _text_of(_filter_library().sluice_version())


def __getattr__(name: str) -> Any:
    """What needs the library, or NumPy, when it is asked for: `stages`, `__version__`, `read`, `VideoArray`."""
    if name == "__version__":
        return version().split()[1]
    if name == "stages":
        return _stages()
    if name in ("read", "VideoArray"):
        from . import _read

        return getattr(_read, name)
    raise AttributeError(f"module 'sluice' has no attribute {name!r}")
