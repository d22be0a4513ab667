"""A study on a server: the verbs of `Study` over HTTP."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, final, overload

import numpy as np

from calamint.arrays import Array
from calamint.checks import check_integer, did_you_mean, finite
from calamint.decide import Prediction, Recommendation, Record, Value, parse_seconds
from calamint.errors import ProblemError, ResultError, StorageError, UnknownJobError
from calamint.html import as_table
from calamint.problem import Problem
from calamint.run.ask import check_lease
from calamint.run.client import Client
from calamint.run.jobs import AttemptRecord, Cause, Job, JobRecord, listed_jobs
from calamint.run.messages import (
    change_from_json,
    from_json,
    job_from_json,
    pages_of,
    prediction_from_json,
    recommendation_from_json,
    record_from_json,
    rows_to_json,
    summary_from_json,
    values_to_json,
)
from calamint.run.read_table import Extra, Imported, rows_to_add
from calamint.run.store import Pausable, ProblemChange
from calamint.run.summary import Summary
from calamint.run.tables import as_dataframe, rows_of, write_table

_PAGE = 1000


def connect(
    url: str, token: str | None = None, study: str | None = None, patience: float = 60.0
) -> "RemoteStudy":
    """A study on a server that `calamint serve` started.

    Args:
        url: Of the server, such as "http://127.0.0.1:8000".
        token: What `calamint token create` printed, if the server asks for one.
        study: The name of the study; without it, the server must have exactly one.
        patience: Seconds for which a request is made again while the server cannot be reached; each
            takes effect exactly once. The time that a server takes to answer does not count: it has
            ten minutes, as decisions may take long.

    Raises:
        StorageError: If the server cannot be reached, is none, or has no such study.
        AccessError: If the token does not allow it.
    """
    client = Client(url, token, patience)
    known = client.studies()
    names = [each["name"] for each in known]
    if study is None and len(known) != 1:
        listed = ", ".join(map(repr, names))
        what = f"has {len(known)} studies: give the name of one, {listed}" if known else "has none"
        raise StorageError(f"server {client.url} {what}.")
    wanted = names[0] if study is None else study
    if wanted not in names:
        close = did_you_mean(str(wanted), names) if names else "it has none."
        raise StorageError(f"server {client.url} has no study {wanted!r}: {close}")
    found = known[names.index(wanted)]
    return RemoteStudy(client, found["id"], found["uid"], found["name"])


@final
class RemoteStudy:
    """A study on a server, with the verbs of `Study`; `connect` finds one.

    Every request is made again, if it must be, and has its effect once. It can be pickled, with its
    token, and sent to other processes.
    """

    def __init__(self, client: Client, number: int, uid: str, name: str) -> None:
        """number: its id on the server; uid: what no other study has"""
        self.name, self.uid = name, uid
        self._client, self._path = client, f"/studies/{number}"

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r} on {self._client.url}>"

    def __str__(self) -> str:
        found = self.summary()
        ended = ", ".join(f"{n} by {task}" for task, n in found.evaluations.items())
        return f"Study {self.name!r} on {self._client.url}: evaluations {ended}"

    def _repr_html_(self) -> str:
        return as_table(f"Study {self.name} on {self._client.url}", self.summary().evaluations)

    def _get(self, path: str, /, *needed: str, **query: Any) -> Any:
        return self._client.get(f"{self._path}{path}", *needed, **query)

    def _post(self, path: str, /, *needed: str, **content: Any) -> Any:
        given = {key: value for key, value in content.items() if value is not None}
        return self._client.post(f"{self._path}{path}", given, *needed)

    # -- asking -------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
        n: None = None,
        wait: float = 0.0,
    ) -> Job | None: ...

    @overload
    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
        *,
        n: int,
    ) -> list[Job]: ...

    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
        n: int | None = None,
        wait: float = 0.0,
    ) -> Job | list[Job] | None:
        """Book the next job, or the next n, as `Study.ask`.

        Args:
            resource: Let tasks compete for this resource.
            task: Consider only this task.
            lease: The job is tried again after this many seconds without `renew`.
            confirm: Confirm the recommendation first, if it is not yet.
            n: How many jobs to book, whatever the capacity.
            wait: Seconds to wait until something can start.

        Returns:
            The job, with its resources booked; None while nothing can start. With n, a list.
        """
        if lease is not None:
            check_lease(lease)
        if n is not None:
            check_integer(n, "n", 1)
        seconds = finite(wait)
        if seconds is None or not 0 <= seconds <= 3600:
            raise ProblemError(f"wait is {wait!r}: write a number of seconds from 0 to 3600.")
        given = {"resource": resource, "task": task, "lease": lease, "n": n}
        needed = "job" if n is None else "jobs"
        found = self._post("/ask", needed, **given, confirm=confirm, wait=seconds)[needed]
        if n is not None:
            return [job_from_json(each) for each in found]
        return None if found is None else job_from_json(found)

    def ask_all(self, lease: float | None = None) -> list[Job]:
        """Jobs for all free capacity."""
        return list(iter(lambda: self.ask(lease=lease), None))

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self,
        job: Job | int,
        values: Mapping[str, Value],
        seconds: float | None = None,
        params: Mapping[str, Any] | None = None,
        more: bool = False,
    ) -> bool:
        """Report what a job measured, as `Study.tell`; the result is durable when this returns.

        Args:
            job: What `ask` returned, or its number.
            values: A number for each function, or (value, standard error).
            seconds: How long the job ran; the time since it was asked for by default.
            params: Parameters that were not exactly as suggested, as they really were.
            more: The functions that are left out will follow, by `complete`.

        Returns:
            False if the job had already ended; the result is then stored but not used.
        """
        took = parse_seconds(seconds)
        given = {"values": values_to_json(values), "seconds": took, "params": params, "more": more}
        return bool(self._of(job, "tell", "used", **given)["used"])

    def fail(self, job: Job | int, reason: str, cause: Cause = "crashed") -> None:
        """Report that a job ended without a result, as `Study.fail`."""
        self._of(job, "fail", reason=str(reason), cause=cause)

    def cancel(self, job: Job | int) -> None:
        """Cancel a job and free its resources."""
        self._of(job, "cancel")

    def release(self, job: Job | int) -> None:
        """Try a job again that is held, because its attempts were lost too often in a row."""
        self._of(job, "release")

    def renew(self, jobs: Iterable[Job], lease: float) -> list[Job]:
        """Renew the leases of jobs, for `lease` seconds from now; those that could not be."""
        check_lease(lease)
        given = listed_jobs(jobs)
        lost = [not self._of(job, "renew", "renewed", lease=lease)["renewed"] for job in given]
        return [job for job, is_lost in zip(given, lost, strict=True) if is_lost]

    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """Queue a job; queued jobs run before suggested ones. Returns its number."""
        return int(self._post("/enqueue", "job", task=task, params=params)["job"])

    def add(
        self, params: Mapping[str, Any], values: Mapping[str, Value], outside: bool = False
    ) -> None:
        """Add existing measurements of some or all functions at one input."""
        self.add_all([(params, values)], outside)

    def add_all(
        self,
        rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]],
        outside: bool = False,
        notes: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add many existing measurements, as `Study.add_all`; at most 10,000 rows, and a megabyte,
        at a time."""
        self._post("/add", "done", rows=rows_to_json(rows, notes), outside=outside)

    def add_table(
        self, table: Any, extra: Extra = "refuse", again: bool = False, outside: bool = False
    ) -> Imported:
        """Add measurements from a CSV, Excel or JSON file, a DataFrame or a list of dicts, as
        `Study.add_table`."""
        history = () if again else self.history
        rows, report = rows_to_add(self.problem, table, extra, history, outside)
        if rows:
            measured = [
                (
                    params,
                    {name: v if sem is None else (v, sem) for name, (v, sem) in values.items()},
                )
                for params, values, _ in rows
            ]
            self.add_all(measured, outside, [notes for *_, notes in rows])
        return report

    def _of(self, job: Job | int, verb: str, needed: str = "done", /, **content: Any) -> Any:
        """A request about a job, or about the attempt at it that somebody has."""
        if isinstance(job, Job):
            if job.study != self.uid:
                raise UnknownJobError(
                    f"job {job.number} does not belong to this study: nothing was changed."
                )
            path = f"/jobs/{job.number}/{verb}"
            return self._post(path, needed, attempt=job.attempt, **content)
        if not isinstance(job, int) or isinstance(job, bool):
            raise ResultError(f"job is {job!r}: write what ask() returned, or its number.")
        return self._post(f"/jobs/{job}/{verb}", needed, **content)

    # -- correcting and changing --------------------------------------------------------------

    def amend(
        self,
        job: Job | int,
        values: Mapping[str, Value] | None = None,
        params: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> None:
        """Replace values that were told, or the input at which they were measured, as
        `Study.amend`."""
        given = None if values is None else values_to_json(values)
        self._of(job, "amend", values=given, params=params, reason=str(reason))

    def complete(self, job: Job | int, values: Mapping[str, Value], more: bool = False) -> None:
        """Tell values that arrive later, of functions that were left out or failed."""
        self._of(job, "complete", values=values_to_json(values), more=more)

    def withdraw(self, job: Job | int, reason: str) -> None:
        """Take back a result or a failure, with all that it taught."""
        self._of(job, "withdraw", reason=str(reason))

    def forgive(self, job: Job | int) -> None:
        """Take back a failure that was not the input's fault, with what it taught."""
        self._of(job, "forgive")

    def restore(self, job: Job | int) -> None:
        """Take back all corrections of a job: its result is what was first told."""
        self._of(job, "restore")

    def change(self, problem: Problem, reason: str = "") -> list[str]:
        """Go on with another problem, as `Study.change`; what changed, in words."""
        given = {"problem": problem.to_content(), "reason": str(reason)}
        return list(self._post("/change", "differences", **given)["differences"])

    def pause(self, task: str | None = None, resource: str | None = None, reason: str = "") -> None:
        """Start no more jobs of a task, or on a resource, until `resume`; those that run end."""
        self._post("/pause", "done", task=task, resource=resource, reason=str(reason))

    def resume(self, task: str | None = None, resource: str | None = None) -> None:
        """Start jobs again of a task, or on a resource, that was paused."""
        self._post("/resume", "done", task=task, resource=resource)

    # -- looking ------------------------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        """The problem as it is now; functions that it names must not be needed here."""
        return Problem.from_content(self._get("", "problem")["problem"])

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, as `Study.recommend`."""
        return recommendation_from_json(self._post("/recommend", "params", delta=delta, kind=kind))

    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, standard deviation and probability of meeting the limits at one input."""
        return prediction_from_json(self._post("/predict", "functions", params=params))

    def gains(self, points: Any) -> dict[str, Array]:
        """The bits that measuring each function would be expected to yield about the optimum.

        Args:
            points: A list of dicts of parameter values, or a DataFrame.
        """
        records = points.to_dict("records") if hasattr(points, "to_dict") else points
        if isinstance(records, Mapping) or not isinstance(records, list | tuple):
            raise ProblemError(
                f"points is {points!r}: write a list of parameter dicts, or a DataFrame."
            )
        found = [self._post("/gains", "bits", points=page)["bits"] for page in pages_of(records)]
        return {
            name: np.concatenate([np.array(bits[name], dtype=float) for bits in found])
            for name in found[0]
        }

    @property
    def history(self) -> list[Record]:
        """What was measured, in the order in which it was told."""
        problem = self.problem
        return [record_from_json(each, problem) for each in self._pages("/history", "records")]

    @property
    def jobs(self) -> list[JobRecord]:
        """All jobs, with their states and what they measured."""
        return [from_json(JobRecord, each) for each in self._pages("/jobs", "jobs")]

    def _pages(self, path: str, what: str) -> list[Any]:
        found: list[Any] = []
        while True:
            page = self._get(path, what, "total", offset=len(found), limit=_PAGE)
            found += page[what]
            if len(found) >= page["total"] or not page[what]:
                return found

    def attempts(self) -> list[AttemptRecord]:
        """Attempts that run, oldest first."""
        found = self._get("/attempts", "attempts")["attempts"]
        return [from_json(AttemptRecord, each) for each in found]

    def occupied(self) -> dict[str, list[int]]:
        """The jobs that run on each resource, by number."""
        found: dict[str, list[int]] = {}
        for attempt in self.attempts():
            for resource in attempt.resources:
                found.setdefault(resource, []).append(attempt.job)
        return found

    def summary(self) -> Summary:
        """The progress of the study."""
        return summary_from_json(self._get("/summary", "evaluations"))

    @property
    def changes(self) -> list[ProblemChange]:
        """All changes of the problem, oldest first: what, who, when and why."""
        return [change_from_json(each) for each in self._get("/changes", "changes")["changes"]]

    @property
    def paused(self) -> dict[Pausable, list[str]]:
        """Tasks and resources that are paused."""
        found: dict[Pausable, list[str]] = self._get("", "paused")["paused"]
        return found

    def table(self) -> list[dict[str, Any]]:
        """What was measured, a row for each finished job."""
        return rows_of(self.problem, self.history)

    def to_csv(self, path: str | Path) -> None:
        """Write what was measured, a row for each finished job; `add_table` reads it."""
        write_table(self.problem, self.table(), path)

    def to_pandas(self) -> Any:
        """What was measured as a DataFrame, a row for each finished job."""
        return as_dataframe(self.problem, self.table())
