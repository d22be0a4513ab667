"""The units in which a function's model computes, and the way back to the user's."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array


@final
@dataclass(frozen=True)
class Scaling:
    """Values inside a model are (value − offset) / scale.

    The scale of an objective that is maximised is negative: inside, everything is minimised.
    """

    offset: float = 0.0
    scale: float = 1.0

    def to_model(self, values: Array) -> Array:
        """The user's values in the model's units."""
        return (values - self.offset) / self.scale

    def to_user(self, values: Array) -> Array:
        """Values of the model in the user's units."""
        return self.offset + self.scale * values

    def variance_to_model(self, variance: Array) -> Array:
        """A variance of the user's values in the model's units."""
        return variance / self.scale / self.scale

    def std_to_user(self, std: Array) -> Array:
        """A standard deviation of the model in the user's units."""
        return abs(self.scale) * std

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """A constraint's interval in the model's units."""
        return (low - self.offset) / self.scale, (high - self.offset) / self.scale


def standardise(
    values: Array, low: float = -math.inf, high: float = math.inf, sign: float = 1.0
) -> Scaling:
    """Centre and spread of measured values, with the limits in sight.

    The nearest limit counts as one more value in the spread: a few values that happen to agree,
    far from the limit, must not make the model sure that the limit is never crossed. Without
    values, one limit is the centre, or two limits lie at ±1.

    sign  −1 for an objective that is maximised
    """
    finite = [limit for limit in (low, high) if math.isfinite(limit)]
    if len(values) == 0:
        if len(finite) == 2:
            return Scaling(low / 2 + high / 2, _usable(high / 2 - low / 2, high))
        offset = finite[0] if finite else 0.0
        return Scaling(offset, sign)
    # Dividing first keeps sums and squares of huge values from overflowing.
    largest = max(float(np.max(np.abs(values))), *map(abs, finite), 1e-300)
    offset = float(np.mean(values / largest)) * largest
    stds = (values - offset) / largest
    squares = float(np.sum(stds**2))
    count = len(values)
    if finite:
        squares += min(abs(limit - offset) / largest for limit in finite) ** 2
        count += 1
    return Scaling(offset, sign * _usable(math.sqrt(squares / count) * largest, offset))


def _usable(spread: float, around: float) -> float:
    """The spread, or a stand-in where there is none: |centre|, or 1."""
    if math.isfinite(spread) and spread > 1e-14 * abs(around) and spread > 1e-300:
        return spread
    return abs(around) if math.isfinite(around) and abs(around) > 1e-300 else 1.0
