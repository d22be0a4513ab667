"""Calamint's own methods, in the form that the harness drives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from calamint import Model, Optimizer, Suggestion
from calamint.acquire import Acquisition
from calamint.testbed import SolvedProblem
from starts import starting_points


@dataclass
class Calamint:
    """An `Optimizer` that begins with every task at given points."""

    optimizer: Optimizer
    starts: list[tuple[str, dict[str, Any]]]
    delta: float
    kind: Literal["believed", "observed"]
    confirm_after: int | None = None  # so many evaluations, the others confirm
    waiting: Suggestion | None = field(default=None)
    asked: int = 0

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        self.asked += 1
        if self.starts:
            return self.starts.pop(0)
        if self.confirm_after is not None and self.asked > self.confirm_after:
            self.waiting = self.optimizer.confirm()
        if self.waiting is None:
            self.waiting = self.optimizer.ask()
        assert self.waiting is not None
        return self.waiting.task, self.waiting.params

    def tell(self, task: str, params: Mapping[str, Any], values: Mapping[str, float]) -> None:  # noqa: ARG002
        if self.waiting is None:
            self.optimizer.add(params, values)
        else:
            self.optimizer.tell(self.waiting, values)
            self.waiting = None

    def recommend(self) -> Mapping[str, Any] | None:
        best = self.optimizer.recommend(self.delta, self.kind)
        if self.confirm_after is not None and self.kind == "observed" and not best.confirmed:
            return None
        return best.params


@dataclass(frozen=True)
class CalamintMaker:
    """A picklable recipe for `Calamint`, with so many given starting points, and so many in all."""

    acquisition: str | Acquisition = "eic"
    # The results so far are on values as they are; transforms have a benchmark of their own.
    model: Model = field(default_factory=lambda: Model(transform="none"))
    starts: int = 3
    initial: int | None = 3
    delta: float = 0.05
    kind: Literal["believed", "observed"] = "believed"
    confirm_after: int | None = None

    def __call__(self, solved: SolvedProblem, seed: int) -> Calamint:
        optimizer = Optimizer(
            solved.problem, self.acquisition, self.model, seed, self.initial, self.delta
        )
        points = starting_points(solved, seed, self.starts)
        starts = [(task, params) for params in points for task in solved.problem.tasks]
        return Calamint(optimizer, starts, self.delta, self.kind, self.confirm_after)
