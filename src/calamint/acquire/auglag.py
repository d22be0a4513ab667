"""Expected improvement of an augmented Lagrangian (Gramacy et al. 2016; the paper's section 2.4).

    L(x) = f(x) + Σ_k [ min(0, c_k(x))² / (2p) − λ_k c_k(x) ]        feasible: c_k(x) ≥ 0

Each finite limit of an interval is a constraint of its own. After each evaluation the multipliers λ
and the penalty p are updated as in the classical method, at the measured input with the lowest L at
the posterior mean (pending jobs included):

    λ_k ← max(0, λ_k − c_k / p),   p ← p/2 where that point is not feasible

f and every c_k have models of their own (f may be known, as in the original), and improvement is
averaged over their joint predictions at x by quasi-Monte Carlo. The paper fits one model to values
of L instead, which has kinks and changes with λ.

| paper | code | shape | meaning |
|---|---|---|---|
| λ | `multipliers` | (J,) | multipliers, one for each finite limit |
| p (the paper's ρ) | `penalty` | | penalty parameter |
| c_k(x) | `margins` | (…, J) | how far inside each limit |
| L(x) | `lagrangian` | (…) | |
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp, ndtri

from calamint.acquire.blockwise import Blockwise
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.arrays import Array
from calamint.checks import whole
from calamint.model import Belief

_SOFTNESS = 1e-3  # of improvement, in standard deviations of the objective
_SMALLEST_PENALTY = 1e-8
_FLOOR = 1e-16


@final
@dataclass(frozen=True)
class Multipliers:
    """λ (J,), one for each finite limit, and the penalty p."""

    multipliers: Array
    penalty: float

    def lagrangian(self, objective: Array, margins: Array) -> Array:
        """(…), (…, J) -> (…)"""
        violation = np.minimum(margins, 0.0)
        penalties = 0.5 * violation**2 / self.penalty - self.multipliers * margins
        return objective + penalties.sum(-1)

    def updated(self, margins: Array) -> "Multipliers":
        """One update of multipliers and penalty, at a minimiser with these margins (J,)."""
        multipliers = np.maximum(0.0, self.multipliers - margins / self.penalty)
        penalty = self.penalty if np.all(margins >= 0) else self.penalty / 2
        return Multipliers(multipliers, max(penalty, _SMALLEST_PENALTY))


def replay(objective: Array, margins: Array, first: int) -> Multipliers:
    """The multipliers after evaluations with objectives (N,) and margins (N, J), in their order.

    The first few initialise p such that a typical violation weighs as much as a standard deviation
    of the objective; λ starts at zero.
    """
    violation = (np.minimum(margins[:first], 0.0) ** 2).sum(-1)
    typical = float(np.median(violation[violation > 0])) if np.any(violation > 0) else 2.0
    state = Multipliers(np.zeros(margins.shape[1]), max(0.5 * typical, _SMALLEST_PENALTY))
    for count in range(first, len(objective) + 1):
        values = state.lagrangian(objective[:count], margins[:count])
        state = state.updated(margins[int(np.argmin(values))])
    return state


@final
@dataclass(frozen=True)
class LagrangianImprovement(Blockwise):
    """log E[improvement of L], smoothed by a softplus so that its gradient does not vanish.

    Attributes:
        normals: (S, 1 + K) standard normal numbers.
        best: The lowest L so far.
    """

    belief: Belief
    multipliers: Multipliers
    best: float
    normals: Array
    logarithmic = True

    def block(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        functions = [self.belief.objective, *self.belief.constraints]
        look = [f.process.moments_gradient if gradients else f.process.moments for f in functions]
        moments: list[tuple[Array, ...]] = [function(x) for function in look]
        deviations = [np.sqrt(np.maximum(moment[1], _FLOOR)) for moment in moments]
        # (S, M, n) each
        drawn = [
            moment[0] + deviation * self.normals[:, i, None, None]
            for i, (moment, deviation) in enumerate(zip(moments, deviations, strict=True))
        ]
        margins = margins_of(self.belief, drawn)
        short = (self.best - self.multipliers.lagrangian(drawn[0], margins)) / _SOFTNESS
        log_soft = np.log(np.logaddexp(0.0, short), where=short > -30, out=short.copy())
        total = logsumexp(log_soft, axis=(0, 1))
        value = total - math.log(log_soft.shape[0] * log_soft.shape[1]) + math.log(_SOFTNESS)
        if not gradients:
            return value, np.zeros(x.shape)
        # d log softplus = logistic / softplus, which tends to one as the argument goes to −∞.
        slope = np.exp(-np.logaddexp(0.0, -short) - log_soft)
        by_lagrangian = -np.exp(log_soft - total) * slope / _SOFTNESS  # d value / d L, (S, M, n)
        by_margin = (
            np.minimum(margins, 0.0) / self.multipliers.penalty - self.multipliers.multipliers
        )
        by_function = [
            by_lagrangian,
            *_by_constraint(self.belief, by_lagrangian[..., None] * by_margin),
        ]
        gradient = np.zeros(x.shape)
        for i, (by, moment) in enumerate(zip(by_function, moments, strict=True)):
            mean_x, variance_x = moment[2:]
            by_mean = by.sum(0)
            by_variance = (by * self.normals[:, i, None, None]).sum(0) / (2 * deviations[i])
            gradient += np.einsum("mn,mnd->nd", by_mean, mean_x)
            gradient += np.einsum("mn,mnd->nd", by_variance, variance_x)
        return value, gradient


def margins_of(belief: Belief, values: list[Array]) -> Array:
    """Values of the objective and every constraint (…) -> how far inside each limit, (…, J)."""
    margins = [values[0][..., None][..., :0]]
    for function, value in zip(belief.constraints, values[1:], strict=True):
        margins += [value[..., None] - function.low] if math.isfinite(function.low) else []
        margins += [function.high - value[..., None]] if math.isfinite(function.high) else []
    return np.concatenate(margins, axis=-1)


def _by_constraint(belief: Belief, by_margin: Array) -> list[Array]:
    """Slopes in margins (…, J) -> in the constraints, (…) each."""
    index, slopes = 0, []
    for function in belief.constraints:
        slope = np.zeros(by_margin.shape[:-1])
        for limit, sign in ((function.low, 1.0), (function.high, -1.0)):
            if math.isfinite(limit):
                slope = slope + sign * by_margin[..., index]
                index += 1
        slopes.append(slope)
    return slopes


def measured_together(belief: Belief) -> Array:
    """(N, D) inputs at which every function was measured, in order."""
    processes = [f.process for f in belief.functions.values() if f.process.measurable]
    rows = [tuple(row) for row in processes[0].inputs]
    for process in processes[1:]:
        also = {tuple(row) for row in process.inputs}
        rows = [row for row in rows if row in also]
    return np.array(rows).reshape(-1, belief.problem.space.dimension)


@final
class AugmentedLagrangian(Acquisition):
    """Expected improvement of an augmented Lagrangian, for tasks that measure every function.

    Args:
        draws: How many joint predictions to average over.
    """

    name = "auglag"
    separable = False

    def __init__(self, draws: int = 128) -> None:
        self.draws = whole(draws, "draws", 1)

    def prepare(
        self,
        belief: Belief,
        incumbent: Incumbent,
        rng: np.random.Generator,
    ) -> Utility:
        from scipy.stats import qmc

        measured = measured_together(belief)
        x = measured if len(measured) else incumbent.point[None]
        functions = [belief.objective, *belief.constraints]
        values = [function.process.moments(x)[0].mean(0) for function in functions]
        margins = margins_of(belief, values)
        multipliers = replay(values[0], margins, first=len(belief.problem.space) + 1)
        best = float(multipliers.lagrangian(values[0], margins).min())
        dimension = 1 + len(belief.constraints)
        uniform = qmc.Halton(dimension, rng=rng).random(self.draws)
        normals = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
        return LagrangianImprovement(belief, multipliers, best, normals)
