"""Ask and tell: bookkeeping, determinism, degradation, and clear sentences."""

import math

import numpy as np
import pytest

import calamint as cm
from calamint.acquire import PESC, Acquisition, AcquisitionFunction
from calamint.testbed import toy

SPACE = {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}
FAST = cm.Model(hyperparameters="map")


def problem(**changes):
    stated = {"space": SPACE, "minimize": "f", "constraints": ["c <= 1"]}
    return cm.Problem(**{**stated, **changes})


def measure(params):
    return {
        "f": (params["x"] - 0.3) ** 2 + (params["y"] - 0.8) ** 2,
        "c": params["x"] + params["y"],
    }


def run(optimizer, count, function=measure):
    asked = []
    for _ in range(count):
        suggestion = optimizer.ask()
        asked.append(suggestion.params)
        optimizer.tell(suggestion, function(suggestion.params))
    return asked


def test_the_initial_design_has_the_stated_size_and_fills_the_space():
    optimizer = cm.Optimizer(problem(), seed=0)
    assert optimizer.initial == 3
    run(optimizer, 4)
    assert [decision.update for decision in optimizer.decisions] == ["initial"] * 3 + ["full"]
    assert cm.Optimizer(problem(space={f"x{i}": cm.Real(0, 1) for i in range(9)})).initial == 10
    points = [tuple(record.params.values()) for record in optimizer.history[:3]]
    assert len(set(points)) == 3
    assert not any(0.0 in point for point in points)  # no corner of the box


def test_added_measurements_count_towards_the_initial_design():
    optimizer = cm.Optimizer(problem(), model=FAST)
    for x in (0.1, 0.5, 0.9):
        optimizer.add({"x": x, "y": x}, measure({"x": x, "y": x}))
    run(optimizer, 1)
    assert optimizer.decisions[0].update == "full"


