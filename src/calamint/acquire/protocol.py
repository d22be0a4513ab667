"""What an acquisition is: something that says how useful it would be to measure at an input."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.model import Belief
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Incumbent:
    """The point believed best now; `objective` is None while none is feasible enough.

    point  (D,) in the cube; objective standardised, to be minimised
    """

    point: Array
    objective: float | None


class Utility(ABC):
    """How useful a measurement of everything would be at each input, on a scale that only ranks.

    A utility that is known only at some points (k, D) lists them in `points`.
    """

    points: Array | None = None

    @property
    def near(self) -> Array:
        """(k, D) points around which it may be highest, if it knows any"""
        return np.empty((0, 0))

    @abstractmethod
    def value(self, x: Array) -> Array:
        """(n, D) -> (n,)"""

    def screen(self, x: Array) -> Array:
        """(n, D) -> (n,) what will do to tell promising inputs from others, if that is cheaper."""
        return self.value(x)

    @abstractmethod
    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""


class Acquisition(ABC):
    """Makes a utility from what is believed."""

    name: str
    separable: bool  # whether it can value tasks that measure only some functions
    uses_model: bool = True
    improves: bool = False  # whether it compares with the incumbent's objective, to the last digit

    @abstractmethod
    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:
        """The utility under this belief."""
