"""Confirming a recommendation: measuring what was not measured there yet.

A point that fails teaches the model, which moves the recommendation inward; if it does not move, a
smaller δ does. What may be noisy is measured twice, and more often where noise leaves open whether
a limit is met, also at inputs that seem better than the recommendation, but perhaps by chance.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from calamint.decide.capacity import CanStart, anywhere, available_resources
from calamint.decide.clock import Clock
from calamint.decide.decision import Selection
from calamint.decide.measured import MeasuredInput, input_key, measured_inputs
from calamint.decide.queries import Query
from calamint.decide.records import Decision, Suggestion
from calamint.decide.repeat import noise_is_possible
from calamint.model import cost_model, feasibility
from calamint.problem import Constraint, Params, Problem

_SMALLER_DELTAS = 4
_MOST_REPLICATES = 4
_NEGLIGIBLE = 1e-6  # of the objective, in standardised units

Waiting = Literal["wait"]


def tasks_to_measure_all(problem: Problem) -> int:
    """The number of tasks, chosen greedily, that together measure every function."""
    left, count = set(problem.measured), 0
    while left:
        most = max((set(task.measures) & left for task in problem.tasks.values()), key=len)
        left, count = left - most, count + 1
    return max(count, 1)


def default_confirmations(problem: Problem, evaluations: int | None) -> int:
    """Up to three, and no more than an eighth of the budget."""
    if evaluations is None:
        return 3
    return min(3, evaluations // (8 * tasks_to_measure_all(problem)))


def next_confirmation(
    query: Query,
    free: Mapping[str, int],
    clock: Clock,
    paused: Collection[str] = (),
    can_start: CanStart = anywhere,
) -> tuple[Suggestion, Decision] | Waiting | None:
    """The job that should run next to confirm the recommendation.

    Args:
        free: How many more jobs each resource can take.
        paused: Tasks that must not start.
        can_start: Whether a job on some resources could be started now.

    Returns:
        None if the recommendation is confirmed; "wait" if what is missing is pending or cannot
        start now.
    """
    begin, graph, number = clock.now(), query.modelled.original.graph, query.observations.jobs
    found = _task_and_input(query, free, paused, can_start)
    clock.decided("confirm")
    if found is None or found == "wait":
        return found
    task, params, cost = found
    resources = available_resources(graph, task, free, can_start=can_start)
    assert resources is not None
    space, seconds = query.modelled.original.space, {"total": clock.now() - begin}
    point = space.encode(params)
    selection = Selection(task, point, cost, "confirm", seconds, params=params)
    return selection.as_job(number, space, resources)


def _task_and_input(
    query: Query, free: Mapping[str, int], paused: Collection[str], can_start: CanStart
) -> tuple[str, Params, float] | Waiting | None:
    """A task, its input and its expected cost."""
    problem, observations = query.modelled.original, query.observations
    measured = measured_inputs(problem, observations.history)
    for params in _inputs(query, measured.values()):
        here = measured.get(input_key(params))
        wanted = set(problem.measured)
        if here is not None:
            unclear = _unclear(query, here)
            wanted = set(here.missing(problem)) | unclear
            if here.left_out or (here.violates(problem) and not unclear):
                continue  # it cannot be measured, or has failed
        tasks = [task for task in problem.tasks if _is_possible(query, task, params)]
        if wanted - {name for task in tasks for name in problem.tasks[task].measures}:
            continue
        if wanted:
            under_way = {
                name
                for job, names in observations.coming(problem)
                if input_key(job.params) == input_key(params)
                for name in names
            }
            ready = [
                task
                for task in tasks
                if task not in paused
                and available_resources(problem.graph, task, free, can_start=can_start) is not None
            ]
            return _most_telling(query, params, wanted - under_way, ready) or "wait"
    return None


def _is_possible(query: Query, task: str, params: Params) -> bool:
    """Whether a task has not failed at an input, or may be tried again."""
    failures = sum(
        (name, input_key(at)) == (task, input_key(params))
        for name, at in query.observations.failed_at
    )
    again = query.modelled.original.tasks[task].failures == "retry"
    return failures <= (query.settings.retries if again else 0)


def _inputs(query: Query, measured: Iterable[MeasuredInput]) -> Iterator[Params]:
    """Inputs worth confirming: the one begun, those of a good objective that is known, better ones
    that noise leaves in doubt, the recommendation, and others further inside; none if a confirmed
    one is as good."""
    problem, delta = query.modelled.original, query.settings.delta
    begun = query.observations.confirming
    if begun is not None and problem.space.contains(problem.space.encode(begun, outside=True)):
        yield begun
    recommended = query.recommend(delta, "believed").params
    expected, doubt = query.expected_objective(recommended)
    inputs = list(measured)
    yield from _known_to_be_good(query, inputs, expected + doubt)
    confirmed = [each for each in inputs if each.confirmed(problem)]
    objective, probability = query.at_measured(confirmed)
    gain = expected - objective
    for index in np.argsort(-probability * gain, kind="stable"):
        if _unclear(query, confirmed[index]):
            if gain[index] > 0:
                yield confirmed[index].params
        elif gain[index] > -_NEGLIGIBLE and probability[index] >= 1 - delta:
            return
    yield recommended
    for power in range(1, _SMALLER_DELTAS):
        yield query.recommend(delta / 4**power, "believed").params


def _known_to_be_good(
    query: Query, inputs: Sequence[MeasuredInput], worst: float
) -> Iterator[Params]:
    """Inputs that some tasks have not measured, but whose objective is known although it is rough:
    best first, if they are likely to be feasible, better than any confirmed one, and not worse than
    what the recommendation may turn out to be."""
    problem, name = query.modelled.original, query.modelled.original.objective.name
    if name not in query.exact:
        return
    known = [each for each in inputs if name in each.values and not each.violates(problem)]
    objective, probability = query.at_measured(known)
    for index in np.argsort(objective, kind="stable"):
        if objective[index] >= worst or known[index].confirmed(problem):
            return
        if probability[index] >= 1 - query.settings.delta:
            yield known[index].params


def _unclear(query: Query, here: MeasuredInput) -> set[str]:
    """Functions to measure again: those that may be noisy and were measured once, and those of
    which noise leaves open whether the limit is met."""
    problem, delta = query.modelled.original, query.settings.delta
    constraints = {constraint.name: constraint for constraint in problem.constraints}
    unclear = set()
    for name, count in here.counts.items():
        constraint = constraints.get(name)
        if count >= _MOST_REPLICATES or not _may_be_noisy(query, name, constraint):
            continue
        if count == 1:
            unclear.add(name)
        if constraint is None:
            continue
        probability = float(feasibility.probability_of(query.surrogate, name, here.point[None])[0])
        # An average that violates its limit is repeated only if that is more likely chance.
        lowest = delta if constraint.met(here.values[name]) else 0.5
        if lowest < probability < 1 - delta:
            unclear.add(name)
    return unclear


def _may_be_noisy(query: Query, name: str, constraint: Constraint | None) -> bool:
    """Whether measuring again may find something else; most tests say the same again."""
    if constraint is not None and constraint.passes is not None:
        return constraint.passes > 0.5
    return name not in query.exact and noise_is_possible(query.surrogate, name)


def _most_telling(
    query: Query, params: Params, wanted: set[str], tasks: Iterable[str]
) -> tuple[str, Params, float] | None:
    """The task most likely to find a limit violated, for its cost: that saves the others."""
    problem, durations = query.modelled.original, query.observations.durations
    point = problem.space.encode(params)[None]
    rng = np.random.default_rng([query.settings.seed, query.observations.jobs])
    constrained = {limit.name for limit in problem.constraints}
    found = {}
    for task in tasks:
        measures = wanted & set(problem.tasks[task].measures)
        if not measures:
            continue
        cost = float(cost_model(task, problem, durations, rng).value(point)[0])
        met = [
            float(feasibility.probability_of(query.surrogate, name, point)[0])
            for name in measures & constrained
        ]
        found[task] = (1 - math.prod(met)) / cost, -cost
    if not found:
        return None
    task = max(found, key=found.__getitem__)
    return task, params, -found[task][1]
