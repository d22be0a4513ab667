"""The gradient of the gains in x: reverse differentiation of `forward`, by hand.

`grad_y` is the derivative of the weighted sum of gains in y; y as in `forward`.

| symbol | code | meaning |
|---|---|---|
| β, α, R | `f.beta`, `f.alpha`, `f.weight` | of the factor Ψ: see `factors` |
| B = β(β + α) | `big` | how much Ψ shrinks the objective's variance |
| d, e, … | `d`, `e`, `third`, `fourth` | P'/P, P''/P, … of each limit |
| Λ | `grad_lambda` | Σ_k log P_k |
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
    grad_prior = 0.5 * weights / (s.prior + s.noise + 1e-300)
    grad_after = -0.5 * weights / (s.after + s.noise + 1e-300)
    speaks = ~s.silent
    grad_before = np.zeros_like(s.variance)  # the mean that was believed at x anyway
    grad_shift = np.zeros_like(s.variance[..., 1:])
    if s.binary is not None:
        binary = weights[..., c.binary]
        grad_before[..., c.binary] = binary * s.binary.grad_mean
        grad_prior[..., c.binary] = binary * s.binary.grad_variance
        grad_after[..., c.binary] = binary * s.binary.grad_variance_after
        grad_shift[..., c.binary[1:]] = binary * s.binary.grad_mean_after
    # The objective: after = v − B p²/s, B = β(β + α), p = v − cov(f(x), f(x*)).
    big = f.beta * (f.beta + f.alpha) * speaks
    ratio = s.cov_difference / s.apart
    own = grad_after[..., 0]
    grad_var = np.empty_like(s.variance)
    grad_var[..., 0] = own * (1 - 2 * big * ratio)
    grad_to = own * 2 * big * ratio
    grad_apart = own * big * ratio**2
    grad_big = -own * s.cov_difference * ratio * speaks
    grad_beta = grad_big * (2 * f.beta + f.alpha)
    grad_alpha = grad_big * f.beta
    # The constraints: after = v − v² κ, κ = R² d² + R e, with d = P'/P, e = P''/P.
    _, d, e, third, fourth = f.derivatives
    big_r = f.weight[..., None]
    kappa = f.kappa_c * speaks[..., None]
    var_c = s.variance[..., 1:]
    grad_var[..., 1:] = grad_after[..., 1:] * (1 - 2 * var_c * kappa)
    grad_kappa = -grad_after[..., 1:] * var_c**2 * speaks[..., None]
    grad_weight = (grad_kappa * (2 * big_r * d**2 + e)).sum(-1)
    grad_d = grad_kappa * 2 * big_r**2 * d
    grad_e = grad_kappa * big_r
    # The mean behind an outcome: m' = m + v ρ, ρ = −R d.
    grad_rho = grad_shift * var_c * speaks[..., None]
    grad_var[..., 1:] += grad_shift * f.rho_c * speaks[..., None]
    grad_weight = grad_weight - (grad_rho * d).sum(-1)
    grad_d = grad_d - grad_rho * big_r
    # dβ = β((1 + R) dΛ − (α + β) dα),  dR = R(1 + R)(dΛ − h dα),  h R = β,  Λ = Σ log P_k
    grad_lambda = (1 + f.weight) * (grad_beta * f.beta + grad_weight * f.weight)
    grad_alpha = grad_alpha - grad_beta * f.beta * (f.alpha + f.beta)
    grad_alpha = grad_alpha - grad_weight * (1 + f.weight) * f.beta
    grad_alpha = np.where(f.alpha > -FAR, grad_alpha, 0.0)
    grad_mean = np.zeros_like(s.variance)
    grad_mean[..., 1:] = grad_lambda[..., None] * d + grad_d * (e - d**2) + grad_e * (third - e * d)
    grad_mean[..., 1:] += grad_shift
    grad_var[..., 1:] += 0.5 * (
        grad_lambda[..., None] * e + grad_d * (third - e * d) + grad_e * (fourth - e**2)
    )
    grad_mean[..., 0] = grad_alpha / f.std
    grad_apart = grad_apart - 0.5 * grad_alpha * f.alpha / s.apart
    # s = v + v* − 2 cov + floor
    grad_var[..., 0] += grad_apart
    grad_to = grad_to - 2 * grad_apart
    # m = μ + c r,  v = C − c W c,  cov = C(x, x*) − c h
    grad_cross = np.moveaxis(grad_mean, -1, 1)[..., None] * c.r[:, :, None, :]
    grad_cross -= 2 * np.moveaxis(grad_var, -1, 1)[..., None] * s.through
    grad_cross[:, 0] -= grad_to[..., None] * c.to_solution[:, None, :]
    grad_last = grad_to - grad_cross[:, 0].sum(-1)
    grad_prior = grad_prior + grad_var
    return _collect(c, x, s.at, grad_mean + grad_before, grad_prior, grad_cross, grad_last)


def _collect(
    c: Conditioned,
    x: Array,
    at: list[CrossMoments],
    grad_mean: Array,
    grad_prior: Array,
    grad_cross: Array,
    grad_last: Array,
) -> Array:
    """Add up over solutions of the same sample, and take the gradient in x."""
    sites, count = c.sites, len(c.rows)
    solution = np.arange(count)
    gradient = np.zeros(x.shape)
    for i, function in enumerate(c.functions):
        covariance = np.zeros((count, len(x), sites + count))
        covariance[:, :, :sites] = grad_cross[:, i, :, :sites]
        covariance[solution, :, sites + solution] = (
            grad_last if i == 0 else grad_cross[:, i, :, sites]
        )
        belongs = np.arange(len(c.noise))[:, None] == c.rows
        gradient += function.vjp(
            x,
            at[i],
            belongs @ grad_mean[..., i],
            belongs @ grad_prior[..., i],
            np.tensordot(belongs.astype(float), covariance, axes=1),
        )
    return gradient
