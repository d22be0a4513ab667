"""The reference by brute force: draw all functions on a grid, see where each draw has its optimum.

Draws are grouped by the cell that holds their constrained minimiser; within a group the variance of
each function is what would be left if x* were known to be there (RS in Hernández-Lobato et al.
2016, section 6.1):

    gain_i(x) = ½ log(C_i(x,x) + ν_i) − Σ_cells p(cell) ½ log(var_i(x | cell) + ν_i)

For a function that is measured as pass or fail it is the entropy of that outcome that falls.

| symbol | code | shape | meaning |
|---|---|---|---|
| p(cell) | `cells` | (n,) | share of draws whose optimum is in a cell |
| var_i(x given cell) | `variance` | (n,) | of the draws in a cell |
| C_i(x, x), ν_i | `variances`, `noises` | (n,) | posterior variance, noise variance |
| gain_i(x) | `gains` | (n, 1 + K) | nats |
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import entr, ndtr

from calamint.acquire.optima import draw_solutions
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array, Index, Mask
from calamint.checks import check_integer
from calamint.errors import ProblemError
from calamint.model import FunctionSurrogate, Surrogate, probit_score
from calamint.problem import Problem, Space

_CHUNK = 20_000
_FEWEST = 20  # draws in a cell for its variance to count


@final
@dataclass(frozen=True)
class GridGains:
    """Gains (n, 1 + K) in nats on the grid, and the probability of each cell to hold x*.

    Attributes:
        infeasible: The share of draws with no feasible cell, which are left out.
    """

    gains: Array
    cells: Array
    infeasible: float


def root_of(covariance: Array) -> Array:
    """Any R with R Rᵀ = covariance, however close to singular that is."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def optima(values: list[Array], limits: Sequence[FunctionSurrogate]) -> tuple[Index, Mask]:
    """Which of n places is the optimum of each draw, or comes closest to meeting the limits; and
    whether it meets them.

    Args:
        values: (S, n) of the objective, then of every limited function.
    """
    violation = np.zeros_like(values[0])
    for function, drawn in zip(limits, values[1:], strict=True):
        violation += np.maximum(function.low - drawn, 0.0) + np.maximum(drawn - function.high, 0.0)
    objective = np.where(violation <= 0, values[0], np.inf)
    feasible = np.isfinite(objective.min(axis=1))
    return np.where(feasible, objective.argmin(axis=1), violation.argmin(axis=1)), feasible


def _entropy(chance: Array) -> Array:
    """Entropy of a binary outcome, in nats."""
    return entr(chance) + entr(1 - chance)


def grid_gains(
    surrogate: Surrogate,
    grid: Array,
    draws: int,
    rng: np.random.Generator,
    sample: int = 0,
    closest: bool = False,
) -> GridGains:
    """Rejection sampling on a grid (n, D) under one hyper-parameter sample.

    Args:
        closest: Draws without a feasible cell count where they come closest to one; they always do
            where hardly any draw has a feasible cell.
    """
    names = [surrogate.problem.objective.name, *(c.name for c in surrogate.problem.constraints)]
    functions = [surrogate.functions[name] for name in names]
    size, count = len(grid), len(functions)
    means, roots, variances, noises = [], [], [], []
    for function in functions:
        posterior = function.posterior
        mean, variance = (moment[sample] for moment in posterior.mean_variance(grid))
        means.append(mean)
        variances.append(variance)
        if posterior.measurable:
            covariance = posterior.covariance(grid, grid)[sample]
            roots.append(root_of(covariance))
            noises.append(posterior.noise[sample])
        else:
            roots.append(np.zeros((size, 1)))
            noises.append(0.0)
    number = np.zeros(size)
    sums = np.zeros((2, count, size, size))  # Σ and Σ² of function i at x, by cell
    lost = 0
    for start in range(0, draws, _CHUNK):
        chunk = min(_CHUNK, draws - start)
        drawn = [rng.standard_normal((chunk, root.shape[1])) @ root.T for root in roots]
        placed = [mean + draw for mean, draw in zip(means, drawn, strict=True)]
        best, feasible = optima(placed, functions[1:])
        lost += int((~feasible).sum())
        if closest:
            feasible[:] = True
        order = np.argsort(best[feasible], kind="stable")
        cells, begins = np.unique(best[feasible][order], return_index=True)
        if len(cells) == 0:
            continue
        number[cells] += np.diff(np.append(begins, feasible.sum()))
        for i, values in enumerate(drawn):
            if functions[i].binary:  # how likely a outcome is to be "pass"
                values = ndtr(means[i] + values)
            ordered = values[feasible][order]
            sums[0, i, cells] += np.add.reduceat(ordered, begins)
            sums[1, i, cells] += np.add.reduceat(ordered**2, begins)
    enough = number >= _FEWEST
    gains = np.zeros((size, count))
    if not enough.any():
        if not closest:
            return grid_gains(surrogate, grid, draws, rng, sample, closest=True)
        return GridGains(gains, number / number.sum(), lost / draws)
    share = number[enough] / number[enough].sum()
    for i in range(count):
        mean = sums[0, i, enough] / number[enough][:, None]
        if functions[i].binary:
            passing = ndtr(probit_score(means[i], variances[i])[0])
            gains[:, i] = _entropy(passing) - share @ _entropy(mean)
            continue
        variance = sums[1, i, enough] / number[enough][:, None] - mean**2
        variance *= (number[enough] / (number[enough] - 1))[:, None]
        left = share @ (0.5 * np.log(np.maximum(variance, 0.0) + noises[i] + 1e-12))
        gains[:, i] = 0.5 * np.log(variances[i] + noises[i] + 1e-12) - left
    return GridGains(gains, number / number.sum(), lost / draws)


