"""Functions drawn from the posterior, by pathwise conditioning (Matheron's rule).

    path(x) = m + φ(x)·u + k(x, X) K⁻¹ (y − m − φ(X)·u − ε),   ε ~ N(0, noise)

φ·u is a draw from the prior in random Fourier features; the update uses the exact kernel, so a path
meets its data however many there are. Every path has frequencies of its own, so that the mean over
paths has the exact covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.model.hyper import amplitude_squared, constant_mean, lengthscales
from calamint.model.kernels import Index, squared_differences
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

    def replaced(self, at: Index, others: "Paths") -> "Paths":
        """These paths, those at the given indices exchanged for others."""

        def merge(ours: Array, theirs: Array) -> Array:
            merged = ours.copy()
            merged[at] = theirs
            return merged

        return replace(
            self,
            frequencies=merge(self.frequencies, others.frequencies),
            phases=merge(self.phases, others.phases),
            amplitudes=merge(self.amplitudes, others.amplitudes),
            update=merge(self.update, others.update),
        )


@final
class Bundle:
    """Paths of several functions, chosen ones of them each at a point of its own.

    A constrained solver asks hundreds of times: stacked features answer for all at once.
    """

    def __init__(self, paths: Sequence[Paths]) -> None:
        self.frequencies = np.stack([p.frequencies for p in paths], axis=1)  # (S, P, F, D)
        self.phases = np.stack([p.phases for p in paths], axis=1)
        self.amplitudes = np.stack([p.amplitudes for p in paths], axis=1)
        self.updates = [_Update(p) for p in paths]

    def value_gradient(self, which: Index, x: Array) -> tuple[Array, Array]:
        """Paths (n,) at points (n, D) -> values (n, P) and gradients (n, P, D) of P functions."""
        frequencies, amplitudes = self.frequencies[which], self.amplitudes[which]
        angles = (frequencies @ x[:, None, :, None])[..., 0]
        angles += self.phases[which]
        values = (np.cos(angles) * amplitudes).sum(-1)
        np.sin(angles, out=angles)
        angles *= amplitudes
        gradients = -(angles[..., None, :] @ frequencies)[..., 0, :]
        for index, update in enumerate(self.updates):
            value, gradient = update.value_gradient(which, x)
            values[:, index] += value
            gradients[:, index] += gradient
        return values, gradients


@final
class _Update:
    """m + k(x, X)·update of one function's paths, with what does not depend on x done before."""

    def __init__(self, paths: Paths) -> None:
        posterior = paths.posterior
        self.kernel, self.mean = posterior.kernel, constant_mean(posterior.theta)
        self.inverse = 1 / lengthscales(posterior.theta)[:, posterior.owner]  # (S, D)
        self.inputs = posterior.inputs
        self.pull = amplitude_squared(posterior.theta)[:, None] * paths.update  # (S, N)

    def value_gradient(self, which: Index, x: Array) -> tuple[Array, Array]:
        inverse, pull = self.inverse[which], self.pull[which]
        apart = (x[:, None, :] - self.inputs) * inverse[:, None, :]
        value, slope = self.kernel.value_slope((apart * apart).sum(-1))
        gradient = ((slope * pull)[:, None, :] @ apart)[:, 0] * inverse
        return self.mean[which] + (value * pull).sum(-1), -gradient


def draw_paths(
    posterior: Posterior, count: int, rng: np.random.Generator, features: int = 256
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
