"""What is believed of one function: a Gaussian process under each of M hyper-parameter samples.

All values are standardised. With K = L Lᵀ (noise included) and y the measured values:

    mean(x)   = m + k(x, X) w,              w = K⁻¹ (y − m)
    cov(x, z) = k(x, z) − (L⁻¹ k(X, x))ᵀ (L⁻¹ k(X, z))

L⁻¹ is kept, not L: predictions are then matrix products only, and a new measurement adds one row.

| symbol | code | shape | meaning |
|---|---|---|---|
| M, N, D | | | hyper-parameter samples, measurements, columns of the cube |
| X | `inputs` | (N, D) | measured inputs |
| L⁻¹ | `inverse_root` | (M, N, N) | |
| L⁻¹(y − m) | `white` | (M, N) | |
| w | `weights` | (M, N) | |
| k(x, X) | `cross` | (M, n, N) | prior covariance with the measured inputs |
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.linalg import lapack

from calamint.arrays import Array, Index
from calamint.model.cholesky import CACHED_NUMBERS, factorise, jitter_for
from calamint.model.cross_covariance import PosteriorJoint
from calamint.model.hyperparameters import amplitude_squared, constant_mean, lengthscales
from calamint.model.kernels import Kernel, squared_differences
from calamint.model.paths import Paths, draw_paths


@final
@dataclass(frozen=True)
class GPPosterior:
    """A Gaussian process posterior, batched over M hyper-parameter samples.

    theta    (M, P + 3)      inputs    (N, D)     inverse_root  (M, N, N) L⁻¹
    white    (M, N) L⁻¹(y − m)         weights  (M, N) w
    data_noise  (M, N) variance of each measurement, jitter included
    noise       (M,) variance of a new measurement
    jitter      (M,) what had to be added to the diagonal
    """

    kernel: Kernel
    parameter_index: Index
    theta: Array
    inputs: Array
    inverse_root: Array
    white: Array
    weights: Array
    data_noise: Array
    noise: Array
    jitter: Array

    @property
    def measurable(self) -> bool:
        return True

    @property
    def lengthscales(self) -> Array:
        """(M, P)"""
        return lengthscales(self.theta)

    @staticmethod
    def stacked(each: Sequence["GPPosterior"], noise: Array) -> "GPPosterior":
        """Posteriors of the same inputs, one after the other; `noise` (M,) of a new measurement."""

        def stack(name: str) -> Array:
            return np.concatenate([getattr(one, name) for one in each])

        return replace(
            each[0],
            theta=stack("theta"),
            inverse_root=stack("inverse_root"),
            white=stack("white"),
            weights=stack("weights"),
            data_noise=stack("data_noise"),
            noise=noise,
            jitter=stack("jitter"),
        )

    def __len__(self) -> int:
        """The number of hyper-parameter samples."""
        return len(self.theta)

    def prior_covariance(self, x: Array, z: Array) -> Array:
        """(n, D), (N, D) -> (M, n, N)"""
        value = self.kernel.value(self.distances(x, z))
        value *= amplitude_squared(self.theta)[:, None, None]
        return value

    def distances(self, x: Array, z: Array) -> Array:
        """(n, D), (N, D) -> (M, n, N) squared, in length-scales"""
        squares = squared_differences(x, z, self.parameter_index)
        flat = lengthscales(self.theta) ** -2.0 @ squares.reshape(len(squares), -1)
        return flat.reshape(len(self), len(x), len(z))

    def mean_variance(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> mean and variance of the noise-free function, each (M, n)."""
        count = max(1, len(self.inputs))
        if len(self) * len(x) * count <= CACHED_NUMBERS:
            cross = self.prior_covariance(x, self.inputs)
            return self.moments_from(cross, self._whiten(cross))
        # Points in blocks, one sample at a time, so that what is worked on stays in the cache; a
        # block has enough points to make reading L⁻¹ worth it.
        mean, variance = np.empty((2, len(self), len(x)))
        size = max(64, CACHED_NUMBERS // count)
        weights, prior = lengthscales(self.theta) ** -2.0, amplitude_squared(self.theta)
        for start in range(0, len(x), size):
            block = slice(start, start + size)
            squares = squared_differences(x[block], self.inputs, self.parameter_index)
            shape = squares.shape[1:]
            flat = squares.reshape(len(squares), -1)
            for j in range(len(self)):
                cross = self.kernel.value(weights[j] @ flat).reshape(shape)
                cross *= prior[j]
                white = cross @ self.inverse_root[j].T
                mean[j, block] = cross @ self.weights[j]
                variance[j, block] = np.einsum("nj,nj->n", white, white)
        mean += constant_mean(self.theta)[:, None]
        return mean, _no_less_than_rounding(prior[:, None] - variance, prior[:, None])

    def _whiten(self, cross: Array) -> Array:
        """(M, n, N) k(x, X) -> (M, n, N) rows (L⁻¹ k(X, x))ᵀ"""
        return cross @ np.swapaxes(self.inverse_root, -1, -2)

    def moments_from(self, cross: Array, white: Array) -> tuple[Array, Array]:
        """Mean and variance, (M, n) each, from k(x, X) and its whitened form, (M, n, N) each."""
        mean = constant_mean(self.theta)[:, None] + np.einsum("mnj,mj->mn", cross, self.weights)
        prior = amplitude_squared(self.theta)[:, None]
        variance = prior - np.einsum("mnj,mnj->mn", white, white)
        return mean, _no_less_than_rounding(variance, prior)

    def mean_variance_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """(n, D) -> mean, variance (M, n) and their gradients (M, n, D)."""
        squared = self.distances(x, self.inputs)
        prior = amplitude_squared(self.theta)[:, None, None]
        value, derivative = self.kernel.value_derivative(squared)
        cross, derivative = prior * value, prior * derivative
        white = self._whiten(cross)
        mean, variance = self.moments_from(cross, white)
        mean_gradient = self.kernel_vjp(derivative * self.weights[:, None, :], x, self.inputs)
        solved = white @ self.inverse_root
        variance_gradient = -2 * self.kernel_vjp(derivative * solved, x, self.inputs)
        return mean, variance, mean_gradient, variance_gradient

    def kernel_vjp(self, coefficients: Array, x: Array, z: Array) -> Array:
        """Σ_j c_j ∂k(x, z_j)/∂x from c_j·derivative_j: (M, n, N), (n, D), (N, D) -> (M, n, D)"""
        scale = lengthscales(self.theta)[:, None, self.parameter_index] ** 2
        total = coefficients.sum(-1)[..., None]
        return (coefficients @ z - total * x) / scale

    def covariance(self, x: Array, z: Array) -> Array:
        """(n, D), (k, D) -> (M, n, k) posterior covariance of the noise-free function."""
        white_x = self._whiten(self.prior_covariance(x, self.inputs))
        white_z = self._whiten(self.prior_covariance(z, self.inputs))
        return self.prior_covariance(x, z) - white_x @ np.swapaxes(white_z, -1, -2)

    def joint(self, points: Array, covariance: bool = True) -> PosteriorJoint:
        """The function at fixed points (A, D)."""
        return PosteriorJoint.of(self, points, covariance)

    def paths(self, samples: Index, rng: np.random.Generator) -> Paths:
        """One path under each of the given hyper-parameter samples (S,)."""
        return draw_paths(self, samples, rng)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of the noise-free function at each measured input, given all other
        measurements: (M, N) each, from the diagonal of K⁻¹."""
        precision = np.einsum("mji,mji->mi", self.inverse_root, self.inverse_root)
        fitted = self.mean_variance(self.inputs)[0]
        # y = fitted + noise·w, because K w = y − m.
        mean = fitted + (self.data_noise - 1 / precision) * self.weights
        prior = amplitude_squared(self.theta)[:, None]
        return mean, _no_less_than_rounding(1 / precision - self.data_noise, prior)

    def append(self, point: Array, value: Array, noise: Array) -> "GPPosterior":
        """Condition on one more measurement in O(N²).

        point (D,), value (M,) standardised, noise (M,) its variance.
        """
        count = len(self.inputs)
        cross = self.prior_covariance(point[None], self.inputs)
        row = self._whiten(cross)[:, 0, :]
        prior = amplitude_squared(self.theta)
        left = prior + noise - np.einsum("mj,mj->m", row, row)
        # The smallest jitter that keeps the new pivot clear of rounding.
        added = np.array(
            [jitter_for(pivot, scale) for pivot, scale in zip(left, prior, strict=True)]
        )
        pivot = np.sqrt(left + added)
        inverse_root = np.zeros((len(self), count + 1, count + 1))
        inverse_root[:, :count, :count] = self.inverse_root
        new_row = np.einsum("mi,mij->mj", row, self.inverse_root)
        inverse_root[:, count, :count] = -new_row / pivot[:, None]
        inverse_root[:, count, count] = 1 / pivot
        residual = value - constant_mean(self.theta)
        last = (residual - np.einsum("mj,mj->m", row, self.white)) / pivot
        white = np.concatenate([self.white, last[:, None]], axis=1)
        return replace(
            self,
            inputs=np.vstack([self.inputs, point]),
            inverse_root=inverse_root,
            white=white,
            weights=np.einsum("mji,mj->mi", inverse_root, white),
            data_noise=np.concatenate([self.data_noise, (noise + added)[:, None]], axis=1),
            jitter=np.maximum(self.jitter, added),
        )

    def append_expected(self, points: Array) -> "GPPosterior":
        """Condition on measurements at (b, D) that find what is expected; in O(bN²), as often as
        `append`, but what is large is copied once."""
        count, more = len(self.inputs), len(points)
        cross = self.prior_covariance(points, self.inputs)
        white_rows = self._whiten(cross)
        expected = self.moments_from(cross, white_rows)[0]
        left = self.prior_covariance(points, points)
        left -= white_rows @ np.swapaxes(white_rows, -1, -2)
        left += self.noise[:, None, None] * np.eye(more)
        total = count + more
        inverse_root = np.zeros((len(self), total, total))
        inverse_root[:, :count, :count] = self.inverse_root
        added, white = np.zeros(len(self)), np.zeros((len(self), total))
        white[:, :count] = self.white
        for j in range(len(self)):
            root, added[j] = factorise(left[j])
            inverse_root[j, count:, count:], _ = lapack.dtrtri(root, lower=1)
            new_rows = white_rows[j] @ self.inverse_root[j]
            inverse_root[j, count:, :count] = -inverse_root[j, count:, count:] @ new_rows
            residual = expected[j] - constant_mean(self.theta)[j] - white_rows[j] @ self.white[j]
            white[j, count:] = inverse_root[j, count:, count:] @ residual
        noise = np.repeat((self.noise + added)[:, None], more, axis=1)
        return replace(
            self,
            inputs=np.vstack([self.inputs, points]),
            inverse_root=inverse_root,
            white=white,
            weights=(np.swapaxes(inverse_root, -1, -2) @ white[..., None])[..., 0],
            data_noise=np.concatenate([self.data_noise, noise], axis=1),
            jitter=np.maximum(self.jitter, added),
        )

    def take(self, samples: Index | slice) -> "GPPosterior":
        """Under some of the hyper-parameter samples, (S,) indices with repeats, or a slice."""
        if not isinstance(samples, slice) and np.array_equal(samples, np.arange(len(self))):
            return self  # the roots are most of what a decision keeps in memory
        return replace(
            self,
            theta=self.theta[samples],
            inverse_root=self.inverse_root[samples],
            white=self.white[samples],
            weights=self.weights[samples],
            data_noise=self.data_noise[samples],
            noise=self.noise[samples],
            jitter=self.jitter[samples],
        )


def _no_less_than_rounding(variance: Array, prior: Array) -> Array:
    """Subtracting from the prior leaves about 1e-16 of it in errors, so no less is believed."""
    return np.maximum(variance, 1e-15 * prior)
