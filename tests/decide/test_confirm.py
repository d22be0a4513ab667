"""Confirming: the recommended input is measured by every task that has not measured it."""

import math

import numpy as np
import pytest
from tests.decide.conftest import two_parameters

import calamint as cm
from calamint.testbed import toy

RNG = np.random.default_rng


def problem(**changes):
    tasks = {"score": cm.Task("f"), "test": cm.Task("c")}
    return two_parameters(**{"tasks": tasks, **changes})


def measure(task, params, noise=0.0, rng=None):
    x, y = params["x"], params["y"]
    values = {"f": (x - 0.3) ** 2 + (y - 0.9) ** 2, "c": x + y}
    if noise:
        values = {name: value + noise * rng.standard_normal() for name, value in values.items()}
    return {"score": {"f": values["f"]}, "test": {"c": values["c"]}}.get(task, values)


def searched(jobs, **settings):
    optimizer = cm.Optimizer(problem(), seed=0, **settings)
    for _ in range(jobs):
        job = optimizer.ask()
        optimizer.tell(job, measure(job.task, job.params))
    return optimizer


def test_a_recommendation_is_confirmed_task_by_task():
    optimizer = searched(16)
    best = optimizer.recommend()
    assert not best.confirmed
    jobs = []
    for _ in range(2):
        job = optimizer.confirm()
        assert job.update == "confirm"
        assert "to confirm the recommendation" in str(job)
        assert job.params == best.params
        jobs.append(job.task)
        optimizer.tell(job, measure(job.task, job.params))
    # The test is the task that may find a limit violated.
    assert jobs == ["test", "score"]
    observed = optimizer.recommend(kind="observed")
    assert observed.confirmed
    assert observed.params == best.params
    assert "confirmed" in str(observed)


def test_resources_are_booked_and_a_pending_job_is_not_repeated():
    optimizer = searched(14)
    first = optimizer.confirm()
    assert optimizer.confirm() is None  # there is one place, and it is taken
    optimizer.cancel(first)
    assert optimizer.confirm().params == first.params


def test_tasks_that_have_measured_the_input_are_not_asked_again():
    optimizer = searched(14)
    best = optimizer.recommend().params
    optimizer.add(best, {"c": best["x"] + best["y"]})
    moved = optimizer.confirm()
    if moved.params == best:
        assert moved.task == "score"


def test_a_point_that_fails_moves_the_recommendation_inward():
    optimizer = searched(14)
    seen, failed = [], None
    for _ in range(8):
        job = optimizer.confirm()
        if job is None:
            break
        values = measure(job.task, job.params)
        if job.task == "test":
            values = {"c": values["c"] + 0.1}  # the limit is nearer than was believed
            seen.append(values["c"] <= 1)
            failed = None if seen[-1] else job.params
        assert job.task == "test" or job.params != failed  # its score is of no use
        optimizer.tell(job, values)
    assert not seen[0]
    assert any(seen)
    observed = optimizer.recommend(kind="observed")
    assert observed.confirmed
    assert sum(observed.params.values()) + 0.1 <= 1


def test_noise_near_a_limit_is_averaged():
    rng = RNG(1)
    optimizer = cm.Optimizer(problem(), seed=0)
    for _ in range(30):
        job = optimizer.ask()
        optimizer.tell(job, measure(job.task, job.params, 0.05, rng))
    counts: dict[tuple, int] = {}
    for _ in range(12):
        job = optimizer.confirm()
        if job is None:
            break
        key = (job.task, *job.params.values())
        counts[key] = counts.get(key, 0) + 1
        optimizer.tell(job, measure(job.task, job.params, 0.05, rng))
    assert max(counts.values()) in (2, 3, 4)


