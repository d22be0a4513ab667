"""A problem together with its answer, so that what an optimiser finds can be judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from calamint.arrays import Array
from calamint.problem import Constraint, Params, Problem

Function = Callable[[Array], Array]


@final
@dataclass(frozen=True)
class SolvedProblem:
    """A problem whose functions can be computed and whose constrained optimum is known.

    Attributes:
        functions: Each maps inputs (..., d) in the user's units to values (...); one that is NaN
            somewhere cannot be measured there, and the input is infeasible. Of a constraint that
            is measured as pass or fail it is the score, which passes from zero on.
        solution: A global constrained optimum; `optimum` is the objective there.
        worst: The worst objective in the box, the utility of an infeasible recommendation.
        noise_std: The standard deviation of what `measure` adds to a value.
    """

    name: str
    problem: Problem
    functions: Mapping[str, Function] = field(repr=False)
    solution: Params
    optimum: float
    worst: float
    noise_std: float = 0.0

    def _inputs(self, params: Mapping[str, Any]) -> Array:
        return np.array([float(value) for value in self.problem.space.validate(params).values()])

    def evaluate(self, params: Mapping[str, Any], task: str | None = None) -> dict[str, float]:
        """The true values of what a task measures, or of every function."""
        names = self.problem.functions if task is None else self.problem.tasks[task].measures
        inputs = self._inputs(params)
        return {name: float(self.functions[name](inputs)) for name in names}

    def measure(
        self, params: Mapping[str, Any], rng: np.random.Generator, task: str | None = None
    ) -> dict[str, float]:
        """What a task would report: the true values with the problem's noise, or outcomes."""
        values = self.evaluate(params, task)
        noisy = {
            name: value + self.noise_std * rng.standard_normal() for name, value in values.items()
        }
        binary = self.problem.binary
        return {name: value >= 0 if name in binary else value for name, value in noisy.items()}

    def feasible(self, params: Mapping[str, Any], tolerance: float = 0.0) -> bool:
        """Whether all limits are met, up to a tolerance in the functions' own units."""
        values = self.evaluate(params)
        return not np.isnan(values[self.problem.objective.name]) and all(
            limit.low - tolerance <= values[limit.name] <= limit.high + tolerance
            for limit in self.problem.constraints
        )

    def gap(self, params: Mapping[str, Any], tolerance: float = 0.0) -> float:
        """|u(x) − u(x*)|: u is the objective where x is feasible, else the worst in the box."""
        objective = self.problem.objective.name
        value = self.evaluate(params)[objective] if self.feasible(params, tolerance) else self.worst
        return abs(value - self.optimum)

    def coupled(self) -> "SolvedProblem":
        """The same problem with one task that measures everything."""
        return replace(self, problem=self.problem.coupled())

    def with_binary(self, *names: str) -> "SolvedProblem":
        """The same problem with some constraints measured only as pass or fail."""
        limits = {limit.name: limit for limit in self.problem.constraints}
        constraints = [
            Constraint(name, binary=True) if name in names else limit
            for name, limit in limits.items()
        ]
        scores = {name: _score(self.functions[name], limits[name]) for name in names}
        return replace(
            self,
            problem=self.problem.changed(constraints=constraints),
            functions={**self.functions, **scores},
        )


def _score(function: Function, limit: Constraint) -> Function:
    """How far values are inside their limits."""
    return lambda x: np.minimum(function(x) - limit.low, limit.high - function(x))
