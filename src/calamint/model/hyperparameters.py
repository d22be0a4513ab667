"""Hyper-parameters of one function's Gaussian process, and what is believed of them beforehand.

A hyper-parameter vector θ has P + 3 entries (P parameters of the space):

| entry | position | meaning, on standardised values |
|---|---|---|
| log ℓ_1 … log ℓ_P | `LENGTHSCALES` | length-scale of each parameter, in unit-cube units |
| log a | `AMPLITUDE` | prior standard deviation |
| log ν | `NOISE` | noise variance of a measurement |
| m | `MEAN` | constant prior mean |

The priors are normal in these coordinates, so log-normal for ℓ, a and ν. Length-scales grow with
√P, because distances in the cube do: a fixed prior would make functions of many parameters look
like needles that no data can connect. Values are standardised, so a is near 1 and m near 0. The
noise prior spans from nothing to as much as the signal, with its median at one thousandth of the
standard deviation: measurements are trusted until they contradict each other.

Bounds keep a²/ν below 1e12: beyond it the covariance of smooth, noise-free data cannot be
factorised without jitter, and the likelihood would be that of the jitter.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from calamint.arrays import Array, Mask

# Positions in θ.
LENGTHSCALES = slice(None, -3)
AMPLITUDE, NOISE, MEAN = -3, -2, -1

LENGTHSCALE_MEDIAN = 0.5  # times √P
LENGTHSCALE_SPREAD = 1.0
SCORE_MEDIAN, SCORE_SPREAD = 10.0, 1.0  # the amplitude of a score behind outcomes
AMPLITUDE_SPREAD = 0.7
NOISE_MEDIAN = 1e-6
NOISE_SPREAD = 4.0
MEAN_SPREAD = 1.0


@final
@dataclass(frozen=True)
class Hyperparameters:
    """What fitting found for one function.

    Attributes:
        theta: (M, P + 3)
        measured: The number of its measurements.
        transform: The name of the transform that was chosen; None if the user named one.
        chosen_at: The number of measurements when it was last chosen.
    """

    theta: Array
    measured: int
    transform: str | None = None
    chosen_at: int = 0

    @property
    def noise_variance(self) -> Array:
        """(M,) of a measurement, standardised"""
        return noise_variance(self.theta)


@final
@dataclass(frozen=True)
class Prior:
    """Independent normal priors over θ, and which entries are fixed to given values instead.

    centre, spread, low, high  (P + 3,)
    fixed                      (P + 3,) the given value, NaN where θ is free
    """

    centre: Array
    spread: Array
    low: Array
    high: Array
    fixed: Array

    @staticmethod
    def standard(parameters: int, fixed: Array | None = None) -> "Prior":
        """The priors described above for a function of this many parameters."""
        many = np.ones(parameters)
        return Prior(
            centre=np.concatenate(
                [
                    many * (math.log(LENGTHSCALE_MEDIAN) + 0.5 * math.log(parameters)),
                    [0.0, math.log(NOISE_MEDIAN), 0.0],
                ]
            ),
            spread=np.concatenate(
                [many * LENGTHSCALE_SPREAD, [AMPLITUDE_SPREAD, NOISE_SPREAD, MEAN_SPREAD]]
            ),
            low=np.concatenate([many * math.log(1e-2), [math.log(0.05), math.log(1e-10), -5.0]]),
            high=np.concatenate([many * math.log(1e2), [math.log(10.0), math.log(10.0), 5.0]]),
            fixed=np.full(parameters + 3, np.nan) if fixed is None else fixed,
        )

    @staticmethod
    def binary(parameters: int, fixed: Array) -> "Prior":
        """Of the score behind outcomes, whose unit is the noise of a outcome: most tests say the
        same when they are asked again, so scores vary by many units."""
        prior = Prior.standard(parameters, fixed)
        centre, spread, low, high = (
            end.copy() for end in (prior.centre, prior.spread, prior.low, prior.high)
        )
        centre[AMPLITUDE], spread[AMPLITUDE] = math.log(SCORE_MEDIAN), SCORE_SPREAD
        high[AMPLITUDE] = math.log(100.0)
        spread[MEAN] *= SCORE_MEDIAN
        low[MEAN] *= SCORE_MEDIAN
        high[MEAN] *= SCORE_MEDIAN
        return Prior(centre, spread, low, high, fixed)

    @cached_property
    def free(self) -> Mask:
        """(P + 3,) True where θ is to be learnt."""
        return np.isnan(self.fixed)

    def complete(self, free: Array) -> Array:
        """(..., F) values of the free entries -> (..., P + 3) with the fixed ones filled in."""
        theta = np.broadcast_to(self.fixed, (*free.shape[:-1], len(self.fixed))).copy()
        theta[..., self.free] = free
        return theta

    def log_density(self, theta: Array) -> Array:
        """(..., P + 3) -> (...,) up to a constant; −∞ outside the bounds."""
        free = self.free
        inside = np.all((theta >= self.low) & (theta <= self.high) | ~free, axis=-1)
        z = (theta[..., free] - self.centre[free]) / self.spread[free]
        return np.where(inside, -0.5 * (z**2).sum(-1), -np.inf)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """(count, P + 3) draws, kept inside the bounds."""
        draws = self.centre + self.spread * rng.standard_normal((count, len(self.centre)))
        return np.where(self.free, np.clip(draws, self.low, self.high), self.fixed)


def lengthscales(theta: Array) -> Array:
    """(..., P)"""
    return np.exp(theta[..., LENGTHSCALES])


def amplitude_squared(theta: Array) -> Array:
    return np.exp(2 * theta[..., AMPLITUDE])


def noise_variance(theta: Array) -> Array:
    return np.exp(theta[..., NOISE])  # a fixed log ν of −∞ is no noise at all


def constant_mean(theta: Array) -> Array:
    return theta[..., MEAN]
