"""The probability that limits are met: of one function, and of all of them jointly.

Under one hyper-parameter sample the functions are independent, so the joint probability is a
product; over samples it is the mean of these products, not the product of means.

| symbol | code | shape | meaning |
|---|---|---|---|
| P(low ≤ c_k(x) ≤ high given θ_m) | `log_interval` | (M, n) | of one function, under one sample |
| Π_k | `log_probability_by_sample` | (M, n) | of all functions, under one sample |
| mean over m | `probability` | (n,) | joint probability of being feasible |
"""

import math
from collections.abc import Collection

import numpy as np
from scipy.special import logsumexp

from calamint.arrays import Array
from calamint.model.interval_probability import log_probability as log_interval
from calamint.model.interval_probability import log_probability_gradient as log_interval_gradient
from calamint.model.surrogate import Surrogate


def probability(surrogate: Surrogate, x: Array, met: Collection[str] = ()) -> Array:
    """(n, D) -> (n,) that all limits are met, of which those of some functions are known to be."""
    return np.exp(log_probability(surrogate, x, met))


def log_probability(surrogate: Surrogate, x: Array, met: Collection[str] = ()) -> Array:
    """(n, D) -> (n,)"""
    each = log_probability_by_sample(surrogate, x, met)
    joint: Array = logsumexp(each, axis=0) - math.log(len(each))
    return np.minimum(joint, 0.0)


def log_probability_by_sample(surrogate: Surrogate, x: Array, met: Collection[str] = ()) -> Array:
    """(n, D) -> (M, n) that all limits are met, under each hyper-parameter sample."""
    total = np.zeros((surrogate.samples, len(x)))
    for limit in surrogate.problem.constraints:
        if limit.name in met:
            continue
        function = surrogate.functions[limit.name]
        total += log_interval(*function.posterior.mean_variance(x), function.low, function.high)
    return total


def log_probability_by_sample_gradient(surrogate: Surrogate, x: Array) -> tuple[Array, Array]:
    """(n, D) -> (M, n) and its gradient (M, n, D)."""
    total = np.zeros((surrogate.samples, len(x)))
    gradient = np.zeros((surrogate.samples, *x.shape))
    for function in surrogate.constraints:
        mean, variance, mean_gradient, variance_gradient = (
            function.posterior.mean_variance_gradient(x)
        )
        value, grad_mean, grad_variance = log_interval_gradient(
            mean, variance, function.low, function.high
        )
        total += value
        gradient += (
            grad_mean[..., None] * mean_gradient + grad_variance[..., None] * variance_gradient
        )
    return total, np.where(surrogate.problem.space.continuous, gradient, 0.0)


def probability_of(surrogate: Surrogate, name: str, x: Array) -> Array:
    """(n, D) -> (n,) that one function's limits are met."""
    function = surrogate.functions[name]
    moments = function.posterior.mean_variance(x)
    return np.exp(log_interval(*moments, function.low, function.high)).mean(0)
