"""Jobs that fail: what was measured is kept, where tasks work is learnt, and nothing breaks."""

import math

import numpy as np
import pytest
from tests.acquire.cases import RNG, derivatives

import calamint as cm
from calamint.decide.failures import SuccessProbability

POINT = cm.Model(hyperparameters="map")
SQUARE = {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}


def problem(failures="model", tasks=None):
    return cm.Problem(
        SQUARE,
        minimize="f",
        constraints=["c >= 0"],
        tasks=tasks or {"run": cm.Task(measures=["f", "c"], failures=failures)},
    )


def values_at(params):
    x, y = params["x"], params["y"]
    return {"f": (x - 0.2) ** 2 + (y - 0.2) ** 2, "c": 1.2 - x - y}


def decoy(params):
    """Two hollows: the deeper one is where everything crashes, the other at (0.85, 0.8)."""
    x, y = params["x"], params["y"]
    deep = math.exp(-((x - 0.4) ** 2 + (y - 0.4) ** 2) / 0.03)
    shallow = math.exp(-((x - 0.85) ** 2 + (y - 0.8) ** 2) / 0.04)
    return {"f": -deep - 0.7 * shallow, "c": 1.0}


def crashes(params):
    """A disc around the decoy, 40 % of the square."""
    return (params["x"] - 0.4) ** 2 + (params["y"] - 0.4) ** 2 < 0.4 / math.pi


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, None, (math.nan, 0.1)])
def test_what_was_measured_is_kept_and_the_rest_failed(broken):
    optimizer = cm.Optimizer(problem(), model=POINT)
    job = optimizer.ask()
    optimizer.tell(job, {"f": 1.5, "c": broken})
    assert optimizer.history[0].values == {"f": 1.5}
    ((failed, reason),) = optimizer.failures
    assert failed == job
    assert "c is" in reason
    assert optimizer.pending == ()


def test_what_is_left_out_was_not_measured_and_did_not_fail():
    optimizer = cm.Optimizer(problem(), model=POINT)
    optimizer.tell(optimizer.ask(), {"f": 1.5})
    assert optimizer.history[0].values == {"f": 1.5}
    assert optimizer.failures == ()


def test_measurements_that_were_not_asked_for_have_to_be_numbers():
    optimizer = cm.Optimizer(problem(), model=POINT)
    with pytest.raises(cm.ResultError, match="leave it out"):
        optimizer.add({"x": 0.1, "y": 0.2}, {"f": math.nan})
    assert optimizer.history == []


def search(evaluations, failures="model", seed=0, fails=crashes, measure=decoy, **settings):
    optimizer = cm.Optimizer(problem(failures), model=POINT, seed=seed, **settings)
    failed = []
    for _ in range(evaluations):
        job = optimizer.ask()
        failed.append(fails(job.params))
        if failed[-1]:
            optimizer.fail(job, "diverged")
        else:
            optimizer.tell(job, measure(job.params))
    assert all(decision.update != "fallback" for decision in optimizer.decisions)
    assert all(decision.warnings == () for decision in optimizer.decisions)
    return optimizer, failed


def test_where_a_task_works_is_learnt_and_avoided():
    optimizer, failed = search(40, seed=2)
    assert sum(failed[20:]) <= 3
    inside, outside = (optimizer.predict({"x": x, "y": y}) for x, y in ((0.4, 0.4), (0.85, 0.8)))
    assert inside["run_works"].probability < 0.4
    assert outside["run_works"].probability > 0.8
    found = optimizer.recommend(delta=0.2)
    assert math.hypot(found.params["x"] - 0.85, found.params["y"] - 0.8) < 0.05
    assert set(optimizer.gains([found.params])) == {"f", "c"} | {"run_works"}


def test_ignored_failures_are_not_learnt_from():
    optimizer, failed = search(16, "ignore", seed=1)
    assert any(failed)
    assert "run_works" not in optimizer.predict({"x": 0.5, "y": 0.5}).functions


def test_failures_of_the_machine_are_tried_again():
    optimizer = cm.Optimizer(problem("retry"), model=POINT, retries=3)
    first = optimizer.ask()
    again = [first]
    for _ in range(3):
        optimizer.fail(again[-1], "the node went away")
        again.append(optimizer.ask())
        assert again[-1].params == first.params
        assert again[-1].update == "retry"
    optimizer.fail(again[-1], "and again")
    assert optimizer.ask().params != first.params  # four times are enough


