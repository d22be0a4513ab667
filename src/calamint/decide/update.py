"""Full and partial updates, and the rule that says which is due (Hernández-Lobato et al. 2016,
section 5).

A full update learns hyper-parameters, draws solutions, runs EP and maximises finely; a partial one
adds the new data to what the last one left, and maximises coarsely. With rationality level γ an
update is full when

    γ · (now − end of the last full update) > duration of the last full update

so that no more than a share γ of the time is spent on them; γ = ∞ always, γ = 0 never again.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar, final

import numpy as np

from calamint.acquire import Incumbent
from calamint.decide.clock import Clock
from calamint.decide.failures import ModelledProblem
from calamint.decide.observations import Observations
from calamint.decide.pending import and_more_pending, to_fantasize, with_pending
from calamint.decide.recommend import constrained_optimum
from calamint.decide.records import near_points
from calamint.decide.settings import Rationality, Settings
from calamint.decide.state import Fit, State, Update
from calamint.model import Model, Surrogate, cost_model, fit

T = TypeVar("T")


def full_is_due(rationality: Rationality, state: State, version: int, now: float) -> bool:
    """Whether the next update is a full one."""
    if state.full is None or state.update is None or rationality == math.inf:
        return True
    if rationality == "overlap":
        return False  # they are prepared
    if rationality == "batch":
        return version > state.full.version
    return rationality * (now - state.full.ended) > state.full.seconds


def model_attempts(
    model: Model, attempt: Callable[[Model], T]
) -> list[tuple[str, Callable[[], T]]]:
    """The first methods to try: the model that was asked for, then one estimate where many
    samples are too much."""
    simpler = replace(model, hyperparameters="map")
    models = [model] if simpler == model else [model, simpler]
    return [(f"{each.hyperparameters} model", partial(attempt, each)) for each in models]


@final
class Stopwatch:
    """How long each stage of a decision took."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.began = clock, clock.now()
        self.last = self.began
        self.seconds: dict[str, float] = {}

    def lap(self, stage: str, before: float = 0.0) -> None:
        """A stage has ended; `before` is how long a part of it had taken earlier."""
        now = self.clock.now()
        self.seconds[stage] = before + now - self.last
        self.last = now

    def stop(self) -> dict[str, float]:
        """All stages, and their total."""
        return {**self.seconds, "total": sum(self.seconds.values())}


def fitted(
    modelled: ModelledProblem,
    settings: Settings,
    model: Model,
    state: State,
    version: int,
    clock: Clock,
) -> Fit:
    """The model of all that was measured; the one of the state, if that is it.

    The random stream depends on the version of the observations only, so that queries (`predict`,
    `recommend`) never change what is suggested next.
    """
    last = state.fit
    if last is not None and last.version == version and last.model == model:
        return last
    begin, start = clock.stopwatch(), state.start(version)
    rng = np.random.default_rng([settings.seed, version, 1])
    surrogate = fit(modelled.problem, model, modelled.data, rng, start)
    return Fit(version, model, start, surrogate, clock.stopwatch() - begin)


def full_update(
    modelled: ModelledProblem,
    settings: Settings,
    fit: Fit,
    observations: Observations,
    rng: np.random.Generator,
    stopwatch: Stopwatch,
    fitted_before: bool,
) -> Update:
    """Everything anew, from a fitted model; its time counts, also if it was `fitted_before`."""
    problem = modelled.problem
    costs = {task: cost_model(task, problem, observations.durations, rng) for task in problem.tasks}
    stopwatch.lap("model", fit.seconds if fitted_before else 0.0)
    incumbent = incumbent_of(fit.surrogate, modelled, settings, observations, rng)
    stopwatch.lap("incumbent")
    pending = to_fantasize(problem, observations)
    fantasized = with_pending(fit.surrogate, pending, settings.fantasies, rng)
    acq_function = settings.acquisition.build(fantasized, incumbent, rng)
    stopwatch.lap("acquisition")
    jobs = tuple(job.number for job, _ in pending)
    version = observations.version
    return Update(fit.surrogate, version, fantasized, jobs, acq_function, incumbent, costs)


def partial_update(
    modelled: ModelledProblem,
    settings: Settings,
    last: Update,
    observations: Observations,
    rng: np.random.Generator,
    stopwatch: Stopwatch,
) -> Update:
    """What the last update left, with the new data, under the same hyper-parameters."""
    version = observations.version
    surrogate = last.surrogate
    if last.version != version:
        surrogate = surrogate.extended(modelled.data)
    costs = {task: cost.extended(observations.durations[task]) for task, cost in last.costs.items()}
    stopwatch.lap("model")
    incumbent = last.incumbent
    if settings.acquisition.uses_incumbent_value:
        incumbent = incumbent_of(surrogate, modelled, settings, observations, rng)
    stopwatch.lap("incumbent")
    pending = to_fantasize(modelled.problem, observations)
    fantasized = and_more_pending(last, version, pending)
    if fantasized is None:
        fantasized = with_pending(surrogate, pending, settings.fantasies, rng)
    acq_function = settings.acquisition.update(last.acq_function, fantasized, incumbent, rng)
    stopwatch.lap("acquisition")
    jobs = tuple(job.number for job, _ in pending)
    return Update(surrogate, version, fantasized, jobs, acq_function, incumbent, costs)


def incumbent_of(
    surrogate: Surrogate,
    modelled: ModelledProblem,
    settings: Settings,
    observations: Observations,
    rng: np.random.Generator,
    exactly: bool | None = None,
) -> Incumbent:
    """The best point so far; to the last digit if the acquisition compares with its objective."""
    near = near_points(modelled.original, observations.history)
    fine = settings.acquisition.uses_incumbent_value if exactly is None else exactly
    optimum = constrained_optimum(surrogate, near, settings.delta, rng, fine)
    return Incumbent(optimum.point, optimum.objective if optimum.confident else None)


def fantasized_surrogate(
    surrogate: Surrogate,
    modelled: ModelledProblem,
    settings: Settings,
    observations: Observations,
    rng: np.random.Generator,
) -> Surrogate:
    """The surrogate with pending jobs fantasized as done."""
    pending = to_fantasize(modelled.problem, observations)
    return with_pending(surrogate, pending, settings.fantasies, rng)
