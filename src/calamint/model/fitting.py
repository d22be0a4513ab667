"""Fitting the model: hyper-parameters of every function, and its posterior given the data."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from calamint.arrays import Array
from calamint.model.config import Model
from calamint.model.data import Data
from calamint.model.hyperparameters import Hyperparameters, Prior
from calamint.model.known_function import KnownFunction
from calamint.model.likelihood import GaussianLikelihood, Likelihood
from calamint.model.map_estimate import most_probable
from calamint.model.probit import ProbitLikelihood
from calamint.model.slice_sampling import FEW_STEPS, draw_samples
from calamint.model.subset import (
    ACTIVE_OUTCOMES,
    LEARNT,
    LEARNT_OUTCOMES,
    boundary_subset,
    relevant_subset,
)
from calamint.model.surrogate import FunctionSurrogate, Surrogate
from calamint.model.transform_choice import Target, choose_transform, fixed_transform
from calamint.model.transforms import OutcomeTransform
from calamint.problem import Problem
from calamint.threads import parallel_map

_MIN_SAMPLES = 3
# Measurements for each parameter up to which all samples are drawn.
_ENOUGH = 10
_NOT_CHOSEN: tuple[str | None, int] = (None, 0)


def fit(
    problem: Problem,
    model: Model,
    data: Mapping[str, Data],
    rng: np.random.Generator,
    start: Mapping[str, Hyperparameters] | None = None,
) -> Surrogate:
    """Learn hyper-parameters and condition on the data.

    data   what was measured of each function, in the user's units
    start  hyper-parameters of an earlier fit to start from
    """
    asked, samples = model.samples, _affordable_samples(model.samples, len(problem.space), data)
    model = replace(model, samples=samples)
    streams = dict(zip(problem.functions, rng.spawn(len(problem.functions)), strict=True))

    def fit_function(name: str) -> FunctionSurrogate:
        sign = problem.objective.sign if name == problem.objective.name else 1.0
        if name in problem.known:
            return _known(problem, model, name, sign)
        before = (start or {}).get(name)
        return _fitted(problem, model, name, sign, data[name], streams[name], before)

    fits = parallel_map(fit_function, problem.functions)
    functions = dict(zip(problem.functions, fits, strict=True))
    return Surrogate(problem, functions, bounded=_bounded(problem, model, asked, data))


def _bounded(
    problem: Problem, model: Model, asked: int, data: Mapping[str, Data]
) -> tuple[str, ...]:
    """What is limited, because there is much data."""
    bounded = []
    if model.hyperparameters == "sampled" and model.samples < asked:
        bounded.append(f"{model.samples} of {asked} hyper-parameter samples")
    for name in problem.measured:
        learnt = LEARNT_OUTCOMES if name in problem.binary else LEARNT
        if len(data[name]) > learnt:
            bounded.append(f"{name} learnt from {learnt} of {len(data[name])} measurements")
    return tuple(bounded)


def _affordable_samples(samples: int, parameters: int, data: Mapping[str, Data]) -> int:
    """Fewer as measurements leave less open: hyper-parameters are known to about 1/√N."""
    most = max((len(each) for each in data.values()), default=0)
    enough = _ENOUGH * max(parameters, 1)
    if most <= enough:
        return samples
    return min(samples, max(_MIN_SAMPLES, math.ceil(samples * math.sqrt(enough / most))))


def _known(problem: Problem, model: Model, name: str, sign: float) -> FunctionSurrogate:
    low, high = problem.limits_of(name)
    samples = model.samples if model.hyperparameters == "sampled" else 1
    known = KnownFunction.of(problem.known[name], problem.space, samples, sign, low, high)
    return FunctionSurrogate(known, known.transform, *known.transform.limits(low, high))


def _fitted(
    problem: Problem,
    model: Model,
    name: str,
    sign: float,
    data: Data,
    rng: np.random.Generator,
    before: Hyperparameters | None,
) -> FunctionSurrogate:
    low, high = problem.limits_of(name)
    kernel, parameter_index = model.kernel_of(name), problem.space.parameter_index
    binary = name in problem.binary
    likelihood: Likelihood
    learnt_from: Likelihood
    transform, chosen = OutcomeTransform(), _NOT_CHOSEN
    if binary:
        active = boundary_subset(data, ACTIVE_OUTCOMES)
        likelihood = ProbitLikelihood(kernel, active, parameter_index)
        subset = boundary_subset(active, LEARNT_OUTCOMES)
        learnt_from = ProbitLikelihood(kernel, subset, parameter_index)
    else:
        transform, chosen = _transform(problem, model, name, sign, data, rng, before)
        likelihood = GaussianLikelihood(kernel, data, transform, parameter_index)
        subset = relevant_subset(data, _relevance(likelihood, transform.limits(low, high)), LEARNT)
        learnt_from = GaussianLikelihood(kernel, subset, transform, parameter_index)
    prior = model.prior_of(name, len(problem.space), transform, binary)
    theta = _hyperparameters(model, learnt_from, prior, rng, before)
    return FunctionSurrogate(
        likelihood.posterior(theta),
        transform,
        *transform.limits(low, high),
        kernel=kernel,
        binary=binary,
        chosen=chosen,
    )


def _relevance(likelihood: GaussianLikelihood, limits: tuple[float, float]) -> Array:
    """(N,) the objective, which is minimised, or the distance from the nearest limit."""
    finite = [limit for limit in limits if np.isfinite(limit)]
    if not finite:
        return likelihood.targets
    return np.abs(likelihood.targets[:, None] - finite).min(1)


def _transform(
    problem: Problem,
    model: Model,
    name: str,
    sign: float,
    data: Data,
    rng: np.random.Generator,
    before: Hyperparameters | None,
) -> tuple[OutcomeTransform, tuple[str | None, int]]:
    """The scale of a function, and what was chosen if the user left the choice."""
    if model.amplitude_is_fixed(name):
        return OutcomeTransform(0.0, sign), _NOT_CHOSEN
    target = Target(*problem.limits_of(name), sign, name == problem.objective.name)
    requested = model.transform_of(name)
    if requested != "auto":
        return fixed_transform(requested, data, target), _NOT_CHOSEN
    prior = model.prior_of(name, len(problem.space), OutcomeTransform())
    choosing = rng.spawn(1)[0]  # the stream of the sampler is the same without it
    return choose_transform(
        model.kernel_of(name), data, problem.space.parameter_index, prior, target, before, choosing
    )


def _hyperparameters(
    model: Model,
    likelihood: Likelihood,
    prior: Prior,
    rng: np.random.Generator,
    before: Hyperparameters | None,
) -> Array:
    """(M, P + 3) samples, or (1, P + 3) the estimate"""
    start = None if before is None else before.theta
    if model.hyperparameters != "sampled":
        use_prior = model.hyperparameters == "map"
        return most_probable(likelihood, prior, rng, start, use_prior)[None]
    count = len(likelihood.data)
    few = before is not None and count - before.measured <= count // 20 + 1
    return draw_samples(likelihood, prior, model.samples, rng, start, FEW_STEPS if few else None)
