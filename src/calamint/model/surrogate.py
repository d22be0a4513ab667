"""The surrogate model of a problem: a posterior for every function."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import ndtr, ndtri

from calamint.arrays import Array, Index
from calamint.model.data import Data
from calamint.model.hyperparameters import Hyperparameters
from calamint.model.interval_probability import mixture_quantiles, probit_score
from calamint.model.kernels import Kernel
from calamint.model.probit import ProbitLikelihood
from calamint.model.protocol import FunctionPosterior
from calamint.model.subset import ACTIVE_OUTCOMES, boundary_subset
from calamint.model.transforms import OutcomeTransform
from calamint.problem import Problem

# Midpoints of equally probable intervals of a standard normal variable: averages over them are
# finite where those of a log-normal tail would not be.
_NODES = ndtri((np.arange(32) + 0.5) / 32)


# With fewer measurements, what is copied for each fantasy is small.
_MANY = 500


@final
@dataclass(frozen=True)
class FunctionSurrogate:
    """One function: its posterior and its limits, both in standardised units.

    Attributes:
        kernel: None if the function is known.
        binary: Whether its measurements are outcomes, 1 with probability Φ of the latent function.
        chosen: The name of the transform, if it was chosen here, and after how many measurements.
    """

    posterior: FunctionPosterior
    transform: OutcomeTransform
    low: float = -math.inf
    high: float = math.inf
    kernel: Kernel | None = None
    binary: bool = False
    chosen: tuple[str | None, int] = (None, 0)

    def mixture(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> mean and standard deviation in the user's units, each (n,).

        Of the mixture over all hyper-parameter samples; of an outcome if the function is binary.
        """
        mean, variance = self.posterior.mean_variance(x)
        if self.binary:
            passing = ndtr(probit_score(mean, variance)[0]).mean(0)
            return passing, np.sqrt(passing * (1 - passing))
        if self.transform.is_affine:
            centre = mean.mean(0)
            spread = np.sqrt(variance.mean(0) + ((mean - centre) ** 2).mean(0))
            return self.transform.to_user(centre), abs(self.transform.scale) * spread
        values = self.transform.to_user(mean[..., None] + np.sqrt(variance)[..., None] * _NODES)
        # Dividing first keeps squares of huge values from overflowing.
        largest = np.maximum(np.abs(values).max((0, -1)), 1e-300)
        shares = values / largest[:, None]
        average = shares.mean((0, -1))
        return largest * average, largest * np.sqrt(
            ((shares - average[:, None]) ** 2).mean((0, -1))
        )

    def quantiles(self, x: Array, levels: Array) -> Array:
        """(n, D), (q,) -> (n, q) of the noise-free function in the user's units.

        Of the mixture over all samples; of a binary function, of the probability that it passes.
        """
        mean, variance = self.posterior.mean_variance(x)
        scale = 1.0 if self.binary else self.transform.scale
        wanted = levels if scale > 0 else 1 - levels
        found = mixture_quantiles(mean, np.sqrt(variance), wanted)
        return ndtr(found) if self.binary else self.transform.to_user(found)

    def extended(self, data: Data, parameter_index: Index) -> "FunctionSurrogate":
        """Condition on what was measured since, under the same hyper-parameters.

        data             everything that was measured of the function
        parameter_index  as in `Space`
        """
        posterior = self.posterior
        if self.binary:
            assert self.kernel is not None  # known functions are not measured
            active = boundary_subset(data, ACTIVE_OUTCOMES)
            likelihood = ProbitLikelihood(self.kernel, active, parameter_index)
            return replace(self, posterior=likelihood.posterior(posterior.theta))
        for index in range(len(posterior.inputs), len(data)):
            value = self.transform.to_model(data.values[index : index + 1])
            noise = posterior.noise
            if not math.isnan(data.noise_variance[index]):
                sem = data.noise_variance[index : index + 1]
                given = self.transform.variance_to_model(data.values[index : index + 1], sem)
                noise = np.full_like(noise, given)
            posterior = posterior.append(
                data.inputs[index], np.repeat(value, len(posterior)), noise
            )
        return replace(self, posterior=posterior)


@final
@dataclass(frozen=True)
class Surrogate:
    """All functions, the objective first; the j-th samples of all of them belong together.

    Inputs are points of the unit cube at values that the parameters can take (`Space.snap`).

    Attributes:
        fantasies: How often every hyper-parameter sample is repeated, each time with other
            fantasies of pending results; sample m of fantasy k has index k·M + m.
        bounded: What was limited when it was fitted, because there is much data.
    """

    problem: Problem
    functions: dict[str, FunctionSurrogate]
    fantasies: int = 1
    bounded: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        return max(len(function.posterior) for function in self.functions.values())

    @property
    def objective(self) -> FunctionSurrogate:
        return self.functions[self.problem.objective.name]

    @property
    def constraints(self) -> list[FunctionSurrogate]:
        return [self.functions[constraint.name] for constraint in self.problem.constraints]

    def hyperparameters(self) -> dict[str, Hyperparameters]:
        """Where the next fit may start."""
        return {
            name: Hyperparameters(
                function.posterior.theta, len(function.posterior.inputs), *function.chosen
            )
            for name, function in self.functions.items()
            if function.posterior.measurable
        }

    def fantasize(
        self, point: Array, names: Iterable[str], rng: np.random.Generator
    ) -> "Surrogate":
        """Condition on fantasies of some functions at a point (D,), drawn from the posterior under
        each sample, with the noise of a measurement."""
        functions = dict(self.functions)
        for name in names:
            function = functions[name]
            posterior = function.posterior
            mean, variance = (moment[:, 0] for moment in posterior.mean_variance(point[None]))
            mean += np.sqrt(variance + posterior.noise) * rng.standard_normal(len(mean))
            functions[name] = replace(
                function, posterior=posterior.append(point, mean, posterior.noise)
            )
        return replace(self, functions=functions)

    def fantasize_expected(self, pending: Iterable[tuple[Array, Iterable[str]]]) -> "Surrogate":
        """Condition on what is expected of functions at points, as the Kriging believer does: that
        some are believed does not change what is expected of others."""
        functions, points = dict(self.functions), dict[str, list[Array]]()
        for point, names in pending:
            for name in names:
                points.setdefault(name, []).append(point)
        for name, several in points.items():
            posterior = functions[name].posterior
            if len(posterior.inputs) >= _MANY:
                posterior = posterior.append_expected(np.array(several))
            else:
                for point in several:
                    mean = posterior.mean_variance(point[None])[0][:, 0]
                    posterior = posterior.append(point, mean, posterior.noise)
            functions[name] = replace(functions[name], posterior=posterior)
        return replace(self, functions=functions)

    def repeated(self, fantasies: int) -> "Surrogate":
        """Every sample repeated, for as many fantasies."""
        if fantasies == 1:
            return self
        samples = np.tile(np.arange(self.samples), fantasies)
        functions = {
            name: replace(function, posterior=function.posterior.take(samples))
            for name, function in self.functions.items()
        }
        return replace(self, functions=functions, fantasies=fantasies)

    def extended(self, data: Mapping[str, Data]) -> "Surrogate":
        """Condition on what was measured since, under the same samples and in the same units."""
        functions = dict(self.functions)
        for name, measured in data.items():
            functions[name] = functions[name].extended(measured, self.problem.space.parameter_index)
        return replace(self, functions=functions)

    def expected_objective(self, x: Array) -> Array:
        """(n, D) -> (n,) standardised, averaged over samples."""
        return self.objective.posterior.mean_variance(x)[0].mean(0)
