"""Expected volume (Picheny 2014; Hernández-Lobato et al. 2016, section 2.3).

    EV(x) = ∫ P(f(x) < f(x') ≤ η) Π_k P(c_k(x) and c_k(x') are within their limits) dx'

is how much of the feasible region below the best objective η is expected to be ruled out by finding
a better feasible point at x; averaged over hyper-parameter samples. While no input is feasible
enough, η is infinite; if feasibility is very unlikely everywhere, EIC is used instead.
(Hernández-Lobato et al. print a formula in which x is feasible with certainty.)

Shapes: M samples, G integration points, n inputs.

| paper | code | shape | meaning |
|---|---|---|---|
| η | `best` | | the best expected objective that is feasible enough |
| x' | `points` | (G, D) | integration points |
| P(f(x) < f(x') ≤ η) | `_improvement` | (M, n, G) | |
| P(c_k(x), c_k(x') within limits) | `_both_feasible` | (M, n, G) | |
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.batched import Batched
from calamint.acquire.eic import LogEIC
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.acquire.quadrature import integration_points
from calamint.arrays import Array
from calamint.checks import check_integer
from calamint.model import (
    CrossMoments,
    Joint,
    Surrogate,
    bivariate_cdf,
    bivariate_interval_probability,
    feasibility,
)

_MIN_VARIANCE = 1e-12  # standardised; below it a ratio of variances loses its digits
# Where feasible inputs are less likely than this (a logarithm), the integral is lost in the
# rounding errors of bivariate probabilities.
_MIN_LOG_FEASIBILITY = -15.0


@final
@dataclass(frozen=True)
class ExpectedVolume(Batched):
    """The expected volume on the scale of a mean over the space.

    Attributes:
        functions: The objective, then the constraints, each jointly with the integration points.
        weights: (G,) of the integration points.
        best: η.
    """

    surrogate: Surrogate
    functions: list[Joint]
    weights: Array
    best: float

    def evaluate(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        cross = [function.cross_moments(x, derivatives=gradients) for function in self.functions]
        factors = [
            self._both_feasible(i, moments) if i else self._improvement(moments)
            for i, moments in enumerate(cross)
        ]
        product = np.prod([factor[0] for factor in factors], axis=0)  # (M, n, G)
        value = (product @ self.weights).mean(0)
        gradient = np.zeros(x.shape)
        if not gradients:
            return value, gradient
        for i, (_, grad_mean, grad_variance, grad_covariance) in enumerate(factors):
            others = [factor[0] for j, factor in enumerate(factors) if j != i]
            weight = np.prod(others, axis=0) * self.weights / len(product)
            gradient += self.functions[i].vjp(
                x,
                cross[i],
                (weight * grad_mean).sum(-1),
                (weight * grad_variance).sum(-1),
                weight * grad_covariance,
            )
        return value, gradient

    def _improvement(self, cross: CrossMoments) -> tuple[Array, ...]:
        """P(f(x) < f(x') ≤ η) (M, n, G); its derivatives in mean, variance at x, and covariance."""
        mean, variance, covariance = cross.mean, cross.variance, cross.covariance
        other_mean, other_variance = _moments(self.functions[0])
        std = np.sqrt(other_variance)
        squared = variance[..., None] + other_variance - 2 * covariance
        difference_std = np.sqrt(np.maximum(squared, _MIN_VARIANCE))
        h = (self.best - other_mean) / std
        k = (other_mean - mean[..., None]) / difference_std
        rho = (covariance - other_variance) / (std * difference_std)
        value, _, grad_k, grad_rho = bivariate_cdf(*np.broadcast_arrays(h, k, rho))
        # s² = v + v' − 2C;  k and ρ go with 1/s
        grad_squared = np.where(
            squared > _MIN_VARIANCE, -(grad_k * k + grad_rho * rho) / (2 * difference_std**2), 0.0
        )
        grad_covariance = grad_rho / (std * difference_std) - 2 * grad_squared
        return value, -grad_k / difference_std, grad_squared, grad_covariance

    def _both_feasible(self, k: int, cross: CrossMoments) -> tuple[Array, ...]:
        """P(c_k(x) and c_k(x') are within limits) (M, n, G), and the same derivatives."""
        mean, variance, covariance = cross.mean, cross.variance, cross.covariance
        other_mean, other_variance = _moments(self.functions[k])
        limits = self.surrogate.constraints[k - 1]
        std = np.sqrt(np.maximum(variance, _MIN_VARIANCE))[..., None]
        other_std = np.sqrt(other_variance)
        rho = covariance / (std * other_std)
        value, grad_mean, grad_std, grad_rho = bivariate_interval_probability(
            limits.low, limits.high, (mean[..., None], other_mean), (std, other_std), rho
        )
        grad_variance = (grad_std - grad_rho * rho / std) / (2 * std)
        grad_variance = np.where(variance[..., None] > _MIN_VARIANCE, grad_variance, 0.0)
        return value, grad_mean, grad_variance, grad_rho / (std * other_std)


def _moments(function: Joint) -> tuple[Array, Array]:
    """Mean and variance at the points, (M, 1, G) each."""
    return function.mean[:, None], np.maximum(function.variance, _MIN_VARIANCE)[:, None]


@final
class EV(Acquisition):
    """Expected volume, for tasks that measure every function.

    Args:
        points: The number of integration points.
    """

    name = "ev"
    supports_decoupled = False
    uses_incumbent_value = True

    def __init__(self, points: int = 200) -> None:
        self.points = check_integer(points, "points", 1)

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        points, weights = integration_points(surrogate, incumbent.point, self.points, rng)
        infeasible = (
            float(feasibility.log_probability(surrogate, points).max()) < _MIN_LOG_FEASIBILITY
        )
        if incumbent.objective is None and infeasible:
            return LogEIC(surrogate, incumbent)
        functions = [
            function.posterior.joint(points, covariance=False)
            for function in (surrogate.objective, *surrogate.constraints)
        ]
        best = math.inf if incumbent.objective is None else incumbent.objective
        return ExpectedVolume(surrogate, functions, weights, best)
