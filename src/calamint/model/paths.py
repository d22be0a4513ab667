"""Functions drawn from the posterior, by pathwise conditioning (Matheron's rule).

    path(x) = m + φ(x)·u + k(x, X) K⁻¹ (y − m − φ(X)·u − ε),   ε ~ N(0, noise)

φ·u is a draw from the prior in random Fourier features; the update uses the exact kernel, so a path
meets its data however many there are. Every path has frequencies of its own, so that the mean over
paths has the exact covariance.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.model.hyper import amplitude_squared, constant_mean, lengthscales
from calamint.model.kernels import squared_differences
from calamint.model.likelihood import CACHED_NUMBERS
from calamint.model.posterior import Posterior
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Paths:
    """S functions drawn from a posterior, one under each of the given hyper-parameter samples.

    posterior    whose θ has been repeated so that path s is drawn under sample s
    frequencies  (S, F, D)   phases (S, F)   amplitudes (S, F): a·√(2/F)·u
    update       (S, N) K⁻¹ (y − m − φ(X)u − ε)
    """

    posterior: Posterior
    frequencies: Array
    phases: Array
    amplitudes: Array
    update: Array

    def __len__(self) -> int:
        return len(self.update)

    def _prior(self, x: Array, single: bool = False) -> Array:
        """(n, D) -> (S, n), in single precision where that is enough: cosines then cost a tenth."""
        kind = np.float32 if single else np.float64
        points = x.astype(kind)
        values = np.empty((len(self), len(x)))
        size = max(1, CACHED_NUMBERS * (8 // np.dtype(kind).itemsize) // self.phases.shape[1])
        for index in range(len(self)):
            frequencies = self.frequencies[index].T.astype(kind)
            phases, amplitudes = (
                self.phases[index].astype(kind),
                self.amplitudes[index].astype(kind),
            )
            for start in range(0, len(x), size):
                angles = points[start : start + size] @ frequencies
                angles += phases
                np.cos(angles, out=angles)
                values[index, start : start + size] = angles @ amplitudes
        return values

    def values(self, x: Array, single: bool = False) -> Array:
        """(n, D), the same points for all paths -> (S, n)"""
        values = self._prior(x, single)
        values += constant_mean(self.posterior.theta)[:, None]
        if len(self.posterior.inputs):
            values += self._updates(x)
        return values

    def _updates(self, x: Array) -> Array:
        """(n, D) -> (S, n) k(x, X)·update, one hyper-parameter sample at a time."""
        posterior = self.posterior
        squares = squared_differences(x, posterior.inputs, posterior.owner)
        flat = squares.reshape(len(squares), -1)
        updates = np.empty((len(self), len(x)))
        weights, prior = lengthscales(posterior.theta) ** -2.0, amplitude_squared(posterior.theta)
        cross = None
        for index in range(len(self)):
            # Paths under the same θ, as with one estimate, share their kernels.
            if index == 0 or not np.array_equal(posterior.theta[index], posterior.theta[index - 1]):
                cross = posterior.kernel.value(weights[index] @ flat).reshape(squares.shape[1:])
            updates[index] = prior[index] * (cross @ self.update[index])
        return updates

    def value_gradient(self, index: int, x: Array) -> tuple[Array, Array]:
        """(n, D) -> values (n,) and gradients (n, D) of one path."""
        posterior = self.posterior
        theta = posterior.theta[index]
        angles = x @ self.frequencies[index].T + self.phases[index]
        values = np.cos(angles) @ self.amplitudes[index]
        gradients = -(np.sin(angles) * self.amplitudes[index]) @ self.frequencies[index]
        scale = lengthscales(theta)[posterior.owner]
        apart = x[:, None, :] - posterior.inputs
        squared = ((apart / scale) ** 2).sum(-1)
        pull = amplitude_squared(theta) * self.update[index]
        value, slope = posterior.kernel.value_slope(squared)
        values += constant_mean(theta) + value @ pull
        gradients -= np.einsum("nj,njd->nd", slope * pull, apart) / scale**2
        return values, gradients


def draw_paths(
    posterior: Posterior, count: int, rng: np.random.Generator, features: int = 500
) -> Paths:
    """Draw `count` functions, the s-th under hyper-parameter sample s modulo M."""
    posterior = posterior.take(np.arange(count) % len(posterior))
    dimension = posterior.inputs.shape[1]
    scale = lengthscales(posterior.theta)[:, None, posterior.owner]
    frequencies = posterior.kernel.frequencies((count, features, dimension), rng) / scale
    phases = rng.uniform(0, 2 * np.pi, (count, features))
    amplitudes = rng.standard_normal((count, features)) * np.sqrt(
        2 * amplitude_squared(posterior.theta)[:, None] / features
    )
    drawn = Paths(posterior, frequencies, phases, amplitudes, np.zeros_like(posterior.weights))
    at_data = drawn._prior(posterior.inputs)
    at_data = at_data + rng.standard_normal(at_data.shape) * np.sqrt(posterior.data_noise)
    white = np.einsum("sij,sj->si", posterior.inverse_root, at_data)
    update = posterior.weights - np.einsum("sji,sj->si", posterior.inverse_root, white)
    return Paths(posterior, frequencies, phases, amplitudes, update)
