"""Drawing x*: one path of every function, minimised subject to the others (the paper's section 4.3
and appendix B)."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.acquire.candidates import candidate_points
from calamint.model import Belief
from calamint.model.kernels import Index
from calamint.model.known import KnownFunction
from calamint.model.paths import Bundle, Paths, draw_paths
from calamint.problem.parameters import Array

_CANDIDATES = 1000
_STARTS = 2
_TOLERANCE = 1e-6
_REDRAWS = 2
_PENALTY = 3.0
_HOPE = 3.0


@final
@dataclass(frozen=True)
class Drawn:
    """One function's paths, or a known function, which is its own only path, with its limits."""

    source: Paths | KnownFunction
    low: float
    high: float

    def values(self, x: Array, count: int) -> Array:
        if isinstance(self.source, KnownFunction):
            return np.repeat(self.source.values(x)[None], count, axis=0)
        return self.source.values(x, single=True)

    def replaced(self, at: Index, other: "Drawn") -> "Drawn":
        if isinstance(self.source, KnownFunction) or isinstance(other.source, KnownFunction):
            return self
        return replace(self, source=self.source.replaced(at, other.source))


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
    """Draw `count` solutions; `near` (k, D) are points whose surroundings are searched more.

    Paths without a feasible point are drawn again, a few times.
    """
    samples = np.arange(count) % belief.samples
    found = _draw(belief, samples, near, rng)
    for _ in range(_REDRAWS):
        left = np.flatnonzero(~found.feasible)
        if len(left) == 0:
            break
        again = _draw(belief, samples[left], near, rng)
        points, feasible = found.points.copy(), found.feasible.copy()
        points[left], feasible[left] = again.points, again.feasible
        pairs = zip(found.drawn, again.drawn, strict=True)
        found = Solutions(points, feasible, [old.replaced(left, new) for old, new in pairs])
    return found


def _draw(belief: Belief, samples: Index, near: Array, rng: np.random.Generator) -> Solutions:
    """One solution under each of the given hyper-parameter samples."""
    count = len(samples)
    drawn = []
    for function in (belief.objective, *belief.constraints):
        process = function.process
        if isinstance(process, KnownFunction):
            drawn.append(Drawn(process, function.low, function.high))
        else:
            paths = draw_paths(process.take(samples), count, rng)
            drawn.append(Drawn(paths, function.low, function.high))
    x = candidate_points(belief.problem.space, _CANDIDATES, near, rng)
    objective = drawn[0].values(x, count)
    violation = np.zeros_like(objective)
    for limited in drawn[1:]:
        values = limited.values(x, count)
        violation += np.maximum(limited.low - values, 0.0)
        violation += np.maximum(values - limited.high, 0.0)
    moving = np.flatnonzero(belief.problem.space.continuous)
    points, feasible = np.empty((count, x.shape[1])), np.zeros(count, dtype=bool)
    for index in range(count):
        order = _promising(objective[index], violation[index])
        program = _Program(drawn, index, moving)
        points[index], feasible[index] = program.best(x[_apart(x, order)])
    return Solutions(points, feasible, drawn)


def _promising(objective: Array, violation: Array) -> Index:
    """(n,), (n,) -> indices: the best feasible point, then by a mixture of both.

    Slivers of feasible space that no point hit are found from points that nearly hit them: among
    180 paths with three constraints this takes those that miss the best basin from 15 to 6.
    """
    first = np.lexsort((objective, violation))[:1]
    return np.concatenate([first, np.argsort(objective + _PENALTY * violation, kind="stable")])


def _apart(x: Array, order: Index) -> list[int]:
    """The first few in order that are not in the same place."""
    chosen: list[int] = []
    for index in order[:50]:
        if all(np.max(np.abs(x[index] - x[other])) > 0.05 for other in chosen):
            chosen.append(int(index))
        if len(chosen) == _STARTS:
            break
    return chosen


