"""Bounds, options, limits, tasks and resources that are changed while a study runs."""

import numpy as np
import pytest
from tests.run.cases import SQUARE, decoupled, quick, values_of

import calamint as cm

BREW = {
    "space": {"heat": cm.Real(20, 100), "acid": cm.Choice("HCl", "H2SO4", "AcOH")},
    "minimize": "cost",
    "constraints": ["purity >= 0.5"],
}


def brewing(**changes):
    return cm.Problem(**{**BREW, **changes})


def brewed(params):
    strength = {"HCl": 0.0, "H2SO4": 0.2, "AcOH": 0.5, "HNO3": 0.1}[params["acid"]]
    heat = params["heat"] / 100
    return {"cost": (heat - 0.6) ** 2 + strength, "purity": heat, "colour": 1 - heat}


def tell(study, job):
    measures = study.problem.tasks[job.task].measures
    values = brewed(job.params)
    return study.tell(job, {name: values[name] for name in measures}, seconds=1.0)


def study_of(problem=None, storage="sqlite://", count=6):
    model = cm.Model(hyperparameters="map", transform="none")
    study = cm.Study(problem or brewing(), storage, seed=2, model=model, initial=4)
    for _ in range(count):
        tell(study, study.ask())
    return study


def data_of(study):
    data = study.replica().optimizer.observations.data
    return {name: each.values.tolist() for name, each in data.items()}


# -- bounds and options --------------------------------------------------------------------------


def test_bounds_that_are_narrower_bind_suggestions_and_measurements_keep_teaching():
    study = study_of()
    narrow = brewing(space={"heat": cm.Real(50, 80), "acid": BREW["space"]["acid"]})
    before = data_of(study)
    outside = [r for r in study.history if not 50 <= r.params["heat"] <= 80]
    assert outside
    assert study.change(narrow) == ["space.heat.real is [50.0, 80.0], and was [20.0, 100.0]"]
    assert data_of(study) == before
    at = outside[0].params
    # What was measured beyond the new bounds is known there: the model is less sure without it.
    known = study.optimizer.query().surrogate.functions["purity"].posterior
    inputs = study.problem.space.encode(at, outside=True)[None]
    assert float(np.sqrt(known.mean_variance(inputs)[1].mean())) < 0.2
    for _ in range(3):
        job = study.ask()
        assert 50 <= job.params["heat"] <= 80
        tell(study, job)
    for kind in ("believed", "observed"):
        assert 50 <= study.recommend(kind=kind).params["heat"] <= 80


def test_what_is_observed_best_must_lie_within_the_bounds():
    study = study_of(count=0)
    study.add({"heat": 60.0, "acid": "HCl"}, {"cost": 0.0, "purity": 0.9})
    study.add({"heat": 95.0, "acid": "HCl"}, {"cost": 1.0, "purity": 0.9})
    assert study.recommend(kind="observed").params["heat"] == 60.0
    study.change(brewing(space={"heat": cm.Real(80, 100), "acid": BREW["space"]["acid"]}))
    assert study.recommend(kind="observed").params["heat"] == 95.0
    study.change(brewing(space={"heat": cm.Real(96, 100), "acid": BREW["space"]["acid"]}))
    with pytest.raises(cm.ResultError, match="within the bounds"):
        study.recommend(kind="observed")


