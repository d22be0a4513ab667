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
    waiting: Suggestion | None = field(default=None)

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        if self.starts:
            return self.starts.pop(0)
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
        return self.optimizer.recommend(self.delta, self.kind).params


@dataclass(frozen=True)
class CalamintMaker:
    """A picklable recipe for `Calamint`, with so many given starting points, and so many in all."""

    acquisition: str | Acquisition = "eic"
    model: Model = field(default_factory=Model)
    starts: int = 3
    initial: int | None = 3
    delta: float = 0.05
    kind: Literal["believed", "observed"] = "believed"

    def __call__(self, solved: SolvedProblem, seed: int) -> Calamint:
        optimizer = Optimizer(
            solved.problem, self.acquisition, self.model, seed, self.initial, self.delta
        )
        points = starting_points(solved, seed, self.starts)
        starts = [(task, params) for params in points for task in solved.problem.tasks]
        return Calamint(optimizer, starts, self.delta, self.kind)
