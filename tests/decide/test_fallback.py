"""The ladder of degradation: what steps down, what raises, and that it is seen."""

import logging

import numpy as np
import pytest

import calamint as cm
from calamint.acquire import PESC, Acquisition
from calamint.decide.fallback import first_success

PROBLEM = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c <= 1"])


def measure(params):
    return {"f": (params["x"] - 0.3) ** 2, "c": params["x"]}


class Breaking(Acquisition):
    """PESC, whose preparation raises from some decision on."""

    name = "breaking"
    supports_decoupled = True

    def __init__(self, error, after=0, update=None):
        self.error, self.after, self.prepared, self.broken = error, after, 0, update

    def build(self, surrogate, incumbent, rng):
        self.prepared += 1
        if self.prepared > self.after:
            raise self.error
        return PESC().build(surrogate, incumbent, rng)

    def update(self, last, surrogate, incumbent, rng):
        if self.broken is not None:
            raise self.broken
        return PESC().update(last, surrogate, incumbent, rng)


def run(acquisition, count=5, **settings):
    optimizer = cm.Optimizer(PROBLEM, acquisition, cm.Model(samples=3), **settings)
    for _ in range(count):
        job = optimizer.ask()
        optimizer.tell(job, measure(job.params))
    return optimizer


def test_numerical_failures_step_down_to_the_last_good_model():
    optimizer = run(Breaking(np.linalg.LinAlgError("singular"), after=1))
    last = optimizer.decisions[-1]
    assert [decision.update for decision in optimizer.decisions[3:]] == ["full", "partial"]
    assert len(last.warnings) == 2
    assert last.warnings[0].startswith("sampled model: LinAlgError: singular")
    assert last.warnings[1].startswith("map model: LinAlgError")


def test_at_last_an_input_fills_space():
    broken = np.linalg.LinAlgError("singular")
    optimizer = run(Breaking(broken, after=1, update=broken))
    assert optimizer.decisions[-1].update == "fallback"
    assert [words.split(":")[0] for words in optimizer.decisions[-1].warnings] == [
        "sampled model",
        "map model",
        "last model",
    ]


def test_a_partial_update_that_fails_is_followed_by_a_full_one():
    optimizer = run(Breaking(None, after=9, update=FloatingPointError("nan")), rationality=0.0)
    assert [decision.update for decision in optimizer.decisions[3:]] == ["full", "full"]
    assert optimizer.decisions[-1].warnings == ("last model: FloatingPointError: nan",)


def test_a_bug_raises_where_it_is_strict():
    with pytest.raises(TypeError, match="a bug"):
        run(Breaking(TypeError("a bug")))


def test_a_bug_is_logged_with_its_traceback_recorded_and_visible(monkeypatch, caplog):
    monkeypatch.delenv("CALAMINT_STRICT")
    with caplog.at_level(logging.WARNING, logger="calamint"):
        optimizer = run(Breaking(TypeError("a bug")), 3)
        job = optimizer.ask()
    assert job.update == "fallback"
    assert [words.split(": ")[1:] for words in job.warnings] == [["TypeError", "a bug"]] * 2
    assert optimizer.decisions[-1].warnings == job.warnings
    assert "TypeError: a bug" in str(job)
    logged = [record for record in caplog.records if record.exc_info]
    assert len(logged) == 2
    assert all(record.levelname == "WARNING" for record in logged)
    assert "in build" in caplog.text  # the traceback says where


def test_errors_of_the_users_own_functions_are_theirs_to_mend():
    def attempt():
        raise cm.ProblemError("the known function returned None")

    with pytest.raises(cm.ProblemError, match="returned None"):
        first_success([("sampled model", attempt), ("map model", lambda: 1)])


def test_what_works_first_is_taken():
    assert first_success([("one", lambda: 1), ("two", lambda: 2)]) == (1, ())


def test_questions_step_down_too(monkeypatch):
    """Where no model can be fitted any more, the last good one answers, with the new data."""
    optimizer = run("pesc")
    optimizer.add({"x": 0.9}, measure({"x": 0.9}))

    def broken(*arguments):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr("calamint.decide.update.fit", broken)
    assert optimizer.predict({"x": 0.9})["f"].mean == pytest.approx(0.36, abs=1e-2)
    fresh = cm.Optimizer(PROBLEM)
    with pytest.raises(cm.CalamintError, match="no model can be fitted"):
        fresh.recommend()


def test_confirming_steps_down_to_searching(monkeypatch, tmp_path):
    """A budget that is kept for confirming is spent even if nothing can be recommended."""

    def broken(*arguments):
        raise np.linalg.LinAlgError("singular")

    optimizer = run("pesc")
    monkeypatch.setattr("calamint.decide.confirm._task_and_input", broken)
    assert optimizer.confirm() is None
    monkeypatch.setattr("calamint.decide.update.fit", broken)
    fresh = cm.Optimizer(PROBLEM)
    fresh.add({"x": 0.9}, measure({"x": 0.9}))
    assert fresh.confirm() is None
    study = cm.Study(PROBLEM, f"sqlite:///{tmp_path}/study.db")
    report = study.run(measure, evaluations=6, confirm=3)
    assert report.evaluations == 6
    assert [job.update for job in study.jobs][-1] == "fallback"
