"""What a study hands out and keeps: jobs, with their attempts."""

import os
import socket
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, final

from calamint.decide import Suggestion
from calamint.problem import Params

State = Literal["waiting", "running", "done", "failed", "cancelled"]
OPEN: tuple[State, ...] = ("waiting", "running")


@final
@dataclass(frozen=True)
class Job:
    """An attempt at one task at one input, with its resources booked, and why.

    attempt  the first is 1
    bits, cost, values, update, seconds  as in `Suggestion`; an enqueued job has none
    """

    number: int
    task: str
    params: Params
    resources: tuple[str, ...]
    attempt: int = 1
    suggestion: Suggestion = field(repr=False, compare=False, kw_only=True)

    def __hash__(self) -> int:
        return hash((self.number, self.attempt))

    @property
    def bits(self) -> dict[str, float]:
        return self.suggestion.bits

    @property
    def cost(self) -> float:
        return self.suggestion.cost

    @property
    def values(self) -> dict[str, float]:
        return self.suggestion.values

    @property
    def update(self) -> str:
        return self.suggestion.update

    @property
    def seconds(self) -> float:
        return self.suggestion.seconds

    def __str__(self) -> str:
        again = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"job {self.number}{again}: {self.suggestion}"


@final
@dataclass(frozen=True)
class JobRecord:
    """A job as it is stored; times are seconds since 1970."""

    number: int
    task: str
    params: Params
    state: State
    resources: tuple[str, ...]
    attempts: int
    created: float
    ended: float | None
    seconds: float | None
    reason: str | None
    bits: dict[str, float]
    predicted_cost: float | None
    update: str
    values: dict[str, Any] = field(default_factory=dict)


def owner() -> str:
    """This process, such that others can see whether it still lives."""
    return _owner(os.getpid())


@cache
def _owner(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_born(pid)}"


def is_dead(name: str) -> bool:
    """Whether an owner is known not to live any more; of other machines nothing is known."""
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
    # Another process may have been given the number since.
    return _born(pid) != parts[2]


def _born(pid: int) -> str:
    """When a process was started, in ticks since boot, where that can be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
        return "gone" if after_name[0] == b"Z" else after_name[19].decode()
    except OSError:
        return "unknown"
