"""Results that were mistyped, that should not count, or that arrive late."""

import json

import pytest
from sqlalchemy import select
from tests.run.cases import quick

import calamint as cm
from calamint.run.store import schema

BOTH = cm.Problem(
    {"x": cm.Real(0, 1)},
    minimize="cost",
    constraints=["purity >= 0.5"],
    tasks={"brew": cm.Task(measures=["cost", "purity"])},
)


def brewed(storage="sqlite://", count=5, **results):
    """A study with so many results, of which some are others, by number."""
    study = quick(BOTH, storage, initial=3)
    for number in range(count):
        job = study.ask()
        values = results.get(f"job_{number}", values_at(job))
        if values is None:
            study.cancel(job)
        else:
            study.tell(job, values, seconds=1.0)
    return study


def values_at(job):
    x = job.params["x"]
    return {"cost": (x - 0.4) ** 2, "purity": x}


def believed(study):
    """Data, pending jobs and counts, and what a cold study would decide next."""
    replica = study.replica()
    seen = replica.optimizer.observations
    data = {name: (each.inputs.tolist(), each.values.tolist()) for name, each in seen.data.items()}
    pending = [(job.task, job.params) for job in seen.pending.values()]
    return data, pending, dict(seen.failed), dict(replica.ended), seen.failed_at


def assert_alike(study, truth):
    """What is believed, and decided next, is the same; both are opened anew to begin cold."""
    assert believed(study) == believed(truth)
    assert study.predict({"x": 0.3}) == truth.predict({"x": 0.3})
    ours, theirs = study.ask(), truth.ask()
    assert (ours.number, ours.suggestion.update) == (theirs.number, theirs.suggestion.update)
    # Inputs of the initial design are counted, and those that were enqueued are none of it.
    assert ours.params == theirs.params or ours.suggestion.update == "initial"


def cold(study):
    """The study in another process, which has decided nothing."""
    with study.database.write() as connection:
        study._store._rows.update_study(connection, state=None)
    return cm.Study.load(study.database)


def test_an_amended_value_is_as_if_told_at_once():
    study = brewed(job_3={"cost": 75.4, "purity": 0.9})
    right = values_at(study.jobs[3])
    study.amend(3, {"cost": right["cost"], "purity": right["purity"]}, reason="a misplaced point")
    assert study.jobs[3].values == right
    assert study._store.study_row().state is None  # nothing starts from what was learnt before
    assert_alike(cold(study), cold(brewed()))


def test_one_value_is_amended_and_the_other_stays():
    study = brewed()
    before = study.jobs[2].values
    study.amend(2, {"cost": (0.25, 0.01)})
    assert study.jobs[2].values == {"cost": 0.25, "purity": before["purity"]}
    record = study.history[2]
    assert record.values["cost"] == 0.25
    assert record.sem == {"cost": pytest.approx(0.01)}


def test_what_was_told_before_is_kept_with_who_when_and_why():
    study = brewed()
    first = study.jobs[2].values["cost"]
    study.amend(2, {"cost": 0.25}, reason="read from the wrong line")
    with study.database.read() as connection:
        rows = connection.execute(
            select(schema.measurements.c.value, schema.measurements.c.used)
            .join(schema.jobs, schema.jobs.c.id == schema.measurements.c.job_id)
            .where(schema.jobs.c.number == 2, schema.measurements.c.function == "cost")
            .order_by(schema.measurements.c.id)
        ).all()
        event = connection.execute(
            select(schema.events).where(schema.events.c.kind == "amended")
        ).one()
    assert [tuple(row) for row in rows] == [(first, False), (0.25, True)]
    assert event.job == 2
    assert event.detail["reason"] == "read from the wrong line"
    assert event.detail["by"]
    assert event.time > 0


def test_an_amendment_is_amended_and_restored():
    study, truth = brewed(), brewed()
    study.amend(1, {"cost": 5.0})
    study.amend(1, {"cost": 6.0})
    assert study.history[1].values["cost"] == 6.0
    study.restore(1)
    assert_alike(cold(study), cold(truth))
    with pytest.raises(cm.ResultError, match="never corrected"):
        study.restore(1)


def test_the_input_is_amended():
    study, truth = brewed(), brewed()
    study.amend(1, params={"x": 0.123}, reason="the knob was not where it should have been")
    assert study.history[1].params == {"x": 0.123}
    assert study.history[1].values == truth.history[1].values
    study.restore(1)
    assert_alike(cold(study), cold(truth))


def test_a_result_is_withdrawn_and_restored():
    study = brewed()
    study.withdraw(4, "the flask was not clean")
    assert study.jobs[4].state == "withdrawn"
    assert study.jobs[4].values == {}
    assert sum(study.summary().evaluations.values()) == 4
    without = brewed(job_4=None)
    assert_alike(cold(study), cold(without))
    study.cancel(study.jobs[5].number)
    with pytest.raises(cm.ResultError, match="is withdrawn and cannot be amended: restore it"):
        study.amend(4, {"cost": 1.0})
    study.restore(4)
    assert study.jobs[4].state == "done"
    assert [record.values for record in study.history] == [
        record.values for record in brewed().history
    ]


