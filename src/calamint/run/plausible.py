"""Noticing values that were perhaps mistyped."""

from collections.abc import Iterable, Mapping
from typing import Any

from calamint.checks import finite
from calamint.decide import Record

_FEWEST = 5


def far_outside(history: Iterable[Record], values: Mapping[str, Any]) -> list[str]:
    """A sentence for each value that is further outside of what was seen than that is wide."""
    records = list(history)
    found = []
    for name, value in values.items() if isinstance(values, Mapping) else ():
        seen = [record.values[name] for record in records if name in record.values]
        number = finite(value[0] if isinstance(value, tuple | list) and value else value)
        if number is None or len(set(seen)) < _FEWEST:
            continue
        low, high = min(seen), max(seen)
        if not 2 * low - high <= number <= 2 * high - low:
            found.append(
                f"{name} = {number:.6g} is far outside what was seen ({low:.6g} to {high:.6g})."
            )
    return found
