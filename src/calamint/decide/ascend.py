"""Climbing from many starts at once, inside the unit cube; and the steps of what does not move
smoothly.

| symbol | code | shape | meaning |
|---|---|---|---|
| x | `points` | (s, D) | one point for each start |
| g | `derivatives` | (s, d) | gradients along what moves smoothly |
| H⁻¹ | `inverse` | (s, d, d) | BFGS approximation of the inverse Hessian |
"""

from collections.abc import Callable

import numpy as np

from calamint.arrays import Array, Index, Mask
from calamint.problem import Choice, Integer, Space

# Lengths in the unit cube; a rise relative to the value.
_SHORT, _LONGEST, _SHORTEST = 0.02, 0.2, 1e-7
_RISE = 1e-4


def ascend(
    value_gradient: Callable[[Index, Array], tuple[Array, Array]],
    starts: Array,
    space: Space,
    iterations: int,
) -> tuple[Array, Array]:
    """(s, D) -> the best points reached and their values (s,), moving only what moves smoothly.

    `value_gradient` is asked for some of the starts (n,), each at a point of its own (n, D).

    BFGS in the box for all starts at once: every iteration is one batch, but each start has its own
    curvature, step and end. Handing SciPy's L-BFGS-B the sum of all starts needs more
    batches to come as high, as a jump or a kink under one start holds up the others.
    """
    moving = np.flatnonzero(space.continuous)
    points = starts.copy()
    values, derivatives = value_gradient(np.arange(len(points)), points)
    if len(moving) == 0:
        return points, values
    derivatives = _finite(derivatives[:, moving])
    inverse = np.eye(len(moving)) * _first_step(derivatives)[:, :, None]
    fresh = np.ones(len(points), dtype=bool)
    share = np.ones(len(points))
    climbing = np.arange(len(points))
    for _ in range(iterations):
        at = climbing
        here = points[at][:, moving]
        step = share[at, None] * _direction(here, derivatives[at], inverse[at])
        trial = points[at]
        trial[:, moving] = np.clip(here + step, 0, 1)
        step = trial[:, moving] - here
        new_values, new_gradients = value_gradient(at, trial)
        new_gradients = _finite(new_gradients[:, moving])
        promised = (derivatives[at] * step).sum(-1)
        with np.errstate(all="ignore"):  # a start may be where there is no value at all
            higher = np.isfinite(new_values) & ~(new_values < values[at] + 1e-4 * promised)
            rise = np.where(higher, new_values - values[at], np.inf)
            # A step too far goes on where a parabola through both ends has its top.
            top = promised / (2 * (values[at] + promised - new_values))
        _learn(inverse, fresh, at[higher], step[higher], (derivatives[at] - new_gradients)[higher])
        share[at] = np.where(higher, 1.0, share[at] * np.clip(np.nan_to_num(top), 0.1, 0.5))
        up = at[higher]
        points[up], values[up], derivatives[up] = (
            trial[higher],
            new_values[higher],
            new_gradients[higher],
        )
        longest = np.abs(step).max(-1)
        climbing = at[(rise > _RISE * np.abs(values[at])) & (longest > _SHORTEST)]
        if len(climbing) == 0:
            break
    return points, values


def _finite(derivatives: Array) -> Array:
    return np.nan_to_num(derivatives, posinf=1e12, neginf=-1e12)


def _first_step(derivatives: Array) -> Array:
    """(s, d) -> (s, 1) what makes a step along the derivative short."""
    return _SHORT / np.maximum(np.abs(derivatives).max(-1, keepdims=True), 1e-300)


def _direction(here: Array, derivatives: Array, inverse: Array) -> Array:
    """(s, d), (s, d), (s, d, d) -> (s, d) where to go, not out of the box and not too far."""
    blocked = ((here <= 0) & (derivatives < 0)) | ((here >= 1) & (derivatives > 0))
    free = np.where(blocked, 0.0, derivatives)
    direction = np.einsum("sij,sj->si", inverse, free)
    direction[blocked] = 0.0
    lost = (direction * free).sum(-1) <= 0
    direction[lost] = free[lost] * _first_step(free[lost])
    longest = np.abs(direction).max(-1, keepdims=True)
    return direction * np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))


def _learn(inverse: Array, fresh: Mask, at: Index, step: Array, fall: Array) -> None:
    """The BFGS update of the inverse curvatures `at`, where the derivative fell along the step."""
    curved = (step * fall).sum(-1)
    squared = (fall**2).sum(-1)
    size = np.sqrt((step**2).sum(-1) * squared)
    bends = (curved > 1e-12 * size) & (squared > 1e-300)  # falls so small that squares vanish
    inverse[at[~bends & fresh[at]]] *= 4.0  # a straight derivative: go further next time
    at, step, fall, curved = at[bends], step[bends], fall[bends], curved[bends]
    squared = squared[bends]
    unit = np.eye(step.shape[-1])
    first = fresh[at]
    scale = curved / squared
    inverse[at[first]] = scale[first, None, None] * unit
    fresh[at] = False
    outer = step[:, :, None] / curved[:, None, None]
    left = unit - outer * fall[:, None, :]
    updated = left @ inverse[at] @ np.swapaxes(left, -1, -2)
    inverse[at] = updated + outer * step[:, None, :]


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
