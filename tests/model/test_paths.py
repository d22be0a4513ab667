"""Sample paths: moments of the posterior, gradients, interpolation."""

import numpy as np
from tests.model.conftest import evidence, thetas

from calamint.model.paths import Bundle, draw_paths
from calamint.model.posterior import Posterior

X = np.random.default_rng(4).random((5, 2))


def test_mean_and_covariance_are_the_posterior(kernel_name):
    """Every path has its own features, so moments over paths are exact up to Monte Carlo error."""
    posterior = Posterior.of(evidence(kernel_name, count=6), thetas(count=1, noise=-2.0))
    count = 4000
    paths = draw_paths(posterior, count, np.random.default_rng(0), features=64)
    values = paths.values(X)
    mean, variance = (moment[0] for moment in posterior.moments(X))
    covariance = posterior.covariance(X, X)[0]
    # Paths are scale mixtures of normals (finite features): allow for their heavier tails.
    assert np.all(np.abs(values.mean(0) - mean) < 4.5 * np.sqrt(variance / count))
    error = np.cov(values.T) - covariance
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / count)
    assert np.all(np.abs(error) < 5 * spread)


def test_paths_under_different_samples_follow_their_own_posterior():
    posterior = Posterior.of(evidence(count=6), thetas(count=3, noise=-2.0))
    count = 3 * 1500
    paths = draw_paths(posterior, count, np.random.default_rng(1), features=64)
    values = paths.values(X)
    mean, variance = posterior.moments(X)
    for j in range(3):
        own = values[j::3]
        assert np.all(np.abs(own.mean(0) - mean[j]) < 4.5 * np.sqrt(variance[j] / len(own)))


def test_noise_free_data_are_interpolated(kernel_name):
    e = evidence(kernel_name, count=15)
    posterior = Posterior.of(e, thetas(count=4, noise=-np.inf))
    paths = draw_paths(posterior, 8, np.random.default_rng(0))
    assert np.allclose(paths.values(e.data.inputs), e.targets, atol=1e-5)


def test_a_bundle_gives_the_values_of_its_paths_and_their_gradients(kernel_name):
    """Functions with different data and samples, bundled, against each on its own."""
    several = [
        draw_paths(Posterior.of(evidence(kernel_name, count=n), thetas()), 3, rng)
        for n, rng in ((12, np.random.default_rng(0)), (0, np.random.default_rng(1)))
    ]
    bundle, step = Bundle(several), 1e-6
    which = np.arange(len(X)) % 3
    values, gradients = bundle.value_gradient(which, X)
    for function, paths in enumerate(several):
        assert np.allclose(values[:, function], paths.values(X)[which, np.arange(len(X))])
    for d in range(2):
        shift = step * np.eye(2)[d]
        above, below = (bundle.value_gradient(which, X + s)[0] for s in (shift, -shift))
        assert np.allclose(gradients[..., d], (above - below) / (2 * step), rtol=1e-5, atol=1e-6)


def test_replaced_paths_are_the_others():
    posterior = Posterior.of(evidence(), thetas(count=1))
    ours, others = (draw_paths(posterior, n, np.random.default_rng(n)) for n in (4, 2))
    mixed = ours.replaced(np.array([1, 3]), others).values(X)
    assert np.array_equal(mixed[[0, 2]], ours.values(X)[[0, 2]])
    assert np.array_equal(mixed[[1, 3]], others.values(X))


def test_no_data_gives_prior_paths():
    posterior = Posterior.of(evidence(count=0), thetas(count=1))
    paths = draw_paths(posterior, 3000, np.random.default_rng(0), features=64)
    values = paths.values(X)
    variance = np.exp(2 * posterior.theta[0, -3])
    assert np.all(np.abs(values.var(0) - variance) < 5 * variance * np.sqrt(2 / 3000))
