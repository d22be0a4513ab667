"""Where repetitions begin: the same points for every method, in every environment."""

from typing import Any

import numpy as np

from calamint.testbed import SolvedProblem


def starting_points(solved: SolvedProblem, seed: int, count: int) -> list[dict[str, Any]]:
    """Latin hypercube points that depend on the seed only."""
    from scipy.stats import qmc

    space = solved.problem.space
    sampler = qmc.LatinHypercube(space.dimension, rng=np.random.default_rng([seed, 77]))
    return [space.decode(point) for point in sampler.random(count)]
