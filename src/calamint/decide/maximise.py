"""Finding the best input: many candidates at once, then a joint ascent from the best of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire import Utility
from calamint.acquire.candidates import candidate_points
from calamint.problem import Choice, Integer, Space
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Effort:
    """How hard to look."""

    candidates: int = 1000
    starts: int = 5
    iterations: int = 30


FINE = Effort()


def maximise(
    utility: Utility,
    space: Space,
    near: Array,
    rng: np.random.Generator,
    effort: Effort = FINE,
) -> tuple[Array, float]:
    """The input (D,) of highest utility found, with that utility.

    near  (k, D) points whose neighbourhoods deserve a closer look
    """
    if utility.points is not None:
        heights = utility.value(utility.points)
        best = int(np.argmax(heights))
        return utility.points[best], float(heights[best])
    candidates = candidate_points(space, effort.candidates, near, rng)
    values = utility.value(candidates)
    starts = candidates[_distinct_best(values, candidates, effort.starts)]
    points, heights = ascend(utility.value_gradient, starts, space, effort.iterations)
    best = int(np.argmax(heights))
    point, height = points[best], float(heights[best])
    return _settle(utility, space, point, height, effort.iterations)


def _distinct_best(values: Array, points: Array, count: int) -> list[int]:
    """Indices of the best points that are not all in one place."""
    chosen: list[int] = []
    for index in np.argsort(-values, kind="stable"):
        apart = all(np.max(np.abs(points[index] - points[other])) > 0.01 for other in chosen)
        if np.isfinite(values[index]) and apart:
            chosen.append(int(index))
        if len(chosen) == count:
            break
    return chosen or [0]


def ascend(
    value_gradient: Callable[[Array], tuple[Array, Array]],
    starts: Array,
    space: Space,
    iterations: int,
) -> tuple[Array, Array]:
    """(s, D) -> the best points reached and their values (s,), moving only what moves smoothly.

    All starts climb together as one problem, the sum of their values, so that each step is one
    batch; a start keeps its own best point, whatever becomes of the others.
    """
    from scipy.optimize import minimize

    moving = np.flatnonzero(space.continuous)
    best, heights = starts.copy(), value_gradient(starts)[0]
    if len(moving) == 0:
        return best, heights

    def loss(flat: Array) -> tuple[float, Array]:
        points = starts.copy()
        points[:, moving] = flat.reshape(len(starts), -1)
        values, gradients = value_gradient(points)
        better = values > heights
        best[better], heights[better] = points[better], values[better]
        slopes = np.nan_to_num(-gradients[:, moving], posinf=1e12, neginf=-1e12)
        return float(-np.nan_to_num(values, neginf=-1e12).sum()), slopes.ravel()

    minimize(
        loss,
        starts[:, moving].ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * (len(starts) * len(moving)),
        options={"maxiter": iterations, "maxfun": 2 * iterations},
    )
    return best, heights


def _settle(
    utility: Utility, space: Space, point: Array, height: float, iterations: int
) -> tuple[Array, float]:
    """Try the neighbouring integers and the other options until none is better."""
    for _ in range(20):
        neighbours = discrete_neighbours(space, point)
        if len(neighbours) == 0:
            break
        values = utility.value(neighbours)
        best = int(np.argmax(values))
        if not values[best] > height:
            break
        moved, heights = ascend(utility.value_gradient, neighbours[best][None], space, iterations)
        point, height = moved[0], float(heights[0])
    return point, height


def discrete_neighbours(space: Space, point: Array) -> Array:
    """(k, D) points that differ in one integer by one step, or in one choice."""
    neighbours = []
    for name, parameter in space.parameters.items():
        columns = space.columns[name]
        others: list[list[float]] = []
        if isinstance(parameter, Integer):
            value = parameter.decode(point[columns].tolist())
            steps = (value - 1, value + 1)
            others = [parameter.encode(n) for n in steps if parameter.low <= n <= parameter.high]
        elif isinstance(parameter, Choice):
            others = [parameter.encode(option) for option in parameter.options]
        for other in others:
            neighbour = point.copy()
            neighbour[columns] = other
            neighbours.append(neighbour)
    return np.array(neighbours).reshape(-1, space.dimension)