def test_what_may_be_noisy_is_measured_twice():
    """Far from the limit, too: one lucky value of the objective is no answer."""
    rng = RNG(3)
    stated = problem(tasks={"both": cm.Task(["f", "c"])}, constraints=["c <= 5"])
    optimizer = cm.Optimizer(stated, seed=0)
    for _ in range(20):
        job = optimizer.ask()
        optimizer.tell(job, measure(None, job.params, 0.1, rng))
    first = optimizer.confirm()
    optimizer.tell(first, measure(None, first.params, 0.1, rng))
    counts: dict[tuple, int] = {}
    for record in optimizer.history:
        key = tuple(record.params.values())
        counts[key] = counts.get(key, 0) + 1
    job = optimizer.confirm()
    assert counts[tuple(first.params.values())] == 2 or job.params == first.params


def test_what_gave_the_same_value_twice_is_not_measured_twice():
    """Too rough for its model, which takes that for noise."""
    stated = problem(tasks={"both": cm.Task(["f", "c"])}, constraints=["c <= 5"])

    def rough(params):
        return {name: v + 0.1 * math.sin(1e4 * v) for name, v in measure(None, params).items()}

    optimizer = cm.Optimizer(stated, seed=0)
    for _ in range(16):
        job = optimizer.ask()
        optimizer.tell(job, rough(job.params))
    assert [decision.update for decision in optimizer.decisions].count("repeat") == 1
    assert optimizer.query().surrogate.objective.posterior.noise.mean() > 1e-4
    asked = []
    while (job := optimizer.confirm()) is not None and len(asked) < 6:
        asked.append(tuple(job.params.values()))
        optimizer.tell(job, rough(job.params))
    assert len(asked) == len(set(asked))
    # What was measured there is what will be measured there, whatever the model makes of it.
    found = optimizer.recommend(kind="observed")
    met = [record for record in optimizer.history if record.values["c"] <= 5]
    assert found.confirmed
    assert found.objective == pytest.approx(min(record.values["f"] for record in met))
    assert found.interval == (found.objective, found.objective)
    assert found.probability == 1


def test_a_good_value_that_was_measured_is_confirmed_rather_than_one_that_is_believed():
    """A rough objective without noise: what was measured is known, what the model says is not."""
    optimizer = cm.Optimizer(problem(), seed=0)
    inputs = RNG(0).random((25, 2)) * [0.5, 0.4]
    roughness = 0.3 * RNG(1).standard_normal(25)
    lucky = int(np.argmin(roughness))
    for (x, y), rough in zip(inputs, roughness, strict=True):
        optimizer.add({"x": x, "y": y}, {"f": rough + 0.1 * x})
    optimizer.add({"x": inputs[3, 0], "y": inputs[3, 1]}, {"f": roughness[3] + 0.1 * inputs[3, 0]})
    for x, y in RNG(2).random((10, 2)):
        optimizer.add({"x": x, "y": y}, {"c": x + y})
    job = optimizer.confirm()
    assert job.task == "test"
    assert job.params == {"x": inputs[lucky, 0], "y": inputs[lucky, 1]}
    assert optimizer.recommend().params != job.params
    optimizer.tell(job, measure(job.task, job.params))
    observed = optimizer.recommend(kind="observed")
    assert observed.params == job.params
    assert observed.objective == pytest.approx(roughness[lucky] + 0.1 * inputs[lucky, 0])


def test_observed_joins_tasks_and_averages_replicates():
    optimizer = cm.Optimizer(problem())
    near, far = {"x": 0.2, "y": 0.7}, {"x": 0.2, "y": 0.75}
    optimizer.add(near, {"f": 1.0})
    optimizer.add(near, {"f": 2.0})
    optimizer.add(near, {"c": 0.95})
    optimizer.add(far, {"f": 0.5})
    best = optimizer.recommend(kind="observed")
    assert (best.params, best.confirmed) == (near, True)
    assert best.interval[0] < best.objective < best.interval[1]
    optimizer.add(near, {"c": 1.25})  # on average 1.1: the limit is not met after all
    best = optimizer.recommend(kind="observed")
    assert not best.confirmed
    assert "confirmed" not in str(best)