def test_one_failure_does_not_close_a_region():
    """A task that failed once at an input is still tried nearby."""
    once = iter([True])

    def fails(params):
        near = abs(params["x"] - 0.2) < 0.25 and abs(params["y"] - 0.2) < 0.25
        return near and next(once, False)

    optimizer, failed = search(25, fails=fails, measure=values_at)
    assert sum(failed) == 1
    found = optimizer.recommend(delta=0.2).params
    assert abs(found["x"] - 0.2) < 0.1
    assert abs(found["y"] - 0.2) < 0.1


@pytest.mark.parametrize("rationality", [math.inf, 0.0, "batch"])
def test_tasks_have_failures_of_their_own(rationality):
    tasks = {
        "objective": cm.Task(measures=["f"], cost=3),
        "limit": cm.Task(measures=["c"], runs_on=["here"]),
    }
    stated = cm.Problem(
        SQUARE,
        minimize="f",
        constraints=["c >= 0"],
        tasks=tasks,
        resources={"here": 2, "there": 1},
    )
    optimizer = cm.Optimizer(stated, model=POINT, rationality=rationality, seed=3)
    for _ in range(10):
        for job in optimizer.ask_all():
            if (job.params["x"] > 0.6) if job.task == "objective" else (job.params["y"] > 0.6):
                optimizer.fail(job, "no")
            else:
                measures = stated.tasks[job.task].measures
                optimizer.tell(job, {n: values_at(job.params)[n] for n in measures})
    assert all(decision.update != "fallback" for decision in optimizer.decisions)
    assert all(decision.warnings == () for decision in optimizer.decisions)
    for task in tasks:
        failed = [job.params for job, _ in optimizer.failures if job.task == task]
        worked = [record.params for record in optimizer.history if record.task == task]
        chances = [
            np.mean([optimizer.predict(params)[f"{task}_works"].probability for params in places])
            for places in (failed, worked)
        ]
        assert chances[0] < chances[1] - 0.2


def test_a_task_that_never_works_is_tried_all_over_the_space():
    """A model of failures alone would look in the corners."""
    optimizer, _ = search(20, fails=lambda params: True)
    assert {decision.update for decision in optimizer.decisions} == {"initial"}
    assert optimizer.recommend().confident is False
    tried = np.array([list(job.params.values()) for job, _ in optimizer.failures])
    gaps = np.linalg.norm(tried[:, None] - tried, axis=-1) + 9 * np.eye(20)
    assert gaps.min() > 0.05


def test_a_test_that_never_passed_is_tried_all_over_the_space():
    stated = cm.Problem(SQUARE, minimize="f", constraints=["ok"])
    optimizer = cm.Optimizer(stated, model=POINT, seed=0)
    for _ in range(12):
        job = optimizer.ask()
        optimizer.tell(job, {"f": job.params["x"], "ok": False})
    assert {decision.update for decision in optimizer.decisions} == {"initial"}
    optimizer.add({"x": 0.5, "y": 0.5}, {"f": 0.5, "ok": True})
    assert optimizer.ask().update == "full"


@pytest.mark.parametrize("name", ["eic", "thompson", "auglag", "ev", "ieci", "rsdg"])
def test_every_method_avoids_failures(name):
    optimizer, failed = search(12, acquisition=name, fails=lambda params: params["x"] > 0.5)
    assert any(failed)
    assert "run_works" in optimizer.predict({"x": 0.5, "y": 0.5}).functions


def test_gradient_of_the_probability_of_success():
    optimizer, _ = search(14, seed=1)
    surrogate = optimizer.query().surrogate
    success = SuccessProbability(surrogate.functions["run_works"])
    x = RNG(0).uniform(0.05, 0.95, (6, 2))
    value, gradient = success.value_gradient(x)
    assert np.allclose(value, success.value(x))
    assert np.allclose(gradient, derivatives(success.value, x), rtol=1e-4, atol=1e-7)


def test_settings_are_checked_and_written():
    with pytest.raises(cm.ProblemError, match="'retry'"):
        cm.Task(measures=["f"], failures="rety")
    stated = problem("retry")
    assert cm.Problem.from_toml(stated.to_toml()) == stated
    assert 'failures = "retry"' in stated.to_toml()
    assert "failures" not in problem().to_toml()


@pytest.mark.parametrize("name", ["t" * 200, "ü" * 100])
def test_the_longest_name_of_a_task_leaves_room_for_what_is_learnt_of_it(name):
    tasks = {name: cm.Task(["f", "c"], failures="model")}
    optimizer = cm.Optimizer(problem(tasks=tasks), model=POINT, initial=2)
    optimizer.fail(optimizer.ask(), "no")
    job = optimizer.ask()
    optimizer.tell(job, values_at(job.params))
    assert optimizer.ask() is not None
