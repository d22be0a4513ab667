"""Confirming: the recommended input is measured by every task that has not measured it."""

import numpy as np
import pytest

import calamint as cm
from calamint.testbed import toy

RNG = np.random.default_rng


def problem(**changes):
    given = {
        "space": {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        "minimize": "f",
        "constraints": ["c <= 1"],
        "tasks": {"score": cm.Task("f"), "test": cm.Task("c")},
    }
    return cm.Problem(**{**given, **changes})


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
    optimizer = searched(14)
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


def test_observed_joins_tasks_and_averages_replicates():
    optimizer = cm.Optimizer(problem())
    near, far = {"x": 0.2, "y": 0.7}, {"x": 0.2, "y": 0.75}
    optimizer.add(near, {"f": 1.0})
    optimizer.add(near, {"f": 2.0})
    optimizer.add(near, {"c": 0.95})
    optimizer.add(far, {"f": 0.5})
    best = optimizer.recommend(kind="observed")
    assert (best.params, best.confirmed) == (near, True)
    assert best.objective == pytest.approx(1.5)
    optimizer.add(near, {"c": 1.25})  # on average 1.1: the limit is not met after all
    best = optimizer.recommend(kind="observed")
    assert not best.confirmed
    assert "confirmed" not in str(best)


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
