"""SQLite, in a file or in memory: a transaction that writes takes the lock when it begins (BEGIN
IMMEDIATE), so that what it reads cannot change before it writes."""

import os
import sqlite3
import time
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import StaticPool

# Seconds to wait for a lock: transactions take milliseconds, so whoever holds it longer is stuck.
BUSY_TIMEOUT = 30.0


def sqlite_engine(url: URL, in_memory: bool, read_only: bool) -> Engine:
    options: dict[str, Any] = {
        "connect_args": {"check_same_thread": False, "timeout": BUSY_TIMEOUT},
    }
    if in_memory:
        options["poolclass"] = StaticPool  # another connection would open another, empty database
    engine = create_engine(url, **options)
    event.listen(engine, "connect", _on_connect_to_read if read_only else _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def create_private(url: URL) -> None:
    """An empty file that nobody else can read; SQLite's other files have its permissions."""
    name = str(url.database or "")
    if name in ("", ":memory:") or "mode=memory" in name:
        return
    path = os.path.realpath(name.removeprefix("file:").partition("?")[0])
    with suppress(OSError):  # what is wrong is said when it is opened
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _on_connect(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # `_on_begin` begins transactions, not the driver
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    _use_write_ahead_log(cursor)
    # What is committed survives a power failure.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _use_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """Wait here: SQLite does not wait when two processes change the journal of a new file."""
    until = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _on_connect_to_read(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes") is not None
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
