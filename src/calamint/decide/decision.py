"""Choosing the next job: which task, at which input. A function of its arguments alone.

decide(problem, settings, state, observations, competing, rng, clock) -> (state, selection)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np

from calamint.acquire import AcquisitionFunction
from calamint.arrays import Array
from calamint.decide.blas_threads import single_threaded
from calamint.decide.clock import Clock
from calamint.decide.design import design_point, initial_task
from calamint.decide.failures import ModelledProblem, SuccessProbability, add_success_constraints
from calamint.decide.fallback import first_success
from calamint.decide.observations import Observations
from calamint.decide.pending import Novelty, Pending, is_recent, others
from calamint.decide.prepare import prepare
from calamint.decide.records import Decision, DecisionKind, Suggestion, near_points
from calamint.decide.repeat import repeat_due
from calamint.decide.select import COARSE, FINE, BestJob, Competitor, Effort, maximise
from calamint.decide.settings import Settings
from calamint.decide.state import FullUpdate, State, Update
from calamint.decide.update import (
    Stopwatch,
    fitted,
    full_is_due,
    full_update,
    model_attempts,
    partial_update,
)
from calamint.model import Model, Surrogate, cost_model
from calamint.problem import Params, Problem, Space
from calamint.threads import worker_threads


@final
@dataclass(frozen=True)
class Selection:
    """A task and its input (D,) in the cube, how it was chosen (`update`), and what that took.

    The other fields are those of `Suggestion` and `Decision`.
    """

    task: str
    point: Array
    cost: float
    update: DecisionKind
    stage_seconds: dict[str, float]
    bits: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    params: Params | None = None
    bounded: tuple[str, ...] = ()

    def as_job(
        self, number: int, space: Space, resources: tuple[str, ...]
    ) -> tuple[Suggestion, Decision]:
        """The job with its number and its resources."""
        # Decoding what was encoded can change the last digit, and it would be another input.
        params = space.decode(self.point) if self.params is None else dict(self.params)
        suggestion = Suggestion(
            number,
            self.task,
            params,
            resources,
            bits=self.bits,
            cost=self.cost,
            scores=self.scores,
            update=self.update,
            decision_seconds=self.stage_seconds["total"],
            warnings=self.warnings,
            point=space.encode(params),
        )
        decision = Decision(number, self.update, self.stage_seconds, self.warnings, self.bounded)
        return suggestion, decision


@final
@dataclass(frozen=True)
class _Context:
    """The arguments of `decide`, with the extended problem in place of the user's.

    Attributes:
        model_free: Makes a selection of a kind, a task and a point that no model chose.
    """

    modelled: ModelledProblem
    settings: Settings
    state: State
    observations: Observations
    competing: Sequence[str]
    rng: np.random.Generator
    clock: Clock
    model_free: Callable[[DecisionKind, str, Array], Selection]


@single_threaded
def decide(
    problem: Problem,
    settings: Settings,
    state: State,
    observations: Observations,
    competing: Sequence[str],
    rng: np.random.Generator,
    clock: Clock,
) -> tuple[State, Selection]:
    """Choose the next job among the competing tasks.

    Failed jobs that are due for a retry come first, then the initial design, then the maximiser of
    the acquisition function, once in a while an input to repeat; `fallback` says what is done if
    that fails.

    Returns:
        The state after the decision, and the selection.
    """
    begin = clock.now()
    clock.start()
    model_free = partial(_model_free_selection, problem, observations, rng, clock, begin)
    retry = observations.next_retry(competing)
    if retry is not None:
        return state, model_free("retry", retry.task, retry.point)
    task = initial_task(problem, observations, competing, settings.initial_for(problem))
    if task is not None:
        point = design_point(problem.space, settings.seed, observations.design.next(task))
        return state, model_free("initial", task, point)
    if not settings.acquisition.uses_model:
        task = competing[int(rng.integers(len(competing)))]
        point = problem.space.snap(rng.random(problem.space.dimension))
        return state, model_free("random", task, point)
    modelled = add_success_constraints(problem, observations)
    if settings.rationality == "overlap":
        state = prepare(problem, settings, state, clock)
    last = state.compatible_with(modelled.problem)
    context = _Context(modelled, settings, last, observations, competing, rng, clock, model_free)
    with worker_threads(settings.threads_for(modelled.measurements)):
        result, warnings = first_success(_attempts(context))
    if result is not None:
        return result[0], replace(result[1], warnings=warnings)
    task = competing[int(rng.integers(len(competing)))]
    point = design_point(problem.space, settings.seed, observations.jobs)
    return state, replace(model_free("fallback", task, point), warnings=warnings)


def needs_model(
    problem: Problem, settings: Settings, observations: Observations, competing: Sequence[str]
) -> bool:
    """Whether `decide` has to fit a model, which may take long."""
    if not settings.acquisition.uses_model or observations.next_retry(competing) is not None:
        return False
    initial = settings.initial_for(problem)
    return initial_task(problem, observations, competing, initial) is None


def _model_free_selection(
    problem: Problem,
    observations: Observations,
    rng: np.random.Generator,
    clock: Clock,
    begin: float,
    update: DecisionKind,
    task: str,
    point: Array,
) -> Selection:
    """A job that no model chose."""
    cost = cost_model(task, problem, observations.durations, rng).value(point[None])
    clock.decided(update)
    return Selection(task, point, float(cost[0]), update, {"total": clock.now() - begin})


def _attempts(context: _Context) -> list[tuple[str, Callable[[], tuple[State, Selection]]]]:
    """Methods of selection, in the order in which they are tried."""
    full = model_attempts(context.settings.model, partial(_select_by_full_update, context))
    if context.state.update is None:
        return full
    last = ("last model", partial(_select_by_partial_update, context, context.state.update))
    if context.state.full is not None and context.state.full.is_new:
        prepared = partial(_select_by_prepared_update, context, context.state.full)
        return [("prepared model", partial(prepared, context.state.update)), *full]
    settings, version = context.settings, context.observations.version
    due = full_is_due(settings.rationality, context.state, version, context.clock.now())
    return [*full, last] if due else [last, *full]


def _select_by_full_update(context: _Context, model: Model) -> tuple[State, Selection]:
    observations, clock = context.observations, context.clock
    stopwatch = Stopwatch(clock)
    version = observations.version
    fit = fitted(context.modelled, context.settings, model, context.state, version, clock)
    repeat = _repetition(context, fit.surrogate)
    if repeat is not None:
        return replace(context.state, fit=fit), repeat
    update = full_update(
        context.modelled,
        context.settings,
        fit,
        observations,
        context.rng,
        stopwatch,
        fitted_before=fit is context.state.fit,
    )
    selection = _select(context, update, _near(context, update), FINE, stopwatch, "full")
    full = FullUpdate(
        observations.jobs,
        version,
        fit.start,
        fit.surrogate.hyperparameters(),
        ended=clock.now(),
        seconds=selection.stage_seconds["total"],
    )
    state = replace(context.state, full=full, fit=fit, update=update)
    return state, replace(selection, bounded=fit.surrogate.bounded)


def _near(context: _Context, update: Update) -> Array:
    """(k, D) the incumbent, the best and the newest measurements, whose surroundings are searched
    more."""
    best_and_newest = near_points(context.modelled.original, context.observations.history, 3)
    return np.vstack([update.incumbent.point[None], best_and_newest])


def _select_by_prepared_update(
    context: _Context, full: FullUpdate, last: Update
) -> tuple[State, Selection]:
    """The first decision after a full update that was prepared for it."""
    repeat = _repetition(context, last.surrogate)
    if repeat is not None:
        return context.state, repeat
    now = replace(full, decision=context.observations.jobs, is_new=False)
    context = replace(context, state=replace(context.state, full=now))
    if context.observations.version != last.version:
        return _select_by_partial_update(context, last)
    stopwatch = Stopwatch(context.clock)
    selection = _select(context, last, _near(context, last), FINE, stopwatch, "full")
    return context.state, selection


def _repetition(context: _Context, surrogate: Surrogate) -> Selection | None:
    """An input that is measured again, if it is time for that."""
    problem, observations = context.modelled.original, context.observations
    due = repeat_due(problem, context.settings, surrogate, observations, context.competing)
    if due is None:
        return None
    task, record = due
    return replace(context.model_free("repeat", task, record.point), params=record.params)


def _select_by_partial_update(context: _Context, last: Update) -> tuple[State, Selection]:
    stopwatch = Stopwatch(context.clock)
    update = last
    if not is_recent(last, context.observations):
        update = partial_update(
            context.modelled, context.settings, last, context.observations, context.rng, stopwatch
        )
    near = update.incumbent.point[None]
    selection = _select(context, update, near, COARSE, stopwatch, "partial")
    return replace(context.state, update=update), selection


def _select(
    context: _Context,
    update: Update,
    near: Array,
    effort: Effort,
    stopwatch: Stopwatch,
    kind: DecisionKind,
) -> Selection:
    """The best job of all competing tasks, with the best score of each task."""
    problem, acq_function = context.modelled.problem, update.acq_function
    pending = others(problem, context.observations, update)
    competitors = [
        Competitor(
            task,
            _contribution_weights(context, task),
            update.costs[task],
            _shares(context, update, task, pending),
        )
        for task in context.competing
    ]
    best_jobs = maximise(acq_function, competitors, problem.space, near, context.rng, effort)
    best_jobs = [job for job in best_jobs if not math.isnan(job.score)]
    if not best_jobs:  # an ArithmeticError: the next method is tried
        raise FloatingPointError("the acquisition function is not a number anywhere")
    best = max(best_jobs, key=lambda job: (job.score, -job.cost, -_measurements(context, job)))
    context.clock.decided(kind)
    stopwatch.lap("maximise")
    bits, nats_per_unit = {}, 1.0
    if acq_function.in_nats:
        nats_per_unit = math.log(2)
        gains = gains_in_bits(acq_function, problem, best.point)
        measures = problem.tasks[best.task].measures
        bits = {name: float(gains[name][0]) for name in measures if name in gains}
    scores = {job.task: job.score / nats_per_unit for job in best_jobs}
    return Selection(best.task, best.point, best.cost, kind, stopwatch.stop(), bits, scores)


def _contribution_weights(context: _Context, task: str) -> Array:
    """(S,) 1 for every function that a task measures, else 0; (1,) without decoupled tasks."""
    if not context.settings.acquisition.supports_decoupled:
        return np.ones(1)
    problem = context.modelled.problem
    return np.array([float(name in problem.tasks[task].measures) for name in problem.functions])


def _shares(
    context: _Context, update: Update, task: str, pending: Sequence[Pending]
) -> tuple[SuccessProbability | Novelty, ...]:
    """What a job of a task keeps of its worth, if the task has failed before, or jobs are pending
    whose results are not fantasized."""
    name = context.modelled.success_constraints.get(task)
    measures = context.modelled.problem.tasks[task].measures
    success = None if name is None else SuccessProbability(update.fantasized.functions[name])
    novelty = Novelty.of(pending, update.surrogate, measures)
    return tuple(share for share in (success, novelty) if share is not None)


def _measurements(context: _Context, best: BestJob) -> int:
    """The number of measurements of a task's functions: ties go to the task with fewest."""
    measures = context.modelled.problem.tasks[best.task].measures
    return sum(len(context.modelled.data[name]) for name in measures)


