"""EIC for functions that are measured separately (Gelbart et al. 2014; the paper's section 2.5).

Measuring one function alone never makes an improvement, so the decision has two stages: the input
is the one that expected improvement with constraints prefers, as if everything were measured; then
the task is the one that tells most about x* there, for its cost. The paper calls it EIC-D, and
EIC-CD where tasks compete for one resource.
"""

from typing import Literal, final

import numpy as np

from calamint.acquire.eic import EIC
from calamint.acquire.entropy import MonteCarloEntropy
from calamint.acquire.pesc import PESC
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.arrays import Array
from calamint.checks import nearest
from calamint.errors import ProblemError
from calamint.model import Belief


@final
class TwoStages(Utility):
    """One utility chooses the input, another values the tasks there."""

    nats = True

    def __init__(self, where: Utility, tells: Utility) -> None:
        self.where, self.tells = where, tells

    def shares(self, x: Array) -> Array:
        return self.tells.shares(x)

    def value(self, x: Array) -> Array:
        return self.tells.value(x)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.tells.value_gradient(x)

    def weighted(self, x: Array, weights: Array) -> tuple[Array, Array]:
        return self.tells.weighted(x, weights)


@final
class EICD(Acquisition):
    """Expected improvement chooses the input, information the task.

    Args:
        entropy: What values the tasks: "pesc" (default), or "monte carlo" as in the original, slow
            and for small problems; or an acquisition that is separable.
    """

    name = "eicd"
    separable = True
    improves = True

    def __init__(self, entropy: Literal["pesc", "monte carlo"] | Acquisition = "pesc") -> None:
        kinds = {"pesc": PESC, "monte carlo": MonteCarloEntropy}
        if isinstance(entropy, Acquisition) and entropy.separable and entropy.uses_model:
            self.tells = entropy
        elif entropy in kinds:
            self.tells = kinds[str(entropy)]()
        else:
            raise ProblemError(f"entropy is {entropy!r}: {nearest(str(entropy), kinds)}")

    def prepare(self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator) -> Utility:
        where = EIC().prepare(belief, incumbent, rng)
        return TwoStages(where, self.tells.prepare(belief, incumbent, rng))

    def update(
        self, last: Utility, belief: Belief, incumbent: Incumbent, rng: np.random.Generator
    ) -> Utility:
        if not isinstance(last, TwoStages):
            return self.prepare(belief, incumbent, rng)
        where = EIC().prepare(belief, incumbent, rng)
        return TwoStages(where, self.tells.update(last.tells, belief, incumbent, rng))
