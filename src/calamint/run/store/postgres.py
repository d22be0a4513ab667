"""PostgreSQL: one writer at a time for each study, by an advisory lock that ends with its
transaction; readers see a snapshot. Leases are timed by the server's clock, which is the same for
all machines."""

import json
import math
import time
from typing import Any, final

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from calamint.errors import StorageError
from calamint.run.store.liveness import LeaseClock
from calamint.run.store.sqlite import BUSY_TIMEOUT

# Of all locks on this server, those of Calamint: with the study, or 0 for tables and new studies.
_LOCKS = 0x63616C61
# Where a connection keeps the number of its last transaction that writes.
_TRANSACTION = "calamint transaction"
# Codes of errors: connections, serialisation failures and deadlocks, a server that is ended.
_INTERRUPTIONS = ("08", "40", "57P")
# Seconds after which the server ends a transaction of which it hears nothing: its machine may be
# gone, and others wait for its lock.
_SILENCE = BUSY_TIMEOUT / 2
# Seconds after which the difference to the server's clock is measured again.
_CLOCK_AGE = 60.0


# Of transactions that read: a consistent snapshot.
READING = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def postgres_engine(url: URL) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise StorageError(
            "PostgreSQL needs psycopg, which is not installed: pip install 'calamint[postgres]'."
        ) from None
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        json_serializer=_dumps,
        json_deserializer=_loads,
        connect_args={"connect_timeout": int(BUSY_TIMEOUT), "client_encoding": "utf8"},
    )
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_begin(connection: Connection) -> None:
    study = connection.get_execution_options().get("writes")
    if study is None:
        return
    limits = {"lock_timeout": BUSY_TIMEOUT, "idle_in_transaction_session_timeout": _SILENCE}
    settings = [
        f"set_config('{name}', '{int(1000 * seconds)}', true)" for name, seconds in limits.items()
    ]
    lock = f"pg_advisory_xact_lock({_LOCKS}, {int(study)})"
    # In one message: a server may be far away.
    asked = f"SELECT txid_current(), {', '.join(settings)}, {lock}"
    connection.info[_TRANSACTION] = connection.exec_driver_sql(asked).one()[0]


def is_interrupted(error: SQLAlchemyError) -> bool:
    """Whether the server ended a transaction that may go well if it is made again."""
    if not isinstance(error, DBAPIError):
        return False
    code = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or code.startswith(_INTERRUPTIONS)


def transaction_number(connection: Connection) -> int | None:
    """What the server calls the transaction that writes; None on another database."""
    return connection.info.get(_TRANSACTION)


def was_committed(engine: Engine, number: int) -> bool:
    """Whether a transaction whose connection was lost is in the database all the same.

    Raises:
        SQLAlchemyError: If the server does not say so for some seconds.
    """
    until = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            with engine.connect() as another:
                asked = text("SELECT txid_status(:number)")
                status = another.execute(asked, {"number": number}).scalar_one()
            if status != "in progress" or time.monotonic() > until:
                return bool(status == "committed")
        except SQLAlchemyError as error:
            if not is_interrupted(error) and not _is_down(error):
                raise
            if time.monotonic() > until:
                raise
        time.sleep(0.1)


def _is_down(error: SQLAlchemyError) -> bool:
    return "connection" in str(error).lower()


@final
class ServerClock:
    """Seconds since 1970 by the clock of the server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._offset = 0.0
        self._measured = -math.inf

    def now(self) -> float:
        if time.monotonic() - self._measured > _CLOCK_AGE:
            try:
                self._measure()
            except SQLAlchemyError:
                if self._measured == -math.inf:
                    raise
        return time.monotonic() + self._offset

    def _measure(self) -> None:
        with self._engine.connect() as connection:
            asked = text("SELECT extract(epoch FROM clock_timestamp())")
            server = float(connection.execute(asked).scalar_one())
        self._measured = time.monotonic()
        self._offset = server - self._measured


def server_lease_clock(engine: Engine) -> LeaseClock:
    """All that use the server compare leases."""
    return LeaseClock("server", ServerClock(engine).now)


def _dumps(value: object) -> str:
    """JSON of the standard, which has no infinity: such numbers are objects with a string."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_without_infinity(value), allow_nan=False)


def _without_infinity(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, dict):
        return {key: _without_infinity(each) for key, each in value.items()}
    return [_without_infinity(each) for each in value] if isinstance(value, list | tuple) else value


def _loads(content: str) -> Any:
    return json.loads(content, object_hook=_with_infinity)


def _with_infinity(content: dict[str, Any]) -> Any:
    if len(content) == 1 and content.get("float") in ("nan", "inf", "-inf"):
        return float(content["float"])
    return content
