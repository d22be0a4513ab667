"""Integrated expected conditional improvement (Gramacy and Lee 2010; Hernández-Lobato et
al. 2016, section 2.2).

    IECI(x) = ∫ [EI(x') − EI(x' | x)] h(x') dx',   averaged over hyper-parameter samples

h(x') is the probability that all limits are met at x'. EI(x' | x) is what is left of the expected
improvement at x' once f is measured at x, whatever is found: the mean stays, the variance falls.
Improvement is over the lowest expected objective anywhere, feasible or not.

Shapes: M samples, G integration points, n inputs.

| paper | code | shape | meaning |
|---|---|---|---|
| x' | `points` | (G, D) | integration points |
| h(x') | `feasible` | (M, G) | probability of meeting all limits |
| EI(x'), EI(x' given x) | `ei_before`, `ei_after` | (M,), (M, n, G) | before, after |
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.batched import Batched
from calamint.acquire.eic import log_standardised_ei
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.acquire.quadrature import integration_points
from calamint.arrays import Array
from calamint.checks import check_integer
from calamint.errors import ProblemError
from calamint.model import Joint, Surrogate, feasibility, log_normal_density
from calamint.problem import Problem

_MIN_VARIANCE = 1e-12  # standardised; below it a ratio of variances loses its digits


@final
@dataclass(frozen=True)
class ConditionalImprovement(Batched):
    """The reduction of expected improvement, integrated over the points.

    Attributes:
        objective: Jointly with the integration points.
        weights: (M, G) of the integration points, times h.
        best: (M,) the lowest expected objective.
    """

    surrogate: Surrogate
    objective: Joint
    weights: Array
    best: Array

    def evaluate(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        variance_before = np.maximum(self.objective.variance, _MIN_VARIANCE)
        gap = self.best[:, None] - self.objective.mean
        ei_before = (self.weights * _improvement(gap, np.sqrt(variance_before))).sum(-1)  # (M,)
        cross = self.objective.cross_moments(x, derivatives=gradients)
        total = (cross.variance + self.objective.noise[:, None] + _MIN_VARIANCE)[..., None]
        kalman_gain = cross.covariance / total  # (M, n, G)
        variance_after = variance_before[:, None] - kalman_gain * cross.covariance
        std_after = np.sqrt(np.maximum(variance_after, _MIN_VARIANCE))
        ei_after = _improvement(gap[:, None], std_after)
        value = (ei_before[:, None] - (ei_after @ self.weights[..., None])[..., 0]).mean(0)
        if not gradients:
            return value, np.zeros(x.shape)
        # dEI/dσ = φ(z)
        derivative = np.exp(log_normal_density(gap[:, None] / std_after)) / (2 * std_after)
        grad_variance_after = np.where(
            variance_after > _MIN_VARIANCE,
            -self.weights[:, None] * derivative / len(variance_before),
            0.0,
        )
        grad_variance = (grad_variance_after * kalman_gain**2).sum(-1)
        grad_mean = np.zeros(cross.mean.shape)
        return value, self.objective.vjp(
            x, cross, grad_mean, grad_variance, -2 * grad_variance_after * kalman_gain
        )


def _improvement(gap: Array, std: Array) -> Array:
    """Expected improvement of a normal variable whose mean is this far below the best."""
    return np.exp(log_standardised_ei(gap / std)[0]) * std


@final
class IECI(Acquisition):
    """Integrated expected conditional improvement, for tasks that measure every function.

    Args:
        points: The number of integration points.
    """

    name = "ieci"
    supports_decoupled = False

    def __init__(self, points: int = 200) -> None:
        self.points = check_integer(points, "points", 1)

    def check(self, problem: Problem) -> None:
        if problem.objective.name in problem.known:
            raise ProblemError(
                "acquisition is 'ieci', which values what is learnt about the objective, and"
                f" {problem.objective.name!r} is known: write 'pesc', 'eic' or 'auglag'."
            )

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        points, weights = integration_points(surrogate, incumbent.point, self.points, rng)
        log_feasible = feasibility.log_probability_by_sample(surrogate, points)
        feasible = np.exp(log_feasible - log_feasible.max())
        posterior = surrogate.objective.posterior
        objective = posterior.joint(points, covariance=False)
        best = objective.mean.min(axis=1)
        measured = posterior.inputs[surrogate.problem.space.contains(posterior.inputs)]
        if len(measured):
            best = np.minimum(best, posterior.mean_variance(measured)[0].min(axis=1))
        return ConditionalImprovement(surrogate, objective, weights * feasible, best)
