"""Many small constrained minimisations at once: sequential quadratic programming in the unit cube.

    minimise f(x) subject to c(x) ≥ 0, 0 ≤ x ≤ 1        for each of P problems

Every iteration asks for all problems that go on in one batch, solves their quadratic models by
an interior point method, and steps back where f + ρ Σ max(−c, 0) does not fall.

SciPy's SLSQP solves one problem after the other, and spends most of its time between evaluations.

Shapes: P problems, d variables, m constraints.

| symbol | code | shape | meaning |
|---|---|---|---|
| f, c | `value`, `slacks` | (P,), (P, m) | objective and constraints |
| B | `curvature` | (P, d, d) | quasi-Newton approximation of the Lagrangian's Hessian |
| p | `step` | (P, d) | solution of the quadratic model |
| λ | `multipliers` | (P, m) | of the constraints |
| s, e | `inside`, `outside` | (P, m + 2d) | slacks of the interior point method |
| ρ | `penalty` | (P,) | weight of violations in the merit function |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array, Index, Mask

_ITERATIONS = 6  # and twice as many as there are variables
_SHARES = (1.0, 0.3, 0.05, 0.005)
_LONGEST_STEP = 0.2
_FIRST_STEP = 0.05
_MOST_CUTS = 25
_SMALLEST_GAP = 1e-7
_PENALTY = 1e3
_LEAST_CURVATURE = 0.1  # straight functions would leave none
_SETTLED = 1e-6
_FIELDS = ("value", "derivative", "slacks", "slack_gradients")


@final
@dataclass(frozen=True)
class LocalModel:
    """f (P,), its derivative (P, d), c (P, m) and their derivatives (P, m, d)."""

    value: Array
    derivative: Array
    slacks: Array
    slack_gradients: Array

    @property
    def violation(self) -> Array:
        """(P,) how far outside its limits each point is, in all"""
        return np.maximum(-self.slacks, 0.0).sum(-1)

    def take(self, rows: Index) -> "LocalModel":
        return LocalModel(*(getattr(self, name)[rows] for name in _FIELDS))

    def put(self, rows: Index, other: "LocalModel") -> None:
        for name in _FIELDS:
            getattr(self, name)[rows] = getattr(other, name)


# Which problems (n,), at points (n, d) -> what is there.
Evaluate = Callable[[Index, Array], LocalModel]


@final
@dataclass(frozen=True)
class Solved:
    """The best point of each problem (P, d), its value (P,) and its violation (P,)."""

    points: Array
    value: Array
    violation: Array


def minimise(evaluate: Evaluate, starts: Array, tolerance: float) -> Solved:
    """The best point that each problem meets on its way from its start (P, d).

    Points that are violated by no more than the tolerance count as feasible.
    """
    x = starts.copy()
    count, dimension = x.shape
    here = evaluate(np.arange(count), x)
    best = Solved(x.copy(), here.value.copy(), here.violation)
    size = np.maximum(np.abs(here.derivative).max(-1, initial=0.0), 1e-6)
    curvature = np.eye(dimension) * (size / _FIRST_STEP)[:, None, None]
    fresh = np.ones(count, dtype=bool)
    penalty = np.zeros(count)
    going = np.arange(count if dimension else 0)
    for _ in range(_ITERATIONS + 2 * dimension):
        if len(going) == 0:
            break
        at = here.take(going)
        step, multipliers = _quadratic(curvature[going], at, x[going])
        # High enough for steps to be worth it, and forgetting what early steps asked for.
        needed = 1.5 * multipliers.max(-1, initial=0.0)
        penalty[going] = np.maximum(needed, 0.5 * (penalty[going] + needed))
        share, there = _search(evaluate, going, x[going], at, step, penalty[going])
        taken = share[:, None] * step
        _learn(curvature, fresh, going, taken, at, there, multipliers)
        x[going] += taken
        here.put(going, there)
        _keep(best, going, x[going], there, tolerance)
        settled = (np.abs(there.value - at.value) < _SETTLED) & (there.violation < tolerance)
        going = going[(share > 0) & ~settled]
    return best


def _keep(best: Solved, rows: Index, x: Array, there: LocalModel, tolerance: float) -> None:
    """Remember what is better: feasible and lower, or less far outside."""
    violation = there.violation
    met, was_met = violation <= tolerance, best.violation[rows] <= tolerance
    lower = there.value < best.value[rows]
    better = np.where(met, ~was_met | lower, ~was_met & (violation < best.violation[rows]))
    best.points[rows[better]] = x[better]
    best.value[rows[better]] = there.value[better]
    best.violation[rows[better]] = violation[better]


def _quadratic(curvature: Array, at: LocalModel, x: Array) -> tuple[Array, Array]:
    """Steps (P, d) that minimise the quadratic models, and the constraints' multipliers (P, m).

        minimise ½ p·B p + g·p + penalty Σ e   subject to   c + A p = s − e,   s, e ≥ 0

    Bounds have no e; a constraint that cannot be met within a step is violated at a penalty, so
    there is always an answer. A primal-dual interior point method, λ the multiplier of s and
    penalty − λ that of e; eliminating all but p leaves systems of size d.
    """
    count, dimension = x.shape
    low, high = np.maximum(-x, -_LONGEST_STEP), np.minimum(1 - x, _LONGEST_STEP)
    unit = np.broadcast_to(np.eye(dimension), curvature.shape)
    derivatives = np.concatenate([at.slack_gradients, unit, -unit], axis=1)
    across = np.swapaxes(derivatives, -1, -2)
    curvature = curvature + _LEAST_CURVATURE * unit
    slacks = np.concatenate([at.slacks, -low, high], axis=1)
    penalty = np.full(slacks.shape[1], np.inf)
    penalty[: at.slacks.shape[1]] = _PENALTY
    step = np.zeros((count, dimension))
    # s, e, λ and penalty − λ: all stay positive. Of bounds, e is zero and the last infinite.
    state = np.ones((4, *slacks.shape))
    state[0] = np.maximum(slacks, 0.0) + 0.1
    state[1] = np.where(np.isfinite(penalty), np.maximum(-slacks, 0.0) + 0.1 / _PENALTY, 0.0)
    state[3] = penalty - 1
    pairs = slacks.shape[1] + at.slacks.shape[1]
    centring = np.full(count, 0.1)
    for _ in range(_MOST_CUTS):
        inside, outside, multiplier, other = state
        mean_gap = (inside * multiplier + outside * np.minimum(other, _PENALTY)).sum(-1) / pairs
        if mean_gap.max() < 2 * _SMALLEST_GAP:
            break
        target = np.maximum(centring * mean_gap, _SMALLEST_GAP)[:, None]
        soft, hard = inside / multiplier, outside / other
        to_inside, to_outside = target / multiplier - inside, target / other - outside
        left = slacks + (derivatives @ step[..., None])[..., 0] - inside + outside
        wanted = to_inside - to_outside - left
        stiffness = 1 / (soft + hard + 1e-10)
        combined = multiplier + stiffness * wanted
        right = (across @ combined[..., None] - curvature @ step[..., None])[..., 0] - at.derivative
        system = curvature + across @ (stiffness[..., None] * derivatives)
        change = np.linalg.solve(system, right[..., None])[..., 0]
        rise = stiffness * (wanted - (derivatives @ change[..., None])[..., 0])
        moves = np.stack([to_inside - soft * rise, to_outside + hard * rise, rise, -rise])
        # The longest share of the move that leaves everything positive.
        falling = (moves < 0) & (state > 0)
        shrink = np.divide(state, -moves, out=np.full(moves.shape, np.inf), where=falling)
        share = np.minimum(1.0, 0.995 * shrink.min(axis=(0, 2)))
        step += share[:, None] * change
        state = state + share[:, None] * moves
        centring = np.where(share > 0.7, 0.01, 0.1)
    return np.clip(step, low, high), np.clip(state[2][:, : at.slacks.shape[1]], 0.0, _PENALTY)


def _search(
    evaluate: Evaluate, going: Index, x: Array, at: LocalModel, step: Array, penalty: Array
) -> tuple[Array, LocalModel]:
    """How much of each step to take (P,), zero where no share helps, and what is there."""
    violation = at.violation
    merit = at.value + penalty * violation
    fall = np.minimum((at.derivative * step).sum(-1) - penalty * violation, 0.0)
    share, there = np.zeros(len(going)), at.take(np.arange(len(going)))
    left = np.arange(len(going))
    for part in _SHARES:
        trial = evaluate(going[left], np.clip(x[left] + part * step[left], 0, 1))
        reached = trial.value + penalty[left] * trial.violation
        good = reached <= merit[left] + 1e-4 * part * fall[left]
        share[left[good]] = part
        there.put(left[good], trial.take(np.flatnonzero(good)))
        left = left[~good]
        if len(left) == 0:
            break
    return share, there


def _learn(
    curvature: Array,
    fresh: Mask,
    going: Index,
    taken: Array,
    at: LocalModel,
    there: LocalModel,
    multipliers: Array,
) -> None:
    """Powell's damped BFGS update of the Lagrangians' curvatures."""
    # Limits that could only be broken would lend the model their curvature times the penalty.
    multipliers = np.where(multipliers < 0.99 * _PENALTY, multipliers, 0.0)
    change = there.derivative - at.derivative
    change -= (multipliers[:, None, :] @ (there.slack_gradients - at.slack_gradients))[:, 0]
    along = (taken * change).sum(-1)
    first = fresh[going] & (along > 0)
    scale = np.maximum((change[first] ** 2).sum(-1) / along[first], _LEAST_CURVATURE)
    curvature[going[first]] = np.eye(taken.shape[1]) * scale[:, None, None]
    fresh[going[first]] = False
    moved = np.flatnonzero(np.abs(taken).max(-1) > 0)
    going, taken, change, along = going[moved], taken[moved], change[moved], along[moved]
    bent = (curvature[going] @ taken[..., None])[..., 0]
    model = (taken * bent).sum(-1)
    damp = np.minimum(0.8 * model / np.maximum(model - along, 0.8 * model), 1.0)[:, None]
    change = damp * change + (1 - damp) * bent
    along = (taken * change).sum(-1)
    curvature[going] += (
        change[:, :, None] * change[:, None, :] / along[:, None, None]
        - bent[:, :, None] * bent[:, None, :] / model[:, None, None]
    )
