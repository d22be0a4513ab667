"""Tasks compete for resources: who wins, what is booked, and that nobody waits for ever."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calamint as cm

POINT = cm.Model(hyperparameters="map")


def problem(tasks, resources, space=None):
    return cm.Problem(
        space or {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=["c >= 0"],
        tasks=tasks,
        resources=resources,
    )


def evaluate(task_measures, params):
    x, y = params["x"], params["y"]
    values = {"f": x + y, "c": x * y - 0.1 + 0.1 * math.sin(9 * x)}
    return {name: values[name] for name in task_measures}


def tell(optimizer, job):
    measures = optimizer.problem.tasks[job.task].measures
    optimizer.tell(job, evaluate(measures, job.params))


def decoupled(resources=None, **costs):
    return problem(
        {
            "objective": cm.Task(measures=["f"], cost=costs.get("f", 1.0)),
            "constraint": cm.Task(measures=["c"], cost=costs.get("c", 1.0)),
        },
        resources or {"here": 1},
    )


def test_each_task_starts_at_the_same_space_filling_inputs():
    optimizer = cm.Optimizer(decoupled(), model=POINT, seed=0)
    jobs = []
    for _ in range(2 * optimizer.initial):
        jobs.append(optimizer.ask())
        tell(optimizer, jobs[-1])
    assert {job.update for job in jobs} == {"initial"}
    assert Counter(job.task for job in jobs) == {"objective": 3, "constraint": 3}
    inputs = {
        task: [job.params for job in jobs if job.task == task]
        for task in ("objective", "constraint")
    }
    assert inputs["objective"] == inputs["constraint"]


def test_a_suggestion_says_why():
    optimizer = cm.Optimizer(decoupled(c=4.0), model=POINT, seed=0)
    for _ in range(2 * optimizer.initial):
        tell(optimizer, optimizer.ask())
    job = optimizer.ask()
    assert set(job.bits) == set(optimizer.problem.tasks[job.task].measures)
    assert set(job.scores) == {"objective", "constraint"}
    assert list(job.runners_up) == [task for task in job.scores if task != job.task]
    assert job.cost == {"objective": 1.0, "constraint": 4.0}[job.task]
    assert job.scores[job.task] == pytest.approx(job.bits_per_cost, rel=1e-6)
    assert job.scores[job.task] == max(job.scores.values())
    assert job.update == "full"
    assert job.decision_seconds > 0
    assert "bits are expected" in str(job)
    assert "next best" in str(job)


def test_cost_decides_between_tasks_and_inputs():
    """What costs a thousand times as much is not chosen; a cost that grows with x pulls x down."""
    for dear, cheap in (("f", "constraint"), ("c", "objective")):
        optimizer = cm.Optimizer(decoupled(**{dear: 1000.0}), model=POINT, seed=0)
        for _ in range(2 * optimizer.initial):
            tell(optimizer, optimizer.ask())
        chosen = []
        for _ in range(3):
            job = optimizer.ask()
            chosen.append(job.task)
            tell(optimizer, job)
        assert chosen == [cheap] * 3
    means = []
    for cost in (1.0, lambda p: math.exp(8 * p["x"])):
        both = problem({"all": cm.Task(measures=["f", "c"], cost=cost)}, {"here": 1})
        optimizer = cm.Optimizer(both, model=POINT, seed=0)
        for _ in range(8):
            tell(optimizer, optimizer.ask())
        means.append(np.mean([record.params["x"] for record in optimizer.history[3:]]))
    assert means[1] < means[0]


def test_learnt_costs_follow_the_durations_that_were_told():
    task = {"all": cm.Task(measures=["f", "c"], cost="learn")}
    optimizer = cm.Optimizer(problem(task, {"here": 1}), model=POINT, seed=0)
    for _ in range(8):
        job = optimizer.ask()
        measures = ["f", "c"]
        seconds = 100 * math.exp(3 * job.params["x"])
        optimizer.tell(job, evaluate(measures, job.params), seconds=seconds)
    job = optimizer.ask()
    assert job.cost == pytest.approx(100 * math.exp(3 * job.params["x"]), rel=0.3)
    assert "at a cost of" in str(job)


def test_no_capacity_gives_none_and_ask_all_fills_it():
    optimizer = cm.Optimizer(decoupled({"here": 2, "there": 1}), model=POINT, seed=0)
    jobs = optimizer.ask_all()
    assert len(jobs) == 3
    assert optimizer.ask() is None
    assert Counter(word for job in jobs for word in job.resources) == {"here": 2, "there": 1}
    optimizer.cancel(jobs[0])
    assert optimizer.ask().resources == jobs[0].resources


def test_a_given_resource_or_task_is_asked_about():
    optimizer = cm.Optimizer(decoupled({"here": 1, "there": 1}), model=POINT, seed=0)
    assert optimizer.ask(resource="there").resources == ("there",)
    assert optimizer.ask(resource="there") is None
    assert optimizer.ask(task="constraint").task == "constraint"


def test_a_task_takes_all_of_its_resources_or_none_and_does_not_wait_for_ever():
    """Two tasks keep a and b busy in turns; the third needs both at once."""
    tasks = {
        "on_a": cm.Task(measures=["f"], runs_on=["a"]),
        "on_b": cm.Task(measures=["f"], runs_on=["b"]),
        "on_both": cm.Task(measures=["f", "c"], runs_on=[["a", "b"]], cost=0.01),
    }
    optimizer = cm.Optimizer(problem(tasks, {"a": 1, "b": 1}), "random", seed=0, initial=0)
    running = [optimizer.ask(task="on_a"), optimizer.ask(task="on_b")]
    ran = Counter()
    for turn in range(60):
        job = running.pop(0)
        ran[job.task] += 1
        tell(optimizer, job)
        running += optimizer.ask_all()
        booked = Counter(word for job in running for word in job.resources)
        assert all(count <= 1 for count in booked.values()), turn
        assert running, turn
    assert ran["on_both"] >= 2
    assert ran["on_a"] + ran["on_b"] >= 20


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 3), st.integers(1, 2))
def test_no_resource_is_ever_over_booked(actions, here, there):
    tasks = {
        "f": cm.Task(measures=["f"], runs_on=["here", "there"]),
        "c": cm.Task(measures=["c"], runs_on=["there", ["here", "lab"]]),
    }
    optimizer = cm.Optimizer(
        problem(tasks, {"here": here, "there": there, "lab": 1}), "random", seed=0
    )
    for action in actions:
        pending = optimizer.pending
        if action < 3:
            optimizer.ask()
        elif pending and action == 3:
            tell(optimizer, pending[0])
        elif pending and action == 4:
            optimizer.fail(pending[-1], "crashed")
        elif pending:
            optimizer.cancel(pending[0])
        booked = Counter(word for job in optimizer.pending for word in job.resources)
        assert all(booked[word] <= most for word, most in optimizer.problem.resources.items())


def test_who_asks_for_one_task_is_not_held_up_by_another():
    tasks = {
        "a": cm.Task(measures=["f"], runs_on=["desk"]),
        "b": cm.Task(measures=["c"], runs_on=["lab"]),
        "t": cm.Task(measures=["f", "c"], runs_on=[["desk", "lab"]]),
    }
    optimizer = cm.Optimizer(problem(tasks, {"desk": 1, "lab": 1}), "random", initial=0)
    optimizer.ask(task="b")
    for _ in range(20):
        tell(optimizer, optimizer.ask(task="a"))


def test_a_cancelled_initial_input_is_suggested_again():
    optimizer = cm.Optimizer(decoupled(), "random", seed=0)
    first = optimizer.ask(task="objective")
    optimizer.cancel(first)
    assert optimizer.ask(task="objective").params == first.params


def test_initial_jobs_say_what_they_cost():
    optimizer = cm.Optimizer(decoupled(c=4.0), "random", seed=0)
    assert optimizer.ask(task="constraint").cost == 4.0


def test_costs_that_are_not_positive_at_a_corner_are_refused():
    task = {"all": cm.Task(measures=["f", "c"], cost=lambda p: p["x"])}
    with pytest.raises(cm.ProblemError, match="positive"):
        cm.Optimizer(problem(task, {"here": 1}))


def test_a_grid_that_cannot_cover_the_space_is_refused_at_once():
    space = {name: cm.Real(0, 1) for name in ("x", "y", "z")}
    with pytest.raises(cm.ProblemError, match="'rsdg'"):
        cm.Optimizer(cm.Problem(space, minimize="f"), "rs")


def test_the_best_observed_input_of_a_known_objective():
    known = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["g <= 1"],
        known={"f": lambda params: params["x"]},
    )
    optimizer = cm.Optimizer(known, model=POINT)
    for x in (0.9, 0.1, 0.5):
        optimizer.add({"x": x}, {"g": 0.5})
    assert optimizer.recommend(kind="observed").params == {"x": 0.1}
