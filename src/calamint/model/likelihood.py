"""The marginal likelihood of hyper-parameters, batched over them, with its gradient.

log p(y | θ) = −½ (y−m)ᵀ K⁻¹ (y−m) − ½ log|K| − N/2 log 2π,   K = a² k(r²) + diag(ν_n)

| symbol | code | shape | meaning |
|---|---|---|---|
| θ | `theta` | (m, P + 3) | hyper-parameters: see `hyperparameters` |
| y | `targets` | (N,) | standardised values |
| ν_n | `noise` | (m, N) | noise variance of each measurement |
| K | `upper_covariance` | (m, N, N) | covariance of the measurements |
| L | `root` | (N, N) | lower Cholesky root of K |
| L⁻¹(y − m) | `white` | (N,) | whitened residuals |
| K⁻¹(y − m) | `weights` | (N,) | |
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np
from scipy.linalg import lapack

from calamint.arrays import Array, Index, Mask
from calamint.model.cholesky import CACHED_NUMBERS, SMALLEST_PIVOT, factorise
from calamint.model.data import Data
from calamint.model.hyperparameters import (
    AMPLITUDE,
    LENGTHSCALES,
    MEAN,
    NOISE,
    amplitude_squared,
    constant_mean,
    lengthscales,
    noise_variance,
)
from calamint.model.kernels import LOG_2PI, Kernel, squared_differences
from calamint.model.posterior import GPPosterior
from calamint.model.transforms import OutcomeTransform

# Larger than any sum of squared whitened residuals, and its root is no problem.
_HUGE = 1e200
# Up to here calls cost more than numbers, and NumPy's stacks of matrices are quicker than LAPACK.
_SMALL = 32


class Likelihood(Protocol):
    """What hyper-parameters are learnt from."""

    @property
    def data(self) -> Data: ...

    def log_likelihood(self, theta: Array) -> Array:
        """(m, P + 3) -> (m,)"""

    def log_likelihood_gradient(self, theta: Array) -> tuple[float, Array]:
        """(P + 3,) -> value and (P + 3,) gradient, at one θ."""

    def posterior(self, theta: Array) -> GPPosterior:
        """Condition on the data under each θ (m, P + 3)."""


@final
@dataclass(frozen=True)
class GaussianLikelihood:
    """Values that were measured with Gaussian noise.

    parameter_index  (D,) which parameter, and so which length-scale, each column of the inputs has
    """

    kernel: Kernel
    data: Data
    transform: OutcomeTransform
    parameter_index: Index

    @cached_property
    def targets(self) -> Array:
        """(N,) standardised values."""
        return self.transform.to_model(self.data.values)

    @cached_property
    def known_noise(self) -> Array:
        """(N,) standardised noise variances, NaN where they are to be learnt."""
        return self.transform.variance_to_model(self.data.values, self.data.noise_variance)

    @cached_property
    def squares(self) -> Array:
        """(P, N·N) squared differences along each parameter."""
        squares = squared_differences(self.data.inputs, self.data.inputs, self.parameter_index)
        return squares.reshape(len(squares), -1)

    def noise_of_new(self, theta: Array) -> Array:
        """(m, P + 3) -> (m,) the variance that a new measurement would have.

        Where the noise of all measurements is known there is nothing to learn it from: theirs is
        the best guess.
        """
        known = self.known_noise
        if len(known) and not np.isnan(known).any():
            return np.full(len(theta), float(np.mean(known)))
        return noise_variance(theta)

    def noise(self, theta: Array) -> Array:
        """(m, P + 3) -> (m, N) the variance of each measurement."""
        learnt = noise_variance(theta)[:, None]
        return np.where(np.isnan(self.known_noise), learnt, self.known_noise)

    @cached_property
    def _pairs(self) -> tuple[Index, Array]:
        """Where the entries above the diagonal lie in a flat matrix, and their `squares`."""
        count = len(self.targets)
        rows, columns = np.triu_indices(count, 1)
        places = rows * count + columns
        return places, np.ascontiguousarray(self.squares[:, places])

    def upper_covariance(self, theta: Array) -> Array:
        """(m, P + 3) -> (m, N, N) of the measurements, noise included; below the diagonal is junk.

        Half the kernel values, and the other half is not needed to factorise.
        """
        count = len(self.targets)
        places, squares = self._pairs
        values = self.kernel.value(lengthscales(theta) ** -2.0 @ squares)
        values *= amplitude_squared(theta)[:, None]
        matrix = np.empty((len(theta), count * count))
        matrix[:, places] = values
        matrix[:, :: count + 1] = amplitude_squared(theta)[:, None] + self.noise(theta)
        return matrix.reshape(len(theta), count, count)

    def log_likelihood(self, theta: Array) -> Array:
        """(m, P + 3) -> (m,)"""
        result = np.zeros(len(theta))
        if len(self.targets) == 0:
            return result
        # In groups whose matrices stay in the processor's cache.
        group = max(1, CACHED_NUMBERS // len(self.targets) ** 2)
        for start in range(0, len(theta), group):
            some = theta[start : start + group]
            matrices = self.upper_covariance(some)
            residuals = self.targets - constant_mean(some)[:, None]
            result[start : start + group] = self._log_densities(matrices, residuals)
        return result

    def _log_densities(self, matrices: Array, residuals: Array) -> Array:
        """(m, N, N), of which the upper triangles count, (m, N) -> (m,)"""
        count = residuals.shape[1]
        if count > _SMALL:
            return self._log_densities_one_by_one(matrices, residuals)
        # With the residuals as one more column, its root has the whitened residuals there.
        wider = np.empty((len(matrices), count + 1, count + 1))
        wider[:, :count, :count] = matrices
        wider[:, :count, count] = residuals
        wider[:, count, count] = _HUGE
        try:
            roots = np.linalg.cholesky(wider, upper=True)
        except np.linalg.LinAlgError:  # one of them: it needs jitter
            return self._log_densities_one_by_one(matrices, residuals)
        pivots = np.diagonal(roots, axis1=1, axis2=2)[:, :count]
        scale = np.trace(matrices, axis1=1, axis2=2) / count
        if not np.all(pivots.min(axis=1) ** 2 > SMALLEST_PIVOT * scale):
            return self._log_densities_one_by_one(matrices, residuals)
        white = roots[:, :count, count]
        return -0.5 * np.vecdot(white, white) - np.log(pivots).sum(-1) - 0.5 * count * LOG_2PI

    def _log_densities_one_by_one(self, matrices: Array, residuals: Array) -> Array:
        densities = np.empty(len(matrices))
        for index, (matrix, residual) in enumerate(zip(matrices, residuals, strict=True)):
            root, _ = factorise(matrix)
            white, _ = lapack.dtrtrs(root, residual, lower=1)
            densities[index] = self._log_density(root, white)
        return densities

    def _log_density(self, root: Array, white: Array) -> float:
        log_determinant = np.log(root.diagonal()).sum()
        return float(-0.5 * (white @ white) - log_determinant - 0.5 * len(white) * LOG_2PI)

    def log_likelihood_gradient(self, theta: Array) -> tuple[float, Array]:
        """(P + 3,) -> value and (P + 3,) gradient, at one θ."""
        if len(self.targets) == 0:
            return 0.0, np.zeros(len(theta))
        noise = self.noise(theta[None])[0]
        return self.gaussian(theta, self.targets, noise, np.isnan(self.known_noise))

    def gaussian(
        self, theta: Array, targets: Array, noise: Array, learnt: Mask
    ) -> tuple[float, Array]:
        """The same of any targets (N,) with noise variances (N,), of which some are `learnt`."""
        gradient = np.zeros(len(theta))
        variance = amplitude_squared(theta)
        count = len(targets)
        squared = (lengthscales(theta) ** -2.0 @ self.squares).reshape(count, count)
        value, derivative = self.kernel.value_derivative(squared)
        signal = variance * value
        matrix = signal.copy()
        matrix.flat[:: len(matrix) + 1] += noise
        root, _ = factorise(matrix)
        residual = targets - constant_mean(theta)
        white, _ = lapack.dtrtrs(root, residual, lower=1)
        weights, _ = lapack.dtrtrs(root, white, lower=1, trans=1)
        lower, _ = lapack.dpotri(root, lower=1)
        # ∂ log p/∂θ = ½ tr((w wᵀ − K⁻¹) ∂K/∂θ), with w = K⁻¹(y − m). Every ∂K/∂θ is symmetric,
        # so the triangle that dpotri fills counts twice off the diagonal.
        lower.flat[:: len(lower) + 1] *= 0.5
        outer = weights[:, None] * weights - 2 * lower
        scales = lengthscales(theta)
        gradient[LENGTHSCALES] = (
            0.5 * variance * (self.squares @ (outer * derivative).ravel()) / scales**2
        )
        gradient[AMPLITUDE] = np.vdot(outer, signal)
        gradient[NOISE] = 0.5 * float(np.sum(outer.diagonal()[learnt] * noise[learnt]))
        gradient[MEAN] = weights.sum()
        return self._log_density(root, white), gradient

    def posterior(self, theta: Array) -> GPPosterior:
        """Condition on the data under each θ (m, P + 3)."""
        count = len(self.targets)
        inverse_root = np.empty((len(theta), count, count))
        jitter = np.empty(len(theta))
        for index in range(len(theta)):
            root, jitter[index] = factorise(self.upper_covariance(theta[index : index + 1])[0])
            if len(root):
                inverse_root[index], _ = lapack.dtrtri(root, lower=1)
        residual = self.targets - constant_mean(theta)[:, None]
        white = np.einsum("mij,mj->mi", inverse_root, residual)
        return GPPosterior(
            kernel=self.kernel,
            parameter_index=self.parameter_index,
            theta=theta,
            inputs=self.data.inputs,
            inverse_root=inverse_root,
            white=white,
            weights=np.einsum("mji,mj->mi", inverse_root, white),
            data_noise=self.noise(theta) + jitter[:, None],
            noise=self.noise_of_new(theta),
            jitter=jitter,
        )
