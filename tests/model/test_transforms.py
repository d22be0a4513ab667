"""Transforms of values: maps, their inverses and Jacobians, and which one is chosen."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calamint as cm
from calamint.model.interval_probability import log_probability
from calamint.model.transforms import Compression, OutcomeTransform, Warp, standardise

RNG = np.random.default_rng
WARPS = [
    Warp(),
    Warp("log", -2.0, 0.3),
    Warp("reflected", 5.0, 0.2),
    Warp("logit", 0.0, 0.01),
    Warp("asinh", 1.0, 0.4),
]
COMPRESSIONS = [None, Compression(high=1.5, width=0.4), Compression(-1.0, 2.0, 0.7)]


@pytest.mark.parametrize("warp", WARPS, ids=lambda warp: warp.kind)
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("scale", [2.0, -0.5])
def test_maps_are_increasing_smooth_and_invertible(warp, compression, scale):
    transform = OutcomeTransform(0.3, scale, warp, compression)
    y = np.linspace(-8, 8, 4001)
    t = transform.to_model(y)
    assert np.all(np.diff(t) * scale > 0)
    assert np.allclose(transform.to_user(t), y, rtol=1e-9, atol=1e-9)
    step = 1e-6
    slope = (transform.to_model(y + step) - transform.to_model(y - step)) / (2 * step)
    assert np.allclose(np.log(np.abs(slope)), transform.log_jacobian(y), atol=1e-4)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_standard_errors_go_through_the_map(compression):
    transform = OutcomeTransform(0.3, 2.0, Warp("log", -2.0, 0.3), compression)
    y, sem = np.array([0.1, 1.0, 4.0]), np.array([0.01, 0.2, math.nan])
    variance = transform.variance_to_model(y, sem**2)
    y, sem = y[:2], sem[:2]
    half = (transform.to_model(y + sem) - transform.to_model(y - sem)) / 2
    assert np.allclose(variance[:2], half**2, rtol=1e-12)
    assert math.isnan(variance[2])


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30),
    st.sampled_from(["auto", "none", "log", "logit", "asinh"]),
    st.booleans(),
)
def test_no_values_are_too_extreme(values, transform, constrained):
    space = {"x": cm.Real(0, 1)}
    name = "c" if constrained else "f"
    problem = cm.Problem(space, minimize="f", constraints=["c <= 0.5"])
    model = cm.Model(hyperparameters="map", transform=transform)
    optimizer = cm.Optimizer(problem, model=model)
    for x, value in zip(np.linspace(0, 1, len(values)), values, strict=True):
        optimizer.add({"x": float(x)}, {name: value})
    prediction = optimizer.predict({"x": 0.33})[name]
    low, high = prediction.interval
    assert low <= prediction.median <= high


def test_tiny_values_with_fixed_noise_do_not_raise():
    optimizer = cm.Optimizer(
        cm.Problem({"x": cm.Real(0, 1)}, minimize="f"), model=cm.Model(noise_variance=1.0)
    )
    for x in np.linspace(0, 1, 10):
        optimizer.add({"x": float(x)}, {"f": 1e-160 * float(x)})
    assert optimizer.ask() is not None


# -- what is chosen ------------------------------------------------------------------------------


def surrogate_of(f, limit=None, count=25, seed=0, better="minimize", **model):
    constraints = [] if limit is None else [f"g <= {limit!r}"]
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        **{better: "f"},
        constraints=constraints,
    )
    optimizer = cm.Optimizer(problem, model=cm.Model(hyperparameters="map", **model))
    for x, y in RNG(seed).random((count, 2)):
        value = f(float(x), float(y))
        values = {"f": value} if limit is None else {"f": 0.0, "g": value}
        optimizer.add({"x": float(x), "y": float(y)}, values)
    return optimizer.query().surrogate.functions["f" if limit is None else "g"]


def smooth(x, y):
    return math.sin(3 * x) + math.cos(4 * y) * x


def test_smooth_values_are_left_as_they_are():
    for seed in range(5):
        assert surrogate_of(smooth, seed=seed).chosen[0] == "none"


def test_values_over_decades_get_a_logarithm():
    for seed in range(5):
        chosen = surrogate_of(lambda x, y: math.exp(4 * smooth(x, y)), seed=seed).chosen[0]
        assert chosen.startswith("log")


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_has_nearly_the_highest_posterior_density(seed):
    """Of all candidates, each with its best hyper-parameters: the first look at them misleads."""
    from calamint.model import transform_choice as choice
    from calamint.model.data import Data
    from calamint.model.hyperparameters import Prior
    from calamint.model.likelihood import GaussianLikelihood
    from calamint.model.map_estimate import log_posterior, most_probable
    from calamint.testbed import goldstein_price

    inputs = RNG(seed).random((30, 2))
    values = goldstein_price().functions["f"](4 * inputs - 2)
    data, index = Data(inputs, values, np.full(30, np.nan)), np.arange(2)
    kernel, prior = cm.Model().kernel_of("f"), Prior.standard(2)
    target = choice.Target(-math.inf, math.inf, 1.0, True)
    _, (chosen, _) = choice.choose_transform(kernel, data, index, prior, target, None, RNG(1))
    scores = {}
    for name, candidate in choice._candidates(data, choice.Sample.of(data), target).items():
        likelihood = GaussianLikelihood(kernel, data, candidate.transform, index)
        theta = most_probable(likelihood, prior, RNG(2))[None]
        density = log_posterior(likelihood, prior, theta)[0]
        jacobian = candidate.transform.log_jacobian(values).sum()
        scores[name] = density + jacobian + candidate.preference
    assert scores[chosen] > max(scores.values()) - 1.0, scores


def test_a_logarithm_that_sharpens_a_minimum_is_not_preferred():
    """The logarithm of a + b x² has a curvature of 2b/a at its minimum."""
    from calamint.model import transform_choice as choice
    from calamint.model.data import Data

    inputs = np.linspace(-1, 1, 21)[:, None]

    def preference(least, objective, sign=1.0):
        data = Data(inputs, least + 10 * inputs[:, 0] ** 2, np.full(21, np.nan))
        target = choice.Target(-math.inf, math.inf if objective else 20.0, sign, objective)
        return choice._candidates(data, choice.Sample.of(data), target)["log"].preference

    assert preference(0.5, objective=True) == preference(0.05, objective=False) > 0
    assert preference(0.05, objective=True) == 0
    assert preference(0.05, objective=True, sign=-1.0) > 0  # its maximum is not sharpened


def test_one_logarithm_of_an_objective_replaces_another_as_soon_as_it_is_better():
    """How sharp a minimum is on each scale is seen only once it has been found."""
    from calamint.model import transform_choice as choice
    from calamint.model.data import Data
    from calamint.model.hyperparameters import Hyperparameters, Prior

    inputs = RNG(2).random((24, 2))
    values = 0.02 + np.exp(1.5 * (np.sin(5 * inputs[:, 0]) + np.cos(4 * inputs[:, 1])))
    data, index = Data(inputs, values, np.full(len(values), np.nan)), np.arange(2)
    kernel, prior = cm.Model().kernel_of("f"), Prior.standard(2)
    theta = prior.complete(prior.centre[prior.free])[None]

    def chosen(before, objective):
        target = choice.Target(-math.inf, math.inf if objective else 60.0, 1.0, objective)
        start = Hyperparameters(theta, 8, transform=before, chosen_at=8)
        found = choice.choose_transform(kernel, data, index, prior, target, start, RNG(1))
        return found[1][0]

    names = ("log", "log 0.03", "log 0.3")
    assert [chosen(name, objective=True) for name in names] == ["log 0.03"] * 3
    assert chosen("log", objective=False) == "log"  # of a constraint: not by less than 3 nats


def test_values_that_pile_up_below_a_bound_get_a_reflected_logarithm():
    def piled(x, y):
        return 7 - math.exp(4 * smooth(x, y))

    for seed in range(3):
        assert surrogate_of(piled, limit=6.0, seed=seed).chosen[0].startswith("reflected")
        maximised = surrogate_of(piled, seed=seed, better="maximize")
        assert maximised.chosen[0].startswith("reflected")


def test_an_objective_keeps_its_resolution_where_it_is_good():
    """Its many bad values would like to be spread out; a constraint's may be."""

    def peaked(x, y):
        return -math.exp(4 * smooth(x, y))

    for seed in range(3):
        chosen = surrogate_of(peaked, seed=seed).chosen[0]
        assert chosen.removesuffix(", compressed") in ("none", "log 0.03", "log 0.3")
        assert surrogate_of(peaked, limit=-1.0, seed=seed).chosen[0].startswith("reflected")


