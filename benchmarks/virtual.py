"""Tasks on a virtual clock: methods that split a problem differently, looked at on the way.

Gaps are those of the recommendation; one that is not feasible has the gap of the worst value in the
box.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from calamint import Model, Optimizer, Task
from calamint.acquire import PESC, Acquisition
from calamint.decide import SimulatedJob, VirtualClock, simulate
from calamint.testbed import CLASSIC, SolvedProblem, gp_prior
from starts import starting_points

STARTS = 3


@dataclass(frozen=True)
class Method:
    """A way to split a problem into tasks, and to decide.

    Attributes:
        tasks: The tasks of the problem.
        resources: What they run on.
        durations: Seconds of each task.
        rationality: γ, or "batch".
        deciding: Seconds of a decision, by its update; None: what it really takes.
        acquisition: How to decide.
        condition_on_pending: Whether a decision knows of the jobs that are running.
        refit: Whether a recommendation learns hyper-parameters anew.
        model: Instead of the experiment's.
    """

    tasks: Mapping[str, Task]
    resources: Mapping[str, int]
    durations: Mapping[str, float]
    rationality: float | Literal["batch"] = math.inf
    deciding: Mapping[str, float] | None = field(default_factory=dict)
    acquisition: Acquisition = field(default_factory=PESC)
    condition_on_pending: bool = True
    refit: bool = False
    model: Model | None = None


@dataclass(frozen=True)
class Experiment:
    """Methods on the same problems, looked at after so many measurements, or seconds."""

    solved: Callable[[int], SolvedProblem]
    methods: Mapping[str, Method]
    by: Literal["evaluations", "seconds"]
    at: tuple[float, ...]
    delta: float
    model: Model = field(default_factory=lambda: Model(transform="none"))


@dataclass(frozen=True)
class Row:
    """A repetition at one of the moments it is looked at.

    Attributes:
        counts: Measurements by function (JSON).
        busy: Seconds by task (JSON).
        full: Seconds spent on full updates; `fulls` is how many there were.
        partial: Seconds spent on partial updates; `partials` is how many there were.
    """

    experiment: str
    method: str
    seed: int
    at: float
    time: float
    gap: float
    feasible: bool
    active: bool
    counts: str
    busy: str
    full: float
    partial: float
    fulls: int
    partials: int

    @property
    def key(self) -> tuple[str, str, int, float]:
        return self.experiment, self.method, self.seed, self.at

    def count(self, function: str) -> int:
        """How often a function was measured."""
        return int(json.loads(self.counts)[function])

    def seconds(self, task: str) -> float:
        """How long a task was run."""
        return float(json.loads(self.busy)[task])


def toy(seed: int) -> SolvedProblem:  # noqa: ARG001 - the same problem for every seed
    return CLASSIC["toy"]()


def prior_2d(seed: int) -> SolvedProblem:
    return gp_prior(2, seed)


def apart(resource: str, *names: str) -> dict[str, Task]:
    """A task for every function, all on one resource."""
    return {name: Task(measures=[name], runs_on=resource) for name in names}


def repetition(name: str, experiment: Experiment, way: str, seed: int) -> list[Row]:
    """Run one method on one problem, and look at it when it is time."""
    method = experiment.methods[way]
    solved = experiment.solved(seed)
    problem = solved.problem.changed(tasks=method.tasks, resources=method.resources)
    clock = VirtualClock(method.deciding)
    optimizer = Optimizer(
        problem,
        method.acquisition,
        method.model or experiment.model,
        seed=seed,
        initial=0,
        delta=experiment.delta,
        rationality=method.rationality,
        clock=clock,
    )
    noise = np.random.default_rng([seed, 1])
    for params in starting_points(solved, seed, STARTS):
        optimizer.add(params, solved.measure(params, noise))
    counts = Counter(dict.fromkeys(problem.functions, STARTS))
    busy = dict.fromkeys(problem.tasks, 0.0)
    measured = STARTS * len(problem.functions)

    def measure(task: str, params: Mapping[str, object]) -> dict[str, float]:
        values = solved.measure(params, noise)
        return {function: values[function] for function in problem.tasks[task].measures}

    def look(at: float) -> Row:
        answering = _learnt_anew(optimizer) if method.refit else optimizer
        params = answering.recommend().params
        spent = {"full": 0.0, "partial": 0.0}
        made = Counter(decision.update for decision in optimizer.decisions)
        for decision in optimizer.decisions:
            if decision.update in spent:
                spent[decision.update] += decision.stage_seconds["total"]
        return Row(
            experiment=name,
            method=way,
            seed=seed,
            at=at,
            time=round(clock.now(), 3),
            gap=solved.gap(params, tolerance=1e-6),
            feasible=solved.feasible(params, tolerance=1e-6),
            active=is_active(solved),
            counts=json.dumps(counts),
            busy=json.dumps({task: round(seconds, 4) for task, seconds in busy.items()}),
            full=round(spent["full"], 3),
            partial=round(spent["partial"], 3),
            fulls=made["full"],
            partials=made["partial"],
        )

    moments = iter(experiment.at)
    due = next(moments)
    rows = []
    seconds = experiment.at[-1] if experiment.by == "seconds" else math.inf
    run = (
        simulate(optimizer, measure, method.durations, seconds=seconds)
        if method.condition_on_pending
        else _forgetful(optimizer, measure)
    )
    for ran in run:
        counts.update(ran.values.keys())
        busy[ran.job.task] += ran.ended - ran.started
        measured += len(ran.values)
        while (measured if experiment.by == "evaluations" else ran.ended) >= due:
            rows.append(look(due))
            due = next(moments, math.inf)
        if due == math.inf:
            break
    else:
        rows += [look(at) for at in experiment.at if at >= due]
    return rows


def _forgetful(
    optimizer: Optimizer, measure: Callable[[str, Mapping[str, object]], dict[str, float]]
) -> Iterator[SimulatedJob]:
    """Rounds in which every task is asked for as if no other were running."""
    while True:
        jobs = []
        for task in optimizer.problem.tasks:
            job = optimizer.ask(task=task)
            assert job is not None
            optimizer.cancel(job)
            jobs.append(job)
        for job in jobs:
            values = measure(job.task, job.params)
            optimizer.add(job.params, values)
            yield SimulatedJob(job, values, 0.0, 0.0)


def _learnt_anew(optimizer: Optimizer) -> Optimizer:
    """An optimiser with the same data that never decided."""
    fresh = Optimizer.with_settings(optimizer.problem, optimizer.settings)
    for record in optimizer.history:
        fresh.add(record.params, record.values)
    return fresh


def is_active(solved: SolvedProblem) -> bool:
    """Whether a limit is met exactly at the solution."""
    values = solved.evaluate(solved.solution)
    return any(
        min(values[limit.name] - limit.low, limit.high - values[limit.name]) < 1e-4
        for limit in solved.problem.constraints
    )


def mean(numbers: Iterable[float]) -> float:
    return float(np.mean(list(numbers)))
