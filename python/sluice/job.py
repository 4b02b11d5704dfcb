"""Jobs: a video from a name to a name, through a chain. They need libsluice, with FFmpeg."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from ctypes import byref, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._job_config import Name, Options, Target, config_of
from ._job_library import CHANGED, Config, OutputFigures, ProgressFigures, SummaryFigures, job_library
from ._library import OK, Notes, taken_text, text_of
from .errors import UsageError, error_of
from .job_figures import (Change, Output, Progress, Summary, output_of, progress_of, summary_of)

_running: "weakref.WeakSet[Job]" = weakref.WeakSet()


class _History:
    """The chains that began to filter."""

    def __init__(self) -> None:
        self.changes: List[Change] = []
        self.callback = CHANGED(self._note)

    def _note(self, opaque: int, pts_us: int, chain: bytes) -> None:
        self.changes.append(Change(pts_us, text_of(chain)))


class _Handle:
    """A struct sluice_job, which is destroyed when nobody uses it any more: neither its Job nor a call that another
    thread is in. A call keeps it by being a method of it, so an exception on the way keeps nothing longer."""

    def __init__(self, library: ctypes.CDLL, config: Config) -> None:
        self._library, self._config = library, config  # which keeps the callbacks
        self._pointer = c_void_p()

    def create(self) -> int:
        return int(self._library.sluice_job_create(byref(self._config), byref(self._pointer)))

    def call(self, function: Any, *arguments: Any) -> Any:
        return function(self._pointer, *arguments)

    def __del__(self) -> None:
        if self._pointer:
            self._library.sluice_job_destroy(byref(self._pointer))


class Job:
    """A job that can be watched, changed and stopped while it runs.

    >>> with sluice.Job("in.mp4", "out.mp4", chain="gray,sobel") as job:
    ...     for progress in job:
    ...         print(progress.frames)
    ... job.summary.verdict

    The input is opened at once, and is a file, an address, a device, or what else docs/live.md names.
    It begins with start(), with wait(), or when it is iterated over, in a thread of its own. Leaving
    the `with` stops it if it runs, and waits for the whole output.

    output:   a name, a Target, or a list of them, which share what they can.
    chain:    docs/stages.md; None is "gray,gaussian=1.4,sobel,threshold=20:240".
    changes:  other chains from a time on, in seconds of the input: {2.5: "gray,sobel"}.
    interval: seconds from one progress to the next.
    encoder, crf, preset, bitrate, format, pixfmt and the others of Target: of an output that is a name.
    All others: see sluice.job.Options.

    Raises UsageError, InputError, OutputError, DeviceError with the library's sentence.
    """

    def __init__(self, input: Name, output: Union[Name, Target, Sequence[Union[Name, Target]]], *,
                 chain: Optional[str] = None, changes: Optional[Dict[float, str]] = None,
                 interval: float = 0.25, **options: Any) -> None:
        self._library = job_library()
        self._handle: Optional[_Handle] = None
        self._changing = threading.RLock()  # whether it runs, and whether it is closed
        self._interval = interval
        self._notes, self._history = Notes(), _History()
        self._thread: Optional[threading.Thread] = None
        self._finished = threading.Event()  # Thread.join() of Python 3.11 forgets a thread on Ctrl-C
        self._over = threading.Lock()  # free before and after the run: a finalizer may wait for that, not for an Event
        self._status: Optional[int] = None
        self._summary: Optional[Summary] = None
        self._create(input, _targets(output, options), chain, options, changes or {})

    def _create(self, input: Name, targets: List[Target], chain: Optional[str],
                options: Dict[str, Any], changes: Dict[float, str]) -> None:
        take, self._at_end = options.pop("_take", None), options.pop("_at_end", _nothing)
        self._at_close = options.pop("_at_close", _nothing)
        try:
            chosen = Options(**options)
        except TypeError as problem:
            raise UsageError(f"{str(problem).split(') ')[-1]}: options of jobs are "
                             f"{', '.join(Options.__dataclass_fields__)}") from problem
        config = config_of(input, targets, chain, chosen, changes)
        config.log, config.changed = self._notes.callback, self._history.callback
        if take is not None:
            self._take = config.take = take
        handle = _Handle(self._library, config)
        self._check(handle.create())
        self._handle = handle

    def _check(self, status: int) -> None:
        self._notes.check(status, "the job failed")

    # ---- running ----

    def start(self) -> None:
        """Begin in a thread of its own. More than once does nothing."""
        with self._changing:
            if self._thread is None:
                handle = self._open("start")
                _running.add(self)
                self._thread = threading.Thread(target=self._run, args=(handle,), name="sluice job", daemon=True)
                self._thread.start()

    def _run(self, handle: _Handle) -> None:
        with self._over:
            self._status = handle.call(self._library.sluice_job_run)
            self._at_end()
            self._finished.set()

    @property
    def running(self) -> bool:
        return self._thread is not None and not self._finished.is_set()

    def __iter__(self) -> Iterator[Progress]:
        """Progress, every `interval` seconds and once at the end. The end of a failed job raises."""
        self.start()
        while not self._finished.wait(self._interval):
            yield self.progress
        yield self.progress
        self._end()

    def wait(self) -> Summary:
        """Begin if that has not been, and wait for the end. Ctrl-C stops the job, whose output is whole up
        to there, and then raises KeyboardInterrupt."""
        try:
            for _ in self:
                pass
        except KeyboardInterrupt:
            self.stop()
            self._join()
            raise
        return self.summary

    def _join(self) -> None:
        """Wait for the end, also while Ctrl-C is pressed again."""
        while self._thread is not None and self._thread.is_alive():
            try:
                with self._over:
                    pass
                self._thread.join()
            except KeyboardInterrupt:
                continue

    def _end(self) -> None:
        assert self._status is not None
        self._check(self._status)

    def stop(self) -> None:
        """End it early, without waiting: what was filtered becomes a whole output within two seconds."""
        handle = self._handle
        if handle is not None:
            handle.call(self._library.sluice_job_stop)

    def close(self) -> None:
        """Stop it if it runs, wait, and free it. What it told stays. Calls of other threads on it come to their end
        first."""
        with self._changing:
            if self._handle is None:
                return
            self._at_close()
            if self.running:
                self.stop()
                self._join()
            if self._status is not None:
                self._summary = self.summary
            self._handle = None

    def _closed_if_over(self, seconds: float) -> None:
        """Close it if it ends by itself within that time. A finalizer may call it: it waits for no lock longer."""
        if self._over.acquire(timeout=seconds):
            self._over.release()
            if self._changing.acquire(blocking=False):
                try:
                    if not self.running:
                        self.close()
                finally:
                    self._changing.release()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()

    # ---- requests ----

    def _open(self, call: str) -> _Handle:
        handle = self._handle
        if handle is None:
            raise UsageError(f"the job is closed: {call}() comes before that")
        return handle

    def _ask(self, function: Callable[..., int], text: Union[str, bytes], *more: Any) -> None:
        why = ctypes.create_string_buffer(2048)
        name = text.encode() if isinstance(text, str) else text
        status = self._open("requests").call(function, name, *more, why, len(why))
        if status != OK:
            raise error_of(status, text_of(why.value) or "the request was refused")

    def set(self, options: str) -> None:
        """Other options from the next frame on, all or none: "gaussian.sigma=2.5, threshold.t1=30"."""
        self._ask(self._library.sluice_job_set, options)

    @property
    def chain(self) -> str:
        """The chain, with the changes requested so far. Setting it changes it from the next frame on."""
        return taken_text(self._open("chain").call(self._library.sluice_job_chain))

    @chain.setter
    def chain(self, chain: str) -> None:
        self._ask(self._library.sluice_job_set_chain, chain)

    def snapshot(self, file: Name, overwrite: bool = False) -> None:
        """Write the next filtered frame into an image file. Waits for it, two seconds at most."""
        self._ask(self._library.sluice_job_snapshot, os.fsencode(file), overwrite)

    # ---- figures ----

    @property
    def progress(self) -> Progress:
        """How far it is."""
        figures = ProgressFigures()
        self._check(self._open("progress").call(self._library.sluice_job_progress, byref(figures)))
        return progress_of(figures)

    @property
    def outputs(self) -> Tuple[Output, ...]:
        """Each output, as it is now."""
        handle = self._open("outputs")
        outputs: List[Output] = []
        figures = OutputFigures()
        while handle.call(self._library.sluice_job_output, len(outputs), byref(figures)) == OK:
            outputs.append(output_of(figures))
        return tuple(outputs)

    @property
    def summary(self) -> Summary:
        """Everything about it, after its end. UsageError while there is none."""
        if self._summary is not None:
            return self._summary
        if self._status is None:
            raise UsageError("there is no summary yet: wait() for the job's end")
        with self._changing:
            if self._summary is not None:
                return self._summary
            figures = SummaryFigures()
            self._check(self._open("summary").call(self._library.sluice_job_summary, byref(figures)))
            return summary_of(figures, self.outputs, tuple(self._history.changes))


def _nothing() -> None:
    pass


def _targets(output: Any, options: Dict[str, Any]) -> List[Target]:
    """Outputs as targets; options of outputs are taken out of the others."""
    of_output = {name: options.pop(name) for name in Target.__dataclass_fields__ if name in options}
    outputs = output if isinstance(output, (list, tuple)) else [output]
    if not outputs:
        raise UsageError("a job without outputs does nothing: 'null:' filters and discards")
    return [one if isinstance(one, Target) else Target(one, **of_output) for one in outputs]


@atexit.register
def _stop_all() -> None:
    """Outputs of jobs that run when the program ends are made whole."""
    for job in list(_running):
        job.close()


def run(input: Name, output: Union[Name, Target, Sequence[Union[Name, Target]]], *,
        chain: Optional[str] = None, progress: Optional[Callable[[Progress], Any]] = None,
        **options: Any) -> Summary:
    """Filter a video from a name to a name, and say how it went.

    >>> summary = sluice.run("in.mp4", "out.mp4", chain="gray,sobel", crf=20, overwrite=True,
    ...                      progress=lambda p: print(p.frames, p.share))

    Options are those of sluice.Job. `progress` is called now and then, in this thread; if it raises,
    the job is stopped and the exception goes on. Ctrl-C stops the job, whose output is whole up to
    there, and raises KeyboardInterrupt. To iterate over the progress instead: sluice.Job.
    """
    with Job(input, output, chain=chain, **options) as job:
        if progress is None:
            return job.wait()
        for state in job:
            progress(state)
        return job.summary
