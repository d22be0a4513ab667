"""The factors' moments against quadrature, and far into the tails."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import norm

from calamint.acquire.pesc.factors import Limits, gamma, psi

HALF_LINE = Limits(np.array([0.0]), np.array([math.inf]))
INTERVAL = Limits(np.array([-0.5]), np.array([0.7]))


def log_z(mean_g, var_g, mean_c, var_c, limits):
    """log ∫∫ (1 − [g < 0][c within limits]) N(g) N(c), by its closed form in high precision."""
    inside = norm.cdf(limits.high[0], mean_c, math.sqrt(var_c)) - norm.cdf(
        limits.low[0], mean_c, math.sqrt(var_c)
    )
    return math.log1p(-norm.cdf(0, mean_g, math.sqrt(var_g)) * inside)


def one(value):
    return np.array([value])


@pytest.mark.parametrize("limits", [HALF_LINE, INTERVAL])
@pytest.mark.parametrize("mean_g", [-2.0, 0.3, 1.5])
@pytest.mark.parametrize("mean_c", [-1.0, 0.2, 2.0])
def test_psi_has_the_derivatives_of_its_normaliser(limits, mean_g, mean_c):
    var_g, var_c, step = 0.8, 0.5, 1e-4
    factor = psi(one(mean_g), one(var_g), one([mean_c]), one([var_c]), limits)

    def first(f):
        return (f(step) - f(-step)) / (2 * step)

    def second(f):
        return (f(step) - 2 * f(0.0) + f(-step)) / step**2

    grad_g = lambda h: log_z(mean_g + h, var_g, mean_c, var_c, limits)  # noqa: E731
    grad_c = lambda h: log_z(mean_g, var_g, mean_c + h, var_c, limits)  # noqa: E731
    assert factor.rho_f[0] == pytest.approx(first(grad_g), rel=1e-5, abs=1e-8)
    assert factor.kappa_f[0] == pytest.approx(-second(grad_g), rel=1e-4, abs=1e-6)
    assert factor.rho_c[0, 0] == pytest.approx(first(grad_c), rel=1e-5, abs=1e-8)
    assert factor.kappa_c[0, 0] == pytest.approx(-second(grad_c), rel=1e-4, abs=1e-6)


def test_psi_with_several_constraints_agrees_with_monte_carlo():
    rng = np.random.default_rng(0)
    limits = Limits(np.array([0.0, -np.inf, -1.0]), np.array([np.inf, 0.5, 1.0]))
    mean_g, var_g = -0.4, 0.6
    mean_c, var_c = np.array([0.3, 0.1, 0.4]), np.array([0.5, 0.9, 0.3])
    count = 2_000_000
    g = mean_g + math.sqrt(var_g) * rng.standard_normal(count)
    c = mean_c + np.sqrt(var_c) * rng.standard_normal((count, 3))
    better = (g < 0) & np.all((c >= limits.low) & (c <= limits.high), axis=1)
    factor = psi(one(mean_g), one(var_g), one(mean_c), one(var_c), limits)
    kept_g, kept_c = g[~better], c[~better]
    tilted = mean_g + var_g * factor.rho_f[0]
    assert abs(tilted - kept_g.mean()) < 4.5 * kept_g.std() / math.sqrt(len(kept_g))
    variance = var_g - var_g**2 * factor.kappa_f[0]
    assert variance == pytest.approx(kept_g.var(), rel=0.01)
    for k in range(3):
        tilted = mean_c[k] + var_c[k] * factor.rho_c[0, k]
        assert abs(tilted - kept_c[:, k].mean()) < 4.5 * kept_c[:, k].std() / math.sqrt(len(kept_g))
        variance = var_c[k] - var_c[k] ** 2 * factor.kappa_c[0, k]
        assert variance == pytest.approx(kept_c[:, k].var(), rel=0.01)


def test_psi_without_constraints_is_the_step_of_plain_entropy_search():
    no = Limits(np.empty(0), np.empty(0))
    factor = psi(one(0.3), one(0.5), np.empty((1, 0)), np.empty((1, 0)), no)
    alpha = 0.3 / math.sqrt(0.5)
    ratio = norm.pdf(alpha) / norm.cdf(alpha)
    assert factor.rho_f[0] == pytest.approx(ratio / math.sqrt(0.5))
    assert factor.kappa_f[0] == pytest.approx(ratio * (ratio + alpha) / 0.5)


@pytest.mark.parametrize("limits", [HALF_LINE, INTERVAL])
@pytest.mark.parametrize("mean", [-3.0, 0.1, 2.0])
def test_gamma_gives_the_moments_of_a_truncated_normal(limits, mean):
    variance = 0.6
    density = norm(mean, math.sqrt(variance)).pdf
    ends = (limits.low[0], min(limits.high[0], mean + 20))
    mass, _ = quad(density, *ends)
    centre, _ = quad(lambda t: t * density(t) / mass, *ends)
    spread, _ = quad(lambda t: (t - centre) ** 2 * density(t) / mass, *ends)
    rho, kappa = gamma(one([mean]), one([variance]), limits)
    assert mean + variance * rho[0, 0] == pytest.approx(centre, rel=1e-6)
    assert variance - variance**2 * kappa[0, 0] == pytest.approx(spread, rel=1e-5)


def test_many_orders_of_magnitude_stay_finite():
    powers = 10.0 ** np.arange(-9, 9, 3)
    mean, variance = (a.ravel() for a in np.meshgrid(np.append(-powers, powers), powers))
    for limits in (HALF_LINE, INTERVAL):
        for sign in (-1, 1):
            factor = psi(
                sign * mean, variance, mean[::-1, None], variance[:, None], limits, order=4
            )
            for part in (factor.rho_f, factor.kappa_f, factor.rho_c, factor.kappa_c):
                assert np.all(np.isfinite(part))
        rho, kappa = gamma(mean[:, None], variance[:, None], limits)
        assert np.all(np.isfinite(rho))
        assert np.all(1 - kappa * variance[:, None] > -1e-6)


def test_log_z_does_not_cancel():
    """Where z is almost surely better, 1 − Φ·P would be zero; its logarithm is not."""
    factor = psi(one(-12.0), one(1.0), one([9.0]), one([1.0]), HALF_LINE)
    expected, _ = dblquad(
        lambda c, g: norm.pdf(g, -12) * norm.pdf(c, 9), 0, 3, -np.inf, np.inf, epsabs=0
    )
    tail = norm.cdf(0, 9) + expected
    assert factor.beta[0] == pytest.approx(norm.pdf(-12) / tail, rel=1e-3)
