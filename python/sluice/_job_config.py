"""What a job is asked for, as struct sluice_config."""

from __future__ import annotations

import os
import re
from ctypes import c_char_p, c_int, c_int64
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

from ._job_library import GAPS, HWDEC, ChangeConfig, Config, OutputConfig, Rate
from ._library import BACKENDS, RANGES, bytes_of, choice, whole_of
from .errors import UsageError

Name = Union[str, "os.PathLike[str]"]
Number = Union[int, float, str, Fraction]
Size = Union[int, str, None]


@dataclass(frozen=True)
class Target:
    """One output, and how it is encoded. docs/outputs.md says what names there are."""

    name: Optional[Name]
    format: Optional[str] = None  # FFmpeg's name of a muxer
    encoder: Optional[str] = None  # FFmpeg's name of an encoder
    crf: Optional[float] = None  # quality; None: the encoder's own
    preset: Optional[str] = None
    bitrate: Optional[int] = None  # bits a second; None: the encoder's own
    options: Union[Dict[str, Any], Sequence[str]] = ()  # of encoder or muxer
    segment: float = 0  # seconds a file; 0: one file
    pixfmt: Optional[str] = None
    range: Optional[str] = None  # "limited", "full"

    def fill(self, to: OutputConfig) -> None:
        for name in ("format", "encoder", "preset", "pixfmt"):
            setattr(to, name, _text(getattr(self, name)))
        to.name = _path(self.name)
        to.crf = -1.0 if self.crf == 0 else self.crf or 0
        to.bitrate = -1 if self.bitrate == 0 else self.bitrate or 0
        to.segment, to.range = self.segment, choice(RANGES, self.range, "range")
        pairs = self.options
        words = [f"{k}={v}" for k, v in pairs.items()] if isinstance(pairs, dict) else list(pairs)
        if words:
            to.options = (c_char_p * (len(words) + 1))(*(bytes_of(word, "options") for word in words), None)


@dataclass(frozen=True)
class Options:
    """The options of a job, which run(), Job and read() take by name. None and 0 are the defaults.

    docs/live.md is on live sources, docs/outputs.md on outputs, `sluice --help` on all of them.
    """

    # the input
    input_format: Optional[str] = None  # FFmpeg's name of a demuxer
    input_pixfmt: Optional[str] = None  # raw video, devices
    input_size: Union[str, Tuple[int, int], None] = None  # raw video, devices: "1920x1080"
    input_rate: Optional[Number] = None  # raw video, devices, image sequences: 25, "30000/1001"
    stream: Optional[int] = None  # FFmpeg's index; None: the best video
    start: float = 0  # seconds
    duration: float = 0
    frames: int = 0
    max_pixels: int = 0
    # live sources
    live: bool = False  # a file plays at its own pace
    rtsp_transport: Optional[str] = None
    playlist_hosts: Optional[str] = None
    tls_verify: bool = False
    ca_file: Optional[Name] = None
    gap: str = "skip"  # "freeze", "black"
    open_timeout: float = 0
    stall_timeout: float = 0
    max_latency: float = 0
    reconnects: Optional[int] = None  # attempts in a row; None: for ever
    await_start: bool = False
    simulate: Optional[str] = None  # faults
    # how
    overwrite: bool = False
    backend: str = "auto"  # "cuda", "cpu", "scalar"
    hwdec: str = "auto"  # "off", "require"
    repeatable: bool = False
    device: Optional[str] = None  # "0", "0,1", "all"
    threads: int = 0
    ring: int = 0
    mem: Size = None  # what this process's jobs may take: bytes, "512M", "2G"; None: what is available
    vram: Size = None  # the same of the GPU's memory
    trace: Optional[Name] = None  # a file for a timeline
    verify: int = 0  # recompute every Nth frame
    metrics: Optional[str] = None  # where to serve Prometheus metrics

    def fill(self, to: Config) -> None:
        for name, convert in _CONVERTED.items():
            setattr(to, name, convert(getattr(self, name)))
        kinds = {of[0]: of[1] for of in Config._fields_}
        for field in fields(self):
            if field.name not in (*_CONVERTED, "input_size"):
                value = getattr(self, field.name)
                if kinds[field.name] in (c_int, c_int64):
                    value = whole_of(value, field.name, 64 if kinds[field.name] is c_int64 else 32)
                setattr(to, field.name, value)
        to.input_width, to.input_height = _size(self.input_size)


def _text(value: Optional[str], what: str = "a text") -> Optional[bytes]:
    return None if value is None else bytes_of(value, what)


def _path(value: Optional[Name]) -> Optional[bytes]:
    return None if value is None else os.fsencode(value)


def _size(value: Union[str, Tuple[int, int], None]) -> Tuple[int, int]:
    try:
        sides: Any = value.split("x") if isinstance(value, str) else value or (0, 0)
        width, height = sides
        return int(width), int(height)
    except ValueError as problem:
        raise UsageError(f"input_size={value!r} is no size: '1920x1080', or (1920, 1080)") from problem


def _rate(value: Optional[Number]) -> Rate:
    if value is None:
        return Rate(0, 0)
    try:
        rate = Fraction(value).limit_denominator(1001000)
    except (ValueError, TypeError) as problem:
        raise UsageError(f"input_rate={value!r} is no rate: 25, or '30000/1001'") from problem
    return Rate(rate.numerator, rate.denominator)


_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def _bytes(value: Size) -> int:
    """As --mem takes it: letters count by 1024."""
    if value is None:
        return 0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", str(value), re.IGNORECASE)
    size = int(float(found[1]) * (1 << _UNITS[found[2].upper()])) if found else 0
    if size <= 0:
        raise UsageError(f"{value!r} is no size of memory: 1073741824, '512M', '1.5GiB'")
    return size


_CONVERTED: Dict[str, Callable[[Any], Any]] = {
    **{name: _text for name in ("input_format", "input_pixfmt", "rtsp_transport", "playlist_hosts",
                                "simulate", "device", "metrics")},
    **{name: _path for name in ("ca_file", "trace")},
    "input_rate": _rate,
    **{name: _bytes for name in ("mem", "vram")},
    "stream": lambda value: 0 if value is None else value + 1,
    "reconnects": lambda value: 0 if value is None else value or -1,
    "gap": lambda value: choice(GAPS, value, "gap"),
    "backend": lambda value: choice(BACKENDS, value, "backend"),
    "hwdec": lambda value: choice(HWDEC, value, "hwdec"),
}


def config_of(input: Name, targets: Sequence[Target], chain: Optional[str], options: Options,
              changes: Dict[float, str]) -> Config:
    """A configuration, whose strings live as long as it does."""
    config = Config(input=_path(input), chain=_text(chain, "chain"))
    options.fill(config)
    targets[0].fill(config.output)
    if len(targets) > 1:
        more = (OutputConfig * len(targets))()
        for target, to in zip(targets[1:], more):
            target.fill(to)
        config.more_outputs = more
    if changes:
        rows = (ChangeConfig * (len(changes) + 1))()
        for row, (time, text) in zip(rows, sorted(changes.items())):
            row.pts_us, row.chain = round(time * 1e6), bytes_of(text, "changes")
        config.changes = rows
    return config
