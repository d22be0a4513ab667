"""Bivariate normal probabilities and their derivatives, by Owen's T function (Owen 1956).

    P(X ≤ h, Y ≤ k) = ½ (Φ(h) + Φ(k)) − T(h, a_h) − T(k, a_k) − ½ [h and k differ in sign]
    a_h = (k − ρh) / (h √(1 − ρ²)),   a_k = (h − ρk) / (k √(1 − ρ²))

| symbol | code | meaning |
|---|---|---|
| h, k | `h`, `k` | upper limits of two standard normal variables |
| ρ | `rho` | their correlation |
| T(h, a) | `owens_t` | Owen's T function |
"""

import math

import numpy as np
from scipy.special import ndtr, owens_t

from calamint.arrays import Array

# Closer to ±1, rounding errors of √(1 − ρ²) exceed the effect of ρ.
_MAX_CORRELATION = 1 - 1e-12


def bivariate_cdf(h: Array, k: Array, rho: Array) -> tuple[Array, Array, Array, Array]:
    """P(X ≤ h, Y ≤ k) of standard normals with correlation ρ, and its derivatives in h, k and ρ.

    h and k may be infinite.
    """
    rho = np.clip(rho, -_MAX_CORRELATION, _MAX_CORRELATION)
    scale = np.sqrt((1 - rho) * (1 + rho))
    # The normal tail underflows at 38 standard deviations; infinities would give inf − inf below.
    h, k = np.clip(h, -38.0, 38.0), np.clip(k, -38.0, 38.0)
    # Zero counts as positive, and must not divide.
    h, k = np.where(h == 0, 1e-300, h), np.where(k == 0, 1e-300, k)
    k_given_h, h_given_k = (k - rho * h) / scale, (h - rho * k) / scale
    with np.errstate(over="ignore"):
        value = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, k_given_h / h) - owens_t(k, h_given_k / k)
    value = np.maximum(value - np.where(np.signbit(h) != np.signbit(k), 0.5, 0.0), 0.0)
    density_h, density_k = (np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) for z in (h, k))
    grad_rho = density_h * np.exp(-0.5 * k_given_h**2) / (math.sqrt(2 * math.pi) * scale)
    return value, density_h * ndtr(k_given_h), density_k * ndtr(h_given_k), grad_rho


def bivariate_interval_probability(
    low: float, high: float, means: tuple[Array, Array], stds: tuple[Array, Array], rho: Array
) -> tuple[Array, Array, Array, Array]:
    """P(X and Y are both in [low, high]), and its derivatives in X's mean and std, and in ρ.

    Y is at a fixed input, so its derivatives are not needed. At least one limit is finite.
    """
    assert math.isfinite(low) or math.isfinite(high)
    if high == math.inf:  # reflected, it is one value of the CDF instead of four
        value, grad_mean, grad_std, grad_rho = bivariate_interval_probability(
            -high, -low, (-means[0], -means[1]), stds, rho
        )
        return value, -grad_mean, grad_std, grad_rho
    total, grad_mean, grad_std, grad_rho = (np.zeros(np.shape(rho)) for _ in range(4))
    limits = [(sign, limit) for sign, limit in ((1.0, high), (-1.0, low)) if limit > -math.inf]
    for sign_x, limit_x in limits:
        for sign_y, limit_y in limits:
            h = (limit_x - means[0]) / stds[0]
            k = (limit_y - means[1]) / stds[1]
            value, grad_h, _, grad_corner = bivariate_cdf(*np.broadcast_arrays(h, k, rho))
            sign = sign_x * sign_y
            total += sign * value
            grad_rho += sign * grad_corner
            grad_mean -= sign * grad_h / stds[0]
            grad_std -= sign * grad_h * h / stds[0]
    return np.maximum(total, 0.0), grad_mean, grad_std, grad_rho
