"""Tokens: who may use a storage through a server, and for what. Only their hashes are stored."""

import hmac
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, final

from sqlalchemy import Row, insert, select, update

from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.retries import retried

Right = Literal["read", "work", "manage"]
# Each has those before it.
RIGHTS: tuple[Right, ...] = ("read", "work", "manage")
# What events say of the user of a server's own machine, who needs no token.
LOCAL_USER = "local"
_TOKENS = schema.tokens.c
_PREFIX = "calamint"
_BYTES = 32


@final
@dataclass(frozen=True)
class Token:
    """What a token allows.

    Attributes:
        name: Who uses it; recorded with what is done by it.
        right: "read", "work" (ask for jobs and tell their results) or "manage" (everything).
        resources: Those that it may work on; all of them if there are none.
        study: The id of the only study that it is for; None for all.
        created: Seconds since 1970.
        revoked: Since when it is not accepted; None while it is.
    """

    id: int
    name: str
    right: Right
    resources: tuple[str, ...]
    study: int | None
    created: float
    revoked: float | None = None


@retried
def create_token(
    database: Database,
    name: str,
    right: Right,
    resources: tuple[str, ...] = (),
    study: int | None = None,
) -> str:
    """Create a token. What is returned is not stored, and cannot be shown again.

    Raises:
        ProblemError: If there is a token of that name, or the right is none.
    """
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= 200:
        raise ProblemError(f"name is {name!r}: write printable text of at most 200 bytes.")
    if name == LOCAL_USER:
        raise ProblemError(f"name is {name!r}, the user of the server's machine: give another.")
    if right not in RIGHTS:
        raise ProblemError(f"right is {right!r}: {did_you_mean(str(right), RIGHTS)}")
    if resources and right != "work":
        raise ProblemError(f"a token that may {right} is not limited to resources: leave them out.")
    secret = secrets.token_urlsafe(_BYTES)
    with database.write() as connection:
        known = select(_TOKENS.id).where(_TOKENS.name == name)
        if connection.execute(known).first() is not None:
            raise ProblemError(f"there is a token {name!r} already: give another name.")
        made = connection.execute(
            insert(schema.tokens)
            .returning(_TOKENS.id)
            .values(
                name=name,
                hash=_hashed(secret),
                right=right,
                resources=list(resources),
                study_id=study,
                created=time.time(),
            )
        )
        return f"{_PREFIX}_{made.scalar_one()}_{secret}"


@retried
def list_tokens(database: Database) -> list[Token]:
    """All tokens, oldest first, revoked ones too."""
    with database.read() as connection:
        rows = connection.execute(select(schema.tokens).order_by(_TOKENS.id)).all()
    return [_token(row) for row in rows]


@retried
def revoke_token(database: Database, name: str) -> None:
    """Accept a token no more.

    Raises:
        ProblemError: If there is no such token.
    """
    with database.write() as connection:
        names = list(connection.execute(select(_TOKENS.name)).scalars())
        if name not in names:
            known = did_you_mean(str(name), names) if names else "there is none."
            raise ProblemError(f"token is {name!r}: {known}")
        revoked = update(schema.tokens).where(_TOKENS.name == name, _TOKENS.revoked.is_(None))
        connection.execute(revoked.values(revoked=time.time()))


@retried
def find_token(database: Database, text: str) -> Token | None:
    """The token that somebody shows, if it is one that is accepted."""
    prefix, _, rest = text.partition("_")
    number, _, secret = rest.partition("_")
    # A number that no database has is none.
    given = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
    with database.read() as connection:
        row = connection.execute(select(schema.tokens).where(_TOKENS.id == given)).first()
    stored = _hashed("") if row is None else str(row.hash)
    # As long for every wrong token, whichever part of it is wrong.
    is_right = hmac.compare_digest(stored.encode(), _hashed(secret).encode())
    if row is None or row.revoked is not None or not is_right or prefix != _PREFIX:
        return None
    return _token(row)


def _hashed(secret: str) -> str:
    """Of 32 random bytes, which need no salt, and no slow hash."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _token(row: Row[Any]) -> Token:
    return Token(
        row.id, row.name, row.right, tuple(row.resources), row.study_id, row.created, row.revoked
    )
