"""Beliefs over whole problems: hard data, settings in the user's units, mixtures, probabilities."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import calamint as cm
from calamint.model import Data, feasibility, fit
from calamint.model.posterior import GPPosterior

RNG = np.random.default_rng


def problem(dimension=2, **changes):
    stated = {
        "space": {f"x{i}": cm.Real(0, 1) for i in range(dimension)},
        "minimize": "f",
        "constraints": ["c >= 0"],
    }
    return cm.Problem(**{**stated, **changes})


def data_of(inputs, values, noise=None):
    count = len(values)
    return Data(
        np.asarray(inputs, dtype=float).reshape(count, -1) if count else np.empty((0, 2)),
        np.asarray(values, dtype=float),
        np.full(count, np.nan) if noise is None else np.asarray(noise, dtype=float),
    )


def smooth(inputs):
    return np.sin(4 * inputs[:, 0]) + inputs[:, 1] ** 2


INPUTS = RNG(0).random((30, 2))
HARD = {
    "nothing": (np.empty((0, 2)), np.empty(0)),
    "one": (INPUTS[:1], [3.0]),
    "two": (INPUTS[:2], [3.0, 4.0]),
    "duplicates": (np.repeat(INPUTS[:5], 3, axis=0), np.repeat(smooth(INPUTS[:5]), 3)),
    "contradicting duplicates": (np.repeat(INPUTS[:1], 4, axis=0), [1.0, 2.0, -1.0, 0.0]),
    "all equal": (INPUTS, np.full(30, 7.0)),
    "all zero": (INPUTS, np.zeros(30)),
    "tiny": (INPUTS, 1e-12 * smooth(INPUTS)),
    "huge": (INPUTS, 1e12 * smooth(INPUTS)),
    "tiny differences on a huge value": (INPUTS, 1e12 + smooth(INPUTS)),
    "heavy tails": (INPUTS, RNG(1).standard_cauchy(30) ** 3),
    "one outlier of 1e12": (INPUTS, np.append(smooth(INPUTS[1:]), 1e12)),
    "closer than 1e-9": (
        np.vstack([INPUTS, INPUTS + 1e-10]).clip(0, 1),
        np.tile(smooth(INPUTS), 2),
    ),
    "a line of points": (np.column_stack([np.linspace(0, 1, 30)] * 2), np.linspace(0, 1, 30)),
    "linear and noise-free": (INPUTS, INPUTS.sum(1)),
    "constant but for rounding": (INPUTS, 1.0 + 1e-16 * RNG(2).standard_normal(30)),
}


@pytest.mark.parametrize("hyperparameters", ["sampled", "map", "mle"])
@pytest.mark.parametrize("noise", [None, 0.0])
@pytest.mark.parametrize("case", HARD)
def test_hard_data_never_raise(case, noise, hyperparameters):
    inputs, values = HARD[case]
    data = data_of(inputs, values)
    surrogate = fit(
        problem(),
        cm.Model(hyperparameters=hyperparameters, samples=4, noise_variance=noise),
        {"f": data, "c": data},
        RNG(0),
    )
    x = np.vstack([RNG(3).random((50, 2)), np.asarray(inputs).reshape(-1, 2)])
    for function in surrogate.functions.values():
        mean, variance, mean_gradient, variance_gradient = (
            function.posterior.mean_variance_gradient(x)
        )
        for moment in (mean, variance, mean_gradient, variance_gradient):
            assert np.all(np.isfinite(moment))
        assert np.all(variance > 0)
        assert np.all(function.posterior.jitter >= 0)
        centre, spread = function.mixture(x)
        assert np.all(np.isfinite(centre))
        assert np.all(spread >= 0)
    probability = feasibility.probability(surrogate, x)
    assert np.all((probability >= 0) & (probability <= 1))
    assert np.all(np.isfinite(feasibility.log_probability_by_sample_gradient(surrogate, x)[1]))


@pytest.mark.parametrize("noise", [None, 0.0])
def test_five_hundred_points(noise):
    inputs = RNG(0).random((500, 2))
    data = data_of(inputs, smooth(inputs))
    model = cm.Model(hyperparameters="map", noise_variance=noise)
    surrogate = fit(problem(), model, {"f": data, "c": data}, RNG(0))
    x = RNG(1).random((100, 2))
    mean, std = surrogate.functions["f"].mixture(x)
    assert np.max(np.abs(mean - smooth(x))) < 1e-3
    assert np.all(std < 0.05)


def test_noise_free_smooth_data_need_little_jitter_and_are_met():
    inputs = RNG(0).random((60, 2))
    data = data_of(inputs, smooth(inputs))
    model = cm.Model(kernel="se", lengthscale=1.0, amplitude=1.0, noise_variance=0)
    surrogate = fit(problem(), model, {"f": data, "c": data}, RNG(0))
    posterior = surrogate.functions["f"].posterior
    assert isinstance(posterior, GPPosterior)
    assert 0 < posterior.jitter.max() <= 1e-11  # needed, and recorded
    mean, std = surrogate.functions["f"].mixture(inputs)
    assert np.max(np.abs(mean - smooth(inputs))) < 1e-5
    assert np.max(std) < 1e-4


def test_fixed_values_are_in_plain_units():
    """The posterior under a given kernel, in the function's own units, by dense algebra."""
    inputs = RNG(0).random((5, 2))
    values = 100 + 10 * smooth(inputs)
    data = data_of(inputs, values)
    model = cm.Model(kernel="se", lengthscale=0.3, amplitude=50.0, noise_variance=4.0)
    surrogate = fit(problem(), model, {"f": data, "c": data}, RNG(0))
    x = RNG(1).random((3, 2))

    def kernel(a, b):
        return 50.0**2 * np.exp(-0.5 * ((a[:, None] - b) ** 2).sum(-1) / 0.3**2)

    gain = kernel(x, inputs) @ np.linalg.inv(kernel(inputs, inputs) + 4.0 * np.eye(5))
    mean, std = surrogate.functions["f"].mixture(x)
    assert np.allclose(mean, gain @ values, rtol=1e-8)
    variance = 50.0**2 - np.einsum("ij,ij->i", gain, kernel(x, inputs))
    assert np.allclose(std, np.sqrt(variance), rtol=1e-8)
    assert np.allclose(
        feasibility.probability_of(surrogate, "c", x), norm.sf(-mean / std), rtol=1e-8
    )


