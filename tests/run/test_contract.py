"""What every storage promises; each test runs on all of them."""

import math
import re

import numpy as np
import pytest
from tests.run import cases
from tests.run.cases import SQUARE, decoupled, values_of
from tests.run.served import Served, serving
from tests.run.servers import new_database

import calamint as cm
from calamint.run import Database


class Storage:
    """A storage that can be opened again."""

    def __init__(self, url):
        self.url, self.database = url, None

    def open(self):
        if self.url != "sqlite://":
            return Database(self.url)  # as another process would
        self.database = self.database or Database(self.url)
        return self.database


# Of storages that clients reach through a server.
SERVERS = {}
LOCAL = ("memory", "sqlite", "postgresql")
only_local = pytest.mark.parametrize("storage", LOCAL, indirect=True)


@pytest.fixture(params=[*LOCAL, "http"])
def storage(request, tmp_path):
    urls = {
        "memory": lambda: "sqlite://",
        "sqlite": lambda: f"sqlite:///{tmp_path / 'a.db'}",
        "http": lambda: f"sqlite:///{tmp_path / 'a.db'}",
        "postgresql": new_database,
    }
    url = urls[request.param]()
    if request.param != "http":
        yield Storage(url)
        return
    with serving(url) as server:
        SERVERS[url] = server
        yield Storage(url)
        del SERVERS[url]


def served(study):
    """The same over HTTP, if that is how its storage is reached."""
    url = f"sqlite:///{study.database.path}"
    return Served(study, SERVERS[url]) if url in SERVERS else study


def quick(problem=None, storage="sqlite://", **settings):
    return served(cases.quick(problem, storage, **settings))


@pytest.fixture
def study(storage):
    return quick(storage=storage.open())


def reopened(storage, **settings):
    return quick(storage=storage.open(), **settings)


def finish(study, job):
    return study.tell(job, values_of(job.task, job.params))


def test_what_was_told_is_there_when_it_is_opened_again(storage, study):
    jobs = [study.ask(), study.ask()]
    for job in jobs:
        assert finish(study, job)
    again = reopened(storage)
    assert [record.params for record in again.history] == [job.params for job in jobs]
    assert again.history == study.history
    assert [record.state for record in again.jobs] == ["done", "done"]
    assert again.jobs == study.jobs


def test_capacity_is_shared_by_all_who_open_it(storage, study):
    other = reopened(storage)
    jobs = [study.ask(), other.ask(), study.ask()]
    assert sorted(name for job in jobs for name in job.resources) == ["hall", "hall", "office"]
    assert other.ask() is None
    assert study.ask() is None
    assert len({job.number for job in jobs}) == 3
    finish(other, jobs[0])
    assert study.ask().resources == jobs[0].resources


def test_a_second_tell_changes_nothing(storage, study):
    job = study.ask()
    finish(study, job)
    before = study.history, study.jobs
    for again in (study, reopened(storage)):
        with pytest.raises(cm.ResultError, match="already told: nothing was changed"):
            finish(again, job)
        with pytest.raises(cm.ResultError, match="already told"):
            again.fail(job, "no")
        with pytest.raises(cm.ResultError, match="already done"):
            again.cancel(job)
    assert (study.history, study.jobs) == before


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (17, "does not belong"),
        ("0", "write what ask"),
        (True, "write what ask"),
        (None, "write what"),
    ],
)
def test_jobs_that_are_none(study, job, words):
    with pytest.raises(cm.ResultError, match=words):
        study.tell(job, {"f": 1.0})


def test_results_that_are_refused_change_nothing(study):
    job = study.ask(task="price")
    for values in ({}, {"c": 1.0}, {"f": "much"}, 3.0, {"f": (1.0, -1.0)}):
        with pytest.raises(cm.ResultError):
            study.tell(job, values)
    with pytest.raises(cm.ResultError, match="seconds"):
        study.tell(job, {"f": 1.0}, seconds=-1)
    assert study.history == []
    assert study.tell(job.number, {"f": (1.0, 0.5)}, seconds=4.0)
    assert study.jobs[0].values == {"f": 1.0}
    assert study.jobs[0].seconds == 4.0


