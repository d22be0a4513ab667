"""Checks that all rooms share: numbers and names, and what is said of those that are refused."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from numbers import Real as RealNumber

import numpy as np

from calamint.errors import ProblemError


def finite(value: object) -> float | None:
    """A real number of any type as a float, or None if it is not one, or not finite."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, RealNumber) or isinstance(value, bool | np.bool_):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def check_integer(value: object, name: str, lowest: int) -> int:
    """A whole number of any type as an int; `name` is what the error calls it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < lowest:
        raise ProblemError(f"{name} is {value!r}: write a whole number of at least {lowest}.")
    return int(value)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint to end a sentence with: the closest known name, or the list of them."""
    names = list(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"write one of {', '.join(map(repr, names))}." if names else "there are none."


# Words that float() reads as numbers would make "inf <= x" ambiguous.
_NUMBER_WORDS = {"inf", "infinity", "nan"}


def check_name(name: object, field: str) -> str:
    """Return `name` if it can serve as a name in specs, limits and table columns."""
    if isinstance(name, str) and name.lower() in _NUMBER_WORDS:
        raise ProblemError(f"{field} is named {name!r}, which reads as a number: write another.")
    if not isinstance(name, str) or not name.isidentifier():
        raise ProblemError(
            f"{field} is named {name!r}: write letters, digits and underscores,"
            " beginning with a letter, such as 'latency_ms'."
        )
    if len(name.encode()) > 200:
        raise ProblemError(f"{field} has a name of {len(name.encode())} bytes: write at most 200.")
    return name


def check_distinct(names: Iterable[object], field: str) -> None:
    """Refuse the first name that occurs twice."""
    seen: list[object] = []
    for name in names:
        if name in seen:
            raise ProblemError(f"{field} contains {name!r} twice: write it once.")
        seen.append(name)


def shown(value: object, most: int = 200) -> str:
    """A value in a sentence, however long or strange it is."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}..."
