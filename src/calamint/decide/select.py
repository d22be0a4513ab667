"""Selecting the best job: many candidates at once, then a joint ascent from the best of them.

Tasks compete: each is worth the shares of what it measures, for its cost, and each has its own best
input. All tasks' candidates are scored together, and all their starts climb together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire import AcquisitionFunction, candidate_points, first_apart, mixtures
from calamint.arrays import Array, Index
from calamint.decide.ascend import ascend, discrete_neighbours
from calamint.decide.failures import SuccessProbability
from calamint.decide.pending import Novelty
from calamint.model import CostModel, FixedCost
from calamint.problem import Space


@final
@dataclass(frozen=True)
class Effort:
    """How hard to look."""

    candidates: int  # scored roughly; a fifth of them are scored fully
    starts: int  # for each task
    iterations: int


FINE = Effort(500, 4, 12)
COARSE = Effort(100, 2, 4)
_FULLY = 5


@final
@dataclass(frozen=True)
class Competitor:
    """A task that competes.

    Attributes:
        weights: (S,) of the contributions that it is worth.
        shares: The shares of its worth that a job keeps, as it may fail, or pending jobs measure
            the same.
    """

    task: str
    weights: Array
    cost_model: CostModel
    shares: tuple[SuccessProbability | Novelty, ...] = ()

    def cost(self, x: Array) -> Array:
        """(n, D) -> (n,) of what a whole job is worth: one that fails has to be paid for, too."""
        cost = self.cost_model.value(x)
        for share in self.shares:
            cost = cost / share.value(x)
        return cost

    def cost_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""
        cost, derivative = self.cost_model.value_gradient(x)
        for share in self.shares:
            value, gradient = share.value_gradient(x)
            cost = cost / value
            derivative = (derivative - cost[:, None] * gradient) / value[:, None]
        return cost, derivative


@final
@dataclass(frozen=True)
class BestJob:
    """A task's best input (D,), what it is worth there for its cost, and that cost."""

    task: str
    point: Array
    score: float
    cost: float


def maximise(
    acq_function: AcquisitionFunction,
    competitors: Sequence[Competitor],
    space: Space,
    near: Array,
    rng: np.random.Generator,
    effort: Effort = FINE,
) -> list[BestJob]:
    """The best input found for every task, in the order given.

    near  (k, D) points whose neighbourhoods deserve a closer look
    """
    competition = _Competition(acq_function, competitors)
    points = acq_function.finite_set
    if acq_function.input_chooser is not None:
        everything = Competitor("", np.ones(1), FixedCost(1.0))
        (place,) = maximise(acq_function.input_chooser, [everything], space, near, rng, effort)
        points = place.point[None]
    if points is not None:
        scores = competition.scores(points, acq_function.contributions(points))
        best = scores.argmax(axis=1)
        return [competition.found(t, points[i], scores[t, i]) for t, i in enumerate(best)]
    candidates = candidate_points(space, effort.candidates, near, rng)
    if len(acq_function.start_points):
        candidates = candidates[effort.candidates // 2 :]
        mixed = mixtures(acq_function.start_points, effort.candidates // 3, rng)
        candidates = np.vstack([candidates, space.snap(mixed)])
    roughly = competition.scores(candidates, acq_function.screening_values(candidates))
    most = -(-effort.candidates // _FULLY) // len(competitors) + effort.starts
    order = np.argsort(-roughly, axis=1, kind="stable")[:, :most]
    candidates = candidates[np.unique(order)]
    fully = competition.scores(candidates, acq_function.contributions(candidates))
    chosen = [_distinct_best(row, candidates, effort.starts) for row in fully]
    which = np.repeat(np.arange(len(competitors)), [len(starts) for starts in chosen])
    starts = candidates[np.concatenate(chosen)]
    points, scores = ascend(
        lambda rows, x: competition.value_gradient(which[rows], x), starts, space, effort.iterations
    )
    winners = []
    for t in range(len(competitors)):
        own = np.flatnonzero(which == t)
        best = own[np.argmax(scores[own])]
        point, score = competition.settle(t, space, points[best], scores[best], effort.iterations)
        winners.append(competition.found(t, point, score))
    return winners


@final
class _Competition:
    """What each competitor is worth at each input, for its cost."""

    def __init__(
        self, acq_function: AcquisitionFunction, competitors: Sequence[Competitor]
    ) -> None:
        self.acq_function, self.competitors = acq_function, competitors
        self.weights = np.array([competitor.weights for competitor in competitors])

    def scores(self, x: Array, contributions: Array) -> Array:
        """(n, D), (n, S) -> (T, n)"""
        values = self.weights @ contributions.T
        costs = np.array([competitor.cost(x) for competitor in self.competitors])
        if self.acq_function.log_scale:
            return values - np.log(costs)
        return np.where(values > 0, values / costs, values * costs)

    def value_gradient(self, competitor: Index, x: Array) -> tuple[Array, Array]:
        """Competitors (n,) at inputs (n, D) -> (n,) and gradients (n, D)."""
        value, gradient = self.acq_function.weighted_gradient(x, self.weights[competitor])
        cost, cost_gradient = np.empty(len(x)), np.empty(x.shape)
        for t in np.unique(competitor):
            own = competitor == t
            cost[own], cost_gradient[own] = self.competitors[t].cost_gradient(x[own])
        relative = cost_gradient / cost[:, None]
        if self.acq_function.log_scale:
            return value - np.log(cost), gradient - relative
        # A negative value must not become better by costing more.
        sign = np.where(value > 0, -1.0, 1.0)
        factor = cost**sign
        value = value * factor
        return value, gradient * factor[:, None] + (sign * value)[:, None] * relative

    def found(self, t: int, point: Array, score: float) -> BestJob:
        cost = float(self.competitors[t].cost_model.value(point[None])[0])
        return BestJob(self.competitors[t].task, point, float(score), cost)

    def settle(
        self, t: int, space: Space, point: Array, score: float, iterations: int
    ) -> tuple[Array, float]:
        """Try the neighbouring integers and the other options until none is better."""
        for _ in range(20):
            neighbours = discrete_neighbours(space, point)
            if len(neighbours) == 0:
                break
            values = self.scores(neighbours, self.acq_function.contributions(neighbours))[t]
            best = int(np.argmax(values))
            if not values[best] > score:
                break
            moved, scores = ascend(
                lambda rows, x: self.value_gradient(np.full(len(rows), t), x),
                neighbours[best][None],
                space,
                iterations,
            )
            point, score = moved[0], float(scores[0])
        return point, score


def _distinct_best(values: Array, points: Array, count: int) -> list[int]:
    """Indices of the best points that are not all in one place."""
    order = np.argsort(-values, kind="stable")
    return first_apart(points, order[np.isfinite(values[order])], count, 0.01) or [0]