def test_averages_are_weighted_by_standard_errors():
    """A careless measurement neither confirms an input nor refutes it."""
    optimizer = cm.Optimizer(problem())
    good, bad = {"x": 0.2, "y": 0.6}, {"x": 0.3, "y": 0.9}
    for params, exact, careless in ((good, 0.8, 2.0), (bad, 1.2, 0.2)):
        optimizer.add(params, {"f": measure("score", params)["f"], "c": (exact, 0.01)})
        optimizer.add(params, {"c": (careless, 5.0)})
    best = optimizer.recommend(kind="observed")
    assert (best.params, best.confirmed, best.confident) == (good, True, True)


def test_options_that_compare_equal_are_different_inputs():
    stated = cm.Problem({"a": cm.Choice(1, True)}, minimize="f", constraints=["c <= 1"])
    optimizer = cm.Optimizer(stated)
    optimizer.add({"a": 1}, {"f": 0.0, "c": 1.5})
    optimizer.add({"a": True}, {"f": 1.0, "c": 0.0})
    best = optimizer.recommend(kind="observed")
    assert best.params["a"] is True
    assert best.confirmed


@pytest.mark.parametrize("failures", ["ignore", "model", "retry"])
def test_an_input_that_crashes_is_given_up(failures):
    tasks = {"score": cm.Task("f"), "test": cm.Task("c", failures=failures)}
    optimizer = cm.Optimizer(problem(tasks=tasks), seed=0, retries=1)
    for _ in range(14):
        job = optimizer.ask()
        optimizer.tell(job, measure(job.task, job.params))
    seen = []
    for _ in range(5):
        job = optimizer.confirm()
        if job is None:
            break
        if job.task == "test":
            seen.append(tuple(job.params.values()))
            optimizer.fail(job, "it crashed")
        else:
            optimizer.tell(job, measure(job.task, job.params))
    most = 2 if failures == "retry" else 1
    assert all(seen.count(params) <= most for params in seen)
    assert len(set(seen)) > 1


def test_an_input_whose_value_is_left_out_is_given_up():
    tasks = {"both": cm.Task(["f", "c"])}
    optimizer = cm.Optimizer(problem(tasks=tasks), seed=0)
    for _ in range(10):
        job = optimizer.ask()
        optimizer.tell(job, measure(None, job.params))
    first = optimizer.confirm()
    optimizer.tell(first, {"f": measure(None, first.params)["f"]})
    again = optimizer.confirm()
    assert again is None or again.params != first.params


def test_replicates_are_of_the_same_input_to_the_last_digit():
    """Decoding what was encoded changes the last digit of most round numbers on a log scale."""
    rng = RNG(0)
    stated = cm.Problem(
        {"rate": cm.Real(1e-5, 1e-1, log=True)}, minimize="f", constraints=["c <= 1"]
    )
    optimizer = cm.Optimizer(stated, model=cm.Model(hyperparameters="map"))
    rates = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 1e-2, 3e-2, 1e-1]

    def values(rate):
        power = np.log10(rate) + 5
        return {
            "f": -power + 0.01 * rng.standard_normal(),
            "c": power / 2.5 + 0.15 * rng.standard_normal(),
        }

    for rate in 2 * rates:
        optimizer.add({"rate": rate}, values(rate))
    asked = []
    for _ in range(8):
        job = optimizer.confirm()
        if job is None:
            break
        asked.append(job.params["rate"])
        optimizer.tell(job, values(job.params["rate"]))
    assert all(asked.count(rate) <= 4 for rate in asked)
    close = [rate for rate in asked if min(abs(np.log(rate / each)) for each in rates) < 1e-9]
    assert all(rate in rates for rate in close)


def test_confirming_ends_when_a_confirmed_input_is_as_good():
    optimizer = searched(14)
    jobs = 0
    while (job := optimizer.confirm()) is not None:
        optimizer.tell(job, measure(job.task, job.params))
        jobs += 1
        assert jobs < 30
    assert optimizer.recommend(kind="observed").objective == pytest.approx(0.02, abs=1e-4)


def test_an_input_is_forgotten_if_the_search_goes_on():
    optimizer = cm.Optimizer(problem(), seed=0, initial=3)
    for _ in range(6):
        job = optimizer.ask()
        optimizer.tell(job, measure(job.task, job.params))
    begun = optimizer.confirm()
    optimizer.tell(begun, measure(begun.task, begun.params))
    for _ in range(12):
        job = optimizer.ask()
        optimizer.tell(job, measure(job.task, job.params))
    assert optimizer.confirm().params == optimizer.recommend().params


