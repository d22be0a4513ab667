"""No preference: every input is as good as any other, and one of many random ones wins."""

from typing import final

import numpy as np

from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array
from calamint.model import Surrogate


@final
class Constant(AcquisitionFunction):
    def value(self, x: Array) -> Array:
        return np.zeros(len(x))

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.value(x), np.zeros_like(x)


@final
class Random(Acquisition):
    """Uniform points: the baseline that any other acquisition has to beat."""

    name = "random"
    supports_decoupled = True
    uses_model = False

    def build(
        self,
        surrogate: Surrogate,  # noqa: ARG002
        incumbent: Incumbent,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> AcquisitionFunction:
        return Constant()
