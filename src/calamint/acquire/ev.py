"""Expected volume (Picheny 2014; the paper's section 2.3).

    EV(x) = ∫ P(f(x) < f(x') ≤ η) Π_k P(c_k(x) and c_k(x') are within their limits) dx'

is how much of the feasible region below the best objective η is expected to be ruled out by finding
a better feasible point at x; averaged over hyper-parameter samples. While no input is feasible
enough, η is infinite; if feasibility is very unlikely everywhere, EIC is used instead. (The paper's
formula takes for granted that x is feasible.)

Shapes: M samples, G integration points, n inputs.

| paper | code | shape | meaning |
|---|---|---|---|
| η | `best` | | the best expected objective that is feasible enough |
| x' | `points` | (G, D) | integration points |
| P(f(x) < f(x') ≤ η) | `_below` | (M, n, G) | |
| P(c_k(x), c_k(x') within limits) | `_met` | (M, n, G) | |
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.blockwise import Blockwise
from calamint.acquire.eic import LogEIC
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.acquire.quadrature import integration_points
from calamint.arrays import Array
from calamint.checks import whole
from calamint.model import Belief, CrossMoments, Joint, bivariate_cdf, both_within, feasibility

_FLOOR = 1e-12
# Where feasible inputs are less likely than this (a logarithm), the integral is lost in the
# rounding errors of bivariate probabilities.
_HOPELESS = -15.0


@final
@dataclass(frozen=True)
class ExcludedVolume(Blockwise):
    """functions  the objective, then the constraints, jointly with the integration points
    weights    (G,) of the points
    best       η
    """

    belief: Belief
    functions: list[Joint]
    weights: Array
    best: float

    def block(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        cross = [function.at(x, slopes=gradients) for function in self.functions]
        factors = [
            self._below(each) if i == 0 else self._met(i, each) for i, each in enumerate(cross)
        ]
        product = np.prod([factor[0] for factor in factors], axis=0)  # (M, n, G)
        value = (product @ self.weights).mean(0)
        gradient = np.zeros(x.shape)
        if not gradients:
            return value, gradient
        for i, (_, by_mean, by_variance, by_covariance) in enumerate(factors):
            others = [factor[0] for j, factor in enumerate(factors) if j != i]
            share = np.prod(others, axis=0) * self.weights / len(product)
            gradient += self.functions[i].vjp(
                x,
                cross[i],
                (share * by_mean).sum(-1),
                (share * by_variance).sum(-1),
                share * by_covariance,
            )
        return value, gradient

    def _below(self, cross: CrossMoments) -> tuple[Array, ...]:
        """P(f(x) < f(x') ≤ η) (M, n, G), and its slopes in mean and variance at x, covariance."""
        mean, variance, covariance = cross.mean, cross.variance, cross.covariance
        there, there_variance = _moments(self.functions[0])
        deviation = np.sqrt(there_variance)
        squared = variance[..., None] + there_variance - 2 * covariance
        apart = np.sqrt(np.maximum(squared, _FLOOR))
        h = (self.best - there) / deviation
        k = (there - mean[..., None]) / apart
        rho = (covariance - there_variance) / (deviation * apart)
        value, _, by_k, by_rho = bivariate_cdf(*np.broadcast_arrays(h, k, rho))
        # s² = v + v' − 2C;  k and ρ go with 1/s
        by_squared = np.where(squared > _FLOOR, -(by_k * k + by_rho * rho) / (2 * apart**2), 0.0)
        by_covariance = by_rho / (deviation * apart) - 2 * by_squared
        return value, -by_k / apart, by_squared, by_covariance

    def _met(self, k: int, cross: CrossMoments) -> tuple[Array, ...]:
        """P(c_k(x) and c_k(x') are within limits) (M, n, G), and the same slopes."""
        mean, variance, covariance = cross.mean, cross.variance, cross.covariance
        there, there_variance = _moments(self.functions[k])
        limits = self.belief.constraints[k - 1]
        here = np.sqrt(np.maximum(variance, _FLOOR))[..., None]
        beyond = np.sqrt(there_variance)
        rho = covariance / (here * beyond)
        value, by_mean, by_deviation, by_rho = both_within(
            limits.low, limits.high, (mean[..., None], there), (here, beyond), rho
        )
        by_variance = (by_deviation - by_rho * rho / here) / (2 * here)
        by_variance = np.where(variance[..., None] > _FLOOR, by_variance, 0.0)
        return value, by_mean, by_variance, by_rho / (here * beyond)


def _moments(function: Joint) -> tuple[Array, Array]:
    """Mean and variance at the points, (M, 1, G) each."""
    return function.mean[:, None], np.maximum(function.variance, _FLOOR)[:, None]


@final
class EV(Acquisition):
    """Expected volume, for tasks that measure every function.

    Args:
        points: The number of integration points.
    """

    name = "ev"
    separable = False
    improves = True

    def __init__(self, points: int = 200) -> None:
        self.points = whole(points, "points", 1)

    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:
        points, weights = integration_points(belief, incumbent.point, self.points, rng)
        hopeless = float(feasibility.log_probability(belief, points).max()) < _HOPELESS
        if incumbent.objective is None and hopeless:
            return LogEIC(belief, incumbent)
        functions = [
            function.process.joint(points, covariance=False)
            for function in (belief.objective, *belief.constraints)
        ]
        best = math.inf if incumbent.objective is None else incumbent.objective
        return ExcludedVolume(belief, functions, weights, best)
