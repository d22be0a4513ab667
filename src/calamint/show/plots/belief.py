"""What is believed over the space: slices along a parameter, and contours over two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from calamint.arrays import Array
from calamint.decide import short
from calamint.model import feasibility
from calamint.problem import Params, Problem
from calamint.show.plots.plot import Control
from calamint.show.plots.source import Source
from calamint.show.plots.style import grid_of, label, thinned

_LEVELS = np.array([0.025, 0.5, 0.975])
SLIDER = 5
MARKED = 100


@final
@dataclass(frozen=True)
class Beliefs:
    """What is believed at n inputs.

    Attributes:
        quantiles: (n, 3) of each function: 2.5, 50 and 97.5 %.
        feasible: (n,) the probability that all limits are met.
        gains: (n,) bits that measuring each function is expected to yield.
    """

    quantiles: Mapping[str, Array]
    feasible: Array
    gains: Mapping[str, Array]

    @staticmethod
    def at(source: Source, inputs: Sequence[Params]) -> "Beliefs":
        query = source.query
        points = source.problem.space.encode_all(inputs)
        return Beliefs(
            {
                name: function.quantiles(points, _LEVELS)
                for name, function in query.surrogate.functions.items()
            },
            feasibility.probability(query.surrogate, points),
            query.gains(list(inputs)),
        )

    def part(self, start: int, stop: int) -> "Beliefs":
        rows = slice(start, stop)
        return Beliefs(
            {name: each[rows] for name, each in self.quantiles.items()},
            self.feasible[rows],
            {name: each[rows] for name, each in self.gains.items()},
        )


def reference_of(source: Source, at: Params | None) -> tuple[Params, str]:
    """Where slices cross: what the user wants, or the recommendation, in words."""
    if at is not None:
        return source.problem.space.validate(at), "the given input"
    if source.history_is_empty:
        middle = source.problem.space.snap(np.full(source.problem.space.dimension, 0.5))
        return source.problem.space.decode(middle), "the middle of the space"
    return source.recommendation.params, "the recommended input"


def beliefs_for(source: Source, jobs: Mapping[Any, Sequence[Params]]) -> dict[Any, Beliefs]:
    """At all inputs at once, which is quicker."""
    inputs = [params for each in jobs.values() for params in each]
    every, found, start = Beliefs.at(source, inputs), {}, 0
    for key, each in jobs.items():
        found[key] = every.part(start, start + len(each))
        start += len(each)
    return found


def slider_values(problem: Problem, names: Sequence[str]) -> dict[str, list[Any]]:
    """The values of each parameter that a slider goes through; as many for each."""
    found = {}
    for name in names:
        values = thinned(grid_of(problem.space.parameters[name], SLIDER), SLIDER)
        found[name] = [values[min(index, len(values) - 1)] for index in range(SLIDER)]
    return found


def slider_controls(
    names: Sequence[str], shifts: Mapping[str, Sequence[Any]], by: int
) -> list[Control]:
    """Which other parameter to move, and a slider that moves it; `by` is the index of the first."""
    values = [[short(value) for value in shifts[name]] for name in names]
    return [
        Control("other parameter", ["all as said below", *names]),
        Control("at", [[""], *values], slider=True, by=by),
    ]


def in_words(params: Params) -> str:
    return ", ".join(f"{label(name)} = {label(short(value))}" for name, value in params.items())


def left_out(problem: Problem, names: Sequence[str]) -> str:
    if len(names) == len(problem.space.parameters):
        return ""
    return (
        f" {len(names)} of {len(problem.space.parameters)} parameters can be chosen: the most"
        " important ones, or those that were asked for."
    )
