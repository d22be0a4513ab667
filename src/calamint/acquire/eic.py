"""Expected improvement with constraints (Schonlau et al. 1998; Hernández-Lobato et al. 2016,
section 2.1).

    EIC(x) = EI(x) · Π_k P(c_k(x) is within its limits),   averaged over hyper-parameter samples

The incumbent is the lowest expected objective among inputs that are feasible with probability at
least 1 − δ; until there is one, only the probability of being feasible is maximised (Gelbart et al.
2014). Everything is computed in logarithms: EI underflows where z ≪ 0, its logarithm does not.

| paper | code | shape | meaning |
|---|---|---|---|
| η | `incumbent.objective` | | the best expected objective that is feasible enough |
| z | `z` | (M, n) | (η − mean) / std |
| EI / σ | `log_standardised_ei` | (M, n) | log(φ(z) + z Φ(z)); EI is σ times its exponential |
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp

from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array
from calamint.model import Surrogate, feasibility, log_normal_density

_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)


def log_standardised_ei(z: Array) -> tuple[Array, Array]:
    """log(φ(z) + z Φ(z)) and its derivative Φ(z) / (φ(z) + z Φ(z)), finite for any z."""
    asymptotic = z < -1e4
    moderate = np.where(asymptotic, -1.0, z)
    # φ(z)(1 + z Φ/φ), with Φ/φ by erfcx for z < 0, where the sum cancels.
    ratio = _SQRT_HALF_PI * erfcx(-np.minimum(moderate, 0.0) / math.sqrt(2))
    left = log_normal_density(moderate) + np.log1p(np.minimum(moderate, 0.0) * ratio)
    positive = np.maximum(moderate, 0.0)
    right = np.log(np.exp(log_normal_density(positive)) + positive * np.exp(log_ndtr(positive)))
    # 1 − |z| Φ(−|z|)/φ → 1/z²
    tail = log_normal_density(z) - 2 * np.log(np.maximum(np.abs(z), 1.0))
    exact = np.where(moderate < 0, left, right)
    value: Array = np.where(asymptotic, tail, exact)
    derivative: Array = np.where(asymptotic, np.abs(z), np.exp(log_ndtr(moderate) - exact))
    return value, derivative


@final
@dataclass(frozen=True)
class LogEIC(AcquisitionFunction):
    surrogate: Surrogate
    incumbent: Incumbent
    log_scale = True

    def value(self, x: Array) -> Array:
        total = feasibility.log_probability_by_sample(self.surrogate, x)
        if self.incumbent.objective is not None:
            mean, variance = self.surrogate.objective.posterior.mean_variance(x)
            std = np.sqrt(variance)
            log_ei, _ = log_standardised_ei((self.incumbent.objective - mean) / std)
            total = total + log_ei + np.log(std)
        return logsumexp(total, axis=0) - math.log(len(total))

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        total, gradient = feasibility.log_probability_by_sample_gradient(self.surrogate, x)
        if self.incumbent.objective is not None:
            mean, variance, mean_gradient, variance_gradient = (
                self.surrogate.objective.posterior.mean_variance_gradient(x)
            )
            std = np.sqrt(variance)
            z = (self.incumbent.objective - mean) / std
            log_ei, derivative = log_standardised_ei(z)
            total = total + log_ei + np.log(std)
            grad_mean = -derivative / std
            grad_variance = (1 - derivative * z) / (2 * variance)
            gradient = (
                gradient
                + grad_mean[..., None] * mean_gradient
                + grad_variance[..., None] * variance_gradient
            )
        joint = logsumexp(total, axis=0)
        weights = np.exp(total - joint)
        derivatives = np.einsum("mn,mnd->nd", weights, gradient)
        value: Array = joint - math.log(len(total))
        return value, np.where(self.surrogate.problem.space.continuous, derivatives, 0.0)


@final
class EIC(Acquisition):
    """Expected improvement with constraints, for tasks that measure every function."""

    name = "eic"
    supports_decoupled = False
    uses_incumbent_value = True

    def build(
        self,
        surrogate: Surrogate,
        incumbent: Incumbent,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> AcquisitionFunction:
        return LogEIC(surrogate, incumbent)
