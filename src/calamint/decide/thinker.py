"""Choosing a job: what each task would tell for its cost, by full and partial updates.

The paper's algorithm (section 3) with its rule for thinking time (section 5): a full update learns
hyper-parameters, draws solutions, runs EP and maximises finely; a partial one adds the new data to
what the last full one left, and maximises coarsely. With rationality level γ an update is full when

    γ · (now − end of the last full update) > duration of the last full update

so that no more than a share γ of the time is spent on them; γ = ∞ always, γ = 0 never again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from calamint.acquire import Acquisition, Incumbent, Utility
from calamint.decide.answers import Kind, Record, Suggestion
from calamint.decide.clock import Clock
from calamint.decide.costs import Price, price_of, updated
from calamint.decide.failures import chances
from calamint.decide.history import near_points
from calamint.decide.maximise import COARSE, FINE, Contender, Found, maximise
from calamint.decide.recommend import believed_optimum
from calamint.decide.settings import Rationality
from calamint.model import Belief, Data, Model, Start, believe
from calamint.problem import Problem
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class Known:
    """All that a decision may depend on.

    data       measurements by function      durations  log seconds of finished jobs by task
    version    counts what was learnt        hidden     constraints that tasks work, by task
    """

    data: Mapping[str, Data]
    durations: Mapping[str, Data]
    history: Sequence[Record]
    pending: Sequence[Suggestion]
    version: int
    hidden: Mapping[str, str]


@final
@dataclass(frozen=True)
class Choice:
    """A job, and what the best of every task is worth for its cost, where that was computed."""

    best: Found
    kind: Kind
    seconds: dict[str, float]
    bits: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class _Update:
    """What an update finds: beliefs from measurements, and with pending jobs imagined as done."""

    belief: Belief
    imagined: Belief
    utility: Utility
    incumbent: Incumbent
    prices: dict[str, Price]


@final
@dataclass(frozen=True)
class _Full:
    """What a full update leaves: beliefs from measurements, the utility, and when it was."""

    belief: Belief
    utility: Utility
    incumbent: Incumbent
    prices: dict[str, Price]
    version: int
    ended: float
    took: float


@final
@dataclass(frozen=True)
class Remembered:
    """All that a decision changes in a `Thinker`."""

    start: Mapping[str, Start] | None
    origin: Mapping[str, Start] | None
    full: _Full | None
    cached: tuple[int, Belief] | None


@final
class Thinker:
    """Makes decisions, and remembers what partial updates go on from."""

    def __init__(
        self,
        problem: Problem,
        acquisition: Acquisition,
        model: Model,
        delta: float,
        seed: int,
        rationality: Rationality,
        fantasies: int,
        clock: Clock,
    ) -> None:
        # What the user stated, and what is modelled: that its tasks work is a constraint, too.
        self.stated = self.problem = problem
        self.acquisition, self.model = acquisition, model
        self.delta, self.seed, self.clock = delta, seed, clock
        self.rationality, self.fantasies = rationality, fantasies
        self.stepped_down: dict[int, str] = {}
        self._full: _Full | None = None
        self.start: Mapping[str, Start] | None = None  # where the next full update begins
        self.origin: Mapping[str, Start] | None = None  # where the last belief began
        self._cached: tuple[int, Belief] | None = None

    def believe(self, known: Known, model: Model | None = None) -> Belief:
        """The belief given all that was measured; computed once for each state of the data.

        The random stream depends on the data's version only, so that looking (`predict`,
        `recommend`) never changes what is suggested next.
        """
        model = self.model if model is None else model
        version = known.version
        if model is self.model and self._cached and self._cached[0] == version:
            return self._cached[1]
        rng = np.random.default_rng([self.seed, version, 1])
        try:
            belief = believe(self.problem, model, known.data, rng, self.start)
        except (np.linalg.LinAlgError, ArithmeticError) as error:
            # Fewer samples rather than no belief.
            self.stepped_down[version] = f"{model.hyperparameters} model: {error}"
            simpler = replace(model, hyperparameters="map")
            belief = believe(self.problem, simpler, known.data, rng)
        if model is self.model:
            self._cached, self.origin = (version, belief), self.start
        return belief

    def model_as(self, problem: Problem) -> None:
        """The problem with other constraints: what was learnt of the old ones is forgotten."""
        self.problem, self.start, self._cached = problem, None, None
        self.forget()

    @property
    def memory(self) -> Remembered:
        return Remembered(self.start, self.origin, self._full, self._cached)

    @memory.setter
    def memory(self, memory: Remembered) -> None:
        self.start, self.origin = memory.start, memory.origin
        self._full, self._cached = memory.full, memory.cached

    def begin(self, start: Mapping[str, Start] | None) -> None:
        """Begin the next full update there, whatever was believed."""
        self.start, self._cached = start, None
        self.forget()

    def forget(self) -> None:
        """Leave nothing for partial updates: the next one is full."""
        self._full = None

    def wants_full(self, version: int, now: float) -> bool:
        """Whether the next update is a full one; version counts finished jobs."""
        full = self._full
        if full is None or self.rationality == math.inf:
            return True
        if self.rationality == "batch":
            return version > full.version
        return self.rationality * (now - full.ended) > full.took

    def choose(
        self, tasks: Sequence[str], known: Known, model: Model, rng: np.random.Generator
    ) -> Choice:
        """The job, of one of these tasks, that tells most for its cost."""
        times = [self.clock.now()]
        full = self.wants_full(known.version, times[0])
        state = self._update(known, model, rng, full, times)
        utility, incumbent = state.utility, state.incumbent
        near = incumbent.point[None]
        if full:
            near = np.vstack([near, near_points(self.stated, known.history, 3)])
        works = chances(known.hidden, state.imagined.functions)
        contenders = [
            Contender(task, self._weights(task), state.prices[task], works.get(task))
            for task in tasks
        ]
        effort = FINE if full else COARSE
        found = maximise(utility, contenders, self.problem.space, near, rng, effort)
        found = [each for each in found if not math.isnan(each.height)]
        if not found:
            raise FloatingPointError("the utility is not a number anywhere")
        best = max(found, key=lambda each: (each.height, -each.cost, -self._seen(each.task, known)))
        kind: Kind = "full" if full else "partial"
        self.clock.thought(kind)
        times.append(self.clock.now())
        self._keep(state, full, times[-1], times[-1] - times[0], known.version)
        stages = ("model", "incumbent", "acquisition", "maximise")
        seconds = dict(zip(stages, np.diff(times).tolist(), strict=True))
        seconds["total"] = times[-1] - times[0]
        bits, unit = {}, 1.0
        if utility.nats:
            unit = math.log(2)
            measures = self.problem.tasks[best.task].measures
            gains = in_bits(utility, self.problem, best.point)
            bits = {name: float(gains[name][0]) for name in measures if name in gains}
        values = {each.task: each.height / unit for each in found}
        return Choice(best, kind, seconds, bits, values)

    def recall(
        self,
        known: Known,
        rng: np.random.Generator,
        full: bool,
        ended: float,
        took: float,
    ) -> None:
        """Remember an update that was made before, or elsewhere, as if it had been made here."""
        state = self._update(known, self.model, rng, full, [0.0])
        self._keep(state, full, ended, took, known.version)

    def _update(
        self, known: Known, model: Model, rng: np.random.Generator, full: bool, times: list[float]
    ) -> "_Update":
        """What is believed, and what measurements would be worth; adds a time after each stage."""
        last = self._full
        if full or last is None:
            belief = self.believe(known, model)
            self.start = belief.starts()
            prices = {
                task: price_of(task, self.problem, known.durations, rng)
                for task in self.problem.tasks
            }
        else:
            belief = last.belief.extended(known.data)
            prices = updated(last.prices, known.durations)
        times.append(self.clock.now())
        if full or last is None or self.acquisition.improves:
            incumbent = self.incumbent(belief, known, rng, self.acquisition.improves)
        else:
            incumbent = last.incumbent
        times.append(self.clock.now())
        imagined = self.with_pending(belief, known.pending, rng)
        if full or last is None:
            utility = self.acquisition.prepare(imagined, incumbent, rng)
        else:
            utility = self.acquisition.update(last.utility, imagined, incumbent, rng)
        times.append(self.clock.now())
        return _Update(belief, imagined, utility, incumbent, prices)

    def _keep(self, state: "_Update", full: bool, ended: float, took: float, version: int) -> None:
        """Leave what partial updates go on from."""
        last = self._full
        if full or last is None:
            self._full = _Full(
                state.belief, state.utility, state.incumbent, state.prices, version, ended, took
            )
        else:
            self._full = replace(last, belief=state.belief, utility=state.utility)

    def incumbent(
        self, belief: Belief, known: Known, rng: np.random.Generator, exactly: bool
    ) -> Incumbent:
        near = near_points(self.stated, known.history)
        optimum = believed_optimum(belief, near, self.delta, rng, exactly)
        return Incumbent(optimum.point, optimum.objective if optimum.confident else None)

    def with_pending(
        self, belief: Belief, pending: Sequence[Suggestion], rng: np.random.Generator
    ) -> Belief:
        """The belief as if every pending job had found what is expected of it, or its fantasies."""
        belief = belief.repeated(self.fantasies)
        for job in pending:
            measures = self.problem.tasks[job.task].measures
            belief = belief.believing(job.point, measures, rng if self.fantasies > 1 else None)
        return belief

    def _seen(self, task: str, known: Known) -> int:
        """How often what a task measures was measured: of equals, the least known is chosen."""
        return sum(len(known.data[name]) for name in self.problem.tasks[task].measures)

    def _weights(self, task: str) -> Array:
        """(S,) which shares of the utility a task is worth."""
        if not self.acquisition.separable:
            return np.ones(1)
        measures = self.problem.tasks[task].measures
        return np.array([float(name in measures) for name in self.problem.functions])


def in_bits(utility: Utility, problem: Problem, x: Array) -> dict[str, Array]:
    """(n, D) or (D,) -> the gain of each function that can be measured, (n,) each."""
    gains = utility.shares(np.atleast_2d(x)) / math.log(2)
    return {
        name: gains[:, index]
        for index, name in enumerate(problem.functions)
        if name not in problem.known
    }
