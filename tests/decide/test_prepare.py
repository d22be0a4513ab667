"""Deciding while jobs run: what was prepared changes when work is done, and not what is decided."""

import numpy as np
import pytest

import calamint as cm
from calamint.decide import decision, prepare

PROBLEM = cm.Problem(
    {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
    "f",
    constraints=["c >= 0"],
    tasks={"cost": cm.Task("f", runs_on="here"), "check": cm.Task("c", runs_on="here")},
    resources={"here": 3},
)
SETTINGS = {
    "model": cm.Model(hyperparameters="map"),
    "initial": 3,
    "rationality": "overlap",
    "seed": 1,
}


def values_of(job):
    x, y = job.params["x"], job.params["y"]
    found = {"f": (x - 0.3) ** 2 + np.sin(5 * y), "c": 0.8 - x - y}
    return {name: found[name] for name in PROBLEM.tasks[job.task].measures}


def run(study, prepare_every=1, count=24, reopened=None):
    """Three at a time, told one by one; the kinds of decisions, and what was decided."""
    running, made = [], []
    while len(made) < count:
        while len(running) < 3:
            job = study.ask()
            running.append(job)
            made.append((job.task, job.params, job.update))
        if prepare_every and len(made) % prepare_every == 0:
            study.prepare()
        job = running.pop(0)
        if len(made) == 15:
            study.fail(job, "it crashed")  # a constraint more
        else:
            study.tell(job, values_of(job))
        if reopened is not None:
            study = reopened()
    return made


def test_preparing_changes_no_decision():
    always = run(cm.Optimizer(PROBLEM, **SETTINGS))
    never = run(cm.Optimizer(PROBLEM, **SETTINGS), prepare_every=0)
    at_times = run(cm.Optimizer(PROBLEM, **SETTINGS), prepare_every=3)
    assert always == never == at_times
    kinds = [kind for *_, kind in always]
    assert kinds.count("partial") > 12
    assert always != run(cm.Optimizer(PROBLEM, **{**SETTINGS, "rationality": "batch"}))


def test_a_study_that_is_reopened_after_every_result_decides_alike(tmp_path):
    def study(name):
        return cm.Study(PROBLEM, f"sqlite:///{tmp_path / name}.db", **SETTINGS)

    stays = run(study("stays"))
    assert run(study("goes"), reopened=lambda: study("goes")) == stays
    assert run(study("alone"), prepare_every=0, reopened=lambda: study("alone")) == stays


@pytest.fixture
def full_updates(monkeypatch):
    calls = []
    for module in (prepare, decision):
        update = module.full_update

        def counted(*arguments, update=update, **named):
            calls.append(arguments)
            return update(*arguments, **named)

        monkeypatch.setattr(module, "full_update", counted)
    return calls


def test_what_is_prepared_is_not_done_again(full_updates):
    optimizer = cm.Optimizer(PROBLEM, **SETTINGS)
    for _ in range(9):
        job = optimizer.ask()
        optimizer.tell(job, values_of(job))
    job, other = optimizer.ask(), optimizer.ask()
    optimizer.prepare()
    before = len(full_updates)
    optimizer.prepare()
    optimizer.tell(job, values_of(job))
    assert optimizer.ask().update == "partial"
    assert len(full_updates) == before
    # If nothing is told, it is decided as after any full update.
    optimizer.tell(other, values_of(other))
    optimizer.ask()
    optimizer.prepare()
    before = len(full_updates)
    assert optimizer.ask().update == "full"
    assert len(full_updates) == before


def test_runs_prepare(full_updates, monkeypatch):
    prepared = cm.Study.prepare
    calls = []
    monkeypatch.setattr(cm.Study, "prepare", lambda self: calls.append(prepared(self)))
    study = cm.Study(PROBLEM, **{**SETTINGS, "seed": 2})
    tasks = {
        "cost": lambda params: {"f": params["x"] + params["y"]},
        "check": lambda params: {"c": 0.8 - params["x"]},
    }
    report = study.run(tasks, evaluations=20)
    assert report.evaluations == 20
    assert len(calls) > 4
    assert len(full_updates) > 4


def test_nothing_is_prepared_where_that_was_not_asked_for(full_updates):
    optimizer = cm.Optimizer(PROBLEM, **{**SETTINGS, "rationality": float("inf")})
    for _ in range(9):
        job = optimizer.ask()
        optimizer.tell(job, values_of(job))
    before = len(full_updates)
    optimizer.prepare()
    assert len(full_updates) == before
