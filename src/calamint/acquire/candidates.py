"""Where to look first: many points over the whole space, and more around those that matter."""

import numpy as np

from calamint.problem import Space
from calamint.problem.parameters import Array


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


def space_filling(space: Space, count: int, rng: np.random.Generator) -> Array:
    """(count, dimension) scrambled Halton points, moved to values that the parameters can take."""
    from scipy.stats import qmc

    return space.snap(qmc.Halton(space.dimension, rng=rng).random(count))
