"""Interval probabilities, far into the tails."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from calamint.model.interval_probability import log_probability, log_probability_gradient

INTERVALS = [(0.0, math.inf), (-math.inf, 0.5), (-1.0, 1.0), (0.3, 0.300001)]


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_probability_agrees_with_quadrature(low, high):
    for mean in (-3.0, 0.0, 0.4, 2.5):
        for variance in (0.01, 1.0, 20.0):
            std = math.sqrt(variance)
            ends = (max(low, mean - 40 * std), min(high, mean + 40 * std))
            expected, _ = quad(norm(mean, std).pdf, *ends, points=[mean], limit=200)
            found = math.exp(log_probability(np.array(mean), np.array(variance), low, high))
            assert found == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_gradient_matches_finite_differences(low, high):
    mean = np.linspace(-4, 4, 9)
    variance = np.full(9, 0.7)
    _, grad_mean, grad_variance = log_probability_gradient(mean, variance, low, high)
    step = 1e-6

    def value(m, v):
        return log_probability(m, v, low, high)

    difference = (value(mean + step, variance) - value(mean - step, variance)) / (2 * step)
    assert np.allclose(grad_mean, difference, rtol=1e-4, atol=1e-6)
    difference = (value(mean, variance + step) - value(mean, variance - step)) / (2 * step)
    assert np.allclose(grad_variance, difference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_many_orders_of_magnitude_stay_finite(low, high):
    powers = 10.0 ** np.arange(-15, 13, 3)
    mean, variance = (a.ravel() for a in np.meshgrid(np.append(-powers, powers), powers))
    for moment in log_probability_gradient(mean, variance, low, high):
        assert np.all(np.isfinite(moment))
