"""Who wants a change, if not the user of this process; and requests that are made only once."""

from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import select

from calamint.errors import ResultError
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.retries import retried


@final
@dataclass(frozen=True)
class Caller:
    """Who wants a change.

    Attributes:
        name: Recorded with the event, and as the owner of jobs that are asked for.
        key: An idempotency key: the change is made once, however often it is requested.
        digest: Of the request, so that a key is not used for two different ones.
    """

    name: str
    key: str | None = None
    digest: str = ""


@final
@dataclass(frozen=True)
class Answered:
    """What a request changed: the event that it caused."""

    kind: str
    job: int | None
    attempt: int | None
    detail: Any


@retried
def answered(database: Database, study: int, caller: Caller) -> Answered | None:
    """The event that an earlier request with the same key has caused, if there was one.

    Raises:
        ResultError: If that was a different request.
    """
    if caller.key is None:
        return None
    events = schema.events.c
    query = select(schema.events).where(events.study_id == study, events.request == caller.key)
    with database.read() as connection:
        row = connection.execute(query).first()
    if row is None:
        return None
    if row.digest != caller.digest:
        raise ResultError(
            f"the idempotency key {caller.key!r} was used for another request: write a new one for"
            " each request. Nothing was changed."
        )
    return Answered(row.kind, row.job, row.attempt, row.detail)
