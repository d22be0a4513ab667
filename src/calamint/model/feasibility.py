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

import numpy as np
from scipy.special import logsumexp

from calamint.arrays import Array
from calamint.model.belief import Belief
from calamint.model.interval_probability import log_probability as log_interval
from calamint.model.interval_probability import log_probability_gradient as log_interval_gradient


def probability(belief: Belief, x: Array) -> Array:
    """(n, D) -> (n,) that all limits are met."""
    return np.exp(log_probability(belief, x))


def log_probability(belief: Belief, x: Array) -> Array:
    """(n, D) -> (n,)"""
    each = log_probability_by_sample(belief, x)
    joint: Array = logsumexp(each, axis=0) - math.log(len(each))
    return np.minimum(joint, 0.0)


def log_probability_by_sample(belief: Belief, x: Array) -> Array:
    """(n, D) -> (M, n) that all limits are met, under each hyper-parameter sample."""
    total = np.zeros((belief.samples, len(x)))
    for function in belief.constraints:
        total += log_interval(*function.process.moments(x), function.low, function.high)
    return total


def log_probability_by_sample_gradient(belief: Belief, x: Array) -> tuple[Array, Array]:
    """(n, D) -> (M, n) and its gradient (M, n, D)."""
    total = np.zeros((belief.samples, len(x)))
    gradient = np.zeros((belief.samples, *x.shape))
    for function in belief.constraints:
        mean, variance, mean_x, variance_x = function.process.moments_gradient(x)
        value, by_mean, by_variance = log_interval_gradient(
            mean, variance, function.low, function.high
        )
        total += value
        gradient += by_mean[..., None] * mean_x + by_variance[..., None] * variance_x
    return total, np.where(belief.problem.space.continuous, gradient, 0.0)


def probability_of(belief: Belief, name: str, x: Array) -> Array:
    """(n, D) -> (n,) that one function's limits are met."""
    function = belief.functions[name]
    moments = function.process.moments(x)
    return np.exp(log_interval(*moments, function.low, function.high)).mean(0)
