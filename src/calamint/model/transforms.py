"""The scale on which a function is modelled, and the way back to the user's units.

    model value = (C(T(y)) − offset) / scale

The constrained optimum does not change when the objective, or a constraint with its limits, is
mapped by a strictly increasing function, and neither does information about it. So every function
is modelled on the scale that suits a Gaussian process.

| symbol | code | meaning |
|---|---|---|
| y | `values` | measured, in the user's units |
| T | `Warp` | none, log, reflected log, logit or asinh |
| C | `Compression` | logarithmic where resolution does not matter |
| offset, scale | | standardisation; the scale of a maximised objective is negative |

All maps are strictly increasing on the whole line: beyond the domain of a logarithm they continue
as straight lines, because a value measured later may lie there.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from calamint.arrays import Array

WarpKind = Literal["none", "log", "reflected", "logit", "asinh"]

_MAX_EXPONENT = 690.0  # exp stays finite
_TINY = 1e-300

# Of an interval between limits, in the units of the model.
_NARROWEST = 1e-9
# Beyond the domain of a logarithm, in its widths: squares stay finite.
_FARTHEST = 1e75


@final
@dataclass(frozen=True)
class Warp:
    """A strictly increasing map T of the whole line.

    | kind | T(y) |
    |---|---|
    | none | y |
    | log | log(y − origin), a straight line where y − origin < width |
    | reflected | −log(origin − y), a straight line where origin − y < width |
    | logit | log(y / (1 − y)), straight lines within `width` of 0 and of 1 |
    | asinh | asinh((y − origin) / width) |
    """

    kind: WarpKind = "none"
    origin: float = 0.0
    width: float = 1.0

    def forward(self, values: Array) -> Array:
        """T(y)"""
        if self.kind == "none":
            return values
        if self.kind == "logit":
            inside = np.clip(values, self.width, 1 - self.width)
            slope = 1 / (self.width * (1 - self.width))
            return np.log(inside / (1 - inside)) + slope * (values - inside)
        distance = values - self.origin
        if self.kind == "asinh":
            return np.arcsinh(distance / self.width)
        return self._log(distance) if self.kind == "log" else -self._log(-distance)

    def inverse(self, warped: Array) -> Array:
        """y of T(y)"""
        if self.kind == "none":
            return warped
        if self.kind == "logit":
            end = math.log((1 - self.width) / self.width)
            inside = np.clip(warped, -end, end)
            slope = 1 / (self.width * (1 - self.width))
            return 1 / (1 + np.exp(-inside)) + (warped - inside) / slope
        if self.kind == "asinh":
            most = _largest_exponent(self.width)
            clipped = np.clip(warped, -most, most)
            return self.origin + self.width * np.sinh(clipped)
        return self.origin + (self._exp(warped) if self.kind == "log" else -self._exp(-warped))

    def log_derivative(self, values: Array) -> Array:
        """log T'(y)"""
        if self.kind == "none":
            return np.zeros_like(values)
        if self.kind == "logit":
            inside = np.clip(values, self.width, 1 - self.width)
            return -np.log(inside) - np.log1p(-inside)
        distance = values - self.origin
        if self.kind == "asinh":
            return -0.5 * np.log1p((distance / self.width) ** 2) - math.log(self.width)
        return -np.log(np.maximum(distance if self.kind == "log" else -distance, self.width))

    def _log(self, distance: Array) -> Array:
        """log z for z ≥ width, and its tangent there below."""
        beyond = np.clip(distance - self.width, -_FARTHEST * self.width, 0.0) / self.width
        return np.log(np.maximum(distance, self.width)) + beyond

    def _exp(self, warped: Array) -> Array:
        """The inverse of `_log`."""
        end = math.log(self.width)
        inside = np.exp(np.clip(warped, end, max(_MAX_EXPONENT, end)))
        return inside + self.width * np.minimum(warped - end, 0.0)


def _largest_exponent(factor: float) -> float:
    """Such that its exponential times the factor stays finite."""
    return _MAX_EXPONENT - max(0.0, math.log(factor))


@final
@dataclass(frozen=True)
class Compression:
    """A strictly increasing map that leaves [low, high] as it is, and is logarithmic beyond."""

    low: float = -math.inf
    high: float = math.inf
    width: float = 1.0

    def reaches(self, values: Array, widths: float) -> bool:
        """Whether a value lies this many widths beyond [low, high]."""
        beyond = np.abs(values - np.clip(values, self.low, self.high))
        return bool(np.any(beyond > widths * self.width))

    def forward(self, values: Array) -> Array:
        above = np.maximum(values - self.high, 0.0) if self.high < math.inf else 0.0
        below = np.maximum(self.low - values, 0.0) if self.low > -math.inf else 0.0
        inside = np.clip(values, self.low, self.high)
        return inside + self.width * (self._log1p(above) - self._log1p(below))

    def inverse(self, compressed: Array) -> Array:
        inside = np.clip(compressed, self.low, self.high)
        beyond = (compressed - inside) / self.width
        grown = np.expm1(np.minimum(np.abs(beyond), _largest_exponent(self.width)))
        return inside + self.width * np.sign(beyond) * grown

    def log_derivative(self, values: Array) -> Array:
        beyond = np.abs(values - np.clip(values, self.low, self.high))
        return -self._log1p(beyond)

    def _log1p(self, distance: Array | float) -> Array:
        """log(1 + distance / width), also where the ratio overflows."""
        return np.logaddexp(0.0, np.log(np.maximum(distance, _TINY)) - math.log(self.width))


