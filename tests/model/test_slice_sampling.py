"""The sampler draws from the posterior: against quadrature, and against a long plain run."""

import numpy as np
import pytest
from tests.model.conftest import likelihood

from calamint.model.hyperparameters import Prior
from calamint.model.map_estimate import log_posterior, most_probable
from calamint.model.slice_sampling import draw_samples


def plain_slice_chains(evidence_, prior, chains, steps, rng):
    """Elliptical slice sampling on the prior's own ellipses: slow, simple, independent of ours.

    -> (steps, chains, F)
    """
    free = prior.free
    centre, spread = prior.centre[free], prior.spread[free]

    def log_density(z):
        theta = prior.complete(centre + spread * z)
        inside = np.all((theta >= prior.low) & (theta <= prior.high) | ~free, axis=-1)
        values = np.full(len(z), -np.inf)
        values[inside] = evidence_.log_likelihood(theta[inside])
        return values

    start = most_probable(evidence_, prior, rng)[free]
    z = np.repeat(((start - centre) / spread)[None], chains, axis=0)
    level, kept = log_density(z), []
    for _ in range(steps):
        partner = rng.standard_normal(z.shape)
        threshold = level - rng.exponential(size=chains)
        angle = rng.uniform(0, 2 * np.pi, size=chains)
        low, high = angle - 2 * np.pi, angle.copy()
        waiting = np.ones(chains, dtype=bool)
        new, new_level = z.copy(), level.copy()
        while waiting.any():
            at = np.flatnonzero(waiting)
            proposal = z[at] * np.cos(angle[at, None]) + partner[at] * np.sin(angle[at, None])
            value = log_density(proposal)
            good = value > threshold[at]
            new[at[good]], new_level[at[good]] = proposal[good], value[good]
            waiting[at[good]] = False
            bad = at[~good]
            low[bad] = np.where(angle[bad] < 0, angle[bad], low[bad])
            high[bad] = np.where(angle[bad] >= 0, angle[bad], high[bad])
            angle[bad] = rng.uniform(low[bad], high[bad])
        z, level = new, new_level
        kept.append(centre + spread * z)
    return np.array(kept)


def assert_same_distribution(draws, reference):
    """Means and spreads within Monte Carlo error; reference (steps, chains, F)."""
    chain_means = reference.mean(0)
    mean, spread = reference.mean((0, 1)), reference.std((0, 1))
    own_error = spread / np.sqrt(len(draws))
    reference_error = chain_means.std(0) / np.sqrt(len(chain_means))
    assert np.all(np.abs(draws.mean(0) - mean) < 4.5 * np.hypot(own_error, reference_error))
    # The error of a standard deviation from its fourth moment, for draws and reference alike.
    kurtosis = ((reference - mean) ** 4).mean((0, 1)) / spread**4
    own = np.sqrt((kurtosis - 1) / 4 / len(draws))
    chain_spreads = reference.std(0)
    others = chain_spreads.std(0) / spread / np.sqrt(len(chain_means))
    assert np.all(np.abs(draws.std(0) / spread - 1) < 4.5 * np.hypot(own, others))


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_draws_agree_with_quadrature_over_two_entries(noise):
    e = likelihood(count=8, dimension=1, noise=noise)
    fixed = np.array([np.nan, np.nan, np.log(0.01 + noise**2), 0.0])
    prior = Prior.standard(1, fixed)
    draws = draw_samples(e, prior, 2000, np.random.default_rng(0))[:, :2]
    axes = [
        np.linspace(c - 5 * s, c + 5 * s, 121)
        for c, s in zip(draws.mean(0), draws.std(0), strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    log_density = log_posterior(e, prior, prior.complete(grid))
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    std = np.sqrt(weights @ (grid - mean) ** 2)
    assert np.all(np.abs(draws.mean(0) - mean) < 4.5 * std / np.sqrt(2000))
    fourth = weights @ (grid - mean) ** 4 / std**4
    assert np.all(np.abs(draws.std(0) / std - 1) < 4.5 * np.sqrt((fourth - 1) / 4 / 2000))


@pytest.mark.parametrize(("dimension", "count", "steps"), [(2, 15, 6000), (12, 20, 2500)])
def test_draws_agree_with_a_long_reference_run(dimension, count, steps):
    e = likelihood(count=count, dimension=dimension, noise=0.1)
    prior = Prior.standard(dimension)
    reference = plain_slice_chains(e, prior, 24, steps, np.random.default_rng(1))[steps // 5 :]
    cold = draw_samples(e, prior, 600, np.random.default_rng(2))
    assert_same_distribution(cold[:, prior.free], reference)
    warm = draw_samples(e, prior, 600, np.random.default_rng(3), warm=cold)
    assert_same_distribution(warm[:, prior.free], reference)


def test_warm_starts_from_other_data_forget_them():
    """Draws given the first half of the data are a fair start for draws given all of them."""
    e = likelihood(count=20, noise=0.1)
    prior = Prior.standard(2)
    half = likelihood(count=20, noise=0.1, seed=0)
    half = type(half)(
        half.kernel,
        type(half.data)(
            half.data.inputs[:10], half.data.values[:10], half.data.noise_variance[:10]
        ),
        half.transform,
        half.parameter_index,
    )
    before = draw_samples(half, prior, 600, np.random.default_rng(0))
    after = draw_samples(e, prior, 600, np.random.default_rng(1), warm=before)
    fresh = draw_samples(e, prior, 600, np.random.default_rng(2))
    error = np.hypot(after.std(0), fresh.std(0)) / np.sqrt(600)
    assert np.all(np.abs(after.mean(0) - fresh.mean(0)) < 4.5 * error)


def test_fixed_entries_stay_fixed():
    fixed = np.array([np.nan, np.nan, np.nan, -np.inf, np.nan])
    draws = draw_samples(likelihood(), Prior.standard(2, fixed), 5, np.random.default_rng(0))
    assert np.all(draws[:, 3] == -np.inf)
    assert np.all(draws[:, :3].std(0) > 0)
    everything = np.array([0.1, 0.2, 0.3, -4.0, 0.0])
    draws = draw_samples(likelihood(), Prior.standard(2, everything), 5, np.random.default_rng(0))
    assert np.array_equal(draws, np.repeat(everything[None], 5, axis=0))


def test_without_data_the_draws_are_the_prior():
    prior = Prior.standard(2)
    draws = draw_samples(likelihood(count=0), prior, 4000, np.random.default_rng(0))
    assert np.all(np.abs(draws.mean(0) - prior.centre) < 4.5 * prior.spread / np.sqrt(4000) + 0.15)


def test_the_most_probable_is_a_maximum_and_the_gradient_vanishes_there():
    for use_prior in (True, False):
        e = likelihood(count=20, noise=0.2)
        prior = Prior.standard(2)
        best = most_probable(e, prior, np.random.default_rng(0), use_prior=use_prior)

        def value(theta, e=e, prior=prior, use_prior=use_prior):
            likelihood = e.log_likelihood(theta[None])[0]
            return likelihood + (prior.log_density(theta) if use_prior else 0.0)

        rng = np.random.default_rng(1)
        for _ in range(50):
            nearby = np.clip(best + 0.05 * rng.standard_normal(5), prior.low, prior.high)
            assert value(nearby) <= value(best) + 1e-4


def test_the_prior_scales_length_scales_with_dimension():
    assert np.allclose(Prior.standard(16).centre[:16] - Prior.standard(1).centre[0], np.log(4.0))
