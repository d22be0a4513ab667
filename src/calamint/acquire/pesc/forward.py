"""How many nats a measurement of each function yields about x*, at any input: the forward pass.

The factor Ψ at x itself shrinks the conditioned variances once more, and the gain of function i is
the mean over solutions of ½ log(C_i(x,x) + ν_i) − ½ log(v_i'(x) + ν_i). Outcomes have their own
entropy (`binary`).

| symbol | code | shape | meaning |
|---|---|---|---|
| C(x, x) | `prior` | (J, n, 1 + K) | variance that is believed at x |
| m, v | `mean`, `variance` | (J, n, 1 + K) | given the sites of each x* |
| v' | `after` | (J, n, 1 + K) | and given Ψ at x |
| s | `apart` | (J, n) | variance of f(x) − f(x*), conditioned |
| p | `cov_difference` | (J, n) | v − cov(f(x), f(x*)), conditioned |
| | `cross`, `through` | (J, 1 + K, n, B) | C(x, sites), and times W |
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.pesc.binary import BinaryGain, entropy_reduction, kl_divergence
from calamint.acquire.pesc.conditioning import FLOOR, Conditioned
from calamint.acquire.pesc.factors import Psi, psi
from calamint.arrays import Array, Mask
from calamint.model import CrossMoments


@final
@dataclass(frozen=True)
class Forward:
    """What the forward pass leaves for the backward one; see the table.

    gains   (n, 1 + K) averaged over solutions; `each` (J, n, 1 + K) of them
    silent  (J, n) where x is x* itself, and Ψ says nothing
    """

    at: list[CrossMoments]
    gains: Array
    each: Array
    mean: Array
    prior: Array
    variance: Array
    cross: Array
    through: Array
    apart: Array
    cov_difference: Array
    after: Array
    noise: Array
    factor: Psi
    silent: Mask
    binary: BinaryGain | None


def forward(c: Conditioned, x: Array, order: int) -> Forward:
    """At (n, D); derivatives of interval probabilities up to `order`: `backward` needs 4."""
    at = [function.cross_moments(x, derivatives=order > 2) for function in c.functions]
    sites, count = c.sites, len(c.rows)
    solution = np.arange(count)
    before = np.stack([moments.mean[c.rows] for moments in at], axis=-1)  # (J, n, 1 + K)
    prior = np.stack([moments.variance[c.rows] for moments in at], axis=-1)
    cross = np.empty((count, len(at), len(x), sites + 1))  # C(x, own sites and x*)
    for i, moments in enumerate(at):
        cross[:, i, :, :sites] = moments.covariance[c.rows, :, :sites]
        cross[:, i, :, sites] = moments.covariance[c.rows, :, sites + solution]
    last = cross[:, 0, :, sites].copy()  # C(f(x), f(x*))
    cross[:, 0] -= last[..., None]
    through = cross @ c.w  # (J, 1 + K, n, B)
    mean = before + np.moveaxis((cross @ c.r[..., None])[..., 0], 1, -1)
    variance = prior - np.moveaxis(np.vecdot(through, cross), 1, -1)
    lowest = np.array([1e-16 * (function.scale or 1.0) for function in c.functions])
    variance = np.maximum(variance, lowest)
    to_solution = last - np.einsum("jnb,jb->jn", cross[:, 0], c.to_solution)
    apart = variance[..., 0] + c.var_solution[:, None] - 2 * to_solution
    apart = np.maximum(apart, 0.0) + FLOOR * (c.functions[0].scale or 1.0)
    factor = psi(
        mean[..., 0] - c.mean_solution[:, None],
        apart,
        mean[..., 1:],
        variance[..., 1:],
        c.limits,
        order,
    )
    # Exactly at x* the factor says nothing.
    solutions = c.functions[0].points[sites:]
    silent = np.max(np.abs(x[None] - solutions[:, None]), axis=-1) < 1e-9
    shrink = np.where(silent, 0.0, factor.beta * (factor.beta + factor.alpha))
    kappa = np.where(silent[..., None], 0.0, factor.kappa_c)
    cov_difference = variance[..., 0] - to_solution
    after = np.empty_like(variance)
    after[..., 0] = variance[..., 0] - shrink * cov_difference**2 / apart
    after[..., 1:] = variance[..., 1:] * (1 - variance[..., 1:] * kappa)
    after = np.maximum(after, lowest)
    noise = c.noise[c.rows][:, None, :]
    each = 0.5 * np.log((prior + noise + 1e-300) / (after + noise + 1e-300))
    binary = None
    if c.binary.any():
        shift = np.where(silent[..., None], 0.0, factor.rho_c) * variance[..., 1:]
        binary = (kl_divergence if c.kl else entropy_reduction)(
            before[..., c.binary],
            prior[..., c.binary],
            (mean[..., 1:] + shift)[..., c.binary[1:]],
            after[..., c.binary],
        )
        each[..., c.binary] = binary.in_nats
    gains = np.where(c.measurable, np.einsum("j,jni->ni", c.weights, each), 0.0)
    return Forward(
        at,
        gains,
        each,
        mean,
        prior,
        variance,
        cross,
        through,
        apart,
        cov_difference,
        after,
        noise,
        factor,
        silent,
        binary,
    )


@final
@dataclass(frozen=True)
class Given:
    """Moments of every function given each x*, standardised, and the gain: (J, n, 1 + K) each."""

    mean: Array
    variance: Array
    gains: Array


def given(c: Conditioned, x: Array) -> Given:
    """What would be believed at (n, D) if each drawn x* were known to be the solution."""
    state = forward(c, x, 2)
    factor, speaks = state.factor, ~state.silent
    mean = state.mean.copy()
    mean[..., 0] += speaks * factor.rho_f * state.cov_difference
    mean[..., 1:] += speaks[..., None] * state.variance[..., 1:] * factor.rho_c
    return Given(mean, state.after, state.each)