@final
@dataclass(frozen=True)
class OutcomeTransform:
    """The map from the user's units to those of a model, and back.

    Inside a model everything is minimised: the scale of a maximised objective is negative.
    """

    offset: float = 0.0
    scale: float = 1.0
    warp: Warp = Warp()
    compression: Compression | None = None

    @property
    def is_affine(self) -> bool:
        return self.warp.kind == "none" and self.compression is None

    def _bend(self, values: Array) -> Array:
        """C(T(y))"""
        warped = self.warp.forward(values)
        return warped if self.compression is None else self.compression.forward(warped)

    def to_model(self, values: Array) -> Array:
        """The user's values in the model's units."""
        return (self._bend(values) - self.offset) / self.scale

    def to_user(self, values: Array) -> Array:
        """Values of the model in the user's units."""
        bent = self.offset + self.scale * values
        if self.compression is not None:
            bent = self.compression.inverse(bent)
        return self.warp.inverse(bent)

    def log_jacobian(self, values: Array) -> Array:
        """log |d model value / dy|"""
        total = self.warp.log_derivative(values) - math.log(abs(self.scale))
        if self.compression is not None:
            total = total + self.compression.log_derivative(self.warp.forward(values))
        return total

    def variance_to_model(self, values: Array, variance: Array) -> Array:
        """Variances of the user's values in the model's units; NaN stays NaN.

        A standard error s becomes half of what the map makes of [y − s, y + s].
        """
        if self.is_affine:
            return variance / self.scale / self.scale
        known = ~np.isnan(variance)
        value, sem = values[known], np.sqrt(variance[known])
        result = np.full(np.shape(variance), np.nan)
        half = 0.5 * (self._bend(value + sem) - self._bend(value - sem)) / self.scale
        result[known] = half**2
        return result

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """A constraint's interval in the model's units; its scale is positive."""
        ends = np.array([low, high])
        finite = np.isfinite(ends)
        ends[finite] = self.to_model(ends[finite])
        if finite.all():
            # Beside values of 1e300 an interval is a point, of which every probability is zero.
            width = _NARROWEST * max(1.0, float(np.abs(ends).max()))
            missing = max(width - (ends[1] - ends[0]), 0.0)
            ends += 0.5 * missing * np.array([-1.0, 1.0])
        return float(ends[0]), float(ends[1])


def standardise(
    values: Array,
    low: float = -math.inf,
    high: float = math.inf,
    sign: float = 1.0,
    warp: Warp | None = None,
    compression: Compression | None = None,
) -> OutcomeTransform:
    """Centre and scale of measured values, with the limits in sight.

    The nearest limit counts as one more value in the spread: a few values that happen to agree,
    far from the limit, must not make the model sure that the limit is never crossed. Without
    values, one limit is the centre, or two limits lie at ±1.

    sign  −1 for an objective that is maximised
    """
    bend = OutcomeTransform(0.0, 1.0, warp or Warp(), compression)
    low, high = bend.limits(low, high)
    values = bend.to_model(values)
    offset, scale = _centre_and_spread(values, low, high)
    return OutcomeTransform(offset, sign * scale, bend.warp, bend.compression)


def _centre_and_spread(values: Array, low: float, high: float) -> tuple[float, float]:
    finite = [limit for limit in (low, high) if math.isfinite(limit)]
    if len(values) == 0:
        if len(finite) == 2:
            return low / 2 + high / 2, _usable(high / 2 - low / 2, high)
        return (finite[0] if finite else 0.0), 1.0
    # Dividing first keeps sums and squares of huge values from overflowing.
    largest = max(float(np.max(np.abs(values))), *map(abs, finite), _TINY)
    offset = float(np.mean(values / largest)) * largest
    squares = float(np.sum(((values - offset) / largest) ** 2))
    count = len(values)
    if finite:
        squares += min(abs(limit - offset) / largest for limit in finite) ** 2
        count += 1
    return offset, _usable(math.sqrt(squares / count) * largest, offset)


def _usable(spread: float, around: float) -> float:
    """The spread, or a stand-in where there is none: |centre|, or 1."""
    if math.isfinite(spread) and spread > 1e-14 * abs(around) and spread > _TINY:
        return spread
    return abs(around) if math.isfinite(around) and abs(around) > _TINY else 1.0
