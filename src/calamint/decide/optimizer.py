"""The in-memory core: ask what to measure next, tell what was found, ask where the optimum is."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from calamint.acquire import Acquisition
from calamint.decide.answers import (
    Decision,
    Kind,
    Record,
    Suggestion,
)
from calamint.decide.booking import blocked, contest, free_capacity
from calamint.decide.clock import Clock
from calamint.decide.costs import SHORTEST, check_costs, price_of
from calamint.decide.design import Design
from calamint.decide.failures import Workings
from calamint.decide.looking import Looking
from calamint.decide.maximise import Found
from calamint.decide.results import ResultError, Value, read_seconds, read_values
from calamint.decide.settings import (
    Rationality,
    measures_all,
    read_acquisition,
    read_delta,
    read_rationality,
)
from calamint.decide.thinker import Choice, Known, Remembered, Thinker
from calamint.decide.threads import single_threaded
from calamint.model import Data, Model, Start, check_known
from calamint.problem import Params, Problem, ProblemError
from calamint.problem.errors import nearest
from calamint.problem.parameters import Array, whole


@final
class Optimizer(Looking):
    """Decides what to measure next.

    problem      what is asked
    acquisition  "pesc" (expected information about the constrained optimum), another by name
                 ("eic", "eicd", "ieci", "ev", "auglag", "thompson", "rs", "rsdg", "random"), or
                 one with settings, such as `PESC(solutions=50)`
    model        how functions are modelled: `cm.Model(...)`
    seed         same seed, same results and same durations give the same suggestions
    initial      how many space-filling inputs every function is measured at first; by default one
                 more than there are parameters, and at least three
    delta        1 − δ is the probability of feasibility that an incumbent must have
    rationality  the share γ of the time that full updates may take, the others are partial;
                 infinity: all are full, zero: only the first; or "batch": full after new results,
                 partial while resources are being filled
    fantasies    how often the results of pending jobs are imagined; one takes what is expected
    clock        where time is read from
    couple       if some task measures only some functions, replace all tasks by one that measures
                 everything, at cost 1, on one resource
    retries      how often a job is suggested again whose task says `failures="retry"`
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
        retries: int = 3,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ProblemError(f"problem is {problem!r}: write cm.Problem(...).")
        if couple and not all(measures_all(problem, task) for task in problem.tasks):
            problem = problem.coupled()
        self.problem = problem
        if model is not None and not isinstance(model, Model):
            raise ProblemError(f"model is {model!r}: write cm.Model(...).")
        self.model = model if model is not None else Model()
        self.model.check(problem)
        check_known(problem)
        check_costs(problem)
        self.acquisition = read_acquisition(acquisition, problem)
        self.seed = whole(seed, "seed", 0)
        usual = max(3, len(problem.space) + 1)
        self.initial = usual if initial is None else whole(initial, "initial", 0)
        self.delta = read_delta(delta)
        self.clock = clock if clock is not None else Clock()
        self.rationality = read_rationality(rationality)
        self._thinker = Thinker(
            problem,
            self.acquisition,
            self.model,
            self.delta,
            self.seed,
            self.rationality,
            whole(fantasies, "fantasies", 1),
            self.clock,
        )
        self._passfail = problem.judged
        self.history: list[Record] = []
        self.decisions: list[Decision] = []
        self._pending: dict[int, Suggestion] = {}
        self._ended: dict[int, str] = {}
        self._failures: list[tuple[Suggestion, str]] = []
        self._workings = Workings(problem, whole(retries, "retries", 0))
        self._version = 0
        dimension = problem.space.dimension
        self._data = {name: Data.empty(dimension) for name in problem.measured}
        self._durations = {name: Data.empty(dimension) for name in problem.tasks}
        self._design = Design(problem.space, self.seed)
        self._passed_over: Counter[str] = Counter()

    # -- asking -------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that were neither told, failed nor cancelled."""
        return tuple(self._pending.values())

    def ask(self, resource: str | None = None, task: str | None = None) -> Suggestion | None:
        """The next job, with its resources booked; None while no task can start.

        Tasks compete for the first free resource in the order declared, or for the given one; or
        only the given task is asked about.
        """
        free = free_capacity(self.problem.graph, [job.resources for job in self.pending])
        places = self.places(free, resource, task)
        if not places:
            return None
        suggestion, decision = self.propose(places, len(self.decisions))
        self.book(suggestion, decision, free if task is None else None)
        return suggestion

    def places(
        self, free: Mapping[str, int], resource: str | None = None, task: str | None = None
    ) -> dict[str, tuple[str, ...]]:
        """The tasks that compete now, with the resources that they would run on.

        free  how many more jobs each resource can take
        """
        graph = self.problem.graph
        for name, given, known in (
            ("resource", resource, graph.resources),
            ("task", task, graph.tasks),
        ):
            if given is not None and (not isinstance(given, str) or given not in known):
                raise ProblemError(f"{name} is {given!r}: {nearest(str(given), known)}")
        # A task that needs several resources might wait for ever while others take them in turns.
        patience = 2 * sum(graph.resources.values()) + 2
        # Who asks for one task knows what they want.
        waiting = (
            [name for name in graph.tasks if self._passed_over[name] > patience]
            if task is None
            else []
        )
        return contest(graph, free, waiting, resource, task)

    def book(
        self,
        suggestion: Suggestion,
        decision: Decision | None = None,
        free: Mapping[str, int] | None = None,
    ) -> None:
        """A suggestion is run: `propose` made it here or elsewhere, or the user wants it.

        free  what was free when tasks competed for it
        """
        # A copy: what the caller does to the parameters must not reach the records.
        self._pending[suggestion.number] = replace(suggestion, params=dict(suggestion.params))
        if decision is None:
            return
        self.decisions.append(decision)
        if suggestion.update == "initial":
            self._design.take(suggestion.task, suggestion.number)
        if suggestion.update == "retry":
            self._workings.take(suggestion.task, suggestion.number)
        if free is not None:
            self._passed_over.update(blocked(self.problem.graph, free))
        self._passed_over[suggestion.task] = 0

    @property
    def memory(self) -> Remembered:
        """What decisions leave behind for the next: kept before one, it can be put back after."""
        return self._thinker.memory

    @memory.setter
    def memory(self, memory: Remembered) -> None:
        self._thinker.memory = memory

    @property
    def start(self) -> Mapping[str, Start] | None:
        """The hyper-parameters that the next full update starts from."""
        return self._thinker.start

    @start.setter
    def start(self, start: Mapping[str, Start] | None) -> None:
        self._thinker.begin(start)

    @property
    def origin(self) -> Mapping[str, Start] | None:
        """The hyper-parameters that the last belief started from."""
        return self._thinker.origin

    @single_threaded
    def recall(self, number: int, full: bool, ended: float, took: float) -> None:
        """An update for suggestion `number`, which was made before or elsewhere, is made again, so
        that partial ones go on from it; then comes `book`."""
        rng = np.random.default_rng([self.seed, number])
        self._thinker.recall(self._known(), rng, full, ended, took)

    def ask_all(self) -> list[Suggestion]:
        """Jobs for all free capacity."""
        jobs = []
        while (job := self.ask()) is not None:
            jobs.append(job)
        return jobs

    @single_threaded
    def propose(
        self, places: Mapping[str, tuple[str, ...]], number: int
    ) -> tuple[Suggestion, Decision]:
        """The job of one of these tasks that should run next; `book` says that it does.

        places  tasks with the resources that they would run on
        number  of the suggestion; randomness depends on it, and on nothing else
        """
        rng = np.random.default_rng([self.seed, number])
        begin = self.clock.now()
        self.clock.start()
        warnings: list[str] = []
        task = self._to_begin_with(places)
        again = next((job for t in places if (job := self._workings.to_retry(t))), None)
        if again is not None:
            choice = self._unthinking("retry", again.task, again.point, begin, rng)
        elif task is not None:
            point = self._design.next(task)
            choice = self._unthinking("initial", task, point, begin, rng)
        elif not self.acquisition.uses_model:
            task = list(places)[int(rng.integers(len(places)))]
            point = self.problem.space.snap(rng.random(self.problem.space.dimension))
            choice = self._unthinking("random", task, point, begin, rng)
        else:
            choice = self._thought(places, number, begin, rng, warnings)
        best = choice.best
        params = self.problem.space.decode(best.point)
        suggestion = Suggestion(
            number,
            best.task,
            params,
            places[best.task],
            bits=choice.bits,
            cost=best.cost,
            values=choice.values,
            update=choice.kind,
            seconds=choice.seconds["total"],
            point=self.problem.space.encode(params),
        )
        return suggestion, Decision(number, choice.kind, choice.seconds, tuple(warnings))

    def _thought(
        self,
        places: Mapping[str, tuple[str, ...]],
        number: int,
        begin: float,
        rng: np.random.Generator,
        warnings: list[str],
    ) -> Choice:
        """A decision always comes back: fewer samples if the model fails, and at last no model."""
        for model in (self.model, replace(self.model, hyperparameters="map")):
            try:
                choice = self._thinker.choose(list(places), self._known(), model, rng)
            except ProblemError:
                raise  # a known or a cost function of the user's: only they can mend it
            except Exception as error:
                self._thinker.forget()
                warnings.append(f"{model.hyperparameters} model: {type(error).__name__}: {error}")
            else:
                stepped_down = self._thinker.stepped_down.get(self._version)
                warnings += [stepped_down] if stepped_down else []
                return choice
        task = list(places)[int(rng.integers(len(places)))]
        return self._unthinking("fallback", task, self._design.point(number), begin, rng)

    def _unthinking(
        self, kind: Kind, task: str, point: Array, begin: float, rng: np.random.Generator
    ) -> Choice:
        """A job that no model chose."""
        price = price_of(task, self.problem, self._durations, rng)
        cost = float(price.at(point[None])[0])
        self.clock.thought(kind)
        return Choice(Found(task, point, math.nan, cost), kind, {"total": self.clock.now() - begin})

    def _to_begin_with(self, places: Mapping[str, tuple[str, ...]]) -> str | None:
        """The task that is furthest from having its functions measured at the initial inputs; or
        one whose test has never passed, or that has never worked: a model of failures alone would
        look for a success in the corners, again and again."""
        coming = Counter(
            name for job in self.pending for name in self.problem.tasks[job.task].measures
        )
        done = {
            task: min(
                len(self._data[name]) + coming[name] for name in self.problem.tasks[task].measures
            )
            # Where a task does not work, it has had its chance.
            + self._workings.failed[task]
            for task in places
        }
        least = min(done, key=lambda task: done[task])
        if done[least] < self.initial:
            return least
        return next((task for task in places if self._has_only_failed(task)), None)

    def _has_only_failed(self, task: str) -> bool:
        seen = [
            self._data[name].values
            for name in self.problem.tasks[task].measures
            if name in self._passfail
        ]
        if task in self._workings.verdicts:
            seen.append(self._workings.verdicts[task].values)
        return any(len(verdicts) > 0 and not verdicts.any() for verdicts in seen)

    def _known(self) -> Known:
        return Known(
            {**self._data, **self._workings.data()},
            self._durations,
            self.history,
            self.pending,
            self._version,
            self._workings.hidden,
        )

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self, suggestion: Suggestion, values: Mapping[str, Value], seconds: float | None = None
    ) -> None:
        """What a suggested job measured: a number for each function, or (value, standard error).

        Functions that are left out were not measured. One that is NaN, infinite or None failed:
        what the others found is kept, and the job counts as failed. `seconds` is how long it took.
        """
        self._check_pending(suggestion)
        measures = self.problem.tasks[suggestion.task].measures
        read, broken = read_values(values, measures, self._passfail)
        took = read_seconds(seconds)
        asked = self._pending[suggestion.number]
        self._end(suggestion, "told")
        if took is not None:
            logs = math.log(max(took, SHORTEST))
            durations = self._durations[asked.task]
            self._durations[asked.task] = durations.append(asked.point, logs)
        if read:
            self._record(asked.params, asked.point, read, suggestion.task, took)
        if broken:
            self._failed(asked, "; ".join(f"{name} is {values[name]!r}" for name in broken))
        else:
            self._workings.worked(asked.task, asked.point)

    def fail(self, suggestion: Suggestion, reason: str) -> None:
        """A suggested job ended without a result; its resources are free again.

        What that means is up to its task: see `Task(failures=...)`.
        """
        self._check_pending(suggestion)
        asked = self._pending[suggestion.number]
        self._end(suggestion, "failed")
        self._failed(asked, str(reason))

    def _failed(self, job: Suggestion, reason: str) -> None:
        self._failures.append((job, reason))
        self._version += 1
        if self._workings.fail(job):
            self._thinker.model_as(self._workings.modelled())

    def cancel(self, suggestion: Suggestion) -> None:
        """A suggested job will not be run; its resources are free again."""
        self._check_pending(suggestion)
        self._end(suggestion, "cancelled")
        self._design.cancel(suggestion.task, suggestion.number)

    def add(self, params: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Measurements that were not asked for: any of the functions, at any input."""
        accepted = self.problem.space.accept(params)
        read, broken = read_values(values, self.problem.measured, self._passfail)
        if broken:
            raise ResultError(
                f"values[{broken[0]!r}] is {values[broken[0]]!r}: write a number, or leave it out."
            )
        self._record(accepted, self.problem.space.encode(accepted), read, None, None)

    @property
    def failures(self) -> tuple[tuple[Suggestion, str], ...]:
        """Failed suggestions with their reasons."""
        return tuple(self._failures)

    def _check_pending(self, suggestion: Suggestion) -> None:
        if not isinstance(suggestion, Suggestion):
            raise ResultError(f"suggestion is {suggestion!r}: write what ask() returned.")
        if self._pending.get(suggestion.number) != suggestion:
            ended = self._ended.get(suggestion.number)
            what = f"was already {ended}" if ended else "was not asked for here"
            raise ResultError(f"suggestion {suggestion.number} {what}: nothing was changed.")

    def _end(self, suggestion: Suggestion, how: str) -> None:
        del self._pending[suggestion.number]
        self._ended[suggestion.number] = how

    def _record(
        self,
        params: Params,
        point: Array,
        read: Mapping[str, tuple[float, float]],
        task: str | None,
        seconds: float | None,
    ) -> None:
        for name, (value, noise) in read.items():
            if name == self.problem.objective.name:
                value = self.problem.objective.inward(value)
            self._data[name] = self._data[name].append(point, value, noise)
        values = {name: value for name, (value, _) in read.items()}
        errors = {name: math.sqrt(noise) for name, (_, noise) in read.items() if noise >= 0}
        self.history.append(Record(params, values, task, seconds, point, errors))
        self._version += 1
