"""What was measured of one function, and the units in which its model computes."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Data:
    """Measurements of one function.

    inputs  (N, D) points of the cube
    values  (N,) in the function's own units
    noise   (N,) the variance of each value where it is known, NaN where it is not
    """

    inputs: Array
    values: Array
    noise: Array

    @staticmethod
    def empty(dimension: int) -> "Data":
        return Data(np.empty((0, dimension)), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        return len(self.values)

    def append(self, point: Array, value: float, noise: float = math.nan) -> "Data":
        """The same with one more measurement."""
        return Data(
            np.concatenate([self.inputs, point[None]]),
            np.concatenate([self.values, [value]]),
            np.concatenate([self.noise, [noise]]),
        )


@final
@dataclass(frozen=True)
class Scaling:
    """Values inside a model are (value − offset) / scale."""

    offset: float = 0.0
    scale: float = 1.0

    def inward(self, values: Array) -> Array:
        return (values - self.offset) / self.scale

    def limits(self, low: float, high: float) -> tuple[float, float]:
        return (low - self.offset) / self.scale, (high - self.offset) / self.scale


def standardise(values: Array, low: float = -math.inf, high: float = math.inf) -> Scaling:
    """Centre and spread of measured values, with the limits in sight.

    The nearest limit counts as one more value in the spread: a few values that happen to agree,
    far from the limit, must not make the model sure that the limit is never crossed. Without
    values, one limit is the centre, or two limits lie at ±1.
    """
    finite = [limit for limit in (low, high) if math.isfinite(limit)]
    if len(values) == 0:
        if len(finite) == 2:
            return Scaling(low / 2 + high / 2, _usable(high / 2 - low / 2, high))
        offset = finite[0] if finite else 0.0
        return Scaling(offset, 1.0)
    # Dividing first keeps sums and squares of huge values from overflowing.
    largest = max(float(np.max(np.abs(values))), *map(abs, finite), 1e-300)
    offset = float(np.mean(values / largest)) * largest
    deviations = (values - offset) / largest
    squares = float(np.sum(deviations**2))
    count = len(values)
    if finite:
        squares += min(abs(limit - offset) / largest for limit in finite) ** 2
        count += 1
    return Scaling(offset, _usable(math.sqrt(squares / count) * largest, offset))


def _usable(spread: float, around: float) -> float:
    """The spread, or a stand-in where there is none: |centre|, or 1."""
    if math.isfinite(spread) and spread > 1e-14 * abs(around) and spread > 1e-300:
        return spread
    return abs(around) if math.isfinite(around) and abs(around) > 1e-300 else 1.0
