"""What is believed of all functions of a problem, given what was measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import logsumexp, ndtr

from calamint.model.config import Model
from calamint.model.data import Data, Scaling
from calamint.model.fit import most_probable
from calamint.model.known import KnownFunction
from calamint.model.likelihood import Evidence
from calamint.model.posterior import Posterior
from calamint.model.probability import log_probability, log_probability_gradient, verdict_score
from calamint.model.probit import Verdicts
from calamint.model.sample import FEW_STEPS, draw_samples
from calamint.problem import Problem
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class FunctionBelief:
    """One function: its process in standardised units, and its limits in the same units.

    passfail  its measurements are verdicts: 1 with probability Φ(process), else 0
    """

    process: Posterior | KnownFunction
    scaling: Scaling
    low: float = -math.inf
    high: float = math.inf
    passfail: bool = False

    def mixture(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> mean and deviation over all samples in the function's own units, each (n,).

        Of a verdict, the probability that it is 1, and the deviation that a coin has.
        """
        mean, variance = self.process.moments(x)
        if self.passfail:
            passing = ndtr(verdict_score(mean, variance)[0]).mean(0)
            return passing, np.sqrt(passing * (1 - passing))
        centre = mean.mean(0)
        spread = np.sqrt(variance.mean(0) + ((mean - centre) ** 2).mean(0))
        return self.scaling.offset + self.scaling.scale * centre, self.scaling.scale * spread


@final
@dataclass(frozen=True)
class Start:
    """The hyper-parameters (M, P + 3) of a function when it had been measured so many times."""

    theta: Array
    measured: int


