"""Where the constrained optimum is believed to be (the paper's algorithm 1, last line).

The lowest expected objective among inputs whose joint probability of being feasible is at least
1 − δ, where that probability is the mean over hyper-parameter samples of the product over
constraints. When no input reaches it, the most probably feasible one.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import ndtri

from calamint.decide.maximise import ascend, candidate_points, discrete_neighbours
from calamint.model import Belief
from calamint.problem.parameters import Array

_STARTS = 3
_CANDIDATES = 1000


@final
@dataclass(frozen=True)
class Optimum:
    """A point of the cube, its expected objective (standardised) and its probability."""

    point: Array
    objective: float
    probability: float
    confident: bool


def believed_optimum(
    belief: Belief, near: Array, delta: float, rng: np.random.Generator
) -> Optimum:
    """Search the whole space; `near` (k, D) are points worth a closer look, such as the data."""
    candidates = candidate_points(belief.problem.space, _CANDIDATES, near, rng)
    objective = belief.expected_objective(candidates)
    probability = belief.probability(candidates)
    feasible = probability >= 1 - delta
    if not feasible.any():
        return _most_probable(belief, candidates, probability, delta)
    ranked = np.flatnonzero(feasible)[np.argsort(objective[feasible], kind="stable")]
    best = _judge(belief, candidates[ranked[0]], delta)
    for start in _spread(candidates[ranked], _STARTS):
        found = _polish(belief, start, delta)
        if found.confident and found.objective < best.objective:
            best = found
    return _settle(belief, best, delta)


def _judge(belief: Belief, point: Array, delta: float) -> Optimum:
    objective = float(belief.expected_objective(point[None])[0])
    probability = float(belief.probability(point[None])[0])
    return Optimum(point, objective, probability, probability >= 1 - delta)


def _spread(points: Array, count: int) -> list[Array]:
    """The first points that are not all in one place."""
    chosen: list[Array] = []
    for point in points:
        if all(np.max(np.abs(point - other)) > 0.02 for other in chosen):
            chosen.append(point)
        if len(chosen) == count:
            break
    return chosen


def _most_probable(belief: Belief, candidates: Array, probability: Array, delta: float) -> Optimum:
    """Climb to the most probably feasible input; it may turn out to be feasible enough."""
    starts = np.array(_spread(candidates[np.argsort(-probability, kind="stable")], _STARTS))

    def log_probability(x: Array) -> tuple[Array, Array]:
        values, gradients = belief.log_feasible_gradient(x)
        highest = values.max(0)
        shares = np.exp(values - highest)
        total = shares.sum(0)
        return (
            highest + np.log(total / len(values)),
            np.einsum("mn,mnd->nd", shares / total, gradients),
        )

    points, heights = ascend(log_probability, starts, belief.problem.space, 50)
    return _judge(belief, points[int(np.argmax(heights))], delta)


def _polish(belief: Belief, start: Array, delta: float) -> Optimum:
    """A constrained local solver on margins mean ± z·deviation.

    They are smoother than the probability, which saturates; z grows until the joint probability,
    which judges, is met.
    """
    wanted = float(ndtri(1 - delta))
    best, point, z = _judge(belief, start, delta), start, wanted
    for _ in range(3):
        point = _solve(belief, point, z)
        found = _judge(belief, point, delta)
        if found.confident and found.objective < best.objective:
            best = found
        reached = float(ndtri(np.clip(found.probability, 1e-6, 1 - 1e-9)))
        if wanted <= reached:
            break
        z *= float(np.clip(1.02 * wanted / max(reached, 0.1), 1.0, 2.0))
    if not found.confident:
        # The solver stopped just outside: step back towards where it came from.
        for share in (0.001, 0.01, 0.05, 0.2):
            back = _judge(belief, point + share * (start - point), delta)
            if back.confident and back.objective < best.objective:
                return back
    return best


def _solve(belief: Belief, start: Array, z: float) -> Array:
    from scipy.optimize import minimize

    space = belief.problem.space
    moving = np.flatnonzero(space.continuous)
    if len(moving) == 0:
        return start

    def place(free: Array) -> Array:
        point = start.copy()
        point[moving] = np.clip(free, 0, 1)
        return point[None]

    def objective(free: Array) -> tuple[float, Array]:
        mean, _, mean_x, _ = belief.objective.process.moments_gradient(place(free))
        return float(mean.mean()), mean_x.mean(0)[0, moving]

    @lru_cache(maxsize=1)  # the solver asks for values and slopes at the same place in turn
    def margins_at(place_bytes: bytes) -> tuple[Array, Array]:
        free = np.frombuffer(place_bytes)
        values, slopes = [], []
        for function in belief.constraints:
            mean, variance, mean_x, variance_x = function.process.moments_gradient(place(free))
            centre, centre_x = mean.mean(), mean_x.mean(0)[0, moving]
            spread = np.sqrt(variance.mean() + mean.var())
            apart = (mean - centre)[:, 0, None] * mean_x[:, 0, moving]
            spread_x = (0.5 * variance_x.mean(0)[0, moving] + apart.mean(0)) / spread
            if np.isfinite(function.low):
                values.append(centre - z * spread - function.low)
                slopes.append(centre_x - z * spread_x)
            if np.isfinite(function.high):
                values.append(function.high - centre - z * spread)
                slopes.append(-centre_x - z * spread_x)
        return np.array(values), np.array(slopes).reshape(-1, len(moving))

    found = minimize(
        objective,
        start[moving],
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(moving),
        constraints={
            "type": "ineq",
            "fun": lambda free: margins_at(free.tobytes())[0],
            "jac": lambda free: margins_at(free.tobytes())[1],
        }
        if belief.constraints
        else (),
        options={"maxiter": 30, "ftol": 1e-8},
    )
    return place(found.x)[0] if np.all(np.isfinite(found.x)) else start


def _settle(belief: Belief, best: Optimum, delta: float) -> Optimum:
    """Try neighbouring integers and other options until none is better."""
    for _ in range(20):
        tried = [
            _polish(belief, neighbour, delta)
            for neighbour in discrete_neighbours(belief.problem.space, best.point)
            if belief.probability(neighbour[None])[0] >= 1 - delta
        ]
        better = [found for found in tried if found.confident and found.objective < best.objective]
        if not better:
            break
        best = min(better, key=lambda found: found.objective)
    return best
