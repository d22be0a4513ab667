"""The gradient of the gains in x: reverse differentiation of `forward`, by hand.

`by_y` is the derivative of the weighted sum of gains in y; y as in `forward`.

| symbol | code | meaning |
|---|---|---|
| β, α, R | `f.beta`, `f.alpha`, `f.weight` | of the factor Ψ: see `factors` |
| B = β(β + α) | `big` | how much Ψ shrinks the objective's variance |
| d, e, … | `d`, `e`, `third`, `fourth` | P'/P, P''/P, … of each limit |
| Λ | `by_lambda` | Σ_k log P_k |
"""

import numpy as np

from calamint.acquire.pesc.conditioning import Conditioned
from calamint.acquire.pesc.factors import FAR
from calamint.acquire.pesc.forward import Forward
from calamint.arrays import Array
from calamint.model import CrossMoments


def backward(c: Conditioned, x: Array, s: Forward, wanted: Array) -> Array:
    """(n, D) gradient of Σ_i wanted_i gain_i; wanted (n, 1 + K)."""
    f = s.factor
    weights = c.weights[:, None, None] * np.where(c.measurable, wanted, 0.0)
    by_prior = 0.5 * weights / (s.prior + s.noise + 1e-300)
    by_after = -0.5 * weights / (s.after + s.noise + 1e-300)
    speaks = ~s.silent
    by_before = np.zeros_like(s.variance)  # the mean that was believed at x anyway
    by_shift = np.zeros_like(s.variance[..., 1:])
    if s.binary is not None:
        binary = weights[..., c.binary]
        by_before[..., c.binary] = binary * s.binary.by_mean
        by_prior[..., c.binary] = binary * s.binary.by_variance
        by_after[..., c.binary] = binary * s.binary.by_variance_after
        by_shift[..., c.binary[1:]] = binary * s.binary.by_mean_after
    # The objective: after = v − B p²/s, B = β(β + α), p = v − cov(f(x), f(x*)).
    big = f.beta * (f.beta + f.alpha) * speaks
    ratio = s.cov_difference / s.apart
    own = by_after[..., 0]
    by_var = np.empty_like(s.variance)
    by_var[..., 0] = own * (1 - 2 * big * ratio)
    by_to = own * 2 * big * ratio
    by_apart = own * big * ratio**2
    by_big = -own * s.cov_difference * ratio * speaks
    by_beta = by_big * (2 * f.beta + f.alpha)
    by_alpha = by_big * f.beta
    # The constraints: after = v − v² κ, κ = R² d² + R e, with d = P'/P, e = P''/P.
    _, d, e, third, fourth = f.slopes
    big_r = f.weight[..., None]
    kappa = f.kappa_c * speaks[..., None]
    var_c = s.variance[..., 1:]
    by_var[..., 1:] = by_after[..., 1:] * (1 - 2 * var_c * kappa)
    by_kappa = -by_after[..., 1:] * var_c**2 * speaks[..., None]
    by_weight = (by_kappa * (2 * big_r * d**2 + e)).sum(-1)
    by_d = by_kappa * 2 * big_r**2 * d
    by_e = by_kappa * big_r
    # The mean behind an outcome: m' = m + v ρ, ρ = −R d.
    by_rho = by_shift * var_c * speaks[..., None]
    by_var[..., 1:] += by_shift * f.rho_c * speaks[..., None]
    by_weight = by_weight - (by_rho * d).sum(-1)
    by_d = by_d - by_rho * big_r
    # dβ = β((1 + R) dΛ − (α + β) dα),  dR = R(1 + R)(dΛ − h dα),  h R = β,  Λ = Σ log P_k
    by_lambda = (1 + f.weight) * (by_beta * f.beta + by_weight * f.weight)
    by_alpha = by_alpha - by_beta * f.beta * (f.alpha + f.beta)
    by_alpha = by_alpha - by_weight * (1 + f.weight) * f.beta
    by_alpha = np.where(f.alpha > -FAR, by_alpha, 0.0)
    by_mean = np.zeros_like(s.variance)
    by_mean[..., 1:] = by_lambda[..., None] * d + by_d * (e - d**2) + by_e * (third - e * d)
    by_mean[..., 1:] += by_shift
    by_var[..., 1:] += 0.5 * (
        by_lambda[..., None] * e + by_d * (third - e * d) + by_e * (fourth - e**2)
    )
    by_mean[..., 0] = by_alpha / f.deviation
    by_apart = by_apart - 0.5 * by_alpha * f.alpha / s.apart
    # s = v + v* − 2 cov + floor
    by_var[..., 0] += by_apart
    by_to = by_to - 2 * by_apart
    # m = μ + c r,  v = C − c W c,  cov = C(x, x*) − c h
    by_cross = np.moveaxis(by_mean, -1, 1)[..., None] * c.r[:, :, None, :]
    by_cross -= 2 * np.moveaxis(by_var, -1, 1)[..., None] * s.through
    by_cross[:, 0] -= by_to[..., None] * c.to_solution[:, None, :]
    by_last = by_to - by_cross[:, 0].sum(-1)
    by_prior = by_prior + by_var
    return _collect(c, x, s.at, by_mean + by_before, by_prior, by_cross, by_last)


def _collect(
    c: Conditioned,
    x: Array,
    at: list[CrossMoments],
    by_mean: Array,
    by_prior: Array,
    by_cross: Array,
    by_last: Array,
) -> Array:
    """Add up over solutions of the same sample, and take the gradient in x."""
    sites, count = c.sites, len(c.rows)
    solution = np.arange(count)
    gradient = np.zeros(x.shape)
    for i, function in enumerate(c.functions):
        covariance = np.zeros((count, len(x), sites + count))
        covariance[:, :, :sites] = by_cross[:, i, :, :sites]
        covariance[solution, :, sites + solution] = by_last if i == 0 else by_cross[:, i, :, sites]
        belongs = np.arange(len(c.noise))[:, None] == c.rows
        gradient += function.vjp(
            x,
            at[i],
            belongs @ by_mean[..., i],
            belongs @ by_prior[..., i],
            np.tensordot(belongs.astype(float), covariance, axes=1),
        )
    return gradient
