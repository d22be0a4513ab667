"""One function at any input together with fixed points, its anchors: covariances and gradients.

What a measurement at x tells about other points is in the covariances with them. Kernels cost most,
so one pass over them gives all that is needed at x, and what is left for the gradient.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.model.hyper import amplitude_squared
from calamint.model.kernels import Index
from calamint.model.known import KnownFunction
from calamint.model.posterior import Posterior
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Seen:
    """One function at n inputs: mean, variance (M, n), covariance with the anchors (M, n, A).

    slope, white  for `Anchored.pull`: kernel slopes (M, n, N + A), L⁻¹ k(X, x) (M, n, N)
    """

    mean: Array
    variance: Array
    covariance: Array
    slope: Array
    white: Array


@final
@dataclass(frozen=True)
class Anchored:
    """One function seen from the anchors.

    points (N + A, D): measured inputs, then anchors
    mean, variance (M, A), covariance (M, A, A) at the anchors, the last if they are asked about
    jointly; solved (M, N, A): K⁻¹ k(X, anchors)
    """

    process: Posterior | KnownFunction
    points: Array
    mean: Array
    variance: Array
    covariance: Array
    solved: Array

    @staticmethod
    def of(process: Posterior | KnownFunction, anchors: Array, joint: bool = True) -> "Anchored":
        mean, variance = process.moments(anchors)
        nothing = np.empty((len(mean), 0, 0))
        if isinstance(process, KnownFunction):
            covariance = variance[..., None] * np.eye(len(anchors)) if joint else nothing
            return Anchored(process, anchors, mean, variance, covariance, nothing)
        cross = process.prior_covariance(process.inputs, anchors)
        white = process.inverse_root @ cross
        solved = np.swapaxes(process.inverse_root, -1, -2) @ white
        covariance = nothing
        if joint:
            covariance = process.prior_covariance(anchors, anchors)
            covariance -= np.swapaxes(white, -1, -2) @ white
        points = np.vstack([process.inputs, anchors])
        return Anchored(process, points, mean, variance, covariance, solved)

    def part(self, samples: slice, columns: Index) -> "Anchored":
        """The same under some of the samples, with some of the anchors."""
        count = len(self.points) - self.mean.shape[1]
        return Anchored(
            self.process.take(samples),
            np.vstack([self.points[:count], self.anchors[columns]]),
            self.mean[samples][:, columns],
            self.variance[samples][:, columns],
            self.covariance[samples][:, columns[:, None], columns],
            self.solved[samples, :, columns[: self.solved.shape[2]]],
        )

    @property
    def anchors(self) -> Array:
        return self.points[-self.mean.shape[1] :]

    @property
    def scale(self) -> float:
        """A typical prior variance."""
        if isinstance(self.process, KnownFunction):
            return 0.0
        return float(np.mean(amplitude_squared(self.process.theta)))

    def at(self, x: Array, slopes: bool = False) -> Seen:
        """What is believed at (n, D); one pass over all kernels, as they cost most."""
        process = self.process
        if isinstance(process, KnownFunction):
            mean, variance = process.moments(x)
            nothing = np.empty((*mean.shape, 0))
            return Seen(mean, variance, np.zeros((*mean.shape, len(self.points))), nothing, nothing)
        squared = process.distances(x, self.points)
        prior = amplitude_squared(process.theta)[:, None, None]
        if slopes:
            value, slope = process.kernel.value_slope(squared)
            value, slope = prior * value, prior * slope
        else:
            value, slope = prior * process.kernel.value(squared), np.empty(0)
        count = len(process.inputs)
        cross = value[..., :count]
        white = cross @ np.swapaxes(process.inverse_root, -1, -2)
        mean, variance = process.moments_from(cross, white)
        return Seen(mean, variance, value[..., count:] - cross @ self.solved, slope, white)

    def pull(
        self, x: Array, seen: Seen, by_mean: Array, by_variance: Array, by_covariance: Array
    ) -> Array:
        """(n, D) gradient of what has these derivatives in `seen`: (M, n) twice, (M, n, A)."""
        process = self.process
        if isinstance(process, KnownFunction):
            _, _, mean_x, _ = process.moments_gradient(x)
            return np.einsum("mn,mnd->nd", by_mean, mean_x)
        count = len(process.inputs)
        coefficients = np.empty_like(seen.slope)
        on_data = coefficients[..., :count]
        np.matmul(by_covariance, -np.swapaxes(self.solved, -1, -2), out=on_data)
        on_data += by_mean[..., None] * process.weights[:, None, :]
        on_data -= 2 * by_variance[..., None] * (seen.white @ process.inverse_root)
        coefficients[..., count:] = by_covariance
        coefficients *= seen.slope
        return process.pull(coefficients, x, self.points).sum(0)
