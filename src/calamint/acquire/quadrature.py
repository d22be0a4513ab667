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
from calamint.model import Belief, log_normal_density
from calamint.problem import Space

# Standard deviations of the clouds around each centre, in the unit cube.
_RADII = (0.1, 0.01, 0.001)
_DRAWN = 8


def integration_points(
    belief: Belief, best: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """(G, D) and weights (G,): Σ w g(x) estimates the mean of g over the space.

    A grid would miss the small region that still matters late in a search, so there are normal
    clouds around the best point (D,) and around drawn solutions.
    """
    drawn = draw_solutions(belief, _DRAWN, best[None], rng).points
    return clouds(belief.problem.space, np.vstack([best, drawn]), count, rng)


def clouds(
    space: Space, centres: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """About `count` points, a third of which fill the space; the others are in normal clouds
    around the centres (k, D), truncated to the cube; what is not continuous is uniform.

    A weight is the reciprocal of the density of the whole mixture (the balance heuristic), so the
    estimate has no bias.
    """
    from scipy.stats import qmc

    whole = -(-count // 3)
    each = -(-(count - whole) // (len(centres) * len(_RADII)))
    centre = np.repeat(centres, len(_RADII), axis=0)[:, None]  # (clouds, 1, D)
    scale = np.tile(_RADII, len(centres))[:, None, None]
    low, high = ndtr(-centre / scale), ndtr((1 - centre) / scale)
    sampler = qmc.Halton(space.dimension, rng=rng)
    uniform = sampler.random(len(centre) * each).reshape(len(centre), each, space.dimension)
    inside = centre + scale * ndtri(low + uniform * (high - low))
    inside = np.where(space.continuous, np.clip(inside, 0, 1), uniform)
    points = np.vstack([sampler.random(whole), inside.reshape(-1, space.dimension)])
    logs = log_normal_density((points - centre) / scale) - np.log(scale * (high - low))
    density = np.exp(np.where(space.continuous, logs, 0.0).sum(-1)).sum(0)  # of all clouds
    mixture = (whole + each * density) / len(points)
    return space.snap(points), 1 / (mixture * len(points))
