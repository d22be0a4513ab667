"""PESC as an acquisition: draw solutions, condition on each, value what a measurement tells."""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.pesc.gain import Anchored, Conditioned, blocks_of, limits_of
from calamint.acquire.pesc.points import SiteChoice, site_points
from calamint.acquire.pesc.sites import propagate
from calamint.acquire.pesc.solutions import Solutions, draw_solutions
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.model import Belief
from calamint.problem import ProblemError
from calamint.problem.errors import nearest
from calamint.problem.parameters import Array, whole


@final
@dataclass(frozen=True)
class Report:
    """How EP went: solutions drawn, how many paths had a feasible point, sweeps and convergence."""

    solutions: int
    feasible: int
    converged: int
    sweeps: int
    sites: int


@final
@dataclass(frozen=True)
class Information(Utility):
    """Expected information about the constrained optimum, in nats."""

    belief: Belief
    conditioned: Conditioned
    drawn: Solutions
    report: Report

    @property
    def solutions(self) -> Array:
        """(J, D) the drawn x*"""
        return self.drawn.points

    @property
    def near(self) -> Array:
        return self.drawn.points

    def gains(self, x: Array) -> Array:
        """(n, D) -> (n, 1 + K) from measuring each function alone."""
        return self.conditioned.gains(self.belief.snap(x))

    def value(self, x: Array) -> Array:
        return self.gains(x).sum(-1)

    def screen(self, x: Array) -> Array:
        return self.conditioned.screen(self.belief.snap(x)).sum(-1)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        x = self.belief.snap(x)
        wanted = np.ones(len(self.conditioned.functions))
        gains, gradient = self.conditioned.gains_gradient(x, wanted)
        return gains.sum(-1), np.where(self.belief.problem.space.continuous, gradient, 0.0)


@final
class PESC(Acquisition):
    """Predictive entropy search with constraints.

    solutions  how many x* are drawn; by default one for each hyper-parameter sample, at least ten
    sites      "witness" (default), "union" or "paper": see `points`
    """

    name = "pesc"
    separable = True

    def __init__(self, solutions: int | None = None, sites: SiteChoice = "witness") -> None:
        choices = ("witness", "union", "paper")
        if sites not in choices:
            raise ProblemError(f"sites is {sites!r}: {nearest(str(sites), choices)}")
        self.solutions = None if solutions is None else whole(solutions, "solutions", 1)
        self.sites = sites

    def prepare(
        self, belief: Belief, incumbent: Incumbent, rng: np.random.Generator
    ) -> Information:
        count = self.solutions or max(10, belief.samples)
        drawn = draw_solutions(belief, count, incumbent.point[None], rng)
        limits = limits_of(belief)
        z = site_points(belief, drawn.points, limits, self.sites, rng)
        anchors = np.vstack([z, drawn.points])
        functions = [
            Anchored.of(function.process, anchors)
            for function in (belief.objective, *belief.constraints)
        ]
        owner = np.arange(count) % belief.samples
        blocks = blocks_of(functions, limits, len(z), owner)
        if not drawn.feasible.any():
            # No path has a feasible point: what can be learnt is where one might be.
            blocks.active[:] = False
        sites = propagate(blocks)
        used = drawn.feasible if drawn.feasible.any() else np.ones(count, dtype=bool)
        conditioned = Conditioned.of(functions, blocks, sites, owner, used / used.sum())
        report = Report(
            solutions=count,
            feasible=int(drawn.feasible.sum()),
            converged=int(sites.converged.sum()),
            sweeps=int(sites.sweeps.max(initial=0)),
            sites=len(z),
        )
        return Information(belief, conditioned, drawn, report)
