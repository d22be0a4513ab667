"""The in-memory core: ask what to measure next, tell what was found, ask where the optimum is.

`Optimizer` is a thin shell around values: the problem and the settings, which do not change; what
has been seen (`Observations`); and what survives between decisions (`State`).
"""

import math
import threading
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Literal, final

import numpy as np

from calamint.acquire import Acquisition, AcquisitionFunction, Information
from calamint.arrays import Array
from calamint.decide.capacity import CanStart, anywhere, competing_tasks, free_capacity
from calamint.decide.clock import Clock
from calamint.decide.confirm import Waiting, next_confirmation
from calamint.decide.decision import decide, needs_model
from calamint.decide.fallback import first_success
from calamint.decide.observations import Observations
from calamint.decide.prepare import prepare
from calamint.decide.queries import Prediction, Query
from calamint.decide.records import Decision, Recommendation, Record, Suggestion
from calamint.decide.results import Value, parse_seconds, read_values
from calamint.decide.settings import Rationality, Settings, read_acquisition, read_delta
from calamint.decide.state import State
from calamint.errors import ModelError, ResultError
from calamint.model import Model
from calamint.problem import Problem
from calamint.threads import synchronized


@final
class Optimizer:
    """Decides what to measure next, in memory: ask and tell.

    Args:
        problem: The problem to solve.
        clock: Where time is read from; `VirtualClock` for simulations.

    All other arguments are the fields of `Settings`.
    """

    def __init__(
        self,
        problem: Problem,
        acquisition: str | Acquisition = "pesc",
        model: Model | None = None,
        seed: int = 0,
        initial: int | None = None,
        delta: float = 0.05,
        rationality: Rationality = math.inf,
        fantasies: int = 1,
        clock: Clock | None = None,
        couple: bool = False,
        retries: int = 2,
        threads: int | None = None,
    ) -> None:
        given = dict(locals())
        named = (each.name for each in fields(Settings))
        self.settings = Settings.of(**{name: given[name] for name in named if name in given})
        self.problem = self.settings.applied(problem)
        self.settings.check(self.problem)
        self.clock = clock if clock is not None else Clock()
        self.state = State()
        self.observations = Observations.none(self.problem)
        self.decisions: list[Decision] = []
        self._failures: tuple[tuple[Suggestion, str], ...] = ()
        self._ended: dict[int, str] = {}
        self._lock = threading.RLock()

    @staticmethod
    def with_settings(
        problem: Problem, settings: Settings, clock: Clock | None = None
    ) -> "Optimizer":
        """An optimiser with settings that exist, such as those of a study."""
        # Pauses are between attempts, which only studies have.
        given = {e.name: getattr(settings, e.name) for e in fields(settings) if e.name != "pause"}
        return Optimizer(problem, clock=clock, **given)

    def __copy__(self) -> "Optimizer":
        """One to try things on: what it is told, this one is not."""
        own = {"decisions": list(self.decisions), "_ended": dict(self._ended)}
        other = object.__new__(Optimizer)
        other.__dict__.update({**self.__dict__, **own})
        return other

    @property
    def initial(self) -> int:
        """How many inputs the initial design has."""
        return self.settings.initial_for(self.problem)

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that were neither told, failed nor cancelled."""
        return tuple(self.observations.pending.values())

    @property
    def history(self) -> list[Record]:
        """Finished jobs and added measurements, in order."""
        return list(self.observations.history)

    @property
    def failures(self) -> tuple[tuple[Suggestion, str], ...]:
        """Failed suggestions with their reasons."""
        return self._failures

    # -- asking -------------------------------------------------------------------------------

    @synchronized
    def ask(self, resource: str | None = None, task: str | None = None) -> Suggestion | None:
        """Book the next job; tasks compete for the first free resource in the order declared.

        Args:
            resource: Let tasks compete for this resource instead.
            task: Consider only this task.

        Returns:
            The job, with its resources booked; None while no task can start.
        """
        free = free_capacity(self.problem.graph, [job.resources for job in self.pending])
        competing = self.competing(free, resource, task)
        if not competing:
            return None
        state, suggestion, decision = self.decide(competing)
        self.book(state, suggestion, decision, free if task is None else None)
        return suggestion

    def ask_all(self) -> list[Suggestion]:
        """Book jobs until no more can start; in the order in which they were decided."""
        return list(iter(self.ask, None))

    def competing(
        self,
        free: Mapping[str, int],
        resource: str | None = None,
        task: str | None = None,
        paused: Collection[str] = (),
        can_start: CanStart = anywhere,
    ) -> dict[str, tuple[str, ...]]:
        """The tasks that compete for what is free, with the resources that they would run on;
        none that is paused."""
        blocked = self.observations.times_blocked
        graph = self.problem.graph
        return competing_tasks(graph, free, blocked, resource, task, paused, can_start)

    @synchronized
    def confirm(self) -> Suggestion | None:
        """Book a job that measures the recommended input, by a task that has not measured it.

        Tell its result, and call this again until it returns None. If a limit is not met, the next
        call is about the recommendation that the model moves to.

        Returns:
            The job, with its resources booked; None if the recommendation is confirmed, or what is
            missing there is pending or cannot start now.
        """
        free = free_capacity(self.problem.graph, [job.resources for job in self.pending])
        decided = self.decide_confirmation(free)
        if decided is None or decided == "wait":
            return None
        self.book(*decided, None)
        return decided[1]

    def decide_confirmation(
        self,
        free: Mapping[str, int],
        paused: Collection[str] = (),
        can_start: CanStart = anywhere,
    ) -> tuple[State, Suggestion, Decision] | Waiting | None:
        """The job that `confirm` would book, or "wait" if it cannot start now; nothing is changed
        until `book`.

        Args:
            free: How many more jobs each resource can take.
            paused: Tasks that must not start.
            can_start: Whether a job on some resources could be started now.
        """
        if not self.observations.history:
            return None
        self.clock.start()
        where = (free, self.clock, paused, can_start)
        try:
            found, _ = first_success([("confirm", lambda: next_confirmation(self.query(), *where))])
        except ModelError:
            return None
        return found if found is None or found == "wait" else (self.state, *found)

    def needs_model(self, competing: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether `decide` has to fit a model, which may take long."""
        return needs_model(self.problem, self.settings, self.observations, list(competing))

    def decide(
        self, competing: Mapping[str, tuple[str, ...]]
    ) -> tuple[State, Suggestion, Decision]:
        """The job of one of these tasks that should run next; nothing is changed until `book`.

        Args:
            competing: Tasks with the resources that they would run on.
        """
        number = self.observations.jobs
        rng = np.random.default_rng([self.settings.seed, number])
        state, selected = decide(
            self.problem,
            self.settings,
            self.state,
            self.observations,
            list(competing),
            rng,
            self.clock,
        )
        return state, *selected.as_job(number, self.problem.space, competing[selected.task])

    @synchronized
    def prepare(self) -> None:
        """Do now what the next decision need not do then, for rationality "overlap"."""
        if self.settings.rationality == "overlap":
            self.state = prepare(self.problem, self.settings, self.state, self.clock)

    @synchronized
    def book(
        self,
        state: State,
        suggestion: Suggestion,
        decision: Decision,
        free: Mapping[str, int] | None,
    ) -> None:
        """A job that was decided, here or elsewhere, is run.

        Args:
            state: What the decision left.
            free: What was free when tasks competed for it, if they did.
        """
        self.observations = self.observations.book(self.problem, suggestion.copied(), free)
        overlaps = self.settings.rationality == "overlap"
        self.state = replace(state, booked=self.observations) if overlaps else state
        self.decisions.append(decision)

    def enqueue(self, suggestion: Suggestion) -> None:
        """A job that the user wants is run."""
        self.observations = self.observations.enqueue(suggestion.copied())

    # -- telling ------------------------------------------------------------------------------

    @synchronized
    def tell(
        self,
        suggestion: Suggestion,
        values: Mapping[str, Value],
        seconds: float | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Report what a job measured.

        Args:
            suggestion: What `ask` returned.
            values: A number for each function, or (value, standard error); True or False for a
                binary constraint. Functions that are left out were not measured. One that is NaN,
                infinite or None failed: the others are kept, and the job counts as failed.
            seconds: How long the job ran.
            params: Parameters that were not exactly as suggested, as they really were.

        Raises:
            ResultError: If the values cannot be read, or the job has ended before; nothing is
                changed.
        """
        job = self._pending_job(suggestion)
        if params is not None:
            job = job.moved(self.problem.space, params)
        measures = self.problem.tasks[job.task].measures
        measured, broken = read_values(values, measures, self.problem.binary)
        took = parse_seconds(seconds)
        self.observations = self.observations.tell(self.problem, job, measured, took)
        self._ended[job.number] = "told"
        if broken:
            self._fail(job, "; ".join(f"{name} is {values[name]!r}" for name in broken))
        else:
            self.observations = self.observations.work(job)

    @synchronized
    def fail(self, suggestion: Suggestion, reason: str) -> None:
        """Report that a job ended without a result: see `Task(failures=...)`.

        Args:
            suggestion: What `ask` returned.
            reason: Why it failed, in words.
        """
        job = self._pending_job(suggestion)
        self._ended[job.number] = "failed"
        self._fail(job, str(reason))

    def _fail(self, job: Suggestion, reason: str) -> None:
        self._failures = (*self._failures, (job, reason))
        self.observations = self.observations.fail(self.problem, job, self.settings.retries)

    @synchronized
    def cancel(self, suggestion: Suggestion) -> None:
        """Cancel a job that `ask` returned; its resources are free again."""
        job = self._pending_job(suggestion)
        self.observations = self.observations.cancel(job)
        self._ended[job.number] = "cancelled"

    @synchronized
    def add(
        self,
        params: Mapping[str, Any],
        values: Mapping[str, Value],
        notes: Mapping[str, Any] | None = None,
        outside: bool = False,
        job: int | None = None,
    ) -> None:
        """Add measurements of any of the functions that were not asked for.

        Args:
            params: The input.
            values: As for `tell`.
            notes: What to keep beside them.
            outside: Accept values out of bounds, which teach though they are never suggested.
            job: The job that measured them, if its task is no longer the problem's.
        """
        accepted = self.problem.space.validate(params, outside)
        measured, broken = read_values(values, self.problem.measured, self.problem.binary)
        if broken:
            raise ResultError(
                f"values[{broken[0]!r}] is {values[broken[0]]!r}: write a number, or leave it out."
            )
        point = self.problem.space.encode(accepted, outside)
        self.observations = self.observations.add(accepted, point, measured, dict(notes or {}), job)

    def _pending_job(self, suggestion: Suggestion) -> Suggestion:
        if not isinstance(suggestion, Suggestion):
            raise ResultError(f"suggestion is {suggestion!r}: write what ask() returned.")
        job = self.observations.pending.get(suggestion.number)
        if job is None or job != suggestion:
            ended = self._ended.get(suggestion.number)
            what = f"was already {ended}" if ended else "was not asked for here"
            raise ResultError(f"suggestion {suggestion.number} {what}: nothing was changed.")
        return job

    # -- questions ----------------------------------------------------------------------------

    def query(self) -> Query:
        """All that is known, with the model fitted to it."""
        asked = Query.of(self.problem, self.settings, self.state, self.observations, self.clock)
        self.state = asked.state
        return asked

    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, standard deviation and probability of meeting the limits at one input, by function.

        Args:
            params: The input.
        """
        return self.query().predict(params)

    def gains(self, points: Any) -> dict[str, Array]:
        """Expected information gains of measuring each function at some inputs, as if pending jobs
        had found what is expected: bits, of which a task yields the sum.

        Args:
            points: A list of parameter dicts, or a DataFrame with a column for each parameter.

        Returns:
            An array for each function that can be measured.
        """
        return self.query().gains(points)

    def information(self) -> Information:
        """What `gains` computes with: drawn solutions, and beliefs given each of them."""
        return self.query().information()

    def acquisition_function(self, acquisition: str | Acquisition) -> AcquisitionFunction:
        """Any acquisition under the current model, pending jobs included: a function of points of
        the unit cube, with gradients.

        Args:
            acquisition: By name, or one with settings.
        """
        return self.query().acquisition_function(read_acquisition(acquisition))

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, from measured data only.

        Args:
            delta: The accepted probability of being infeasible; that of the settings by default.
            kind: "believed": the lowest expected objective in the whole space such that all limits
                are met with probability 1 − delta; or the most probably feasible input, with
                `confident=False`. "observed": the best input, by the model, at which every
                function was measured and every limit met; what different tasks measured at one
                input is joined, and replicates are averaged.

        Returns:
            The input, its expected objective and its probability of being feasible.
        """
        delta = self.settings.delta if delta is None else read_delta(delta)
        return self.query().recommend(delta, kind)
