"""What a job is expected to cost: a number, a function of the parameters, or learnt durations."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.arrays import Array
from calamint.checks import finite
from calamint.errors import ProblemError
from calamint.model.data import Data
from calamint.model.hyperparameters import Prior
from calamint.model.kernels import KERNELS
from calamint.model.known_function import call_user_function, central_differences
from calamint.model.likelihood import GaussianLikelihood
from calamint.model.map_estimate import most_probable
from calamint.model.posterior import GPPosterior
from calamint.model.transforms import OutcomeTransform
from calamint.problem import Problem, Space

# Seconds; no job is faster, and no duration is predicted to be shorter.
SHORTEST = 1e-3
_STEP = 1e-4


class CostModel(ABC):
    """The cost of one task at any input of the cube."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """(n, D) -> (n,)"""

    @abstractmethod
    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""

    def extended(self, durations: Data) -> "CostModel":  # noqa: ARG002
        """The same, with the log seconds of jobs that have finished since."""
        return self


@final
@dataclass(frozen=True)
class FixedCost(CostModel):
    """A number."""

    cost: float

    def value(self, x: Array) -> Array:
        return np.full(len(x), self.cost)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.value(x), np.zeros(x.shape)


@final
@dataclass(frozen=True)
class ComputedCost(CostModel):
    """A function of the parameters, with gradients by central differences inside the cube."""

    task: str
    problem: Problem

    def value(self, x: Array) -> Array:
        return np.array([self._cost(point) for point in x])

    def _cost(self, point: Array) -> float:
        function = self.problem.tasks[self.task].cost
        assert callable(function)
        params = self.problem.space.decode(point)
        title = f"the cost of task {self.task!r} at {params}"
        raw = call_user_function(function, params, title)
        cost = finite(raw)
        if cost is None or cost <= 0:
            raise ProblemError(f"{title} is {raw!r}: write one that returns positive numbers.")
        return cost

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.value(x), central_differences(self.value, self.problem.space, x, _STEP)


@final
@dataclass(frozen=True)
class DurationModel(CostModel):
    """The median duration in seconds, by a Gaussian process on logarithms of durations, at the most
    probable hyper-parameters.

    Before any job of the task has finished, every job is expected to take one second.
    """

    posterior: GPPosterior
    transform: OutcomeTransform
    space: Space

    @staticmethod
    def of(durations: Data, space: Space, rng: np.random.Generator) -> "DurationModel":
        """durations  log seconds of finished jobs"""
        offset = float(np.mean(durations.values)) if len(durations) else 0.0
        # A factor of two is a usual spread; the amplitude is learnt from there.
        transform = OutcomeTransform(offset, float(np.log(2)))
        likelihood = GaussianLikelihood(
            KERNELS["matern52"], durations, transform, space.parameter_index
        )
        theta = most_probable(likelihood, Prior.standard(len(space)), rng)
        return DurationModel(likelihood.posterior(theta[None]), transform, space)

    def extended(self, durations: Data) -> "DurationModel":
        posterior = self.posterior
        for index in range(len(posterior.inputs), len(durations)):
            value = self.transform.to_model(durations.values[index : index + 1])
            posterior = posterior.append(durations.inputs[index], value, posterior.noise)
        return replace(self, posterior=posterior)

    def value(self, x: Array) -> Array:
        logs = self.transform.to_user(self.posterior.mean_variance(x)[0][0])
        return np.maximum(np.exp(logs), SHORTEST)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        mean, _, mean_gradient, _ = self.posterior.mean_variance_gradient(x)
        seconds = np.exp(self.transform.to_user(mean[0]))
        derivatives = self.transform.scale * mean_gradient[0]
        moving = (seconds > SHORTEST)[:, None] & self.space.continuous
        return np.maximum(seconds, SHORTEST), np.where(moving, seconds[:, None] * derivatives, 0.0)


def check_costs(problem: Problem) -> None:
    """Refuse cost functions that do not return positive numbers."""
    inside = np.random.default_rng(0).random((16, problem.space.dimension))
    x = np.vstack([inside, np.round(inside), np.zeros_like(inside[:1]), np.ones_like(inside[:1])])
    for name, task in problem.tasks.items():
        if callable(task.cost):
            ComputedCost(name, problem).value(problem.space.snap(x))


def cost_model(
    task: str, problem: Problem, durations: Mapping[str, Data], rng: np.random.Generator
) -> CostModel:
    """`durations` holds log seconds of finished jobs, by task."""
    cost = problem.tasks[task].cost
    if callable(cost):
        return ComputedCost(task, problem)
    if cost == "learn":
        return DurationModel.of(durations[task], problem.space, rng)
    return FixedCost(float(cost))