def test_a_result_with_nan_keeps_the_rest_and_fails(storage):
    problem = cm.Problem(SQUARE, minimize="f", constraints=["c >= 0"])
    study = quick(problem, storage.open())
    job = study.ask()
    study.tell(job, {"f": 1.5, "c": math.nan})
    again = quick(problem, storage.open())
    for one in (study, again):
        assert one.history[0].values == {"f": 1.5}
        assert one.jobs[0].state == "failed"
        # JSON has no NaN
        assert re.search("c is (nan|None)", one.jobs[0].reason)
        assert one.predict(job.params)["evaluate_works"].probability < 0.5


def test_failures_are_learnt_or_tried_again_as_the_task_says(storage, study):
    price, weigh = study.ask(task="price"), study.ask(task="weigh")
    study.fail(price, "diverged")
    assert study.jobs[0].state == "failed"
    assert study.jobs[0].reason == "diverged"
    study.fail(weigh, "the scale is gone")
    assert study.jobs[1].state == "waiting"
    again = reopened(storage)
    assert [name for name, _ in again.optimizer.failures] == [study.optimizer.failures[0][0]]
    assert "price_works" in again.predict(price.params).functions


def test_a_job_is_tried_again_after_a_pause_and_not_for_ever(storage):
    study = quick(storage=storage.open(), retries=2, pause=0.0)
    first = study.ask(task="weigh")
    for attempt in (1, 2, 3):
        job = first if attempt == 1 else study.ask(task="weigh")
        assert (job.number, job.attempt, job.params) == (first.number, attempt, first.params)
        study.fail(job, f"reason {attempt}")
    assert study.jobs[0].state == "failed"
    assert study.jobs[0].reason == "reason 3"
    assert study.ask(task="weigh").number != first.number


def test_pauses_grow(storage):
    study = quick(storage=storage.open(), pause=100.0)
    job = study.ask(task="weigh")
    study.fail(job, "no")
    assert study.ask(task="weigh").number != job.number  # it is not its time yet
    waiting = study.replica().waiting[job.number] - study.database.lease_clock().now()
    assert 95 < waiting <= 100


def test_a_lease_that_runs_out_returns_the_job(storage):
    study = quick(storage=storage.open(), pause=0.0)
    job = study.ask(task="price", lease=1000.0)
    assert study.renew([job], lease=1e-6) == []  # over already
    other = reopened(storage)
    taken = other.ask(task="price")
    assert (taken.number, taken.attempt) == (job.number, 2)
    assert study.renew([job], lease=10.0) == [job]  # it is somebody else's now
    # The late result of the first attempt finishes the job; the second one is kept, not used.
    assert study.tell(job, {"f": 1.0})
    assert other.replica().open  # its resources are in use until it ends
    assert not other.tell(taken, {"f": 2.0})
    assert not other.replica().open
    for one in (study, other, reopened(storage)):
        assert [record.values for record in one.history] == [{"f": 1.0}]
    with pytest.raises(cm.ResultError, match="already told"):
        other.tell(taken, {"f": 2.0})


def test_leases_are_renewed_for_any_iterable_and_only_for_positive_times(storage):
    study = quick(storage=storage.open(), pause=0.0)
    job = study.ask(task="price", lease=1e-6)
    assert reopened(storage).ask(task="price").attempt == 2
    assert study.renew((each for each in [job]), lease=10.0) == [job]
    for lease in (0.0, -1.0, float("nan"), "long"):
        with pytest.raises(cm.ProblemError, match="positive number of seconds"):
            study.renew([job], lease=lease)