def test_a_dict_gives_values_by_function_and_the_rest_is_learnt():
    inputs = RNG(0).random((8, 2))
    data = data_of(inputs, smooth(inputs))
    model = cm.Model(
        kernel={"c": "se"},
        lengthscale={"c": [0.2, 0.4]},
        noise_variance={"f": 0.25},
        hyperparameters="map",
    )
    surrogate = fit(problem(), model, {"f": data, "c": data}, RNG(0))
    c, f = surrogate.functions["c"], surrogate.functions["f"]
    assert c.posterior.kernel.name == "se"
    assert f.posterior.kernel.name == "matern52"
    assert np.allclose(np.exp(c.posterior.theta[0, :2]), [0.2, 0.4])
    assert f.posterior.noise[0] * f.transform.scale**2 == pytest.approx(0.25)
    assert not np.allclose(np.exp(f.posterior.theta[0, :2]), [0.2, 0.4])


def test_functions_may_be_measured_at_different_places_and_with_their_own_noise():
    f = data_of(INPUTS[:3], [1.0, 2.0, 3.0], noise=[0.01, math.nan, 1.0])
    c = data_of(INPUTS[5:20], smooth(INPUTS[5:20]))
    surrogate = fit(problem(), cm.Model(samples=3), {"f": f, "c": c}, RNG(0))
    noise = (
        surrogate.functions["f"].posterior.data_noise
        * surrogate.functions["f"].transform.scale ** 2
    )
    assert np.allclose(noise[:, 0], 0.01)
    assert np.allclose(noise[:, 2], 1.0)
    assert surrogate.functions["c"].posterior.inputs.shape == (15, 2)


def test_integers_and_choices_count_at_their_decoded_values():
    space = {"n": cm.Integer(1, 4), "kind": cm.Choice("a", "b"), "x": cm.Real(0, 1)}
    stated = problem(space=space)
    points = [{"n": 1, "kind": "a", "x": 0.1}, {"n": 4, "kind": "b", "x": 0.9}]
    inputs = stated.space.encode_all(points)
    data = data_of(inputs, [1.0, -1.0])
    surrogate = fit(stated, cm.Model(samples=3), {"f": data, "c": data}, RNG(0))
    # Both are n = 2, kind = a, once they are moved to values that exist.
    inside = stated.space.snap(np.array([[0.30, 0.9, 0.1, 0.5], [0.49, 0.51, 0.5, 0.5]]))
    assert np.ptp(surrogate.expected_objective(inside)) == 0
    assert np.ptp(feasibility.probability(surrogate, inside)) == 0
    across = stated.space.snap(np.array([[0.49, 0.9, 0.1, 0.5], [0.51, 0.9, 0.1, 0.5]]))
    assert np.ptp(surrogate.expected_objective(across)) > 0
    _, gradient = feasibility.log_probability_by_sample_gradient(surrogate, inside)
    assert np.all(gradient[..., :3] == 0)
    assert np.any(gradient[..., 3] != 0)


def test_probability_is_the_mean_over_samples_of_the_product():
    stated = problem(constraints=["c >= 0", "d <= 1", "-1 <= e <= 1"])
    data = {name: data_of(INPUTS[:6], smooth(INPUTS[:6])) for name in ("f", "c", "d", "e")}
    surrogate = fit(stated, cm.Model(samples=5), data, RNG(0))
    x = RNG(1).random((4, 2))
    product = np.ones((5, 4))
    for name, low, high in (("c", 0, np.inf), ("d", -np.inf, 1), ("e", -1, 1)):
        function = surrogate.functions[name]
        mean, variance = function.posterior.mean_variance(x)
        mean = function.transform.offset + function.transform.scale * mean
        std = function.transform.scale * np.sqrt(variance)
        product *= norm.cdf(high, mean, std) - norm.cdf(low, mean, std)
    assert np.allclose(feasibility.probability(surrogate, x), product.mean(0), rtol=1e-8)


