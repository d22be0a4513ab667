"""No preference: every input is as good as any other, and one of many random ones wins."""

from typing import final

import numpy as np

from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.arrays import Array
from calamint.model import Belief


@final
class ConstantUtility(Utility):
    def value(self, x: Array) -> Array:
        return np.zeros(len(x))

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.value(x), np.zeros_like(x)


@final
class Random(Acquisition):
    """Uniform points: the baseline that any other acquisition has to beat."""

    name = "random"
    separable = True
    uses_model = False

    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:  # noqa: ARG002
        return ConstantUtility()