def test_a_late_failure_does_not_hurt_the_second_attempt(storage):
    study = quick(storage=storage.open(), pause=0.0)
    job = study.ask(task="price", lease=1e-6)
    second = study.ask(task="price")
    assert second.attempt == 2
    study.fail(job, "too late to matter")
    assert study.jobs[0].state == "running"
    assert study.tell(second, {"f": 3.0})


def test_a_job_without_lease_is_never_taken_away(storage, study):
    job = study.ask(task="price")
    assert reopened(storage).ask(task="price") is None
    assert finish(study, job)


def test_lost_jobs_are_held_in_the_end(storage):
    """They are not learnt from, and wait for the user."""
    study = quick(storage=storage.open(), retries=1, pause=0.0)
    for attempt in (1, 2):
        assert study.ask(task="price", lease=1e-6).attempt == attempt
    other = study.ask(task="price")
    assert other.number == 1
    assert (study.jobs[0].state, study.jobs[0].cause) == ("held", "lost")
    assert "owner is gone" in study.jobs[0].reason
    assert [job.number for job in study.optimizer.pending] == [1]
    assert study.optimizer.observations.failed["price"] == 0
    study.tell(other, {"f": 1.0})
    for opened in (study, reopened(storage)):
        assert opened.replica().held == {0}
    with pytest.raises(cm.ResultError, match="is done, not held"):
        study.release(1)
    study.release(0)
    job = reopened(storage).ask(task="price")
    assert (job.number, job.attempt) == (0, 3)
    assert study.tell(job, {"f": 2.0})
    assert [record.values["f"] for record in reopened(storage).history] == [1.0, 2.0]


def test_causes_other_than_the_input_are_not_learnt(storage):
    study = quick(storage=storage.open(), retries=2, pause=0.0)
    for attempt in (1, 2, 3):
        job = study.ask(task="price")
        assert (job.number, job.attempt) == (0, attempt)
        study.fail(job, "no space left", cause="infrastructure")
    assert (study.jobs[0].state, study.jobs[0].cause) == ("held", "infrastructure")
    job = study.ask(task="price")
    study.fail(job, "it took too long", cause="timeout")
    assert (study.jobs[1].state, study.jobs[1].cause) == ("failed", "timeout")
    assert reopened(storage).optimizer.observations.failed["price"] == 1
    with pytest.raises(cm.ResultError, match="did you mean 'crashed'"):
        study.fail(study.ask(task="price"), "no", cause="crash")


def test_only_crashes_count_for_the_retries_of_a_task(storage):
    """A task whose failures are retried: an attempt that was lost is not one of its tries."""
    study = quick(storage=storage.open(), retries=1, pause=0.0)
    assert study.ask(task="weigh", lease=1e-6).attempt == 1
    for attempt in (2, 3):
        job = study.ask(task="weigh")
        assert (job.number, job.attempt) == (0, attempt)
        study.fail(job, "it broke")
    assert study.jobs[0].state == "failed"


def test_a_failure_is_forgiven(storage):
    """It is as if the job had never been: nothing is learnt, and nothing is counted."""
    study = quick(storage=storage.open(), retries=0)
    told = study.ask(task="price")
    study.tell(told, {"f": 1.0})
    job = study.ask(task="price")
    study.fail(job, "the building lost power")
    assert study.replica().ended["price"] == 2
    study.forgive(job)
    for opened in (study, reopened(storage, retries=0)):
        assert opened.jobs[1].state == "withdrawn"
        assert opened.replica().ended["price"] == 1
        assert opened.optimizer.observations.failed_at == ()
        assert opened.optimizer.observations.failed["price"] == 0
        assert len(opened.optimizer.observations.outcomes.get("price", ())) <= 1
    with pytest.raises(cm.ResultError, match="is withdrawn, not failed"):
        study.forgive(job)
    assert study.ask(task="price").number == 2