def test_fewer_than_eight_distinct_values_are_left_as_they_are():
    function = surrogate_of(lambda x, y: math.exp(round(6 * x) + 0 * y), count=40)
    assert function.chosen == ("none", 0)


def test_the_first_choice_has_no_predecessor_to_beat():
    """Fewer than eight values had to be left as they were, which is no reason to stay with that."""
    problem = cm.Problem({"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f")

    def add(optimizer, count):
        for x, y in RNG(0).random((count, 2))[len(optimizer.history) :]:
            value = math.exp(1.5 * smooth(float(x), float(y)))
            optimizer.add({"x": float(x), "y": float(y)}, {"f": value})

    fresh = cm.Optimizer(problem, model=cm.Model(hyperparameters="map"), initial=0)
    add(fresh, 12)
    gradual = cm.Optimizer(problem, model=cm.Model(hyperparameters="map"), initial=0)
    add(gradual, 7)
    gradual.cancel(gradual.ask())
    add(gradual, 12)
    chosen = [each.query().surrogate.objective.chosen for each in (fresh, gradual)]
    assert chosen[0] == chosen[1] != ("none", 12)


def test_fixed_noise_or_amplitude_implies_none():
    for fixed in ({"noise_variance": 1.0}, {"amplitude": 2.0}):
        assert surrogate_of(lambda x, y: math.exp(4 * smooth(x, y)), **fixed).transform.is_affine


def test_penalties_are_compressed_and_nothing_else():
    function = surrogate_of(lambda x, y: 1e6 if x > 0.6 else x + y, limit=1.0)
    violated, ordinary = function.transform.to_model(np.array([1e6, 0.5]))
    assert violated - ordinary < 20
    low, high = function.transform.to_model(np.array([0.99, 1.01]))
    assert high - low > 1e-3


def test_a_cluster_of_inputs_does_not_define_the_scale():
    """A search measures where it expects the optimum: most values are then nearly the same."""
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["g <= 0.5"])
    optimizer = cm.Optimizer(problem, model=cm.Model(hyperparameters="map"))
    inputs = [*np.linspace(0, 1, 8), *(0.5 + 1e-4 * RNG(0).standard_normal(30))]
    for x in inputs:
        optimizer.add({"x": float(x)}, {"f": float((x - 0.5) ** 2), "g": float(x)})
    function = optimizer.query().surrogate.functions["g"]
    assert function.transform.compression is None or function.transform.compression.high > 0.9


