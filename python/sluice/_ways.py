"""What a filter has found out about frames and targets of a layout, so that the next ones cost little more than the
call of the library."""

from __future__ import annotations

from typing import Any, Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

from ._engine import Engine
from ._known import Layout, Places
from ._library import Frame
from ._pictures import made_by

Kind = Tuple[Layout, Optional[Layout], bool]  # of the frame, of out= if given; whether frames come one at a time
NO_KIND: Kind = (), None, False  # no way is of it
_MOST, _MOST_RUNS = 64, 8


class Way:
    """Frames of one kind through one engine: everything but the addresses, pts and new arrays. One thread at a time."""

    def __init__(self, engine: Engine, source: Frame, target: Frame, makers: List[Callable[[], Any]]) -> None:
        self.engine = engine
        self._alone = Run(engine, [source], [target])
        self._runs: Dict[int, Run] = {}  # of so many frames
        self._makers = makers

    def new(self) -> Any:
        """A new result."""
        return made_by(self._makers)

    def frames(self, source: Places, target: Places, pts: int) -> Tuple[Frame, Frame]:
        """For frames under way, which others follow."""
        self._alone.place([source], [target])
        of_source, of_target = (Frame.from_buffer_copy(frames[0]) for frames in self._alone.frames)
        of_source.pts = pts
        return of_source, of_target

    def run(self, source: Places, target: Places) -> None:
        """One frame, alone."""
        self._alone.place([source], [target])
        self._alone.run_one(source[2])

    def run_many(self, sources: Sequence[Places], targets: Sequence[Places]) -> None:
        """Of one stream, no more than engine.most."""
        count = len(sources)
        run = self._runs.get(count)
        if run is None:
            if len(self._runs) >= _MOST_RUNS:
                self._runs.clear()
            one, to = self._alone.frames
            run = self._runs[count] = Run(self.engine, [one[0]] * count, [to[0]] * count)
        run.place(sources, targets)
        run(sources[0][2])


class Batch:
    """Frames in one array and results in another, of layouts of their own, through one engine: everything but where
    both arrays lie. One thread at a time."""

    def __init__(self, engine: Engine, sources: Sequence[Frame], targets: Sequence[Frame], source: int, target: int,
                 make: Optional[Callable[[], Any]]) -> None:
        self.engine, self.make = engine, make  # a new array of results; None: they are given
        self._runs = [Run(engine, sources[k:k + engine.most], targets[k:k + engine.most])
                      for k in range(0, len(sources), engine.most)]
        self._at = source, target
        self._places = [[(data, data[0] - at) for run in self._runs for data in run.data[which]]
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
        self.data = [[frame.data for frame in some] for some in self.frames]  # the addresses of their planes

    def place(self, *both: Sequence[Places]) -> None:
        """Sources and targets lie there."""
        for some, places in zip(self.data, both):
            for data, place in zip(some, places):
                addresses = place[0]
                data[0] = addresses[0]
                if len(addresses) > 1:
                    data[1:len(addresses)] = addresses[1:]

    def run_one(self, stream: int) -> None:
        self._engine.run(*self.frames, stream)

    def __call__(self, stream: int) -> None:
        self._engine.run_many(*self.frames, self._count, stream)


def lies_at(frame: Frame, places: Places) -> bool:
    """Whether the frame that was made for an array is at its own addresses: not at those of a copy."""
    return tuple(frame.data[: len(places[0])]) == places[0]


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
