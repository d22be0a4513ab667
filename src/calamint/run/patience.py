"""A storage that cannot be written for a while is tried again, and nothing is lost meanwhile."""

import math
import time
from collections.abc import Callable
from typing import final

from calamint.errors import StorageError

# Seconds: how long it is waited for, between attempts, and after which a failure is a new one.
PATIENCE, AGAIN, PAUSE = 3600.0, 1.0, 60.0


@final
class Patience:
    """Whether a storage can be written, as far as is known.

    say      told once when it cannot be, and when it can be again
    at_once  give up at once, as virtual time does not pass by waiting
    """

    def __init__(self, say: Callable[[str], None], at_once: bool) -> None:
        self._say, self._at_once = say, at_once
        self._failing: tuple[float, float] | None = None  # since when, and when to try again

    @property
    def is_over(self) -> bool:
        """Whether there is a point in trying now."""
        return self._failing is None or time.monotonic() >= self._failing[1]

    def attempt(self, action: Callable[[], object]) -> bool:
        """Whether it was done; if the storage cannot be used for a moment, it is not."""
        try:
            action()
        except StorageError as error:
            if not error.transient or self._at_once:
                raise
            now = time.monotonic()
            # One that fails is tried again every second: a pause means that it had worked.
            since, due = self._failing or (now, -math.inf)
            if now - due > PAUSE:
                since = now
                self._say(f"{error} Trying again until it works; results are kept meanwhile.")
            if now - since > PATIENCE:
                raise
            self._failing = since, now + AGAIN
            return False
        return True

    def written(self) -> None:
        """Something was written."""
        if self._failing is not None:
            self._say("The storage can be written again: nothing was lost.")
            self._failing = None
