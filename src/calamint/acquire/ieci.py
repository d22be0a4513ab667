"""Integrated expected conditional improvement (Gramacy and Lee 2010; the paper's section 2.2).

    IECI(x) = ∫ [EI(x') − EI(x' | x)] h(x') dx',   averaged over hyper-parameter samples

h(x') is the probability that all limits are met at x'. EI(x' | x) is what is left of the expected
improvement at x' once f is measured at x, whatever is found: the mean stays, the variance falls.
Improvement is over the lowest expected objective anywhere, feasible or not.

Shapes: M samples, G integration points, n inputs.

| paper | code | shape | meaning |
|---|---|---|---|
| x' | `points` | (G, D) | integration points |
| h(x') | `feasible` | (M, G) | probability of meeting all limits |
| EI(x'), EI(x' given x) | `whole`, `left` | (M,), (M, n, G) | before and after |
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.blockwise import Blockwise
from calamint.acquire.eic import log_improvement
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.acquire.quadrature import integration_points
from calamint.arrays import Array
from calamint.checks import whole
from calamint.errors import ProblemError
from calamint.model import Belief, Joint, feasibility, log_normal_density
from calamint.problem import Problem

_FLOOR = 1e-12


@final
@dataclass(frozen=True)
class ConditionalImprovement(Blockwise):
    """objective  jointly with the integration points
    weights    (M, G) of the points, h included
    best       (M,) the lowest expected objective
    """

    belief: Belief
    objective: Joint
    weights: Array
    best: Array

    def block(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        before = np.maximum(self.objective.variance, _FLOOR)
        apart = self.best[:, None] - self.objective.mean
        whole = (self.weights * _improvement(apart, np.sqrt(before))).sum(-1)  # (M,)
        cross = self.objective.at(x, slopes=gradients)
        total = (cross.variance + self.objective.noise[:, None] + _FLOOR)[..., None]
        share = cross.covariance / total  # (M, n, G)
        squared = before[:, None] - share * cross.covariance
        after = np.sqrt(np.maximum(squared, _FLOOR))
        left = _improvement(apart[:, None], after)
        value = (whole[:, None] - (left @ self.weights[..., None])[..., 0]).mean(0)
        if not gradients:
            return value, np.zeros(x.shape)
        # EI falls by φ(z) for each unit that the deviation falls.
        slope = np.exp(log_normal_density(apart[:, None] / after)) / (2 * after)
        by_after = np.where(squared > _FLOOR, -self.weights[:, None] * slope / len(before), 0.0)
        by_variance = (by_after * share**2).sum(-1)
        by_mean = np.zeros(cross.mean.shape)
        return value, self.objective.vjp(x, cross, by_mean, by_variance, -2 * by_after * share)


def _improvement(apart: Array, deviation: Array) -> Array:
    """Expected improvement of a normal variable whose mean is so far below the best."""
    return np.exp(log_improvement(apart / deviation)[0]) * deviation


@final
class IECI(Acquisition):
    """Integrated expected conditional improvement, for tasks that measure every function.

    Args:
        points: The number of integration points.
    """

    name = "ieci"
    separable = False

    def __init__(self, points: int = 200) -> None:
        self.points = whole(points, "points", 1)

    def check(self, problem: Problem) -> None:
        if problem.objective.name in problem.known:
            raise ProblemError(
                "acquisition is 'ieci', which values what is learnt about the objective, and"
                f" {problem.objective.name!r} is known: write 'pesc', 'eic' or 'auglag'."
            )

    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:
        points, weights = integration_points(belief, incumbent.point, self.points, rng)
        log_feasible = feasibility.log_probability_by_sample(belief, points)
        feasible = np.exp(log_feasible - log_feasible.max())
        process = belief.objective.process
        objective = process.joint(points, covariance=False)
        best = objective.mean.min(axis=1)
        if len(process.inputs):
            best = np.minimum(best, process.moments(process.inputs)[0].min(axis=1))
        return ConditionalImprovement(belief, objective, weights * feasible, best)
