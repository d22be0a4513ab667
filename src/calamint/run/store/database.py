"""A database through SQLAlchemy, with short transactions: SQLite or PostgreSQL.

A transaction that writes takes a lock when it begins, so that what it reads cannot change before it
writes.
"""

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from calamint.errors import ConnectionLostError, SchemaError, StorageError
from calamint.run.store.liveness import LeaseClock
from calamint.run.store.postgres import (
    READING,
    is_interrupted,
    postgres_engine,
    server_lease_clock,
    transaction_number,
    was_committed,
)
from calamint.run.store.schema import REVISION
from calamint.run.store.sqlite import create_private, sqlite_engine

MEMORY = "sqlite://"
# Alembic keeps state for the whole process: one thread migrates at a time.
_MIGRATION_LOCK = threading.Lock()


_DISK_FULL = "the disk is full: free some space, then continue; what was stored before is safe"
_READ_ONLY = "the file or its folder cannot be written: give write permission to both"
_UNREACHABLE = "the server cannot be reached: is it running, and is the address right?"
# What a database says, what to do about it, and whether it may pass by itself.
_ERROR_HINTS = (
    ("disk is full", _DISK_FULL, True),
    ("disk full", _DISK_FULL, True),
    ("readonly", _READ_ONLY, False),
    ("read-only", _READ_ONLY, False),
    (
        "locked",
        "another program has locked it for too long: close that program, then continue",
        True,
    ),
    (
        "unable to open",
        "the file cannot be opened: does its folder exist, and may you write to it?",
        True,
    ),
    ("not a database", "the file is not a SQLite database: give another path", False),
    (
        "malformed",
        "the file is damaged: restore a copy, or save what can be read"
        " with `sqlite3 FILE .recover`",
        False,
    ),
    ("disk i/o error", "the disk reports an error while reading or writing", True),
    ("lock timeout", "another process has locked it for too long: end that, then continue", True),
    (
        "authentication failed",
        "the server does not accept this user and password: look at both",
        False,
    ),
    (
        "no equivalent in encoding",
        "the database cannot store every character: create it with ENCODING 'UTF8'",
        False,
    ),
    ("does not exist", "there is no such database or user: create it first", False),
    (
        "permission denied for table",
        "this user may not do that: ask for the right to read and write the tables",
        False,
    ),
    ("permission denied", "this user may not do that: ask for the right to create tables", False),
    ("connection", _UNREACHABLE, True),
)


