"""What is asked for, decided and measured: suggestions, decisions and records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import numpy as np

from calamint.arrays import Array
from calamint.errors import ResultError
from calamint.html import as_table
from calamint.problem import Params, Problem, Space

# How a job came to be suggested.
DecisionKind = Literal[
    "initial", "full", "partial", "random", "retry", "repeat", "fallback", "enqueued", "confirm"
]
REASONS = {
    "confirm": "to confirm the recommendation",
    "repeat": "again, to learn how noisy it is",
}


@final
@dataclass(frozen=True)
class Suggestion:
    """A job to run: a task, its input, and the resources that are booked for it, and why.

    Attributes:
        bits: Information about the constrained optimum that it is expected to yield, by function;
            empty where no model was asked, or one that does not count in bits.
        cost: What it is expected to cost.
        scores: What it and the best jobs of the tasks that it competed with are worth for their
            cost: bits per cost where there are bits, else in units of the method's own, which may
            be logarithmic.
        update: "full" or "partial"; "initial" for the space-filling start, "random", "retry" of a
            job that failed, "repeat" of one that worked, to learn how noisy it is, "confirm" of the
            recommendation, "fallback", or "enqueued" by the user.
        decision_seconds: How long the decision took.
        warnings: What went wrong while deciding.
        not_asked: Functions that its task measures by now, but did not when the job was made.
    """

    number: int
    task: str
    params: Params
    resources: tuple[str, ...]
    bits: dict[str, float] = field(default_factory=dict, compare=False)
    cost: float = field(default=1.0, compare=False)
    scores: dict[str, float] = field(default_factory=dict, compare=False)
    update: DecisionKind = field(default="full", compare=False)
    decision_seconds: float = field(default=0.0, compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)
    point: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    not_asked: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def copied(self) -> "Suggestion":
        """One of its own: what the caller does to the parameters must not reach the records."""
        return replace(self, params=dict(self.params))

    def moved(self, space: Space, params: Mapping[str, Any]) -> "Suggestion":
        """The same job, at an input of which some parameters are others, perhaps out of bounds."""
        if not isinstance(params, Mapping):
            raise ResultError(f"params is {params!r}: write a dict of those that were others.")
        used = space.validate({**self.params, **params}, outside=True)
        return replace(self, params=used, point=space.encode(used, outside=True))

    @property
    def bits_per_cost(self) -> float:
        return sum(self.bits.values()) / self.cost

    @property
    def runners_up(self) -> dict[str, float]:
        """The other tasks and what their best jobs are worth for their cost, best first."""
        others = ((task, score) for task, score in self.scores.items() if task != self.task)
        return dict(sorted(others, key=lambda pair: -pair[1]))

    def __str__(self) -> str:
        inputs = ", ".join(f"{name} = {short(value)}" for name, value in self.params.items())
        place = f" on {' + '.join(self.resources)}" if self.resources else ""
        sentence = f"run {self.task}{place} at {inputs}"
        if self.update == "fallback":
            return f"{sentence}: chosen without a model, which failed ({'; '.join(self.warnings)})"
        if self.update in REASONS:
            return f"{sentence}: {REASONS[self.update]}"
        if not self.bits:
            return sentence
        total = f"{sum(self.bits.values()):.3g} bits are expected"
        if len(self.bits) > 1:
            shares = ", ".join(f"{bits:.3g} from {name}" for name, bits in self.bits.items())
            total += f" ({shares})"
        if self.cost != 1:
            total += f" at a cost of {self.cost:.3g}"
        others = ", ".join(f"{task} {score:.3g}" for task, score in self.runners_up.items())
        if others:
            total += f"; next best, in bits per cost: {others}"
        return f"{sentence}: {total}"


@final
@dataclass(frozen=True)
class Decision:
    """How a suggestion came about.

    Attributes:
        update: As in `Suggestion`.
        stage_seconds: How long each stage took, and all of them ("total").
        bounded: What was limited to keep it quick, because there is much data; not stored.
    """

    number: int
    update: DecisionKind
    stage_seconds: dict[str, float]
    warnings: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()

    def __str__(self) -> str:
        seconds = dict(self.stage_seconds)
        total = f"{1000 * seconds.pop('total'):.0f} ms"
        if seconds:
            stages = (f"{stage} {1000 * each:.0f}" for stage, each in seconds.items())
            total += f" ({', '.join(stages)})"
        return "; ".join(
            [f"job {self.number}: {self.update}, {total}", *self.bounded, *self.warnings]
        )


@final
@dataclass(frozen=True)
class Record:
    """One finished job or added measurement, in the user's units.

    Attributes:
        sem: The standard errors that were told, by function.
        notes: Columns of an imported table that are neither parameters nor functions.
        left_out: Functions that the job was asked for, and did not tell.
        job: The number of the job; None for added measurements.
    """

    params: Params
    values: dict[str, float]
    task: str | None
    seconds: float | None
    point: Array = field(repr=False, compare=False)
    sem: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    job: int | None = None


@final
@dataclass(frozen=True)
class Recommendation:
    """Where the constrained optimum is expected to be.

    Attributes:
        objective: What the model expects given all measurements: the mean on the scale of the
            model, in the user's units.
        probability: That all limits are met there.
        confident: Whether that probability reaches the 1 − δ that was asked for.
        interval: Contains the objective with a probability of 95 %; a single value if it was
            measured there and has no noise.
        confirmed: Whether every function was measured there and every limit was met, and the
            model does not take that for chance.
    """

    params: Params
    objective: float
    probability: float
    confident: bool
    interval: tuple[float, float] | None = None
    confirmed: bool = False

    def _repr_html_(self) -> str:
        rows: dict[str, str] = {name: short(value) for name, value in self.params.items()}
        rows["objective"] = f"{self.objective:.6g}"
        if self.interval is not None and self.interval[0] != self.interval[1]:
            rows["objective"] += f" (95 %: {self.interval[0]:.6g} to {self.interval[1]:.6g})"
        rows["feasible with probability"] = f"{self.probability:.3g}"
        rows["confirmed by measurements"] = "yes" if self.confirmed else "no"
        return as_table("Recommendation", rows)

    def __str__(self) -> str:
        inputs = ", ".join(f"{name} = {short(value)}" for name, value in self.params.items())
        doubt = "" if self.confident else ", less than asked for"
        within = ""
        if self.interval is not None and self.interval[0] == self.interval[1]:
            within = " (exact)"
        elif self.interval is not None:
            within = f" (95 %: {self.interval[0]:.6g} to {self.interval[1]:.6g})"
        seen = "; confirmed by measurements" if self.confirmed else ""
        return (
            f"{inputs}: objective {self.objective:.6g}{within},"
            f" feasible with probability {self.probability:.3g}{doubt}{seen}"
        )


def met(problem: Problem, record: Record) -> bool:
    """Whether all limits were met when measured; a limit that was not measured is not met."""
    return all(
        constraint.met(record.values[constraint.name])
        if constraint.name in record.values
        else constraint.name in problem.known
        and constraint.met(problem.known[constraint.name](record.params))
        for constraint in problem.constraints
    )


def rank(problem: Problem, record: Record) -> tuple[bool, float]:
    """Smaller is better: first those that met their limits, then by objective."""
    name = problem.objective.name
    known = problem.known.get(name)
    value = record.values.get(name) if known is None else known(record.params)
    objective = math.inf if value is None else problem.objective.sign * value
    return (not met(problem, record), objective)


def within_bounds(space: Space, history: Sequence[Record]) -> list[Record]:
    """Records of inputs that may be suggested."""
    if not history:
        return []
    inside = space.contains(np.array([record.point for record in history]))
    return [record for record, within in zip(history, inside, strict=True) if within]


def near_points(problem: Problem, history: Sequence[Record], most: int = 50) -> Array:
    """(k, D) measured inputs within the bounds, the best and the newest first."""
    history = within_bounds(problem.space, history)
    if not history:
        return np.empty((0, problem.space.dimension))
    ranked = sorted(range(len(history)), key=lambda index: rank(problem, history[index]))
    newest = range(len(history) - 1, -1, -1)
    order = dict.fromkeys(index for pair in zip(ranked, newest, strict=True) for index in pair)
    return np.array([history[index].point for index in list(order)[:most]])


def short(value: object) -> str:
    """A number with six digits, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