@pytest.mark.parametrize("acquisition", ["pesc", "eic", "random"])
@pytest.mark.parametrize("hyperparameters", ["sampled", "map"])
def test_same_seed_and_results_give_the_same_suggestions(acquisition, hyperparameters):
    model = cm.Model(hyperparameters=hyperparameters, samples=3)
    runs = [run(cm.Optimizer(problem(), acquisition, model, seed), 6) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_looking_does_not_change_what_is_suggested():
    plain = cm.Optimizer(problem(), model=cm.Model(samples=3), seed=1)
    curious = cm.Optimizer(problem(), model=cm.Model(samples=3), seed=1)
    for _ in range(7):
        one, other = plain.ask(), curious.ask()
        curious.recommend()
        curious.predict({"x": 0.5, "y": 0.5})
        assert one.params == other.params
        plain.tell(one, measure(one.params))
        curious.tell(other, measure(other.params))
        curious.recommend(delta=0.2)
        curious.recommend(kind="observed")


def test_the_optimum_is_found():
    optimizer = cm.Optimizer(problem(), seed=0)
    run(optimizer, 20)
    found = optimizer.recommend()
    assert found.confident
    # min (x−.3)² + (y−.8)² with x + y ≤ 1: at (0.25, 0.75), value 0.005.
    assert found.objective == pytest.approx(0.005, abs=1e-4)
    assert found.params["x"] == pytest.approx(0.25, abs=0.01)
    assert found.probability >= 0.95
    assert measure(found.params)["c"] <= 1 + 1e-3
    assert "probability" in str(found)


def test_maximising_reports_in_the_users_own_terms():
    optimizer = cm.Optimizer(
        cm.Problem(SPACE, maximize="gain", constraints=["c <= 1"]), model=FAST, seed=0
    )

    def gain(params):
        values = measure(params)
        return {"gain": 10 - values["f"], "c": values["c"]}

    run(optimizer, 18, gain)
    found = optimizer.recommend()
    assert found.objective == pytest.approx(9.995, abs=1e-3)
    assert optimizer.predict(found.params)["gain"].mean == pytest.approx(found.objective, rel=1e-6)
    observed = optimizer.recommend(kind="observed")
    best = max(record.values["gain"] for record in optimizer.history if record.values["c"] <= 1)
    assert observed.objective == pytest.approx(best, abs=1e-5)


def test_predictions_are_in_the_users_units():
    optimizer = cm.Optimizer(problem(), model=FAST)
    for x in np.linspace(0, 1, 6):
        for y in np.linspace(0, 1, 6):
            values = measure({"x": x, "y": y})
            optimizer.add({"x": x, "y": y}, {"f": 1000 + values["f"], "c": values["c"]})
    inside = optimizer.predict({"x": 0.31, "y": 0.33})
    truth = measure({"x": 0.31, "y": 0.33})
    assert inside["f"].mean == pytest.approx(1000 + truth["f"], abs=0.01)
    assert inside["f"].probability is None
    assert inside["c"].mean == pytest.approx(truth["c"], abs=0.01)
    assert 0 < inside["c"].std < 0.1
    assert inside["c"].probability > 0.99
    assert inside.probability == pytest.approx(inside["c"].probability)
    assert optimizer.predict({"x": 0.9, "y": 0.9}).probability < 0.01


def test_observed_recommendations_are_measured_points():
    optimizer = cm.Optimizer(problem(), model=FAST)
    optimizer.add({"x": 0.2, "y": 0.2}, {"f": 5.0, "c": 0.4})
    optimizer.add({"x": 0.3, "y": 0.3}, {"f": 4.0, "c": 0.6})
    optimizer.add({"x": 0.9, "y": 0.9}, {"f": 1.0, "c": 1.8})  # infeasible
    optimizer.add({"x": 0.1, "y": 0.1}, {"f": 0.0})  # its constraint was not measured
    found = optimizer.recommend(kind="observed")
    assert found.params == {"x": 0.3, "y": 0.3}
    assert found.objective == pytest.approx(4.0, abs=1e-5)


def test_without_a_measured_feasible_point_observed_is_not_confident():
    optimizer = cm.Optimizer(problem(), model=FAST)
    optimizer.add({"x": 0.9, "y": 0.9}, {"f": 1.0, "c": 1.8})
    optimizer.add({"x": 0.7, "y": 0.7}, {"f": 2.0, "c": 1.4})
    found = optimizer.recommend(kind="observed")
    assert not found.confident
    assert found.params == {"x": 0.7, "y": 0.7}
    with pytest.raises(cm.ResultError, match="nothing has been measured"):
        cm.Optimizer(problem()).recommend(kind="observed")


def test_recommendations_use_measured_data_only():
    busy = cm.Optimizer(problem(resources={"cpu": 4}), model=FAST, seed=0)
    calm = cm.Optimizer(problem(resources={"cpu": 4}), model=FAST, seed=0)
    for optimizer in (busy, calm):
        run(optimizer, 5)
    busy.ask()
    busy.ask()
    assert busy.recommend() == calm.recommend()


def test_no_suggestion_beyond_capacity_and_pending_points_are_avoided():
    optimizer = cm.Optimizer(problem(resources={"cpu": 3}), model=FAST, seed=0)
    run(optimizer, 6)
    jobs = [optimizer.ask() for _ in range(4)]
    assert jobs[3] is None
    assert optimizer.pending == tuple(jobs[:3])
    points = [job.point for job in jobs[:3]]
    for i, a in enumerate(points):
        for b in points[:i]:
            assert np.max(np.abs(a - b)) > 1e-3
    optimizer.cancel(jobs[0])
    assert optimizer.ask().resources == ("cpu",)
    assert optimizer.ask() is None


def test_several_resources_at_once_are_all_booked():
    stated = problem(
        tasks={"both": cm.Task(["f", "c"], runs_on=[["gpu", "licence"]])},
        resources={"gpu": 2, "licence": 1},
    )
    optimizer = cm.Optimizer(stated)
    first = optimizer.ask()
    assert first.resources == ("gpu", "licence")
    assert optimizer.ask() is None
    optimizer.fail(first, "tripped over the cable")
    assert optimizer.ask() is not None
    assert optimizer.failures == ((first, "tripped over the cable"),)


def test_a_job_ends_once():
    optimizer = cm.Optimizer(problem())
    job = optimizer.ask()
    optimizer.tell(job, measure(job.params), seconds=1.5)
    before = list(optimizer.history)
    for again in (
        lambda: optimizer.tell(job, measure(job.params)),
        lambda: optimizer.fail(job, "late"),
        lambda: optimizer.cancel(job),
    ):
        with pytest.raises(cm.ResultError, match="already told"):
            again()
    assert optimizer.history == before
    assert optimizer.history[0].seconds == 1.5
    stranger = cm.Optimizer(problem(), seed=5).ask()
    with pytest.raises(cm.ResultError):
        optimizer.tell(stranger, measure(stranger.params))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"f": "1", "c": 1}, ["values['f'] is '1'", "number"]),
        ({"f": True, "c": 1}, ["values['f'] is True"]),
        ({"f": (1, 2, 3), "c": 1}, ["(1, 2, 3)", "standard_error"]),
        ({"f": (1, -2), "c": 1}, ["standard error -2", "not negative"]),
        ({"f": 10**400, "c": 1}, ["values['f'] is 1000"]),
        ({"f": 1, "c": 1, "d": 2}, ["values has 'd'"]),
        ({}, ["values is empty"]),
        (3.0, ["values is 3.0", "dict"]),
    ],
)
def test_bad_results_get_one_sentence_and_change_nothing(values, words):
    optimizer = cm.Optimizer(problem())
    job = optimizer.ask()
    with pytest.raises(cm.ResultError) as error:
        optimizer.tell(job, values)
    for word in words:
        assert word in str(error.value)
    assert optimizer.history == []
    assert optimizer.pending == (job,)
    optimizer.tell(job, measure(job.params))