@contextmanager
def _translated_errors(where: str) -> Iterator[None]:
    """Raise errors of SQLAlchemy as `StorageError`s that say what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        raw = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        hints = ((hint, passes) for found, hint, passes in _ERROR_HINTS if found in raw.lower())
        hint, transient = next(hints, (None, False))
        if is_interrupted(error) or hint is _UNREACHABLE:
            hint = hint or "the server interrupted a transaction"
            raise ConnectionLostError(f"storage {where}: {hint} ({raw}).") from error
        if hint is not None:
            raise StorageError(f"storage {where}: {hint} ({raw}).", transient) from error
        raise StorageError(f"storage {where}: {type(error).__name__}: {raw}.") from error


@final
class Database:
    """The database at a URL; opening it creates or migrates its tables."""

    def __init__(self, url: str = MEMORY, create: bool = True, read_only: bool = False) -> None:
        """Without `create`, a file that does not exist is a `StorageError`; with `read_only`,
        nothing is written, and the file may be on media that cannot be."""
        self.url = _parse_url(url)
        self.where = self.url.set(query={}).render_as_string(hide_password=True)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.in_memory = self.is_sqlite and self.url.database in (None, "", ":memory:")
        self.read_only = read_only and not self.in_memory
        self._lock = threading.RLock()
        if self.path is not None and not self.path.exists() and (read_only or not create):
            raise StorageError(f"storage {self.where}: there is no such file.")
        if self.is_sqlite:
            create_private(self.url)
        self._seen = None if self.path is None else _state(self.path)
        # Only that of a file that is written to: others are opened again when they change.
        self._file = None if self.path is None or read_only else self.path.absolute()
        self._identity = _identity(self._file)
        with _translated_errors(self.where):
            self._engine = self._new_engine()
            self._migrate()

    def _new_engine(self) -> Engine:
        if not self.is_sqlite:
            engine = postgres_engine(self.url)
            # Connections are closed when nobody uses the database any more.
            weakref.finalize(self, engine.dispose)
            return engine
        return sqlite_engine(self._opened_url(), self.in_memory, self.read_only)

    def lease_clock(self) -> LeaseClock:
        """What leases are timed by: one machine's clock, or the server's."""
        return LeaseClock.of_machine() if self.is_sqlite else server_lease_clock(self._engine)

    def _opened_url(self) -> URL:
        if not self.read_only or self.path is None:
            return self.url
        path, query = self.path.absolute(), {"mode": "ro", "uri": "true"}
        log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
        pending = log.exists() and log.stat().st_size > 0
        if pending and not index.exists() and not os.access(path.parent, os.W_OK):
            # Only a writer can read what was not merged: let it write to a copy.
            folder = tempfile.mkdtemp(prefix="calamint-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            for file in (path, log):
                shutil.copy(file, folder)
            return self.url.set(database=str(Path(folder) / path.name), query={})
        if not pending and not index.exists():
            # Nobody has it open; SQLite would make files beside it, if it could.
            query["immutable"] = "1"
        return self.url.set(database=f"file:{quote(str(path))}", query=query)

    def _refresh(self) -> None:
        """Look again at a file that nobody had open, if somebody has written to it since."""
        if self.read_only and self.path is not None and _state(self.path) != self._seen:
            self._seen = _state(self.path)
            self._engine.dispose()
            self._engine = self._new_engine()

    def _check_file(self) -> None:
        """Refuse to go on if the file is not there any more: nobody would find what is written."""
        if _identity(self._file) != self._identity:
            raise StorageError(
                f"storage {self.where}: the file was deleted or replaced while it was open: put it"
                " back, and start this program again."
            )

    @property
    def path(self) -> Path | None:
        """The path of the file; None for databases without one, and `file:` URIs."""
        name = str(self.url.database)
        has_path = self.is_sqlite and not self.in_memory and not name.startswith("file:")
        return Path(name) if has_path else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction on a consistent snapshot."""
        self._refresh()
        self._check_file()
        with (
            self._memory_lock(),
            _translated_errors(self.where),
            self._engine.connect() as connection,
        ):
            if not self.is_sqlite:
                connection = connection.execution_options(**READING)
            with connection.begin():
                yield connection

    @contextmanager
    def write(self, study: int = 0) -> Iterator[Connection]:
        """An atomic transaction that holds the write lock from its beginning: that of a study on
        PostgreSQL, or 0 for tables and new studies; of the whole file on SQLite."""
        with (
            self._memory_lock(),
            _translated_errors(self.where),
            self._engine.connect() as connection,
        ):
            self._check_file()
            connection = connection.execution_options(writes=study)
            with connection.begin() as transaction:
                yield connection
                number = transaction_number(connection)  # not to be had from one that is lost
                try:
                    transaction.commit()
                except DBAPIError as error:
                    # A connection that is lost while it commits does not say what came of it.
                    if number is None or not is_interrupted(error):
                        raise
                    if not was_committed(self._engine, number):
                        raise
                self._check_file()

    def _memory_lock(self) -> AbstractContextManager[object]:
        """A database in memory has a single connection, which threads must not share."""
        return self._lock if self.in_memory else nullcontext()

    def close(self) -> None:
        self._engine.dispose()

    def _migrate(self) -> None:
        with self.read() as connection:
            current = _schema_revision(connection)
        if current == REVISION:
            return
        if self.read_only:
            raise SchemaError(
                f"storage {self.where}: it has schema {current}, and this version of Calamint needs"
                f" {REVISION}: open it once for writing, such as by `calamint jobs`."
            )
        # Look again under the lock: another process may have migrated meanwhile.
        with _MIGRATION_LOCK, self.write() as connection:
            current = _schema_revision(connection)
            if current != REVISION:
                self._upgrade(connection, current)

    def _upgrade(self, connection: Connection, current: str | None) -> None:
        from alembic import command
        from alembic.config import Config

        if current is not None and current > REVISION:  # zero-padded strings
            raise StorageError(
                f"storage {self.where}: it was written by a newer Calamint (schema {current}; this"
                f" version knows {REVISION}): upgrade Calamint; nothing was changed."
            )
        if current is None and inspect(connection).get_table_names():
            raise StorageError(
                f"storage {self.where}: it has tables that are not Calamint's: give another path."
            )
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _schema_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _parse_url(url: object) -> URL:
    remedy = "write a URL, such as 'sqlite:///study.db' or 'postgresql://host/database'"
    if isinstance(url, os.PathLike) or (isinstance(url, str) and "://" not in url):
        path = os.fspath(url) or "study.db"
        if _without_password(str(path)) != str(path):
            raise StorageError(f"storage is {_without_password(str(path))!r}: {remedy}.")
        raise StorageError(f"storage is {str(url)!r}: {remedy} (here 'sqlite:///{path}').")
    if not isinstance(url, str) or not url.isprintable():
        raise StorageError(f"storage is {_without_password(url)!r}: {remedy}.")
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        shown = _without_password(url)
        raise StorageError(f"storage is {shown!r}: {remedy} ({type(error).__name__}).") from None
    shown = _without_password(url)
    if backend not in ("sqlite", "postgresql"):
        raise StorageError(
            f"storage is {shown!r}: Calamint stores studies in SQLite and PostgreSQL; {remedy}."
        )
    if backend == "sqlite" and (parsed.host or parsed.username):
        raise StorageError(f"storage is {shown!r}: a file has no host; {remedy}.")
    return parsed


def _without_password(url: object) -> object:
    """What may be shown of a URL, however it is written."""
    if not isinstance(url, str):
        return url
    address, asked, _ = url.partition("?")
    return re.sub(r"(\w+:(?://?)?).*@", r"\1***@", address) + ("?***" if asked else "")


def _identity(path: Path | None) -> tuple[int, int] | None:
    """What another file does not have; None if there is none."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def _state(path: Path) -> tuple[bool, int, int] | None:
    """What changes when somebody opens or writes a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Path(f"{path}-shm").exists(), found.st_mtime_ns, found.st_size