def test_a_pass_rate_is_not_confirmed_by_one_pass():
    rng = RNG(0)
    stated = cm.Problem({"x": cm.Real(0, 1)}, maximize="f", constraints=["P(green) >= 0.9"])
    optimizer = cm.Optimizer(stated, model=cm.Model(hyperparameters="map"), seed=0)

    def values(x):
        return {"f": x, "green": bool(rng.random() < 1 / (1 + np.exp(20 * (x - 0.6))))}

    for _ in range(15):
        job = optimizer.ask()
        optimizer.tell(job, values(job.params["x"]))
    counts: dict[float, int] = {}
    for _ in range(8):
        job = optimizer.confirm()
        if job is None:
            break
        counts[job.params["x"]] = counts.get(job.params["x"], 0) + 1
        optimizer.tell(job, values(job.params["x"]))
    assert max(counts.values()) > 1


def test_optimize_confirms_by_default_within_the_budget():
    calls = []

    def evaluate(params):
        calls.append(params)
        return measure(None, params)

    given = {"space": problem().space.parameters, "minimize": "f", "constraints": ["c <= 1"]}
    result = cm.optimize(evaluate, evaluations=24, **given)
    assert len(calls) == 24
    assert result.recommendation.confirmed
    assert result.objective == pytest.approx(0.02, abs=2e-3)
    last = [d.update for d in result.optimizer.decisions][-3:]
    assert "confirm" in last
    plain = cm.optimize(evaluate, evaluations=10, confirm=0, **given)
    assert "confirm" not in [d.update for d in plain.optimizer.decisions]


@pytest.mark.parametrize("budget", [{"evaluations": 30}, {"cost": 30.0}, {"bits": 0.02}])
def test_a_run_ends_with_a_confirmed_point(budget, tmp_path):
    tasks = {name: lambda params, name=name: measure(name, params) for name in ("score", "test")}
    clock = cm.VirtualClock({})
    study = cm.Study(problem(), f"sqlite:///{tmp_path}/study.db", seed=0, clock=clock)
    report = study.run(
        tasks, **budget, confirm=3, executor=cm.Simulated({"score": 1.0, "test": 1.0}, clock)
    )
    kinds = [job.update for job in study.jobs]
    assert "confirm" in kinds
    if "evaluations" in budget:
        assert report.evaluations == 30
        assert all(kind != "confirm" for kind in kinds[:24])
    observed = study.recommend(kind="observed")
    assert observed.confirmed
    assert observed.objective == pytest.approx(0.02, abs=2e-3)
    again = cm.Study.load(f"sqlite:///{tmp_path}/study.db", clock=cm.VirtualClock({}))
    assert again.summary().recommendation == observed
    assert again.optimizer.confirm() == study.optimizer.confirm()


@pytest.mark.parametrize(
    "budget",
    [
        {"cost": 12.0, "evaluations": 1000},
        {"seconds": 12.0, "evaluations": 1000},
        {"seconds": 12.0, "cost": 1000.0},
    ],
)
def test_the_first_budget_to_run_out_keeps_a_reserve(budget):
    clock = cm.VirtualClock({})
    stated = problem(tasks={"both": cm.Task(["f", "c"])})
    study = cm.Study(stated, clock=clock, model=cm.Model(hyperparameters="map"))
    study.run(
        lambda params: measure(None, params),
        **budget,
        confirm=2,
        executor=cm.Simulated({"both": 1.0}, clock),
    )
    assert "confirm" in [job.update for job in study.jobs][-2:]