def test_a_nan_that_is_forgiven_keeps_what_else_was_measured(storage):
    problem = decoupled().coupled()
    study = quick(problem, storage=storage.open())
    job = study.ask()
    names = [*study.problem.functions]
    study.tell(job, {names[0]: 1.0, names[1]: float("nan")})
    assert study.jobs[0].state == "failed"
    study.forgive(job)
    again = quick(problem, storage=storage.open())
    assert [record.values for record in again.history] == [{names[0]: 1.0}]
    assert again.optimizer.observations.failed_at == ()


def test_a_former_owner_cannot_cancel_the_new_attempt(storage):
    study = quick(storage=storage.open(), pause=0.0)
    job = study.ask(task="price", lease=1e-6)
    taken = reopened(storage).ask(task="price")
    with pytest.raises(cm.ResultError, match="attempt 1 at job 0 is over"):
        study.cancel(job)
    assert study.jobs[0].state == "running"
    assert study.tell(taken, {"f": 1.0})


def test_a_job_of_another_study_is_refused_even_when_seeds_agree(storage):
    """Both decide the same: only the study tells them apart."""
    one, two = (quick(storage=storage.open(), name=name) for name in ("one", "two"))
    first, second = one.ask(task="price"), two.ask(task="price")
    assert first.params == second.params
    with pytest.raises(cm.ResultError, match="does not belong to this study"):
        two.tell(first, {"f": 1.0})
    assert two.history == []


def test_pauses_are_capped(storage):
    study = quick(storage=storage.open(), pause=0.5, retries=5000)
    assert study._store.policy.pause_after(1) == 0.5
    assert study._store.policy.pause_after(3) == 2.0
    assert study._store.policy.pause_after(4000) == 600.0


def test_cancelled_jobs_give_their_resources_back(storage, study):
    job = study.ask(task="price")
    study.cancel(job)
    assert study.jobs[0].state == "cancelled"
    assert reopened(storage).ask(task="price") is not None
    assert study.tell(job, {"f": 1.0}) is False  # kept, and not used
    assert reopened(storage).history == []


def test_enqueued_jobs_come_first(storage, study):
    number = study.enqueue("weigh", {"x": 0.25, "y": 0.5})
    assert study.jobs[0].state == "waiting"
    job = reopened(storage).ask()
    assert (job.number, job.task, job.params) == (number, "weigh", {"x": 0.25, "y": 0.5})
    assert job.update == "enqueued"
    finish(study, job)
    assert study.history[0].params == {"x": 0.25, "y": 0.5}
    with pytest.raises(cm.ProblemError, match="did you mean 'weigh'"):
        study.enqueue("wiegh", {"x": 0.5, "y": 0.5})
    with pytest.raises(cm.ProblemError):
        study.enqueue("weigh", {"x": 2, "y": 0.5})


def test_measurements_from_elsewhere(storage, study):
    study.add({"x": 0.1, "y": 0.2}, {"c": (1.3, 0.1)})
    study.add_all([({"x": v, "y": v}, {"f": v, "c": v}) for v in (0.1, 0.2)])
    before = study.history
    with pytest.raises(cm.ProblemError, match="row 2"):
        study.add_all([({"x": 0.1, "y": 0.2}, {"f": 1.0}), ({"x": 7, "y": 0.2}, {"f": 1.0})])
    with pytest.raises(cm.ResultError, match="leave it out"):
        study.add({"x": 0.1, "y": 0.2}, {"f": math.nan})
    again = reopened(storage)
    assert again.history == before == study.history
    assert len(before) == 3
    assert again.optimizer.predict({"x": 0.1, "y": 0.2}) == study.predict({"x": 0.1, "y": 0.2})


