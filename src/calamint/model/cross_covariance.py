"""A Gaussian process at any input together with fixed points: covariances and gradients.

What a measurement at x says about other points is in the covariances with them. Kernels cost most,
so one pass over them gives all that is needed at x, and what is left for the gradient.

| symbol | code | shape | meaning |
|---|---|---|---|
| z | `points` | (A, D) | fixed points |
| C(z, z) | `covariance` | (M, A, A) | posterior covariance of the points |
| K⁻¹ k(X, z) | `solved` | (M, N, A) | |
| C(x, z) | `CrossMoments.covariance` | (M, n, A) | posterior covariance with an input |
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from calamint.arrays import Array, Index
from calamint.model.hyperparameters import amplitude_squared
from calamint.model.protocol import CrossMoments

if TYPE_CHECKING:
    from calamint.model.posterior import GPPosterior


@final
@dataclass(frozen=True)
class PosteriorJoint:
    """A posterior at fixed points; see `protocol.Joint`.

    inputs (N + A, D): measured inputs, then the points; solved (M, N, A): K⁻¹ k(X, points)
    """

    posterior: "GPPosterior"
    inputs: Array
    mean: Array
    variance: Array
    covariance: Array
    solved: Array

    @staticmethod
    def of(posterior: "GPPosterior", points: Array, covariance: bool) -> "PosteriorJoint":
        mean, variance = posterior.mean_variance(points)
        cross = posterior.prior_covariance(posterior.inputs, points)
        white = posterior.inverse_root @ cross
        solved = np.swapaxes(posterior.inverse_root, -1, -2) @ white
        between = np.empty((len(mean), 0, 0))
        if covariance:
            between = posterior.prior_covariance(points, points)
            between -= np.swapaxes(white, -1, -2) @ white
        inputs = np.vstack([posterior.inputs, points])
        return PosteriorJoint(posterior, inputs, mean, variance, between, solved)

    @property
    def points(self) -> Array:
        return self.inputs[-self.mean.shape[1] :]

    @property
    def noise(self) -> Array:
        return self.posterior.noise

    @property
    def measurable(self) -> bool:
        return True

    @property
    def scale(self) -> float:
        return float(np.mean(amplitude_squared(self.posterior.theta)))

    @property
    def size(self) -> int:
        return len(self.inputs)

    def subset(self, samples: slice, columns: Index) -> "PosteriorJoint":
        count = len(self.inputs) - self.mean.shape[1]
        return PosteriorJoint(
            self.posterior.take(samples),
            np.vstack([self.inputs[:count], self.points[columns]]),
            self.mean[samples][:, columns],
            self.variance[samples][:, columns],
            self.covariance[samples][:, columns[:, None], columns],
            self.solved[samples, :, columns],
        )

    def cross_moments(self, x: Array, derivatives: bool = False) -> CrossMoments:
        posterior = self.posterior
        squared = posterior.distances(x, self.inputs)
        prior = amplitude_squared(posterior.theta)[:, None, None]
        if derivatives:
            value, derivative = posterior.kernel.value_derivative(squared)
            value, derivative = prior * value, prior * derivative
        else:
            value, derivative = prior * posterior.kernel.value(squared), np.empty(0)
        count = len(posterior.inputs)
        cross = value[..., :count]
        white = cross @ np.swapaxes(posterior.inverse_root, -1, -2)
        mean, variance = posterior.moments_from(cross, white)
        return CrossMoments(
            mean, variance, value[..., count:] - cross @ self.solved, derivative, white
        )

    def vjp(
        self,
        x: Array,
        cross: CrossMoments,
        grad_mean: Array,
        grad_variance: Array,
        grad_covariance: Array,
    ) -> Array:
        posterior = self.posterior
        count = len(posterior.inputs)
        coefficients = np.empty_like(cross.derivative)
        on_data = coefficients[..., :count]
        np.matmul(grad_covariance, -np.swapaxes(self.solved, -1, -2), out=on_data)
        on_data += grad_mean[..., None] * posterior.weights[:, None, :]
        on_data -= 2 * grad_variance[..., None] * (cross.white @ posterior.inverse_root)
        coefficients[..., count:] = grad_covariance
        coefficients *= cross.derivative
        return posterior.kernel_vjp(coefficients, x, self.inputs).sum(0)
