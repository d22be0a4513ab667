"""Deciding while jobs run, for rationality "overlap".

As soon as a job is booked, a full update can be made of what is known by then. When a place is
free, the decision is a partial update of that, with what was told meanwhile; if nothing was, it is
decided as after any full update. What is decided does not depend on whether there was time to
prepare it: a full update that was not made before is made then.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from calamint.decide.blas_threads import single_threaded
from calamint.decide.clock import Clock
from calamint.decide.design import initial_task
from calamint.decide.failures import ModelledProblem, add_success_constraints
from calamint.decide.fallback import first_success
from calamint.decide.observations import Observations
from calamint.decide.settings import Settings
from calamint.decide.state import FullUpdate, State
from calamint.decide.update import Stopwatch, fitted, full_update, model_attempts
from calamint.model import Model
from calamint.problem import Problem
from calamint.threads import worker_threads


@single_threaded
def prepare(problem: Problem, settings: Settings, state: State, clock: Clock) -> State:
    """The state with a full update of what was known when the last job was booked, if anything was
    learnt between the last full update and then; the next decision goes on from it."""
    base = state.booked
    if base is None or not settings.acquisition.uses_model:
        return state
    if initial_task(problem, base, list(problem.tasks), settings.initial_for(problem)) is not None:
        return state
    modelled = add_success_constraints(problem, base)
    last = state.compatible_with(modelled.problem)
    if last.full is not None and last.update is not None and base.version <= last.full.version:
        return last
    attempts = model_attempts(
        settings.model, partial(_prepared, modelled, settings, last, base, clock)
    )
    with worker_threads(settings.threads_for(modelled.measurements)):
        found, _ = first_success(attempts)
    return found or state


def _prepared(
    modelled: ModelledProblem,
    settings: Settings,
    state: State,
    base: Observations,
    clock: Clock,
    model: Model,
) -> State:
    begin = clock.now()
    fit = fitted(modelled, settings, model, state, base.version, clock)
    rng = np.random.default_rng([settings.seed, base.jobs, 2])
    before = fit is state.fit
    update = full_update(modelled, settings, fit, base, rng, Stopwatch(clock), fitted_before=before)
    full = FullUpdate(
        base.jobs,
        base.version,
        fit.start,
        fit.surrogate.hyperparameters(),
        ended=clock.now(),
        seconds=clock.now() - begin,
        prepared=True,
        is_new=True,
    )
    return replace(state, full=full, fit=fit, update=update)
