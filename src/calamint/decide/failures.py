"""Jobs that fail: where each task works is learnt from successes and failures.

For every task whose failures are modelled and that has failed, there is one more constraint,
measured as pass or fail by that task alone: "the task works here". It is a constraint like any
other for drawing solutions and for recommending, and a task that is likely to fail is worth less
in proportion.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import ndtr

from calamint.arrays import Array
from calamint.decide.observations import Observations
from calamint.model import Data, FunctionSurrogate, log_normal_density, probit_score
from calamint.problem import Constraint, Problem

_LEAST_CHANCE = 0.01  # no region is given up for good


@final
@dataclass(frozen=True)
class ModelledProblem:
    """What is modelled: the problem as it was stated, and that its tasks work.

    stated   the problem of the user
    problem  the same with a crash constraint for every task that has failed
    crashes  task -> the name of its crash constraint
    data     what was measured of every function, and outcomes of every crash constraint
    """

    stated: Problem
    problem: Problem
    crashes: Mapping[str, str]
    data: Mapping[str, Data]


def modelled(problem: Problem, observations: Observations) -> ModelledProblem:
    """The problem with "it works" as constraints, measured by the tasks themselves."""
    crashes = {
        task: _name(problem, task)
        for task, data in observations.outcomes.items()
        if np.any(data.values < 0.5)
    }
    if not crashes:
        return ModelledProblem(problem, problem, {}, observations.data)
    tasks = {
        name: replace(task, measures=(*task.measures, crashes[name])) if name in crashes else task
        for name, task in problem.tasks.items()
    }
    works = [Constraint(name, binary=True) for name in crashes.values()]
    extended = problem.changed(constraints=[*problem.constraints, *works], tasks=tasks)
    outcomes = {name: observations.outcomes[task] for task, name in crashes.items()}
    return ModelledProblem(problem, extended, crashes, {**observations.data, **outcomes})


def _name(problem: Problem, task: str) -> str:
    name = f"{task}_works"
    while name in problem.functions or name in problem.space.parameters:
        name += "_"
    return name


@final
@dataclass(frozen=True)
class Chance:
    """How likely a task is to work at any input of the cube."""

    function: FunctionSurrogate

    def at(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        return np.maximum(self.function.mixture(x)[0], _LEAST_CHANCE)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""
        mean, variance, mean_gradient, variance_gradient = (
            self.function.posterior.mean_variance_gradient(x)
        )
        t, t_mean, t_variance = probit_score(mean, variance)
        chance = ndtr(t).mean(0)
        derivative = np.exp(log_normal_density(t))[..., None] * (
            mean_gradient * t_mean[..., None] + variance_gradient * t_variance[..., None]
        )
        gradient = np.where((chance > _LEAST_CHANCE)[:, None], derivative.mean(0), 0.0)
        return np.maximum(chance, _LEAST_CHANCE), gradient
