"""Expected improvement of an augmented Lagrangian (Gramacy et al. 2016; Hernández-Lobato et al.
2016, section 2.4).

    L(x) = f(x) + Σ_k [ min(0, c_k(x))² / (2p) − λ_k c_k(x) ]        feasible: c_k(x) ≥ 0

Each finite limit of an interval is a constraint of its own. After each evaluation the multipliers λ
and the penalty p are updated as in the classical method, at the measured input with the lowest L at
the posterior mean (pending jobs included):

    λ_k ← max(0, λ_k − c_k / p),   p ← p/2 where that point is not feasible

f and every c_k have models of their own (f may be known, as in the original), and improvement is
averaged over their joint predictions at x by quasi-Monte Carlo. Hernández-Lobato et al. fit one
model to values of L instead, which has kinks and changes with λ.

| paper | code | shape | meaning |
|---|---|---|---|
| λ | `multipliers` | (J,) | multipliers, one for each finite limit |
| p (also ρ) | `penalty` | | penalty parameter |
| c_k(x) | `slacks` | (…, J) | how far inside each limit |
| L(x) | `lagrangian` | (…) | |
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp, ndtri

from calamint.acquire.batched import Batched
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array
from calamint.checks import check_integer
from calamint.model import Surrogate

# The temperature of the softplus that replaces max(0, ·), in standard deviations of the objective:
# small enough to leave improvements as they are, large enough for a gradient where there is none.
_TEMPERATURE = 1e-3
_MIN_PENALTY = 1e-8  # p is halved without end if no feasible point exists
_MIN_VARIANCE = 1e-16  # rounding error of a standardised variance


@final
@dataclass(frozen=True)
class PenaltyState:
    """λ (J,), one for each finite limit, and the penalty p."""

    multipliers: Array
    penalty: float

    def lagrangian(self, objective: Array, slacks: Array) -> Array:
        """(…), (…, J) -> (…)"""
        violation = np.minimum(slacks, 0.0)
        penalties = 0.5 * violation**2 / self.penalty - self.multipliers * slacks
        return objective + penalties.sum(-1)

    def updated(self, slacks: Array) -> "PenaltyState":
        """One update of multipliers and penalty, at a minimiser with these slacks (J,)."""
        multipliers = np.maximum(0.0, self.multipliers - slacks / self.penalty)
        penalty = self.penalty if np.all(slacks >= 0) else self.penalty / 2
        return PenaltyState(multipliers, max(penalty, _MIN_PENALTY))


def multipliers_after(objective: Array, slacks: Array, initial: int) -> PenaltyState:
    """The multipliers after evaluations with objectives (N,) and slacks (N, J), in their order.

    The first `initial` ones choose p such that a typical violation weighs as much as a standard
    deviation of the objective; λ starts at zero.
    """
    violation = (np.minimum(slacks[:initial], 0.0) ** 2).sum(-1)
    typical = float(np.median(violation[violation > 0])) if np.any(violation > 0) else 2.0
    state = PenaltyState(np.zeros(slacks.shape[1]), max(0.5 * typical, _MIN_PENALTY))
    for count in range(initial, len(objective) + 1):
        values = state.lagrangian(objective[:count], slacks[:count])
        state = state.updated(slacks[int(np.argmin(values))])
    return state


@final
@dataclass(frozen=True)
class LagrangianImprovement(Batched):
    """log E[improvement of L], smoothed by a softplus so that its gradient does not vanish.

    Attributes:
        base_samples: (S, 1 + K) standard normal numbers.
        best: The lowest L so far.
    """

    surrogate: Surrogate
    multipliers: PenaltyState
    best: float
    base_samples: Array
    log_scale = True

    def evaluate(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        functions = [self.surrogate.objective, *self.surrogate.constraints]
        moments: list[tuple[Array, ...]] = [
            f.posterior.mean_variance_gradient(x) if gradients else f.posterior.mean_variance(x)
            for f in functions
        ]
        stds = [np.sqrt(np.maximum(moment[1], _MIN_VARIANCE)) for moment in moments]
        # (S, M, n) each
        samples = [
            moment[0] + std * self.base_samples[:, i, None, None]
            for i, (moment, std) in enumerate(zip(moments, stds, strict=True))
        ]
        slacks = slacks_of(self.surrogate, samples)
        scaled = (self.best - self.multipliers.lagrangian(samples[0], slacks)) / _TEMPERATURE
        log_softplus = np.log(np.logaddexp(0.0, scaled), where=scaled > -30, out=scaled.copy())
        total = logsumexp(log_softplus, axis=(0, 1))
        count = log_softplus.shape[0] * log_softplus.shape[1]
        value = total - math.log(count) + math.log(_TEMPERATURE)
        if not gradients:
            return value, np.zeros(x.shape)
        # d log softplus = logistic / softplus, which tends to one as the argument goes to −∞.
        derivative = np.exp(-np.logaddexp(0.0, -scaled) - log_softplus)
        # d value / d L, (S, M, n)
        grad_lagrangian = -np.exp(log_softplus - total) * derivative / _TEMPERATURE
        grad_slack = (
            np.minimum(slacks, 0.0) / self.multipliers.penalty - self.multipliers.multipliers
        )
        grad_functions = [
            grad_lagrangian,
            *_grad_constraints(self.surrogate, grad_lagrangian[..., None] * grad_slack),
        ]
        gradient = np.zeros(x.shape)
        for i, (grad, moment) in enumerate(zip(grad_functions, moments, strict=True)):
            mean_gradient, variance_gradient = moment[2:]
            grad_mean = grad.sum(0)
            grad_variance = (grad * self.base_samples[:, i, None, None]).sum(0) / (2 * stds[i])
            gradient += np.einsum("mn,mnd->nd", grad_mean, mean_gradient)
            gradient += np.einsum("mn,mnd->nd", grad_variance, variance_gradient)
        return value, gradient


def slacks_of(surrogate: Surrogate, values: list[Array]) -> Array:
    """Values of the objective and every constraint (…) -> how far inside each limit, (…, J)."""
    slacks = [values[0][..., None][..., :0]]
    for function, value in zip(surrogate.constraints, values[1:], strict=True):
        slacks += [value[..., None] - function.low] if math.isfinite(function.low) else []
        slacks += [function.high - value[..., None]] if math.isfinite(function.high) else []
    return np.concatenate(slacks, axis=-1)


def _grad_constraints(surrogate: Surrogate, grad_slack: Array) -> list[Array]:
    """Derivatives in slacks (…, J) -> in the constraints, (…) each."""
    index, derivatives = 0, []
    for function in surrogate.constraints:
        derivative = np.zeros(grad_slack.shape[:-1])
        for limit, sign in ((function.low, 1.0), (function.high, -1.0)):
            if math.isfinite(limit):
                derivative = derivative + sign * grad_slack[..., index]
                index += 1
        derivatives.append(derivative)
    return derivatives


def jointly_measured_inputs(surrogate: Surrogate) -> Array:
    """(N, D) inputs within the bounds at which every function was measured, in order."""
    posteriors = [f.posterior for f in surrogate.functions.values() if f.posterior.measurable]
    rows = [tuple(row) for row in posteriors[0].inputs]
    for posterior in posteriors[1:]:
        also = {tuple(row) for row in posterior.inputs}
        rows = [row for row in rows if row in also]
    inputs = np.array(rows).reshape(-1, surrogate.problem.space.dimension)
    return inputs[surrogate.problem.space.contains(inputs)]


@final
class AugmentedLagrangian(Acquisition):
    """Expected improvement of an augmented Lagrangian, for tasks that measure every function.

    Args:
        draws: The number of joint predictions to average over.
    """

    name = "auglag"
    supports_decoupled = False

    def __init__(self, draws: int = 128) -> None:
        self.draws = check_integer(draws, "draws", 1)

    def build(
        self,
        surrogate: Surrogate,
        incumbent: Incumbent,
        rng: np.random.Generator,
    ) -> AcquisitionFunction:
        from scipy.stats import qmc

        measured = jointly_measured_inputs(surrogate)
        x = measured if len(measured) else incumbent.point[None]
        functions = [surrogate.objective, *surrogate.constraints]
        values = [function.posterior.mean_variance(x)[0].mean(0) for function in functions]
        slacks = slacks_of(surrogate, values)
        multipliers = multipliers_after(values[0], slacks, initial=len(surrogate.problem.space) + 1)
        best = float(multipliers.lagrangian(values[0], slacks).min())
        dimension = 1 + len(surrogate.constraints)
        uniform = qmc.Halton(dimension, rng=rng).random(self.draws)
        base_samples = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
        return LagrangianImprovement(surrogate, multipliers, best, base_samples)