def test_another_problem_is_refused_and_the_difference_named(storage, study):
    other = decoupled(resources={"office": 2, "hall": 2})
    with pytest.raises(cm.ProblemError, match=r"resources\.office is 2, and was 1"):
        quick(other, storage.open())
    with pytest.raises(cm.ProblemError, match=r"constraints is \['c >= 1.0'\], and was"):
        quick(decoupled(constraints=["c >= 1"]), storage.open())
    with pytest.raises(cm.ProblemError, match=r"seed is 4, and was 3"):
        reopened(storage, seed=4)
    with pytest.raises(cm.ProblemError, match=r"acquisition\.name is 'eicd', and was 'random'"):
        reopened(storage, acquisition="eicd")
    assert len(reopened(storage).jobs) == 0


def test_a_problem_may_grow(storage, study):
    job = study.ask(task="price")
    finish(study, job)
    pending = study.ask(task="weigh")
    grown = cm.Problem(
        {"x": cm.Real(-1, 2), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=["c >= 0"],
        tasks={
            "price": cm.Task("f", runs_on=["office"], cost=3),
            "weigh": cm.Task("c", runs_on=["hall", "office"], failures="retry"),
            "both": cm.Task(["f", "c"], runs_on=["lab"]),
        },
        resources={"office": 2, "hall": 2, "lab": 1},
    )
    other = reopened(storage)
    changes = study.change(grown)
    assert any("tasks.both is new" in change for change in changes)
    assert any("space.x.real" in change for change in changes)
    assert study.change(grown) == []
    for one in (study, other):  # also one that was open meanwhile
        assert one.ask(task="both").resources == ("lab",)
        assert one.history[0].params == job.params
        one.cancel(max(record.number for record in one.jobs))
    assert finish(other, pending)
    assert quick(grown, storage.open()).history == study.history
    with pytest.raises(cm.ProblemError, match="about another problem"):
        reopened(storage)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"space": {"x": cm.Integer(0, 1), "y": cm.Real(0, 1)}}, "'x' is of another kind"),
        ({"space": {"x": cm.Real(0, 1)}}, "parameters were added or left out"),
        ({"minimize": "c", "constraints": ["f >= 0"]}, "the objective is another"),
    ],
)
def test_a_change_that_gives_measurements_another_meaning_is_refused(study, change, words):
    before = study.problem
    with pytest.raises(cm.ProblemError, match=words):
        study.change(cm.Problem(**{**stated(before), **change}))
    assert study.problem == before
    assert study.changes == []


def stated(problem):
    return {
        "space": problem.space.parameters,
        "minimize": "f",
        "constraints": ["c >= 0"],
        "tasks": problem.tasks,
        "resources": problem.resources,
    }


def test_studies_share_a_storage(storage, study):
    finish(study, study.ask())
    other = cm.Study(
        cm.Problem({"z": cm.Integer(1, 9)}, maximize="g"), storage.open(), name="other", seed=1
    )
    other.tell(other.ask(), {"g": 2.0})
    assert len(cm.Study.load(storage.open(), "study").history) == 1
    assert cm.Study.load(storage.open(), "other").history[0].values == {"g": 2.0}
    with pytest.raises(cm.StorageError, match="has 2 studies"):
        cm.Study.load(storage.open())
    with pytest.raises(cm.StorageError, match="did you mean 'other'"):
        cm.Study.load(storage.open(), "othr")


def test_recommendations_are_stored(storage, study):
    for _ in range(6):
        finish(study, study.ask())
    best = study.recommend()
    assert reopened(storage).recommend() == best  # which is not stored again
    observed = study.recommend(kind="observed")
    finish(study, study.ask())
    last = study.recommend()
    with study.database.read() as connection:
        from sqlalchemy import text

        rows = connection.execute(
            text("SELECT kind, probability FROM recommendations ORDER BY id")
        ).all()
    assert [tuple(row) for row in rows] == [
        ("believed", best.probability),
        ("observed", observed.probability),
        ("believed", last.probability),
    ]


