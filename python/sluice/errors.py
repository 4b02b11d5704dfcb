"""What goes wrong, as exceptions. Each carries the library's sentence."""

from __future__ import annotations

import builtins
from typing import Dict, Type


class Error(Exception):
    """A call of the library failed: str() is its sentence, `status` its enum sluice_status."""

    status = 3  # SLUICE_STATUS_FAILED


class OutOfMemory(Error, builtins.MemoryError):
    """Memory ran out, of the host or of the GPU."""

    status = 4


class UsageError(Error, ValueError):
    """What was asked for does not exist, or does not fit: a chain, an option, a frame."""

    status = 5


class InputError(Error):
    """The input cannot be read or decoded."""

    status = 6


class OutputError(Error):
    """The output cannot be encoded or written."""

    status = 7


class DeviceError(Error, RuntimeError):
    """The GPU that was required failed, or is not there."""

    status = 8


class Full(Error):
    """As many frames are under way as fit: receive() one, then submit() again."""

    status = 9


class LibraryMissing(Error, ImportError):
    """The C library was not found, or is too old: the sentence says what to install."""


_BY_STATUS: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (Error, OutOfMemory, UsageError, InputError, OutputError, DeviceError, Full)
}


def error_of(status: int, sentence: str) -> Error:
    """The exception of a status; a status without one of its own is an Error that keeps it."""
    error = _BY_STATUS.get(status, Error)(sentence)
    error.status = status
    return error
