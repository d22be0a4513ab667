"""Finding the best job: many candidates at once, then a joint ascent from the best of them.

Tasks compete: each is worth the shares of what it measures, for its cost, and each has its own best
input. All tasks' candidates are scored together, and all their starts climb together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire import Utility
from calamint.acquire.candidates import candidate_points, first_apart, mixtures
from calamint.decide.costs import Fixed, Price
from calamint.decide.failures import Chance
from calamint.model.kernels import Index, Mask
from calamint.problem import Choice, Integer, Space
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Effort:
    """How hard to look."""

    candidates: int  # scored roughly; a fifth of them are scored fully
    starts: int  # for each task
    iterations: int


FINE = Effort(700, 4, 12)
COARSE = Effort(100, 2, 4)
_FULLY = 5

# Lengths in the unit cube; a rise relative to the height.
_SHORT, _LONGEST, _SHORTEST = 0.02, 0.2, 1e-7
_RISE = 1e-4


@final
@dataclass(frozen=True)
class Contender:
    """A task in the competition: the weights of the utility's shares (S,), its price, and how
    likely it is to work, if it has failed before."""

    task: str
    weights: Array
    price: Price
    chance: Chance | None = None

    def cost(self, x: Array) -> Array:
        """(n, D) -> (n,) of a job that works: one that fails has to be paid for, too."""
        cost = self.price.at(x)
        return cost if self.chance is None else cost / self.chance.at(x)

    def cost_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""
        cost, slope = self.price.with_gradient(x)
        if self.chance is None:
            return cost, slope
        chance, chance_x = self.chance.with_gradient(x)
        cost = cost / chance
        return cost, (slope - cost[:, None] * chance_x) / chance[:, None]


@final
@dataclass(frozen=True)
class Found:
    """A task's best input (D,), what it is worth there for its cost, and that cost."""

    task: str
    point: Array
    height: float
    cost: float


