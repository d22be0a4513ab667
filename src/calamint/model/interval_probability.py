"""The probability that a normal variable lies in an interval, in logarithms, with derivatives.

With the limits in units of the std, and mirrored if need be so that l + u ≥ 0,

    P = Φ(−l) − Φ(−u) = Φ(−l)·(1 − e^d),   d = log Φ(−u) − log Φ(−l)

so that neither a limit that is far away nor an interval that is narrow loses the answer.
Derivatives in the mean are Hermite polynomials times the densities at the limits; those in the
variance follow from ∂P/∂v = ½ ∂²P/∂m².

| symbol | code | meaning |
|---|---|---|
| l, u | `near`, `far` | the limits in stds from the mean, the nearer one first |
| d | `share` | log ratio of the two tails |
| φ/Φ | `hazard` | hazard rate of the normal distribution |
| He_k | `_hermite` | probabilists' Hermite polynomials |
"""

import math

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from calamint.arrays import Array
from calamint.model.kernels import LOG_2PI


def log_normal_density(z: Array) -> Array:
    return -0.5 * z**2 - 0.5 * LOG_2PI


def hazard(z: Array) -> Array:
    """φ(z)/Φ(−z), which approaches z in the far tail."""
    return math.sqrt(2 / math.pi) / erfcx(z / math.sqrt(2))


def probit_score(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """t, where Φ(t) is the probability of "pass" if the function behind an outcome is normal; and
    its derivatives in mean and variance."""
    spread = np.sqrt(1 + variance)
    t = mean / spread
    return t, 1 / spread, -0.5 * t / (1 + variance)


def mixture_quantiles(mean: Array, std: Array, levels: Array) -> Array:
    """Equally weighted normal variables (M, n), levels (q,) -> quantiles (n, q), by bisection."""
    reach = 10 * std
    low = np.repeat((mean - reach).min(0)[:, None], len(levels), axis=1)
    high = np.repeat((mean + reach).max(0)[:, None], len(levels), axis=1)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = ndtr((middle - mean[..., None]) / std[..., None]).mean(0) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def log_probability(mean: Array, variance: Array, low: float, high: float) -> Array:
    """log P(low ≤ N(mean, variance) ≤ high), any shape; finite however unlikely."""
    return probability_derivatives(mean, variance, low, high, 0)[0]


def log_probability_gradient(
    mean: Array, variance: Array, low: float, high: float
) -> tuple[Array, Array, Array]:
    """The same, with its derivatives with respect to mean and variance."""
    value, first, second = probability_derivatives(mean, variance, low, high, 2)
    return value, first, 0.5 * second


def probability_derivatives(
    mean: Array, variance: Array, low: float, high: float, order: int
) -> list[Array]:
    """log P, and P'/P, P''/P, … up to the given order (at most 4), derivatives in the mean."""
    std = np.sqrt(variance)
    below, above = (low - mean) / std, (high - mean) / std
    mirrored = below + above < 0
    near = np.where(mirrored, -above, below)
    far = np.where(mirrored, -below, above)
    share = _log_ratio(near, far, (high - low) / std)
    outside = -np.expm1(share)  # P / Φ(−l)
    results = [log_ndtr(-near) + np.log(outside)]
    if order == 0:
        return results
    near_ratio = hazard(near) / outside
    two_sided = math.isfinite(low) and math.isfinite(high)
    far_ratio = hazard(far) * np.exp(share) / outside if two_sided else 0.0
    for power in range(1, order + 1):
        change = _hermite(power - 1, near) * near_ratio
        if two_sided:
            change = change - _hermite(power - 1, far) * far_ratio
        if power % 2:
            change = np.where(mirrored, -change, change)
        results.append(change / std**power)
    return results


def _hermite(degree: int, z: Array) -> Array:
    """The probabilists' Hermite polynomials, up to degree 3."""
    if degree == 0:
        return np.ones_like(z)
    if degree == 1:
        return z
    return z**2 - 1 if degree == 2 else z**3 - 3 * z


def _log_ratio(near: Array, far: Array, width: Array) -> Array:
    """log Φ(−far) − log Φ(−near), without cancellation."""
    if np.all(np.isinf(far)):
        return np.full_like(near, -np.inf)
    middle = 0.5 * (near + far)
    ratio = log_ndtr(-far) - log_ndtr(-near)
    tail = near > 1e3
    safe = np.where(tail, near, 1.0)
    ratio = np.where(tail, -width * middle - np.log1p(width / safe), ratio)
    narrow = width * (1 + np.abs(middle)) < 1e-4
    return np.where(narrow, -width * hazard(middle), ratio)
