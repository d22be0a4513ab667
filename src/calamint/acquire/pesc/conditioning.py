"""What would be believed if each drawn x* were the solution: the part that does not depend on x.

Once EP has converged, everything at an input x is a product of what is believed there with vectors
that are fixed here. For solution j, with W = diag(a) − diag(a) V diag(a) and r = b − a∘m of its
sites:

    E_q[u] = μ(u) + C(u, sites) r        cov_q(u, w) = C(u, w) − C(u, sites) W C(sites, w)

| symbol | code | shape | meaning |
|---|---|---|---|
| J, M | | | solutions, samples of the surrogate (fantasies counted) |
| S, B | | | site points; B = S + 1 with x* itself |
| W, r | `w`, `r` | (J, 1 + K, B, B), (J, 1 + K, B) | of the converged sites |
| ν | `noise` | (M, 1 + K) | variance of a measurement |

A function's points are the site points followed by all x*, (S + J, D).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.pesc.ep import Blocks, Sites
from calamint.acquire.pesc.factors import Limits
from calamint.arrays import Array, Index, Mask
from calamint.model import Joint, Surrogate

# Relative to the prior variance, added to the variance of f(x) − f(x*).
FLOOR = 1e-10


def limits_of(surrogate: Surrogate) -> Limits:
    """The standardised limits of all constraints."""
    return Limits(
        np.array([function.low for function in surrogate.constraints]),
        np.array([function.high for function in surrogate.constraints]),
    )


def blocks_of(functions: Sequence[Joint], limits: Limits, sites: int, rows: Index) -> Blocks:
    """The site variables of every solution: g_n = f(z_n) − f(x*), c_k(z_n) and c_k(x*).

    rows  (J,) which sample of the surrogate each solution belongs to
    """
    count = len(rows)
    at = np.tile(np.arange(sites + 1), (count, 1))  # (J, B) points of each: all sites, its own x*
    at[:, sites] += np.arange(count)
    pairs = (rows[:, None, None], at[:, :, None], at[:, None, :])
    mean = np.stack([function.mean[rows[:, None], at] for function in functions], axis=1)
    covariance = np.stack([function.covariance[pairs] for function in functions], axis=1)
    # The objective's block is in differences to x*; its last entry is then zero, and unused.
    mean[:, 0] -= mean[:, 0, -1:]
    last = covariance[:, 0, -1]
    covariance[:, 0] += last[:, -1, None, None] - last[:, :, None] - last[:, None, :]
    # Noise-free data leave no variance at all: keep what divides by it finite.
    diagonal = np.arange(sites + 1)
    floor = FLOOR * np.array([function.scale for function in functions])
    covariance[:, :, diagonal, diagonal] += floor[:, None]
    points = functions[0].points
    solutions = points[sites:]
    active = np.max(np.abs(points[None, :sites] - solutions[:, None]), axis=-1) > 1e-9
    return Blocks(mean, covariance, limits, active)


@final
@dataclass(frozen=True)
class Conditioned:
    """What is believed of every function if each drawn x* were the solution.

    functions      the objective first, then the constraints
    binary       (1 + K,) which functions are measured as pass or fail
    kl             whether outcomes are valued by KL divergence: see `binary`
    rows           (J,) which sample each solution belongs to
    weights        (J,) of the solutions in the average, summing to one
    to_solution    (J, B) W C(sites, f(x*)) of the objective
    mean_solution, var_solution  (J,) of f(x*), conditioned
    """

    functions: list[Joint]
    limits: Limits
    binary: Mask
    kl: bool
    rows: Index
    weights: Array
    w: Array
    r: Array
    noise: Array
    to_solution: Array
    mean_solution: Array
    var_solution: Array

    @property
    def sites(self) -> int:
        """S"""
        return self.r.shape[-1] - 1

    @property
    def measurable(self) -> Mask:
        """(1 + K,)"""
        return np.array([function.measurable for function in self.functions])

    def subset(self, samples: slice, most: int | None = None) -> "Conditioned":
        """The contribution of some samples, with at most `most` of their solutions, those of
        the greatest weight first."""
        mine = np.flatnonzero((self.rows >= samples.start) & (self.rows < samples.stop))
        mine = np.sort(mine[np.argsort(-self.weights[mine], kind="stable")[:most]])
        if len(mine) == len(self.rows):
            return self
        columns = np.append(np.arange(self.sites), self.sites + mine)
        return Conditioned(
            functions=[function.subset(samples, columns) for function in self.functions],
            limits=self.limits,
            binary=self.binary,
            kl=self.kl,
            rows=self.rows[mine] - samples.start,
            weights=self.weights[mine],
            w=self.w[mine],
            r=self.r[mine],
            noise=self.noise[samples],
            to_solution=self.to_solution[mine],
            mean_solution=self.mean_solution[mine],
            var_solution=self.var_solution[mine],
        )


def condition(
    functions: list[Joint],
    blocks: Blocks,
    sites: Sites,
    rows: Index,
    weights: Array,
    binary: Mask | None = None,
    kl: bool = False,
) -> Conditioned:
    """Prepare all that the gains at any input need."""
    a = sites.precision
    w = -a[..., :, None] * sites.covariance * a[..., None, :]
    diagonal = np.arange(a.shape[-1])
    w[..., diagonal, diagonal] += a
    r = sites.shift - a * sites.mean
    # The objective at its own x*, and with the differences at the sites.
    objective = functions[0]
    own = a.shape[-1] - 1 + np.arange(len(rows))
    prior = objective.covariance[rows, own, own]
    cross = objective.covariance[rows, own, : a.shape[-1]] - prior[:, None]
    cross[:, -1] = 0.0
    to = (w[:, 0] @ cross[..., None])[..., 0]
    return Conditioned(
        functions=functions,
        limits=blocks.limits,
        binary=np.zeros(len(functions), dtype=bool) if binary is None else binary,
        kl=kl,
        rows=rows,
        weights=weights,
        w=w,
        r=r,
        noise=np.stack([function.noise for function in functions], axis=-1),
        to_solution=to,
        mean_solution=objective.mean[rows, own] + np.vecdot(cross, r[:, 0]),
        var_solution=prior - np.vecdot(cross, to),
    )
