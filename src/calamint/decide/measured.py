"""What was measured at each input, joined over tasks and averaged over replicates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from calamint.arrays import Array
from calamint.decide.records import Record, within_bounds
from calamint.problem import Params, Problem

Key = tuple[Any, ...]


@final
@dataclass(frozen=True)
class MeasuredInput:
    """All measurements at one input.

    Attributes:
        values: The average of each function that was measured, and the value of known ones.
        counts: How often each was measured.
        left_out: Functions that a task should have measured, and did not.
    """

    params: Params
    point: Array
    values: dict[str, float]
    counts: dict[str, int]
    left_out: frozenset[str]

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
    """What makes two inputs the same; the options 1 and True are not."""
    return tuple((name, type(value), value) for name, value in params.items())


def measured_inputs(problem: Problem, history: Sequence[Record]) -> dict[Key, MeasuredInput]:
    """Every measured input within the bounds, in the order of its first measurement."""
    records: dict[Key, list[Record]] = {}
    for record in within_bounds(problem.space, history):
        records.setdefault(input_key(record.params), []).append(record)
    joined = {}
    for key, same in records.items():
        found: dict[str, list[Record]] = {}
        for record in same:
            for name in record.values:
                found.setdefault(name, []).append(record)
        values = {name: _average(name, each) for name, each in found.items()}
        first = same[0]
        values |= {name: float(known(first.params)) for name, known in problem.known.items()}
        counts = {name: len(each) for name, each in found.items()}
        left_out = {name for record in same for name in record.left_out}
        joined[key] = MeasuredInput(
            first.params, first.point, values, counts, frozenset(left_out - set(values))
        )
    return joined


def _average(name: str, records: Sequence[Record]) -> float:
    """Weighted by precision, if every standard error is known."""
    values = np.array([record.values[name] for record in records])
    sem = np.array([record.sem.get(name, 0.0) for record in records])
    return float(np.average(values, weights=(sem.min() / sem) ** 2 if np.all(sem > 0) else None))