@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-6])
def test_a_search_along_a_limit_does_not_make_exact_values_noisy(width):
    """Half of the inputs lie that close to the limit; the others must not seem far away."""
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f", constraints=["c <= 1"]
    )
    optimizer = cm.Optimizer(problem, model=cm.Model(hyperparameters="map"))
    rng = RNG(0)
    for index in range(36):
        x, y = rng.random(2)
        if index % 2:
            y = np.clip(1 - x + width * rng.standard_normal(), 0, 1)
        optimizer.add({"x": float(x), "y": float(y)}, {"f": float(x), "c": float(x + y)})
    for x, y in rng.random((20, 2)):
        found = optimizer.predict({"x": float(x), "y": float(y)})["c"]
        assert found.median == pytest.approx(x + y, abs=1e-3)


def test_told_noise_keeps_its_size_near_zero():
    """0.1 and 0.2 ± 0.1 are as far apart as 9.1 and 9.2 ± 0.1: no logarithm of them is taken."""
    misses = total = 0
    for seed in range(10):
        rng = RNG(seed)
        optimizer = cm.Optimizer(
            cm.Problem({"x": cm.Real(0, 1)}, minimize="f"),
            model=cm.Model(hyperparameters="map"),
        )
        for x in np.linspace(0, 1, 16):
            value = 10 * math.exp(-5 * x) + 0.1 * rng.standard_normal()
            optimizer.add({"x": float(x)}, {"f": (value, 0.1)})
        for x in (0.85, 0.9, 0.95, 1.0):
            low, high = optimizer.predict({"x": x})["f"].interval
            misses += not low <= 10 * math.exp(-5 * x) <= high
            total += 1
    assert misses / total < 0.2


@pytest.mark.parametrize("penalty", [1e6, 1e17, 1e300])
def test_penalties_do_not_move_the_recommendation(penalty):
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["g <= 1"])
    optimizer = cm.Optimizer(problem, seed=0)
    for _ in range(14):
        job = optimizer.ask()
        x = job.params["x"]
        optimizer.tell(job, {"f": (x - 0.3) ** 2, "g": penalty if x > 0.6 else x})
    assert not any(decision.warnings for decision in optimizer.decisions)
    assert optimizer.recommend().params["x"] == pytest.approx(0.3, abs=0.02)


# -- invariance ----------------------------------------------------------------------------------


def suggested(transform, told, limit, count):
    """The next suggestion, its bits and a recommendation, given the same inputs."""
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=[cm.Constraint("g", high=limit)],
    )
    optimizer = cm.Optimizer(problem, seed=3, model=cm.Model(transform=transform, samples=3))
    for x, y in RNG(1).random((count, 2)):
        f, g = math.exp(3 * smooth(x, y)), math.exp(2 * x + y)
        optimizer.add({"x": x, "y": y}, told(f, g))
    job = optimizer.ask()
    chosen = {n: f.chosen[0] for n, f in optimizer.query().surrogate.functions.items()}
    best = optimizer.recommend()
    return [*job.params.values(), *job.bits.values()], best, chosen


