"""Known functions: computed, never measured, with the interface of a zero-variance posterior."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.arrays import Array, Index
from calamint.checks import finite
from calamint.errors import ProblemError
from calamint.model.protocol import CrossMoments
from calamint.model.transforms import OutcomeTransform, standardise
from calamint.problem import Params, Problem, Space

# In place of zero variance, in standardised units: formulas divide by the standard deviation.
_VARIANCE = 1e-16
_STEP = 1e-6  # of finite differences: about the cube root of the rounding error


@final
@dataclass(frozen=True)
class KnownFunction:
    """Exact values in standardised units; gradients by central differences inside the cube.

    Implements `FunctionPosterior`; conditioning on data changes nothing.
    """

    function: Callable[[Params], float]
    space: Space
    transform: OutcomeTransform
    samples: int

    @staticmethod
    def of(
        function: Callable[[Params], float],
        space: Space,
        samples: int,
        sign: float,
        low: float,
        high: float,
    ) -> "KnownFunction":
        """`sign` is −1 for an objective that is maximised."""
        points = space.snap(np.random.default_rng(0).random((64, space.dimension)))
        values = np.array([_evaluate(function, space.decode(point)) for point in points])
        return KnownFunction(function, space, standardise(values, low, high, sign), samples)

    def __len__(self) -> int:
        return self.samples

    @property
    def measurable(self) -> bool:
        return False

    @property
    def theta(self) -> Array:
        return np.empty((self.samples, 0))

    @property
    def lengthscales(self) -> Array:
        return np.full((self.samples, len(self.space)), np.inf)

    @property
    def inputs(self) -> Array:
        return np.empty((0, self.space.dimension))

    @property
    def noise(self) -> Array:
        return np.zeros(self.samples)

    def take(self, samples: Index | slice) -> "KnownFunction":
        return replace(self, samples=len(np.arange(self.samples)[samples]))

    def append(self, point: Array, value: Array, noise: Array) -> "KnownFunction":  # noqa: ARG002
        return self

    def append_expected(self, points: Array) -> "KnownFunction":  # noqa: ARG002
        return self

    def values(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        raw = [_evaluate(self.function, self.space.decode(point)) for point in x]
        return self.transform.to_model(np.array(raw))

    def gradient(self, x: Array) -> Array:
        """(n, D) -> (n, D)"""
        return central_differences(self.values, self.space, x, _STEP)

    def mean_variance(self, x: Array) -> tuple[Array, Array]:
        mean = np.repeat(self.values(x)[None], self.samples, axis=0)
        return mean, np.full_like(mean, _VARIANCE)

    def mean_variance_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        mean, variance = self.mean_variance(x)
        gradient = self.gradient(x)
        shape = (self.samples, *gradient.shape)
        return mean, variance, np.broadcast_to(gradient, shape), np.zeros(shape)

    def covariance(self, x: Array, z: Array) -> Array:
        return np.zeros((self.samples, len(x), len(z)))

    def joint(self, points: Array, covariance: bool = True) -> "KnownJoint":
        mean, variance = self.mean_variance(points)
        size = len(points) if covariance else 0
        between = np.broadcast_to(_VARIANCE * np.eye(size), (self.samples, size, size))
        return KnownJoint(self, points, mean, variance, between)

    def paths(self, samples: Index, rng: np.random.Generator) -> "KnownPaths":  # noqa: ARG002
        return KnownPaths(self, len(samples))


@final
@dataclass(frozen=True)
class KnownJoint:
    """A known function at fixed points; see `protocol.Joint`."""

    posterior: KnownFunction
    points: Array
    mean: Array
    variance: Array
    covariance: Array

    @property
    def noise(self) -> Array:
        return self.posterior.noise

    @property
    def measurable(self) -> bool:
        return False

    @property
    def scale(self) -> float:
        return 0.0

    @property
    def size(self) -> int:
        return len(self.points)

    def subset(self, samples: slice, columns: Index) -> "KnownJoint":
        return KnownJoint(
            self.posterior.take(samples),
            self.points[columns],
            self.mean[samples][:, columns],
            self.variance[samples][:, columns],
            self.covariance[samples][:, columns[:, None], columns],
        )

    def cross_moments(self, x: Array, derivatives: bool = False) -> CrossMoments:  # noqa: ARG002
        mean, variance = self.posterior.mean_variance(x)
        empty = np.empty((*mean.shape, 0))
        covariance = np.zeros((*mean.shape, len(self.points)))
        return CrossMoments(mean, variance, covariance, empty, empty)

    def vjp(
        self,
        x: Array,
        cross: CrossMoments,  # noqa: ARG002
        grad_mean: Array,
        grad_variance: Array,  # noqa: ARG002
        grad_covariance: Array,  # noqa: ARG002
    ) -> Array:
        _, _, mean_gradient, _ = self.posterior.mean_variance_gradient(x)
        return np.einsum("mn,mnd->nd", grad_mean, mean_gradient)


@final
@dataclass(frozen=True)
class KnownPaths:
    """`count` identical sample paths, all equal to the known function."""

    posterior: KnownFunction
    count: int

    def values(self, x: Array, float32: bool = False) -> Array:  # noqa: ARG002
        return np.repeat(self.posterior.values(x)[None], self.count, axis=0)

    def value_gradient(self, path_index: Index, x: Array) -> tuple[Array, Array]:  # noqa: ARG002
        return self.posterior.values(x), self.posterior.gradient(x)

    def joined(self, others: "KnownPaths") -> "KnownPaths":
        return KnownPaths(self.posterior, self.count + others.count)

    def take(self, path_index: Index) -> "KnownPaths":
        return KnownPaths(self.posterior, len(path_index))


def check_known_functions(problem: Problem) -> None:
    """Raise `ProblemError` if a known function raises, or is not finite, at a test point."""
    for name, function in problem.known.items():
        KnownFunction.of(function, problem.space, 1, 1.0, *problem.limits_of(name))


def central_differences(
    values: Callable[[Array], Array], space: Space, x: Array, step: float
) -> Array:
    """(n, D) -> (n, D) gradients in the continuous columns, one-sided at the faces of the cube."""
    gradient = np.zeros(x.shape)
    for column in np.flatnonzero(space.continuous):
        above, below = x.copy(), x.copy()
        above[:, column] = np.minimum(x[:, column] + step, 1.0)
        below[:, column] = np.maximum(x[:, column] - step, 0.0)
        width = above[:, column] - below[:, column]
        gradient[:, column] = (values(above) - values(below)) / width
    return gradient


def call_user_function(function: Callable[[Params], float], params: Params, title: str) -> object:
    """Call a user's function; raise its exception as a `ProblemError` that begins with `title`."""
    try:
        return function(params)
    except Exception as error:
        raise ProblemError(
            f"{title} raised {type(error).__name__}: {error}:"
            " it must not raise anywhere in the space."
        ) from error


def _evaluate(function: Callable[[Params], float], params: Params) -> float:
    """What a known function returns, if it is a number."""
    title = f"the known function {getattr(function, '__name__', function)!r} at {params}"
    value = call_user_function(function, params, title)
    number = finite(value)
    if number is None:
        raise ProblemError(f"{title} returned {value!r}: write one that returns a finite number.")
    return number
