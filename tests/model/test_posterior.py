"""GPPosterior moments against dense algebra, gradients against finite differences, appending."""

from dataclasses import replace

import numpy as np
import pytest
from tests.model.conftest import likelihood, thetas
from tests.model.test_likelihood import dense_covariance

from calamint.model.data import Data


def joint_covariance(e, theta, x):
    """Prior covariance of measurements and x together, by the dense definition."""
    both = Data(
        np.vstack([e.data.inputs, x]),
        np.zeros(len(e.data) + len(x)),
        np.append(e.data.noise_variance, np.zeros(len(x))),
    )
    return dense_covariance(replace(e, data=both), theta)


def dense_posterior(e, theta, x):
    count = len(e.data)
    joint = joint_covariance(e, theta, x)
    gain = np.linalg.solve(joint[:count, :count], joint[:count, count:]).T
    targets = (e.data.values - e.transform.offset) / e.transform.scale
    mean = theta[-1] + gain @ (targets - theta[-1])
    return mean, joint[count:, count:] - gain @ joint[:count, count:]


X = np.random.default_rng(9).random((6, 2))


def test_moments_and_covariance_agree_with_dense_algebra(kernel_name):
    e = likelihood(kernel_name)
    theta = thetas()
    posterior = e.posterior(theta)
    mean, variance = posterior.mean_variance(X)
    covariance = posterior.covariance(X[:2], X[2:])
    for j, row in enumerate(theta):
        dense_mean, dense = dense_posterior(e, row, X)
        assert np.allclose(mean[j], dense_mean, rtol=1e-8, atol=1e-8)
        assert np.allclose(variance[j], np.diagonal(dense), rtol=1e-8, atol=1e-8)
        assert np.allclose(covariance[j], dense[:2, 2:], rtol=1e-8, atol=1e-8)


def test_gradients_match_finite_differences(kernel_name):
    posterior = likelihood(kernel_name).posterior(thetas())
    mean, variance, mean_gradient, variance_gradient = posterior.mean_variance_gradient(X)
    assert np.allclose((mean, variance), posterior.mean_variance(X), rtol=1e-12)
    step = 1e-6
    for d in range(2):
        shift = step * np.eye(2)[d]
        above, below = posterior.mean_variance(X + shift), posterior.mean_variance(X - shift)
        assert np.allclose(
            mean_gradient[..., d], (above[0] - below[0]) / (2 * step), rtol=1e-5, atol=1e-7
        )
        assert np.allclose(
            variance_gradient[..., d], (above[1] - below[1]) / (2 * step), rtol=1e-5, atol=1e-7
        )


def test_shared_length_scales_for_the_columns_of_a_choice():
    e = replace(likelihood(dimension=3), parameter_index=np.array([0, 1, 1]))
    theta = thetas(dimension=2, count=2)
    spread = np.column_stack([theta[:, [0, 1, 1]], theta[:, 2:]])
    shared = e.posterior(theta)
    separate = replace(e, parameter_index=np.arange(3)).posterior(spread)
    x = np.random.default_rng(0).random((5, 3))
    assert np.allclose(shared.mean_variance_gradient(x)[2], separate.mean_variance_gradient(x)[2])
    assert np.allclose(shared.mean_variance(x), separate.mean_variance(x))