def test_bad_additions_change_nothing():
    optimizer = cm.Optimizer(problem())
    for params, values in (
        ({"x": 2.0, "y": 0.5}, {"f": 1}),
        ({"x": 0.2}, {"f": 1}),
        ({"x": 0.2, "y": 0.5}, {"g": 1}),
        ({"x": 0.2, "y": 0.5}, {}),
        ({"x": 0.2, "y": 0.5}, {"f": math.nan}),
    ):
        with pytest.raises(cm.ProblemError):
            optimizer.add(params, values)
    assert optimizer.history == []


def test_standard_errors_are_used():
    """A value that is known to be noisy pulls the mean less than one that is exact."""
    means = {}
    for error in (1e-6, 1.0):
        optimizer = cm.Optimizer(problem(), model=cm.Model(lengthscale=0.5, amplitude=1.0))
        for x in (0.1, 0.5, 0.9):
            optimizer.add({"x": x, "y": 0.5}, {"f": (0.0, 0.01), "c": 0.5})
        optimizer.add({"x": 0.7, "y": 0.5}, {"f": (1.0, error), "c": 0.5})
        means[error] = optimizer.predict({"x": 0.7, "y": 0.5})["f"].mean
    assert means[1e-6] == pytest.approx(1.0, abs=1e-3)
    assert means[1.0] < 0.3


class Failing(Acquisition):
    name = "failing"
    supports_decoupled = True

    def build(self, surrogate, incumbent, rng):
        raise np.linalg.LinAlgError("singular")


def test_a_decision_always_comes_back_and_says_what_went_wrong():
    optimizer = cm.Optimizer(problem(), Failing(), seed=0)
    asked = run(optimizer, 6)
    assert [decision.update for decision in optimizer.decisions] == ["initial"] * 3 + [
        "fallback"
    ] * 3
    assert len({tuple(params.values()) for params in asked}) == 6
    assert len(optimizer.decisions[-1].warnings) == 2
    assert "singular" in optimizer.decisions[-1].warnings[0]


