"""The recommendation: the constrained optimum under the model (Hernández-Lobato et al. 2016,
algorithm 1, last line).

The lowest expected objective among inputs whose joint probability of being feasible is at least
1 − δ, where that probability is the mean over hyper-parameter samples of the product over
constraints. When no input reaches it, but some are likely to be feasible, the one whose advantage
over a typical input, times that probability, is greatest; else the most probably feasible one.

| paper | code | meaning |
|---|---|---|
| x̂* | `Optimum.point` | the recommendation |
| δ | `delta` | accepted probability of being infeasible |
| Pr(feasible) | `Optimum.probability` | joint, averaged over hyper-parameter samples |
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import logsumexp, ndtri, ndtri_exp

from calamint.acquire import candidate_points, first_apart
from calamint.arrays import Array, Index
from calamint.decide.ascend import ascend, discrete_neighbours
from calamint.model import Surrogate, feasibility, log_normal_density

_STARTS = 3
_DISTANCE = 0.02
_SPRAYS = 3
_CANDIDATES = 1000
_ROUGH_CANDIDATES = 300
# Limits that were met are no confirmation if the model still expects that they are not.
LIKELY = 0.5


@final
@dataclass(frozen=True)
class Optimum:
    """A point of the cube, its expected objective (standardised) and its probability."""

    point: Array
    objective: float
    probability: float
    confident: bool


def best_likely(
    objective: Array, probability: Array, delta: float, typical: float | None = None
) -> int | None:
    """Which of some inputs is best, if one is likely to be feasible.

    Noise may have let an input meet its limits by chance. One whose probability p of being feasible
    is below 1 − δ is worth p / (1 − δ) of its advantage over a typical input, or over the worst of
    these if all are worse.

    Args:
        objective: (n,) what is expected of each, standardised.
        probability: (n,) of being feasible.
        typical: The objective of a typical input; the worst of these if not given.
    """
    likely = np.flatnonzero(probability >= LIKELY)
    if len(likely) == 0:
        return None
    share = np.minimum(probability[likely] / (1 - delta), 1.0)
    worst = objective[likely].max()
    if typical is None or typical <= objective[likely].min():
        typical = worst
    return int(likely[np.argmax(share * np.maximum(typical - objective[likely], 0.0))])


def constrained_optimum(
    surrogate: Surrogate, near: Array, delta: float, rng: np.random.Generator, fine: bool = True
) -> Optimum:
    """Search the whole space; `near` (k, D) are points worth a closer look, such as the data.

    Without `fine`, the best of some candidates will do.
    """
    if fine:
        candidates = candidate_points(surrogate.problem.space, _CANDIDATES, near, rng)
    else:
        candidates = candidate_points(surrogate.problem.space, _ROUGH_CANDIDATES, near[:5], rng)
    objective = surrogate.expected_objective(candidates)
    probability = feasibility.probability(surrogate, candidates)
    feasible = probability >= 1 - delta
    if not feasible.any() and not fine:
        return _evaluated(surrogate, candidates[int(np.argmax(probability))], delta)
    if not feasible.any():
        return _most_probable(surrogate, candidates, probability, delta)
    ranked = np.flatnonzero(feasible)[np.argsort(objective[feasible], kind="stable")]
    best = _evaluated(surrogate, candidates[ranked[0]], delta)
    if not fine:
        return best
    for start in candidates[first_apart(candidates, ranked, _STARTS, _DISTANCE)]:
        best = _better(best, _polish(surrogate, start, delta, _margins(surrogate, delta)))
    probit = _probit(surrogate, delta)
    best = _better(best, _polish(surrogate, best.point, delta, probit))
    for _ in range(_SPRAYS):
        sprayed = _best_of_spray(surrogate, best, delta, rng)
        if sprayed.objective >= best.objective:
            break
        best = _better(sprayed, _polish(surrogate, sprayed.point, delta, probit))
    return _settle(surrogate, best, delta)


def likely_optimum(
    surrogate: Surrogate, near: Array, delta: float, typical: float, rng: np.random.Generator
) -> Optimum | None:
    """The best input if none reaches 1 − δ, but some are likely to be feasible.

    Args:
        near: (k, D) measured inputs.
        typical: The objective of a typical input, standardised.
    """
    candidates = candidate_points(surrogate.problem.space, _CANDIDATES, near, rng)
    candidates = np.vstack([near, candidates])
    objective = surrogate.expected_objective(candidates)
    probability = feasibility.probability(surrogate, candidates)
    best = best_likely(objective, probability, delta, typical)
    return None if best is None else _evaluated(surrogate, candidates[best], delta)


def _better(one: Optimum, other: Optimum) -> Optimum:
    return other if other.confident and other.objective < one.objective else one


def _evaluated(surrogate: Surrogate, point: Array, delta: float) -> Optimum:
    objective = float(surrogate.expected_objective(point[None])[0])
    probability = float(feasibility.probability(surrogate, point[None])[0])
    return Optimum(point, objective, probability, probability >= 1 - delta)


def _most_probable(
    surrogate: Surrogate, candidates: Array, probability: Array, delta: float
) -> Optimum:
    """Climb to the most probably feasible input; it may turn out to be feasible enough."""
    order = np.argsort(-probability, kind="stable")
    starts = candidates[first_apart(candidates, order, _STARTS, _DISTANCE)]

    def log_probability(_: Index, x: Array) -> tuple[Array, Array]:
        values, gradients = feasibility.log_probability_by_sample_gradient(surrogate, x)
        highest = values.max(0)
        shares = np.exp(values - highest)
        total = shares.sum(0)
        return (
            highest + np.log(total / len(values)),
            np.einsum("mn,mnd->nd", shares / total, gradients),
        )

    points, values_there = ascend(log_probability, starts, surrogate.problem.space, 50)
    return _evaluated(surrogate, points[int(np.argmax(values_there))], delta)


def _best_of_spray(
    surrogate: Surrogate, best: Optimum, delta: float, rng: np.random.Generator
) -> Optimum:
    """The best of many points around the best: solvers stop at kinks, and close to the data the
    std has one at every measurement."""
    shape = (100, len(best.point))
    around = [best.point + radius * rng.standard_normal(shape) for radius in (0.03, 0.003, 3e-4)]
    points = np.clip(np.vstack(around), 0, 1)
    points[:, ~surrogate.problem.space.continuous] = best.point[~surrogate.problem.space.continuous]
    good = points[feasibility.probability(surrogate, points) >= 1 - delta]
    if len(good) == 0:
        return best
    return _better(
        best, _evaluated(surrogate, good[np.argmin(surrogate.expected_objective(good))], delta)
    )


# A solver's constraints: values (k,) that must not be negative, and their gradients (k, D), at a
# point (1, D).
Conditions = Callable[[Array], tuple[Array, Array]]


def _margins(surrogate: Surrogate, delta: float) -> Conditions:
    """Each limit's distance from mean ± z·std: smooth, and safe where stds are tiny.

    Moments are those of the mixture over samples, so this only approximates the joint probability.
    """
    z = float(ndtri(1 - delta))

    def conditions(point: Array) -> tuple[Array, Array]:
        values, derivatives = [], []
        for function in surrogate.constraints:
            mean, variance, mean_gradient, variance_gradient = (
                function.posterior.mean_variance_gradient(point)
            )
            centre, centre_x = mean.mean(), mean_gradient.mean(0)[0]
            spread = np.sqrt(variance.mean() + mean.var())
            apart = (mean - centre)[:, 0, None] * mean_gradient[:, 0]
            spread_x = (0.5 * variance_gradient.mean(0)[0] + apart.mean(0)) / spread
            if np.isfinite(function.low):
                values.append(centre - z * spread - function.low)
                derivatives.append(centre_x - z * spread_x)
            if np.isfinite(function.high):
                values.append(function.high - centre - z * spread)
                derivatives.append(-centre_x - z * spread_x)
        return np.array(values), np.array(derivatives)

    return conditions


def _probit(surrogate: Surrogate, delta: float) -> Conditions:
    """The probit of the joint probability, which is exactly what has to be met.

    Under one sample and one limit it is the margin in stds, nearly linear, where the
    probability itself saturates.
    """
    wanted = float(ndtri(1 - delta))

    def conditions(point: Array) -> tuple[Array, Array]:
        log_each, derivatives = feasibility.log_probability_by_sample_gradient(surrogate, point)
        total = logsumexp(log_each[:, 0])
        # A probability of one has no probit: stop short of it.
        log_joint = np.minimum(total - np.log(len(log_each)), -1e-15)
        probit = ndtri_exp(log_joint)
        scale = np.exp(log_joint - log_normal_density(probit))
        derivative = scale * (np.exp(log_each[:, 0] - total) @ derivatives[:, 0])
        return np.array([probit - wanted]), derivative[None]

    return conditions


def _polish(surrogate: Surrogate, start: Array, delta: float, conditions: Conditions) -> Optimum:
    """A constrained local solver from a point that is feasible enough."""
    best = _evaluated(surrogate, start, delta)
    found = _evaluated(surrogate, _solve(surrogate, start, conditions), delta)
    if found.confident:
        return _better(best, found)
    # The solver stopped just outside: step back towards where it came from.
    for share in (1e-6, 1e-4, 1e-3, 0.01, 0.1):
        back = _evaluated(surrogate, found.point + share * (start - found.point), delta)
        if back.confident:
            return _better(best, back)
    return best


def _solve(surrogate: Surrogate, start: Array, conditions: Conditions) -> Array:
    from scipy.optimize import minimize

    moving = np.flatnonzero(surrogate.problem.space.continuous)
    if len(moving) == 0:
        return start

    def place(free: Array) -> Array:
        point = start.copy()
        point[moving] = np.clip(free, 0, 1)
        return point[None]

    def objective(free: Array) -> tuple[float, Array]:
        mean, _, mean_gradient, _ = surrogate.objective.posterior.mean_variance_gradient(
            place(free)
        )
        return float(mean.mean()), mean_gradient.mean(0)[0, moving]

    @lru_cache(maxsize=1)  # the solver asks for values and derivatives at the same place in turn
    def at(coordinates: bytes) -> tuple[Array, Array]:
        values, derivatives = conditions(place(np.frombuffer(coordinates)))
        return values, derivatives[:, moving]

    constraint = {
        "type": "ineq",
        "fun": lambda free: at(free.tobytes())[0],
        "jac": lambda free: at(free.tobytes())[1],
    }
    found = minimize(
        objective,
        start[moving],
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(moving),
        constraints=constraint if surrogate.constraints else (),
        options={"maxiter": 30, "ftol": 1e-8},
    )
    return place(found.x)[0] if np.all(np.isfinite(found.x)) else start


def _settle(surrogate: Surrogate, best: Optimum, delta: float) -> Optimum:
    """Try neighbouring integers and other options until none is better."""
    for _ in range(20):
        tried = [
            _polish(surrogate, neighbour, delta, _margins(surrogate, delta))
            for neighbour in discrete_neighbours(surrogate.problem.space, best.point)
            if feasibility.probability(surrogate, neighbour[None])[0] >= 1 - delta
        ]
        better = [found for found in tried if found.confident and found.objective < best.objective]
        if not better:
            break
        best = min(better, key=lambda found: found.objective)
    return best
