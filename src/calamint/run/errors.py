"""What can go wrong with a storage, each in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from calamint.problem import ProblemError


class StorageError(ProblemError):
    """A storage that cannot be read or written; nothing that was acknowledged is lost."""


class ExhaustedError(Exception):
    """No measurement is expected to tell as many bits as were asked for."""


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
def in_sentences(where: str) -> Iterator[None]:
    """Errors of the database as a `StorageError` that says what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        raw = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        for words, sentence in _SENTENCES:
            if words in raw.lower():
                raise StorageError(f"storage {where}: {sentence} ({raw}).") from error
        raise StorageError(f"storage {where}: {type(error).__name__}: {raw}.") from error