def test_feasibility_gradient_matches_finite_differences():
    stated = problem(constraints=["c >= 0", "-1 <= d <= 1"])
    data = {name: data_of(INPUTS[:6], smooth(INPUTS[:6])) for name in ("f", "c", "d")}
    surrogate = fit(stated, cm.Model(samples=3), data, RNG(0))
    x = RNG(1).random((4, 2))
    value, gradient = feasibility.log_probability_by_sample_gradient(surrogate, x)
    assert np.allclose(value, feasibility.log_probability_by_sample(surrogate, x))
    step = 1e-6
    for d in range(2):
        shift = step * np.eye(2)[d]
        difference = (
            feasibility.log_probability_by_sample(surrogate, x + shift)
            - feasibility.log_probability_by_sample(surrogate, x - shift)
        ) / (2 * step)
        assert np.allclose(gradient[..., d], difference, rtol=1e-4, atol=1e-6)


def test_known_functions_are_exact_and_have_gradients():
    stated = problem(known={"c": lambda params: params["x0"] - 0.5})
    data = {"f": data_of(INPUTS[:6], smooth(INPUTS[:6]))}
    surrogate = fit(stated, cm.Model(samples=3), data, RNG(0))
    x = np.array([[0.49, 0.5], [0.51, 0.5]])
    assert np.allclose(feasibility.probability(surrogate, x), [0, 1], atol=1e-12)
    _, _, mean_gradient, _ = surrogate.functions["c"].posterior.mean_variance_gradient(x)
    scale = surrogate.functions["c"].transform.scale
    assert np.allclose(mean_gradient * scale, [1.0, 0.0], atol=1e-6)
    mean, std = surrogate.functions["c"].mixture(x)
    assert np.allclose(mean, [-0.01, 0.01])
    assert np.all(std < 1e-6)


def test_believing_adds_what_is_expected():
    data = data_of(INPUTS[:6], smooth(INPUTS[:6]))
    model = cm.Model(samples=3, noise_variance=0)
    surrogate = fit(problem(), model, {"f": data, "c": data}, RNG(0))
    point = np.array([0.9, 0.05])
    after = surrogate.fantasize_expected([(point, ["f"])])
    x = RNG(1).random((20, 2))
    before_mean, before = surrogate.functions["f"].posterior.mean_variance(x)
    after_mean, variance = after.functions["f"].posterior.mean_variance(x)
    assert np.allclose(after_mean, before_mean, atol=1e-6)
    assert np.all(variance <= before + 1e-9)
    assert after.functions["f"].posterior.mean_variance(point[None])[1].max() < 1e-9
    assert after.functions["c"] is surrogate.functions["c"]


def test_same_seed_same_surrogate():
    data = data_of(INPUTS[:8], smooth(INPUTS[:8]))
    thetas = [
        fit(problem(), cm.Model(), {"f": data, "c": data}, RNG(seed)).functions["f"].posterior
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(thetas[0].theta, thetas[1].theta)
    assert not np.array_equal(thetas[0].theta, thetas[2].theta)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "rbf"}, ["kernel is 'rbf'", "'se'"]),
        ({"kernel": "matern5"}, ["did you mean 'matern52'?"]),
        ({"hyperparameters": "sample"}, ["hyperparameters is 'sample'", "'sampled'"]),
        ({"samples": 0}, ["samples is 0"]),
        ({"samples": 2.5}, ["samples is 2.5"]),
        ({"lengthscale": 0}, ["lengthscale is 0", "from 0.0001"]),
        ({"lengthscale": [0.1, -1]}, ["lengthscale is [0.1, -1]"]),
        ({"amplitude": "1"}, ["amplitude is '1'"]),
        ({"noise_variance": -1}, ["noise_variance is -1", "from 0 to"]),
        ({"noise_variance": {"f": math.nan}}, ["noise_variance is {'f': nan}"]),
        ({"noise_variance": [0.1]}, ["noise_variance is [0.1]"]),
        ({"amplitude": 1e200}, ["amplitude is 1e+200"]),
        ({"lengthscale": 1e-300}, ["lengthscale is 1e-300"]),
        ({"kernel": 5}, ["kernel is 5"]),
        ({"kernel": {"f": ["se"]}}, ["kernel is ['se']"]),
    ],
)
def test_bad_settings_get_one_sentence(settings, words):
    with pytest.raises(cm.ProblemError) as error:
        cm.Model(**settings)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise_variance": {"g": 0.1}}, ["noise_variance has 'g'", "no task measures"]),
        ({"lengthscale": [0.1, 0.2, 0.3]}, ["lengthscale is [0.1, 0.2, 0.3]", "2 parameters"]),
    ],
)
def test_settings_must_fit_the_problem(settings, words):
    with pytest.raises(cm.ProblemError) as error:
        cm.Optimizer(problem(), model=cm.Model(**settings))
    for word in words:
        assert word in str(error.value)
