"""The settings of an optimiser: what is allowed, and a sentence for what is not."""

import math
from typing import Literal

from calamint.acquire import ACQUISITIONS, Acquisition
from calamint.problem import Problem, ProblemError
from calamint.problem.errors import nearest
from calamint.problem.parameters import finite

Rationality = float | Literal["batch"]


def named_acquisition(acquisition: str | Acquisition) -> Acquisition:
    """An acquisition by name, or as it is."""
    if isinstance(acquisition, str):
        if acquisition not in ACQUISITIONS:
            raise ProblemError(
                f"acquisition is {acquisition!r}: {nearest(acquisition, ACQUISITIONS)}"
            )
        return ACQUISITIONS[acquisition]()
    if not isinstance(acquisition, Acquisition):
        raise ProblemError(
            f"acquisition is {acquisition!r}: write one of {', '.join(map(repr, ACQUISITIONS))}."
        )
    return acquisition


def measures_all(problem: Problem, task: str) -> bool:
    return set(problem.tasks[task].measures) == set(problem.measured)


def read_acquisition(acquisition: str | Acquisition, problem: Problem) -> Acquisition:
    """An acquisition by name or as it is, if it can value the problem's tasks."""
    acquisition = named_acquisition(acquisition)
    acquisition.check(problem)
    parts = [task for task in problem.tasks if not measures_all(problem, task)]
    if parts and not acquisition.separable:
        able = [repr(name) for name, kind in ACQUISITIONS.items() if kind.separable]
        raise ProblemError(
            f"acquisition is {acquisition.name!r}, which cannot value task {parts[0]!r} that"
            f" measures only some functions: write one of {', '.join(able)},"
            " or couple=True to measure everything at once."
        )
    return acquisition


def read_rationality(rationality: object) -> Rationality:
    if rationality == "batch":
        return "batch"
    if isinstance(rationality, float) and rationality == math.inf:
        return math.inf
    number = finite(rationality)
    if number is None or number < 0:
        raise ProblemError(
            f"rationality is {rationality!r}: write a number that is not negative, math.inf for"
            " full updates only, or 'batch'."
        )
    return number


def read_delta(delta: float) -> float:
    number = finite(delta)
    if number is None or not 0 < number < 1:
        raise ProblemError(f"delta is {delta!r}: write a number between 0 and 1.")
    return number
