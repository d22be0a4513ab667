"""Functions drawn from the posterior, by pathwise conditioning (Matheron's rule).

    path(x) = m + φ(x)·u + k(x, X) K⁻¹ (y − m − φ(X)·u − ε),   ε ~ N(0, noise)

φ·u is a draw from the prior in random Fourier features; the update uses the exact kernel, so a path
fits its data, up to their noise, for any N (Wilson et al. 2020). Every path has frequencies of its
own, so that covariances are exact in expectation over the features.

| symbol | code | shape | meaning |
|---|---|---|---|
| φ | `frequencies`, `phases` | (S, F, D), (S, F) | random Fourier features of each path |
| u | `amplitudes` | (S, F) | their weights, with the features' scale |
| K⁻¹(y − m − φ(X)u − ε) | `update` | (S, N) | what makes a path meet its data |
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from calamint.arrays import Array, Index
from calamint.model.cholesky import CACHED_NUMBERS
from calamint.model.hyperparameters import amplitude_squared, constant_mean, lengthscales
from calamint.model.kernels import squared_differences

if TYPE_CHECKING:
    from calamint.model.posterior import GPPosterior


@final
@dataclass(frozen=True)
class Paths:
    """S functions drawn from a posterior, one under each of the given hyper-parameter samples.

    posterior    whose θ has been repeated so that path s is drawn under sample s
    frequencies  (S, F, D)   phases (S, F)   amplitudes (S, F): a·√(2/F)·u
    update       (S, N) K⁻¹ (y − m − φ(X)u − ε)
    """

    posterior: "GPPosterior"
    frequencies: Array
    phases: Array
    amplitudes: Array
    update: Array

    def __len__(self) -> int:
        return len(self.update)

    def _prior(self, x: Array, float32: bool = False) -> Array:
        """(n, D) -> (S, n); in single precision with `float32`, where cosines cost less."""
        dtype = np.float32 if float32 else np.float64
        points = x.astype(dtype)
        values = np.empty((len(self), len(x)))
        size = max(1, CACHED_NUMBERS * (8 // np.dtype(dtype).itemsize) // self.phases.shape[1])
        for index in range(len(self)):
            frequencies = self.frequencies[index].T.astype(dtype)
            phases, amplitudes = (
                self.phases[index].astype(dtype),
                self.amplitudes[index].astype(dtype),
            )
            for start in range(0, len(x), size):
                angles = points[start : start + size] @ frequencies
                angles += phases
                np.cos(angles, out=angles)
                values[index, start : start + size] = angles @ amplitudes
        return values

    def values(self, x: Array, float32: bool = False) -> Array:
        """(n, D), the same points for all paths -> (S, n)"""
        values = self._prior(x, float32)
        values += constant_mean(self.posterior.theta)[:, None]
        if len(self.posterior.inputs):
            values += self._updates(x)
        return values

    def _updates(self, x: Array) -> Array:
        """(n, D) -> (S, n) k(x, X)·update, one hyper-parameter sample at a time."""
        posterior = self.posterior
        squares = squared_differences(x, posterior.inputs, posterior.parameter_index)
        flat = squares.reshape(len(squares), -1)
        updates = np.empty((len(self), len(x)))
        weights, prior = lengthscales(posterior.theta) ** -2.0, amplitude_squared(posterior.theta)
        cross = None
        for index in range(len(self)):
            # Paths under the same θ, as with a point estimate, share their kernels.
            if index == 0 or not np.array_equal(posterior.theta[index], posterior.theta[index - 1]):
                cross = posterior.kernel.value(weights[index] @ flat).reshape(squares.shape[1:])
            updates[index] = prior[index] * (cross @ self.update[index])
        return updates

    @cached_property
    def _inverse_scales(self) -> Array:
        """(S, D) reciprocal length-scales"""
        return 1 / lengthscales(self.posterior.theta)[:, self.posterior.parameter_index]

    @cached_property
    def _update_weights(self) -> Array:
        """(S, N) a² K⁻¹ (y − m − φ(X)u − ε)"""
        return amplitude_squared(self.posterior.theta)[:, None] * self.update

    def value_gradient(self, path_index: Index, x: Array) -> tuple[Array, Array]:
        """Paths (n,), each at a point of its own (n, D) -> values (n,) and gradients (n, D)."""
        frequencies, amplitudes = self.frequencies[path_index], self.amplitudes[path_index]
        angles = (frequencies @ x[:, :, None])[..., 0]
        angles += self.phases[path_index]
        values = (np.cos(angles) * amplitudes).sum(-1)
        np.sin(angles, out=angles)
        angles *= amplitudes
        gradients = -(angles[:, None, :] @ frequencies)[:, 0]
        inverse, weights = self._inverse_scales[path_index], self._update_weights[path_index]
        scaled_difference = (x[:, None, :] - self.posterior.inputs) * inverse[:, None, :]
        value, derivative = self.posterior.kernel.value_derivative((scaled_difference**2).sum(-1))
        values += constant_mean(self.posterior.theta)[path_index] + (value * weights).sum(-1)
        gradients -= ((derivative * weights)[:, None, :] @ scaled_difference)[:, 0] * inverse
        return values, gradients

    def replace_paths(self, path_index: Index, others: "Paths") -> "Paths":
        """A copy with the paths at these indices replaced; both have the same posterior."""

        def merge(ours: Array, theirs: Array) -> Array:
            merged = ours.copy()
            merged[path_index] = theirs
            return merged

        return replace(
            self,
            frequencies=merge(self.frequencies, others.frequencies),
            phases=merge(self.phases, others.phases),
            amplitudes=merge(self.amplitudes, others.amplitudes),
            update=merge(self.update, others.update),
        )


def draw_paths(posterior: "GPPosterior", rng: np.random.Generator, features: int = 256) -> Paths:
    """Draw one function under each hyper-parameter sample of the posterior."""
    count, dimension = len(posterior), posterior.inputs.shape[1]
    scale = lengthscales(posterior.theta)[:, None, posterior.parameter_index]
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
