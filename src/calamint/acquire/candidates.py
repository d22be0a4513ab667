"""Where to look first: many points over the whole space, and more around those that matter."""

from collections.abc import Iterable

import numpy as np

from calamint.arrays import Array
from calamint.problem import Space


def candidate_points(space: Space, count: int, near: Array, rng: np.random.Generator) -> Array:
    """(count + …, D) uniform points, and sprays of shrinking radius around `near`."""
    uniform = rng.random((count, space.dimension))
    sprays = [
        np.clip(near + radius * rng.standard_normal((8, *near.shape)), 0, 1).reshape(
            -1, space.dimension
        )
        for radius in (0.1, 0.01, 0.001)
    ]
    return space.snap(np.vstack([uniform, *sprays, near]))


def mixtures(points: Array, count: int, rng: np.random.Generator) -> Array:
    """(count, D) points around the given ones (k, D), as far from them as these are apart.

    Each is one of them plus a share of the difference of two others: the scale is theirs in every
    direction, however close together they are.
    """
    at, one, other = rng.integers(len(points), size=(3, count))
    share = rng.choice([1.0, 0.3, 0.1, 0.03], size=(count, 1))
    spread = np.maximum(points.std(axis=0), 1e-5)
    noise = 0.3 * spread * rng.standard_normal((count, points.shape[1]))
    return np.clip(points[at] + share * (points[one] - points[other] + noise), 0, 1)


def first_apart(points: Array, order: Iterable[int], count: int, distance: float) -> list[int]:
    """The first `count` indices in order whose points (n, D) are not in one place."""
    chosen: list[int] = []
    for index in order:
        if all(np.max(np.abs(points[index] - points[other])) > distance for other in chosen):
            chosen.append(int(index))
        if len(chosen) == count:
            break
    return chosen


def space_filling(space: Space, count: int, rng: np.random.Generator) -> Array:
    """(count, dimension) scrambled Halton points, moved to values that the parameters can take."""
    from scipy.stats import qmc

    return space.snap(qmc.Halton(space.dimension, rng=rng).random(count))
