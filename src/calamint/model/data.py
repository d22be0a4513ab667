"""What was measured of one function."""

import math
from dataclasses import dataclass, field
from typing import Any, final

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
    _rows: "_Rows | None" = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Data, (self.inputs, self.values, self.noise_variance)

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
        """The same with one more measurement, which takes constant time for the newest data."""
        rows, count = self._rows, len(self)
        if rows is None or rows.used != count or count == len(rows.values):
            rows = _Rows.of(self)
        rows.inputs[count], rows.values[count] = point, value
        rows.noise_variance[count] = noise_variance
        rows.used = end = count + 1
        return Data(rows.inputs[:end], rows.values[:end], rows.noise_variance[:end], rows)


@final
@dataclass
class _Rows:
    """Memory that data share who have the same beginning, with room for more; `used` by one of
    them."""

    inputs: Array
    values: Array
    noise_variance: Array
    used: int

    @staticmethod
    def of(data: Data) -> "_Rows":
        count, dimension = data.inputs.shape
        room = max(16, 2 * count)
        rows = _Rows(np.empty((room, dimension)), np.empty(room), np.empty(room), count)
        rows.inputs[:count], rows.values[:count] = data.inputs, data.values
        rows.noise_variance[:count] = data.noise_variance
        return rows
