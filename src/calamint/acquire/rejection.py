"""The truth by brute force: draw all functions on a grid, see where each draw has its optimum.

Draws are grouped by the cell that holds their constrained minimiser; within a group the variance of
each function is what would be left if x* were known to be there (the paper's RS, section 6.1):

    gain_i(x) = ½ log(C_i(x,x) + ν_i) − Σ_cells p(cell) ½ log(var_i(x | cell) + ν_i)
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.model import Belief
from calamint.model.posterior import Posterior
from calamint.problem.parameters import Array

_CHUNK = 20_000
_FEWEST = 20  # draws in a cell for its variance to count


@final
@dataclass(frozen=True)
class Truth:
    """Gains (n, 1 + K) in nats on the grid, and the probability of each cell to hold x*.

    infeasible  the share of draws with no feasible cell, which are left out
    """

    gains: Array
    cells: Array
    infeasible: float


def grid_truth(
    belief: Belief, grid: Array, draws: int, rng: np.random.Generator, sample: int = 0
) -> Truth:
    """Rejection sampling on a grid (n, D) under one hyper-parameter sample."""
    names = [belief.problem.objective.name, *(c.name for c in belief.problem.constraints)]
    functions = [belief.functions[name] for name in names]
    size, count = len(grid), len(functions)
    means, roots, variances, noises = [], [], [], []
    for function in functions:
        process = function.process
        mean, variance = (moment[sample] for moment in process.moments(grid))
        means.append(mean)
        variances.append(variance)
        if isinstance(process, Posterior):
            covariance = process.covariance(grid, grid)[sample]
            values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
            roots.append(vectors * np.sqrt(np.maximum(values, 0.0)))
            noises.append(process.noise[sample])
        else:
            roots.append(np.zeros((size, 1)))
            noises.append(0.0)
    number = np.zeros(size)
    sums = np.zeros((2, count, size, size))  # Σ and Σ² of function i at x, by cell
    lost = 0
    for start in range(0, draws, _CHUNK):
        chunk = min(_CHUNK, draws - start)
        drawn = [rng.standard_normal((chunk, root.shape[1])) @ root.T for root in roots]
        objective = means[0] + drawn[0]
        for i, function in enumerate(functions[1:], start=1):
            c = means[i] + drawn[i]
            objective = np.where((c >= function.low) & (c <= function.high), objective, np.inf)
        best = np.argmin(objective, axis=1)
        feasible = np.isfinite(objective[np.arange(chunk), best])
        lost += int((~feasible).sum())
        order = np.argsort(best[feasible], kind="stable")
        cells, begins = np.unique(best[feasible][order], return_index=True)
        if len(cells) == 0:
            continue
        number[cells] += np.diff(np.append(begins, feasible.sum()))
        for i, values in enumerate(drawn):
            ordered = values[feasible][order]
            sums[0, i, cells] += np.add.reduceat(ordered, begins)
            sums[1, i, cells] += np.add.reduceat(ordered**2, begins)
    enough = number >= _FEWEST
    share = number[enough] / number[enough].sum()
    gains = np.zeros((size, count))
    for i in range(count):
        mean = sums[0, i, enough] / number[enough][:, None]
        variance = sums[1, i, enough] / number[enough][:, None] - mean**2
        variance *= (number[enough] / (number[enough] - 1))[:, None]
        left = share @ (0.5 * np.log(np.maximum(variance, 0.0) + noises[i] + 1e-12))
        gains[:, i] = 0.5 * np.log(variances[i] + noises[i] + 1e-12) - left
    return Truth(gains, number / number.sum(), lost / draws)
