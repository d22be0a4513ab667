"""Covariance as a function of squared scaled distance, and the spectra to draw from.

| symbol | code | meaning |
|---|---|---|
| r² | `squared` | Σ_d (x_d − x'_d)² / ℓ_d² |
| k(r²) | `value` | correlation, 1 at r = 0 |
| −2 dk/d(r²) | derivative | finite at r = 0; ∂k/∂x_d = −derivative·(x_d − x'_d)/ℓ_d² |
"""

import math
from abc import ABC, abstractmethod
from typing import final

import numpy as np

from calamint.arrays import Array, Index


class Kernel(ABC):
    """A stationary correlation function."""

    name: str

    @abstractmethod
    def value(self, squared: Array) -> Array:
        """Correlation at squared scaled distances, any shape."""

    @abstractmethod
    def value_derivative(self, squared: Array) -> tuple[Array, Array]:
        """The correlation and −2 times its derivative, same shapes."""

    @abstractmethod
    def frequencies(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draws from the spectral density at length-scale 1; the last axis is the dimension."""


@final
class SquaredExponential(Kernel):
    name = "se"

    def value(self, squared: Array) -> Array:
        return np.exp(-0.5 * squared)

    def value_derivative(self, squared: Array) -> tuple[Array, Array]:
        value = self.value(squared)
        return value, value

    def frequencies(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)


class _Matern(Kernel):
    smoothness: float

    def frequencies(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        # A multivariate t: one χ² draw is shared by all dimensions of a frequency.
        degrees = 2 * self.smoothness
        stretch = np.sqrt(degrees / rng.chisquare(degrees, (*shape[:-1], 1)))
        return rng.standard_normal(shape) * stretch

    def _root_decay(self, squared: Array) -> tuple[Array, Array]:
        """√(2ν) r and its exp(−·), with as few temporary arrays as it takes: they cost most."""
        root = np.sqrt(squared)
        root *= math.sqrt(2 * self.smoothness)
        decay = np.negative(root)
        return root, np.exp(decay, out=decay)


@final
class Matern32(_Matern):
    name = "matern32"
    smoothness = 1.5

    def value(self, squared: Array) -> Array:
        return self.value_derivative(squared)[0]

    def value_derivative(self, squared: Array) -> tuple[Array, Array]:
        root, decay = self._root_decay(squared)
        root += 1
        root *= decay
        decay *= 3
        return root, decay


@final
class Matern52(_Matern):
    name = "matern52"
    smoothness = 2.5

    def value(self, squared: Array) -> Array:
        return self._value(*self._root_decay(squared))

    @staticmethod
    def _value(root: Array, decay: Array) -> Array:
        value = root / 3
        value += 1
        value *= root
        value += 1
        value *= decay
        return value

    def value_derivative(self, squared: Array) -> tuple[Array, Array]:
        root, decay = self._root_decay(squared)
        value = self._value(root, decay)
        root += 1
        root *= decay
        root *= 5 / 3
        return value, root


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for kernel in (SquaredExponential(), Matern32(), Matern52())
}


def squared_differences(a: Array, b: Array, parameter_index: Index) -> Array:
    """(n, D), (N, D) -> (P, n, N) squared differences along each parameter.

    Subtracting first keeps close points exact, where an expanded square would lose them to
    rounding; and one such array serves all length-scales.
    """
    squares = np.zeros((int(parameter_index[-1]) + 1, len(a), len(b)))
    for column, parameter in enumerate(parameter_index):
        squares[parameter] += (a[:, None, column] - b[None, :, column]) ** 2
    return squares


LOG_2PI = math.log(2 * math.pi)
