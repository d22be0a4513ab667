"""Measuring an input again, once, to learn whether functions are noisy."""

import numpy as np
from tests.decide.conftest import two_parameters

import calamint as cm

RNG = np.random.default_rng


def exact(params):
    x, y = params["x"], params["y"]
    return {"f": (x - 0.3) ** 2 + (y - 0.9) ** 2, "c": x + y}


def measure(params, rng):
    """So noisy that it cannot be told from a rough function."""
    noise = 0.3 * rng.standard_normal(2)
    return {name: value + n for (name, value), n in zip(exact(params).items(), noise, strict=True)}


def kinds(optimizer, jobs, report=lambda values: values):
    rng = RNG(0)
    for _ in range(jobs):
        job = optimizer.ask()
        values = report(measure(job.params, rng))
        measures = optimizer.problem.tasks[job.task].measures
        optimizer.tell(job, {name: values[name] for name in measures})
    return [decision.update for decision in optimizer.decisions]


def test_one_input_is_measured_again_to_the_last_digit():
    optimizer = cm.Optimizer(two_parameters(), seed=0)
    found = kinds(optimizer, 16)
    assert found.count("repeat") == 1
    assert found.index("repeat") >= 10
    again = optimizer.history[found.index("repeat")]
    earlier = optimizer.history[: found.index("repeat")]
    assert again.params in [record.params for record in earlier]


def test_it_is_an_input_that_is_likely_to_be_feasible():
    for seed in range(3):
        optimizer = cm.Optimizer(two_parameters(), seed=seed)
        found = kinds(optimizer, 20)
        again = optimizer.history[found.index("repeat")].params
        assert again["x"] + again["y"] < 1.3  # the limit is at 1, the noise 0.3


def test_every_task_does_so():
    tasks = {"score": cm.Task("f"), "test": cm.Task("c")}
    optimizer = cm.Optimizer(two_parameters(tasks=tasks), seed=0)
    found = kinds(optimizer, 30)
    repeated = [
        r.task for r, kind in zip(optimizer.history, found, strict=True) if kind == "repeat"
    ]
    assert len(repeated) == len(set(repeated)) >= 1


def test_noise_that_is_known_needs_no_repetition():
    exact = cm.Optimizer(two_parameters(), model=cm.Model(noise_variance=0), seed=0)
    assert "repeat" not in kinds(exact, 14)
    told = cm.Optimizer(two_parameters(), seed=0)
    with_errors = kinds(told, 14, lambda values: {n: (v, 0.3) for n, v in values.items()})
    assert "repeat" not in with_errors


def test_measurements_that_were_repeated_by_the_user_count():
    optimizer = cm.Optimizer(two_parameters(), seed=0)
    rng = RNG(1)
    for _ in range(2):
        optimizer.add({"x": 0.5, "y": 0.2}, measure({"x": 0.5, "y": 0.2}, rng))
    assert "repeat" not in kinds(optimizer, 14)


def test_smooth_functions_are_not_measured_again():
    optimizer = cm.Optimizer(two_parameters(), seed=0)
    for x in np.linspace(0, 1, 5):
        for y in np.linspace(0, 1, 5):
            params = {"x": float(x), "y": float(y)}
            optimizer.add(params, {"f": (x - 0.3) ** 2 + (y - 0.9) ** 2, "c": float(x + y)})
    for _ in range(3):
        job = optimizer.ask()
        x, y = job.params.values()
        optimizer.tell(job, {"f": (x - 0.3) ** 2 + (y - 0.9) ** 2, "c": x + y})
        assert job.update == "full"


def test_a_repetition_that_fails_is_not_tried_again():
    optimizer, rng = cm.Optimizer(two_parameters(), seed=0), RNG(0)
    for _ in range(18):
        job = optimizer.ask()
        if job.update == "repeat":
            assert "again, to learn how noisy it is" in str(job)
            optimizer.fail(job, "it crashed")
        else:
            optimizer.tell(job, measure(job.params, rng))
    assert [decision.update for decision in optimizer.decisions].count("repeat") == 1


def test_a_restart_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study, through = cm.Study(two_parameters(), url), cm.Optimizer(two_parameters())
    rng = RNG(0)
    for _ in range(14):
        study = cm.Study.load(url)
        job, same = study.ask(), through.ask()
        assert (job.update, job.params) == (same.update, same.params)
        values = measure(job.params, rng)
        study.tell(job, values)
        through.tell(same, values)
    assert [job.update for job in study.jobs].count("repeat") == 1