@only_local
def test_a_conflict_is_decided_again(storage, study, monkeypatch):
    """Another process books between our decision and our booking."""
    other = reopened(storage)
    optimizer = study.replica().optimizer
    decide = optimizer.decide
    taken = []

    def slow(*arguments):
        answer = decide(*arguments)
        if not taken:
            other.enqueue("price", {"x": 0.1, "y": 0.5})  # nobody else decides meanwhile
            taken.append(other.ask(task="price"))
        return answer

    monkeypatch.setattr(optimizer, "decide", slow)
    monkeypatch.setattr(optimizer, "needs_model", lambda competing: True)  # others can book
    job = study.ask()
    assert taken[0].number == 0
    assert job.number == 1
    assert job.resources == ("hall",)


@only_local
def test_capacity_is_checked_again_when_a_job_is_booked(storage, study, monkeypatch):
    """Another process starts a waiting job while we are about to start one, and to book one."""
    for x in (0.1, 0.2):
        study.enqueue("price", {"x": x, "y": 0.5})
    other = reopened(storage)
    start, taken = study._store.start, []

    def late(*arguments):
        if not taken:
            taken.append(other.ask(task="price"))
        return start(*arguments)

    monkeypatch.setattr(study._store, "start", late)
    assert study.ask(task="price") is None
    assert list(study.replica().open.values()) == [taken[0].resources] == [("office",)]


def test_tasks_can_be_coupled_as_the_error_advises(storage):
    """A method that cannot value single functions, on a problem that is measured in parts."""
    with pytest.raises(cm.ProblemError, match="couple=True"):
        cm.Study(decoupled(), storage.open(), "parts", acquisition="eic")
    study = cm.Study(decoupled(), storage.open(), "parts", acquisition="eic", couple=True, seed=1)
    job = study.ask()
    assert set(study.problem.tasks[job.task].measures) == {"f", "c"}
    study.tell(job, {"f": 1.0, "c": 0.5})
    # It is opened by the same call, without saying so again, and by its name.
    for again in (
        cm.Study(decoupled(), storage.open(), "parts", acquisition="eic", couple=True),
        cm.Study(decoupled(), storage.open(), "parts"),
        cm.Study.load(storage.open(), "parts"),
    ):
        assert len(again.history) == 1
        assert list(again.problem.tasks) == list(study.problem.tasks)
    with pytest.raises(cm.ProblemError, match="couple is False, and was True"):
        cm.Study(decoupled(), storage.open(), "parts", couple=False)


def test_what_went_wrong_with_a_decision_is_stored_with_its_job(storage, monkeypatch):
    study = cm.Study(decoupled(), storage.open(), "warned", initial=1)
    for _ in range(2):
        job = study.ask()
        finish(study, job)

    def broken(*arguments):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr("calamint.decide.update.fit", broken)
    job = study.ask()
    assert job.update == "fallback"
    assert "singular" in job.warnings[0]
    assert study.jobs[-1].warnings == job.warnings
    assert cm.Study.load(storage.open(), "warned").jobs[-1].warnings == job.warnings


def test_several_jobs_are_asked_for_whatever_the_capacity(storage):
    study = quick(storage=storage.open())
    jobs = study.ask(task="price", n=3)
    assert [job.number for job in jobs] == [0, 1, 2]
    assert [job.resources for job in jobs] == [("office",), (), ()]
    assert study.replica().free == {"office": 0, "hall": 2}
    assert study.ask(task="price") is None
    assert study.occupied() == {"office": [0]}
    again = reopened(storage)
    assert len(again.optimizer.pending) == 3
    for job in reversed(jobs):
        again.tell(job, {"f": 1.0})
    assert again.replica().free == {"office": 1, "hall": 2}
    number = again.enqueue("price", {"x": 0.5, "y": 0.5})
    assert [job.number for job in again.ask(task="price", n=2)] == [number, number + 1]
    for wrong in (0, -1, 1.5, True, "3"):
        with pytest.raises(cm.ProblemError):
            study.ask(n=wrong)
