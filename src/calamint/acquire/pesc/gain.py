"""How many nats a measurement of each function tells about x*, at any input, with gradients.

Everything is a product of what is believed at x with vectors that are fixed once EP has converged
(`Conditioned`). For solution j, with W = diag(a) − diag(a) V diag(a) and r = b − a∘m of its sites:

    E_q[u] = μ(u) + C(u, sites) r        cov_q(u, w) = C(u, w) − C(u, sites) W C(sites, w)

then the factor Ψ at x itself shrinks the variances once more, and the gain of function i is the
mean over solutions of ½ log(C_i(x,x) + ν_i) − ½ log(v_i'(x) + ν_i). A verdict is a coin
(`Coins`).

Shapes: J solutions, M hyper-parameter samples (solution j belongs to sample j mod M), S site
points, n inputs. Anchors are the site points followed by all x*, (S + J, D).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

import numpy as np

from calamint.acquire.pesc.coins import Coins
from calamint.acquire.pesc.factors import FAR, Limits, Psi, psi
from calamint.acquire.pesc.sites import Blocks, Sites
from calamint.model import Belief
from calamint.model.anchored import Anchored, Seen
from calamint.model.hyper import lengthscales
from calamint.model.kernels import Index, Mask
from calamint.model.posterior import Posterior
from calamint.problem.parameters import Array

# Relative to the prior variance, added to the variance of f(x) − f(x*).
_FLOOR = 1e-10
# So many solutions tell well enough which of many inputs deserve to be scored by all.
_SCREENING = 5
# Covariances with the anchors worked on at once: with fewer, calls cost more than numbers (twice as
# much at 15,000); with many more, numbers leave the cache.
_AT_ONCE = 100_000


def blocks_of(functions: list[Anchored], limits: Limits, sites: int, owner: Index) -> Blocks:
    """The site variables of every solution: g_n = f(z_n) − f(x*), c_k(z_n) and c_k(x*).

    owner  (J,) which hyper-parameter sample each solution belongs to
    """
    count = len(owner)
    at = np.tile(np.arange(sites + 1), (count, 1))  # (J, B) anchors of each: all sites, its own x*
    at[:, sites] += np.arange(count)
    pairs = (owner[:, None, None], at[:, :, None], at[:, None, :])
    mean = np.stack([function.mean[owner[:, None], at] for function in functions], axis=1)
    covariance = np.stack([function.covariance[pairs] for function in functions], axis=1)
    # The objective's block is in differences to x*; its last entry is then zero, and unused.
    mean[:, 0] -= mean[:, 0, -1:]
    last = covariance[:, 0, -1]
    covariance[:, 0] += last[:, -1, None, None] - last[:, :, None] - last[:, None, :]
    # Noise-free data leave no variance at all: keep what divides by it finite.
    diagonal = np.arange(sites + 1)
    floor = _FLOOR * np.array([function.scale for function in functions])
    covariance[:, :, diagonal, diagonal] += floor[:, None]
    anchors = functions[0].anchors
    solutions = anchors[sites:]
    active = np.max(np.abs(anchors[None, :sites] - solutions[:, None]), axis=-1) > 1e-9
    return Blocks(mean, covariance, limits, active)


@final
@dataclass(frozen=True)
class Conditioned:
    """What is believed of every function if each drawn x* were the solution.

    functions   the objective first, then the constraints
    weights     (J,) of the solutions in the average, summing to one
    w, r        (J, 1 + K, B, B), (J, 1 + K, B) of the converged sites
    noise       (M, 1 + K) variance of a measurement
    passfail    (1 + K,) which functions are measured as pass or fail
    diverging   how verdicts are valued: see `Coins`
    """

    functions: list[Anchored]
    limits: Limits
    passfail: Mask
    diverging: bool
    owner: Index
    weights: Array
    w: Array
    r: Array
    noise: Array
    to_solution: Array
    mean_solution: Array
    var_solution: Array
    _parts: dict[int, list["Conditioned"]] = field(default_factory=dict)

    @staticmethod
    def of(
        functions: list[Anchored],
        blocks: Blocks,
        sites: Sites,
        owner: Index,
        weights: Array,
        passfail: Mask | None = None,
        diverging: bool = False,
    ) -> "Conditioned":
        a = sites.precision
        w = -a[..., :, None] * sites.covariance * a[..., None, :]
        diagonal = np.arange(a.shape[-1])
        w[..., diagonal, diagonal] += a
        r = sites.shift - a * sites.mean
        # The objective at its own x*, and with the differences at the sites.
        objective = functions[0]
        own = a.shape[-1] - 1 + np.arange(len(owner))
        prior = objective.covariance[owner, own, own]
        cross = objective.covariance[owner, own, : a.shape[-1]] - prior[:, None]
        cross[:, -1] = 0.0
        to = (w[:, 0] @ cross[..., None])[..., 0]
        noise = np.stack(
            [
                f.process.noise if isinstance(f.process, Posterior) else np.zeros(len(f.process))
                for f in functions
            ],
            axis=-1,
        )
        return Conditioned(
            functions=functions,
            limits=blocks.limits,
            passfail=np.zeros(len(functions), dtype=bool) if passfail is None else passfail,
            diverging=diverging,
            owner=owner,
            weights=weights,
            w=w,
            r=r,
            noise=noise,
            to_solution=to,
            mean_solution=objective.mean[owner, own] + np.vecdot(cross, r[:, 0]),
            var_solution=prior - np.vecdot(cross, to),
        )

    @property
    def sites(self) -> int:
        return self.r.shape[-1] - 1

    def gains(self, x: Array) -> Array:
        """(n, D) -> (n, 1 + K) nats from measuring each function; zero for known ones."""
        gains = np.zeros((len(x), len(self.functions)))
        for rows, part in self._pieces(len(x)):
            gains[rows] += part._forward(x[rows], 2).gains
        return gains

    def screen(self, x: Array) -> Array:
        """(n, D) -> (n, 1 + K) the share of a few solutions in the gains."""
        samples = min(_SCREENING, len(self.noise))
        # Of the groups of so many samples, one whose solutions count; of it, those that count most.
        weight = np.bincount(self.owner, self.weights, len(self.noise))
        groups = range(0, len(self.noise) - samples + 1, samples)
        start = max(groups, key=lambda first: weight[first : first + samples].sum())
        group = slice(start, start + samples)
        return self._part(group, most=_SCREENING).gains(x)

    def given(self, x: Array) -> "Given":
        """What would be believed at (n, D) if each drawn x* were known to be the solution."""
        state = self._forward(x, 2)
        factor, speaks = state.factor, ~state.silent
        mean = state.mean.copy()
        mean[..., 0] += speaks * factor.rho_f * state.pull
        mean[..., 1:] += speaks[..., None] * state.variance[..., 1:] * factor.rho_c
        return Given(mean, state.after, state.each)

    def gains_gradient(self, x: Array, wanted: Array) -> tuple[Array, Array]:
        """(n, D) -> gains (n, 1 + K) and the gradient (n, D) of Σ_i wanted_i gain_i.

        wanted (n, 1 + K) or (1 + K,)
        """
        wanted = np.broadcast_to(wanted, (len(x), len(self.functions)))
        gains, gradient = np.zeros((len(x), len(self.functions))), np.zeros(x.shape)
        # Where f(x) and f(x*) are the same but for rounding, slopes are beyond any number.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, part in self._pieces(len(x)):
                state = part._forward(x[rows], 4)
                gains[rows] += state.gains
                gradient[rows] += part._backward(x[rows], state, wanted[rows])
        return gains, np.nan_to_num(gradient, posinf=1e12, neginf=-1e12)

    def _pieces(self, count: int) -> Iterator[tuple[slice, "Conditioned"]]:
        """Blocks of points under groups of samples, small enough to be worked on in the cache."""
        each = max(len(function.points) for function in self.functions)
        samples = len(self.noise)
        group = min(samples, max(1, _AT_ONCE // (each * max(count, 1))))
        if group not in self._parts:
            self._parts[group] = [
                self._part(slice(start, min(start + group, samples)))
                for start in range(0, samples, group)
            ]
        size = max(64, _AT_ONCE // (each * group))
        for start in range(0, count, size):
            for part in self._parts[group]:
                yield slice(start, start + size), part

    def _part(self, samples: slice, most: int | None = None) -> "Conditioned":
        """The contribution of some hyper-parameter samples, with (at most so many of) their
        solutions, those of the greatest weight first."""
        mine = np.flatnonzero((self.owner >= samples.start) & (self.owner < samples.stop))
        mine = np.sort(mine[np.argsort(-self.weights[mine], kind="stable")[:most]])
        if len(mine) == len(self.owner):
            return self
        columns = np.append(np.arange(self.sites), self.sites + mine)
        return Conditioned(
            functions=[function.part(samples, columns) for function in self.functions],
            limits=self.limits,
            passfail=self.passfail,
            diverging=self.diverging,
            owner=self.owner[mine] - samples.start,
            weights=self.weights[mine],
            w=self.w[mine],
            r=self.r[mine],
            noise=self.noise[samples],
            to_solution=self.to_solution[mine],
            mean_solution=self.mean_solution[mine],
            var_solution=self.var_solution[mine],
        )

    def _forward(self, x: Array, order: int) -> "_State":
        at = [function.at(x, slopes=order > 2) for function in self.functions]
        sites, count = self.sites, len(self.owner)
        solution = np.arange(count)
        before = np.stack([seen.mean[self.owner] for seen in at], axis=-1)  # (J, n, 1 + K)
        prior = np.stack([seen.variance[self.owner] for seen in at], axis=-1)
        cross = np.empty((count, len(at), len(x), sites + 1))  # C(x, own sites and x*)
        for i, seen in enumerate(at):
            cross[:, i, :, :sites] = seen.covariance[self.owner, :, :sites]
            cross[:, i, :, sites] = seen.covariance[self.owner, :, sites + solution]
        last = cross[:, 0, :, sites].copy()  # C(f(x), f(x*))
        cross[:, 0] -= last[..., None]
        through = cross @ self.w  # (J, 1 + K, n, B)
        mean = before + np.moveaxis((cross @ self.r[..., None])[..., 0], 1, -1)
        variance = prior - np.moveaxis(np.vecdot(through, cross), 1, -1)
        lowest = np.array([1e-16 * (function.scale or 1.0) for function in self.functions])
        variance = np.maximum(variance, lowest)
        to_solution = last - np.einsum("jnb,jb->jn", cross[:, 0], self.to_solution)
        apart = variance[..., 0] + self.var_solution[:, None] - 2 * to_solution
        apart = np.maximum(apart, 0.0) + _FLOOR * (self.functions[0].scale or 1.0)
        factor = psi(
            mean[..., 0] - self.mean_solution[:, None],
            apart,
            mean[..., 1:],
            variance[..., 1:],
            self.limits,
            order,
        )
        # Exactly at x* the factor says nothing.
        anchors = self.functions[0].anchors[sites:]
        silent = np.max(np.abs(x[None] - anchors[:, None]), axis=-1) < 1e-9
        shrink = np.where(silent, 0.0, factor.beta * (factor.beta + factor.alpha))
        kappa = np.where(silent[..., None], 0.0, factor.kappa_c)
        pull = variance[..., 0] - to_solution
        after = np.empty_like(variance)
        after[..., 0] = variance[..., 0] - shrink * pull**2 / apart
        after[..., 1:] = variance[..., 1:] * (1 - variance[..., 1:] * kappa)
        after = np.maximum(after, lowest)
        noise = self.noise[self.owner][:, None, :]
        measurable = np.array([isinstance(f.process, Posterior) for f in self.functions])
        each = 0.5 * np.log((prior + noise + 1e-300) / (after + noise + 1e-300))
        coins = None
        if self.passfail.any():
            at_stake = self.passfail[1:]
            shift = np.where(silent[..., None], 0.0, factor.rho_c) * variance[..., 1:]
            toss = Coins.diverging if self.diverging else Coins.falling
            coins = toss(
                before[..., self.passfail],
                prior[..., self.passfail],
                (mean[..., 1:] + shift)[..., at_stake],
                after[..., self.passfail],
            )
            each[..., self.passfail] = coins.nats
        gains = np.where(measurable, np.einsum("j,jni->ni", self.weights, each), 0.0)
        return _State(
            at,
            gains,
            each,
            mean,
            prior,
            variance,
            cross,
            through,
            apart,
            pull,
            after,
            noise,
            factor,
            silent,
            coins,
        )

    def _backward(self, x: Array, state: "_State", wanted: Array) -> Array:
        """Reverse differentiation of Σ_i wanted_i gain_i, by hand."""
        s, f = state, state.factor
        measurable = np.array([isinstance(g.process, Posterior) for g in self.functions])
        weights = self.weights[:, None, None] * np.where(measurable, wanted, 0.0)
        by_prior = 0.5 * weights / (s.prior + s.noise + 1e-300)
        by_after = -0.5 * weights / (s.after + s.noise + 1e-300)
        speaks = ~s.silent
        by_before = np.zeros_like(s.variance)  # the mean that was believed at x anyway
        by_shift = np.zeros_like(s.variance[..., 1:])
        if s.coins is not None:
            coined = weights[..., self.passfail]
            by_before[..., self.passfail] = coined * s.coins.by_mean
            by_prior[..., self.passfail] = coined * s.coins.by_variance
            by_after[..., self.passfail] = coined * s.coins.by_variance_after
            by_shift[..., self.passfail[1:]] = coined * s.coins.by_mean_after
        # The objective: after = v − B p²/s, B = β(β + α), p = v − cov(f(x), f(x*)).
        big = f.beta * (f.beta + f.alpha) * speaks
        ratio = s.pull / s.apart
        own = by_after[..., 0]
        by_var = np.empty_like(s.variance)
        by_var[..., 0] = own * (1 - 2 * big * ratio)
        by_to = own * 2 * big * ratio
        by_apart = own * big * ratio**2
        by_big = -own * s.pull * ratio * speaks
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
        # A verdict's mean: m' = m + v ρ, ρ = −R d.
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
        by_cross = np.moveaxis(by_mean, -1, 1)[..., None] * self.r[:, :, None, :]
        by_cross -= 2 * np.moveaxis(by_var, -1, 1)[..., None] * s.through
        by_cross[:, 0] -= by_to[..., None] * self.to_solution[:, None, :]
        by_last = by_to - by_cross[:, 0].sum(-1)
        by_prior = by_prior + by_var
        return self._collect(x, s.at, by_mean + by_before, by_prior, by_cross, by_last)

    def _collect(
        self,
        x: Array,
        at: list[Seen],
        by_mean: Array,
        by_prior: Array,
        by_cross: Array,
        by_last: Array,
    ) -> Array:
        """Add up over solutions of the same sample, and pull back to x."""
        sites, count = self.sites, len(self.owner)
        solution = np.arange(count)
        gradient = np.zeros(x.shape)
        for i, function in enumerate(self.functions):
            covariance = np.zeros((count, len(x), sites + count))
            covariance[:, :, :sites] = by_cross[:, i, :, :sites]
            covariance[solution, :, sites + solution] = (
                by_last if i == 0 else by_cross[:, i, :, sites]
            )
            belongs = np.arange(len(function.process))[:, None] == self.owner
            gradient += function.pull(
                x,
                at[i],
                belongs @ by_mean[..., i],
                belongs @ by_prior[..., i],
                np.tensordot(belongs.astype(float), covariance, axes=1),
            )
        return gradient


@final
@dataclass(frozen=True)
class Given:
    """Moments of every function given each x*, standardised, and the gain: (J, n, 1 + K) each."""

    mean: Array
    variance: Array
    gains: Array


@final
@dataclass(frozen=True)
class _State:
    """What the forward pass leaves for the backward one; (J, n, 1 + K) unless it says otherwise."""

    at: list[Seen]
    gains: Array
    each: Array
    mean: Array
    prior: Array
    variance: Array
    cross: Array
    through: Array
    apart: Array
    pull: Array
    after: Array
    noise: Array
    factor: Psi
    silent: Mask
    coins: Coins | None


def limits_of(belief: Belief) -> Limits:
    """The standardised limits of all constraints."""
    return Limits(
        np.array([function.low for function in belief.constraints]),
        np.array([function.high for function in belief.constraints]),
    )


def scaled(points: Array, belief: Belief) -> Array:
    """Points divided by length-scales, so that distances are in units of them.

    Along each parameter those of the function that varies most count: what is one place for a
    nearly linear objective can be many for a wavy constraint.
    """
    typical = [
        np.median(lengthscales(function.process.theta), axis=0)
        for function in belief.functions.values()
        if isinstance(function.process, Posterior)
    ]
    return points / np.min(typical, axis=0)[belief.problem.space.owner]
