"""PESC as an acquisition: draw solutions, condition on each, value what a measurement tells."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.acquire.optima import Solutions, draw_solutions
from calamint.acquire.pesc.conditioning import blocks_of, condition, limits_of
from calamint.acquire.pesc.ep import Sites, propagate, widened
from calamint.acquire.pesc.forward import Given, given
from calamint.acquire.pesc.gains import Gains
from calamint.acquire.pesc.sites import SiteChoice, distinct_places, more_site_points, site_points
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.arrays import Array
from calamint.checks import check_integer, did_you_mean
from calamint.errors import ProblemError
from calamint.model import Surrogate
from calamint.threads import parallel_map

# Sweeps of a partial update: the data hardly changed, and the sites are close.
_FEW = 1
# Where x* may be in many places, few draws say little of where it probably is: decisions then
# follow single draws, and explore too much if measurements are noisy (benchmarks/real.py).
_FEWEST_SOLUTIONS, _FEW_PLACES, _FOR_EACH_PLACE = 10, 3, 5


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
class Information(AcquisitionFunction):
    """Expected information about the constrained optimum, in nats."""

    surrogate: Surrogate
    gains: Gains
    drawn: Solutions
    report: Report
    site_points: Array
    sites: Sites
    in_nats = True

    @property
    def solutions(self) -> Array:
        """(J, D) the drawn x*"""
        return self.drawn.points

    @property
    def start_points(self) -> Array:
        return self.drawn.points

    def by_kl(self) -> "Information":
        """The same with outcomes valued as is most accurate, rather than best to decide by; only
        for solutions that are as new as the data."""
        return replace(self, gains=Gains(replace(self.gains.conditioned, kl=True)))

    def given(self, x: Array) -> Given:
        """What would be believed at (n, D) if each drawn x* were known to be the solution."""
        return given(self.gains.conditioned, x)

    def contributions(self, x: Array) -> Array:
        """(n, D) -> (n, 1 + K) from measuring each function alone."""
        return self.gains.values(x)

    def screening_values(self, x: Array) -> Array:
        return self.gains.screening_values(x)

    def value(self, x: Array) -> Array:
        return self.contributions(x).sum(-1)

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.weighted_gradient(x, np.ones((len(x), len(self.surrogate.functions))))

    def weighted_gradient(self, x: Array, weights: Array) -> tuple[Array, Array]:
        gains, gradient = self.gains.values_gradient(x, weights)
        moving = self.surrogate.problem.space.continuous
        return (gains * weights).sum(-1), np.where(moving, gradient, 0.0)


@final
class PESC(Acquisition):
    """Predictive entropy search with constraints.

    Args:
        solutions: How many x* are drawn. By default ten, or one for each hyper-parameter sample
            if these are more; and up to fifty while they differ.
        sites: "witness" (default), "union" or "paper": see `sites.py`.
    """

    name = "pesc"
    supports_decoupled = True

    def __init__(self, solutions: int | None = None, sites: SiteChoice = "witness") -> None:
        choices = ("witness", "union", "paper")
        if sites not in choices:
            raise ProblemError(f"sites is {sites!r}: {did_you_mean(str(sites), choices)}")
        self.solutions = None if solutions is None else check_integer(solutions, "solutions", 1)
        self.sites = sites

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> Information:

        def wanted(rough: Array) -> int:
            places = distinct_places(surrogate, rough[:_FEWEST_SOLUTIONS])
            return _FOR_EACH_PLACE * places if places > _FEW_PLACES else _FEWEST_SOLUTIONS

        count = self.solutions or max(_FEWEST_SOLUTIONS, surrogate.samples)
        drawn = draw_solutions(
            surrogate,
            count,
            incumbent.point[None],
            rng,
            wanted=wanted if self.solutions is None else None,
        )
        limits = limits_of(surrogate)
        z = site_points(surrogate, drawn.points, drawn.row, limits, self.sites, rng)
        return _condition(surrogate, drawn, z, None)

    def update(
        self,
        last: AcquisitionFunction,
        surrogate: Surrogate,
        incumbent: Incumbent,
        rng: np.random.Generator,
    ) -> Information:
        """The same solutions and sites under the new data; new site points start at zero."""
        if (
            not isinstance(last, Information)
            or last.surrogate.samples != surrogate.samples
            or not last.drawn.feasible.any()  # new data may have changed that
        ):
            return self.build(surrogate, incumbent, rng)
        z = more_site_points(surrogate, last.site_points, last.surrogate)
        return _condition(surrogate, last.drawn, z, last.sites)


def _condition(surrogate: Surrogate, drawn: Solutions, z: Array, last: Sites | None) -> Information:
    """Run EP, or go on from the last sites for a few sweeps, and prepare the gains."""
    limits = limits_of(surrogate)
    count = len(drawn.points)
    points = np.vstack([z, drawn.points])
    functions = parallel_map(
        lambda function: function.posterior.joint(points),
        [surrogate.objective, *surrogate.constraints],
    )
    blocks = blocks_of(functions, limits, len(z), drawn.row)
    if not drawn.feasible.any():
        # No path has a feasible point: what can be learnt is where one might be.
        blocks.active[:] = False
    sites = propagate(blocks) if last is None else propagate(blocks, widened(last, len(z)), _FEW)
    used = drawn.feasible if drawn.feasible.any() else np.ones(count, dtype=bool)
    binary = np.array([False, *(constraint.binary for constraint in surrogate.constraints)])
    conditioned = condition(functions, blocks, sites, drawn.row, used / used.sum(), binary)
    report = Report(
        solutions=count,
        feasible=int(drawn.feasible.sum()),
        converged=int(sites.converged.sum()),
        sweeps=int(sites.sweeps.max(initial=0)),
        sites=len(z),
    )
    return Information(surrogate, Gains(conditioned), drawn, report, z, sites)
