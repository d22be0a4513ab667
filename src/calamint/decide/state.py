"""What survives between decisions, as one value; and the part of it that a study stores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from calamint.model import Hyperparameters
from calamint.problem import Problem

if TYPE_CHECKING:
    from calamint.acquire import AcquisitionFunction, Incumbent
    from calamint.decide.observations import Observations
    from calamint.model import CostModel, Model, Surrogate

FunctionHyperparameters = Mapping[str, Hyperparameters] | None


@final
@dataclass(frozen=True)
class Fit:
    """A model fitted to all that was measured.

    version  of the observations           start    hyper-parameters that fitting started from
    model    how it was to be fitted       seconds  how long that took
    """

    version: int
    model: "Model"
    start: FunctionHyperparameters
    surrogate: "Surrogate"
    seconds: float


@final
@dataclass(frozen=True)
class Update:
    """What an update, full or partial, leaves for the next partial one.

    Attributes:
        surrogate: Given what was measured.
        version: Of the observations.
        fantasized: The same, with pending jobs fantasized as done.
        fantasized_jobs: Their numbers.
        acq_function: Of the acquisition, under the latter.
        incumbent: Under the former.
        costs: Cost models by task.
    """

    surrogate: "Surrogate"
    version: int
    fantasized: "Surrogate"
    fantasized_jobs: tuple[int, ...]
    acq_function: "AcquisitionFunction"
    incumbent: "Incumbent"
    costs: Mapping[str, "CostModel"]


@final
@dataclass(frozen=True)
class FullUpdate:
    """The last full update: which decision it was, what it saw, what it found and when.

    Attributes:
        version: Of the observations.
        before: Hyper-parameters that its fit started from, and that it found.
        after: Hyper-parameters that its fit started from, and that it found.
        ended: When it ended, on the clock of the optimiser.
        seconds: How long it took.
        prepared: Whether it is of what was known when the job before was booked.
        is_new: Whether the decision that it was prepared for is not made yet.
    """

    decision: int
    version: int
    before: FunctionHyperparameters
    after: FunctionHyperparameters
    ended: float
    seconds: float
    prepared: bool = False
    is_new: bool = False

    def to_json(self) -> dict[str, Any]:
        """What is stored; the rest is replayed, or is stored with the decision."""
        return {
            "decision": self.decision,
            "before": _write(self.before),
            "after": _write(self.after),
            **({"prepared": True} if self.prepared else {}),
        }

    @staticmethod
    def from_json(
        content: Mapping[str, Any], version: int, ended: float, seconds: float
    ) -> "FullUpdate":
        before, after = _read(content["before"]), _read(content["after"])
        prepared = content.get("prepared", False)
        return FullUpdate(content["decision"], version, before, after, ended, seconds, prepared)


@final
@dataclass(frozen=True)
class State:
    """All that survives between decisions.

    Attributes:
        full: The last full update.
        fit: The last model that was fitted, for a decision or for a query.
        update: What partial updates go on from.
        booked: What was known when the last job was booked, if updates are prepared from it.
    """

    full: FullUpdate | None = None
    fit: Fit | None = None
    update: Update | None = None
    booked: "Observations | None" = None

    def compatible_with(self, problem: Problem) -> "State":
        """This state, or an empty one if it is of a problem with other functions: a task may have
        failed for the first time since, and whether it works is a constraint."""
        full, fit, update = self.full, self.fit, self.update
        if full is not None and set(full.after or ()) != set(problem.measured):
            full = update = None
        if fit is not None and tuple(fit.surrogate.functions) != problem.functions:
            fit = None
        return State(full, fit, update, self.booked)

    def start(self, version: int) -> FunctionHyperparameters:
        """Hyper-parameters that a fit to observations of a version starts from.

        Those that the last full update found; for observations that it saw itself those that it
        started from, so that the same data give the same fit.
        """
        if self.full is None:
            return None
        return self.full.before if version == self.full.version else self.full.after


def _write(start: FunctionHyperparameters) -> dict[str, Any] | None:
    if start is None:
        return None
    # JSON has no −∞, the logarithm of no noise.
    return {
        name: {
            "theta": [[float(v) if math.isfinite(v) else None for v in row] for row in found.theta],
            "measured": found.measured,
            "transform": found.transform,
            "chosen_at": found.chosen_at,
        }
        for name, found in start.items()
    }


def _read(content: Mapping[str, Any] | None) -> FunctionHyperparameters:
    if content is None:
        return None
    return {
        name: Hyperparameters(
            np.array([[-math.inf if v is None else v for v in row] for row in entry["theta"]]),
            entry["measured"],
            entry.get("transform"),  # studies of earlier versions have none
            entry.get("chosen_at", 0),
        )
        for name, entry in content.items()
    }
