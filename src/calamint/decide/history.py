"""What was measured, as the records of finished jobs: which met their limits, which are best."""

import math
from collections.abc import Sequence

import numpy as np

from calamint.decide.answers import Record
from calamint.problem import Problem
from calamint.problem.parameters import Array


def met(problem: Problem, record: Record) -> bool:
    """Whether all limits were met when measured; a limit that was not measured is not met."""
    return all(
        constraint.met(record.values[constraint.name])
        if constraint.name in record.values
        else constraint.name in problem.known
        and constraint.met(problem.known[constraint.name](record.params))
        for constraint in problem.constraints
    )


def rank(problem: Problem, record: Record) -> tuple[bool, float]:
    """Smaller is better: first those that met their limits, then by objective."""
    name = problem.objective.name
    known = problem.known.get(name)
    value = record.values.get(name) if known is None else known(record.params)
    objective = math.inf if value is None else problem.objective.inward(value)
    return (not met(problem, record), objective)


def near_points(problem: Problem, history: Sequence[Record], most: int = 50) -> Array:
    """(k, D) measured inputs, the best and the newest first."""
    if not history:
        return np.empty((0, problem.space.dimension))
    ranked = sorted(range(len(history)), key=lambda index: rank(problem, history[index]))
    newest = range(len(history) - 1, -1, -1)
    order = dict.fromkeys(index for pair in zip(ranked, newest, strict=True) for index in pair)
    return np.array([history[index].point for index in list(order)[:most]])
