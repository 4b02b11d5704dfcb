"""What a filter has found out about frames and targets of a layout, so that the next ones cost little more than the
call of the library."""

from __future__ import annotations

from array import array
from ctypes import c_void_p, sizeof
from typing import Any, Callable, Dict, Generic, Iterable, List, Optional, Sequence, Tuple, TypeVar

from ._engine import Engine
from ._known import Layout, Places
from ._library import Frame
from ._objects import Objects, objects_of
from ._pictures import made_by

Kind = Tuple[Layout, Optional[Layout], bool]  # of the frame, of out= if given; whether frames come one at a time
NO_KIND: Kind = (), None, False  # of arrays that are not known: nothing is added for it
_MOST = 64  # ways, or batches, of a filter
# Structs of frames as words, as large as addresses: an array of them is copied, and written at equal distances, by one
# call each.
_WORD = next(code for code in "ILQ" if array(code).itemsize == sizeof(c_void_p))
_DATA, _SIZE = (size // sizeof(c_void_p) for size in (Frame.data.offset, sizeof(Frame)))


def words_of(frames: Iterable[Frame]) -> array[int]:
    return array(_WORD, b"".join(bytes(frame) for frame in frames))


class Template:
    """The struct of a frame, for others that differ from it in where their planes lie.

    Arrays that it makes are nobody else's: signal handlers and finalizers may filter, too.
    """

    def __init__(self, frame: Frame) -> None:
        self._words = words_of([frame])

    def frame(self) -> Frame:
        return Frame.from_buffer(self._words[:])

    def one(self, addresses: Tuple[int, ...]) -> array[int]:
        """The same as many() of one, in half the time."""
        words = self._words[:]
        words[_DATA] = addresses[0]
        if len(addresses) > 1:
            words[_DATA:_DATA + len(addresses)] = array(_WORD, addresses)
        return words

    def many(self, addresses: Sequence[Tuple[int, ...]]) -> array[int]:
        words = self._words * len(addresses)
        for plane in range(len(addresses[0])):
            words[_DATA + plane::_SIZE] = array(_WORD, [planes[plane] for planes in addresses])
        return words

    def row(self, address: int, step: int, count: int) -> array[int]:
        """Frames of one plane at equal distances."""
        words = self._words * count
        at = range(address, address + step * count, step) if step else [address] * count
        words[_DATA::_SIZE] = array(_WORD, at)
        return words


class Way:
    """Frames of one kind through one engine: everything but the addresses, pts and new arrays."""

    def __init__(self, engine: Engine, source: Frame, target: Frame, makers: List[Callable[[], Any]]) -> None:
        self.engine = engine
        self._source, self._target = Template(source), Template(target)
        self._makers = makers
        self._objects: List[Optional[Objects]] = []  # once it was asked for

    def new(self) -> Any:
        """A new result."""
        return made_by(self._makers)

    def objects(self, source: Any, target: Any) -> Optional[Objects]:
        """The faster way of frames like this one, where their type has one."""
        return self.objects_in_rows(source, target, (0, 0), 1, self.new if self._makers else None)

    def objects_in_rows(self, source: Any, target: Any, steps: Tuple[int, int], count: int,
                        new: Optional[Callable[[], Any]]) -> Optional[Objects]:
        """The same for an array of frames of one plane at equal distances."""
        if not self._objects:
            frames = self._source.frame(), self._target.frame()
            self._objects = [objects_of(self.engine, frames, steps, count, source, target, new)]
        return self._objects[0]

    def frames(self, source: Places, target: Places, pts: int) -> Tuple[Frame, Frame]:
        of_source, of_target = (Frame.from_buffer(template.one(places[0]))
                                for template, places in ((self._source, source), (self._target, target)))
        of_source.pts = pts
        return of_source, of_target

    def run(self, source: Places, target: Places) -> None:
        """One frame, alone."""
        addresses, _, stream = source
        self.engine.run(self._source.one(addresses), self._target.one(target[0]), 1, stream)

    def run_many(self, sources: Sequence[Tuple[int, ...]], targets: Sequence[Tuple[int, ...]], stream: int) -> None:
        """Frames whose planes lie there, in calls that Ctrl-C waits for."""
        most = self.engine.most
        for k in range(0, len(sources), most):
            some = sources[k:k + most]
            self.engine.run(self._source.many(some), self._target.many(targets[k:k + most]), len(some), stream)

    def run_rows(self, source: int, target: int, steps: Tuple[int, int], count: int, stream: int) -> None:
        """The same for frames of one plane at equal distances."""
        most = self.engine.most
        down, to = steps
        for k in range(0, count, most):
            some = min(count - k, most)
            self.engine.run(self._source.row(source + k * down, down, some),
                            self._target.row(target + k * to, to, some), some, stream)


class Batch:
    """Frames in one array and results in another: everything but where both arrays lie."""

    def __init__(self, way: Way, count: int, source_step: int, target_step: int,
                 make: Optional[Callable[[], Any]]) -> None:
        self.engine, self.make = way.engine, make  # a new array of results; None: they are given
        self._way, self._count = way, count
        self._steps = source_step, target_step  # bytes from frame to frame

    def run(self, source: Places, target: Places) -> None:
        """The arrays of now lie there."""
        (first,), _, stream = source
        self._way.run_rows(first, target[0][0], self._steps, self._count, stream)

    def objects(self, source: Any, target: Any) -> Optional[Objects]:
        """The faster way of arrays like these, where their type has one."""
        return self._way.objects_in_rows(source, target, self._steps, self._count, self.make)


def step_of(addresses: Sequence[int], base: int) -> Optional[int]:
    """Bytes from frame to frame, if all lie in the array at `base`: the first at its beginning, the others at equal
    distances. None: they do not, as arrays in an array of objects."""
    step = addresses[1] - addresses[0] if len(addresses) > 1 else 0
    equal = all(address == base + k * step for k, address in enumerate(addresses))
    return step if equal else None


def lies_at(frame: Frame, places: Places) -> bool:
    """Whether the frame that was made for an array is at its own addresses: not at those of a copy."""
    addresses = places[0]
    return tuple(frame.data[: len(addresses)]) == addresses


Thing = TypeVar("Thing")


class Ways(Generic[Thing]):
    """The ways of a filter, or its batches. They hold only as long as its engines and its chain: forget() them then."""

    def __init__(self) -> None:
        self._ways: Dict[Kind, Thing] = {}
        self.find = self._ways.get
        self.forget = self._ways.clear

    def add(self, kind: Kind, way: Thing) -> None:
        assert kind is not NO_KIND
        if len(self._ways) >= _MOST:
            self.forget()
        self._ways[kind] = way
