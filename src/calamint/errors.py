"""Every error that Calamint raises on purpose. Each is one sentence: the field, the value, and what
to write instead."""


class CalamintError(Exception):
    """The base of all errors below."""


class ProblemError(CalamintError, ValueError):
    """A problem, a setting, a spec or a parameter value that cannot be accepted as written."""


class ResultError(ProblemError):
    """A result that cannot be accepted as it is; nothing was changed."""


class UnknownJobError(ResultError):
    """A job that the study does not have."""


class JobStateError(ResultError):
    """What the state of a job does not allow, such as telling it twice; nothing was changed."""


class StorageError(CalamintError):
    """A storage that cannot be read or written; nothing that was acknowledged is lost.

    Attributes:
        transient: Whether it may work again by itself, as when a disk was full for a moment.
    """

    def __init__(self, sentence: str, transient: bool = False) -> None:
        super().__init__(sentence)
        self.transient = transient


class ConnectionLostError(StorageError):
    """A transaction that a database server interrupted, with nothing of it stored: it was made
    again for some seconds, and can be made again later."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, transient=True)


class SchemaError(StorageError):
    """A storage of an earlier version: its tables have to be brought up to date to be read."""


class TaskError(CalamintError):
    """A task that cannot be started at all, at any input."""


class AccessError(CalamintError):
    """A request without a token, or with one that does not allow it."""


class RepeatedRequestError(CalamintError):
    """A request that was made before, by its idempotency key; nothing is done twice."""


class ModelError(CalamintError):
    """No model can be fitted to what was measured, by any method."""


class ExhaustedError(CalamintError):
    """No measurement is expected to yield as many bits as were asked for."""