@pytest.mark.parametrize("kind", ["noise-free", "noisy", "duplicated", "flat", "outliers"])
def test_many_decisions_on_awkward_data_never_raise(kind):
    rng = np.random.default_rng(0)

    def awkward(params):
        values = measure(params)
        if kind == "noisy":
            return {name: value + rng.standard_normal() for name, value in values.items()}
        if kind == "duplicated":
            return measure({name: round(value, 1) for name, value in params.items()})
        if kind == "flat":
            return {"f": 1.0, "c": 0.5}
        if kind == "outliers":
            return {name: value + 1e9 * (rng.random() < 0.1) for name, value in values.items()}
        return values

    optimizer = cm.Optimizer(problem(), model=FAST, seed=0)
    run(optimizer, 25, awkward)
    assert all(decision.update != "fallback" for decision in optimizer.decisions)
    assert math.isfinite(optimizer.recommend().objective)


def test_mixed_spaces_suggest_values_that_exist():
    space = {"x": cm.Real(1e-3, 1, log=True), "n": cm.Integer(1, 5), "k": cm.Choice("a", "b")}
    optimizer = cm.Optimizer(cm.Problem(space, minimize="f", constraints=["c <= 3.5"]), model=FAST)

    def function(params):
        value = math.log10(params["x"]) ** 2 + (params["n"] - 3) ** 2 + (params["k"] == "a")
        return {"f": value, "c": params["n"]}

    run(optimizer, 25, function)
    found = optimizer.recommend()
    assert found.params["n"] == 3
    assert found.params["k"] == "b"
    assert found.objective == pytest.approx(0, abs=0.1)


class Watching(AcquisitionFunction):
    """An acquisition function that sees every input that it is asked about."""

    in_nats = True

    def __init__(self, acq_function, seen):
        self.acq_function, self.seen = acq_function, seen

    @property
    def start_points(self):
        return self.acq_function.start_points

    def _watched(self, x):
        self.seen.append(x.copy())
        return x

    def value(self, x):
        return self.acq_function.value(self._watched(x))

    def value_gradient(self, x):
        return self.acq_function.value_gradient(self._watched(x))

    def contributions(self, x):
        return self.acq_function.contributions(self._watched(x))

    def screening_values(self, x):
        return self.acq_function.screening_values(self._watched(x))

    def weighted_gradient(self, x, weights):
        return self.acq_function.weighted_gradient(self._watched(x), weights)


class Watched(Acquisition):
    name = "watched"
    supports_decoupled = True

    def __init__(self):
        self.seen = []

    def build(self, surrogate, incumbent, rng):
        return Watching(PESC().build(surrogate, incumbent, rng), self.seen)


def test_every_input_that_is_valued_has_values_that_exist():
    """Points are moved to integers and options where they are made, and nowhere else."""
    space = {"x": cm.Real(0, 1), "n": cm.Integer(1, 5), "k": cm.Choice("a", "b", "c")}
    stated = cm.Problem(space, minimize="f", constraints=["c <= 3.5"])
    acquisition = Watched()
    optimizer = cm.Optimizer(stated, acquisition, FAST)
    run(optimizer, 10, lambda params: {"f": params["x"] + params["n"], "c": params["n"]})
    seen = np.vstack(acquisition.seen)
    assert len(seen) > 1000
    assert np.array_equal(seen, stated.space.snap(seen))


def test_known_functions_are_used():
    stated = problem(known={"c": lambda params: params["x"] + params["y"]})
    optimizer = cm.Optimizer(stated, model=FAST, seed=0)
    run(optimizer, 15, lambda params: {"f": measure(params)["f"]})
    found = optimizer.recommend()
    assert found.confident
    assert found.params["x"] + found.params["y"] <= 1 + 1e-6
    assert found.objective == pytest.approx(0.005, abs=1e-3)
    observed = optimizer.recommend(kind="observed")
    assert observed.params["x"] + observed.params["y"] <= 1


