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

    @property
    def has_replicates(self) -> bool:
        """Whether an input was measured more than once."""
        return len(np.unique(self.inputs, axis=0)) < len(self)

    @property
    def is_exact(self) -> bool:
        """Whether inputs were measured more than once, and gave the same value every time.

        Where few values are possible, that may be chance: one of them must be unlike all others.
        """
        once = self.without_exact_repetitions()
        if len(once) == len(self) or once.has_replicates:
            return False
        _, counts = np.unique(once.values, return_counts=True)
        _, repeated = np.unique(self.values, return_counts=True)
        return bool(np.any((counts == 1) & (repeated > 1)))

    def without_exact_repetitions(self) -> "Data":
        """One measurement of each input, as long as measuring again gives the same value.

        Such a function has no noise, but may be rougher than any kernel; the noise of its model
        stands for that, and repetitions, which share the roughness, would deny it.
        """
        if not np.all(np.isnan(self.noise_variance)):
            return self
        seen: dict[bytes, float] = {}
        kept: list[int] = []
        for row, (point, value) in enumerate(zip(self.inputs, self.values, strict=True)):
            first = seen.setdefault(point.tobytes(), value)
            if first != value:  # noisy after all: from here on everything counts
                return self.take(np.append(kept, np.arange(row, len(self))).astype(int))
            if len(seen) > len(kept):
                kept.append(row)
        return self if len(kept) == len(self) else self.take(np.array(kept, dtype=int))

    def append(self, point: Array, value: float, noise_variance: float = math.nan) -> "Data":
        """The same with one more measurement."""
        return Data(
            np.concatenate([self.inputs, point[None]]),
            np.concatenate([self.values, [value]]),
            np.concatenate([self.noise_variance, [noise_variance]]),
        )
