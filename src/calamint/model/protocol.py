"""What the other rooms may ask of one function's model, whether it is measured or known.

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

    slope, white  for `Joint.vjp`: kernel slopes (M, n, N + A), L⁻¹ k(X, x) (M, n, N)
    """

    mean: Array
    variance: Array
    covariance: Array
    slope: Array
    white: Array


class Joint(Protocol):
    """One function at fixed points (A, D), and jointly with any other input.

    mean, variance (M, A), covariance (M, A, A) at the points, the last if it was asked for
    noise (M,) of a measurement; measurable: whether it can be measured
    scale  a typical prior variance
    size   how many kernel values `at` needs for each input and sample
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

    def at(self, x: Array, slopes: bool = False) -> CrossMoments:
        """Moments at (n, D); with `slopes`, also what `vjp` needs."""

    def vjp(
        self,
        x: Array,
        at: CrossMoments,
        by_mean: Array,
        by_variance: Array,
        by_covariance: Array,
    ) -> Array:
        """The vector–Jacobian product: (n, D) gradient of what has these derivatives in the
        moments at x: (M, n) twice, (M, n, A)."""

    def part(self, samples: slice, columns: Index) -> "Joint":
        """The same under some of the samples, with some of the points."""


class SamplePaths(Protocol):
    """S functions drawn from one function's model."""

    def values(self, x: Array, single: bool = False) -> Array:
        """(n, D), the same points for all paths -> (S, n); in single precision if that will do."""

    def value_gradient(self, which: Index, x: Array) -> tuple[Array, Array]:
        """Paths (n,), each at a point of its own (n, D) -> values (n,) and gradients (n, D)."""

    def replaced(self, at: Index, others: Self) -> Self:
        """These paths, those at the given indices exchanged for others."""


class Process(Protocol):
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

    def moments(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> mean and variance of the noise-free function, each (M, n)."""

    def moments_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """(n, D) -> mean, variance (M, n) and their gradients (M, n, D)."""

    def covariance(self, x: Array, z: Array) -> Array:
        """(n, D), (k, D) -> (M, n, k) of the noise-free function."""

    def joint(self, points: Array, covariance: bool = True) -> Joint:
        """The function at fixed points (A, D); without `covariance` these are not asked about
        jointly."""

    def paths(self, samples: Index, rng: np.random.Generator) -> SamplePaths:
        """One path under each of the given hyper-parameter samples (S,)."""

    def append(self, point: Array, value: Array, noise: Array) -> "Process":
        """Condition on one more measurement: point (D,), value (M,), its noise variance (M,)."""

    def take(self, samples: Index | slice) -> "Process":
        """Under some of the hyper-parameter samples, (S,) indices with repeats, or a slice."""
