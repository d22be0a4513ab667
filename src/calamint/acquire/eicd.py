"""EIC for functions that are measured separately (Gelbart et al. 2014;
Hernández-Lobato et al. 2016, section 2.5).

Measuring one function alone never makes an improvement, so the decision has two stages: the input
is the one that expected improvement with constraints prefers, as if everything were measured; then
the task is the one whose measurement is expected to yield most information about x* there, for its
cost. Hernández-Lobato et al. (2016) call it EIC-D, and EIC-CD where tasks compete for a resource.
"""

from typing import Literal, final

import numpy as np

from calamint.acquire.eic import EIC
from calamint.acquire.entropy import MonteCarloEntropy
from calamint.acquire.pesc import PESC
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array
from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.model import Surrogate


@final
class TwoStages(AcquisitionFunction):
    """One acquisition function chooses the input, another ranks the tasks there."""

    in_nats = True

    def __init__(
        self, input_chooser: AcquisitionFunction, task_chooser: AcquisitionFunction
    ) -> None:
        self.input_chooser, self.task_chooser = input_chooser, task_chooser

    def contributions(self, x: Array) -> Array:
        return self.task_chooser.contributions(x)

    def value(self, x: Array) -> Array:
        return self.task_chooser.value(x)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.task_chooser.value_gradient(x)

    def weighted_gradient(self, x: Array, weights: Array) -> tuple[Array, Array]:
        return self.task_chooser.weighted_gradient(x, weights)


@final
class EICD(Acquisition):
    """Expected improvement chooses the input, information the task.

    Args:
        entropy: How tasks are ranked: "pesc" (default), or "monte carlo" as in the original, slow
            and for small problems; or any acquisition that supports decoupled tasks.
    """

    name = "eicd"
    supports_decoupled = True
    uses_incumbent_value = True

    def __init__(self, entropy: Literal["pesc", "monte carlo"] | Acquisition = "pesc") -> None:
        kinds = {"pesc": PESC, "monte carlo": MonteCarloEntropy}
        if isinstance(entropy, Acquisition) and entropy.supports_decoupled and entropy.uses_model:
            self.task_chooser = entropy
        elif entropy in kinds:
            self.task_chooser = kinds[str(entropy)]()
        else:
            raise ProblemError(f"entropy is {entropy!r}: {did_you_mean(str(entropy), kinds)}")

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        input_chooser = EIC().build(surrogate, incumbent, rng)
        return TwoStages(input_chooser, self.task_chooser.build(surrogate, incumbent, rng))

    def update(
        self,
        last: AcquisitionFunction,
        surrogate: Surrogate,
        incumbent: Incumbent,
        rng: np.random.Generator,
    ) -> AcquisitionFunction:
        if not isinstance(last, TwoStages):
            return self.build(surrogate, incumbent, rng)
        input_chooser = EIC().build(surrogate, incumbent, rng)
        return TwoStages(
            input_chooser, self.task_chooser.update(last.task_chooser, surrogate, incumbent, rng)
        )