@final
@dataclass(frozen=True)
class Belief:
    """All functions, the objective first; the j-th samples of all of them belong together.

    Inputs are points of the cube. Integers and choices count at the values that they decode to, so
    beliefs are constant between neighbouring integers, and gradients are zero there.
    """

    problem: Problem
    functions: dict[str, FunctionBelief]

    @property
    def samples(self) -> int:
        return max(len(function.process) for function in self.functions.values())

    @property
    def objective(self) -> FunctionBelief:
        return self.functions[self.problem.objective.name]

    @property
    def constraints(self) -> list[FunctionBelief]:
        return [self.functions[constraint.name] for constraint in self.problem.constraints]

    def starts(self) -> dict[str, Start]:
        """What the next belief may start from."""
        return {
            name: Start(function.process.theta, len(function.process.inputs))
            for name, function in self.functions.items()
            if isinstance(function.process, Posterior)
        }

    def snap(self, x: Array) -> Array:
        return self.problem.space.snap(x)

    def believing(
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
            if isinstance(process, Posterior):
                mean, variance = (moment[:, 0] for moment in process.moments(point[None]))
                if rng is not None:
                    mean += np.sqrt(variance + process.noise) * rng.standard_normal(len(mean))
                extended = process.append(point, mean, process.noise)
                functions[name] = replace(function, process=extended)
        return replace(self, functions=functions)

    def repeated(self, copies: int) -> "Belief":
        """Every sample `copies` times, for as many fantasies."""
        if copies == 1:
            return self
        samples = np.tile(np.arange(self.samples), copies)
        return replace(
            self,
            functions={
                name: replace(function, process=function.process.take(samples))
                for name, function in self.functions.items()
            },
        )

    def extended(self, data: Mapping[str, Data]) -> "Belief":
        """Condition on what was measured since, under the same samples and in the same units."""
        functions = dict(self.functions)
        for name, measured in data.items():
            function = functions[name]
            process = function.process
            assert isinstance(process, Posterior)
            if function.passfail:
                verdicts = Verdicts(Evidence(process.kernel, measured, Scaling(), process.owner))
                functions[name] = replace(function, process=verdicts.posterior(process.theta))
                continue
            for index in range(len(process.inputs), len(measured)):
                value = function.scaling.inward(measured.values[index : index + 1])
                noise = process.noise
                if not math.isnan(measured.noise[index]):
                    scale = function.scaling.scale
                    noise = np.full_like(noise, measured.noise[index] / scale / scale)
                process = process.append(
                    measured.inputs[index], np.repeat(value, len(process)), noise
                )
            functions[name] = replace(function, process=process)
        return replace(self, functions=functions)

    def expected_objective(self, x: Array) -> Array:
        """(n, D) -> (n,) standardised, averaged over samples."""
        return self.objective.process.moments(self.snap(x))[0].mean(0)

    def log_feasible(self, x: Array) -> Array:
        """(n, D) -> (M, n) log probability that all limits are met, under each sample."""
        x = self.snap(x)
        total = np.zeros((self.samples, len(x)))
        for function in self.constraints:
            total += log_probability(*function.process.moments(x), function.low, function.high)
        return total

    def log_feasible_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (M, n) and its gradient (M, n, D)."""
        x = self.snap(x)
        total = np.zeros((self.samples, len(x)))
        gradient = np.zeros((self.samples, *x.shape))
        for function in self.constraints:
            mean, variance, mean_x, variance_x = function.process.moments_gradient(x)
            value, by_mean, by_variance = log_probability_gradient(
                mean, variance, function.low, function.high
            )
            total += value
            gradient += by_mean[..., None] * mean_x + by_variance[..., None] * variance_x
        return total, np.where(self.problem.space.continuous, gradient, 0.0)

    def probability(self, x: Array) -> Array:
        """(n, D) -> (n,) that all limits are met: the mean over samples of the product."""
        return np.exp(self.log_probability(x))

    def log_probability(self, x: Array) -> Array:
        log_feasible = self.log_feasible(x)
        joint: Array = logsumexp(log_feasible, axis=0) - math.log(len(log_feasible))
        return np.minimum(joint, 0.0)

    def probability_of(self, name: str, x: Array) -> Array:
        """(n, D) -> (n,) that one function's limits are met."""
        function = self.functions[name]
        moments = function.process.moments(self.snap(x))
        log_each = log_probability(*moments, function.low, function.high)
        return np.exp(log_each).mean(0)


def check_known(problem: Problem) -> None:
    """Refuse known functions that do not return numbers."""
    for name, function in problem.known.items():
        limit = next((c for c in problem.constraints if c.name == name), None)
        low, high = (limit.low, limit.high) if limit else (-math.inf, math.inf)
        KnownFunction.of(function, problem.space, 1, 1.0, low, high)


def believe(
    problem: Problem,
    model: Model,
    data: Mapping[str, Data],
    rng: np.random.Generator,
    warm: Mapping[str, Start] | None = None,
) -> Belief:
    """Learn hyper-parameters and condition on the data; `warm` is where to start from.

    data  what was measured of each function; the objective's values are those to be minimised
    """
    functions: dict[str, FunctionBelief] = {}
    streams = rng.spawn(len(problem.functions))
    limits = {constraint.name: constraint for constraint in problem.constraints}
    samples = model.samples if model.hyperparameters == "sampled" else 1
    for name, stream in zip(problem.functions, streams, strict=True):
        limit = limits.get(name)
        low, high = (limit.low, limit.high) if limit else (-math.inf, math.inf)
        if name in problem.known:
            sign = -1.0 if limit is None and problem.objective.maximize else 1.0
            known = KnownFunction.of(problem.known[name], problem.space, samples, sign, low, high)
            functions[name] = FunctionBelief(known, known.scaling, *known.scaling.limits(low, high))
            continue
        passfail = limit is not None and limit.passfail
        scaling = Scaling() if passfail else model.scaling_of(name, data[name], low, high)
        evidence = Evidence(model.kernel_of(name), data[name], scaling, problem.space.owner)
        likelihood = Verdicts(evidence) if passfail else evidence
        prior = model.prior_of(name, len(problem.space), scaling, passfail)
        before = (warm or {}).get(name)
        start = None if before is None else before.theta
        if model.hyperparameters == "sampled":
            little = len(data[name]) // 20 + 1
            few = before is not None and len(data[name]) - before.measured <= little
            steps = FEW_STEPS if few else None
            theta = draw_samples(likelihood, prior, samples, stream, start, steps)
        else:
            use_prior = model.hyperparameters == "map"
            theta = most_probable(likelihood, prior, stream, start, use_prior)[None]
        if isinstance(likelihood, Verdicts):
            process = likelihood.posterior(theta)
        else:
            process = Posterior.of(likelihood, theta)
        functions[name] = FunctionBelief(
            process, scaling, *scaling.limits(low, high), passfail=passfail
        )
    return Belief(problem, functions)
