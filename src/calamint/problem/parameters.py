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
from typing import Any, final

import numpy as np

from calamint.arrays import Array
from calamint.checks import check_distinct, finite
from calamint.errors import ProblemError

Option = str | int | float | bool

# Beyond this many cells, neighbouring integers would be closer than the cube's floats can tell.
MOST_INTEGERS = 2**40


def _check_bounds(kind: str, low: object, high: object, log: object) -> tuple[float, float]:
    numbers = []
    for bound in (low, high):
        number = finite(bound)
        if number is None:
            raise ProblemError(f"{kind} bound {bound!r} is not a finite number: write a number.")
        numbers.append(number)
    if not isinstance(log, bool | np.bool_):
        raise ProblemError(f"log is {log!r}: write True or False.")
    if not numbers[0] < numbers[1]:
        raise ProblemError(
            f"{kind} bounds ({low!r}, {high!r}) are empty: write a lower bound below the upper,"
            " or leave out a parameter that cannot vary."
        )
    if log and numbers[0] <= 0:
        raise ProblemError(
            f"{kind} lower bound {low!r} cannot be on a log scale:"
            " write a positive bound, or leave out log."
        )
    return numbers[0], numbers[1]


@final
@dataclass(frozen=True)
class Real:
    """A real number.

    Args:
        low: The lower bound, included.
        high: The upper bound, included.
        log: Whether it is spaced by ratio.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        low, high = _check_bounds("Real", self.low, self.high, self.log)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "log", bool(self.log))
        if not math.isfinite(high - low) or (self.log and not math.log(low) < math.log(high)):
            raise ProblemError(
                f"Real bounds ({low!r}, {high!r}) are too far apart, or too close together:"
                " write bounds whose difference the computer can tell."
            )

    @property
    def width(self) -> int:
        return 1

    def validate(self, value: object, name: str, outside: bool = False) -> float:
        """The value as a float, if it lies within the bounds, or may be outside."""
        number = finite(value)
        if number is None:
            raise ProblemError(f"{name} is {value!r}: write a number.")
        if outside and not (self.log and number <= 0):
            return number
        if not self.low <= number <= self.high:
            raise ProblemError(
                f"{name} is {value!r}: write a number from {self.low!r} to {self.high!r}."
            )
        return number

    def encode(self, value: float) -> list[float]:
        """The coordinates of a value: in the unit cube, if it lies within the bounds."""
        if value in (self.low, self.high):
            return [float(value == self.high)]
        if self.log:
            left, right = math.log(self.low), math.log(self.high)
            share = (math.log(value) - left) / (right - left)
        else:
            share = (value - self.low) / (self.high - self.low)
        return [min(max(share, 0.0), 1.0) if self.low < value < self.high else share]

    def decode(self, point: Sequence[float]) -> float:
        """The value that coordinates of the unit cube stand for."""
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
        """Coordinates (..., width), each moved to those of the value that it stands for."""
        return points


@final
@dataclass(frozen=True)
class Integer:
    """A whole number.

    On a linear scale all values own equal shares of the axis; on a log scale value i owns the
    logarithm of [i − ½, i + ½], so that equal ratios have equal shares.

    Args:
        low: The lower bound, included.
        high: The upper bound, included.
        log: Whether it is spaced by ratio.
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
        if max(self.high - self.low, self.high if self.log else 0) > MOST_INTEGERS:
            raise ProblemError(
                f"Integer bounds ({self.low!r}, {self.high!r}) are too wide to tell values apart:"
                " write Real with the same bounds and round."
            )

    @property
    def width(self) -> int:
        return 1

    def validate(self, value: object, name: str, outside: bool = False) -> int:
        """The value as an int, if it is whole and lies within the bounds, or may be outside."""
        number = finite(value)
        whole = number is not None and (isinstance(value, Integral) or number.is_integer())
        if whole and outside and not (self.log and number < 1):  # type: ignore[operator]
            return int(value)  # type: ignore[call-overload]
        if not whole or not self.low <= value <= self.high:  # type: ignore[operator]
            raise ProblemError(
                f"{name} is {value!r}: write a whole number from {self.low!r} to {self.high!r}."
            )
        return int(value)  # type: ignore[call-overload]

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
        return np.clip(cell, 0, count - 1)

    def _centres(self, cells: Array) -> Array:
        if self.log:
            left, right = self._ends()
            return (np.log(self.low + cells) - left) / (right - left)
        return (cells + 0.5) / (self.high - self.low + 1)

    def encode(self, value: int) -> list[float]:
        """The coordinates of a value: in the unit cube, if it lies within the bounds."""
        return self._centres(np.array([value - self.low], dtype=float)).tolist()

    def decode(self, point: Sequence[float]) -> int:
        """The value that coordinates of the unit cube stand for."""
        return self.low + int(self._cells(np.asarray(point, dtype=float))[0])

    def snap(self, points: Array) -> Array:
        """Coordinates (..., width), each moved to those of the value that it stands for."""
        return self._centres(self._cells(points))