@pytest.mark.parametrize("count", [6, 12, 25])
def test_a_logarithm_inside_is_a_logarithm_outside(count):
    inside, one, _ = suggested("log", lambda f, g: {"f": f, "g": g}, 4.0, count)
    outside, other, _ = suggested(
        "none",
        lambda f, g: {"f": float(np.log(f)), "g": float(np.log(g))},
        float(np.log(4.0)),
        count,
    )
    assert np.allclose(inside, outside, rtol=1e-9, atol=1e-9)
    assert one.objective == pytest.approx(math.exp(other.objective), rel=1e-9)
    assert np.allclose(list(one.params.values()), list(other.params.values()), atol=1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, 273.0)])
@pytest.mark.parametrize("count", [6, 12, 25])
def test_units_change_no_suggestion(scale, shift, count):
    def told(f, g):
        return {"f": f, "g": g - 3.0}

    one, _, chosen = suggested("auto", told, 1.0, count)
    other, _, same = suggested(
        "auto",
        lambda f, g: {name: scale * v + shift for name, v in told(f, g).items()},
        scale * 1.0 + shift,
        count,
    )
    if shift == 0 or "log" not in chosen.values():  # a plain logarithm is of positive values
        assert chosen == same
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_choice_survives_a_restart(tmp_path):
    problem = cm.Problem({"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f")

    def run(reopen):
        storage = f"sqlite:///{tmp_path}/{reopen}.db"
        study = cm.Study(problem, storage, seed=1, model=cm.Model(samples=3), rationality="batch")
        seen = []
        for _ in range(14):
            job = study.ask()
            study.tell(job, {"f": math.exp(4 * smooth(*job.params.values()))}, seconds=1.0)
            seen.append(list(job.params.values()))
            if reopen:
                study.database.close()
                study = cm.Study.load(storage)
        name = study.optimizer.query().surrogate.functions["f"].chosen[0]
        return seen, name

    stayed, one = run(False)
    restarted, other = run(True)
    assert stayed == restarted
    assert one == other != "none"


# -- what people see -----------------------------------------------------------------------------


def test_intervals_are_quantiles_of_the_mixture():
    optimizer = cm.Optimizer(
        cm.Problem({"x": cm.Real(0, 1)}, maximize="f"),
        model=cm.Model(transform="log", samples=4),
    )
    for x in np.linspace(0, 1, 6):
        optimizer.add({"x": float(x)}, {"f": math.exp(3 * math.sin(5 * x))})
    function = optimizer.query().surrogate.functions["f"]
    mean, variance = function.posterior.mean_variance(np.array([[0.13]]))
    draws = mean[:, 0, None] + np.sqrt(variance)[:, 0, None] * RNG(0).standard_normal((4, 50_000))
    values = function.transform.to_user(draws).ravel()
    found = optimizer.predict({"x": 0.13})["f"]
    # The error of a quantile of 200,000 draws is √(p(1−p)/n)/density, well below 2 % here.
    expected = np.quantile(values, [0.025, 0.5, 0.975])
    assert np.allclose([found.interval[0], found.median, found.interval[1]], expected, rtol=0.02)
    assert found.mean == pytest.approx(values.mean(), rel=0.05)
    low, high = optimizer.recommend().interval
    assert low <= optimizer.recommend().objective <= high


def test_standardise_keeps_limits_in_order():
    values = np.array([1.0, 2.0, 1000.0])
    transform = standardise(values, 0.5, 30.0, 1.0, Warp("log", 0.0, 0.5), None)
    low, high = transform.limits(0.5, 30.0)
    assert low < high
    assert transform.limits(-math.inf, 30.0)[0] == -math.inf


def test_limits_that_are_one_number_beside_the_data_are_still_an_interval():
    transform = standardise(np.array([0.0, 1e300, -1e300]), 0.0, 1e-7)
    low, high = transform.limits(0.0, 1e-7)
    assert high > low
    assert np.isfinite(log_probability(np.array([0.0]), np.array([1.0]), low, high)).all()


def test_a_value_far_beyond_the_domain_of_a_logarithm_stays_finite():
    warp = Warp("log", 0.0, 1e-200)
    bent = warp.forward(np.array([-1e300, -1e-190, 0.0, 1.0]))
    assert np.all(np.isfinite(bent**2))
    assert np.all(np.diff(bent) > 0)
