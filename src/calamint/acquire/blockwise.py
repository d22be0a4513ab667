"""Utilities that need large arrays per input: evaluated in batches."""

from abc import abstractmethod

import numpy as np

from calamint.acquire.protocol import Utility
from calamint.arrays import Array
from calamint.model import Belief

_BLOCK = 100


class Blockwise(Utility):
    belief: Belief

    @abstractmethod
    def block(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        """(n, D) -> values (n,) and gradients (n, D), which are arbitrary unless asked for."""

    def value(self, x: Array) -> Array:
        return self._run(x, gradients=False)[0]

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self._run(x, gradients=True)

    def _run(self, x: Array, gradients: bool) -> tuple[Array, Array]:
        value, gradient = np.empty(len(x)), np.empty(x.shape)
        for start in range(0, len(x), _BLOCK):
            rows = slice(start, start + _BLOCK)
            value[rows], gradient[rows] = self.block(x[rows], gradients)
        return value, np.where(self.belief.problem.space.continuous, gradient, 0.0)
