"""The API for those who work: asking for jobs, and telling what they measured."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from calamint.errors import ProblemError
from calamint.run import (
    Answered,
    Job,
    StudyEditor,
    job_details,
    job_to_json,
)
from calamint.run import Request as Asked
from calamint.show.serve import bodies
from calamint.show.serve.calls import Call, JobNumber, Managing, Working
from calamint.show.serve.strict import StrictRoute

router = APIRouter(prefix="/api/studies/{study}", route_class=StrictRoute)
# Seconds after which a wait looks again by itself: time alone ends leases and pauses.
_LOOK_AGAIN = 2.0


@router.post("/ask", tags=["working"])
async def ask(call: Working, body: bodies.Ask, request: Request) -> dict[str, Any]:
    """Book the next job: `{"job": …}`, or null while nothing can start; `{"jobs": […]}` with n."""
    call.check_resource(body.resource)
    if body.n is not None:
        parts = [await _next_job(call, body, request, part) for part in range(body.n)]
        return {"jobs": [job_to_json(job) for job in parts if job is not None]}
    until = time.monotonic() + body.wait
    while True:
        seen = call.changes.seen(call.study)
        job = await _next_job(call, body, request)
        left = until - time.monotonic()
        over = left <= 0 or call.changes.over
        if job is not None or over or await request.is_disconnected():
            return {"job": None if job is None else job_to_json(job)}
        await call.changes.after(call.study, seen, min(left, _LOOK_AGAIN))


async def _next_job(
    call: Call, body: bodies.Ask, request: Request, part: int | None = None
) -> Job | None:
    allowed = set(call.visitor.resources)
    asked = Asked(
        body.resource,
        body.task,
        body.lease,
        confirm=body.confirm,
        beyond=part is not None,
        can_start=lambda place: not allowed or set(place) <= allowed,
    )

    def decide() -> Job | None:
        call.check_again()
        study = call.hub.study(call.record).on_behalf_of(call.caller(part))
        return call.once(lambda: study.request(asked), lambda was: _given(call, was), part)

    async with call.hub.deciding(call.study):
        if await request.is_disconnected():  # a job would be booked for nobody
            return None
        return await run_in_threadpool(decide)


def _given(call: Call, was: Answered) -> Job:
    """The job that was given when it was asked for before."""
    if was.job is None or was.attempt is None:
        raise ProblemError("the idempotency key was used for what was no job.")
    replica = call.hub.editor(call.record).replica()
    job = replica.attempt(was.job, was.attempt)
    _, attempts, _ = job_details(call.hub.database, call.study, was.job)
    place = next(each.resources for each in attempts if each.number == was.attempt)
    return replace(job, resources=place, suggestion=replace(job.suggestion, resources=place))


# -- telling ----------------------------------------------------------------------------------


@router.post("/jobs/{number}/tell", tags=["working"])
def tell(call: Working, number: JobNumber, body: bodies.Tell) -> dict[str, bool]:
    """Report what a job measured; it is durable when this answers. `used` is false if the job had
    already ended: the result is then kept, and not used."""
    attempt = call.own_attempt(number, body.attempt)
    values = bodies.measured(body.values)

    def do() -> bool:
        study, job = _found(call, number, attempt)
        return study.tell(job, values, body.seconds, body.params, body.more)

    return {"used": call.once(do, lambda was: was.kind != "closed")}


def _found(call: Call, number: int, attempt: int | None) -> tuple[StudyEditor, Job | int]:
    """The study, and a job of it, or one attempt."""
    study = call.editor()
    if attempt is None:
        return study, number
    replica = study.replica()
    replica.resolve(number)  # a sentence, if there is no such job
    return study, replica.attempt(number, attempt)


def _change(
    call: Call,
    number: int,
    body: bodies.Attempt,
    do: Callable[[StudyEditor, Job | int], object],
) -> dict[str, bool]:
    attempt = call.own_attempt(number, body.attempt)
    call.once(lambda: bool(do(*_found(call, number, attempt))), lambda _: True)
    return {"done": True}


@router.post("/jobs/{number}/fail", tags=["working"])
def fail(call: Working, number: JobNumber, body: bodies.Fail) -> dict[str, bool]:
    """Report that a job ended without a result."""
    return _change(call, number, body, lambda study, job: study.fail(job, body.reason, body.cause))


@router.post("/jobs/{number}/renew", tags=["working"])
def renew(call: Working, number: JobNumber, body: bodies.Renew) -> dict[str, bool]:
    """Say that a job goes on: its lease is renewed from now. `renewed` is false if it has ended, or
    was given to others."""
    study, job = _found(call, number, call.own_attempt(number, body.attempt))
    if not isinstance(job, Job):
        study.replica().resolve(number)
        _, attempts, _ = job_details(call.hub.database, call.study, number)
        if not attempts:
            return {"renewed": False}
        job = study.replica().attempt(number, attempts[-1].number)
    return {"renewed": not study.renew([job], body.lease)}


@router.post("/jobs/{number}/cancel", tags=["working"])
def cancel(call: Working, number: JobNumber, body: bodies.Attempt) -> dict[str, bool]:
    """Cancel a job and free its resources."""
    return _change(call, number, body, lambda study, job: study.cancel(job))


@router.post("/jobs/{number}/complete", tags=["working"])
def complete(call: Working, number: JobNumber, body: bodies.Complete) -> dict[str, bool]:
    """Tell values that arrive later, of functions that were left out or failed."""
    values = bodies.measured(body.values)
    return _change(call, number, body, lambda study, job: study.complete(job, values, body.more))


# -- correcting -------------------------------------------------------------------------------


@router.post("/jobs/{number}/amend", tags=["managing"])
def amend(call: Managing, number: JobNumber, body: bodies.Amend) -> dict[str, bool]:
    """Replace values that were told, or the input at which they were measured."""
    values = None if body.values is None else bodies.measured(body.values)
    return _change(
        call, number, body, lambda study, job: study.amend(job, values, body.params, body.reason)
    )


@router.post("/jobs/{number}/withdraw", tags=["managing"])
def withdraw(call: Managing, number: JobNumber, body: bodies.Withdraw) -> dict[str, bool]:
    """Take back a result or a failure, with all that it taught."""
    return _change(call, number, body, lambda study, job: study.withdraw(job, body.reason))


@router.post("/jobs/{number}/forgive", tags=["managing"])
def forgive(call: Managing, number: JobNumber, body: bodies.Attempt) -> dict[str, bool]:
    """Take back a failure that was not the input's fault, with what it taught."""
    return _change(call, number, body, lambda study, job: study.forgive(job))


@router.post("/jobs/{number}/restore", tags=["managing"])
def restore(call: Managing, number: JobNumber, body: bodies.Attempt) -> dict[str, bool]:
    """Take back all corrections of a job."""
    return _change(call, number, body, lambda study, job: study.restore(job))


@router.post("/jobs/{number}/release", tags=["managing"])
def release(call: Managing, number: JobNumber, body: bodies.Attempt) -> dict[str, bool]:
    """Try a job again that is held."""
    return _change(call, number, body, lambda study, job: study.release(job))