def test_random_needs_no_model_and_serves_decoupled_problems():
    optimizer = cm.Optimizer(toy().problem, "random", seed=0)
    tasks = set()
    for _ in range(20):
        job = optimizer.ask()
        tasks.add(job.task)
        optimizer.tell(job, toy().evaluate(job.params, job.task))
    assert tasks == {"f", "c1", "c2"}
    assert optimizer.recommend().params


def test_before_any_data_it_answers_from_the_prior():
    optimizer = cm.Optimizer(problem())
    prediction = optimizer.predict({"x": 0.5, "y": 0.5})
    assert prediction["c"].probability == pytest.approx(0.5, abs=0.1)
    found = optimizer.recommend()
    assert not found.confident


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.Optimizer("x"), ["problem is 'x'"]),
        (lambda: cm.Optimizer(problem(), "pecs"), ["acquisition is 'pecs'", "'pesc'"]),
        (lambda: cm.Optimizer(problem(), 3), ["acquisition is 3"]),
        (lambda: cm.Optimizer(toy().problem, "eic"), ["only some functions", "'pesc'"]),
        (lambda: cm.Optimizer(problem(), rationality=-1), ["rationality is -1", "'batch'"]),
        (lambda: cm.Optimizer(problem(), rationality="never"), ["rationality is 'never'"]),
        (lambda: cm.Optimizer(problem(), fantasies=0), ["fantasies is 0", "at least 1"]),
        (lambda: cm.Optimizer(problem()).ask(task="trian"), ["task is 'trian'"]),
        (lambda: cm.Optimizer(problem()).ask(resource="gpu"), ["resource is 'gpu'"]),
        (lambda: cm.Optimizer(problem(), seed=-1), ["seed is -1"]),
        (lambda: cm.Optimizer(problem(), initial=-1), ["initial is -1"]),
        (lambda: cm.Optimizer(problem(), delta=0), ["delta is 0", "between 0 and 1"]),
        (lambda: cm.Optimizer(problem()).recommend(kind="best"), ["kind is 'best'"]),
        (lambda: cm.Optimizer(problem()).recommend(delta=2), ["delta is 2"]),
    ],
)
def test_bad_settings_get_one_sentence(make, words):
    with pytest.raises(cm.ProblemError) as error:
        make()
    for word in words:
        assert word in str(error.value)


def test_suggestions_read_as_sentences():
    optimizer = cm.Optimizer(problem(), model=FAST)
    job = optimizer.ask()
    assert str(job).startswith("run evaluate on local at x = ")
    assert job.bits == {}
    optimizer.tell(job, measure(job.params))
    run(optimizer, 2)
    job = optimizer.ask()
    assert set(job.bits) == {"f", "c"}
    assert sum(job.bits.values()) > 0
    assert "bits are expected" in str(job)


class TestGains:
    def test_gains_are_bits_by_function(self):
        optimizer = cm.Optimizer(problem(), model=FAST, seed=0)
        run(optimizer, 6)
        points = [{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.7}, {"x": 0.9, "y": 0.9}]
        gains = optimizer.gains(points)
        assert set(gains) == {"f", "c"}
        assert all(gain.shape == (3,) for gain in gains.values())
        assert np.all(np.isfinite(list(gains.values())))
        again = optimizer.gains(points[:1])
        assert again["f"][0] == pytest.approx(gains["f"][0], rel=1e-6, abs=1e-9)

    def test_before_any_data_they_come_from_the_prior(self):
        gains = cm.Optimizer(problem()).gains([{"x": 0.5, "y": 0.5}])
        assert np.all(np.isfinite(list(gains.values())))

    def test_pending_points_leave_little_to_learn(self):
        optimizer = cm.Optimizer(
            problem(resources={"cpu": 2}),
            model=cm.Model(hyperparameters="map", noise_variance=0),
            seed=0,
        )
        run(optimizer, 5)
        job = optimizer.ask()
        there = optimizer.gains([job.params])
        assert sum(abs(gain[0]) for gain in there.values()) < 0.2 * sum(job.bits.values())

    def test_tables_are_accepted(self):
        class Table:
            def to_dict(self, orient):
                assert orient == "records"
                return [{"x": 0.5, "y": 0.5}]

        assert cm.Optimizer(problem(), model=FAST).gains(Table())["f"].shape == (1,)

    @pytest.mark.parametrize(
        ("points", "words"),
        [
            ({"x": 0.5, "y": 0.5}, ["list of parameter dicts"]),
            (3, ["points is 3"]),
            ([{"x": 0.5}], ["points[0]", "no 'y'"]),
            ([{"x": 0.5, "y": 0.5}, {"x": 2.0, "y": 0.5}], ["points[1]", "x is 2.0"]),
            ([{"x": 0.5, "y": math.nan}], ["y is nan"]),
        ],
    )
    def test_bad_points_get_one_sentence(self, points, words):
        with pytest.raises(cm.ProblemError) as error:
            cm.Optimizer(problem()).gains(points)
        for word in words:
            assert word in str(error.value)