def test_a_failure_is_withdrawn_and_restored():
    study = brewed(count=3)
    job = study.ask()
    study.fail(job, "it exploded")
    study.withdraw(job, "the power went out")
    assert study.optimizer.observations.failed_at == ()
    study.restore(job)
    assert study.jobs[3].state == "failed"
    assert study.jobs[3].reason == "it exploded"
    assert [task for task, _ in study.optimizer.observations.failed_at] == ["brew"]


def test_values_that_arrive_later_are_pending_until_then():
    study = brewed(count=4)
    job = study.ask()
    right = values_at(job)
    assert study.tell(job, {"cost": right["cost"]}, seconds=1.0, more=True)
    assert study.jobs[4].state == "partial"
    assert study.replica().free == {"local": 1}
    seen = study.optimizer.observations
    assert seen.awaited == {4: ("purity",)}
    assert [data.values.size for data in seen.data.values()] == [5, 4]
    study.complete(job, {"purity": right["purity"]})
    assert study.jobs[4].state == "done"
    assert_alike(cold(study), cold(brewed()))


def test_what_is_left_out_can_be_completed_and_what_failed():
    study = brewed(count=3)
    for broken in ({}, {"purity": float("nan")}):
        job = study.ask()
        right = values_at(job)
        study.tell(job, {"cost": right["cost"], **broken}, seconds=1.0)
        study.complete(job, {"purity": right["purity"]})
        assert study.jobs[job.number].state == "done"
        assert study.jobs[job.number].reason is None
    assert_alike(cold(study), cold(brewed()))


def test_a_job_that_failed_and_has_a_result_after_all():
    study = brewed(count=3)
    job = study.ask()
    study.fail(job, "no answer")
    study.complete(job, values_at(job))
    assert study.jobs[3].state == "done"
    assert study.optimizer.observations.failed_at == ()
    assert study.history[3].values == values_at(job)


def test_values_in_three_steps_and_none_at_all():
    study = quick(BOTH.changed(tasks={"brew": cm.Task(measures=["cost", "purity"])}), initial=3)
    job = study.ask()
    study.tell(job, {"cost": 1.0}, more=True)
    study.cancel(job)  # the laboratory lost the sample
    assert study.jobs[0].state == "done"
    assert study.optimizer.pending == ()
    study.complete(job, {"purity": 0.7})  # and found it
    assert study.history[0].values == {"cost": 1.0, "purity": 0.7}


def test_only_what_is_known_can_be_amended_and_what_is_not_completed():
    study = brewed(count=1)
    job = study.ask()
    with pytest.raises(cm.ResultError, match="is running and cannot be amended: it has no result"):
        study.amend(job, {"cost": 1.0})
    study.tell(job, {"cost": 1.0})
    with pytest.raises(cm.ResultError, match="no value of 'purity' to amend: complete it"):
        study.amend(job, {"purity": 1.0})
    with pytest.raises(cm.ResultError, match="was told cost = 1 already: amend it"):
        study.complete(job, {"cost": 2.0})
    with pytest.raises(cm.ResultError, match="nothing to amend"):
        study.amend(job)
    with pytest.raises(cm.ResultError, match="is nan: write a number"):
        study.amend(job, {"cost": float("nan")})


def test_the_input_that_was_really_used():
    study = brewed(count=2)
    job = study.ask()
    study.tell(job, {"cost": 0.5, "purity": 0.6}, params={"x": 0.817})
    assert study.history[2].params == {"x": 0.817}
    again = cm.Study.load(study.database)
    assert again.history[2].params == {"x": 0.817}
    assert float(again.optimizer.observations.data["cost"].inputs[2, 0]) == pytest.approx(0.817)
    optimizer = cm.Optimizer(BOTH, seed=0)
    suggestion = optimizer.ask()
    optimizer.tell(suggestion, {"cost": 0.5, "purity": 0.6}, params={"x": 0.25})
    assert optimizer.history[0].params == {"x": 0.25}
    assert optimizer.pending == ()
    for wrong in ({"y": 1.0}, {"x": 2.0}, 3):
        with pytest.raises(cm.CalamintError):
            optimizer.tell(optimizer.ask(), {"cost": 0.5}, params=wrong)


def test_other_processes_see_corrections(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = brewed(url)
    other = cm.Study.load(url)
    study.amend(1, {"cost": 9.0})
    study.withdraw(2, "no")
    assert json.dumps(other.table()) == json.dumps(study.table())
    assert len(other.history) == 4
    assert other.history[1].values["cost"] == 9.0