@final
@dataclass(frozen=True, init=False, eq=False)
class Choice:
    """One of two or more options, with no order between them.

    Args:
        *options: Texts, numbers, True or False.
        former: Options that were measured, and are not suggested any more.
    """

    options: tuple[Option, ...]
    former: tuple[Option, ...]

    def __init__(self, *options: Option, former: Sequence[Option] = ()) -> None:
        plain = tuple(_plain(option) for option in options)
        dropped = tuple(_plain(option) for option in former)
        for option in plain + dropped:
            if type(option) not in (str, int, float, bool) or option != option:
                raise ProblemError(
                    f"Choice option {option!r} cannot be written in a spec:"
                    " write a text, a number, True or False."
                )
        if not plain or len(plain + dropped) < 2:
            raise ProblemError(
                f"Choice has the options {options!r}: write at least two,"
                " such as Choice('relu', 'sigmoid')."
            )
        check_distinct([_OptionKey(option) for option in plain + dropped], "Choice")
        object.__setattr__(self, "options", plain)
        object.__setattr__(self, "former", dropped)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self._keys() == other._keys()

    def __hash__(self) -> int:
        return hash((self.options, self.former))

    def _keys(self) -> tuple[list["_OptionKey"], list["_OptionKey"]]:
        options, former = map(_OptionKey, self.options), map(_OptionKey, self.former)
        return list(options), list(former)

    def __repr__(self) -> str:
        former = f", former={list(self.former)!r}" if self.former else ""
        return f"Choice({', '.join(map(repr, self.options))}{former})"

    @property
    def width(self) -> int:
        return len(self.options) + len(self.former)

    def validate(self, value: object, name: str, outside: bool = False) -> Option:
        """The option that equals the value; with `outside` it may be a former one."""
        plain = _plain(value)
        for option in self.options + (self.former if outside else ()):
            if type(plain) in (str, int, float, bool) and _OptionKey(option) == _OptionKey(plain):
                return option
        raise ProblemError(
            f"{name} is {value!r}: write one of {', '.join(map(repr, self.options))}."
        )

    def encode(self, value: Option) -> list[float]:
        """The coordinates of a value in the unit cube."""
        key = _OptionKey(value)
        return [float(_OptionKey(option) == key) for option in self.options + self.former]

    def decode(self, point: Sequence[float]) -> Option:
        """The value that coordinates of the unit cube stand for."""
        return self.options[int(np.argmax(point[: len(self.options)]))]

    def snap(self, points: Array) -> Array:
        """Coordinates (..., width), each moved to those of the value that it stands for."""
        return np.eye(self.width)[np.argmax(points[..., : len(self.options)], axis=-1)]


def _plain(value: object) -> Any:
    """Python's own value in place of NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


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