class TestOptimize:
    def test_the_one_call_form(self):
        seen = []
        result = cm.optimize(
            measure,
            SPACE,
            minimize="f",
            constraints=["c <= 1"],
            evaluations=16,
            seed=1,
            callback=lambda suggestion, values: seen.append((suggestion.params, values)),
        )
        assert len(seen) == 16
        assert result.objective == pytest.approx(0.005, abs=1e-3)
        assert result.recommendation.confirmed
        assert result.params == result.recommendation.params
        assert measure(result.params)["c"] <= 1
        assert result.believed.confident
        assert result.believed.probability >= 0.95
        assert len(result.optimizer.history) == 16

    def test_a_plain_number_will_do_without_constraints(self):
        result = cm.optimize(
            lambda params: (params["x"] - 0.3) ** 2,
            {"x": cm.Real(0, 1)},
            minimize="f",
            evaluations=10,
            model=FAST,
        )
        assert result.params["x"] == pytest.approx(0.3, abs=0.01)

    def test_exceptions_are_failed_evaluations(self):
        def fragile(params):
            if params["x"] > 0.7:
                raise ZeroDivisionError("too large")
            return measure(params)

        result = cm.optimize(
            fragile, SPACE, minimize="f", constraints=["c <= 1"], evaluations=12, model=FAST
        )
        assert len(result.optimizer.history) + len(result.optimizer.failures) == 12
        assert all("too large" in reason for _, reason in result.optimizer.failures)

    def test_if_everything_fails_the_reason_is_raised(self):
        with pytest.raises(ZeroDivisionError):
            cm.optimize(lambda params: 1 / 0, SPACE, minimize="f", evaluations=3)

    def test_a_function_that_is_wrong_raises_at_once(self):
        calls = []

        def misspelled(params):
            calls.append(params)
            return {"f": parms["x"]}  # noqa: F821

        with pytest.raises(NameError, match="parms"):
            cm.optimize(misspelled, SPACE, minimize="f", evaluations=30)
        assert len(calls) == 1

    def test_a_function_that_never_works_is_given_up_after_three(self):
        calls = []

        def broken(params):
            calls.append(params)
            raise AttributeError("no solver")

        with pytest.raises(AttributeError, match="no solver"):
            cm.optimize(broken, SPACE, minimize="f", evaluations=30)
        assert len(calls) == 3

    def test_bad_arguments(self):
        with pytest.raises(cm.ProblemError, match="evaluations is 0"):
            cm.optimize(measure, SPACE, minimize="f", evaluations=0)
        with pytest.raises(cm.ResultError, match="values has no 'c'"):
            cm.optimize(lambda params: {"f": 1.0}, SPACE, minimize="f", constraints=["c <= 1"])


