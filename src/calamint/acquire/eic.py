"""Expected improvement with constraints (Schonlau et al. 1998; the paper's section 2.1).

    EIC(x) = EI(x) · Π_k P(c_k(x) is within its limits),   averaged over hyper-parameter samples

The incumbent is the lowest expected objective among inputs that are feasible with probability at
least 1 − δ; until there is one, only the probability of being feasible is maximised (Gelbart et al.
2014). Everything is computed in logarithms: EI underflows where z ≪ 0, its logarithm does not.

| paper | code | shape | meaning |
|---|---|---|---|
| η | `incumbent.objective` | | the best expected objective that is feasible enough |
| z | `z` | (M, n) | (η − mean) / deviation |
| α_EI | `log_ei` | (M, n) | log(φ(z) + z Φ(z)), without the deviation |
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp

from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.arrays import Array
from calamint.model import Belief, feasibility, log_normal_density

_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)


def log_improvement(z: Array) -> tuple[Array, Array]:
    """log(φ(z) + z Φ(z)) and its derivative Φ(z) / (φ(z) + z Φ(z)), finite for any z."""
    far = z < -1e4
    safe = np.where(far, -1.0, z)
    # φ(z)(1 + z Φ/φ), with Φ/φ by erfcx for z < 0, where the sum cancels.
    ratio = _SQRT_HALF_PI * erfcx(-np.minimum(safe, 0.0) / math.sqrt(2))
    left = log_normal_density(safe) + np.log1p(np.minimum(safe, 0.0) * ratio)
    positive = np.maximum(safe, 0.0)
    right = np.log(np.exp(log_normal_density(positive)) + positive * np.exp(log_ndtr(positive)))
    # 1 − |z| Φ(−|z|)/φ → 1/z²
    limit = log_normal_density(z) - 2 * np.log(np.maximum(np.abs(z), 1.0))
    near = np.where(safe < 0, left, right)
    value: Array = np.where(far, limit, near)
    slope: Array = np.where(far, np.abs(z), np.exp(log_ndtr(safe) - near))
    return value, slope


@final
@dataclass(frozen=True)
class LogEIC(Utility):
    belief: Belief
    incumbent: Incumbent
    logarithmic = True

    def value(self, x: Array) -> Array:
        total = feasibility.log_probability_by_sample(self.belief, x)
        if self.incumbent.objective is not None:
            mean, variance = self.belief.objective.process.moments(x)
            deviation = np.sqrt(variance)
            log_ei, _ = log_improvement((self.incumbent.objective - mean) / deviation)
            total = total + log_ei + np.log(deviation)
        return logsumexp(total, axis=0) - math.log(len(total))

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        total, gradient = feasibility.log_probability_by_sample_gradient(self.belief, x)
        if self.incumbent.objective is not None:
            mean, variance, mean_x, variance_x = self.belief.objective.process.moments_gradient(x)
            deviation = np.sqrt(variance)
            z = (self.incumbent.objective - mean) / deviation
            log_ei, slope = log_improvement(z)
            total = total + log_ei + np.log(deviation)
            by_mean = -slope / deviation
            by_variance = (1 - slope * z) / (2 * variance)
            gradient = gradient + by_mean[..., None] * mean_x + by_variance[..., None] * variance_x
        joint = logsumexp(total, axis=0)
        shares = np.exp(total - joint)
        slopes = np.einsum("mn,mnd->nd", shares, gradient)
        value: Array = joint - math.log(len(total))
        return value, np.where(self.belief.problem.space.continuous, slopes, 0.0)


@final
class EIC(Acquisition):
    """Expected improvement with constraints, for tasks that measure every function."""

    name = "eic"
    separable = False
    improves = True

    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:  # noqa: ARG002
        return LogEIC(belief, incumbent)
