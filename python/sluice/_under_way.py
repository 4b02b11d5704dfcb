"""What the library works on, counted by what it said."""

from __future__ import annotations

from collections import deque
from typing import Deque, Generic, Iterable, Iterator, List, Tuple, TypeVar

from ._library import OK

Thing = TypeVar("Thing")


class UnderWay(Generic[Thing]):
    """Things of the frames under way, the oldest first.

    KeyboardInterrupt comes between any two lines. So what the library has taken or given back is counted by what it
    said, whenever that is next asked for, and by one call that no signal divides: the second does nothing.

    Finalizers count, too, when the globals of modules may be gone: count() uses none.
    """

    _taken = [OK]

    def __init__(self) -> None:
        self._things: Deque[Thing] = deque()
        self._beginning: Tuple[List[int], Iterator[Thing]] = [], iter(())  # what the library said, and of what
        self._ending: Tuple[List[int], Iterator[None]] = [], iter(())  # what it said, and what removes one, once

    def begin(self, said: List[int], things: Iterable[Thing]) -> None:
        """They are under way as soon as the library has said so in `said`, which is empty. They live at least until
        it has answered."""
        self._beginning = said, iter(things)

    def end(self, said: List[int]) -> None:
        """The oldest is under way no more as soon as the library has said something in `said`, which is empty."""
        self._ending = said, map(self._things.__delitem__, (0,))

    def count(self) -> int:
        """How many there are."""
        said, things = self._beginning
        if said == self._taken:
            self._things.extend(things)
        told, removal = self._ending
        if told:
            list(removal)
        return len(self._things)

    @property
    def oldest(self) -> Thing:
        return self._things[0]

    def forget_refused(self) -> None:
        """Those that the library had no room for live until the next ones begin, or until this is called."""
        self._beginning = [], iter(())
