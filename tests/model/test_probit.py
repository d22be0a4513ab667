"""Pass/fail data: against weighted draws from the prior, derivatives against finite differences."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from calamint.model.data import Data
from calamint.model.hyperparameters import Prior
from calamint.model.kernels import KERNELS
from calamint.model.map_estimate import most_probable
from calamint.model.probit import ProbitLikelihood
from calamint.model.slice_sampling import draw_samples

RNG = np.random.default_rng


def outcomes(passes, inputs):
    count = len(passes)
    data = Data(np.asarray(inputs, float), np.asarray(passes, float), np.full(count, np.nan))
    parameter_index = np.arange(data.inputs.shape[1])
    return ProbitLikelihood(KERNELS["matern52"], data, parameter_index)


def theta(lengthscale=0.3, amplitude=1.0, mean=0.0, columns=1):
    return np.array([[math.log(lengthscale)] * columns + [math.log(amplitude), -math.inf, mean]])


@pytest.mark.parametrize(("amplitude", "mean"), [(1.0, 0.0), (3.0, 0.5), (0.3, -1.0)])
def test_moments_and_evidence_agree_with_weighted_draws(amplitude, mean):
    """Draws of the latent function from its prior, each weighed by what it says of the outcomes."""
    inputs = np.array([[0.1], [0.25], [0.5], [0.6], [0.9]])
    passes = np.array([1, 1, 0, 0, 1])
    made = outcomes(passes, inputs)
    at = theta(amplitude=amplitude, mean=mean)
    x = np.array([[0.1], [0.4], [0.55], [0.75]])
    places = np.vstack([inputs, x])
    distance = np.abs(places - places.T) / 0.3 * math.sqrt(5)
    kernel = amplitude**2 * (1 + distance + distance**2 / 3) * np.exp(-distance)
    draws = 400_000
    root = np.linalg.cholesky(kernel + 1e-10 * np.eye(9))
    latent = mean + RNG(0).standard_normal((draws, 9)) @ root.T
    weights = np.prod(ndtr((2 * passes - 1) * latent[:, :5]), axis=1)
    expected = math.log(weights.mean())
    # EP is exact to about a hundredth here; the draws are to about 1/√(effective number).
    assert made.log_likelihood(at)[0] == pytest.approx(expected, abs=0.02)
    share = weights / weights.sum()
    effective = 1 / (share**2).sum()
    true_mean = share @ latent[:, 5:]
    true_variance = share @ (latent[:, 5:] - true_mean) ** 2
    found_mean, found_variance = (moment[0] for moment in made.posterior(at).mean_variance(x))
    std = np.sqrt(true_variance)
    assert np.all(np.abs(found_mean - true_mean) < (0.03 + 4 / math.sqrt(effective)) * std)
    assert np.allclose(found_variance, true_variance, rtol=0.05 + 6 / math.sqrt(effective))


def test_slopes_of_the_likelihood():
    inputs = RNG(1).random((12, 2))
    made = outcomes(inputs.sum(1) > 1, inputs)
    at = theta(0.4, 1.5, 0.2, columns=2)[0]
    value, gradient = made.log_likelihood_gradient(at)
    assert value == pytest.approx(made.log_likelihood(at[None])[0])
    for index in (0, 1, 2, 4):
        step = np.zeros(len(at))
        step[index] = 1e-4
        there, here = made.log_likelihood(np.array([at + step, at - step]))
        assert gradient[index] == pytest.approx((there - here) / 2e-4, rel=1e-3, abs=1e-5)
    assert gradient[3] == 0  # outcomes have no noise of their own to learn


def test_each_sample_is_on_its_own():
    inputs = RNG(2).random((15, 2))
    made = outcomes(inputs[:, 0] > 0.5, inputs)
    samples = np.vstack([theta(0.2, 1, 0, 2), theta(1.0, 3, 0.5, 2), theta(5.0, 9, -2, 2)])
    together = made.sites(samples)
    for index in range(3):
        alone = made.sites(samples[index : index + 1])
        assert np.allclose(alone.precision[0], together.precision[index], rtol=1e-4, atol=1e-6)
        assert alone.log_evidence[0] == pytest.approx(together.log_evidence[index], abs=1e-5)


@pytest.mark.parametrize("pattern", ["all pass", "contradicting", "many", "none"])
def test_extreme_outcomes_give_finite_beliefs(pattern):
    inputs = {
        "all pass": RNG(3).random((30, 1)),
        "contradicting": np.full((20, 1), 0.5),
        "many": RNG(4).random((150, 1)),
        "none": np.empty((0, 1)),
    }[pattern]
    passes = {
        "all pass": np.ones(30),
        "contradicting": np.arange(20) % 2,
        "many": (np.sin(20 * inputs[:, 0]) > 0) if pattern == "many" else None,
        "none": np.empty(0),
    }[pattern]
    made = outcomes(passes, inputs)
    for at in (theta(0.05, 10.0, 5.0), theta(0.3), theta(90.0, 0.05, -5.0)):
        mean, variance = made.posterior(at).mean_variance(np.linspace(0, 1, 7)[:, None])
        assert np.all(np.isfinite(mean))
        assert np.all(variance > 0)
        assert np.all(np.isfinite(made.log_likelihood(at)))
    if pattern == "contradicting":
        mean, _ = made.posterior(theta()).mean_variance(np.array([[0.5]]))
        assert abs(ndtr(mean[0, 0]) - 0.5) < 0.02


def test_hyperparameters_are_learnt_from_outcomes():
    """A latent function that changes sign every quarter has a short length-scale."""
    inputs = RNG(5).random((60, 1))
    made = outcomes(np.sin(4 * math.pi * inputs[:, 0]) > 0, inputs)
    fixed = np.full(4, np.nan)
    fixed[-2] = -math.inf
    prior = Prior.standard(1, fixed)
    best = most_probable(made, prior, RNG(0))
    assert 0.05 < math.exp(best[0]) < 0.5
    drawn = draw_samples(made, prior, 6, RNG(1))
    assert drawn.shape == (6, 4)
    x = np.array([[0.125], [0.375], [0.625], [0.875]])
    passing = ndtr(made.posterior(drawn).mean_variance(x)[0].mean(0))
    assert np.array_equal(passing > 0.5, [True, False, True, False])


def test_leaving_one_outcome_out_is_what_its_cavity_says():
    """Close to conditioning on the others: expectation propagation approximates both."""
    inputs = np.array([[0.1], [0.25], [0.5], [0.6], [0.9]])
    passes = np.array([1, 1, 0, 0, 1])
    posterior = outcomes(passes, inputs).posterior(theta())
    mean, variance = posterior.leave_one_out()
    for index in range(5):
        others = np.delete(np.arange(5), index)
        without = outcomes(passes[others], inputs[others]).posterior(theta())
        expected, spread = without.mean_variance(inputs[index : index + 1])
        assert mean[0, index] == pytest.approx(expected[0, 0], abs=0.02)
        assert variance[0, index] == pytest.approx(spread[0, 0], rel=0.05)