def maximise(
    utility: Utility,
    contenders: Sequence[Contender],
    space: Space,
    near: Array,
    rng: np.random.Generator,
    effort: Effort = FINE,
) -> list[Found]:
    """The best input found for every task, in the order given.

    near  (k, D) points whose neighbourhoods deserve a closer look
    """
    arena = _Arena(utility, contenders)
    points = utility.points
    if utility.where is not None:
        everything = Contender("", np.ones(1), Fixed(1.0))
        (place,) = maximise(utility.where, [everything], space, near, rng, effort)
        points = place.point[None]
    if points is not None:
        heights = arena.scores(points, utility.shares(points))
        best = heights.argmax(axis=1)
        return [arena.found(t, points[i], heights[t, i]) for t, i in enumerate(best)]
    candidates = candidate_points(space, effort.candidates, near, rng)
    if len(utility.near):
        candidates = candidates[effort.candidates // 2 :]
        mixed = mixtures(utility.near, effort.candidates // 3, rng)
        candidates = np.vstack([candidates, space.snap(mixed)])
    roughly = arena.scores(candidates, utility.screen(candidates))
    most = -(-effort.candidates // _FULLY) // len(contenders) + effort.starts
    order = np.argsort(-roughly, axis=1, kind="stable")[:, :most]
    candidates = candidates[np.unique(order)]
    fully = arena.scores(candidates, utility.shares(candidates))
    chosen = [_distinct_best(row, candidates, effort.starts) for row in fully]
    owner = np.repeat(np.arange(len(contenders)), [len(starts) for starts in chosen])
    starts = candidates[np.concatenate(chosen)]
    points, heights = ascend(
        lambda rows, x: arena.value_gradient(owner[rows], x), starts, space, effort.iterations
    )
    winners = []
    for t in range(len(contenders)):
        own = np.flatnonzero(owner == t)
        best = own[np.argmax(heights[own])]
        point, height = arena.settle(t, space, points[best], heights[best], effort.iterations)
        winners.append(arena.found(t, point, height))
    return winners


@final
class _Arena:
    """What each contender is worth at each input, for its cost."""

    def __init__(self, utility: Utility, contenders: Sequence[Contender]) -> None:
        self.utility, self.contenders = utility, contenders
        self.weights = np.array([contender.weights for contender in contenders])

    def scores(self, x: Array, shares: Array) -> Array:
        """(n, D), (n, S) -> (T, n)"""
        values = self.weights @ shares.T
        costs = np.array([contender.cost(x) for contender in self.contenders])
        if self.utility.logarithmic:
            return values - np.log(costs)
        return np.where(values > 0, values / costs, values * costs)

    def value_gradient(self, owner: Index, x: Array) -> tuple[Array, Array]:
        """Contenders (n,) at inputs (n, D) -> (n,) and gradients (n, D)."""
        value, gradient = self.utility.weighted(x, self.weights[owner])
        cost, cost_x = np.empty(len(x)), np.empty(x.shape)
        for t in np.unique(owner):
            own = owner == t
            cost[own], cost_x[own] = self.contenders[t].cost_gradient(x[own])
        relative = cost_x / cost[:, None]
        if self.utility.logarithmic:
            return value - np.log(cost), gradient - relative
        # What is worth less than nothing is no better for costing more.
        sign = np.where(value > 0, -1.0, 1.0)
        factor = cost**sign
        value = value * factor
        return value, gradient * factor[:, None] + (sign * value)[:, None] * relative

    def found(self, t: int, point: Array, height: float) -> Found:
        cost = float(self.contenders[t].price.at(point[None])[0])
        return Found(self.contenders[t].task, point, float(height), cost)

    def settle(
        self, t: int, space: Space, point: Array, height: float, iterations: int
    ) -> tuple[Array, float]:
        """Try the neighbouring integers and the other options until none is better."""
        for _ in range(20):
            neighbours = discrete_neighbours(space, point)
            if len(neighbours) == 0:
                break
            values = self.scores(neighbours, self.utility.shares(neighbours))[t]
            best = int(np.argmax(values))
            if not values[best] > height:
                break
            moved, heights = ascend(
                lambda rows, x: self.value_gradient(np.full(len(rows), t), x),
                neighbours[best][None],
                space,
                iterations,
            )
            point, height = moved[0], float(heights[0])
        return point, height


def _distinct_best(values: Array, points: Array, count: int) -> list[int]:
    """Indices of the best points that are not all in one place."""
    order = np.argsort(-values, kind="stable")
    return first_apart(points, order[np.isfinite(values[order])], count, 0.01) or [0]


def ascend(
    value_gradient: Callable[[Index, Array], tuple[Array, Array]],
    starts: Array,
    space: Space,
    iterations: int,
) -> tuple[Array, Array]:
    """(s, D) -> the best points reached and their values (s,), moving only what moves smoothly.

    `value_gradient` is asked for some of the starts (n,), each at a point of its own (n, D).

    BFGS in the box for all starts at once: every iteration is one batch, but each start has its own
    curvature, step and end. Handing SciPy's L-BFGS-B the sum of all starts needs three times as
    many batches to come as high, as a jump or a kink under one start holds up the others.
    """
    moving = np.flatnonzero(space.continuous)
    points = starts.copy()
    values, slopes = value_gradient(np.arange(len(points)), points)
    if len(moving) == 0:
        return points, values
    slopes = _finite(slopes[:, moving])
    inverse = np.eye(len(moving)) * _first_step(slopes)[:, :, None]
    fresh = np.ones(len(points), dtype=bool)
    share = np.ones(len(points))
    climbing = np.arange(len(points))
    for _ in range(iterations):
        at = climbing
        here = points[at][:, moving]
        step = share[at, None] * _direction(here, slopes[at], inverse[at])
        trial = points[at]
        trial[:, moving] = np.clip(here + step, 0, 1)
        step = trial[:, moving] - here
        new_values, new_slopes = value_gradient(at, trial)
        new_slopes = _finite(new_slopes[:, moving])
        promised = (slopes[at] * step).sum(-1)
        with np.errstate(all="ignore"):  # a start may be where there is no value at all
            higher = np.isfinite(new_values) & ~(new_values < values[at] + 1e-4 * promised)
            rise = np.where(higher, new_values - values[at], np.inf)
            # A step too far goes on where a parabola through both ends has its top.
            top = promised / (2 * (values[at] + promised - new_values))
        _learn(inverse, fresh, at[higher], step[higher], (slopes[at] - new_slopes)[higher])
        share[at] = np.where(higher, 1.0, share[at] * np.clip(np.nan_to_num(top), 0.1, 0.5))
        up = at[higher]
        points[up], values[up], slopes[up] = trial[higher], new_values[higher], new_slopes[higher]
        longest = np.abs(step).max(-1)
        climbing = at[(rise > _RISE * np.abs(values[at])) & (longest > _SHORTEST)]
        if len(climbing) == 0:
            break
    return points, values


def _finite(slopes: Array) -> Array:
    return np.nan_to_num(slopes, posinf=1e12, neginf=-1e12)


def _first_step(slopes: Array) -> Array:
    """(s, d) -> (s, 1) what makes a step along the slope short."""
    return _SHORT / np.maximum(np.abs(slopes).max(-1, keepdims=True), 1e-300)


def _direction(here: Array, slopes: Array, inverse: Array) -> Array:
    """(s, d), (s, d), (s, d, d) -> (s, d) where to go, not out of the box and not too far."""
    blocked = ((here <= 0) & (slopes < 0)) | ((here >= 1) & (slopes > 0))
    free = np.where(blocked, 0.0, slopes)
    direction = np.einsum("sij,sj->si", inverse, free)
    direction[blocked] = 0.0
    lost = (direction * free).sum(-1) <= 0
    direction[lost] = free[lost] * _first_step(free[lost])
    longest = np.abs(direction).max(-1, keepdims=True)
    return direction * np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))


def _learn(inverse: Array, fresh: Mask, at: Index, step: Array, fall: Array) -> None:
    """The BFGS update of the inverse curvatures `at`, where the slope fell along the step."""
    curved = (step * fall).sum(-1)
    squared = (fall**2).sum(-1)
    size = np.sqrt((step**2).sum(-1) * squared)
    bends = (curved > 1e-12 * size) & (squared > 1e-300)  # falls so small that squares vanish
    inverse[at[~bends & fresh[at]]] *= 4.0  # a straight slope: go further next time
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
