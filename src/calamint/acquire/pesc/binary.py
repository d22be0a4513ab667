"""What the outcome of a pass/fail measurement yields about x*, in nats.

p = P(pass) as believed becomes p' given x*. Over solutions p' averages to p, so the expected drop
in the entropy of the outcome, H(p) − mean of H(p'), is also the mean of KL(p' ‖ p). The second is
closer to the truth: errors of p' enter the first in proportion, and the second by their square. The
first chooses better inputs from a handful of solutions: where p is small, the few x* that happen to
be near are peaks of KL, one at each, and decisions would do no more than try them. And against
solutions that are older than the data KL never ends, because they contradict what is known.

| symbol | code | meaning |
|---|---|---|
| Φ(t) = p | `t` | probability of passing, as believed |
| Φ(u) = p' | `u` | the same, given x* |
| H, KL | `entropy_reduction`, `kl_divergence` | in nats |
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import log_ndtr, ndtr

from calamint.arrays import Array
from calamint.model import hazard, log_normal_density, probit_score


@final
@dataclass(frozen=True)
class BinaryGain:
    """Nats, and their derivatives in mean and variance, as believed and given x*."""

    in_nats: Array
    grad_mean: Array
    grad_variance: Array
    grad_mean_after: Array
    grad_variance_after: Array


def kl_divergence(
    mean: Array, variance: Array, mean_after: Array, variance_after: Array
) -> BinaryGain:
    """KL(p' ‖ p), never negative"""
    t, t_mean, t_variance = probit_score(mean, variance)
    u, u_mean, u_variance = probit_score(mean_after, variance_after)
    passing, failing = log_ndtr(u) - log_ndtr(t), log_ndtr(-u) - log_ndtr(-t)
    grad_t = ndtr(-u) * hazard(t) - ndtr(u) * hazard(-t)
    grad_u = np.exp(log_normal_density(u)) * (passing - failing)
    nats = ndtr(u) * passing + ndtr(-u) * failing
    return BinaryGain(
        nats, grad_t * t_mean, grad_t * t_variance, grad_u * u_mean, grad_u * u_variance
    )


def entropy_reduction(
    mean: Array, variance: Array, mean_after: Array, variance_after: Array
) -> BinaryGain:
    """H(p) − H(p')"""
    t, t_mean, t_variance = probit_score(mean, variance)
    u, u_mean, u_variance = probit_score(mean_after, variance_after)
    (before, grad_t), (after, grad_u) = _binary_entropy(t), _binary_entropy(u)
    return BinaryGain(
        before - after, grad_t * t_mean, grad_t * t_variance, -grad_u * u_mean, -grad_u * u_variance
    )


def _binary_entropy(t: Array) -> tuple[Array, Array]:
    """Of an outcome that passes with probability Φ(t), in nats, with its derivative."""
    passing, failing = log_ndtr(t), log_ndtr(-t)
    entropy = -ndtr(t) * passing - ndtr(-t) * failing
    return entropy, np.exp(log_normal_density(t)) * (failing - passing)
