"""Drawing x*: one path of every function, minimised subject to the others (the paper's section 4.3
and appendix B)."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.acquire.candidates import candidate_points, first_apart
from calamint.acquire.pesc.program import Local, minimise
from calamint.model import Belief
from calamint.model.kernels import Index, Mask
from calamint.model.known import KnownFunction
from calamint.model.paths import Bundle, Paths, draw_paths
from calamint.problem.parameters import Array

_CANDIDATES = 1000
_STARTS = 2
_TOLERANCE = 1e-6
_REDRAWS = 2
_PENALTY = 3.0


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
    feasible: Mask
    drawn: list[Drawn]


def draw_solutions(
    belief: Belief,
    count: int,
    near: Array,
    rng: np.random.Generator,
    samples: Index | None = None,
) -> Solutions:
    """Draw `count` solutions; `near` (k, D) are points whose surroundings are searched more.

    samples  (count,) hyper-parameter samples to draw under, by default all of them in turn

    Paths without a feasible point are drawn again, a few times.
    """
    samples = np.arange(count) % belief.samples if samples is None else samples
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
    chosen = [
        first_apart(x, _promising(objective[j], violation[j])[:50], _STARTS, 0.05)
        for j in range(count)
    ]
    which = np.repeat(np.arange(count), [len(starts) for starts in chosen])
    starts = x[np.concatenate(chosen)]
    moving = np.flatnonzero(belief.problem.space.continuous)
    solved = minimise(_Programs(drawn, which, starts, moving).look, starts[:, moving], _TOLERANCE)
    starts[:, moving] = solved.points
    infeasible = solved.violation > _TOLERANCE
    # For each path the best of its programs: feasible first, then lowest.
    order = np.lexsort((np.where(infeasible, solved.violation, solved.value), infeasible, which))
    first = order[np.searchsorted(which[order], np.arange(count))]
    return Solutions(starts[first], ~infeasible[first], drawn)


def _promising(objective: Array, violation: Array) -> Index:
    """(n,), (n,) -> indices: the best feasible point, then by a mixture of both.

    Slivers of feasible space that no point hit are found from points that nearly hit them: among
    180 paths with three constraints this takes those that miss the best basin from 15 to 6.
    """
    first = np.lexsort((objective, violation))[:1]
    return np.concatenate([first, np.argsort(objective + _PENALTY * violation, kind="stable")])


@final
class _Programs:
    """Constrained minimisations of paths over what moves smoothly.

    which (P,) is the path of each, starts (P, D) hold what does not move.
    """

    def __init__(self, drawn: list[Drawn], which: Index, starts: Array, moving: Index) -> None:
        self.which, self.starts, self.moving = which, starts, moving
        self.known: list[tuple[int, KnownFunction]] = []
        self.drawn: list[int] = []
        paths = []
        for index, function in enumerate(drawn):
            if isinstance(function.source, KnownFunction):
                self.known.append((index, function.source))
            else:
                self.drawn.append(index)
                paths.append(function.source)
        self.bundle = Bundle(paths)
        low = np.array([function.low for function in drawn])
        high = np.array([function.high for function in drawn])
        self.low, self.high = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        self.limits = np.concatenate([low[self.low], -high[self.high]])

    def look(self, problems: Index, free: Array) -> Local:
        """(n,), (n, d) -> objectives, and how far inside each finite limit."""
        x = self.starts[problems]
        x[:, self.moving] = free
        count = len(self.drawn) + len(self.known)
        values, slopes = np.empty((len(x), count)), np.empty((len(x), count, x.shape[1]))
        values[:, self.drawn], slopes[:, self.drawn] = self.bundle.value_gradient(
            self.which[problems], x
        )
        for index, known in self.known:
            mean, _, gradient, _ = known.moments_gradient(x)
            values[:, index], slopes[:, index] = mean[0], gradient[0]
        slopes = slopes[..., self.moving]
        return Local(
            values[:, 0],
            slopes[:, 0],
            np.concatenate([values[:, self.low], -values[:, self.high]], axis=1) - self.limits,
            np.concatenate([slopes[:, self.low], -slopes[:, self.high]], axis=1),
        )
