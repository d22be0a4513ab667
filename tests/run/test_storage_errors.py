"""Storages that cannot be used: a clear sentence each, and nothing is lost."""

import contextlib
import os
import shutil
import sqlite3
import threading

import pytest
from sqlalchemy import text
from tests.run.cases import decoupled, quick, values_of

import calamint as cm
from calamint.run import Database
from calamint.run.store import sqlite


@pytest.fixture
def path(tmp_path):
    """A study with two results."""
    path = tmp_path / "a.db"
    study = quick(storage=f"sqlite:///{path}")
    for _ in range(2):
        job = study.ask()
        study.tell(job, values_of(job.task, job.params))
    study.database.close()
    return path


def raw(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


def test_a_full_disk(path):
    study = quick(storage=f"sqlite:///{path}")
    job = study.ask()
    with study.database.read() as connection:  # the same error as from a disk without room
        pages = connection.execute(text("PRAGMA page_count")).scalar()
        connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    rows = [({"x": 0.5, "y": 0.5}, {"f": 1.0})] * 5000
    with pytest.raises(cm.StorageError, match="the disk is full: free some space"):
        study.add_all(rows)
    with study.database.read() as connection:
        connection.execute(text("PRAGMA max_page_count = 1000000"))
    before = len(study.history)
    assert before == 2
    assert study.tell(job, values_of(job.task, job.params))  # there is room again
    again = quick(storage=f"sqlite:///{path}")
    assert len(again.history) == before + 1


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_while_it_is_open(path, replaced):
    """SQLite would go on writing to what nobody finds any more."""
    study = quick(storage=f"sqlite:///{path}")
    job = study.ask()
    kept = path.with_name("kept.db")
    path.rename(kept)
    if replaced:
        shutil.copy(kept, path)
    for attempt in (lambda: study.tell(job, {"f": 1.0, "c": 1.0}), study.ask, study.replica):
        with pytest.raises(cm.StorageError, match="was deleted or replaced while it was open"):
            attempt()
    kept.replace(path)
    assert study.tell(job, values_of(job.task, job.params))
    assert len(quick(storage=f"sqlite:///{path}").history) == 3


def test_a_file_that_cannot_be_written(path):
    url = f"sqlite:///file:{path}?mode=ro&uri=true"
    study = quick(storage=url)
    assert len(study.history) == 2  # it can be looked at
    with pytest.raises(cm.StorageError, match="cannot be written: give write permission"):
        study.ask()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_without_write_permission(path):
    path.chmod(0o444)
    with pytest.raises(cm.StorageError, match="cannot be written"):
        quick(storage=f"sqlite:///{path}").ask()


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(cm.StorageError, match="does its folder exist"):
        quick(storage=f"sqlite:///{tmp_path / 'none' / 'a.db'}")


def test_a_locked_database(path, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 0.2)
    study = quick(storage=f"sqlite:///{path}")
    job = study.ask()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(cm.StorageError, match="locked it for too long"):
            study.tell(job, values_of(job.task, job.params))
    assert study.tell(job, values_of(job.task, job.params))


def test_a_run_waits_for_a_locked_database(path, monkeypatch):
    """A result is not given up because another program holds the file for a moment."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 0.2)
    study = quick(storage=f"sqlite:///{path}")
    held = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    tell = study.tell
    locked = []

    def while_locked(job, values, seconds):
        if not locked:
            held.execute("BEGIN EXCLUSIVE")
            locked.append(threading.Timer(1.0, held.rollback))
            locked[0].start()
        return tell(job, values, seconds)

    monkeypatch.setattr(study, "tell", while_locked)
    works = {"price": lambda params: 1.0, "weigh": lambda params: 1.0}
    report = study.run(works, evaluations=3)
    assert report.evaluations == 1
    assert len(study.history) == 3
    held.close()


def test_a_file_that_another_process_is_just_creating(tmp_path):
    """SQLite refuses at once, however long it was told to wait."""
    path = tmp_path / "a.db"
    creator = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    creator.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(path, timeout=30).execute("PRAGMA journal_mode = WAL")
    end = threading.Timer(0.2, creator.rollback)
    end.start()
    assert quick(storage=f"sqlite:///{path}").ask() is not None
    end.join()
    creator.close()


def test_a_damaged_file(path):
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[2000 : len(data) - 2000] = os.urandom(len(data) - 4000)
    path.write_bytes(data)
    with pytest.raises(cm.StorageError, match=r"damaged|not a SQLite database"):
        quick(storage=f"sqlite:///{path}").ask()
    assert path.read_bytes() == bytes(data)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("Buy milk. " * 1000)
    with pytest.raises(cm.StorageError, match="not a SQLite database"):
        quick(storage=f"sqlite:///{path}")
    assert path.read_text().startswith("Buy milk")


def test_tables_of_another_program(tmp_path):
    path = tmp_path / "other.db"
    raw(path, "CREATE TABLE customers (name TEXT)")
    with pytest.raises(cm.StorageError, match="not Calamint's"):
        quick(storage=f"sqlite:///{path}")
    assert raw(path, "SELECT name FROM sqlite_master") == [("customers",)]


def test_a_newer_schema(path):
    raw(path, "UPDATE alembic_version SET version_num = '9999'")
    before = raw(path, "SELECT * FROM measurements")
    with pytest.raises(cm.StorageError, match="written by a newer Calamint"):
        quick(storage=f"sqlite:///{path}")
    assert raw(path, "SELECT * FROM measurements") == before


@pytest.mark.parametrize(
    "url", ["a.db", "", 3, None, "nosuch://x", "sqlite:/a.db", "sqlite+nothing:///a.db"]
)
def test_urls_that_are_none(url):
    with pytest.raises(cm.StorageError, match="sqlite:///"):
        cm.Study(decoupled(), url)


def test_migrations_make_the_tables_that_the_code_uses(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from calamint.run.store.schema import metadata

    made = Database(f"sqlite:///{tmp_path / 'a.db'}")
    with made.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert raw(tmp_path / "a.db", "PRAGMA journal_mode") == [("wal",)]


def test_a_copy_is_a_study_of_its_own(path, tmp_path):
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, tmp_path / "b.db")
    quick(storage=f"sqlite:///{path}").add({"x": 0.5, "y": 0.5}, {"f": 1.0})
    assert len(quick(storage=f"sqlite:///{tmp_path / 'b.db'}").history) == 2


def test_other_databases_are_refused():
    with pytest.raises(cm.StorageError, match="in SQLite and PostgreSQL") as error:
        quick(storage="mysql://me:secret@host/db")
    assert "secret" not in str(error.value)
