"""The interface of jobs: include/sluice/sluice.h, for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_int64,
                    c_size_t, c_void_p)
from typing import Any, Dict, List, Tuple

from ._library import (FILTER_LIBRARY, FULL_LIBRARY, LOG, PROTOTYPES, Format, Frame, Sized, _loaded,
                       _lock, declare, find)

HWDEC = {"auto": 0, "off": 1, "require": 2}
GAPS = {"skip": 0, "freeze": 1, "black": 2}
PARTS = ("demux", "decode", "upload", "filter", "download", "encode", "mux")
MAX_PARTS = 16
CHANGED = CFUNCTYPE(None, c_void_p, c_int64, c_char_p)
TAKE = CFUNCTYPE(c_int, c_void_p, c_int, POINTER(Format), POINTER(Frame))


class Rate(Structure):
    _fields_ = [("num", c_int), ("den", c_int)]


class OutputConfig(Structure):
    _fields_ = [("name", c_char_p), ("format", c_char_p), ("encoder", c_char_p), ("crf", c_double),
                ("preset", c_char_p), ("bitrate", c_int64), ("options", POINTER(c_char_p)),
                ("segment", c_double), ("pixfmt", c_char_p), ("range", c_int),
                ("reserved", c_void_p * 8)]


class ChangeConfig(Structure):
    _fields_ = [("pts_us", c_int64), ("chain", c_char_p), ("reserved", c_void_p * 2)]


class Config(Sized):
    _fields_ = [
        ("size", c_size_t), ("input", c_char_p), ("output", OutputConfig),
        ("more_outputs", POINTER(OutputConfig)), ("chain", c_char_p), ("parsed", c_void_p),
        ("input_format", c_char_p), ("input_pixfmt", c_char_p), ("input_width", c_int),
        ("input_height", c_int), ("input_rate", Rate), ("stream", c_int), ("start", c_double),
        ("duration", c_double), ("frames", c_int64), ("max_pixels", c_int64), ("live", c_bool),
        ("rtsp_transport", c_char_p), ("playlist_hosts", c_char_p), ("tls_verify", c_bool),
        ("ca_file", c_char_p), ("gap", c_int), ("open_timeout", c_double),
        ("stall_timeout", c_double), ("max_latency", c_double), ("reconnects", c_int),
        ("await_start", c_bool), ("simulate", c_char_p), ("overwrite", c_bool),
        ("reserved_outputs", c_void_p), ("reserved_inputs", c_void_p), ("backend", c_int),
        ("hwdec", c_int), ("repeatable", c_bool), ("device", c_char_p), ("threads", c_int),
        ("ring", c_int), ("trace", c_char_p), ("verify", c_int), ("metrics", c_char_p),
        ("changes", POINTER(ChangeConfig)), ("changed", CHANGED), ("log", LOG),
        ("opaque", c_void_p), ("take", TAKE), ("push", c_void_p), ("push_clock", Rate),
        ("part", c_int), ("parts", c_int), ("codec_threads", c_int), ("mem", c_int64),
        ("vram", c_int64)]


class LatencyFigures(Structure):
    _fields_ = [("limits", c_int), ("limit", c_double * 16), ("within", c_int64 * 16),
                ("frames", c_int64), ("seconds", c_double), ("quantile", c_double * 3),
                ("reserved", c_int64 * 4)]


LEDGER = ("frames_in", "frames_filled", "frames_out", "dropped_range", "dropped_stop", "dropped_late",
          "dropped_clock", "dropped_disk", "frames_damaged", "packets_damaged", "packets_skipped",
          "verified", "losses", "reconnects")


class LedgerFigures(Structure):
    _fields_ = [*((name, c_int64) for name in LEDGER), ("lost_seconds", c_double),
                ("frames_taken_over", c_int64), ("reserved", c_int64 * 7)]


class ProgressFigures(Sized):
    _fields_ = [("size", c_size_t), ("frames", c_int64), ("frames_pending", c_int64),
                ("frames_total", c_int64), ("seconds", c_double), ("media_seconds", c_double),
                ("media_total", c_double), ("flushing", c_bool), ("stopping", c_bool),
                ("lost", c_bool), ("connecting", c_bool), ("ledger", LedgerFigures),
                ("latency", LatencyFigures), ("busy_seconds", c_double * MAX_PARTS),
                ("ring", c_int), ("ring_used", c_int), ("ring_occupancy", c_double),
                ("bytes_out", c_int64)]


class OutputFigures(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("encoder", c_char_p),
                ("container", c_char_p), ("frames", c_int64), ("dropped", c_int64),
                ("missing", c_int64), ("unwatched", c_int64), ("bytes", c_int64),
                ("files", c_int64), ("connects", c_int64), ("connected", c_bool),
                ("failed", c_bool), ("tee", c_bool)]


class Simulated(Structure):
    _fields_ = [("packets_lost", c_int64), ("packets_corrupted", c_int64), ("stalls", c_int64),
                ("closes", c_int64), ("ts_jumps", c_int64), ("res_changes", c_int64),
                ("reserved", c_int64 * 4)]


class SummaryFigures(Sized):
    _fields_ = [("size", c_size_t), ("ledger", LedgerFigures), ("latency", LatencyFigures),
                ("stopped", c_bool), ("truncated", c_bool), ("simulated", Simulated),
                ("seconds", c_double), ("media_seconds", c_double), ("bytes_out", c_int64),
                ("input", c_char_p), ("input_codec", c_char_p), ("input_format", c_char_p),
                ("input_tls", c_char_p), ("output", c_char_p), ("encoder", c_char_p),
                ("output_format", c_char_p), ("backend", c_char_p), ("device", c_char_p),
                ("decoder", c_char_p), ("width", c_int), ("height", c_int),
                ("busy", c_double * MAX_PARTS), ("max_memory", c_int64),
                ("cores_busy", c_double), ("ring_occupancy", c_double), ("ring", c_int),
                ("bottleneck", c_int), ("verdict", c_char_p), ("need_mem", c_int64),
                ("need_vram", c_int64), ("mem", c_int64), ("vram", c_int64)]


_JOBS: Dict[str, Tuple[Any, List[Any]]] = {
    "sluice_job_create": (c_int, [POINTER(Config), POINTER(c_void_p)]),
    "sluice_job_run": (c_int, [c_void_p]),
    "sluice_job_stop": (None, [c_void_p]),
    "sluice_job_destroy": (None, [POINTER(c_void_p)]),
    "sluice_job_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "sluice_job_set_chain": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "sluice_job_chain": (c_void_p, [c_void_p]),
    "sluice_job_snapshot": (c_int, [c_void_p, c_char_p, c_bool, c_char_p, c_size_t]),
    "sluice_job_progress": (c_int, [c_void_p, POINTER(ProgressFigures)]),
    "sluice_job_output": (c_int, [c_void_p, c_int, POINTER(OutputFigures)]),
    "sluice_job_summary": (c_int, [c_void_p, POINTER(SummaryFigures)]),
    "sluice_ffmpeg_log": (None, [c_int]),
}
_QUIET = -8  # AV_LOG_QUIET: encoders would print; what matters comes as exceptions and by the logger


def job_library() -> ctypes.CDLL:
    """libsluice, which reads and writes videos; loaded once."""
    with _lock:
        if "jobs" not in _loaded:
            library = find((FULL_LIBRARY,), "sluice_job_create",
                           f"Videos are read and written by {FULL_LIBRARY}, which is not there ({FILTER_LIBRARY} "
                           "has only filters): install the package libsluice1, or `make install` sluice, or name "
                           "the file in the environment's SLUICE_LIBRARY")
            declare(library, {**PROTOTYPES, **_JOBS})
            library.sluice_ffmpeg_log(_QUIET)
            _loaded["jobs"] = library
        return _loaded["jobs"]
