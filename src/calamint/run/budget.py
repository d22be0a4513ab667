"""The budget of a run: what is used up, and what is kept for confirming the recommendation."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from calamint.checks import check_integer, finite
from calamint.errors import ProblemError
from calamint.run.exhausted import nothing_is_left
from calamint.run.progress import Stop
from calamint.run.replay import Replica


@final
@dataclass
class Budget:
    """Limits of a run, of which at least one is given.

    Attributes:
        evaluations: Finished jobs, including those of earlier runs.
        seconds: Of this run.
        cost: Summed expected cost of all jobs, including those of earlier runs.
        bits: The least that a job must be expected to yield.
        reserve: Jobs that are kept for confirming the recommendation.
    """

    evaluations: int | None
    seconds: float | None
    cost: float | None
    bits: float | None
    reserve: int

    def __post_init__(self) -> None:
        if self.evaluations is not None:
            self.evaluations = check_integer(self.evaluations, "evaluations", 1)
        self.seconds = _positive(self.seconds, "seconds")
        self.cost = _positive(self.cost, "cost")
        self.bits = _positive(self.bits, "bits")
        if all(each is None for each in (self.evaluations, self.seconds, self.cost, self.bits)):
            raise ProblemError(
                "no budget is given: write evaluations=, seconds=, cost= or bits=, or several."
            )

    def spent(self, replica: Replica, under_way: Collection[int], elapsed: float) -> Stop | None:
        """Which limit is reached by what has ended and by the jobs under way."""
        made = sum(replica.ended.values()) + len(under_way)
        if self.evaluations is not None and made >= self.evaluations:
            return "evaluations"
        if self.seconds is not None and elapsed >= self.seconds:
            return "seconds"
        cost = sum(replica.jobs[number].cost for number in under_way)
        if self.cost is not None and replica.spent + cost >= self.cost:
            return "cost"
        if nothing_is_left(replica.problem, replica.optimizer.observations.data):
            return "exhausted"
        return None

    def is_reserved(
        self, replica: Replica, pending: Collection[int], elapsed: float, job_seconds: float | None
    ) -> bool:
        """Whether what is left is for confirming.

        Args:
            job_seconds: How long jobs of this run took on average.
        """
        ended = sum(replica.ended.values())
        if not self.reserve or not ended:
            return False
        left = None if self.evaluations is None else self.evaluations - ended - len(pending)
        if left is not None and left <= self.reserve:
            return True
        if self.cost is not None:
            under_way = sum(replica.jobs[number].cost for number in pending)
            if self.cost - replica.spent - under_way <= self.reserve * replica.spent / ended:
                return True
        if self.seconds is None or job_seconds is None:
            return False
        # They run one after another, however many run at once before.
        return self.seconds - elapsed <= self.reserve * job_seconds


def _positive(value: object, name: str) -> float | None:
    number = finite(value)
    if value is not None and (number is None or number <= 0):
        raise ProblemError(f"{name} is {value!r}: write a positive number.")
    return number if value is not None else None