def test_an_option_that_is_dropped_is_not_suggested_and_can_come_back(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = study_of(storage=url, count=9)
    assert {r.params["acid"] for r in study.history} == {"HCl", "H2SO4", "AcOH"}
    before = data_of(study)
    fewer = brewing(space={"heat": cm.Real(20, 100), "acid": cm.Choice("HCl", "AcOH", "HNO3")})
    changes = study.change(fewer)
    assert any("choice" in change for change in changes)
    assert study.problem.space.parameters["acid"].former == ("H2SO4",)
    assert data_of(study) == before
    for _ in range(4):
        job = study.ask()
        assert job.params["acid"] in ("HCl", "AcOH", "HNO3")
        tell(study, job)
    study.database.close()
    again = cm.Study(fewer, url)  # as the user wrote it, without the former option
    assert again.history == study.history
    again.change(brewing(space={"heat": cm.Real(20, 100), "acid": cm.Choice(*BREW_AND_MORE)}))
    assert again.problem.space.parameters["acid"].former == ()


BREW_AND_MORE = ("HCl", "H2SO4", "AcOH", "HNO3")


def test_an_option_that_was_never_used_leaves_nothing_behind():
    study = study_of(count=0)
    study.change(brewing(space={"heat": cm.Real(20, 100), "acid": cm.Choice("HCl", "AcOH")}))
    assert study.problem.space.parameters["acid"].former == ()


def test_a_pending_job_out_of_the_new_bounds_can_still_be_told():
    study = study_of()
    study.enqueue("evaluate", {"heat": 25.0, "acid": "HCl"})
    job = study.ask()
    study.change(brewing(space={"heat": cm.Real(50, 80), "acid": BREW["space"]["acid"]}))
    assert tell(study, job)
    assert study.history[-1].params["heat"] == 25.0


def test_the_input_really_used_may_lie_out_of_bounds():
    study = study_of()
    job = study.ask()
    study.tell(job, {"cost": 1.0, "purity": 0.2}, params={"heat": 101.5})
    assert study.history[-1].params["heat"] == 101.5
    assert 20 <= study.ask().params["heat"] <= 100


# -- limits --------------------------------------------------------------------------------------


def test_a_limit_is_moved_dropped_and_brought_back():
    study = study_of()
    before = data_of(study)
    probability = study.predict({"heat": 55.0, "acid": "HCl"})["purity"].probability
    assert study.change(brewing(constraints=["purity >= 0.7"]), "the customer asked")
    stricter = study.predict({"heat": 55.0, "acid": "HCl"})["purity"].probability
    assert stricter < 0.1 < 0.9 < probability
    study.change(brewing(constraints=[]))
    assert data_of(study) == {"cost": before["cost"]}
    tell(study, study.ask())  # it measures the cost alone
    study.change(brewing())
    assert data_of(study)["purity"] == before["purity"]
    assert len(data_of(study)["cost"]) == len(before["cost"]) + 1


def test_a_new_constraint_is_measured_from_now_on():
    study = study_of()
    running = study.ask()  # of the task as it was
    study.change(brewing(constraints=["purity >= 0.5", "colour <= 0.6"]))
    assert data_of(study)["colour"] == []
    [(job, coming)] = study.replica().optimizer.observations.coming(study.problem)
    assert (job.number, coming) == (running.number, ("cost", "purity"))
    values = brewed(running.params)
    study.tell(running, {"cost": values["cost"], "purity": values["purity"]})
    assert study.jobs[-1].state == "done"
    job = study.ask()
    tell(study, job)
    assert data_of(study)["colour"] == [pytest.approx(brewed(job.params)["colour"])]
    assert study.recommend().params


def test_values_of_a_function_that_was_dropped_meanwhile_are_kept_for_a_change_back():
    study = study_of()
    job = study.ask()
    study.change(brewing(constraints=[]))
    study.tell(job, {"cost": 0.5, "purity": 0.75})
    assert "purity" not in data_of(study)
    study.change(brewing())
    assert data_of(study)["purity"][-1] == 0.75


# -- tasks and resources -------------------------------------------------------------------------


def test_a_task_is_left_out_with_what_it_measured_kept():
    study = quick()
    for task in ("price", "weigh", "weigh"):
        job = study.ask(task=task)
        study.tell(job, values_of(task, job.params), seconds=1.0)
    both = {"both": cm.Task(["f", "c"], runs_on=["office"])}
    study.change(decoupled(tasks=both, resources={"office": 1}))
    assert {name: len(values) for name, values in data_of(study).items()} == {"f": 1, "c": 2}
    assert study.ask().task == "both"
    assert [record.task for record in study.jobs] == ["price", "weigh", "weigh", "both"]
    assert sum(study.replica().ended.values()) == 3


def test_a_task_or_resource_in_use_stays():
    study = quick()
    job = study.ask(task="weigh", resource="hall")
    with pytest.raises(cm.ProblemError, match="while job 0 runs or waits"):
        study.change(decoupled(tasks={"both": cm.Task(["f", "c"], runs_on=["office", "hall"])}))
    tasks = {name: cm.Task(task.measures, runs_on=["office"]) for name, task in TASKS.items()}
    with pytest.raises(cm.ProblemError, match="cancel it first"):
        study.change(decoupled(tasks=tasks, resources={"office": 1}))
    study.cancel(job)
    assert study.change(decoupled(tasks=tasks, resources={"office": 1}))


TASKS = decoupled().tasks


# -- recorded, reversible, and nothing learnt before is started from ------------------------------


def test_changes_are_recorded_and_taken_back(tmp_path):
    study = study_of(storage=f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(cm.ProblemError, match="nothing to take back"):
        study.problem_before()
    study.change(brewing(constraints=["purity >= 0.7"]), "the customer asked")
    study.change(study.problem_before(), "the customer left")
    assert study.problem == brewing()
    first, second = study.changes
    assert first.reason == "the customer asked"
    assert first.by
    assert abs(first.time - study.now()) < 60
    assert first.differences == ("constraints is ['purity >= 0.7'], and was ['purity >= 0.5']",)
    assert str(second).endswith("(the customer left)")
    assert cm.Study.load(study.database).changes == [first, second]


def test_preview_changes_nothing():
    study = study_of()
    wanted = brewing(constraints=["purity >= 0.7"])
    assert study.preview_change(wanted) == study.preview_change(wanted) != []
    assert study.problem == brewing()
    assert study.changes == []


def test_what_is_decided_after_a_change_is_what_a_cold_study_of_that_problem_decides():
    narrow = brewing(space={"heat": cm.Real(40, 90), "acid": BREW["space"]["acid"]})
    study = study_of(count=7)
    history = study.history
    study.change(narrow)
    other = cm.Study(narrow, seed=2, model=study.settings.model, initial=4)
    for record in history:
        other.enqueue("evaluate", {**record.params, "heat": np.clip(record.params["heat"], 40, 90)})
    for record in history:
        job = other.ask()
        values = {name: record.values[name] for name in ("cost", "purity")}
        other.tell(job, values, seconds=1.0, params=record.params)
    assert data_of(study) == data_of(other)
    at = {"heat": 55.0, "acid": "HCl"}
    assert study.predict(at) == other.predict(at)
    ours, theirs = study.ask(), other.ask()
    assert (ours.number, ours.params) == (theirs.number, theirs.params)


def test_two_that_change_at_once_do_not_overwrite_each_other(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    one = study_of(storage=url)
    other = cm.Study.load(url)
    one.change(brewing(constraints=["purity >= 0.7"]))
    other.change(brewing(constraints=["purity >= 0.8"]))
    assert [change.differences[0] for change in one.changes] == [
        "constraints is ['purity >= 0.7'], and was ['purity >= 0.5']",
        "constraints is ['purity >= 0.8'], and was ['purity >= 0.7']",
    ]
    assert one.replica().problem == brewing(constraints=["purity >= 0.8"])


# -- pausing -------------------------------------------------------------------------------------


def test_a_paused_task_does_not_start_until_it_is_resumed():
    study = quick()
    study.pause(task="weigh", reason="the scales are broken")
    assert study.paused == {"task": ["weigh"], "resource": []}
    assert [job.task for job in study.ask_all()] == ["price"]
    assert study.ask(task="weigh") is None
    assert "weigh" in str(study)
    study.resume(task="weigh")
    assert study.ask(task="weigh").task == "weigh"


def test_a_paused_resource_takes_no_jobs_and_others_do():
    study = quick()
    study.pause(resource="office")
    jobs = study.ask_all()
    assert [job.resources for job in jobs] == [("hall",), ("hall",)]
    assert [job.task for job in study.ask(n=2)] == ["weigh", "weigh"]  # beyond capacity
    assert study.ask(task="price", n=1) == []
    study.resume(resource="office")
    assert study.ask().resources == ("office",)


def test_a_job_that_waits_for_a_paused_task_waits_on():
    study = quick()
    study.enqueue("weigh", {"x": 0.1, "y": 0.2})
    study.pause(task="weigh")
    assert study.ask().task == "price"
    assert study.ask() is None
    study.resume(task="weigh")
    assert study.ask().params == {"x": 0.1, "y": 0.2}


def test_pausing_survives_a_restart_and_knows_its_names(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = quick(storage=url)
    study.pause(resource="hall")
    assert cm.Study.load(url).paused["resource"] == ["hall"]
    with pytest.raises(cm.ProblemError, match="did you mean 'weigh'"):
        study.pause(task="weih")
    with pytest.raises(cm.ProblemError, match="a task or a resource"):
        study.pause()


def test_a_run_waits_for_what_is_paused_and_goes_on():
    problem = cm.Problem(SQUARE, minimize="f")
    study = quick(problem)
    study.pause(task="evaluate")
    messages = []

    def on(event):
        messages.append(str(event.message or ""))
        if "Paused" in messages[-1]:
            study.resume(task="evaluate")

    study.run(lambda params: {"f": params["x"]}, evaluations=2, on=on)
    assert len(study.history) == 2
    assert any("Paused: task evaluate" in each for each in messages)


def test_confirmation_does_not_start_a_paused_task():
    study = quick()
    for _ in range(6):
        for task in ("price", "weigh"):
            job = study.ask(task=task)
            study.tell(job, values_of(task, job.params), seconds=1.0)
    study.pause(task="price")
    job = study.ask(confirm=True)
    assert job is None or job.task == "weigh"


@pytest.mark.parametrize("acquisition", ["pesc", "eic", "eicd", "ieci", "ev", "auglag", "thompson"])
def test_every_method_stays_within_bounds_that_were_narrowed(acquisition):
    problem = cm.Problem(SQUARE, minimize="f", constraints=["c >= 0"])
    model = cm.Model(hyperparameters="map", transform="none")
    study = cm.Study(problem, seed=1, acquisition=acquisition, model=model, initial=3)
    rng = np.random.default_rng(0)
    for x, y in rng.random((8, 2)):
        study.add({"x": x, "y": y}, values_of("all", {"x": x, "y": y}))
    study.change(problem.changed(space={"x": cm.Real(0.4, 0.6), "y": cm.Real(0.1, 0.3)}))
    job = study.ask()
    assert 0.4 <= job.params["x"] <= 0.6
    assert 0.1 <= job.params["y"] <= 0.3
    assert job.update == "full"
    assert not job.warnings


# -- what a review found -------------------------------------------------------------------------


OPTIONS = cm.Problem({"t": cm.Real(-1, 10), "s": cm.Choice("w", "e", "o")}, minimize="y")
FEWER = OPTIONS.changed(space={"t": cm.Real(-1, 10), "s": cm.Choice("w", "e")})


def two_views(tmp_path, problem):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    return quick(problem, url), cm.Study.load(url), url


def test_a_process_with_an_older_view_is_told_of_the_change(tmp_path):
    one, other, _ = two_views(tmp_path, OPTIONS)
    one.change(FEWER)
    with pytest.raises(cm.ProblemError, match="s is 'o'"):
        other.add({"t": 0.5, "s": "o"}, {"y": 3.0})
    other = cm.Study.load(one.database)
    with pytest.raises(cm.ProblemError, match="s is 'o'"):
        other.enqueue("evaluate", {"t": 0.5, "s": "o"})


def test_what_the_problem_cannot_say_is_kept_and_comes_back(tmp_path):
    """Written by a process that did not know of the change yet."""
    one, other, url = two_views(tmp_path, OPTIONS)
    job = other.ask()
    one.change(FEWER)
    used = {**job.params, "s": "o"}
    other._store.tell(0, 1, {"y": (2.0, None)}, {}, 1.0, False, used)
    other._store.add([({"t": 0.5, "s": "o"}, {"y": (3.0, None)}, {})])
    other._store.enqueue("evaluate", {"t": 0.25, "s": "o"})
    study = cm.Study.load(url)
    assert data_of(study) == {"y": []}
    assert study.ask().params["s"] in ("w", "e")
    study.change(OPTIONS)
    assert data_of(study) == {"y": [2.0, 3.0]}


def test_a_log_scale_leaves_out_what_it_cannot_show():
    study = quick(OPTIONS)
    study.add({"t": -0.5, "s": "w"}, {"y": 3.0})
    study.add({"t": 2.0, "s": "w"}, {"y": 4.0})
    choice = OPTIONS.space.parameters["s"]
    study.change(OPTIONS.changed(space={"t": cm.Real(0.1, 10, log=True), "s": choice}))
    assert data_of(study) == {"y": [4.0]}
    study.change(study.problem_before())
    assert data_of(study) == {"y": [3.0, 4.0]}


PARTS = cm.Problem(
    {"t": cm.Real(0, 1)},
    minimize="y",
    constraints=["g <= 1"],
    tasks={"b": cm.Task(measures=["g"]), "ab": cm.Task(measures=["y", "g"])},
)
ONLY = PARTS.changed(tasks={"ab": PARTS.tasks["ab"]})


@pytest.mark.parametrize("ends", ["cancelled", "told"])
def test_a_job_that_was_held_does_not_disturb_when_its_task_is_left_out(ends):
    study = quick(PARTS, retries=0, pause=0.0)
    job = study.ask(task="b")
    study.fail(job, "x", "lost")
    if ends == "cancelled":
        study.cancel(0)
    else:
        study.release(0)
        study.tell(study.ask(), {"g": 0.5})
    study.change(ONLY)
    assert study.ask().task == "ab"


def test_results_of_a_task_that_was_left_out_can_be_corrected():
    study = quick(PARTS)
    study.tell(study.ask(task="b"), {"g": 9999.0})
    study.change(ONLY)
    assert data_of(study)["g"] == [9999.0]
    study.amend(0, {"g": 0.5})
    assert data_of(study)["g"] == [0.5]
    study.withdraw(0, "it was another flask")
    assert data_of(study)["g"] == []
    study.restore(0)
    assert data_of(study)["g"] == [9999.0]


@pytest.mark.parametrize(
    ("first", "later"), [("purity >= 90", "purity"), ("purity", "purity <= 1")]
)
def test_a_number_does_not_become_an_outcome_by_way_of_being_dropped(first, later):
    problem = brewing(constraints=[first])
    study = quick(problem)
    job = study.ask()
    study.change(brewing(constraints=[]))
    with pytest.raises(cm.ProblemError, match="'purity' was measured as"):
        study.change(brewing(constraints=[later]))
    wrong = True if first == "purity >= 90" else 0.4
    with pytest.raises(cm.ResultError):
        study.tell(job, {"cost": 1.0, "purity": wrong})


def test_a_function_that_moved_to_another_task_can_still_be_told():
    problem = PARTS.changed(tasks={"ab": PARTS.tasks["ab"]})
    study = quick(problem)
    job = study.ask()
    study.change(PARTS.changed(tasks={"a": cm.Task(["y"]), "ab": cm.Task(["g"])}))
    study.tell(job, {"y": 1.0, "g": 0.5})
    assert data_of(study) == {"y": [1.0], "g": [0.5]}


def test_a_job_that_is_booked_while_the_problem_changes_is_seen(tmp_path, monkeypatch):
    from calamint.run import changes

    one, other, _ = two_views(tmp_path, PARTS)
    looked = changes.changes_of

    def meanwhile(replica, problem):
        found = looked(replica, problem)
        if not other.jobs:
            other.ask(task="b")
        return found

    monkeypatch.setattr(changes, "changes_of", meanwhile)
    with pytest.raises(cm.ProblemError, match="while job 0 runs or waits"):
        one.change(ONLY)


def test_what_is_paused_and_left_out_is_not_paused_any_more():
    study = quick()
    study.pause(resource="hall")
    tasks = {name: cm.Task(task.measures, runs_on=["office"]) for name, task in TASKS.items()}
    study.change(decoupled(tasks=tasks, resources={"office": 1}))
    assert study.paused == {"task": [], "resource": []}
    study.change(study.problem_before())
    assert study.ask(resource="hall") is not None
