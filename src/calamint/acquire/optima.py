"""Drawing x*: one path of every function, minimised subject to the others (Hernández-Lobato
et al. 2016, section 4.3 and appendix B).

| paper | code | shape | meaning |
|---|---|---|---|
| x* | `points` | (J, D) | drawn solutions |
| f̃, c̃_k | `paths` | | sample paths of every function |
| M | `sample` | (J,) | hyper-parameter sample of each solution |
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.candidates import candidate_points, first_apart
from calamint.acquire.sqp import LocalModel, minimise
from calamint.arrays import Array, Index, Mask
from calamint.model import FunctionSurrogate, SamplePaths, Surrogate
from calamint.threads import parallel_map

_CANDIDATES = 500
_STARTS = 2
_TOLERANCE = 1e-6
_REDRAWS = 2
_PENALTY = 3.0


@final
@dataclass(frozen=True)
class Solutions:
    """Drawn solutions (J, D), and whether each path had a feasible point at all (J,).

    Attributes:
        sample: (J,) which hyper-parameter sample and which fantasy each belongs to.
        fantasy: (J,) which hyper-parameter sample and which fantasy each belongs to.
        row: (J,) which of the surrogate's samples that is, fantasies counted.
        paths: What each was drawn from: the j-th paths, the objective's first.
    """

    points: Array
    feasible: Mask
    sample: Index
    fantasy: Index
    row: Index
    paths: list[SamplePaths]


def draw_solutions(
    surrogate: Surrogate,
    count: int,
    near: Array,
    rng: np.random.Generator,
    rows: Index | None = None,
    wanted: Callable[[Array], int] | None = None,
) -> Solutions:
    """Draw `count` solutions; `near` (k, D) are points whose surroundings are searched more.

    Args:
        rows: (count,) samples to draw under, by default `balanced_rows`.
        wanted: How many to draw in all, given where these are roughly (count, D).

    Paths without a feasible point are drawn again, a few times.
    """
    samples = surrogate.samples // surrogate.fantasies
    if rows is None:
        rows = balanced_rows(samples, surrogate.fantasies, count, rng)
    drawn = _draw(surrogate, rows, near, rng)
    more = 0 if wanted is None else wanted(drawn.rough) - count
    if more > 0:
        further = balanced_rows(samples, surrogate.fantasies, more, rng)
        drawn = drawn.joined(_draw(surrogate, further, near, rng))
        rows = np.append(rows, further)
    points, feasible = _solve(surrogate, drawn)
    paths = drawn.paths
    for _ in range(_REDRAWS):
        left = np.flatnonzero(~feasible)
        if len(left) == 0:
            break
        again = _draw(surrogate, rows[left], near, rng)
        points[left], feasible[left] = _solve(surrogate, again)
        order = np.arange(len(rows))
        order[left] = len(rows) + np.arange(len(left))
        paths = [old.joined(new).take(order) for old, new in zip(paths, again.paths, strict=True)]
    fantasy, sample = np.divmod(rows, samples)
    return Solutions(points, feasible, sample, fantasy, rows, paths)


def balanced_rows(samples: int, fantasies: int, count: int, rng: np.random.Generator) -> Index:
    """(count,) which row of samples × fantasies each solution belongs to.

    Every sample, and every fantasy, has as many solutions as any other, or one more. Where there
    are fewer solutions than samples, which of them count is drawn: it must not always be the same.
    """
    rounds, left = divmod(count, samples * fantasies)
    turn = np.arange(left)
    sample = turn % samples
    if count < samples:
        sample = np.sort(rng.permutation(samples)[:count])
    # Counting up in both meets every pair before their least common multiple, and then is shifted.
    fantasy = (turn + turn // math.lcm(samples, fantasies)) % fantasies
    return np.append(np.tile(np.arange(samples * fantasies), rounds), sample + samples * fantasy)


@final
@dataclass(frozen=True)
class _Drawn:
    """J paths of every function, and starts (P, D) for minimising them, `which` (P,) path's each.

    A path's first start is the best that it has among some candidates.
    """

    paths: list[SamplePaths]
    starts: Array
    which: Index

    def __len__(self) -> int:
        return int(self.which[-1]) + 1

    @property
    def rough(self) -> Array:
        """(J, D) the first start of each path"""
        return self.starts[np.searchsorted(self.which, np.arange(len(self)))]

    def joined(self, others: "_Drawn") -> "_Drawn":
        return _Drawn(
            [ours.joined(theirs) for ours, theirs in zip(self.paths, others.paths, strict=True)],
            np.concatenate([self.starts, others.starts]),
            np.concatenate([self.which, len(self) + others.which]),
        )


def _draw(surrogate: Surrogate, rows: Index, near: Array, rng: np.random.Generator) -> _Drawn:
    """One path of every function under each of the given samples, and where to start."""
    functions = [surrogate.objective, *surrogate.constraints]
    paths = [function.posterior.paths(rows, rng) for function in functions]
    x = candidate_points(surrogate.problem.space, _CANDIDATES, near, rng)
    objective, *others = parallel_map(lambda path: path.values(x, float32=True), paths)
    violation = np.zeros_like(objective)
    for function, values in zip(functions[1:], others, strict=True):
        violation += np.maximum(function.low - values, 0.0)
        violation += np.maximum(values - function.high, 0.0)
    chosen = [
        first_apart(x, _promising(objective[j], violation[j])[:50], _STARTS, 0.05)
        for j in range(len(rows))
    ]
    which = np.repeat(np.arange(len(rows)), [len(starts) for starts in chosen])
    return _Drawn(paths, x[np.concatenate(chosen)], which)


def _solve(surrogate: Surrogate, drawn: _Drawn) -> tuple[Array, Mask]:
    """The solution of each path (J, D), and whether it is feasible (J,)."""
    functions = [surrogate.objective, *surrogate.constraints]
    starts, which = drawn.starts.copy(), drawn.which
    moving = np.flatnonzero(surrogate.problem.space.continuous)
    problems = _PathProblems(functions, drawn.paths, which, starts, moving)
    solved = minimise(problems.evaluate, starts[:, moving], _TOLERANCE)
    starts[:, moving] = solved.points
    infeasible = solved.violation > _TOLERANCE
    # For each path the best of its problems: feasible first, then lowest.
    order = np.lexsort((np.where(infeasible, solved.violation, solved.value), infeasible, which))
    first = order[np.searchsorted(which[order], np.arange(len(drawn)))]
    return starts[first], ~infeasible[first]


def _promising(objective: Array, violation: Array) -> Index:
    """(n,), (n,) -> indices: the best feasible point, then by a mixture of both.

    Slivers of feasible space that no point hit are found from points that nearly hit them.
    """
    first = np.lexsort((objective, violation))[:1]
    return np.concatenate([first, np.argsort(objective + _PENALTY * violation, kind="stable")])


@final
class _PathProblems:
    """Constrained minimisations of paths over what moves smoothly.

    path_index (P,) is the path of each; starts (P, D) hold the columns that are fixed.
    """

    def __init__(
        self,
        functions: Sequence[FunctionSurrogate],
        paths: Sequence[SamplePaths],
        path_index: Index,
        starts: Array,
        moving: Index,
    ) -> None:
        self.paths, self.path_index = paths, path_index
        self.starts, self.moving = starts, moving
        low = np.array([function.low for function in functions])
        high = np.array([function.high for function in functions])
        self.low, self.high = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        self.limits = np.concatenate([low[self.low], -high[self.high]])

    def evaluate(self, problems: Index, free: Array) -> LocalModel:
        """(n,), (n, d) -> objectives, and how far inside each finite limit."""
        x = self.starts[problems]
        x[:, self.moving] = free
        path_index = self.path_index[problems]
        values = np.empty((len(x), len(self.paths)))
        derivatives = np.empty((*values.shape, x.shape[1]))
        at = parallel_map(lambda path: path.value_gradient(path_index, x), self.paths)
        for index, (value, derivative) in enumerate(at):
            values[:, index], derivatives[:, index] = value, derivative
        derivatives = derivatives[..., self.moving]
        return LocalModel(
            values[:, 0],
            derivatives[:, 0],
            np.concatenate([values[:, self.low], -values[:, self.high]], axis=1) - self.limits,
            np.concatenate([derivatives[:, self.low], -derivatives[:, self.high]], axis=1),
        )
