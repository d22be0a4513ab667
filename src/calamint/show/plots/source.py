"""What plots are made of: the evaluations of a study or an optimiser, in order, and its model."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, final

from calamint.decide import (
    MeasuredInput,
    Optimizer,
    Query,
    Recommendation,
    input_key,
    measured_inputs,
)
from calamint.errors import ProblemError
from calamint.problem import Params, Problem
from calamint.run import AttemptRecord, JobRecord, StudyView
from calamint.show.plots.plot import Plot
from calamint.show.plots.style import Status

P = ParamSpec("P")
# Measurements of a function; a prediction takes time in proportion to their square.
_LARGE = 300
_ROUNDING = 1e-6
# Between the smallest and the largest value on a logarithmic axis.
_FACTOR = 30.0


@final
@dataclass(frozen=True)
class Evaluation:
    """A job that ended or is pending, or an added measurement.

    Attributes:
        number: That of the job; None for an added measurement.
        task: None for an added measurement.
        values: What was measured, by function.
        status: Of its input, from everything that was measured there; or "failed" or "pending" if
            the job measured nothing.
        ended: Seconds since the study began; None while pending, and if nothing is known of time.
        cost: Of all evaluations up to this one; None if that is not known.
        reason: Why it failed.
        failed: Whether the job failed, though it may have measured something.
        sem: Standard errors that were told, by function.
    """

    number: int | None
    task: str | None
    params: Params
    values: dict[str, float]
    status: Status
    ended: float | None = None
    cost: float | None = None
    reason: str = ""
    failed: bool = False
    sem: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        if self.number is None:
            return f"added measurement, {self.status}"
        return f"job {self.number}: {self.task}, {self.status}"


@final
@dataclass(frozen=True)
class Source:
    """A study or an optimiser, as plots see it.

    Attributes:
        study: None if it is an optimiser, of whose jobs nothing is stored.
        evaluations: In the order in which they ended.
        pending: Evaluations that have not ended.
        jobs: Those of a study.
        attempts: At these jobs.
        began: When the first job was created, in seconds since 1970.
    """

    optimizer: Optimizer
    study: StudyView | None
    evaluations: Sequence[Evaluation]
    pending: Sequence[Evaluation]
    jobs: Sequence[JobRecord]
    attempts: Sequence[AttemptRecord]
    began: float

    @property
    def problem(self) -> Problem:
        return self.optimizer.problem

    @property
    def history_is_empty(self) -> bool:
        return not self.optimizer.observations.history

    @cached_property
    def query(self) -> Query:
        """All that is known, with the model fitted to it."""
        return self.optimizer.query()

    @cached_property
    def recommendation(self) -> Recommendation:
        return self.query.recommend(self.optimizer.settings.delta, "believed")

    @cached_property
    def measured(self) -> list[MeasuredInput]:
        """What was measured at each input."""
        return list(measured_inputs(self.problem, self.optimizer.history).values())

    @cached_property
    def smallest_on_log_scale(self) -> dict[str, float]:
        """The smallest measurement of every function that is best drawn on a logarithmic axis: its
        values differ by factors, and neither they nor its limits are zero or negative."""
        found = {}
        for name in self.problem.functions:
            values = [each.values[name] for each in self.evaluations if name in each.values]
            limits = [limit for limit in self.problem.limits_of(name) if math.isfinite(limit)]
            if values and min(values + limits) > 0 and max(values) >= _FACTOR * min(values):
                found[name] = min(values)
        return found

    def matters(self, improvement: float) -> bool:
        """Whether the objective is better by more than rounding, as it was measured to vary."""
        name = self.problem.objective.name
        values = [each.values[name] for each in self.evaluations if name in each.values]
        return improvement > _ROUNDING * (max(values) - min(values) if values else 0.0)

    @property
    def is_large(self) -> bool:
        """Whether predictions take so long that fewer of them must do."""
        return self.query.modelled.measurements > _LARGE

    def needs_study(self, what: str) -> StudyView:
        if self.study is None:
            raise ProblemError(
                f"{what} needs a study, whose jobs are stored, and was given an optimizer."
            )
        return self.study


def read_source(thing: object) -> Source:
    """What a study, an optimiser or a source is made of.

    Raises:
        ProblemError: If it is none of these.
    """
    if isinstance(thing, Source):
        return thing
    if isinstance(thing, StudyView):
        return _of_study(thing)
    if isinstance(thing, Optimizer):
        return _of_optimizer(thing)
    raise ProblemError(f"study is {thing!r}: write a Study or an Optimizer.")


def plot(
    make: Callable[Concatenate[Source, P], Plot],
) -> Callable[Concatenate[object, P], Plot]:
    """A plot of a source, made to take a study or an optimiser."""

    @wraps(make)
    def of_study(study: object, *args: P.args, **options: P.kwargs) -> Plot:
        return make(read_source(study), *args, **options)

    return of_study  # type: ignore[return-value]


def _of_study(study: StudyView) -> Source:
    optimizer, jobs = study.optimizer, study.jobs
    # A job may have started since its study was read.
    known: dict[int | None, JobRecord] = {job.number: job for job in jobs}
    attempts = [each for each in study.attempts(running=False) if each.job in known]
    began = min((job.created for job in jobs), default=0.0)
    moments: list[tuple[float, Evaluation]] = []
    moment = 0.0
    for each in _measured(optimizer, _statuses(optimizer)):
        job = known.get(each.number)
        if job is not None and job.ended is not None:
            moment = job.ended - began  # else that of the job before
        moments.append((moment, each))
    seen = {each.number for _, each in moments}
    moments += [
        (
            (job.ended or job.created) - began,
            Evaluation(job.number, job.task, job.params, {}, "failed", failed=True),
        )
        for job in jobs
        if job.state == "failed" and job.number not in seen
    ]
    spent, evaluations = 0.0, []
    for moment, each in sorted(moments, key=lambda pair: pair[0]):
        job = known.get(each.number)
        if job is not None:
            spent += job.predicted_cost or 0.0
            each = replace(
                each, task=job.task, reason=job.reason or "", failed=job.state == "failed"
            )
        evaluations.append(replace(each, ended=moment, cost=spent))
    pending = [
        Evaluation(job.number, job.task, job.params, {}, "pending")
        for job in jobs
        if job.state in ("waiting", "running", "held")
    ]
    return Source(optimizer, study, evaluations, pending, jobs, attempts, began)


def _of_optimizer(optimizer: Optimizer) -> Source:
    ended = _measured(optimizer, _statuses(optimizer))
    failed = {job.number: reason for job, reason in optimizer.failures}
    ended = [
        replace(each, failed=True, reason=failed[each.number]) if each.number in failed else each
        for each in ended
    ]
    seen = {each.number for each in ended}
    for job, reason in optimizer.failures:
        if job.number not in seen:
            lost = Evaluation(
                job.number, job.task, job.params, {}, "failed", reason=reason, failed=True
            )
            # Before the first job that was decided later.
            place = next(
                (i for i, e in enumerate(ended) if e.number is not None and e.number > job.number),
                len(ended),
            )
            ended.insert(place, lost)
    pending = [
        Evaluation(job.number, job.task, job.params, {}, "pending") for job in optimizer.pending
    ]
    return Source(optimizer, None, ended, pending, [], [], 0.0)


def _measured(optimizer: Optimizer, status: Callable[[Params], Status]) -> list[Evaluation]:
    """Jobs that measured something, and what was added, in order; parts of a job are joined."""
    found: list[Evaluation] = []
    places: dict[int, int] = {}
    for record in optimizer.history:
        if record.job is not None and record.job in places:
            first = found[places[record.job]]
            joined = {**first.values, **record.values}
            found[places[record.job]] = replace(
                first, values=joined, sem={**first.sem, **record.sem}
            )
            continue
        if record.job is not None:
            places[record.job] = len(found)
        found.append(
            Evaluation(
                record.job,
                record.task,
                record.params,
                record.values,
                status(record.params),
                sem=record.sem,
            )
        )
    return found


def _statuses(optimizer: Optimizer) -> Callable[[Params], Status]:
    problem = optimizer.problem
    joined = measured_inputs(problem, optimizer.history)

    def status(params: Params) -> Status:
        here = joined.get(input_key(params))
        # None is out of bounds that were narrowed since.
        return "unconfirmed" if here is None else status_of(problem, here)

    return status


def status_of(problem: Problem, here: MeasuredInput) -> Status:
    """What is known of an input, from everything that was measured there."""
    if here.violates(problem):
        return "infeasible"
    return "feasible" if here.confirmed(problem) else "unconfirmed"
