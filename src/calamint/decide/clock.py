"""Where time is read from: the machine's clock, or a virtual one for simulations."""

import time
from collections.abc import Mapping
from typing import final


class Clock:
    """The machine's clock, in seconds from some moment."""

    def now(self) -> float:
        """The time."""
        return time.perf_counter()

    def stopwatch(self) -> float:
        """Seconds for timing a computation, which need not pass on the clock itself."""
        return time.perf_counter()

    def start(self) -> None:
        """A decision begins."""

    def decided(self, update: str) -> None:
        """A decision of this kind was just computed; a virtual clock may let time pass for it."""


@final
class VirtualClock(Clock):
    """A clock that stands still until it is moved.

    Args:
        deciding: Seconds that a decision takes, by its update ("full", "partial", …), none where
            it does not say; without it decisions take the time that they really take.
    """

    def __init__(self, deciding: Mapping[str, float] | None = None) -> None:
        self.time = 0.0
        self.deciding = deciding
        self._since: float | None = None

    def now(self) -> float:
        """Virtual time; while a decision is being computed, and counted, it passes as it does."""
        if self._since is None:
            return self.time
        return self.time + time.perf_counter() - self._since

    def stopwatch(self) -> float:
        return time.perf_counter() if self.deciding is None else self.time

    def start(self) -> None:
        if self.deciding is None:
            self._since = time.perf_counter()

    def decided(self, update: str) -> None:
        if self.deciding is None:
            self.time = self.now()
            self._since = None
        else:
            self.time += self.deciding.get(update, 0.0)

    def move(self, to: float) -> None:
        """Move to a time, unless it has passed."""
        self.time = max(self.time, to)
