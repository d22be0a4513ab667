"""A function that is computed, not measured, in the shape of a posterior without doubt."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.model.data import Scaling, standardise
from calamint.model.kernels import Index
from calamint.problem import Params, ProblemError, Space
from calamint.problem.parameters import Array, finite

# Standardised; stands for "none" where formulas divide by a deviation.
_VARIANCE = 1e-16
_STEP = 1e-6


@final
@dataclass(frozen=True)
class KnownFunction:
    """Exact values in standardised units; gradients by central differences inside the cube."""

    function: Callable[[Params], float]
    space: Space
    scaling: Scaling
    samples: int
    sign: float

    @staticmethod
    def of(
        function: Callable[[Params], float],
        space: Space,
        samples: int,
        sign: float,
        low: float,
        high: float,
    ) -> "KnownFunction":
        """`sign` is −1 for an objective that is maximised."""
        points = space.snap(np.random.default_rng(0).random((64, space.dimension)))
        values = np.array([sign * _compute(function, space.decode(point)) for point in points])
        return KnownFunction(function, space, standardise(values, low, high), samples, sign)

    def __len__(self) -> int:
        return self.samples

    def take(self, samples: Index | slice) -> "KnownFunction":
        """The same function, for so many samples."""
        return replace(self, samples=len(np.arange(self.samples)[samples]))

    def values(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        raw = [self.sign * _compute(self.function, self.space.decode(point)) for point in x]
        return self.scaling.inward(np.array(raw))

    def moments(self, x: Array) -> tuple[Array, Array]:
        mean = np.repeat(self.values(x)[None], self.samples, axis=0)
        return mean, np.full_like(mean, _VARIANCE)

    def moments_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        mean, variance = self.moments(x)
        gradient = central_differences(self.values, self.space, x, _STEP)
        shape = (self.samples, *gradient.shape)
        return mean, variance, np.broadcast_to(gradient, shape), np.zeros(shape)


def central_differences(
    values: Callable[[Array], Array], space: Space, x: Array, step: float
) -> Array:
    """(n, D) -> (n, D) slopes of values (n,) along what moves smoothly, inside the cube."""
    gradient = np.zeros(x.shape)
    for column in np.flatnonzero(space.continuous):
        above, below = x.copy(), x.copy()
        above[:, column] = np.minimum(x[:, column] + step, 1.0)
        below[:, column] = np.maximum(x[:, column] - step, 0.0)
        width = above[:, column] - below[:, column]
        gradient[:, column] = (values(above) - values(below)) / width
    return gradient


def called(function: Callable[[Params], float], params: Params, title: str) -> object:
    """What a user's function returns; an error of theirs in one sentence that begins with title."""
    try:
        return function(params)
    except Exception as error:
        raise ProblemError(
            f"{title} raised {type(error).__name__}: {error}: write one that works everywhere."
        ) from error


def _compute(function: Callable[[Params], float], params: Params) -> float:
    """What a known function returns, if it is a number."""
    title = f"the known function {getattr(function, '__name__', function)!r} at {params}"
    value = called(function, params, title)
    number = finite(value)
    if number is None:
        raise ProblemError(f"{title} returned {value!r}: write one that returns a finite number.")
    return number
