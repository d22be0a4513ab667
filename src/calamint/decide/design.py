"""Where to look before anything is known: points that fill the space evenly."""

import numpy as np

from calamint.problem import Space
from calamint.problem.parameters import Array


def space_filling(space: Space, count: int, rng: np.random.Generator) -> Array:
    """(count, dimension) scrambled Halton points, moved to values that the parameters can take."""
    from scipy.stats import qmc

    return space.snap(qmc.Halton(space.dimension, rng=rng).random(count))
