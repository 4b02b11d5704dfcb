"""What a filter has found out about frames and targets of a layout, so that the next ones cost little more than the
call of the library."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

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


def _put(frame: Frame, addresses: Tuple[int, ...]) -> None:
    data = frame.data
    for plane, address in enumerate(addresses):
        data[plane] = address


def lies_at(frame: Frame, places: Places) -> bool:
    """Whether the frame that was made for an array is at its own addresses: not at those of a copy."""
    return tuple(frame.data[: len(places.addresses)]) == places.addresses


class Ways:
    """The ways of a filter. They hold only as long as its engines and its chain: forget() them then."""

    def __init__(self) -> None:
        self._ways: Dict[Kind, Way] = {}
        self.find = self._ways.get
        self.forget = self._ways.clear

    def add(self, kind: Kind, way: Way) -> None:
        if len(self._ways) >= _MOST:
            self.forget()
        self._ways[kind] = way
