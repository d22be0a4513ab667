"""Expected improvement with constraints: against quadrature and Monte Carlo, value and gradient."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from tests.acquire.cases import belief_of

from calamint.acquire import EIC, Incumbent
from calamint.acquire.eic import log_improvement
from calamint.model import feasibility

RNG = np.random.default_rng


@pytest.mark.parametrize("z", [-30.0, -5.0, -1.0, -1e-3, 0.0, 1e-3, 2.0, 8.0])
def test_log_improvement_agrees_with_quadrature(z):
    # E max(z − Z, 0) over Z ~ N(0, 1), scaled by φ(z) where it is tiny.
    shift = 0.5 * z**2 if z < 0 else 0.0
    expected, _ = quad(
        lambda t: t * math.exp(-0.5 * (z - t) ** 2 + shift) / math.sqrt(2 * math.pi),
        0,
        abs(z) + 40,
        points=[max(z, 0.0), 1.0],
        limit=400,
    )
    value, slope = log_improvement(np.array([z]))
    assert value[0] == pytest.approx(math.log(expected) - shift, rel=1e-8, abs=1e-8)
    step = 1e-5 * max(1, abs(z))
    above, below = (
        log_improvement(np.array([z + step]))[0],
        log_improvement(np.array([z - step]))[0],
    )
    assert slope[0] == pytest.approx((above - below)[0] / (2 * step), rel=1e-5)


def test_log_improvement_is_finite_and_increasing_over_all_magnitudes():
    powers = 10.0 ** np.arange(-99, 99, 0.5)
    z = np.concatenate([-powers[::-1], powers])
    value, slope = log_improvement(z)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(slope))
    assert np.all(slope > 0)
    assert np.all(np.diff(value) >= 0)


def test_value_agrees_with_monte_carlo():
    belief = belief_of()
    x = RNG(2).random((5, 2))
    eta = -0.2
    utility = EIC().prepare(belief, Incumbent(x[0], eta), RNG(0))
    draws = 400_000
    normal = RNG(3)
    for point in x:
        total = np.zeros(draws)
        for j in range(3):
            mean, variance = belief.objective.process.moments(point[None])
            f = mean[j, 0] + np.sqrt(variance[j, 0]) * normal.standard_normal(draws)
            met = np.ones(draws, dtype=bool)
            for function in belief.constraints:
                mean, variance = function.process.moments(point[None])
                c = mean[j, 0] + np.sqrt(variance[j, 0]) * normal.standard_normal(draws)
                met &= (c >= function.low) & (c <= function.high)
            total += np.maximum(eta - f, 0) * met / 3
        error = total.std() / math.sqrt(draws)
        assert abs(math.exp(utility.value(point[None])[0]) - total.mean()) < 4.5 * error + 1e-9


@pytest.mark.parametrize("eta", [None, -0.5, 2.0])
def test_gradient_matches_finite_differences(eta):
    belief = belief_of()
    x = RNG(2).random((6, 2))
    utility = EIC().prepare(belief, Incumbent(x[0], eta), RNG(0))
    value, gradient = utility.value_gradient(x)
    assert np.allclose(value, utility.value(x))
    step = 1e-6
    for d in range(2):
        shift = step * np.eye(2)[d]
        difference = (utility.value(x + shift) - utility.value(x - shift)) / (2 * step)
        assert np.allclose(gradient[:, d], difference, rtol=1e-4, atol=1e-5)


def test_without_an_incumbent_only_feasibility_counts():
    belief = belief_of()
    x = RNG(2).random((20, 2))
    utility = EIC().prepare(belief, Incumbent(x[0], None), RNG(0))
    assert np.allclose(np.exp(utility.value(x)), feasibility.probability(belief, x), rtol=1e-10)


def test_one_constraint_in_closed_form():
    belief = belief_of(constraints=["c >= 0"], samples=1)
    x = RNG(2).random((4, 2))
    utility = EIC().prepare(belief, Incumbent(x[0], 0.1), RNG(0))
    mean, variance = (moment[0] for moment in belief.objective.process.moments(x))
    z = (0.1 - mean) / np.sqrt(variance)
    improvement = np.sqrt(variance) * (norm.pdf(z) + z * norm.cdf(z))
    assert np.allclose(
        np.exp(utility.value(x)), improvement * feasibility.probability(belief, x), rtol=1e-10
    )