def test_a_reserve_waits_for_a_resource_that_is_busy():
    """It is not spent on whatever can start meanwhile."""
    stated = problem(
        tasks={"score": cm.Task("f", ["gpu"]), "test": cm.Task("c", ["cpu"])},
        resources={"gpu": 1, "cpu": 2},
    )
    clock = cm.VirtualClock({})
    study = cm.Study(stated, clock=clock, model=cm.Model(hyperparameters="map"))
    study.run(
        {name: lambda params, name=name: measure(name, params) for name in ("score", "test")},
        evaluations=30,
        confirm=3,
        executor=cm.Simulated({"score": 10.0, "test": 1.0}, clock),
    )
    assert [job.update for job in study.jobs][-6:].count("confirm") >= 4
    observed = study.recommend(kind="observed")
    assert observed.confirmed
    assert observed.objective == pytest.approx(0.02, abs=0.05)


def test_a_study_can_be_asked_to_confirm():
    study = cm.Study(problem(), seed=0)
    for _ in range(14):
        job = study.ask()
        study.tell(job, measure(job.task, job.params))
    tried = study.optimizer
    assert tried.confirm().update == "confirm"  # on a copy: the study does not know
    best = study.recommend()
    job = study.ask(confirm=True)
    assert (job.update, job.params) == ("confirm", best.params)


def test_a_toy_study_is_confirmed_close_to_the_optimum():
    solved = toy()
    optimizer = cm.Optimizer(solved.problem, seed=1)
    for left in range(54, 0, -1):
        job = (optimizer.confirm() if left <= 9 else None) or optimizer.ask()
        optimizer.tell(job, solved.evaluate(job.params, job.task))
    observed = optimizer.recommend(kind="observed")
    assert observed.confirmed
    assert solved.feasible(observed.params)
    assert solved.gap(observed.params) < 1e-2


# -- pass rates ----------------------------------------------------------------------------------


def test_a_pass_rate_is_a_limit_on_the_latent_score():
    from scipy.special import ndtr

    for text in ("P(green) >= 0.95", cm.Constraint("green", passes=0.95)):
        stated = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=[text])
        (constraint,) = stated.constraints
        assert constraint.binary
        assert ndtr(constraint.low) == pytest.approx(0.95)
        assert cm.Problem.from_toml(stated.to_toml()) == stated
        assert "rate of at least 0.95" in stated.describe()
    bare = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["green"])
    assert bare.constraints[0].passes == 0.5
    assert "rate of at least one half" in bare.describe()
    for wrong in ("P(green) <= 0.95", "P(green) >= 1.5", "P(green) >= 0"):
        with pytest.raises(cm.ProblemError, match=r"rate|0\.95"):
            cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=[wrong])


@pytest.mark.slow
def test_recommendations_pass_at_the_rate_that_was_asked_for():
    """Outcomes with the probability Φ((0.6 − x)/0.1): 0.95 of them pass where x ≤ 0.436."""
    from scipy.special import ndtr

    rates = []
    for seed in range(20):
        rng = RNG(seed)
        stated = cm.Problem({"x": cm.Real(0, 1)}, maximize="f", constraints=["P(green) >= 0.95"])
        optimizer = cm.Optimizer(stated, seed=seed)
        for _ in range(40):
            job = optimizer.ask()
            x = job.params["x"]
            passed = bool(rng.random() < ndtr((0.6 - x) / 0.1))
            optimizer.tell(job, {"f": x, "green": passed})
        rates.append(float(ndtr((0.6 - optimizer.recommend().params["x"]) / 0.1)))
    # Each is to reach 0.95 with a probability of 0.95: at least 15 of 20 do but once in 300.
    assert sum(rate >= 0.93 for rate in rates) >= 15, sorted(rates)
    assert np.mean(rates) > 0.9


def test_a_limit_that_was_met_without_noise_is_met():
    stated = problem(tasks={"both": cm.Task(["f", "c"])})
    optimizer = cm.Optimizer(stated, seed=0)
    inputs = [{"x": float(x), "y": float(y)} for x, y in RNG(0).random((25, 2))]
    for params in [*inputs, inputs[0]]:
        values = measure(None, params)
        rough = 0.1 * math.sin(1e4 * values["c"])
        optimizer.add(params, {"f": -values["c"], "c": values["c"] + rough})
    found = optimizer.recommend(kind="observed")
    assert optimizer.predict(found.params).probability < 0.99
    assert found.probability == 1
    assert found.confirmed
