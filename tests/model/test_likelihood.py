"""Marginal likelihood against SciPy's dense algebra, gradient against finite differences."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.model.conftest import likelihood, thetas

from calamint.model import likelihood as likelihood_module
from calamint.model.cholesky import factorise


def dense_covariance(e, theta):
    """K by loops, from the definition."""
    scale, amplitude, noise = np.exp(theta[:-3]), np.exp(theta[-3]), np.exp(theta[-2])
    inputs = e.data.inputs
    matrix = np.empty((len(inputs), len(inputs)))
    for i, a in enumerate(inputs):
        for j, b in enumerate(inputs):
            r = np.sqrt(np.sum(((a - b) / scale) ** 2))
            matrix[i, j] = (
                amplitude**2
                * {
                    "se": np.exp(-(r**2) / 2),
                    "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
                    "matern52": (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
                }[e.kernel.name]
            )
    known = e.data.noise_variance / e.transform.scale**2
    return matrix + np.diag(np.where(np.isnan(known), noise, known))


def test_likelihood_is_the_normal_density_of_the_data(kernel_name):
    e = likelihood(kernel_name)
    theta = thetas()
    targets = (e.data.values - e.transform.offset) / e.transform.scale
    for row, value in zip(theta, e.log_likelihood(theta), strict=True):
        expected = multivariate_normal(
            np.full(len(targets), row[-1]), dense_covariance(e, row)
        ).logpdf(targets)
        assert value == pytest.approx(expected, rel=1e-8)
        assert e.log_likelihood_gradient(row)[0] == pytest.approx(expected, rel=1e-8)


def test_known_noise_replaces_the_learnt():
    e = likelihood(known=0.04)
    theta = thetas(count=1)[0]
    targets = (e.data.values - e.transform.offset) / e.transform.scale
    covariance = dense_covariance(e, theta)
    assert covariance[0, 0] == pytest.approx(np.exp(2 * theta[-3]) + 0.04 / 1.2**2)
    expected = multivariate_normal(np.full(len(targets), theta[-1]), covariance).logpdf(targets)
    assert e.log_likelihood(theta[None])[0] == pytest.approx(expected, rel=1e-8)
    assert e.log_likelihood_gradient(theta)[1][-2] == 0


@pytest.mark.parametrize("known", [None, 0.04])
def test_gradient_matches_finite_differences(kernel_name, known):
    e = likelihood(kernel_name, known=known)
    theta = thetas(count=1)[0]
    _, gradient = e.log_likelihood_gradient(theta)
    step = 1e-5
    for entry in range(len(theta)):
        shift = np.zeros_like(theta)
        shift[entry] = step
        above, below = e.log_likelihood(np.stack([theta + shift, theta - shift]))
        assert gradient[entry] == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-7)


def test_stacks_of_matrices_say_the_same_as_one_after_the_other(monkeypatch):
    """Also if one of the stack needs jitter: there inputs coincide, and there is no noise."""
    for count, noise in ((5, 0.0), (20, 0.0), (20, -50.0)):
        e, theta = likelihood(count=count), thetas(count=6)
        theta[2, -2] += noise
        theta[2, :-3] += 3.0 if noise else 0.0
        stacked = e.log_likelihood(theta)
        with monkeypatch.context() as patched:
            patched.setattr(likelihood_module, "_SMALL", 0)
            alone = e.log_likelihood(theta)
        # Of a matrix that is singular but for its jitter, rounding errors are seen.
        tolerance = np.where(np.arange(6) == 2, 1e-6 if noise else 1e-9, 1e-9)
        assert np.all(np.abs(stacked - alone) <= tolerance * np.abs(alone))


def test_batching_changes_nothing():
    e = likelihood()
    theta = thetas(count=7)
    together = e.log_likelihood(theta)
    alone = [e.log_likelihood(row[None])[0] for row in theta]
    assert np.allclose(together, alone, rtol=1e-10)


def test_no_data_is_no_likelihood():
    e = likelihood(count=0)
    theta = thetas()
    assert np.array_equal(e.log_likelihood(theta), np.zeros(3))
    assert np.array_equal(e.log_likelihood_gradient(theta[0])[1], np.zeros(5))


def test_jitter_is_the_smallest_that_works():
    smooth = np.exp(-0.5 * np.subtract.outer(np.linspace(0, 1, 40), np.linspace(0, 1, 40)) ** 2)
    root, jitter = factorise(smooth)
    assert 0 < jitter < 1e-12
    assert np.allclose(root @ root.T, smooth, atol=10 * jitter)
    assert factorise(np.eye(3))[1] == 0
    with pytest.raises(np.linalg.LinAlgError):
        factorise(np.full((2, 2), np.nan))
