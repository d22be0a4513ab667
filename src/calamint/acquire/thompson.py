"""Thompson sampling: draw all functions once, and measure where that draw has its optimum.

The solution of a draw is a sample of x*, so inputs are tried as often as they are likely to be the
constrained optimum. A draw without a feasible point is drawn again, and then measured where it
comes closest.
"""

from typing import final

import numpy as np

from calamint.acquire.optima import draw_solutions
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array
from calamint.model import Surrogate


@final
class SinglePoint(AcquisitionFunction):
    """All that matters is one point (D,): the closer to it the better, and cheaper is better."""

    log_scale = True

    def __init__(self, point: Array) -> None:
        self.point, self.finite_set = point, point[None]

    def value(self, x: Array) -> Array:
        return -((x - self.point) ** 2).sum(-1)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.value(x), np.zeros_like(x)


@final
class Thompson(Acquisition):
    """A sample of x*, for tasks that measure every function."""

    name = "thompson"
    supports_decoupled = False

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        row = rng.integers(surrogate.samples, size=1)
        drawn = draw_solutions(surrogate, 1, incumbent.point[None], rng, row)
        return SinglePoint(drawn.points[0])
