"""A bounded number of measurements that stand for all of them.

Learning hyper-parameters costs N³ for every evaluation of the likelihood, and a few hundred well
chosen measurements determine them nearly as well as all. Half are those that matter most: the best
objective values, those nearest to the limits of a constraint, and outcomes near the opposite
outcome. The other half fill space.

| symbol | code | shape | meaning |
|---|---|---|---|
| | `rows` | (n,) | indices of the chosen measurements, ascending |
| | `relevance` | (N,) | smaller is chosen first |
"""

import numpy as np

from calamint.arrays import Array, Index, Mask
from calamint.model.data import Data

# Past this many measurements of a function, its hyper-parameters are learnt from as many of them.
LEARNT = 150
# EP costs some twenty factorisations for every evaluation of the likelihood.
LEARNT_OUTCOMES = 64
# Past this many outcomes, the posterior is that of as many of them.
ACTIVE_OUTCOMES = 150


def relevant_subset(data: Data, relevance: Array, most: int) -> Data:
    """At most so many measurements: half of them the most relevant ones, half space-filling."""
    if len(data) <= most:
        return data
    chosen = np.zeros(len(data), dtype=bool)
    chosen[np.argsort(relevance, kind="stable")[: most // 2]] = True
    return data.take(_fill_space(data.inputs, chosen, most))


def boundary_subset(outcomes: Data, most: int) -> Data:
    """At most so many outcomes: half of them near the opposite outcome, half space-filling."""
    if len(outcomes) <= most:
        return outcomes
    passed = outcomes.values > 0.5
    distance = np.full(len(outcomes), np.inf)
    if passed.any() and not passed.all():
        squared = squared_distances(outcomes.inputs, outcomes.inputs)
        squared[passed[:, None] == passed] = np.inf
        distance = squared.min(1)
    return relevant_subset(outcomes, distance, most)


def _fill_space(inputs: Array, chosen: Mask, most: int) -> Index:
    """Add the input that is farthest from all chosen ones until there are so many."""
    nearest = squared_distances(inputs, inputs[chosen]).min(1, initial=np.inf)
    while chosen.sum() < most:
        farthest = int(np.argmax(np.where(chosen, -1.0, nearest)))
        chosen[farthest] = True
        nearest = np.minimum(nearest, ((inputs - inputs[farthest]) ** 2).sum(-1))
    return np.flatnonzero(chosen)


def squared_distances(a: Array, b: Array) -> Array:
    """(n, D), (k, D) -> (n, k)"""
    squared = (a**2).sum(-1)[:, None] + (b**2).sum(-1) - 2 * a @ b.T
    return np.maximum(squared, 0.0)
