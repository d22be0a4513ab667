"""The two kinds of factors that say "x* is the solution", and their moments.

| paper | code | meaning |
|---|---|---|
| Γ | `gamma` | x* meets every limit |
| Ψ(z) | `psi` | z is not better than x*: f(z) ≥ f(x*), or z breaks a limit |
| α | `alpha` | (mean of f(z) − f(x*)) / std |
| β | `beta` | ∂ log Z/∂α |
| | `weight` | R = Φ(−α) Π P_k / Z, minus ∂ log Z/∂ log P_k, the same for every k |
| ρ, κ | `rho_c`, … | first and minus second derivative of log Z in a cavity mean |

These are the formulas of Hernández-Lobato et al. 2016, appendix A, for any interval, with misprints
corrected.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import log_ndtr

from calamint.arrays import Array
from calamint.model import log_normal_density, probability_derivatives

# Beyond this many stds a contradicted factor only loses digits.
FAR = 30.0


@final
@dataclass(frozen=True)
class Limits:
    """The feasible intervals of K constraints, standardised: low and high, each (K,)."""

    low: Array
    high: Array


@final
@dataclass(frozen=True)
class Psi:
    """Ψ at some points: alpha, beta, weight (…); rho_c, kappa_c (…, K).

    derivatives  log P_k and P_k'/P_k, P_k''/P_k, … as far as asked for, (…, K) each
    """

    std: Array
    alpha: Array
    beta: Array
    weight: Array
    rho_c: Array
    kappa_c: Array
    derivatives: list[Array]

    @property
    def rho_f(self) -> Array:
        return self.beta / self.std

    @property
    def kappa_f(self) -> Array:
        return self.beta * (self.alpha + self.beta) / self.std**2


def psi(
    mean_g: Array, var_g: Array, mean_c: Array, var_c: Array, limits: Limits, order: int = 2
) -> Psi:
    """Ψ under independent normals: g = f(z) − f(x*) (…), c_k(z) (…, K).

    log Z is a sum over the disjoint ways in which z is not better: f is not lower; or it is, and
    c_k is the first limit that is broken. Nothing is subtracted, so nothing cancels.
    """
    std = np.sqrt(var_g)
    alpha = np.maximum(mean_g / std, -FAR)
    derivatives = limit_derivatives(mean_c, var_c, limits, order)
    log_met = derivatives[0]
    before = np.cumsum(log_met, axis=-1) - log_met
    log_broken = _log_outside(mean_c, var_c, limits)
    lower = log_ndtr(-alpha)
    ways = np.concatenate(
        [log_ndtr(alpha)[..., None], lower[..., None] + log_broken + before], axis=-1
    )
    log_z = np.logaddexp.reduce(ways, axis=-1)
    log_all_met = log_met.sum(-1)
    weight = np.exp(log_all_met + lower - log_z)
    rho_c = -weight[..., None] * derivatives[1]
    return Psi(
        std=std,
        alpha=alpha,
        beta=np.exp(log_all_met + log_normal_density(alpha) - log_z),
        weight=weight,
        rho_c=rho_c,
        kappa_c=rho_c**2 + weight[..., None] * derivatives[2],
        derivatives=derivatives,
    )


def gamma(mean_c: Array, var_c: Array, limits: Limits) -> tuple[Array, Array]:
    """ρ and κ of Γ for each constraint at x*, (…, K) in and out."""
    std = np.sqrt(var_c)
    near = np.clip(mean_c, limits.low - FAR * std, limits.high + FAR * std)
    _, first, second = limit_derivatives(near, var_c, limits, 2)
    return first, first**2 - second


def limit_derivatives(mean: Array, variance: Array, limits: Limits, order: int) -> list[Array]:
    """log P(c_k within its limits), P'/P, P''/P, …, each (…, K)."""
    parts = [
        probability_derivatives(
            mean[..., k], variance[..., k], float(limits.low[k]), float(limits.high[k]), order
        )
        for k in range(mean.shape[-1])
    ]
    if not parts:
        return [np.zeros_like(mean) for _ in range(order + 1)]
    return [np.stack(part, axis=-1) for part in zip(*parts, strict=True)]


def _log_outside(mean: Array, variance: Array, limits: Limits) -> Array:
    """log P(c_k outside its limits): a sum of two tails."""
    std = np.sqrt(variance)
    below = log_ndtr((limits.low - mean) / std)
    above = log_ndtr((mean - limits.high) / std)
    return np.logaddexp(below, above)
