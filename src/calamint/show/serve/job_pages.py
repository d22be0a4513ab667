"""The pages about jobs: all of them, filtered and sorted by the database, and each of them."""

import os
import stat
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from calamint.decide import REASONS
from calamint.run import (
    CORRECTIONS,
    JOB_ORDERS,
    JOB_STATES,
    JobRecord,
    JobsQuery,
    folder_of,
    job_details,
    job_page,
    standard_errors,
)
from calamint.show.serve.actions import actions_for
from calamint.show.serve.api import functions_of
from calamint.show.serve.calls import Call, JobNumber, Reading
from calamint.show.serve.pages import PAGE_SIZE, STUDY, PageNumber, pages_of
from calamint.show.serve.render import event_rows, page_of

router = APIRouter(include_in_schema=False)
# Characters of what a job printed: the last ones.
_MOST_OUTPUT = 40_000
_HOW = {
    "initial": "as part of the initial design",
    "random": "at random, as that was asked for",
    "retry": "as an attempt before it was lost",
    "enqueued": "as somebody enqueued it",
    "fallback": "without a model, which failed",
    **REASONS,
}


@router.get(STUDY + "/jobs")
def jobs(
    call: Reading,
    request: Request,
    state: str = "",
    task: str = "",
    order: str = "number",
    descending: bool | None = None,
    page: PageNumber = 1,
) -> HTMLResponse:
    functions = functions_of(call.record)
    # What an old address asks for may be gone.
    order = order if order in (*JOB_ORDERS, *functions) else "number"
    if descending is None:
        descending = order == "number"  # the newest first
    states = (state,) if state in JOB_STATES else ()
    tasks = list(call.record.problem["tasks"])
    task = task if task in tasks else ""
    query = JobsQuery(
        states, task or None, False, order, descending, (page - 1) * PAGE_SIZE, PAGE_SIZE
    )
    total, found = job_page(call.hub.database, call.study, functions, query)
    return page_of(
        call,
        request,
        "jobs.html",
        jobs=found,
        total=total,
        functions=functions,
        states=JOB_STATES,
        tasks=tasks,
        state=states[0] if states else "",
        task=task,
        order=order,
        descending=descending,
        page=page,
        pages=pages_of(total),
    )


@router.get(STUDY + "/jobs/{number}")
def job(call: Reading, request: Request, number: JobNumber) -> HTMLResponse:
    found, attempts, events = job_details(call.hub.database, call.study, number)
    task = call.record.problem["tasks"].get(found.task)
    measures = [] if task is None else task["measures"]
    return page_of(
        call,
        request,
        "job.html",
        job=found,
        sem=standard_errors(call.hub.database, call.study, number),
        how=_HOW.get(found.update, ""),
        runners_up=_ranked(found),
        bits=sorted(found.bits.items(), key=lambda pair: -pair[1]),
        attempts=[(each, _outputs(call, number, each.number)) for each in attempts],
        events=event_rows(call, events),
        actions=actions_for(found, measures, any(each.kind in CORRECTIONS for each in events)),
    )


def _ranked(job: JobRecord) -> list[tuple[str, float]]:
    """What the tasks that competed offered, best first."""
    return sorted(job.scores.items(), key=lambda pair: -pair[1])


def _outputs(call: Call, job: int, attempt: int) -> list[dict[str, Any]]:
    """What an attempt printed, as far as it ran on this machine, or on a folder that it shares."""
    folder = folder_of(call.hub.database, call.record.name, call.study)
    if folder is None:
        return []
    found = []
    name = f"job-{job}-{attempt}"
    for place in (folder / name, *sorted(folder.glob(f"{name}~*"))):
        for kind in ("stdout", "stderr"):
            text = _tail(place / f"{kind}.txt")
            if text:
                found.append({"name": kind, "place": place.name, "text": text})
    return found


def _tail(path: Path) -> str:
    """The end of a file; nothing if it is not a plain one, whoever put something else there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return ""
        file.seek(max(0, status.st_size - _MOST_OUTPUT))
        text = file.read(_MOST_OUTPUT).decode(errors="replace")
    return f"…{text}" if status.st_size > _MOST_OUTPUT else text
