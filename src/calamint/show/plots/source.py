"""What plots are made of: the evaluations of a study or an optimiser, in order, and its model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, final

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
        status: Of its input, from everything that was measured there; or of the job.
        ended: Seconds since the study began; None while pending, and if nothing is known of time.
        cost: Of all evaluations up to this one; None if that is not known.
        reason: Why it failed.
    """

    number: int | None
    task: str | None
    params: Params
    values: dict[str, float]
    status: Status
    ended: float | None = None
    cost: float | None = None
    reason: str = ""

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
        began: When the first job was created, in seconds since 1970.
    """

    optimizer: Optimizer
    study: StudyView | None
    evaluations: Sequence[Evaluation]
    pending: Sequence[Evaluation]
    jobs: Sequence[JobRecord]
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
    def attempts(self) -> list[AttemptRecord]:
        return [] if self.study is None else self.study.attempts(running=False)

    @cached_property
    def recommendations(self) -> list[tuple[float, Recommendation]]:
        """What was recommended, and when: seconds since the study began."""
        stored = [] if self.study is None else self.study.recommendations
        return [(made - self.began, each) for made, each in stored]

    def smallest_on_log_scale(self, name: str) -> float | None:
        """The smallest measurement of a function that is best drawn on a logarithmic axis; None of
        one that is not: its values do not differ by factors, or it can be zero."""
        values = [each.values[name] for each in self.evaluations if name in each.values]
        if not values or min(values) <= 0 or max(values) < _FACTOR * min(values):
            return None
        limits = [limit for limit in self.problem.limits_of(name) if math.isfinite(limit)]
        return min(values) if all(limit > 0 for limit in limits) else None

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
    began = min((job.created for job in jobs), default=0.0)
    status = _statuses(optimizer)
    told: dict[int, dict[str, Any]] = {}
    for record in optimizer.history:
        if record.job is not None:
            known = told.setdefault(record.job, {"params": record.params, "values": {}})
            known["values"] |= record.values
    ended = [_added(record, status) for record in optimizer.history if record.job is None]
    spent = 0.0
    over = [job for job in jobs if job.state in ("done", "partial", "failed")]
    for job in sorted(over, key=lambda job: (job.ended or job.created, job.number)):
        spent += job.predicted_cost or 0.0
        known = told.get(job.number, {"params": job.params, "values": {}})
        failed = job.state == "failed" and not known["values"]
        ended.append(
            Evaluation(
                job.number,
                job.task,
                known["params"],
                known["values"],
                "failed" if failed else status(known["params"]),
                (job.ended or job.created) - began,
                spent,
                job.reason or "",
            )
        )
    pending = [
        Evaluation(job.number, job.task, job.params, {}, "pending")
        for job in jobs
        if job.state in ("waiting", "running", "held")
    ]
    return Source(optimizer, study, ended, pending, jobs, began)


def _of_optimizer(optimizer: Optimizer) -> Source:
    status = _statuses(optimizer)
    ended: list[Evaluation] = []
    measured_jobs = set()
    for record in optimizer.history:
        measured_jobs.add(record.job)
        if record.job is None:
            ended.append(_added(record, status))
        else:
            ended.append(
                Evaluation(
                    record.job, record.task, record.params, record.values, status(record.params)
                )
            )
    for job, reason in optimizer.failures:
        if job.number not in measured_jobs:
            failed = Evaluation(job.number, job.task, job.params, {}, "failed", reason=reason)
            # Before the first job that was decided later.
            place = next(
                (i for i, e in enumerate(ended) if e.number is not None and e.number > job.number),
                len(ended),
            )
            ended.insert(place, failed)
    pending = [
        Evaluation(job.number, job.task, job.params, {}, "pending") for job in optimizer.pending
    ]
    return Source(optimizer, None, ended, pending, [], 0.0)


def _added(record: Any, status: Callable[[Params], Status]) -> Evaluation:
    return Evaluation(
        None, None, record.params, record.values, status(record.params), ended=0.0, cost=0.0
    )


def _statuses(optimizer: Optimizer) -> Callable[[Params], Status]:
    problem = optimizer.problem
    joined = measured_inputs(problem, optimizer.history)

    def status(params: Params) -> Status:
        here = joined.get(input_key(params))
        if here is None:  # out of the bounds that were narrowed since
            return "unconfirmed"
        if here.violates(problem):
            return "infeasible"
        return "feasible" if here.confirmed(problem) else "unconfirmed"

    return status
