"""What a filter has found out about frames and targets of a layout, so that the next ones cost little more than the
call of the library."""

from __future__ import annotations

from typing import Any, Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

from ._engine import Engine
from ._known import Layout, Places
from ._library import Frame
from ._pictures import made_by

Kind = Tuple[Layout, Optional[Layout], bool]  # of the frame, of out= if given; whether frames come one at a time
_MOST = 64


class Way:
    """Frames of one kind through one engine: everything but the addresses, pts and new arrays."""

    def __init__(self, engine: Engine, source: Frame, target: Frame, makers: List[Callable[[], Any]]) -> None:
        self.engine = engine
        self._source, self._target = Frame.from_buffer_copy(source), Frame.from_buffer_copy(target)
        self._makers = makers

    def new(self) -> Any:
        """A new result."""
        return made_by(self._makers)

    def frames(self, source: Places, target: Places, pts: int) -> Tuple[Frame, Frame]:
        of_source, of_target = Frame.from_buffer_copy(self._source), Frame.from_buffer_copy(self._target)
        _put(of_source, source.addresses)
        _put(of_target, target.addresses)
        of_source.pts = pts
        return of_source, of_target

    def run(self, source: Places, target: Places, stream: int) -> None:
        """One frame alone. One thread at a time."""
        _put(self._source, source.addresses)
        _put(self._target, target.addresses)
        self.engine.run(self._source, self._target, stream)


class Batch:
    """Frames in one array and results in another, of layouts of their own, through one engine: everything but where
    both arrays lie. One thread at a time."""

    def __init__(self, engine: Engine, sources: Sequence[Frame], targets: Sequence[Frame], source: int, target: int,
                 make: Optional[Callable[[], Any]]) -> None:
        self.engine, self.make = engine, make  # a new array of results; None: they are given
        self._runs = [Run(engine, sources[k:k + engine.most], targets[k:k + engine.most])
                      for k in range(0, len(sources), engine.most)]
        self._at = source, target
        self._places = [[(frame.data, frame.data[0] - at) for run in self._runs for frame in run.frames[which]]
                        for which, at in enumerate(self._at)]

    def run(self, source: int, target: int, stream: int) -> None:
        """The arrays of now lie there."""
        if (source, target) != self._at:
            for places, at in zip(self._places, (source, target)):
                for data, offset in places:
                    data[0] = at + offset
            self._at = source, target
        for run in self._runs:
            run(stream)


class Run:
    """Frames that go through an engine by one call, which Ctrl-C waits for: no more than engine.most."""

    def __init__(self, engine: Engine, sources: Sequence[Frame], targets: Sequence[Frame]) -> None:
        self._engine, self._count = engine, len(sources)
        frames = Frame * self._count
        self.frames = frames(*sources), frames(*targets)

    def __call__(self, stream: int) -> None:
        self._engine.run_many(*self.frames, self._count, stream)


def _put(frame: Frame, addresses: Tuple[int, ...]) -> None:
    data = frame.data
    for plane, address in enumerate(addresses):
        data[plane] = address


def lies_at(frame: Frame, places: Places) -> bool:
    """Whether the frame that was made for an array is at its own addresses: not at those of a copy."""
    return tuple(frame.data[: len(places.addresses)]) == places.addresses


Thing = TypeVar("Thing")


class Ways(Generic[Thing]):
    """The ways of a filter, or its batches. They hold only as long as its engines and its chain: forget() them then."""

    def __init__(self) -> None:
        self._ways: Dict[Kind, Thing] = {}
        self.find = self._ways.get
        self.forget = self._ways.clear

    def add(self, kind: Kind, way: Thing) -> None:
        if len(self._ways) >= _MOST:
            self.forget()
        self._ways[kind] = way
