"""Deciding: which task to run next, at which input. One function of values.

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
from calamint.decide.failures import Chance, ModelledProblem, modelled
from calamint.decide.fallback import first_that_works
from calamint.decide.observations import Observations
from calamint.decide.records import UpdateKind, near_points
from calamint.decide.select import COARSE, FINE, BestJob, Competitor, Effort, maximise
from calamint.decide.settings import Settings
from calamint.decide.state import FullUpdate, State, Update
from calamint.decide.update import (
    Stopwatch,
    fitted,
    full_is_due,
    full_update,
    model_rungs,
    partial_update,
)
from calamint.model import Model, cost_model
from calamint.problem import Problem


@final
@dataclass(frozen=True)
class Selection:
    """A task and its input (D,) in the cube; the rest as in `Suggestion` and `Decision`."""

    task: str
    point: Array
    cost: float
    update: UpdateKind
    stage_seconds: dict[str, float]
    bits: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class _Given:
    """The arguments of `decide`, with the problem as it is modelled."""

    modelled: ModelledProblem
    settings: Settings
    state: State
    observations: Observations
    competing: Sequence[str]
    rng: np.random.Generator
    clock: Clock


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
    """The job, of one of the competing tasks, that should run next; and what that leaves.

    A job that failed is tried again first; then come the inputs of the initial design; then what
    the acquisition finds best, by the first way of the ladder that works (`fallback`).
    """
    begin = clock.now()
    clock.start()
    without_model = partial(_without_model, problem, observations, rng, clock, begin)
    retry = observations.next_retry(competing)
    if retry is not None:
        return state, without_model("retry", retry.task, retry.point)
    task = initial_task(problem, observations, competing, settings.initial_for(problem))
    if task is not None:
        point = design_point(problem.space, settings.seed, observations.design.next(task))
        return state, without_model("initial", task, point)
    if not settings.acquisition.uses_model:
        task = competing[int(rng.integers(len(competing)))]
        point = problem.space.snap(rng.random(problem.space.dimension))
        return state, without_model("random", task, point)
    given = modelled(problem, observations)
    fitting = state.about(given.problem)
    found, warnings = first_that_works(
        _rungs(_Given(given, settings, fitting, observations, competing, rng, clock))
    )
    if found is not None:
        return found[0], replace(found[1], warnings=warnings)
    task = competing[int(rng.integers(len(competing)))]
    point = design_point(problem.space, settings.seed, observations.jobs)
    return state, replace(without_model("fallback", task, point), warnings=warnings)


def _without_model(
    problem: Problem,
    observations: Observations,
    rng: np.random.Generator,
    clock: Clock,
    begin: float,
    update: UpdateKind,
    task: str,
    point: Array,
) -> Selection:
    """A job that no model chose."""
    cost = cost_model(task, problem, observations.durations, rng).at(point[None])
    clock.decided(update)
    return Selection(task, point, float(cost[0]), update, {"total": clock.now() - begin})


def _rungs(given: _Given) -> list[tuple[str, Callable[[], tuple[State, Selection]]]]:
    """The ways to a selection, in the order in which they are tried."""
    full = model_rungs(given.settings.model, partial(_by_full_update, given))
    if given.state.update is None:
        return full
    last = ("last model", partial(_by_partial_update, given, given.state.update))
    settings, version = given.settings, given.observations.version
    due = full_is_due(settings.rationality, given.state, version, given.clock.now())
    return [*full, last] if due else [last, *full]


def _by_full_update(given: _Given, model: Model) -> tuple[State, Selection]:
    observations, clock = given.observations, given.clock
    stopwatch = Stopwatch(clock)
    version = observations.version
    fit = fitted(given.modelled, given.settings, model, given.state, version, clock)
    update = full_update(
        given.modelled,
        given.settings,
        fit,
        observations,
        given.rng,
        stopwatch,
        fitted_before=fit is given.state.fit,
    )
    measured = near_points(given.modelled.stated, observations.history, 3)
    near = np.vstack([update.incumbent.point[None], measured])
    selection = _select(given, update, near, FINE, stopwatch, "full")
    full = FullUpdate(
        observations.jobs,
        version,
        fit.start,
        fit.surrogate.hyperparameters(),
        ended=clock.now(),
        seconds=selection.stage_seconds["total"],
    )
    return State(full, fit, update), selection


def _by_partial_update(given: _Given, last: Update) -> tuple[State, Selection]:
    stopwatch = Stopwatch(given.clock)
    update = partial_update(
        given.modelled, given.settings, last, given.observations, given.rng, stopwatch
    )
    near = update.incumbent.point[None]
    selection = _select(given, update, near, COARSE, stopwatch, "partial")
    return replace(given.state, update=update), selection


def _select(
    given: _Given,
    update: Update,
    near: Array,
    effort: Effort,
    stopwatch: Stopwatch,
    kind: UpdateKind,
) -> Selection:
    """The best job of all competing tasks, and what the best of each is worth."""
    problem, acq_function = given.modelled.problem, update.acq_function
    competitors = [
        Competitor(task, _weights(given, task), update.costs[task], _chance(given, update, task))
        for task in given.competing
    ]
    found = maximise(acq_function, competitors, problem.space, near, given.rng, effort)
    found = [each for each in found if not math.isnan(each.score)]
    if not found:
        raise FloatingPointError("the acquisition function is not a number anywhere")
    best = max(found, key=lambda each: (each.score, -each.cost, -_measured(given, each)))
    given.clock.decided(kind)
    stopwatch.lap("maximise")
    bits, unit = {}, 1.0
    if acq_function.in_nats:
        unit = math.log(2)
        gains = in_bits(acq_function, problem, best.point)
        measures = problem.tasks[best.task].measures
        bits = {name: float(gains[name][0]) for name in measures if name in gains}
    scores = {each.task: each.score / unit for each in found}
    return Selection(best.task, best.point, best.cost, kind, stopwatch.stop(), bits, scores)


def _weights(given: _Given, task: str) -> Array:
    """(S,) which shares of the acquisition function a task is worth."""
    if not given.settings.acquisition.supports_decoupled:
        return np.ones(1)
    problem = given.modelled.problem
    return np.array([float(name in problem.tasks[task].measures) for name in problem.functions])


def _chance(given: _Given, update: Update, task: str) -> Chance | None:
    """How likely a task is to work, if it has failed before."""
    name = given.modelled.crashes.get(task)
    return None if name is None else Chance(update.imagined.functions[name])


def _measured(given: _Given, best: BestJob) -> int:
    """How often what a task measures was measured: of equals, the least known is chosen."""
    measures = given.modelled.problem.tasks[best.task].measures
    return sum(len(given.modelled.data[name]) for name in measures)


def in_bits(acq_function: AcquisitionFunction, problem: Problem, x: Array) -> dict[str, Array]:
    """(n, D) or (D,) -> the gain of each function that can be measured, (n,) each."""
    gains = acq_function.contributions(np.atleast_2d(x)) / math.log(2)
    return {
        name: gains[:, index]
        for index, name in enumerate(problem.functions)
        if name not in problem.known
    }


@single_threaded
def remake(
    problem: Problem,
    settings: Settings,
    state: State,
    observations: Observations,
    update: UpdateKind,
    rng: np.random.Generator,
    clock: Clock,
) -> State:
    """The state that a decision left which was made before, or elsewhere: its update made again,
    without selecting anything. Of a full one, `state.full` is its own."""
    given = modelled(problem, observations)
    state = state.about(given.problem)
    last = state.update

    def fully(model: Model) -> State:
        fit = fitted(given, settings, model, state, observations.version, clock)
        made = full_update(given, settings, fit, observations, rng, Stopwatch(clock), True)
        return State(state.full, fit, made)

    def partially(last: Update) -> State:
        again = partial_update(given, settings, last, observations, rng, Stopwatch(clock))
        return replace(state, update=again)

    rungs = model_rungs(settings.model, fully)
    if update != "full" and last is not None:
        rungs = [("last model", partial(partially, last)), *rungs]
    return first_that_works(rungs)[0] or state
