"""Noticing that a finite space has nothing left to measure."""

import math
from collections.abc import Mapping

import numpy as np

from calamint.model import Data
from calamint.problem import Choice, Integer, Problem, Space

# Larger spaces are never measured completely.
_LARGEST = 100_000
# Repetitions that agree not by chance, even if few values are possible.
_ENOUGH = 3


def nothing_is_left(problem: Problem, data: Mapping[str, Data]) -> bool:
    """Whether every function is known at every input: measuring again has given the same."""
    size = space_size(problem.space)
    if size is None or problem.binary:  # an outcome may be another one next time
        return False
    return all(
        _is_known(each.take(np.flatnonzero(problem.space.contains(each.inputs))), size)
        for each in (data[name] for name in problem.measured)
    )


def _is_known(data: Data, size: int) -> bool:
    """Whether all inputs were measured, some again, and gave the same value every time."""
    if len(data) <= size or len(np.unique(data.inputs, axis=0)) < size:
        return False
    agree = len(data.without_exact_repetitions()) == size
    return agree and (data.is_exact or len(data) >= size + _ENOUGH)


def space_size(space: Space) -> int | None:
    """How many inputs there are; None if there is no end of them."""
    sizes = []
    for parameter in space.parameters.values():
        if isinstance(parameter, Choice):
            sizes.append(len(parameter.options))
        elif isinstance(parameter, Integer):
            sizes.append(int(parameter.high) - int(parameter.low) + 1)
        else:
            return None
    size = math.prod(sizes)
    return size if size <= _LARGEST else None
