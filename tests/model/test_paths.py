"""Sample paths: moments of the posterior, gradients, interpolation."""

import numpy as np
import pytest
from tests.model.conftest import likelihood, thetas

from calamint.model.paths import draw_paths

RNG = np.random.default_rng
X = np.random.default_rng(4).random((5, 2))


def test_mean_and_covariance_are_the_posterior(kernel_name):
    """With features of their own, moments over paths are exact up to Monte Carlo error."""
    posterior = likelihood(kernel_name, count=6).posterior(thetas(count=1, noise=-2.0))
    count = 4000
    each = posterior.take(np.zeros(count, int))
    paths = draw_paths(each, np.arange(count), np.random.default_rng(0), features=64)
    values = paths.values(X)
    mean, variance = (moment[0] for moment in posterior.mean_variance(X))
    covariance = posterior.covariance(X, X)[0]
    # Paths are scale mixtures of normals (finite features): allow for their heavier tails.
    assert np.all(np.abs(values.mean(0) - mean) < 4.5 * np.sqrt(variance / count))
    error = np.cov(values.T) - covariance
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / count)
    assert np.all(np.abs(error) < 5 * spread)


def test_paths_under_different_samples_follow_their_own_posterior():
    posterior = likelihood(count=6).posterior(thetas(count=3, noise=-2.0))
    count = 3 * 1500
    each = posterior.take(np.arange(count) % 3)
    paths = draw_paths(each, np.arange(count), np.random.default_rng(1), features=64)
    values = paths.values(X)
    mean, variance = posterior.mean_variance(X)
    for j in range(3):
        own = values[j::3]
        assert np.all(np.abs(own.mean(0) - mean[j]) < 4.5 * np.sqrt(variance[j] / len(own)))


def test_paths_that_share_their_features_are_draws_from_the_posterior():
    """Three paths under one sample, 2,000 times; the first and the third are independent."""
    posterior = likelihood(count=6).posterior(thetas(count=2, noise=-2.0))
    rng, count, samples = np.random.default_rng(2), 2000, np.array([0, 1, 1, 1])
    drawn = [draw_paths(posterior, samples, rng, features=64) for _ in range(count)]
    assert all(len(paths.phases) == 2 for paths in drawn)
    values = np.array([paths.values(X) for paths in drawn])  # (count, 4, n)
    mean, variance = posterior.mean_variance(X)
    for path, sample in enumerate(samples):
        error = values[:, path].mean(0) - mean[sample]
        assert np.all(np.abs(error) < 4.5 * np.sqrt(variance[sample] / count))
        ratio = values[:, path].var(0) / variance[sample]
        assert np.all(np.abs(ratio - 1) < 6 * np.sqrt(2 / count))
    one, other = ((values[:, path] - mean[1]) / np.sqrt(variance[1]) for path in (1, 3))
    assert np.all(np.abs((one * other).mean(0)) < 4.5 / np.sqrt(count))


def test_every_second_path_mirrors_the_first():
    posterior = likelihood(count=6).posterior(thetas(count=2, noise=-2.0))
    values = draw_paths(posterior, np.array([1, 0, 1, 1, 1, 0]), RNG(0)).values(X)
    mean = posterior.mean_variance(X)[0]
    for first, second, sample in ((1, 5, 0), (0, 2, 1), (3, 4, 1)):
        assert np.allclose(values[[first, second]].mean(0), mean[sample])


def test_noise_free_data_are_interpolated(kernel_name):
    e = likelihood(kernel_name, count=15)
    posterior = e.posterior(thetas(count=4, noise=-np.inf))
    paths = posterior.paths(np.arange(8) % 4, np.random.default_rng(0))
    assert np.allclose(paths.values(e.data.inputs), e.targets, atol=1e-5)


@pytest.mark.parametrize("count", [12, 0])
def test_paths_at_points_of_their_own_have_their_values_and_gradients(kernel_name, count):
    paths = likelihood(kernel_name, count=count).posterior(thetas()).paths(np.arange(3), RNG(0))
    which, step = np.arange(len(X)) % 3, 1e-6
    values, gradients = paths.value_gradient(which, X)
    assert np.allclose(values, paths.values(X)[which, np.arange(len(X))])
    for d in range(2):
        shift = step * np.eye(2)[d]
        above, below = (paths.value_gradient(which, X + s)[0] for s in (shift, -shift))
        assert np.allclose(gradients[:, d], (above - below) / (2 * step), rtol=1e-5, atol=1e-6)


def test_replaced_paths_are_the_others():
    posterior = likelihood().posterior(thetas(count=1))
    ours, others = (posterior.paths(np.zeros(n, int), np.random.default_rng(n)) for n in (4, 2))
    mixed = ours.joined(others).take(np.array([0, 4, 2, 5])).values(X)
    assert np.allclose(mixed[[0, 2]], ours.values(X)[[0, 2]], rtol=1e-12)
    assert np.allclose(mixed[[1, 3]], others.values(X), rtol=1e-12)


def test_no_data_gives_prior_paths():
    posterior = likelihood(count=0).posterior(thetas(count=1))
    each = posterior.take(np.zeros(3000, int))
    paths = draw_paths(each, np.arange(3000), np.random.default_rng(0), features=64)
    values = paths.values(X)
    variance = np.exp(2 * posterior.theta[0, -3])
    assert np.all(np.abs(values.var(0) - variance) < 5 * variance * np.sqrt(2 / 3000))
