"""Modelling failures: where each task succeeds is learnt from its past jobs.

After the first failure of a task with `failures="model"`, a binary constraint "this task succeeds
here" is added, which only that task measures. It is treated like any other constraint when x* is
drawn and when an input is recommended. Besides, the score of a job is multiplied by its probability
of success.
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

# Scores stay positive, so that no region is excluded for ever; one per cent is as good as excluded
# until everything else is worth a hundredth.
_MIN_PROBABILITY = 0.01


@final
@dataclass(frozen=True)
class ModelledProblem:
    """The user's problem, extended by a success constraint for every task that has failed.

    Attributes:
        original: The user's problem.
        problem: The extended problem.
        success_constraints: The name of each failing task's success constraint.
        data: Measurements of every function, and outcomes (0 or 1) of every success constraint;
            repetitions that only say the same again are left out.
    """

    original: Problem
    problem: Problem
    success_constraints: Mapping[str, str]
    data: Mapping[str, Data]

    @property
    def measurements(self) -> int:
        """Of the function that has most."""
        return max((len(each) for each in self.data.values()), default=0)


def add_success_constraints(problem: Problem, observations: Observations) -> ModelledProblem:
    """Add a success constraint for every task that has failed."""
    measured = {
        name: data if name in problem.binary else data.without_exact_repetitions()
        for name, data in observations.data.items()
    }
    names = {
        task: _unused_name(problem, task)
        for task, data in observations.outcomes.items()
        if np.any(data.values == 0)
    }
    if not names:
        return ModelledProblem(problem, problem, {}, measured)
    tasks = {
        name: replace(task, measures=(*task.measures, names[name])) if name in names else task
        for name, task in problem.tasks.items()
    }
    constraints = [Constraint(name, binary=True) for name in names.values()]
    extended = problem.changed(constraints=[*problem.constraints, *constraints], tasks=tasks)
    outcomes = {name: observations.outcomes[task] for task, name in names.items()}
    return ModelledProblem(problem, extended, names, {**measured, **outcomes})


def _unused_name(problem: Problem, task: str) -> str:
    # Names have at most 200 bytes.
    name = f"{task.encode()[:180].decode(errors='ignore')}_works"
    while name in problem.functions or name in problem.space.parameters:
        name += "_"
    return name


@final
@dataclass(frozen=True)
class SuccessProbability:
    """The probability that a task succeeds at an input, bounded below."""

    function: FunctionSurrogate

    def value(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        return np.maximum(self.function.mixture(x)[0], _MIN_PROBABILITY)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""
        mean, variance, mean_gradient, variance_gradient = (
            self.function.posterior.mean_variance_gradient(x)
        )
        z, dz_dmean, dz_dvariance = probit_score(mean, variance)
        probability = ndtr(z).mean(0)
        derivative = np.exp(log_normal_density(z))[..., None] * (
            mean_gradient * dz_dmean[..., None] + variance_gradient * dz_dvariance[..., None]
        )
        gradient = np.where((probability > _MIN_PROBABILITY)[:, None], derivative.mean(0), 0.0)
        return np.maximum(probability, _MIN_PROBABILITY), gradient
