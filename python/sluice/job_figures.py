"""What a job tells of itself: frozen, as it was at that moment. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Dict, Mapping, Optional, Tuple

from ._job_library import (LEDGER, PARTS, LatencyFigures, LedgerFigures, OutputFigures,
                           ProgressFigures, SummaryFigures)
from ._library import text_of


@dataclass(frozen=True)
class Ledger:
    """The frame ledger: in the end frames_in + frames_filled is frames_out plus all that was dropped."""

    frames_in: int  # decoded
    frames_filled: int  # shown while a live source was lost
    frames_out: int  # written
    dropped_range: int  # outside start, duration or frames
    dropped_stop: int  # decoded when the job was stopped, and not encoded in time
    dropped_late: int  # live: too old before they were filtered
    dropped_clock: int  # two or more frames in one tick of the output's clock
    dropped_disk: int  # the disk was full
    frames_damaged: int  # of frames_in: decoded with errors
    packets_damaged: int
    packets_skipped: int  # live: not decoded, because decoding was too slow
    verified: int  # recomputed and found equal
    losses: int  # times that a live source went away
    reconnects: int  # and came back
    lost_seconds: float  # time without it
    frames_taken_over: int  # of frames_in: filtered by the CPU, since the GPU failed before


@dataclass(frozen=True)
class Latency:
    """From a packet's arrival to the writing of its frame, for live sources; all zero while none was written."""

    frames: int
    seconds: float  # sum over all frames
    median: float
    percentile_95: float
    percentile_99: float
    within: Mapping[float, int]  # a limit in seconds: frames that took no longer


@dataclass(frozen=True)
class Progress:
    """A job as it is now."""

    frames: int  # filtered and handed to the encoder
    frames_pending: int  # of these, still inside the encoder
    frames_total: int  # about how many there will be; 0: unknown
    seconds: float  # since it began
    media_seconds: float  # of video written
    media_total: float  # 0: unknown
    flushing: bool  # the last frame is through
    stopping: bool  # a stop was asked for, or the output is being made whole
    lost: bool  # the live source is away
    connecting: bool  # and attempts to reconnect go on
    ledger: Ledger
    latency: Latency
    busy_seconds: Mapping[str, float]  # by part: demux, decode, upload, filter, download, encode, mux
    ring: int  # slots
    ring_used: int  # slots that hold a frame now
    ring_occupancy: float  # mean share of the slots in use
    bytes_out: int

    @property
    def share(self) -> Optional[float]:
        """How much is done, 0 to 1; None: not known."""
        if self.media_total > 0:
            return min(self.media_seconds / self.media_total, 1.0)
        return min(self.frames / self.frames_total, 1.0) if self.frames_total else None

    @property
    def frames_per_second(self) -> float:
        return self.frames / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Output:
    """One output of a job."""

    name: str
    encoder: Optional[str]
    container: Optional[str]
    frames: int  # written
    dropped: int  # left out because it was too slow, or not there
    missing: int  # of those: the disk had no room
    unwatched: int  # not encoded, because nobody watched
    bytes: int
    files: int  # segments begun
    connects: int
    connected: bool
    failed: bool
    tee: bool  # it has the frames at a tee of the chain


@dataclass(frozen=True)
class Change:
    """A chain that began to filter, with the time of its first frame."""

    pts_us: int  # microseconds of the input
    chain: str

    @property
    def pts(self) -> float:
        return self.pts_us / 1e6


@dataclass(frozen=True)
class Summary:
    """Everything about a job after its end, whatever came of it."""

    ledger: Ledger
    latency: Latency
    stopped: bool  # before its source ended
    truncated: bool  # the source ends before it says so, or was lost for good
    seconds: float  # wall time
    media_seconds: float  # of video written
    bytes_out: int
    input: Optional[str]
    input_codec: Optional[str]
    input_format: Optional[str]
    input_tls: Optional[str]  # "verified", "unverified"; None: no TLS
    output: Optional[str]
    encoder: Optional[str]
    output_format: Optional[str]
    backend: Optional[str]
    device: Optional[str]
    decoder: Optional[str]
    width: int
    height: int
    busy: Mapping[str, float]  # share of the time that each part was working
    max_memory: int  # bound of the process's memory in bytes
    cores_busy: float  # share of the processor's time
    ring_occupancy: float
    ring: int
    bottleneck: str  # the part that all others waited for
    verdict: str  # what set the pace, and what would change it
    outputs: Tuple[Output, ...]
    changes: Tuple[Change, ...]
    need_mem: int = 0  # bytes of memory, the host's and the GPU's, that it was found to need
    need_vram: int = 0
    mem: int = 0  # and that it might take; 0: it was not found out
    vram: int = 0

    @property
    def frames(self) -> int:
        return self.ledger.frames_out


def _value(value: Any) -> Any:
    return text_of(value) if isinstance(value, bytes) else value


def _members(kind: Any, of: Any, **more: Any) -> Dict[str, Any]:
    """Members of a struct by the names of a dataclass."""
    return {**{field.name: _value(getattr(of, field.name)) for field in fields(kind)
               if field.name not in more}, **more}


def _parts(values: Any) -> Dict[str, float]:
    return dict(zip(PARTS, values))


def ledger_of(of: LedgerFigures) -> Ledger:
    return Ledger(**{name: getattr(of, name) for name in (*LEDGER, "lost_seconds", "frames_taken_over")})


def latency_of(of: LatencyFigures) -> Latency:
    median, percentile_95, percentile_99 = of.quantile
    return Latency(of.frames, of.seconds, median, percentile_95, percentile_99,
                   dict(zip(of.limit[: of.limits], of.within)))


def progress_of(of: ProgressFigures) -> Progress:
    return Progress(**_members(Progress, of, ledger=ledger_of(of.ledger), latency=latency_of(of.latency),
                               busy_seconds=_parts(of.busy_seconds)))


def output_of(of: OutputFigures) -> Output:
    return Output(**_members(Output, of))


def summary_of(of: SummaryFigures, outputs: Tuple[Output, ...], changes: Tuple[Change, ...]) -> Summary:
    return Summary(**_members(Summary, of, ledger=ledger_of(of.ledger), latency=latency_of(of.latency),
                              busy=_parts(of.busy), bottleneck=PARTS[of.bottleneck],
                              verdict=text_of(of.verdict), outputs=outputs, changes=changes))
