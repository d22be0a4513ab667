"""A storage: SQLite (a file, or memory) through SQLAlchemy, with short transactions.

Writers take turns: a SQLite transaction that writes takes the lock when it begins, so that what it
has read still holds when it writes.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, final

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from calamint.errors import StorageError
from calamint.run.store.schema import REVISION

MEMORY = "sqlite://"
# How long a writer waits for its turn.
_PATIENCE = 30.0
# Alembic's own state belongs to the process, not to a thread.
_MIGRATING = threading.Lock()


_SENTENCES = (
    ("disk is full", "the disk is full: make room, and go on; nothing was lost"),
    ("disk full", "the disk is full: make room, and go on; nothing was lost"),
    ("readonly", "the file or its folder cannot be written: give write permission to both"),
    ("read-only", "the file or its folder cannot be written: give write permission to both"),
    ("locked", "another program has held it locked for too long: close that program, and go on"),
    (
        "unable to open",
        "the file cannot be opened: does its folder exist, and may you write to it?",
    ),
    ("not a database", "the file is not a SQLite database: give another path"),
    (
        "malformed",
        "the file is damaged: restore a copy, or save what can be read"
        " with `sqlite3 FILE .recover`",
    ),
    ("disk i/o error", "the disk reports an error while reading or writing"),
)


@contextmanager
def _in_sentences(where: str) -> Iterator[None]:
    """Errors of the database as a `StorageError` that says what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        raw = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        for words, sentence in _SENTENCES:
            if words in raw.lower():
                raise StorageError(f"storage {where}: {sentence} ({raw}).") from error
        raise StorageError(f"storage {where}: {type(error).__name__}: {raw}.") from error


@final
class Database:
    """A storage by URL, with its tables made or brought up to date."""

    def __init__(self, url: str = MEMORY, create: bool = True) -> None:
        """Without `create`, a file that does not exist is refused."""
        self.url = _read_url(url)
        self.where = self.url.render_as_string(hide_password=True)
        self.in_memory = self.url.database in (None, "", ":memory:")
        self._lock = threading.RLock()
        if not create and self.path is not None and not self.path.exists():
            raise StorageError(f"storage {self.where}: there is no such file.")
        with _in_sentences(self.where):
            self._engine = _engine(self.url, self.in_memory)
            self._migrate()

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        name = str(self.url.database)
        return None if self.in_memory or name.startswith("file:") else Path(name)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of everything."""
        with (
            self._turn(),
            _in_sentences(self.where),
            self._engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that nobody else writes during; all of it happens, or nothing."""
        with self._turn(), _in_sentences(self.where), self._engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def _turn(self) -> AbstractContextManager[object]:
        """Threads take turns on the one connection to memory."""
        return self._lock if self.in_memory else nullcontext()

    def close(self) -> None:
        self._engine.dispose()

    def _migrate(self) -> None:
        with self.read() as connection:
            found = _revision(connection)
        if found == REVISION:
            return
        # Whoever comes first makes the tables; the others find them made.
        with _MIGRATING, self.write() as connection:
            found = _revision(connection)
            if found != REVISION:
                self._upgrade(connection, found)

    def _upgrade(self, connection: Connection, found: str | None) -> None:
        from alembic import command
        from alembic.config import Config

        if found is not None and found > REVISION:
            raise StorageError(
                f"storage {self.where}: it was written by a newer Calamint (schema {found}, this"
                f" one knows {REVISION}): install that version; nothing was changed."
            )
        if found is None and inspect(connection).get_table_names():
            raise StorageError(
                f"storage {self.where}: it has tables that are not Calamint's: give another path."
            )
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _read_url(url: object) -> URL:
    remedy = "write a URL, such as 'sqlite:///study.db'"
    if isinstance(url, os.PathLike) or (isinstance(url, str) and "://" not in url):
        path = os.fspath(url) or "study.db"
        raise StorageError(f"storage is {str(url)!r}: {remedy} (here 'sqlite:///{path}').")
    if not isinstance(url, str) or not url.isprintable():
        raise StorageError(f"storage is {url!r}: {remedy}.")
    try:
        read = make_url(url)
        backend = read.get_backend_name()
        read.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        raise StorageError(f"storage is {url!r}: {remedy} ({error}).") from error
    if backend != "sqlite":
        where = read.render_as_string(hide_password=True)
        raise StorageError(
            f"storage is {where!r}: studies are stored in SQLite only, as yet; {remedy}."
        )
    return read


def _engine(url: URL, in_memory: bool) -> Engine:
    options: dict[str, Any] = {
        "connect_args": {"check_same_thread": False, "timeout": _PATIENCE},
    }
    if in_memory:
        options["poolclass"] = StaticPool  # one connection: another would see other tables
    engine = create_engine(url, **options)
    event.listen(engine, "connect", _connected)
    event.listen(engine, "begin", _begin)
    return engine


def _connected(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, not the driver
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA journal_mode = WAL")
    # A result is on the disk when it is acknowledged, also if the power fails.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