class Counted(AcquisitionFunction):
    """Nats by function that were counted: they have no derivatives."""

    in_nats = True

    @abstractmethod
    def contributions(self, x: Array) -> Array: ...

    def value(self, x: Array) -> Array:
        return self.contributions(x).sum(-1)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.value(x), np.zeros_like(x)

    def weighted_gradient(self, x: Array, weights: Array) -> tuple[Array, Array]:
        return (self.contributions(x) * weights).sum(-1), np.zeros_like(x)


@final
class GridInformation(Counted):
    """Expected information at the points of a grid (n, D), in nats by function (n, 1 + K)."""

    def __init__(self, grid: Array, gains: Array) -> None:
        self.finite_set, self.grid, self.gains = grid, grid, gains

    def contributions(self, x: Array) -> Array:
        """Those of the nearest point of the grid."""
        return self.gains[((x[:, None] - self.grid) ** 2).sum(-1).argmin(axis=1)]


def _averaged(
    surrogate: Surrogate, grid: Array, draws: int, rng: np.random.Generator
) -> GridInformation:
    """Rejection sampling under every hyper-parameter sample, averaged."""
    each = [grid_gains(surrogate, grid, draws, rng, j).gains for j in range(surrogate.samples)]
    return GridInformation(grid, np.mean(each, axis=0))


@final
class RS(Acquisition):
    """Rejection sampling on a fixed grid, for at most two columns: slow, and close to exact."""

    name = "rs"
    supports_decoupled = True

    def __init__(self, cells: int = 400, draws: int = 10_000) -> None:
        self.cells, self.draws = check_integer(cells, "cells", 1), check_integer(draws, "draws", 1)

    def check(self, problem: Problem) -> None:
        regular_grid(problem.space, 1)

    def build(
        self,
        surrogate: Surrogate,
        incumbent: Incumbent,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> AcquisitionFunction:
        grid = regular_grid(surrogate.problem.space, self.cells)
        return _averaged(surrogate, grid, self.draws, rng)


@final
class RSDG(Acquisition):
    """Rejection sampling on a dynamic grid of drawn solutions, for any number of columns."""

    name = "rsdg"
    supports_decoupled = True

    def __init__(self, cells: int = 100, draws: int = 10_000) -> None:
        self.cells, self.draws = check_integer(cells, "cells", 1), check_integer(draws, "draws", 1)

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        drawn = draw_solutions(surrogate, self.cells, incumbent.point[None], rng)
        grid = np.unique(drawn.points, axis=0)
        return _averaged(surrogate, grid, self.draws, rng)


def regular_grid(space: Space, cells: int) -> Array:
    """(n, D) centres of about `cells` equal cells; one or two columns."""
    if space.dimension > 2:
        raise ProblemError(
            f"acquisition is 'rs', whose grid cannot cover {space.dimension} columns:"
            " write 'rsdg' or 'pesc'."
        )
    side = round(cells ** (1 / space.dimension))
    axis = (np.arange(side) + 0.5) / side
    mesh = np.meshgrid(*[axis] * space.dimension, indexing="ij")
    return np.unique(space.snap(np.stack(mesh, axis=-1).reshape(-1, space.dimension)), axis=0)
