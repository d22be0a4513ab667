"""Functions drawn from the posterior, by pathwise conditioning (Matheron's rule).

    path(x) = m + φ(x)·u + k(x, X) K⁻¹ (y − m − φ(X)·u − ε),   ε ~ N(0, noise)

φ·u is a draw from the prior in random Fourier features; the update uses the exact kernel, so a path
fits its data, up to their noise, for any N (Wilson et al. 2020). A few paths drawn together under
one hyper-parameter sample share their frequencies and kernels, so that one more costs a matrix
product; covariances are exact in expectation over frequencies.

| symbol | code | shape | meaning |
|---|---|---|---|
| φ | `frequencies`, `phases` | (G, F, D), (G, F) | random Fourier features of each group of paths |
| u | `amplitudes` | (S, F) | their weights, with the features' scale |
| K⁻¹(y − m − φ(X)u − ε) | `update` | (S, N) | what makes a path meet its data |
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from calamint.arrays import Array, Index
from calamint.model.cholesky import CACHED_NUMBERS
from calamint.model.hyperparameters import amplitude_squared, constant_mean, lengthscales
from calamint.model.kernels import squared_differences

if TYPE_CHECKING:
    from calamint.model.posterior import GPPosterior


# More would be cheaper, but too alike: gains then correlate less with rejection sampling's.
_SHARING = 4

T = TypeVar("T", bound="np.ndarray[Any, Any]")


@final
@dataclass(frozen=True)
class Paths:
    """S functions drawn from a posterior, one under each of the given hyper-parameter samples.

    sample       (S,) which sample each is drawn under
    group        (S,) which frequencies and phases each has
    frequencies  (G, F, D)   phases (G, F)   amplitudes (S, F): a·√(2/F)·u
    update       (S, N) K⁻¹ (y − m − φ(X)u − ε)
    """

    posterior: "GPPosterior"
    sample: Index
    group: Index
    frequencies: Array
    phases: Array
    amplitudes: Array
    update: Array

    def __len__(self) -> int:
        return len(self.update)

    def _groups(self) -> Iterator[tuple[int, int, Index]]:
        """Each group, its sample, and its paths."""
        for group in range(len(self.phases)):
            paths = np.flatnonzero(self.group == group)
            if len(paths):
                yield group, int(self.sample[paths[0]]), paths

    def _prior(self, x: Array, float32: bool = False) -> Array:
        """(n, D) -> (S, n); in single precision with `float32`, where cosines cost less."""
        dtype = np.float32 if float32 else np.float64
        points = x.astype(dtype)
        values = np.empty((len(self), len(x)))
        size = max(1, CACHED_NUMBERS * (8 // np.dtype(dtype).itemsize) // self.phases.shape[1])
        for group, _, paths in self._groups():
            frequencies = self.frequencies[group].T.astype(dtype)
            phases = self.phases[group].astype(dtype)
            amplitudes = self.amplitudes[paths].T.astype(dtype)
            for start in range(0, len(x), size):
                angles = points[start : start + size] @ frequencies
                angles += phases
                np.cos(angles, out=angles)
                values[paths, start : start + size] = (angles @ amplitudes).T
        return values

    def values(self, x: Array, float32: bool = False) -> Array:
        """(n, D), the same points for all paths -> (S, n)"""
        values = self._prior(x, float32)
        values += constant_mean(self.posterior.theta)[self.sample, None]
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
        for _, sample, paths in self._groups():
            cross = posterior.kernel.value(weights[sample] @ flat).reshape(squares.shape[1:])
            updates[paths] = prior[sample] * (cross @ self.update[paths].T).T
        return updates

    @cached_property
    def _inverse_scales(self) -> Array:
        """(S, D) reciprocal length-scales"""
        scales = lengthscales(self.posterior.theta)[self.sample]
        return 1 / scales[:, self.posterior.parameter_index]

    @cached_property
    def _update_weights(self) -> Array:
        """(S, N) a² K⁻¹ (y − m − φ(X)u − ε)"""
        return amplitude_squared(self.posterior.theta)[self.sample, None] * self.update

    def value_gradient(self, path_index: Index, x: Array) -> tuple[Array, Array]:
        """Paths (n,), each at a point of its own (n, D) -> values (n,) and gradients (n, D)."""
        group, amplitudes = self.group[path_index], self.amplitudes[path_index]
        frequencies = self.frequencies[group]
        angles = (frequencies @ x[:, :, None])[..., 0]
        angles += self.phases[group]
        values = (np.cos(angles) * amplitudes).sum(-1)
        np.sin(angles, out=angles)
        angles *= amplitudes
        gradients = -(angles[:, None, :] @ frequencies)[:, 0]
        inverse, weights = self._inverse_scales[path_index], self._update_weights[path_index]
        scaled_difference = (x[:, None, :] - self.posterior.inputs) * inverse[:, None, :]
        value, derivative = self.posterior.kernel.value_derivative((scaled_difference**2).sum(-1))
        values += constant_mean(self.posterior.theta)[self.sample[path_index]]
        values += (value * weights).sum(-1)
        gradients -= ((derivative * weights)[:, None, :] @ scaled_difference)[:, 0] * inverse
        return values, gradients

    def joined(self, others: "Paths") -> "Paths":
        """These paths and others of the same posterior."""

        def both(ours: T, theirs: T) -> T:
            return np.concatenate([ours, theirs])  # type: ignore[return-value]

        return replace(
            self,
            sample=both(self.sample, others.sample),
            group=both(self.group, others.group + len(self.phases)),
            frequencies=both(self.frequencies, others.frequencies),
            phases=both(self.phases, others.phases),
            amplitudes=both(self.amplitudes, others.amplitudes),
            update=both(self.update, others.update),
        )

    def take(self, path_index: Index) -> "Paths":
        """Some of the paths, in this order."""
        return replace(
            self,
            sample=self.sample[path_index],
            group=self.group[path_index],
            amplitudes=self.amplitudes[path_index],
            update=self.update[path_index],
        )


def _ranks(samples: Index) -> Index:
    """(S,) -> (S,) how many paths before each have the same sample."""
    order = np.argsort(samples, kind="stable")
    ranks = np.empty(len(samples), dtype=int)
    ranks[order] = np.arange(len(samples)) - np.searchsorted(samples[order], samples[order])
    return ranks


def _mirrored(normal: Array, samples: Index, ranks: Index) -> Array:
    """(S, n) standard normals, those of every second path of a sample the negative of the first's.

    The mean of two such paths is the posterior mean: what they say of x* varies less.
    """
    first = {(s, r): i for i, (s, r) in enumerate(zip(samples, ranks, strict=True))}
    for second in np.flatnonzero(ranks % 2):
        normal[second] = -normal[first[samples[second], ranks[second] - 1]]
    return normal


def draw_paths(
    posterior: "GPPosterior", samples: Index, rng: np.random.Generator, features: int = 256
) -> Paths:
    """Draw one function under each of the given hyper-parameter samples (S,)."""
    count, dimension = len(samples), posterior.inputs.shape[1]
    ranks = _ranks(samples)
    pairs = np.stack([samples, ranks // _SHARING], axis=1)
    group = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    used = samples[np.unique(group, return_index=True)[1]]
    scale = lengthscales(posterior.theta[used])[:, None, posterior.parameter_index]
    frequencies = posterior.kernel.frequencies((len(used), features, dimension), rng) / scale
    phases = rng.uniform(0, 2 * np.pi, (len(used), features))
    normal = _mirrored(rng.standard_normal((count, features)), samples, ranks)
    prior = amplitude_squared(posterior.theta)[samples, None]
    amplitudes = normal * np.sqrt(2 * prior / features)
    update = posterior.weights[samples]
    drawn = Paths(posterior, samples, group, frequencies, phases, amplitudes, update)
    at_data = drawn._prior(posterior.inputs)
    normal = _mirrored(rng.standard_normal(at_data.shape), samples, ranks)
    at_data = at_data + normal * np.sqrt(posterior.data_noise[samples])
    for _, sample, paths in drawn._groups():
        root = posterior.inverse_root[sample]
        update[paths] -= at_data[paths] @ root.T @ root
    return drawn
