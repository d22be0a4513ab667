"""What is believed of all functions of a problem, given what was measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import ndtr

from calamint.arrays import Array, Index
from calamint.model.data import Data
from calamint.model.hyperparameters import Hyperparameters
from calamint.model.interval_probability import probit_score
from calamint.model.kernels import Kernel
from calamint.model.probit import ProbitLikelihood
from calamint.model.protocol import Process
from calamint.model.transforms import Scaling
from calamint.problem import Problem


@final
@dataclass(frozen=True)
class FunctionBelief:
    """One function: its process in standardised units, and its limits in the same units.

    kernel    None if the function is known
    binary  its measurements are outcomes: 1 with probability Φ(process), else 0
    """

    process: Process
    scaling: Scaling
    low: float = -math.inf
    high: float = math.inf
    kernel: Kernel | None = None
    binary: bool = False

    def mixture(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> mean and deviation over all samples in the user's units, each (n,).

        Of an outcome, the probability that it is 1, and the deviation that an outcome has.
        """
        mean, variance = self.process.moments(x)
        if self.binary:
            passing = ndtr(probit_score(mean, variance)[0]).mean(0)
            return passing, np.sqrt(passing * (1 - passing))
        centre = mean.mean(0)
        spread = np.sqrt(variance.mean(0) + ((mean - centre) ** 2).mean(0))
        return self.scaling.outward(centre), self.scaling.outward_deviation(spread)

    def extended(self, data: Data, parameter_index: Index) -> "FunctionBelief":
        """Condition on what was measured since, under the same hyper-parameters.

        data             everything that was measured of the function
        parameter_index  as in `Space`
        """
        process = self.process
        if self.binary:
            assert self.kernel is not None  # known functions are not measured
            likelihood = ProbitLikelihood(self.kernel, data, parameter_index)
            return replace(self, process=likelihood.posterior(process.theta))
        for index in range(len(process.inputs), len(data)):
            value = self.scaling.inward(data.values[index : index + 1])
            noise = process.noise
            if not math.isnan(data.noise_variance[index]):
                given = float(self.scaling.inward_variance(data.noise_variance[index]))
                noise = np.full_like(noise, given)
            process = process.append(data.inputs[index], np.repeat(value, len(process)), noise)
        return replace(self, process=process)


@final
@dataclass(frozen=True)
class Belief:
    """All functions, the objective first; the j-th samples of all of them belong together.

    Inputs are points of the cube at values that the parameters can take (`Space.snap`).

    fantasies  how often every hyper-parameter sample is repeated, with other imagined results:
               sample m of fantasy k is the (k·M + m)-th of `samples` = k·M in all
    """

    problem: Problem
    functions: dict[str, FunctionBelief]
    fantasies: int = 1

    @property
    def samples(self) -> int:
        return max(len(function.process) for function in self.functions.values())

    @property
    def objective(self) -> FunctionBelief:
        return self.functions[self.problem.objective.name]

    @property
    def constraints(self) -> list[FunctionBelief]:
        return [self.functions[constraint.name] for constraint in self.problem.constraints]

    def hyperparameters(self) -> dict[str, Hyperparameters]:
        """Where the next fit may start."""
        return {
            name: Hyperparameters(function.process.theta, len(function.process.inputs))
            for name, function in self.functions.items()
            if function.process.measurable
        }

    def fantasize(
        self, point: Array, names: Iterable[str], rng: np.random.Generator | None = None
    ) -> "Belief":
        """The belief after measuring some functions at a point (D,), and finding what is expected.

        The Kriging believer: under each sample its own mean, with the noise of a measurement. With
        `rng`, what is found is drawn instead: a fantasy under each sample.
        """
        functions = dict(self.functions)
        for name in names:
            function = functions[name]
            process = function.process
            mean, variance = (moment[:, 0] for moment in process.moments(point[None]))
            if rng is not None:
                mean += np.sqrt(variance + process.noise) * rng.standard_normal(len(mean))
            functions[name] = replace(function, process=process.append(point, mean, process.noise))
        return replace(self, functions=functions)

    def repeated(self, fantasies: int) -> "Belief":
        """Every sample repeated, for as many fantasies."""
        if fantasies == 1:
            return self
        samples = np.tile(np.arange(self.samples), fantasies)
        functions = {
            name: replace(function, process=function.process.take(samples))
            for name, function in self.functions.items()
        }
        return replace(self, functions=functions, fantasies=fantasies)

    def extended(self, data: Mapping[str, Data]) -> "Belief":
        """Condition on what was measured since, under the same samples and in the same units."""
        functions = dict(self.functions)
        for name, measured in data.items():
            functions[name] = functions[name].extended(measured, self.problem.space.parameter_index)
        return replace(self, functions=functions)

    def expected_objective(self, x: Array) -> Array:
        """(n, D) -> (n,) standardised, averaged over samples."""
        return self.objective.process.moments(x)[0].mean(0)
