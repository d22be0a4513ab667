"""What an acquisition is: something that says how useful it would be to measure at an input."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array
from calamint.model import Belief
from calamint.problem import Problem


@final
@dataclass(frozen=True)
class Incumbent:
    """The point believed best now; `objective` is None while none is feasible enough.

    Attributes:
        point: (D,) in the cube; objective standardised, to be minimised.
    """

    point: Array
    objective: float | None


class Utility(ABC):
    """How useful a measurement would be at each input, on a scale that only ranks.

    A utility that is known only at some points (k, D) lists them in `points`. One whose scale is
    logarithmic says so: costs are then subtracted, not divided by. One whose shares are information
    about the optimum, in nats, says so, too. With `where`, another utility chooses the input, and
    this one only values tasks there.

    A separable utility is a sum of shares, one for each function in the order of
    `problem.functions`; a task is worth the shares of what it measures. Any other has one share,
    for measuring everything.
    """

    points: Array | None = None
    logarithmic: bool = False
    nats: bool = False
    where: "Utility | None" = None

    @property
    def near(self) -> Array:
        """(k, D) points around which it may be highest, if it knows any"""
        return np.empty((0, 0))

    @abstractmethod
    def value(self, x: Array) -> Array:
        """(n, D) -> (n,) of measuring everything"""

    @abstractmethod
    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""

    def shares(self, x: Array) -> Array:
        """(n, D) -> (n, S)"""
        return self.value(x)[:, None]

    def screen(self, x: Array) -> Array:
        """(n, D) -> (n, S) what will do to tell promising inputs from others, if it is cheaper."""
        return self.shares(x)

    def weighted(self, x: Array, weights: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """(n, D), (n, S) -> weighted sums of shares (n,), each with its gradient (n, D)."""
        return self.value_gradient(x)


class Acquisition(ABC):
    """Makes a utility from what is believed."""

    name: str
    separable: bool  # whether it can value tasks that measure only some functions
    uses_model: bool = True
    improves: bool = False  # whether it compares with the incumbent's objective, to the last digit

    def check(self, problem: Problem) -> None:  # noqa: B027 - most work on any
        """Refuse a problem that it cannot work on."""

    @abstractmethod
    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:
        """The utility under this belief."""

    def update(
        self,
        last: Utility,  # noqa: ARG002
        belief: Belief,
        incumbent: Incumbent,
        rng: np.random.Generator,
    ) -> Utility:
        """The utility after some more data, under the same hyper-parameters; roughly will do."""
        return self.prepare(belief, incumbent, rng)
