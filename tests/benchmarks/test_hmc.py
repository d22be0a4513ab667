"""The sampler's diagnostics, against ArviZ."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from hmc import effective_sample_size, gelman_rubin, geweke


def autoregressive(correlation, chains=2, length=1000, seed=0):
    """(chains, length) draws, each correlated with the last."""
    rng = np.random.default_rng(seed)
    draws = np.empty((chains, length))
    draws[:, 0] = rng.standard_normal(chains)
    for step in range(1, length):
        noise = rng.standard_normal(chains) * np.sqrt(1 - correlation**2)
        draws[:, step] = correlation * draws[:, step - 1] + noise
    return draws


@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("length", [60, 301, 1000])
def test_effective_sample_sizes_are_those_of_arviz(correlation, length):
    draws = autoregressive(correlation, length=length)
    theirs = float(array_stats.ess(draws, method="mean"))
    assert effective_sample_size(draws) == pytest.approx(theirs, rel=1e-6)


def test_an_autoregressive_chain_has_the_size_of_theory():
    draws = autoregressive(0.8, chains=4, length=20_000)
    assert effective_sample_size(draws) == pytest.approx(80_000 * 0.2 / 1.8, rel=0.1)


@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
def test_r_hat_is_that_of_arviz(shift):
    draws = autoregressive(0.5) + np.array([[0.0], [shift]])
    theirs = float(array_stats.rhat(draws, method="identity"))
    assert gelman_rubin(draws) == pytest.approx(theirs, rel=1e-9)


def test_geweke_is_about_standard_normal_for_a_chain_that_has_settled():
    scores = [geweke(autoregressive(0.5, 1, 2000, seed)[0]) for seed in range(300)]
    # Its std is one: that of 300 draws is within four standard errors of it.
    assert np.std(scores) == pytest.approx(1.0, abs=4 / np.sqrt(2 * 300) + 0.05)
    assert abs(np.mean(scores)) < 4 / np.sqrt(300)
    drifting = autoregressive(0.5, 1, 2000)[0] + np.linspace(0, 2, 2000)
    assert abs(geweke(drifting)) > 3
