"""The interface to one function's posterior, whether the function is modelled or known.

Shapes: M hyper-parameter samples, N measured inputs, D columns, n inputs, A fixed points, S paths.
Values are standardised; inputs are points of the unit cube at values that the parameters can take.
"""

from dataclasses import dataclass
from typing import Protocol, Self, final

import numpy as np

from calamint.arrays import Array, Index


@final
@dataclass(frozen=True)
class CrossMoments:
    """One function at n inputs: mean, variance (M, n), covariance with the fixed points (M, n, A).

    derivative, white  for `Joint.vjp`: kernel derivatives (M, n, N + A), L⁻¹ k(X, x) (M, n, N)
    """

    mean: Array
    variance: Array
    covariance: Array
    derivative: Array
    white: Array


class Joint(Protocol):
    """One function at fixed points (A, D), and jointly with any other input.

    mean, variance (M, A), covariance (M, A, A) at the points, the last if it was requested
    noise (M,) variance of a measurement; measurable: whether it can be measured
    scale  a typical prior variance
    size   how many kernel values `cross_moments` needs for each input and sample
    """

    @property
    def points(self) -> Array: ...
    @property
    def mean(self) -> Array: ...
    @property
    def variance(self) -> Array: ...
    @property
    def covariance(self) -> Array: ...
    @property
    def noise(self) -> Array: ...
    @property
    def measurable(self) -> bool: ...
    @property
    def scale(self) -> float: ...
    @property
    def size(self) -> int: ...

    def cross_moments(self, x: Array, derivatives: bool = False) -> CrossMoments:
        """Moments at (n, D); with `derivatives`, also what `vjp` needs."""

    def vjp(
        self,
        x: Array,
        cross: CrossMoments,
        grad_mean: Array,
        grad_variance: Array,
        grad_covariance: Array,
    ) -> Array:
        """The vector–Jacobian product: gradients (n, D) of a scalar whose derivatives in mean,
        variance (M, n) and covariance (M, n, A) at x are given."""

    def subset(self, samples: slice, columns: Index) -> "Joint":
        """The same under some of the samples, with some of the points."""


class SamplePaths(Protocol):
    """S functions drawn from one function's model."""

    def values(self, x: Array, float32: bool = False) -> Array:
        """(n, D), the same points for all paths -> (S, n); in single precision with
        `float32`."""

    def value_gradient(self, path_index: Index, x: Array) -> tuple[Array, Array]:
        """Paths (n,), each at a point of its own (n, D) -> values (n,) and gradients (n, D)."""

    def joined(self, others: Self) -> Self:
        """These paths and others of the same model."""

    def take(self, path_index: Index) -> Self:
        """Some of the paths, in this order."""


class FunctionPosterior(Protocol):
    """The model of one function, under each of M hyper-parameter samples (its length).

    theta         (M, P + 3) hyper-parameters; (M, 0) if there are none
    lengthscales  (M, P), infinite where nothing varies
    inputs        (N, D) where it was measured
    noise         (M,) variance of a new measurement
    measurable    whether it can be measured at all
    """

    @property
    def theta(self) -> Array: ...
    @property
    def lengthscales(self) -> Array: ...
    @property
    def inputs(self) -> Array: ...
    @property
    def noise(self) -> Array: ...
    @property
    def measurable(self) -> bool: ...

    def __len__(self) -> int: ...

    def mean_variance(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> mean and variance of the noise-free function, each (M, n)."""

    def mean_variance_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """(n, D) -> mean, variance (M, n) and their gradients (M, n, D)."""

    def covariance(self, x: Array, z: Array) -> Array:
        """(n, D), (k, D) -> (M, n, k) of the noise-free function."""

    def joint(self, points: Array, covariance: bool = True) -> Joint:
        """The function at fixed points (A, D), with their covariance matrix unless it is not
        needed."""

    def paths(self, samples: Index, rng: np.random.Generator) -> SamplePaths:
        """One path under each of the given hyper-parameter samples (S,)."""

    def append(self, point: Array, value: Array, noise: Array) -> "FunctionPosterior":
        """Condition on one more measurement: point (D,), value (M,), its noise variance (M,)."""

    def append_expected(self, points: Array) -> "FunctionPosterior":
        """Condition on measurements at (b, D) that find what is expected."""

    def take(self, samples: Index | slice) -> "FunctionPosterior":
        """Under some of the hyper-parameter samples, (S,) indices with repeats, or a slice."""
