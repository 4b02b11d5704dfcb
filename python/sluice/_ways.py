"""What a filter has found out about frames and targets of a layout, so that the next ones cost little more than the
call of the library."""

from __future__ import annotations

from ctypes import sizeof
from struct import Struct
from typing import Any, Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

from ._engine import Engine
from ._known import Layout, Places
from ._library import Frame
from ._pictures import made_by

Kind = Tuple[Layout, Optional[Layout], bool]  # of the frame, of out= if given; whether frames come one at a time
NO_KIND: Kind = (), None, False  # of arrays that are not known: nothing is added for it
_MOST = 64  # ways, or batches, of a filter
_DATA, _SIZE = Frame.data.offset, sizeof(Frame)
_PACK = [Struct(f"{planes}P").pack_into for planes in range(5)]  # addresses of so many planes


class Template:
    """The struct of a frame, for others that differ from it in where their planes lie."""

    def __init__(self, frame: Frame) -> None:
        self._bytes = bytes(frame)

    def at(self, addresses: Sequence[Tuple[int, ...]]) -> Any:
        """An array of structs, nobody else's: signal handlers and finalizers may filter, too."""
        memory = bytearray(self._bytes * len(addresses))
        place = _DATA
        for planes in addresses:
            _PACK[len(planes)](memory, place, *planes)
            place += _SIZE
        return (Frame * len(addresses)).from_buffer(memory)

    def row(self, address: int, step: int, count: int) -> Any:
        """The same, of frames of one plane at equal distances."""
        memory, pack = bytearray(self._bytes * count), _PACK[1]
        for place in range(_DATA, _DATA + count * _SIZE, _SIZE):
            pack(memory, place, address)
            address += step
        return (Frame * count).from_buffer(memory)

    def one(self, addresses: Tuple[int, ...]) -> Frame:
        frame = Frame.from_buffer_copy(self._bytes)
        data = frame.data
        data[0] = addresses[0]
        if len(addresses) > 1:
            data[1:len(addresses)] = addresses[1:]
        return frame


class Way:
    """Frames of one kind through one engine: everything but the addresses, pts and new arrays."""

    def __init__(self, engine: Engine, source: Frame, target: Frame, makers: List[Callable[[], Any]]) -> None:
        self.engine = engine
        self._source, self._target = Template(source), Template(target)
        self._makers = makers

    def new(self) -> Any:
        """A new result."""
        return made_by(self._makers)

    def frames(self, source: Places, target: Places, pts: int) -> Tuple[Frame, Frame]:
        of_source, of_target = self._source.one(source.addresses), self._target.one(target.addresses)
        of_source.pts = pts
        return of_source, of_target

    def run(self, source: Places, target: Places) -> None:
        """One frame, alone."""
        self.engine.run(self._source.one(source.addresses), self._target.one(target.addresses), source.stream)

    def run_many(self, sources: Sequence[Tuple[int, ...]], targets: Sequence[Tuple[int, ...]], stream: int) -> None:
        """Frames whose planes lie there, in calls that Ctrl-C waits for."""
        most = self.engine.most
        for k in range(0, len(sources), most):
            some = sources[k:k + most]
            self.engine.run_many(self._source.at(some), self._target.at(targets[k:k + most]), len(some), stream)


    def run_rows(self, source: int, target: int, steps: Tuple[int, int], count: int, stream: int) -> None:
        """The same for frames of one plane at equal distances."""
        most = self.engine.most
        for k in range(0, count, most):
            some = min(count - k, most)
            sources = self._source.row(source + k * steps[0], steps[0], some)
            self.engine.run_many(sources, self._target.row(target + k * steps[1], steps[1], some), some, stream)


class Batch:
    """Frames in one array and results in another: everything but where both arrays lie."""

    def __init__(self, way: Way, count: int, source_step: int, target_step: int,
                 make: Optional[Callable[[], Any]]) -> None:
        self.engine, self.make = way.engine, make  # a new array of results; None: they are given
        self._way, self._count = way, count
        self._steps = source_step, target_step  # bytes from frame to frame

    def run(self, source: int, target: int, stream: int) -> None:
        """The arrays of now lie there."""
        self._way.run_rows(source, target, self._steps, self._count, stream)


def step_of(addresses: Sequence[int], base: int) -> Optional[int]:
    """Bytes from frame to frame, if all lie in the array at `base`: the first at its beginning, the others at equal
    distances. None: they do not, as arrays in an array of objects."""
    step = addresses[1] - addresses[0] if len(addresses) > 1 else 0
    equal = all(address == base + k * step for k, address in enumerate(addresses))
    return step if equal else None


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
        assert kind is not NO_KIND
        if len(self._ways) >= _MOST:
            self.forget()
        self._ways[kind] = way
