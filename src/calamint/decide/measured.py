"""What was measured at each input, joined over tasks and averaged over replicates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from calamint.arrays import Array
from calamint.decide.records import Record
from calamint.problem import Params, Problem

Key = tuple[Any, ...]


@final
@dataclass(frozen=True)
class MeasuredInput:
    """All measurements at one input.

    Attributes:
        values: The average of each function that was measured, and the value of known ones.
        counts: How often each was measured.
    """

    params: Params
    point: Array
    values: dict[str, float]
    counts: dict[str, int]

    def missing(self, problem: Problem) -> list[str]:
        """Functions that were not measured here."""
        return [name for name in problem.measured if name not in self.values]

    def violates(self, problem: Problem) -> bool:
        """Whether a limit was measured and not met."""
        return any(
            limit.name in self.values and not limit.met(self.values[limit.name])
            for limit in problem.constraints
        )

    def confirmed(self, problem: Problem) -> bool:
        """Whether every function was measured and every limit met."""
        return not self.missing(problem) and not self.violates(problem)


def input_key(params: Params) -> Key:
    """What makes two inputs the same."""
    return tuple(params.items())


def measured_inputs(problem: Problem, history: Sequence[Record]) -> dict[Key, MeasuredInput]:
    """Every measured input, in the order of its first measurement."""
    records: dict[Key, list[Record]] = {}
    for record in history:
        records.setdefault(input_key(record.params), []).append(record)
    joined = {}
    for key, same in records.items():
        found: dict[str, list[float]] = {}
        for record in same:
            for name, value in record.values.items():
                found.setdefault(name, []).append(value)
        values = {name: float(np.mean(each)) for name, each in found.items()}
        first = same[0]
        values |= {name: float(known(first.params)) for name, known in problem.known.items()}
        counts = {name: len(each) for name, each in found.items()}
        joined[key] = MeasuredInput(first.params, first.point, values, counts)
    return joined
