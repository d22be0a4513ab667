"""What a job is expected to cost: a number, a function of the parameters, or learnt durations."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.model.data import Data
from calamint.model.duration import DurationModel
from calamint.model.known import called, central_differences
from calamint.problem import Problem, ProblemError, Space
from calamint.problem.parameters import Array, finite

# Seconds; no job is faster, and no duration is believed to be shorter.
SHORTEST = 1e-3
_STEP = 1e-4


class Price(ABC):
    """The cost of one task at any input of the cube."""

    @abstractmethod
    def at(self, x: Array) -> Array:
        """(n, D) -> (n,)"""

    @abstractmethod
    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""


@final
@dataclass(frozen=True)
class Fixed(Price):
    cost: float

    def at(self, x: Array) -> Array:
        return np.full(len(x), self.cost)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.at(x), np.zeros(x.shape)


@final
@dataclass(frozen=True)
class Computed(Price):
    """A function of the parameters, with gradients by central differences inside the cube."""

    task: str
    problem: Problem

    def at(self, x: Array) -> Array:
        return np.array([self._cost(point) for point in self.problem.space.snap(x)])

    def _cost(self, point: Array) -> float:
        function = self.problem.tasks[self.task].cost
        assert callable(function)
        params = self.problem.space.decode(point)
        title = f"the cost of task {self.task!r} at {params}"
        raw = called(function, params, title)
        cost = finite(raw)
        if cost is None or cost <= 0:
            raise ProblemError(f"{title} is {raw!r}: write one that returns positive numbers.")
        return cost

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.at(x), central_differences(self.at, self.problem.space, x, _STEP)


@final
@dataclass(frozen=True)
class Learnt(Price):
    """The median duration that finished jobs let expect, in seconds."""

    model: DurationModel
    space: Space

    def at(self, x: Array) -> Array:
        return np.maximum(np.exp(self.model.log_seconds(self.space.snap(x))), SHORTEST)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        logs, slopes = self.model.log_seconds_gradient(self.space.snap(x))
        seconds = np.exp(logs)
        moving = (seconds > SHORTEST)[:, None] & self.space.continuous
        return np.maximum(seconds, SHORTEST), np.where(moving, seconds[:, None] * slopes, 0.0)


def check_costs(problem: Problem) -> None:
    """Refuse cost functions that do not return positive numbers."""
    inside = np.random.default_rng(0).random((16, problem.space.dimension))
    x = np.vstack([inside, np.round(inside), np.zeros_like(inside[:1]), np.ones_like(inside[:1])])
    for name, task in problem.tasks.items():
        if callable(task.cost):
            Computed(name, problem).at(x)


def price_of(
    task: str, problem: Problem, durations: Mapping[str, Data], rng: np.random.Generator
) -> Price:
    """`durations` holds log seconds of finished jobs, by task."""
    cost = problem.tasks[task].cost
    if callable(cost):
        return Computed(task, problem)
    if cost == "learn":
        return Learnt(DurationModel.of(durations[task], problem.space, rng), problem.space)
    return Fixed(float(cost))


def updated(made: Mapping[str, Price], durations: Mapping[str, Data]) -> dict[str, Price]:
    """The same prices, learnt ones with the durations of jobs that have finished since."""
    return {
        name: Learnt(price.model.extended(durations[name]), price.space)
        if isinstance(price, Learnt)
        else price
        for name, price in made.items()
    }
