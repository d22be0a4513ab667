"""Integration points by importance sampling, denser where the optimum may be.

| symbol | code | shape | meaning |
|---|---|---|---|
| x_g, w_g | `points`, `weights` | (G, D), (G,) | Σ w g(x) estimates the mean of g over the space |
| q(x) | `mixture` | (G,) | density that the points are drawn from |
"""

import numpy as np
from scipy.special import ndtr, ndtri

from calamint.acquire.optima import draw_solutions
from calamint.arrays import Array
from calamint.model import Surrogate, log_normal_density
from calamint.problem import Space

# Standard deviations of the normal components around each centre, in the unit cube: from the size
# of a length-scale to that of the region left late in a search.
_STDS = (0.1, 0.01, 0.001)
_SOLUTIONS = 8  # drawn solutions that serve as centres


def integration_points(
    surrogate: Surrogate, best: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """(G, D) and weights (G,): Σ w g(x) estimates the mean of g over the space.

    A grid would miss the small region that still matters late in a search, so most points come from
    normal distributions around the best point (D,) and around drawn solutions.
    """
    drawn = draw_solutions(surrogate, _SOLUTIONS, best[None], rng).points
    return normal_mixture(surrogate.problem.space, np.vstack([best, drawn]), count, rng)


def normal_mixture(
    space: Space, centres: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """About `count` points: a third uniform, the others normal around the centres (k, D), truncated
    to the cube. Coordinates that are not continuous are uniform.

    A weight is the reciprocal of the density of the whole mixture (the balance heuristic), so the
    estimate has no bias.
    """
    from scipy.stats import qmc

    uniform_count = -(-count // 3)
    each_count = -(-(count - uniform_count) // (len(centres) * len(_STDS)))
    centre = np.repeat(centres, len(_STDS), axis=0)[:, None]  # (components, 1, D)
    scale = np.tile(_STDS, len(centres))[:, None, None]
    low, high = ndtr(-centre / scale), ndtr((1 - centre) / scale)
    sampler = qmc.Halton(space.dimension, rng=rng)
    uniform = sampler.random(len(centre) * each_count)
    uniform = uniform.reshape(len(centre), each_count, space.dimension)
    inside = centre + scale * ndtri(low + uniform * (high - low))
    inside = np.where(space.continuous, np.clip(inside, 0, 1), uniform)
    points = np.vstack([sampler.random(uniform_count), inside.reshape(-1, space.dimension)])
    logs = log_normal_density((points - centre) / scale) - np.log(scale * (high - low))
    density = np.exp(np.where(space.continuous, logs, 0.0).sum(-1)).sum(0)  # of all components
    mixture = (uniform_count + each_count * density) / len(points)
    return space.snap(points), 1 / (mixture * len(points))