def test_blocks_of_points_change_nothing():
    posterior = likelihood(count=60).posterior(thetas(count=20))
    x = np.random.default_rng(0).random((200, 2))
    together = posterior.mean_variance(x)
    alone = [posterior.mean_variance(point[None]) for point in x]
    assert np.allclose(together[0], np.column_stack([mean for mean, _ in alone]), rtol=1e-10)
    assert np.allclose(
        together[1], np.column_stack([variance for _, variance in alone]), rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("known", [None, 0.1])
def test_appending_equals_refitting(kernel_name, known):
    e = likelihood(kernel_name, count=12, known=known)
    theta = thetas()
    fewer = replace(
        e, data=Data(e.data.inputs[:-1], e.data.values[:-1], e.data.noise_variance[:-1])
    )
    short = fewer.posterior(theta)
    noise = short.noise if known is None else np.full(3, known / e.transform.scale**2)
    grown = short.append(e.data.inputs[-1], np.full(3, e.targets[-1]), noise)
    whole = e.posterior(theta)
    assert np.allclose(grown.mean_variance(X), whole.mean_variance(X), rtol=1e-9, atol=1e-9)
    assert np.allclose(grown.inverse_root, whole.inverse_root, rtol=1e-7, atol=1e-7)
    assert np.allclose(grown.data_noise, whole.data_noise)


def test_appending_a_noise_free_duplicate_is_survived():
    theta = thetas(noise=-np.inf)
    posterior = likelihood().posterior(theta)
    point = posterior.inputs[3]
    mean, _ = posterior.mean_variance(point[None])
    again = posterior.append(point, mean[:, 0], np.zeros(3))
    assert np.all(again.jitter > 0)
    assert np.all(again.jitter < 1e-10)
    assert np.allclose(again.mean_variance(X)[0], posterior.mean_variance(X)[0], atol=1e-4)


def test_no_data_gives_the_prior():
    theta = thetas()
    mean, variance = likelihood(count=0).posterior(theta).mean_variance(X)
    assert np.allclose(mean, theta[:, -1:])
    assert np.allclose(variance, np.exp(2 * theta[:, -3:-2]))


def test_noise_free_data_are_met():
    e = likelihood()
    posterior = e.posterior(thetas(noise=-np.inf))
    mean, variance = posterior.mean_variance(e.data.inputs)
    assert np.allclose(mean, e.targets, atol=1e-7)
    assert np.all(variance < 1e-10)


@pytest.mark.parametrize("known", [None, 0.01])
def test_leaving_one_out_is_conditioning_on_the_others(kernel_name, known):
    e = likelihood(kernel_name, known=known)
    theta = thetas()
    mean, variance = e.posterior(theta).leave_one_out()
    for index in range(len(e.data)):
        others = e.data.take(np.delete(np.arange(len(e.data)), index))
        without = replace(e, data=others).posterior(theta)
        there = e.data.inputs[index : index + 1]
        expected_mean, expected_variance = without.mean_variance(there)
        assert np.allclose(mean[:, index], expected_mean[:, 0], rtol=1e-7, atol=1e-8)
        assert np.allclose(variance[:, index], expected_variance[:, 0], rtol=1e-6, atol=1e-8)


def test_believing_several_is_believing_one_after_the_other(kernel_name):
    posterior = likelihood(kernel_name).posterior(thetas())
    points = np.random.default_rng(5).random((6, 2))
    one_by_one = posterior
    for point in points:
        mean = one_by_one.mean_variance(point[None])[0][:, 0]
        one_by_one = one_by_one.append(point, mean, one_by_one.noise)
    together = posterior.append_expected(points)
    assert np.array_equal(together.inputs, one_by_one.inputs)
    for name in ("inverse_root", "white", "weights", "data_noise"):
        assert np.allclose(getattr(together, name), getattr(one_by_one, name), rtol=1e-6, atol=1e-8)
    # What is expected elsewhere has not changed, and is known better.
    before, after = posterior.mean_variance(X), together.mean_variance(X)
    assert np.allclose(after[0], before[0], atol=1e-8)
    assert np.all(after[1] <= before[1] + 1e-12)


def test_believing_the_same_place_twice_is_survived():
    posterior = likelihood().posterior(thetas(noise=-np.inf))
    points = np.array([[0.3, 0.3], [0.3, 0.3], posterior.inputs[2]])
    after = posterior.append_expected(points)
    assert np.all(after.jitter < 1e-6)
    assert np.allclose(after.mean_variance(X)[0], posterior.mean_variance(X)[0], atol=1e-4)
