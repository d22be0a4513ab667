"""Probabilities of two normal variables at once, with their derivatives.

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

# Correlations closer to ±1 only lose digits.
_CLOSEST = 1 - 1e-12


def bivariate_cdf(h: Array, k: Array, rho: Array) -> tuple[Array, Array, Array, Array]:
    """P(X ≤ h, Y ≤ k) of standard normals with correlation ρ, and its derivatives in h, k and ρ.

    By Owen's T function; h and k may be infinite.
    """
    rho = np.clip(rho, -_CLOSEST, _CLOSEST)
    root = np.sqrt((1 - rho) * (1 + rho))
    # Beyond 38 stds nothing is left, and infinities would meet each other below.
    h, k = np.clip(h, -38.0, 38.0), np.clip(k, -38.0, 38.0)
    h, k = np.where(h == 0, 1e-300, h), np.where(k == 0, 1e-300, k)
    from_h, from_k = (k - rho * h) / root, (h - rho * k) / root
    with np.errstate(over="ignore"):
        value = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, from_h / h) - owens_t(k, from_k / k)
    value = np.maximum(value - np.where(h * k < 0, 0.5, 0.0), 0.0)
    density_h, density_k = (np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) for z in (h, k))
    grad_rho = density_h * np.exp(-0.5 * from_h**2) / (math.sqrt(2 * math.pi) * root)
    return value, density_h * ndtr(from_h), density_k * ndtr(from_k), grad_rho


def both_within(
    low: float, high: float, means: tuple[Array, Array], stds: tuple[Array, Array], rho: Array
) -> tuple[Array, Array, Array, Array]:
    """P(X and Y are both in [low, high]), and its derivatives in X's mean and std, and in ρ.

    One of the limits is finite, or both.
    """
    if high == math.inf:  # the mirror image has one corner, not four
        value, grad_mean, grad_std, grad_rho = both_within(
            -high, -low, (-means[0], -means[1]), stds, rho
        )
        return value, -grad_mean, grad_std, grad_rho
    total, grad_mean, grad_std, grad_rho = (np.zeros(np.shape(rho)) for _ in range(4))
    edges = [(sign, edge) for sign, edge in ((1.0, high), (-1.0, low)) if edge > -math.inf]
    for sign_x, edge_x in edges:
        for sign_y, edge_y in edges:
            h = (edge_x - means[0]) / stds[0]
            k = (edge_y - means[1]) / stds[1]
            value, grad_h, _, derivative = bivariate_cdf(*np.broadcast_arrays(h, k, rho))
            sign = sign_x * sign_y
            total += sign * value
            grad_rho += sign * derivative
            grad_mean -= sign * grad_h / stds[0]
            grad_std -= sign * grad_h * h / stds[0]
    return np.maximum(total, 0.0), grad_mean, grad_std, grad_rho
