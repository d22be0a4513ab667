"""What can be varied: reals, integers and choices, each with its own share of the unit cube.

A parameter occupies `width` columns of the cube: one for a number, one per option for a choice
(one-hot). `encode` gives the canonical point of a value; `decode` reads any point of the cube.
Numbers are decoded per cell: every integer owns an interval of its axis, every option the part of
the cube where its column is the largest, so that uniform points decode to uniform values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from numbers import Real as RealNumber
from typing import final

import numpy as np
from numpy.typing import NDArray

from calamint.problem.errors import ProblemError, check_distinct

Option = str | int | float | bool
Array = NDArray[np.float64]

# Beyond this many cells, neighbouring integers would be closer than the cube's floats can tell.
MOST_INTEGERS = 2**40


def _is_number(value: object) -> bool:
    return isinstance(value, RealNumber) and not isinstance(value, bool | np.bool_)


def _check_bounds(kind: str, low: object, high: object, log: object) -> None:
    for bound in (low, high):
        if not _is_number(bound) or not math.isfinite(bound):  # type: ignore[arg-type]
            raise ProblemError(f"{kind} bound {bound!r} is not a finite number: write a number.")
    if not isinstance(log, bool | np.bool_):
        raise ProblemError(f"log is {log!r}: write True or False.")


@final
@dataclass(frozen=True)
class Real:
    """A real number from `low` to `high`, both included; `log` spaces it by ratio."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_bounds("Real", self.low, self.high, self.log)
        if not self.low < self.high:
            raise ProblemError(
                f"Real bounds ({self.low!r}, {self.high!r}) are empty: write the lower bound first."
            )
        if self.log and self.low <= 0:
            raise ProblemError(
                f"Real lower bound {self.low!r} cannot be on a log scale:"
                " write a positive bound, or leave out log."
            )
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        object.__setattr__(self, "log", bool(self.log))
        if not math.isfinite(self.high - self.low):
            raise ProblemError(
                f"Real bounds ({self.low!r}, {self.high!r}) are too far apart:"
                " write bounds whose difference is a finite number."
            )

    @property
    def width(self) -> int:
        return 1

    def accept(self, value: object, name: str) -> float:
        """The value as a float, if it lies within the bounds."""
        if not _is_number(value) or math.isnan(value):  # type: ignore[arg-type]
            raise ProblemError(f"{name} is {value!r}: write a number.")
        number = float(value)  # type: ignore[arg-type]
        if not self.low <= number <= self.high:
            raise ProblemError(
                f"{name} is {value!r}: write a number from {self.low!r} to {self.high!r}."
            )
        return number

    def encode(self, value: float) -> list[float]:
        if value in (self.low, self.high):
            return [float(value == self.high)]
        if self.log:
            left, right = math.log(self.low), math.log(self.high)
            share = (math.log(value) - left) / (right - left)
        else:
            share = (value - self.low) / (self.high - self.low)
        return [min(max(share, 0.0), 1.0)]

    def decode(self, point: Sequence[float]) -> float:
        share = float(point[0])
        if share in (0.0, 1.0):
            return self.high if share else self.low
        if self.log:
            left, right = math.log(self.low), math.log(self.high)
            value = math.exp(left + share * (right - left))
        else:
            value = self.low + share * (self.high - self.low)
        return min(max(value, self.low), self.high)

    def snap(self, points: Array) -> Array:
        return points


