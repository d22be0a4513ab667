"""What was measured of one function."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array, Index


@final
@dataclass(frozen=True)
class Data:
    """Measurements of one function.

    inputs          (N, D) points of the cube
    values          (N,) in the function's own units
    noise_variance  (N,) of each value where it is known, NaN where it is not
    """

    inputs: Array
    values: Array
    noise_variance: Array

    @staticmethod
    def empty(dimension: int) -> "Data":
        return Data(np.empty((0, dimension)), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Index) -> "Data":
        """The measurements at these indices."""
        return Data(self.inputs[rows], self.values[rows], self.noise_variance[rows])

    def append(self, point: Array, value: float, noise_variance: float = math.nan) -> "Data":
        """The same with one more measurement."""
        return Data(
            np.concatenate([self.inputs, point[None]]),
            np.concatenate([self.values, [value]]),
            np.concatenate([self.noise_variance, [noise_variance]]),
        )
