"""Drawing x*: one path of every function, minimised subject to the others (the paper's section 4.3
and appendix B)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from calamint.acquire.candidates import candidate_points
from calamint.model import Belief
from calamint.model.kernels import Index
from calamint.model.known import KnownFunction
from calamint.model.paths import Paths, draw_paths
from calamint.problem.parameters import Array

_CANDIDATES = 1000
_STARTS = 2
_TOLERANCE = 1e-6


class Drawn:
    """One function's paths, or a known function, which is its own only path."""

    def __init__(self, source: Paths | KnownFunction, low: float, high: float) -> None:
        self.source, self.low, self.high = source, low, high

    def values(self, x: Array, count: int) -> Array:
        if isinstance(self.source, KnownFunction):
            return np.repeat(self.source.values(x)[None], count, axis=0)
        return self.source.values(x, single=True)

    def value_gradient(self, index: int, x: Array) -> tuple[float, Array]:
        if isinstance(self.source, KnownFunction):
            mean, _, gradient, _ = self.source.moments_gradient(x[None])
            return float(mean[0, 0]), gradient[0, 0]
        values, gradients = self.source.value_gradient(index, x[None])
        return float(values[0]), gradients[0]

    def margins(self, value: float, gradient: Array) -> tuple[list[float], list[Array]]:
        """How far inside each finite limit, with slopes."""
        values, slopes = [], []
        if np.isfinite(self.low):
            values.append(value - self.low)
            slopes.append(gradient)
        if np.isfinite(self.high):
            values.append(self.high - value)
            slopes.append(-gradient)
        return values, slopes


@final
@dataclass(frozen=True)
class Solutions:
    """Drawn solutions (J, D), and whether each path had a feasible point at all (J,).

    Solution j was drawn under hyper-parameter sample j mod M, from the j-th paths of `drawn`, the
    objective's first.
    """

    points: Array
    feasible: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"
    drawn: list[Drawn]


def draw_solutions(belief: Belief, count: int, near: Array, rng: np.random.Generator) -> Solutions:
    """Draw `count` solutions; `near` (k, D) are points whose surroundings are searched more."""
    drawn = []
    for function in (belief.objective, *belief.constraints):
        process = function.process
        if isinstance(process, KnownFunction):
            drawn.append(Drawn(process, function.low, function.high))
        else:
            drawn.append(Drawn(draw_paths(process, count, rng), function.low, function.high))
    x = candidate_points(belief.problem.space, _CANDIDATES, near, rng)
    objective = drawn[0].values(x, count)
    violation = np.zeros_like(objective)
    for paths in drawn[1:]:
        values = paths.values(x, count)
        violation += np.maximum(paths.low - values, 0.0) + np.maximum(values - paths.high, 0.0)
    points, feasible = np.empty((count, x.shape[1])), np.zeros(count, dtype=bool)
    for index in range(count):
        met = violation[index] <= 0
        if met.any():
            order = np.flatnonzero(met)[np.argsort(objective[index, met], kind="stable")]
        else:
            order = np.argsort(violation[index], kind="stable")
        points[index], feasible[index] = _polish(belief, drawn, index, x[_apart(x, order)])
    return Solutions(points, feasible, drawn)


def _apart(x: Array, order: Index) -> list[int]:
    """The first few in order that are not in the same place."""
    chosen: list[int] = []
    for index in order[:50]:
        if all(np.max(np.abs(x[index] - x[other])) > 0.02 for other in chosen):
            chosen.append(int(index))
        if len(chosen) == _STARTS:
            break
    return chosen


def _polish(belief: Belief, drawn: list[Drawn], index: int, starts: Array) -> tuple[Array, bool]:
    """The best of the starts and of what a constrained solver makes of them, checked again."""
    moving = np.flatnonzero(belief.problem.space.continuous)
    tried = list(starts)
    if len(moving):
        tried += [_Program(drawn, index, start, moving).solve() for start in starts]
    judged = []
    for point in tried:
        value, _ = drawn[0].value_gradient(index, point)
        broken = 0.0
        for function in drawn[1:]:
            margins, _ = function.margins(*function.value_gradient(index, point))
            broken = max(broken, *(-margin for margin in margins))
        infeasible = broken > _TOLERANCE
        judged.append((infeasible, broken if infeasible else value))
    best = min(range(len(tried)), key=lambda i: judged[i])
    return tried[best], not judged[best][0]


class _Program:
    """One path's constrained minimisation, from one start, over what moves smoothly."""

    def __init__(self, drawn: list[Drawn], index: int, start: Array, moving: Index) -> None:
        self.drawn, self.index, self.start, self.moving = drawn, index, start, moving
        self.limits = lru_cache(maxsize=1)(self._limits)  # values and slopes are asked for in turn

    def place(self, free: Array) -> Array:
        point = self.start.copy()
        point[self.moving] = np.clip(free, 0, 1)
        return point

    def objective(self, free: Array) -> tuple[float, Array]:
        value, gradient = self.drawn[0].value_gradient(self.index, self.place(free))
        return value, gradient[self.moving]

    def _limits(self, coordinates: bytes) -> tuple[Array, Array]:
        point = self.place(np.frombuffer(coordinates))
        values: list[float] = []
        slopes: list[Array] = []
        for function in self.drawn[1:]:
            margins, gradients = function.margins(*function.value_gradient(self.index, point))
            values += margins
            slopes += gradients
        return np.array(values), np.array(slopes)[:, self.moving]

    def solve(self) -> Array:
        """The solver's answer, or the start where it has none."""
        from scipy.optimize import minimize

        constraint = {
            "type": "ineq",
            "fun": lambda free: self.limits(free.tobytes())[0],
            "jac": lambda free: self.limits(free.tobytes())[1],
        }
        found = minimize(
            self.objective,
            self.start[self.moving],
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(self.moving),
            constraints=constraint if len(self.drawn) > 1 else (),
            options={"maxiter": 20, "ftol": 1e-6},
        )
        return self.place(found.x) if np.all(np.isfinite(found.x)) else self.start