@final
@dataclass(frozen=True)
class Integer:
    """A whole number from `low` to `high`, both included.

    On a linear scale all values own equal shares of the axis; on a `log` scale value i owns the
    logarithm of [i − ½, i + ½], so that equal ratios have equal shares.
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        _check_bounds("Integer", self.low, self.high, self.log)
        for bound in (self.low, self.high):
            if bound != int(bound):
                raise ProblemError(f"Integer bound {bound!r} is not whole: write a whole number.")
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))
        object.__setattr__(self, "log", bool(self.log))
        if not self.low < self.high:
            raise ProblemError(
                f"Integer bounds ({self.low!r}, {self.high!r}) are empty:"
                " write the lower bound first."
            )
        if self.log and self.low <= 0:
            raise ProblemError(
                f"Integer lower bound {self.low!r} cannot be on a log scale:"
                " write a positive bound, or leave out log."
            )
        if max(self.high - self.low, self.high if self.log else 0) > MOST_INTEGERS:
            raise ProblemError(
                f"Integer bounds ({self.low!r}, {self.high!r}) are too wide to tell values apart:"
                " write Real with the same bounds and round."
            )

    @property
    def width(self) -> int:
        return 1

    def accept(self, value: object, name: str) -> int:
        """The value as an int, if it is whole and lies within the bounds."""
        whole = _is_number(value) and (
            isinstance(value, Integral) or float(value).is_integer()  # type: ignore[arg-type]
        )
        if not whole or not self.low <= value <= self.high:  # type: ignore[operator]
            raise ProblemError(
                f"{name} is {value!r}: write a whole number from {self.low!r} to {self.high!r}."
            )
        return int(value)  # type: ignore[call-overload, no-any-return]

    def _ends(self) -> tuple[float, float]:
        return math.log(self.low - 0.5), math.log(self.high + 0.5)

    def _cells(self, share: Array) -> Array:
        """How many values lie below the one that owns each point of the axis."""
        count = self.high - self.low + 1
        if self.log:
            left, right = self._ends()
            cell = np.floor(np.exp(left + share * (right - left)) + 0.5) - self.low
        else:
            cell = np.floor(share * count)
        clipped: Array = np.clip(cell, 0, count - 1)
        return clipped

    def _centres(self, cells: Array) -> Array:
        if self.log:
            left, right = self._ends()
            centres: Array = (np.log(self.low + cells) - left) / (right - left)
            return centres
        return (cells + 0.5) / (self.high - self.low + 1)

    def encode(self, value: int) -> list[float]:
        return self._centres(np.array([value - self.low], dtype=float)).tolist()  # type: ignore[no-any-return]

    def decode(self, point: Sequence[float]) -> int:
        return self.low + int(self._cells(np.asarray(point, dtype=float))[0])

    def snap(self, points: Array) -> Array:
        return self._centres(self._cells(points))


@final
@dataclass(frozen=True, init=False)
class Choice:
    """One of two or more named options, with no order between them."""

    options: tuple[Option, ...]

    def __init__(self, *options: Option) -> None:
        for option in options:
            if not isinstance(option, str | int | float | bool) or option != option:
                raise ProblemError(
                    f"Choice option {option!r} cannot be written in a spec:"
                    " write a text, a number, True or False."
                )
        if len(options) < 2:
            raise ProblemError(
                f"Choice has the options {options!r}: write at least two,"
                " such as Choice('relu', 'sigmoid')."
            )
        check_distinct([_OptionKey(option) for option in options], "Choice")
        object.__setattr__(self, "options", options)

    def __repr__(self) -> str:
        return f"Choice({', '.join(map(repr, self.options))})"

    @property
    def width(self) -> int:
        return len(self.options)

    def accept(self, value: object, name: str) -> Option:
        """The option that equals the value."""
        if isinstance(value, np.generic):
            value = value.item()
        for option in self.options:
            if _OptionKey(option) == _OptionKey(value):
                return option
        raise ProblemError(
            f"{name} is {value!r}: write one of {', '.join(map(repr, self.options))}."
        )

    def encode(self, value: Option) -> list[float]:
        key = _OptionKey(value)
        return [1.0 if _OptionKey(option) == key else 0.0 for option in self.options]

    def decode(self, point: Sequence[float]) -> Option:
        return self.options[int(np.argmax(point))]

    def snap(self, points: Array) -> Array:
        snapped: Array = np.eye(self.width)[np.argmax(points, axis=-1)]
        return snapped


class _OptionKey:
    """An option compared as people do: 1 equals 1.0 but not True."""

    def __init__(self, option: object) -> None:
        self.option = option

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _OptionKey)
            and isinstance(self.option, bool) == isinstance(other.option, bool)
            and self.option == other.option
        )

    def __hash__(self) -> int:
        return hash(self.option)

    def __repr__(self) -> str:
        return repr(self.option)


Parameter = Real | Integer | Choice
