"""Where "not better than x*" is imposed.

Hernández-Lobato et al. (2016) take the inputs at which the objective was measured. If these are
few, the conditioning is weak, and weaker for the objective than for the constraints, so that tasks
would be valued wrongly. By default inputs of all measurements count, and witness points join them:
other solutions, and points that fill space. Two factors that say the same would count twice, so
points keep their distance. Measurements outside of the bounds, where x* cannot be, carry no factor.

| paper | code | shape | meaning |
|---|---|---|---|
| x_n | `measured` | (N, D) | inputs of the measurements |
| Ψ(x_n) | `psi` | | the factor that a site point carries |
| | `witnesses` | (W, D) | points where nothing was measured |
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from calamint.acquire.candidates import space_filling
from calamint.acquire.pesc.factors import Limits, psi
from calamint.arrays import Array, Index
from calamint.model import FunctionPosterior, Surrogate, feasibility

SiteChoice = Literal["paper", "union", "witness"]

# Spacings in length-scales, chosen against rejection sampling (benchmarks/accuracy.py): closer
# witnesses overstate all gains, sparser ones understate the objective's.
_MEASURED_SPACING = 0.1
_WITNESS_SPACING = 0.47
_MOST_MEASURED = 20
_MOST_WITNESSES = 55
_FILLING = 250
_MOST_ORDERED = 200
_LOG_SILENT = np.log(1e-10)


def site_points(
    surrogate: Surrogate,
    solutions: Array,
    rows: Index,
    limits: Limits,
    choice: SiteChoice,
    rng: np.random.Generator,
) -> Array:
    """(S, D) site points for these solutions (J, D), each under one sample of the model (J,)."""
    posteriors = (
        [surrogate.objective.posterior]
        if choice == "paper"
        else [function.posterior for function in surrogate.functions.values()]
    )
    measured = _measured_inside(surrogate, posteriors)
    if choice == "paper":
        return _spaced(surrogate, measured, 1e-6, len(measured))
    measured = _nearest(surrogate, _distinct(measured), solutions)
    measured = measured[_order(surrogate, measured, solutions, limits)]
    kept = _spaced(surrogate, measured, _MEASURED_SPACING, _MOST_MEASURED)
    if choice == "union":
        return _telling(surrogate, kept, solutions, rows)
    filling = space_filling(surrogate.problem.space, _FILLING, rng)
    witnesses = _spaced(
        surrogate, np.vstack([solutions, filling]), _WITNESS_SPACING, _MOST_WITNESSES
    )
    apart = _distances(surrogate, witnesses, kept).min(axis=1, initial=np.inf) > _MEASURED_SPACING
    return _telling(surrogate, np.vstack([kept, witnesses[apart]]), solutions, rows)


def more_site_points(surrogate: Surrogate, points: Array, before: Surrogate) -> Array:
    """The site points (S, D), and inputs measured since that are far from them, behind them."""
    earlier = np.vstack([points, *(f.posterior.inputs for f in before.functions.values())])
    now = [function.posterior for function in surrogate.functions.values()]
    new = np.unique(_measured_inside(surrogate, now), axis=0)
    known = {point.tobytes() for point in earlier}
    new = new[[point.tobytes() not in known for point in new]]
    if len(earlier):
        new = new[_distances(surrogate, new, earlier).min(axis=1) > _MEASURED_SPACING]
    most = max(0, _MOST_MEASURED + _MOST_WITNESSES - len(points))
    return np.vstack([points, _spaced(surrogate, new, _MEASURED_SPACING, most)])


def _measured_inside(surrogate: Surrogate, posteriors: Iterable[FunctionPosterior]) -> Array:
    """(N, D) where something was measured, within the bounds."""
    space = surrogate.problem.space
    none = np.empty((0, space.dimension))
    measured = np.vstack([none, *(posterior.inputs for posterior in posteriors)])
    return measured[space.contains(measured)]


def distinct_places(surrogate: Surrogate, solutions: Array) -> int:
    """In how many places solutions (J, D) are."""
    return len(_spaced(surrogate, solutions, _WITNESS_SPACING, len(solutions)))


def _distinct(points: Array) -> Array:
    """Without repetitions, in the order of first appearance: functions share their inputs."""
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]


def _nearest(surrogate: Surrogate, points: Array, solutions: Array) -> Array:
    """As many points as are worth ordering: the nearest to any solution."""
    if len(points) <= _MOST_ORDERED:
        return points
    distances = _distances(surrogate, points, solutions).min(axis=1)
    return points[np.sort(np.argsort(distances, kind="stable")[:_MOST_ORDERED])]


def _order(surrogate: Surrogate, points: Array, solutions: Array, limits: Limits) -> Index:
    """Most likely first to be better than a drawn solution, where a factor has most to say."""
    if len(points) == 0:
        return np.empty(0, dtype=int)
    mean, variance = surrogate.objective.posterior.mean_variance(points)
    at, at_variance = surrogate.objective.posterior.mean_variance(solutions)
    pairs = [function.posterior.mean_variance(points) for function in surrogate.constraints]
    count = len(mean)
    shape = (count, len(points), 0)
    mean_c = np.stack([m for m, _ in pairs], axis=-1) if pairs else np.zeros(shape)
    var_c = np.stack([v for _, v in pairs], axis=-1) if pairs else np.ones(shape)
    lowest = at.mean(axis=1, keepdims=True)
    factor = psi(
        mean - lowest, variance + at_variance.mean(axis=1, keepdims=True), mean_c, var_c, limits
    )
    return np.argsort(-factor.weight.mean(0), kind="stable")


def _telling(surrogate: Surrogate, points: Array, solutions: Array, rows: Index) -> Array:
    """Points that may be better than one of the solutions: what EP would say of others is nothing.

    The difference of two values has at most the sum of their standard deviations.
    """
    posterior = surrogate.objective.posterior
    mean, variance = posterior.mean_variance(points)
    at, at_variance = (m[rows, np.arange(len(rows))] for m in posterior.mean_variance(solutions))
    std = np.sqrt(variance[rows]) + np.sqrt(at_variance)[:, None]
    chance = log_ndtr((at[:, None] - mean[rows]) / np.maximum(std, 1e-300))
    chance += feasibility.log_probability_by_sample(surrogate, points)[rows]
    return points[chance.max(axis=0, initial=-np.inf) > _LOG_SILENT]


def _spaced(surrogate: Surrogate, points: Array, spacing: float, most: int) -> Array:
    """Points in turn, if they keep their distance from all that were kept before."""
    scaled = points / _typical_lengthscales(surrogate)
    free = np.ones(len(points), dtype=bool)
    chosen: list[int] = []
    for index in range(len(points)):
        if len(chosen) == most:
            break
        if free[index]:
            chosen.append(index)
            free &= ((scaled - scaled[index]) ** 2).sum(-1) > spacing**2
    return points[chosen]


def _distances(surrogate: Surrogate, a: Array, b: Array) -> Array:
    """(n, D), (k, D) -> (n, k) in typical length-scales."""
    scale = _typical_lengthscales(surrogate)
    return np.sqrt((((a / scale)[:, None] - b / scale) ** 2).sum(-1))


def _typical_lengthscales(surrogate: Surrogate) -> Array:
    """(D,) along each parameter those of the function that varies most: what is one place for a
    nearly linear objective can be many for a wavy constraint."""
    functions = surrogate.functions.values()
    typical = [np.median(function.posterior.lengthscales, axis=0) for function in functions]
    return np.min(typical, axis=0)[surrogate.problem.space.parameter_index]
