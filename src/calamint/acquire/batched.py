"""Acquisition functions that need large arrays for every input: evaluated in batches."""

from abc import abstractmethod

import numpy as np

from calamint.acquire.protocol import AcquisitionFunction
from calamint.arrays import Array
from calamint.model import Surrogate

_BATCH = 100  # inputs whose arrays fit in the cache


class Batched(AcquisitionFunction):
    """An acquisition function that is evaluated for a batch of inputs at a time."""

    surrogate: Surrogate

    @abstractmethod
    def evaluate(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        """(n, D) -> values (n,) and gradients (n, D); these are arbitrary without `gradients`."""

    def value(self, x: Array) -> Array:
        return self._run(x, gradients=False)[0]

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self._run(x, gradients=True)

    def _run(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        value, gradient = np.empty(len(x)), np.empty(x.shape)
        for start in range(0, len(x), _BATCH):
            rows = slice(start, start + _BATCH)
            value[rows], gradient[rows] = self.evaluate(x[rows], gradients)
        return value, np.where(self.surrogate.problem.space.continuous, gradient, 0.0)
