"""PostgreSQL: what is different from a file. The contract of all storages is tested elsewhere."""

import math
import os
import time

import psycopg
import pytest
from tests.run.cases import check_books, quick, tables, values_of
from tests.run.servers import Proxy, new_database, restart_server
from tests.run.test_kill import forked

import calamint as cm
from calamint.run import Database
from calamint.run.store import postgres, retries
from calamint.run.store.rows import Rows


@pytest.fixture
def url():
    return new_database()


def test_many_processes_that_open_it_first_create_the_tables_once(url):
    pids = [forked(lambda: quick(storage=url)) for _ in range(8)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 8
    found = tables(url)
    assert len(found["alembic_version"]) == 1
    assert len(found["studies"]) == 1


def test_one_writes_at_a_time_to_a_study_but_others_go_on(url):
    database = Database(url)
    one, other = quick(storage=database), cm.Study(quick().problem, database, "other", seed=1)
    begin = time.monotonic()
    with psycopg.connect(url) as connection:
        # As long as somebody writes to the first study ...
        connection.execute("SELECT pg_advisory_xact_lock(%s, 1)", (0x63616C61,))
        assert other.ask() is not None
        pid = forked(lambda: quick(storage=url).ask())
        time.sleep(1.0)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)  # ... nobody else does
    assert os.waitpid(pid, 0)[1] == 0
    assert time.monotonic() - begin >= 1.0
    assert one.summary().states["running"] == 1


def drop_connections(url):
    """As a server that is restarted, or a firewall, does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_dropped_connections_are_replaced(url):
    study = quick(storage=url)
    for _ in range(3):
        drop_connections(url)
        job = study.ask()
        drop_connections(url)
        assert study.tell(job, values_of(job.task, job.params))
    assert len(quick(storage=url).history) == 3


def test_a_transaction_that_is_interrupted_is_made_again(url, monkeypatch):
    """Its connection is dropped when half of it is written."""
    study = quick(storage=url)
    job = study.ask()
    close, dropped = Rows.close, []

    def interrupted(self, *arguments):
        if not dropped:
            dropped.append(arguments)
            drop_connections(url)
        return close(self, *arguments)

    monkeypatch.setattr(Rows, "close", interrupted)
    assert study.tell(job, values_of(job.task, job.params))
    assert dropped
    found = check_books(url)
    assert len(found["measurements"]) == 1
    assert [row["kind"] for row in found["events"]] == ["asked", "told"]


def test_a_transaction_that_is_interrupted_for_long_changes_nothing(url, monkeypatch):
    monkeypatch.setattr(retries, "RETRY_SECONDS", 0.5)
    study = quick(storage=url)
    job = study.ask()
    with monkeypatch.context() as broken:
        close = Rows.close

        def interrupted(self, connection, *arguments):
            drop_connections(url)
            connection.exec_driver_sql("SELECT 1")
            return close(self, connection, *arguments)

        broken.setattr(Rows, "close", interrupted)
        with pytest.raises(cm.StorageError, match="the server cannot be reached") as error:
            study.tell(job, values_of(job.task, job.params))
        assert error.value.transient
    assert study.tell(job, values_of(job.task, job.params))
    check_books(url)


@pytest.mark.parametrize(("delivers", "is_silent"), [(True, False), (False, False), (False, True)])
def test_a_connection_that_is_lost_while_it_commits(url, delivers, is_silent, monkeypatch):
    """The client does not hear what came of its commit: it asks, and tells nothing twice."""
    monkeypatch.setattr(postgres, "_SILENCE", 2.0)
    proxy = Proxy(url, delivers, is_silent)
    study = quick(storage=proxy.url)
    job = study.ask()
    proxy.cuts = 1
    assert study.tell(job, values_of(job.task, job.params))
    assert proxy.cuts == 0
    assert [row["kind"] for row in check_books(url)["events"]] == ["asked", "told"]
    proxy.cuts = 1
    assert study.ask() is not None
    assert proxy.cuts == 0
    assert len(check_books(url)["jobs"]) == 2
    proxy.close()


@pytest.mark.parametrize("kill", [False, True], ids=["restarted", "killed"])
def test_a_server_that_is_restarted(url, kill):
    study = quick(storage=url)
    job = study.ask()
    pid = forked(restart_server, kill)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        assert study.tell(job, values_of(job.task, job.params))
        job = study.ask()
    found = check_books(url)
    assert len(found["measurements"]) == len(found["jobs"]) - 1


def test_a_server_that_is_not_there_gets_a_sentence_without_the_password():
    begin = time.monotonic()
    with pytest.raises(cm.StorageError, match="the server cannot be reached") as error:
        quick(storage="postgresql://me:secret@127.0.0.1:9/db")
    assert "secret" not in str(error.value)
    assert time.monotonic() - begin < 20


def test_a_database_that_does_not_exist_gets_a_sentence(url):
    with pytest.raises(cm.StorageError, match="no such database or user: create it first"):
        quick(storage=url.replace("/test", "/other"))


def test_a_database_that_cannot_store_every_character_gets_a_sentence(url):
    with psycopg.connect(url, autocommit=True) as connection:
        name = f"{connection.info.dbname}_latin"
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
    latin = url.replace(name.removesuffix("_latin"), name)
    assert quick(storage=latin, name="dösis").name == "dösis"
    with pytest.raises(cm.StorageError, match="create it with ENCODING 'UTF8'"):
        quick(storage=latin, name="🙂")


def test_infinity_is_stored(url):
    """Scores, hyper-parameters and settings may be infinite; JSON of the standard has no such."""
    model = cm.Model(hyperparameters="map")
    settings = {"rationality": math.inf, "acquisition": "eic", "initial": 2, "couple": True}
    study = cm.Study(quick().problem, url, seed=0, model=model, **settings)
    for _ in range(6):
        job = study.ask()
        study.tell(job, values_of("both", job.params))
    expected = study.optimizer.ask().params
    again = cm.Study.load(url)
    assert again.settings.rationality == math.inf
    assert again.ask().params == expected
    assert again.history == study.history
    with psycopg.connect(url) as connection:
        text = connection.execute("SELECT settings::text, state::text FROM studies").fetchone()
    assert not any("Infinity" in (each or "") or "NaN" in (each or "") for each in text)


def test_leases_are_timed_by_the_server(url, monkeypatch):
    study = quick(storage=url)
    with psycopg.connect(url) as connection:
        server = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()[0]
    assert study.database.lease_clock().now() == pytest.approx(float(server), abs=5.0)
    # The clock of this machine may be set.
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert study.database.lease_clock().now() == pytest.approx(float(server), abs=5.0)
    job = study.ask(lease=0.2)
    time.sleep(0.5)
    assert study.reap()
    (row,) = [row for row in tables(url)["attempts"] if row["outcome"] is not None]
    assert row["boot"] == "server"
    assert job.number == 0
