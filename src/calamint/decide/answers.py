"""What the optimiser answers with: suggestions, recommendations, predictions, records."""

from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np

from calamint.problem import Params
from calamint.problem.parameters import Array

# How a job came to be suggested.
Kind = Literal["initial", "full", "partial", "random", "retry", "fallback", "enqueued"]


@final
@dataclass(frozen=True)
class Suggestion:
    """A job to run: a task, its input, and the resources that are booked for it, and why.

    bits     what it is expected to tell about the constrained optimum, by function; empty where no
             model was asked, or one that does not count in bits
    cost     what it is expected to cost
    values   what it and the best jobs of the tasks that it competed with are worth for their cost:
             bits per cost where there are bits, else in units of the method's own, which may be
             logarithmic
    update   "full" or "partial"; "initial" for the space-filling start, "random", "retry" of a job
             that failed, "fallback", or "enqueued" by the user
    seconds  that the decision took
    """

    number: int
    task: str
    params: Params
    resources: tuple[str, ...]
    bits: dict[str, float] = field(default_factory=dict, compare=False)
    cost: float = field(default=1.0, compare=False)
    values: dict[str, float] = field(default_factory=dict, compare=False)
    update: Kind = field(default="full", compare=False)
    seconds: float = field(default=0.0, compare=False)
    point: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def bits_per_cost(self) -> float:
        return sum(self.bits.values()) / self.cost

    @property
    def runners_up(self) -> dict[str, float]:
        """The other tasks and what their best jobs are worth for their cost, best first."""
        others = ((task, value) for task, value in self.values.items() if task != self.task)
        return dict(sorted(others, key=lambda pair: -pair[1]))

    def __str__(self) -> str:
        inputs = ", ".join(f"{name} = {_short(value)}" for name, value in self.params.items())
        sentence = f"run {self.task} on {' + '.join(self.resources)} at {inputs}"
        if not self.bits:
            return sentence
        total = f"{sum(self.bits.values()):.3g} bits are expected"
        if len(self.bits) > 1:
            shares = ", ".join(f"{bits:.3g} from {name}" for name, bits in self.bits.items())
            total += f" ({shares})"
        if self.cost != 1:
            total += f" at a cost of {self.cost:.3g}"
        others = ", ".join(f"{task} {value:.3g}" for task, value in self.runners_up.items())
        if others:
            total += f"; next best, in bits per cost: {others}"
        return f"{sentence}: {total}"


@final
@dataclass(frozen=True)
class Recommendation:
    """Where the constrained optimum is believed to be.

    objective    expected, in the user's units
    probability  that all limits are met there
    confident    whether that probability reaches the 1 − δ that was asked for
    """

    params: Params
    objective: float
    probability: float
    confident: bool

    def __str__(self) -> str:
        inputs = ", ".join(f"{name} = {_short(value)}" for name, value in self.params.items())
        doubt = "" if self.confident else ", less than asked for"
        return (
            f"{inputs}: objective {self.objective:.6g},"
            f" feasible with probability {self.probability:.3g}{doubt}"
        )


@final
@dataclass(frozen=True)
class FunctionPrediction:
    """One function at one input, noise-free, in the user's units."""

    mean: float
    deviation: float
    probability: float | None  # of meeting its limits; None for the objective


@final
@dataclass(frozen=True)
class Prediction:
    """What is believed at one input: `prediction["latency_ms"].mean`; `probability` is joint."""

    functions: dict[str, FunctionPrediction]
    probability: float

    def __getitem__(self, name: str) -> FunctionPrediction:
        return self.functions[name]


@final
@dataclass(frozen=True)
class Decision:
    """How a suggestion came about.

    kind     "full" or "partial" update of the model; "initial" design, "random" input, or the
             "fallback" of a failure
    seconds  by stage, and in total
    """

    number: int
    kind: Kind
    seconds: dict[str, float]
    warnings: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Record:
    """One finished job or added measurement, in the user's units.

    errors  the standard errors that were told
    """

    params: Params
    values: dict[str, float]
    task: str | None
    seconds: float | None
    point: Array = field(repr=False, compare=False)
    errors: dict[str, float] = field(default_factory=dict)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