def gains_in_bits(
    acq_function: AcquisitionFunction, problem: Problem, x: Array
) -> dict[str, Array]:
    """(n, D) or (D,) -> the information gain of each measured function in bits, (n,) each."""
    gains = acq_function.contributions(np.atleast_2d(x)) / math.log(2)
    return {
        name: gains[:, index]
        for index, name in enumerate(problem.functions)
        if name not in problem.known
    }


@single_threaded
def recompute_update(
    problem: Problem,
    settings: Settings,
    state: State,
    observations: Observations,
    update: DecisionKind,
    rng: np.random.Generator,
    clock: Clock,
) -> State:
    """The state after an earlier decision, perhaps of another process, without selecting a job.

    If its update was full, `state.full` must already describe it.
    """
    if state.full is not None and state.full.prepared and state.update is None:
        state = replace(prepare(problem, settings, state, clock), full=state.full)
        if update == "full" or state.update is None:
            return state
    modelled = add_success_constraints(problem, observations)
    state = state.compatible_with(modelled.problem)
    last = state.update

    def redo_full(model: Model) -> State:
        fit = fitted(modelled, settings, model, state, observations.version, clock)
        full = full_update(
            modelled, settings, fit, observations, rng, Stopwatch(clock), fitted_before=True
        )
        return replace(state, fit=fit, update=full)

    def redo_partial(last: Update) -> State:
        if is_recent(last, observations):
            return state
        again = partial_update(modelled, settings, last, observations, rng, Stopwatch(clock))
        return replace(state, update=again)

    attempts = model_attempts(settings.model, redo_full)
    if update != "full" and last is not None:
        attempts = [("last model", partial(redo_partial, last)), *attempts]
    with worker_threads(settings.threads_for(modelled.measurements)):
        return first_success(attempts)[0] or state
