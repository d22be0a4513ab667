"""The API for those who look, and for those who manage a study."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool

from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.problem import Problem
from calamint.run import (
    JOB_STATES,
    Answered,
    JobsQuery,
    StudyRecord,
    event_page,
    job_details,
    job_page,
    paused,
    problem_changes,
    record_to_json,
    running_attempts,
    standard_errors,
    summarise,
    to_json,
)
from calamint.show.serve import bodies
from calamint.show.serve.access import Visitor
from calamint.show.serve.bodies import LARGEST_ID
from calamint.show.serve.calls import Call, JobNumber, Managing, Reading, state_of, visitor
from calamint.show.serve.strict import StrictRoute

router = APIRouter(prefix="/api", route_class=StrictRoute)
STUDY = "/studies/{study}"
# Seconds after which a wait sees whether anybody still waits.
_LOOK_AGAIN = 15.0
Offset = Annotated[int, Query(ge=0, le=LARGEST_ID)]
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/studies", tags=["looking"])
def studies(request: Request, who: Annotated[Visitor, Depends(visitor)]) -> Any:
    """All studies that the token is for."""
    only = None if who.token is None else who.token.study
    found = [each for each in state_of(request)[0].records() if only in (None, each.id)]
    return {"studies": [_listed(each) for each in found]}


def _listed(record: StudyRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "uid": record.uid,
        "name": record.name,
        "created": record.created,
        "sequence": record.sequence,
    }


@router.get(STUDY, tags=["looking"])
def study(call: Reading) -> Any:
    """A study: its problem, its settings, and what of it is paused."""
    found: dict[str, list[str]] = {"task": [], "resource": []}
    for kind, name in sorted(paused(call.hub.database, call.study)):
        found[kind].append(name)
    return {
        **_listed(call.record),
        "problem": call.record.problem,
        "settings": to_json(call.record.settings),
        "revision": call.record.revision,
        "paused": found,
    }


@router.get(STUDY + "/summary", tags=["looking"])
def summary(call: Reading) -> Any:
    """How far the study has come."""
    return to_json(summarise(call.hub.database, call.record.name))


@router.get(STUDY + "/jobs", tags=["looking"])
def jobs(
    call: Reading,
    offset: Offset = 0,
    limit: Limit = 100,
    state: Annotated[list[str], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
    task: Annotated[bodies.Name | None, Query()] = None,
    order: Annotated[bodies.Name, Query()] = "number",
    descending: bool = False,
) -> Any:
    """A page of the jobs, filtered and sorted."""
    for each in state:
        if each not in JOB_STATES:
            raise ProblemError(f"state is {each!r}: {did_you_mean(each, JOB_STATES)}")
    query = JobsQuery(tuple(state), task, False, order, descending, offset, limit)
    functions = functions_of(call.record)
    total, found = job_page(call.hub.database, call.study, functions, query)
    return {"jobs": to_json(found), "total": total}


def functions_of(record: StudyRecord) -> list[str]:
    """Functions that a study measures, by its tables."""
    measured = (name for task in record.problem["tasks"].values() for name in task["measures"])
    return list(dict.fromkeys(measured))


@router.get(STUDY + "/jobs/{number}", tags=["looking"])
def job(call: Reading, number: JobNumber) -> Any:
    """A job, its attempts, and what happened to it."""
    found, attempts, events = job_details(call.hub.database, call.study, number)
    return {
        **to_json(found),
        "sem": standard_errors(call.hub.database, call.study, number),
        "tries": to_json(attempts),
        "events": to_json(events),
    }


@router.get(STUDY + "/attempts", tags=["looking"])
def attempts(call: Reading) -> Any:
    """Attempts that run, oldest first."""
    found = running_attempts(call.hub.database, call.study)
    return {"attempts": [to_json(each) for each, _ in found]}


@router.get(STUDY + "/changes", tags=["looking"])
def changes(call: Reading) -> Any:
    """All changes of the problem, oldest first: what, who, when and why."""
    return {"changes": to_json(problem_changes(call.hub.database, call.study))}


@router.get(STUDY + "/events", tags=["looking"])
async def events(
    call: Reading,
    request: Request,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID)] = 0,
    limit: Limit = 100,
    wait: Annotated[float, Query(ge=0, le=3600, allow_inf_nan=False)] = 0.0,
) -> Any:
    """What happened after the event of a sequence number; `wait` so many seconds if nothing did."""
    until = time.monotonic() + wait
    while True:
        seen = call.changes.seen(call.study)
        found = await run_in_threadpool(event_page, call.hub.database, call.study, after, limit)
        left = until - time.monotonic()
        over = left <= 0 or call.changes.over
        if found or over or await request.is_disconnected():
            return {"events": to_json(found)}
        await call.changes.after(call.study, seen, min(left, _LOOK_AGAIN))
        await run_in_threadpool(call.check_again)


# -- what is believed -------------------------------------------------------------------------


@router.get(STUDY + "/history", tags=["looking"])
async def history(call: Reading, offset: Offset = 0, limit: Limit = 100) -> Any:
    """What was measured, in the order in which it was told."""
    found = await call.hub.ask_model(call.record, lambda view: view.history)
    page = found[offset : offset + limit]
    return {"records": [record_to_json(each) for each in page], "total": len(found)}


@router.get(STUDY + "/recommendation", tags=["looking"])
async def recommendation(
    call: Reading,
    delta: Annotated[float | None, Query(gt=0, lt=1, allow_inf_nan=False)] = None,
    kind: Literal["believed", "observed"] = "believed",
) -> Any:
    """The recommended input, with the probability that it meets all limits."""
    said = await call.hub.ask_model(call.record, lambda view: view.recommend(delta, kind))
    return to_json(said)


@router.post(STUDY + "/recommend", tags=["looking"])
async def recommend(call: Reading, body: bodies.Recommend) -> Any:
    """The same, and store the answer, if the token may work."""
    if not call.visitor.may("work"):
        return await recommendation(call, body.delta, body.kind)
    async with call.hub.deciding(call.study):
        study = await run_in_threadpool(call.hub.study, call.record)
        return to_json(await run_in_threadpool(study.recommend, body.delta, body.kind))


@router.post(STUDY + "/predict", tags=["looking"])
async def predict(call: Reading, body: bodies.Predict) -> Any:
    """Mean, standard deviation and probability of meeting the limits at one input."""
    said = await call.hub.ask_model(call.record, lambda view: view.predict(body.params))
    return to_json(said)


@router.post(STUDY + "/gains", tags=["looking"])
async def gains(call: Reading, body: bodies.Gains) -> Any:
    """The bits that measuring each function would be expected to yield about the optimum."""
    said = await call.hub.ask_model(call.record, lambda view: view.gains(body.points))
    return {"bits": to_json(said)}


# -- managing ---------------------------------------------------------------------------------


@router.post(STUDY + "/enqueue", tags=["managing"])
def enqueue(call: Managing, body: bodies.Enqueue) -> Any:
    """Queue a job; queued jobs run before suggested ones."""
    number = call.once(
        lambda: call.editor().enqueue(body.task, body.params), lambda was: was.job or 0
    )
    return {"job": number}


@router.post(STUDY + "/add", tags=["managing"])
def add(call: Managing, body: bodies.Add) -> Any:
    """Add existing measurements; if one is invalid, none is added."""
    call.once(lambda: _add(call, body), lambda _: None)
    return {"done": True}


def _add(call: Call, body: bodies.Add) -> None:
    rows = [(row.params, bodies.measured(row.values)) for row in body.rows]
    call.editor().add_all(rows, body.outside, [row.notes for row in body.rows])


@router.post(STUDY + "/change", tags=["managing"])
def change(call: Managing, body: bodies.Change) -> Any:
    """Go on with another problem: other bounds, options, limits, tasks, resources or costs."""
    study = call.editor()
    problem = Problem.from_content(body.problem, like=study.problem)
    return {"differences": call.once(lambda: study.change(problem, body.reason), _differences)}


def _differences(was: Answered) -> list[str]:
    return list(was.detail["differences"])


@router.post(STUDY + "/pause", tags=["managing"])
def pause(call: Managing, body: bodies.Pause) -> Any:
    """Start no more jobs of a task, or on a resource; those that run end."""
    call.once(lambda: call.editor().pause(body.task, body.resource, body.reason), lambda _: None)
    return {"done": True}


@router.post(STUDY + "/resume", tags=["managing"])
def resume(call: Managing, body: bodies.Resume) -> Any:
    """Start jobs again of a task, or on a resource, that was paused."""
    call.once(lambda: call.editor().resume(body.task, body.resource), lambda _: None)
    return {"done": True}
