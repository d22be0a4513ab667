"""Reading what a measurement reported: numbers, or numbers with their standard errors."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from calamint.checks import did_you_mean, finite, shown
from calamint.errors import ResultError

Value = float | tuple[float, float]


def read_values(
    values: Mapping[str, Any], expected: Iterable[str], binary: Collection[str] = ()
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """name -> (value, noise variance or NaN), and the names whose measurement failed.

    Not all functions need to be there. NaN, infinity and None say that a measurement failed.
    Outcomes of `binary` functions are 1 and 0.
    """
    names = list(expected)
    kinds = {name: "True" if name in binary else "0.5" for name in names}
    example = "{" + ", ".join(f"{name!r}: {kinds[name]}" for name in names[:2]) + "}"
    if not isinstance(values, Mapping):
        raise ResultError(f"values is {shown(values)}: write a dict, such as {example}.")
    for name in values:
        if name not in names:
            raise ResultError(
                f"values has {name!r}, which is not measured here: {did_you_mean(str(name), names)}"
            )
    if not values:
        raise ResultError(f"values is empty: write at least one, such as {example}.")
    broken = [name for name, value in values.items() if _failed(value)]
    read = {
        name: _parse_outcome(name, value) if name in binary else _read(name, value)
        for name, value in values.items()
        if name not in broken
    }
    return read, broken


def parse_seconds(seconds: object) -> float | None:
    """How long a job took, if that was said."""
    took = finite(seconds)
    if seconds is not None and (took is None or took < 0):
        raise ResultError(f"seconds is {seconds!r}: write a number that is not negative.")
    return took


def _failed(value: object) -> bool:
    if isinstance(value, tuple | list) and len(value) == 2:
        value = value[0]
    return value is None or (
        isinstance(value, float | np.floating) and not math.isfinite(float(value))
    )


def _parse_outcome(name: str, value: object) -> tuple[float, float]:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | float) and value in (0, 1)):
        return float(value), math.nan
    raise ResultError(
        f"values[{name!r}] is {shown(value)}, and {name!r} passes or fails: write True or False."
    )


def _read(name: str, value: object) -> tuple[float, float]:
    remedy = "write a number, or (value, standard_error)"
    error: object = None
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ResultError(f"values[{name!r}] is {shown(value)}: {remedy}.")
        value, error = value
    number = finite(value)
    if number is None:
        raise ResultError(
            f"values[{name!r}] is {shown(value)}: {remedy}; if the measurement failed, call fail."
        )
    if error is None:
        return number, math.nan
    std = finite(error)
    if std is None or std < 0 or not math.isfinite(std * std):
        raise ResultError(
            f"values[{name!r}] has the standard error {shown(error)}:"
            " write a number that is not negative, nor too large to square."
        )
    return number, std**2