@final
@dataclass(frozen=True)
class _Judged:
    """A point on one path: how far outside its limits it is, and its value."""

    infeasible: bool
    broken: float
    value: float
    merit: float
    point: Array

    def __lt__(self, other: "_Judged") -> bool:
        if self.infeasible or other.infeasible:
            return (self.infeasible, self.broken) < (other.infeasible, other.broken)
        return self.value < other.value


@final
class _Program:
    """One path's constrained minimisation over what moves smoothly."""

    def __init__(self, drawn: list[Drawn], index: int, moving: Index) -> None:
        self.moving = moving
        self.known: list[tuple[int, KnownFunction]] = []
        self.drawn: list[int] = []
        paths = []
        for i, function in enumerate(drawn):
            if isinstance(function.source, KnownFunction):
                self.known.append((i, function.source))
            else:
                self.drawn.append(i)
                paths.append(function.source)
        self.bundle = Bundle(paths, index)
        low = np.array([function.low for function in drawn])
        high = np.array([function.high for function in drawn])
        self.low, self.high = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        self.limits = np.concatenate([low[self.low], -high[self.high]])
        self.point = np.empty(0)

    def best(self, starts: Array) -> tuple[Array, bool]:
        """The best of the starts and of what the solver makes of them, checked again.

        Returns the point (D,) and whether it is feasible.
        """
        best = self.judge(starts[0])
        if len(self.moving):
            best = min(best, self.judge(self.solve(starts[0])))
        expected = self.judge(starts[0]).merit - best.merit
        for start in starts[1:]:
            judged = self.judge(start)
            # Not worth solving if it would have to improve by much more than the first one did.
            if len(self.moving) and judged.merit - _HOPE * expected < best.merit:
                judged = min(judged, self.judge(self.solve(start)))
            best = min(best, judged)
        return best.point, not best.infeasible

    def judge(self, point: Array) -> "_Judged":
        self.look(point)
        broken = max(-self.margins.min(initial=np.inf), 0.0)
        total = np.minimum(self.margins, 0.0).sum()
        return _Judged(
            broken > _TOLERANCE, broken, self.value, self.value - _PENALTY * total, point
        )

    def look(self, point: Array) -> None:
        """Compute all values and slopes at a point (D,), unless they are there."""
        if np.array_equal(point, self.point):
            return
        count = len(self.drawn) + len(self.known)
        values, slopes = np.empty(count), np.empty((count, len(point)))
        values[self.drawn], slopes[self.drawn] = self.bundle.value_gradient(point)
        for index, known in self.known:
            mean, _, gradient, _ = known.moments_gradient(point[None])
            values[index], slopes[index] = mean[0, 0], gradient[0, 0]
        self.point, self.value, self.slope = point, float(values[0]), slopes[0, self.moving]
        # How far inside each finite limit.
        self.margins = np.concatenate([values[self.low], -values[self.high]]) - self.limits
        margin_slopes = np.concatenate([slopes[self.low], -slopes[self.high]])
        self.margin_slopes = margin_slopes[:, self.moving]

    def solve(self, start: Array) -> Array:
        """What the solver reaches, or the start where it has no answer."""
        from scipy.optimize import minimize

        def place(free: Array) -> Array:
            point = start.copy()
            point[self.moving] = np.clip(free, 0, 1)
            return point

        def objective(free: Array) -> tuple[float, Array]:
            self.look(place(free))
            return self.value, self.slope

        def margins(free: Array) -> Array:
            self.look(place(free))
            return self.margins

        def margin_slopes(free: Array) -> Array:
            self.look(place(free))
            return self.margin_slopes

        found = minimize(
            objective,
            start[self.moving],
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(self.moving),
            constraints={"type": "ineq", "fun": margins, "jac": margin_slopes}
            if len(self.limits)
            else (),
            options={"maxiter": 20, "ftol": 1e-6},
        )
        return place(found.x) if np.all(np.isfinite(found.x)) else start
