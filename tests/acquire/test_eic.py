"""Expected improvement with constraints: against quadrature and Monte Carlo, value and gradient."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from tests.acquire.cases import surrogate_of

from calamint.acquire import EIC, Incumbent
from calamint.acquire.eic import log_standardised_ei
from calamint.model import feasibility

RNG = np.random.default_rng


@pytest.mark.parametrize("z", [-30.0, -5.0, -1.0, -1e-3, 0.0, 1e-3, 2.0, 8.0])
def test_log_standardised_ei_agrees_with_quadrature(z):
    # E max(z − Z, 0) over Z ~ N(0, 1), scaled by φ(z) where it is tiny.
    shift = 0.5 * z**2 if z < 0 else 0.0
    expected, _ = quad(
        lambda t: t * math.exp(-0.5 * (z - t) ** 2 + shift) / math.sqrt(2 * math.pi),
        0,
        abs(z) + 40,
        points=[max(z, 0.0), 1.0],
        limit=400,
    )
    value, derivative = log_standardised_ei(np.array([z]))
    assert value[0] == pytest.approx(math.log(expected) - shift, rel=1e-8, abs=1e-8)
    step = 1e-5 * max(1, abs(z))
    above, below = (
        log_standardised_ei(np.array([z + step]))[0],
        log_standardised_ei(np.array([z - step]))[0],
    )
    assert derivative[0] == pytest.approx((above - below)[0] / (2 * step), rel=1e-5)


def test_log_standardised_ei_is_finite_and_increasing_over_all_magnitudes():
    powers = 10.0 ** np.arange(-99, 99, 0.5)
    z = np.concatenate([-powers[::-1], powers])
    value, derivative = log_standardised_ei(z)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(derivative))
    assert np.all(derivative > 0)
    assert np.all(np.diff(value) >= 0)


def test_value_agrees_with_monte_carlo():
    surrogate = surrogate_of()
    x = RNG(2).random((5, 2))
    eta = -0.2
    acq_function = EIC().build(surrogate, Incumbent(x[0], eta), RNG(0))
    draws = 400_000
    normal = RNG(3)
    for point in x:
        total = np.zeros(draws)
        for j in range(3):
            mean, variance = surrogate.objective.posterior.mean_variance(point[None])
            f = mean[j, 0] + np.sqrt(variance[j, 0]) * normal.standard_normal(draws)
            met = np.ones(draws, dtype=bool)
            for function in surrogate.constraints:
                mean, variance = function.posterior.mean_variance(point[None])
                c = mean[j, 0] + np.sqrt(variance[j, 0]) * normal.standard_normal(draws)
                met &= (c >= function.low) & (c <= function.high)
            total += np.maximum(eta - f, 0) * met / 3
        error = total.std() / math.sqrt(draws)
        assert abs(math.exp(acq_function.value(point[None])[0]) - total.mean()) < 4.5 * error + 1e-9


@pytest.mark.parametrize("eta", [None, -0.5, 2.0])
def test_gradient_matches_finite_differences(eta):
    surrogate = surrogate_of()
    x = RNG(2).random((6, 2))
    acq_function = EIC().build(surrogate, Incumbent(x[0], eta), RNG(0))
    value, gradient = acq_function.value_gradient(x)
    assert np.allclose(value, acq_function.value(x))
    step = 1e-6
    for d in range(2):
        shift = step * np.eye(2)[d]
        difference = (acq_function.value(x + shift) - acq_function.value(x - shift)) / (2 * step)
        assert np.allclose(gradient[:, d], difference, rtol=1e-4, atol=1e-5)


def test_without_an_incumbent_only_feasibility_counts():
    surrogate = surrogate_of()
    x = RNG(2).random((20, 2))
    acq_function = EIC().build(surrogate, Incumbent(x[0], None), RNG(0))
    assert np.allclose(
        np.exp(acq_function.value(x)), feasibility.probability(surrogate, x), rtol=1e-10
    )


def test_one_constraint_in_closed_form():
    surrogate = surrogate_of(constraints=["c >= 0"], samples=1)
    x = RNG(2).random((4, 2))
    acq_function = EIC().build(surrogate, Incumbent(x[0], 0.1), RNG(0))
    mean, variance = (moment[0] for moment in surrogate.objective.posterior.mean_variance(x))
    z = (0.1 - mean) / np.sqrt(variance)
    improvement = np.sqrt(variance) * (norm.pdf(z) + z * norm.cdf(z))
    assert np.allclose(
        np.exp(acq_function.value(x)),
        improvement * feasibility.probability(surrogate, x),
        rtol=1e-10,
    )
