"""Leases: an attempt keeps its resources while its owner, a process, lives and renews its lease."""

import os
import socket
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row

from calamint.run.store.rows import Rows


def renew(
    rows: Rows, connection: Connection, attempts: Sequence[tuple[int, int]], lease: float
) -> list[tuple[int, int]]:
    """Renew the leases of attempts (job, attempt); returns those that are no longer open."""
    open_attempts = {(row.job, row.number): row for row in rows.open_attempts(connection)}
    for key in attempts:
        if key in open_attempts:
            rows.renew(connection, open_attempts[key].id, lease)
    return [key for key in attempts if key not in open_attempts]


def expired_attempts(rows: Rows, connection: Connection) -> list[Row[Any]]:
    """Open attempts whose lease has run out, or whose owner is dead."""
    now = rows.now()
    return [
        row
        for row in rows.open_attempts(connection)
        if row.lease_until is not None and (row.lease_until < now or is_dead(row.owner))
    ]


def owner() -> str:
    """An identifier of this process, from which others on this host can tell whether it lives."""
    return _owner(os.getpid())


@cache
def _owner(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_start_time(pid)}"


def is_dead(name: str) -> bool:
    """Whether an owner is known to be dead; False for one on another host."""
    parts = name.split("/")
    if len(parts) != 3 or parts[0] != socket.gethostname() or not parts[1].isdigit():
        return False
    pid = int(parts[1])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    # The process id may have been reused.
    return _start_time(pid) != parts[2]


def _start_time(pid: int) -> str:
    """When a process was started, in ticks since boot: field 22 of /proc/PID/stat, see proc(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
        return "gone" if after_name[0] == b"Z" else after_name[19].decode()
    except OSError:
        return "unknown"
