"""Acquisitions and the acquisition functions that they build from a surrogate model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array
from calamint.model import Surrogate
from calamint.problem import Problem


@final
@dataclass(frozen=True)
class Incumbent:
    """The best point at present; `objective` is None while none is feasible enough.

    Attributes:
        point: (D,) in the unit cube.
        objective: Its expected objective, standardised, to be minimised.
    """

    point: Array
    objective: float | None


class AcquisitionFunction(ABC):
    """How useful a measurement would be at each input; only the order of its values matters.

    If it supports decoupled tasks, it is a sum of contributions, one from each function in the
    order of `problem.functions`, and a task is worth the contributions of what it measures.
    Otherwise it has a single contribution, for measuring everything.

    Attributes:
        finite_set: (k, D) inputs, if it is defined only on these.
        log_scale: Whether values are logarithms: costs are then subtracted, not divided by.
        in_nats: Whether contributions are information about the optimum, in nats.
        input_chooser: Another function that chooses the input; this one only ranks tasks there.
    """

    finite_set: Array | None = None
    log_scale: bool = False
    in_nats: bool = False
    input_chooser: "AcquisitionFunction | None" = None

    @property
    def start_points(self) -> Array:
        """(k, D) points near which its maximum may be; empty if it has no suggestion"""
        return np.empty((0, 0))

    @abstractmethod
    def value(self, x: Array) -> Array:
        """(n, D) -> (n,), the value of measuring every function"""

    @abstractmethod
    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""

    def contributions(self, x: Array) -> Array:
        """(n, D) -> (n, S)"""
        return self.value(x)[:, None]

    def screening_values(self, x: Array) -> Array:
        """(n, D) -> (n, S), a cheaper approximation of `contributions`, if there is one.

        It selects the candidates that are worth evaluating exactly.
        """
        return self.contributions(x)

    def weighted_gradient(self, x: Array, weights: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """(n, D), (n, S) -> weighted sums of contributions (n,) and their gradients (n, D)."""
        return self.value_gradient(x)


class Acquisition(ABC):
    """An acquisition and its settings, from which an acquisition function is built.

    Attributes:
        name: What `Settings(acquisition=...)` calls it.
        supports_decoupled: Whether it can rank tasks that measure only some of the functions.
        uses_model: Whether it needs a surrogate model at all.
        uses_incumbent_value: Whether it compares with the incumbent's objective, which must then
            be accurate to the last digit.
    """

    name: str
    supports_decoupled: bool
    uses_model: bool = True
    uses_incumbent_value: bool = False

    def check(self, problem: Problem) -> None:  # noqa: B027 - most work on any
        """Raise `ProblemError` for a problem that it cannot work on."""

    @abstractmethod
    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        """Build the acquisition function under a surrogate model."""

    def update(
        self,
        last: AcquisitionFunction,  # noqa: ARG002
        surrogate: Surrogate,
        incumbent: Incumbent,
        rng: np.random.Generator,
    ) -> AcquisitionFunction:
        """Update the last function after new data, under the same hyper-parameters.

        For partial updates, which may approximate.
        """
        return self.build(surrogate, incumbent, rng)
