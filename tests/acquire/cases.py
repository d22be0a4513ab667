"""Beliefs and checks that the tests of all acquisitions share."""

import numpy as np

import calamint as cm
from calamint.model import Data, fit

RNG = np.random.default_rng


def surrogate_of(
    constraints=("c >= 0", "-1 <= d <= 1"), samples=3, count=6, space=None, feasible=True
):
    problem = cm.Problem(
        space=space or {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=list(constraints),
    )
    inputs = problem.space.snap(RNG(0).random((count, problem.space.dimension)))
    unknown = np.full(count, np.nan)
    data = {
        name: Data(inputs, np.sin(3 * (i + 1) * inputs.sum(1)) - (0 if feasible else 9), unknown)
        for i, name in enumerate(problem.functions)
    }
    return fit(problem, cm.Model(samples=samples), data, RNG(1))


def derivatives(value, x, step=1e-6):
    """(n, D) -> (n, D) central differences of a function of points."""
    columns = []
    for d in range(x.shape[1]):
        move = np.zeros_like(x)
        move[:, d] = step
        columns.append((value(x + move) - value(x - move)) / (2 * step))
    return np.stack(columns, axis=-1)
