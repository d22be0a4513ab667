"""Storages that an earlier version wrote: brought up to date, and going on as before."""

import contextlib
import json
import sqlite3
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect
from tests.run.cases import tables
from tests.run.histories.__main__ import environment
from tests.run.servers import new_database

import calamint as cm
from calamint.decide import VirtualClock

MIGRATIONS = Path(cm.__file__).parent / "run" / "store" / "migrations"
STORED = Path(__file__).parent / "stored"
HISTORIES = Path(__file__).parent / "histories"


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request, tmp_path):
    """The toy problem after fourteen jobs and one added measurement, as schema 0001 stored it."""
    path = tmp_path / "old.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORED / "v0001.sql").read_text())
    if request.param == "sqlite":
        return f"sqlite:///{path}"
    url = new_database()
    upgrade(url, "0001")
    copy_rows(path, url)
    return url


def upgrade(url, revision):
    """The tables as the first version made them on a server."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def copy_rows(path, url):
    """From a file to a server, row by row."""
    content = tables(path)
    order = ("studies", "tasks", "resources", "jobs")
    names = [*order, *sorted(content.keys() - {*order, "alembic_version"})]
    with psycopg.connect(url) as connection:
        for name in names:
            for row in content[name]:
                columns = ", ".join(row)
                places = ", ".join(
                    "%s::int::bool" if column in ("used", "confident") else "%s" for column in row
                )
                connection.execute(
                    f"INSERT INTO {name} ({columns}) VALUES ({places})", list(row.values())
                )
            if content[name] and "id" in content[name][0]:
                connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}"
                )


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
    new = f"sqlite:///{tmp_path / 'new.db'}" if storage.startswith("sqlite") else new_database()
    cm.Study(cm.Problem({"x": cm.Real(0, 1)}, minimize="f"), new)

    def columns(url):
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        found = inspect(engine)
        names = {
            table: [
                (column["name"], str(column["type"]), column["nullable"])
                for column in found.get_columns(table)
            ]
            for table in found.get_table_names()
        }
        engine.dispose()
        return names

    assert columns(storage) == columns(new)


def test_models_of_earlier_versions_are_read():
    settings = cm.Settings(model=cm.Model(hyperparameters="mle")).to_json()
    settings["model"] = {**settings["model"], "hyperparameters": "ml"}
    del settings["model"]["transform"]
    read = cm.Settings.from_json(settings)
    assert read.model == cm.Model(hyperparameters="mle", transform="none")
