"""The stages that chains are made of, from the library's own tables."""

from __future__ import annotations

import math
import textwrap
from ctypes import byref
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from ._library import OK, OptionInfo, StageInfo, filter_library, text_of
from .errors import UsageError

_TYPES = ("real", "int", "choice", "text")


@dataclass(frozen=True)
class Option:
    """One option of a stage."""

    name: str
    type: str  # "real", "int", "choice" or "text"
    unit: str  # "" for a plain number; of a text what it is
    min: Optional[float]  # of numbers, inclusive; None: no bound
    max: Optional[float]
    choices: Tuple[str, ...]
    default: Union[float, int, str, None]  # None: required, or derived, or no text
    derived: Optional[str]  # how the default follows from other options
    required: bool
    many: bool  # it takes all values that have no name
    help: str

    @property
    def values(self) -> str:
        """What it takes, in words: "0.1 .. 250 pixels"."""
        if self.choices:
            return " | ".join(self.choices)
        if self.type == "text":
            return self.unit or "text"
        low, high = ("" if bound is None else f"{bound:g}" for bound in (self.min, self.max))
        return f"{low} .. {high} {self.unit}".rstrip()

    def __str__(self) -> str:
        default = "required" if self.required else f"default {self.derived or self.default}"
        if not self.required and self.derived is None and self.default is None:
            default = "optional"
        return f"{self.name}: {self.values}, {default}\n    {self.help}"


@dataclass(frozen=True)
class Stage:
    """A stage of chains. Its options come in the order of values without names."""

    name: str
    summary: str
    formula: str
    source: Optional[str]  # literature
    options: Tuple[Option, ...]
    alias: Optional[str]  # a former name, which chains may use

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self._described())

    def _described(self) -> str:
        """The stage as help() and documents show it."""
        names = ":".join(o.name if o.required else f"[{o.name}]" for o in self.options)
        lines = [f"{self.name}{'=' if names else ''}{names}: {self.summary}.", "", *textwrap.wrap(self.formula, 90)]
        if self.source:
            lines += ["", *textwrap.wrap(f"Source: {self.source}", 90)]
        if self.options:
            lines += ["", "Options:"]
        return "\n".join(lines + [f"  {line}" for option in self.options for line in str(option).splitlines()])

    def option(self, name: str) -> Option:
        """The option of that name. UsageError names the others."""
        for option in self.options:
            if option.name == name:
                return option
        known = ", ".join(option.name for option in self.options) or "none"
        raise UsageError(f"{self.name} has no option {name!r}, but: {known}")

    def __repr__(self) -> str:
        return f"sluice.stage({self.name!r})"


def _bound(value: float, of_numbers: bool) -> Optional[float]:
    return value if of_numbers and math.isfinite(value) else None


def _default(info: OptionInfo, choices: Tuple[str, ...]) -> Union[float, int, str, None]:
    if info.required or info.derived is not None or info.type == 3 or math.isnan(info.initial):
        return None
    if choices:
        return choices[int(info.initial)]
    return int(info.initial) if info.type == 1 else float(info.initial)


def _option(info: OptionInfo) -> Option:
    choices = tuple(text_of(info.choices).split("|")) if info.choices else ()
    numbers = info.type < 2
    return Option(name=text_of(info.name), type=_TYPES[info.type], unit=text_of(info.unit),
                  min=_bound(info.min, numbers), max=_bound(info.max, numbers), choices=choices,
                  default=_default(info, choices), required=info.required, many=info.many,
                  derived=None if info.derived is None else text_of(info.derived),
                  help=text_of(info.help))


def _stage(index: int, info: StageInfo) -> Stage:
    options: List[Option] = []
    about = OptionInfo()
    while filter_library().sluice_stage_option(index, len(options), byref(about)) == OK:
        options.append(_option(about))
    return Stage(name=text_of(info.name), summary=text_of(info.summary), formula=text_of(info.formula),
                 source=None if info.source is None else text_of(info.source), options=tuple(options),
                 alias=None if info.alias is None else text_of(info.alias))


def read_stages() -> Tuple[Stage, ...]:
    """Every stage, in the order of the help."""
    stages: List[Stage] = []
    info = StageInfo()
    while filter_library().sluice_stage(len(stages), byref(info)) == OK:
        stages.append(_stage(len(stages), info))
    return tuple(stages)
