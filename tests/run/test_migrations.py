"""Storages that an earlier version wrote: brought up to date, and going on as before."""

import json
import sqlite3
from pathlib import Path

import pytest
from tests.run.histories.__main__ import environment

import calamint as cm
from calamint.decide import VirtualClock

STORED = Path(__file__).parent / "stored"
HISTORIES = Path(__file__).parent / "histories"


@pytest.fixture
def storage(tmp_path):
    """The toy problem after fourteen jobs and one added measurement, as schema 0001 stored it."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((STORED / "v0001.sql").read_text())
    return f"sqlite:///{path}"


def test_a_study_of_schema_0001_goes_on_where_it_stopped(storage):
    """The recommendation is that of the earlier version; the next job continues its updates."""
    study = cm.Study.load(storage, clock=VirtualClock({"full": 1.0, "partial": 0.1}))
    assert len(study.history) == 15
    assert study.jobs[0].values == {"f": 0.9565364226186497}
    assert study.history[0].sem == {"f": pytest.approx(0.001)}
    recorded = json.loads((HISTORIES / "coupled.json").read_text())["environment"]
    if recorded != environment():
        pytest.skip("the last digits of this machine are others")
    found = study.recommend()
    assert found.params == pytest.approx({"x1": 0.1414926544633208, "x2": 0.45536449899023446})
    assert found.objective == pytest.approx(0.5743868856663947)
    job = study.ask()
    assert (job.task, job.update) == ("c1", "partial")
    assert job.params == pytest.approx({"x1": 0.02011718178302743, "x2": 0.3908712168565135})
    assert job.scores == pytest.approx(
        {"f": 0.48505436729479773, "c1": 0.5376394042362009, "c2": 0.005317858492064629}
    )


def test_settings_of_schema_0001_are_kept(storage):
    study = cm.Study.load(storage)
    assert study.settings.retries == 1  # two attempts
    assert study.settings.rationality == 0.3
    assert study.settings.model == cm.Model(samples=3, transform="none")
    assert study.settings.couple is False


def test_tables_are_those_of_a_new_storage(storage, tmp_path):
    cm.Study.load(storage).database.close()
    cm.Study(cm.Problem({"x": cm.Real(0, 1)}, minimize="f"), f"sqlite:///{tmp_path / 'new.db'}")

    def columns(path):
        with sqlite3.connect(path) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {
                name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
                for (name,) in tables.fetchall()
            }

    assert columns(tmp_path / "old.db") == columns(tmp_path / "new.db")


def test_models_of_earlier_versions_are_read():
    settings = cm.Settings(model=cm.Model(hyperparameters="mle")).to_json()
    settings["model"] = {**settings["model"], "hyperparameters": "ml"}
    del settings["model"]["transform"]
    read = cm.Settings.from_json(settings)
    assert read.model == cm.Model(hyperparameters="mle", transform="none")