class TestWhatAReviewerBroke:
    def test_contradicting_exact_duplicates_are_survived(self):
        optimizer = cm.Optimizer(
            cm.Problem(SPACE, minimize="f", constraints=["c <= 1"]), initial=0, seed=0
        )
        for i in range(6):
            optimizer.add({"x": 0.5, "y": 0.5}, {"c": -i})
        for y in (0.0, 0.1, 0.2):
            optimizer.add({"x": 0.2, "y": y}, {"c": (0.5, 0)})
        optimizer.add({"x": 0.2, "y": 0.1}, {"c": (-5, 0)})
        assert math.isfinite(optimizer.recommend().objective)
        optimizer.ask()
        assert optimizer.decisions[-1].update == "full"

    def test_a_belief_that_steps_down_says_so(self, monkeypatch):
        from calamint.model import fitting

        def broken(*args, **kwargs):
            raise np.linalg.LinAlgError("not positive definite")

        monkeypatch.setattr(fitting, "draw_samples", broken)
        optimizer = cm.Optimizer(problem(), seed=0)
        run(optimizer, 4)
        assert optimizer.decisions[-1].update == "full"
        assert "not positive definite" in optimizer.decisions[-1].warnings[0]
        assert math.isfinite(optimizer.recommend().objective)

    def test_changing_a_suggestion_does_not_change_the_records(self):
        optimizer = cm.Optimizer(problem())
        job = optimizer.ask()
        asked = dict(job.params)
        job.params["x"] = 77.0
        with pytest.raises(cm.ResultError):
            optimizer.tell(job, {"f": 1.0, "c": 1.0})
        job.params.update(asked)
        optimizer.tell(job, {"f": 1.0, "c": 1.0})
        job.params["x"] = 77.0
        assert optimizer.history[0].params == asked

    @pytest.mark.parametrize("result", [math.nan, math.inf, "x", None])
    def test_known_functions_must_return_numbers(self, result):
        with pytest.raises(cm.ProblemError, match="known function"):
            cm.Optimizer(problem(known={"c": lambda params: result}))

    def test_known_functions_must_not_raise(self):
        with pytest.raises(cm.ProblemError, match="ZeroDivisionError"):
            cm.Optimizer(problem(known={"c": lambda params: 1 / 0}))

    def test_huge_values_and_limits(self):
        optimizer = cm.Optimizer(problem(constraints=["c <= 1e300", "c >= -1e300"]), model=FAST)
        run(optimizer, 5, lambda params: {k: 1e290 * v for k, v in measure(params).items()})
        assert optimizer.decisions[-1].update == "full"
        assert math.isfinite(optimizer.recommend().objective)

    def test_numpy_numbers_are_numbers(self):
        optimizer = cm.Optimizer(problem(), seed=np.int64(3), delta=np.float32(0.1))
        job = optimizer.ask()
        optimizer.tell(job, {"f": np.array(2.0), "c": np.float32(1)})
        assert optimizer.history[0].values == {"f": 2.0, "c": 1.0}

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: cm.Optimizer(problem(), model="map"), ["model is 'map'", "cm.Model"]),
            (lambda: cm.Optimizer(problem(), seed=True), ["seed is True"]),
            (lambda: cm.optimize(5, SPACE, minimize="f"), ["function is 5"]),
            (lambda: cm.optimize(measure, SPACE, minimize="f", evaluations=True), ["evaluations"]),
        ],
    )
    def test_bad_arguments_get_one_sentence(self, make, words):
        with pytest.raises(cm.ProblemError) as error:
            make()
        for word in words:
            assert word in str(error.value)

    def test_too_large_an_error_changes_nothing(self):
        optimizer = cm.Optimizer(problem())
        job = optimizer.ask()
        with pytest.raises(cm.ResultError, match="too large to square"):
            optimizer.tell(job, {"f": (1.0, 1e200), "c": 1.0})
        assert optimizer.pending == (job,)

    def test_values_that_are_not_finite_are_failed_evaluations(self):
        def fragile(params):
            values = measure(params)
            return {**values, "f": math.nan} if params["x"] > 0.7 else values

        result = cm.optimize(
            fragile, SPACE, minimize="f", constraints=["c <= 1"], evaluations=8, model=FAST
        )
        assert len(result.optimizer.history) == 8  # c was measured every time
        assert result.optimizer.failures
