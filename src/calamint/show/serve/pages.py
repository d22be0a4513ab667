"""The pages about a study: what they list is read from tables, and what takes long is drawn in the
background, so that none of them waits."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response, StreamingResponse

from calamint.errors import AccessError
from calamint.problem import Choice, Integer, Parameter, Problem
from calamint.problem import Params as Input
from calamint.run import (
    JOB_STATES,
    AttemptRecord,
    JobsQuery,
    count_events,
    event_page,
    job_counts,
    job_page,
    paused,
    running_attempts,
    study_sequence,
)
from calamint.show.plots import PLOTS
from calamint.show.serve.access import Visitor
from calamint.show.serve.answers import UnknownStudyError
from calamint.show.serve.api import functions_of
from calamint.show.serve.bodies import Body, Name, Params
from calamint.show.serve.calls import Call, Reading, state_of, visitor
from calamint.show.serve.drawing import Wanted
from calamint.show.serve.render import BY_PEOPLE, event_rows, page_of, pauses, render, safe

router = APIRouter(include_in_schema=False)
STUDY = "/studies/{study}"
PAGE_SIZE = 50
# Steps of the slider of a number.
_STEPS = 100
_PLACE = re.compile("[0-9]{1,6}")
# Seconds between news of one page, and between signs of life.
_LEAST, _ALIVE = 0.5, 15.0
PageNumber = Annotated[int, Query(ge=1, le=10_000_000)]


@router.get("/")
def studies(request: Request, who: Annotated[Visitor, Depends(visitor)]) -> HTMLResponse:
    hub = state_of(request)[0]
    only = None if who.token is None else who.token.study
    rows = []
    for record in hub.records():
        if only in (None, record.id):
            last = event_page(hub.database, record.id, limit=1, newest_first=True)
            rows.append(
                {
                    "record": record,
                    "states": _states(job_counts(hub.database, record.id)),
                    "last": last[0].time if last else None,
                }
            )
    where = hub.database.where if only is None else ""
    return HTMLResponse(render(request, who, "studies.html", rows=rows, where=where))


def _states(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """How many jobs are in each state."""
    found = dict.fromkeys(map(str, JOB_STATES), 0)
    for (_, state), count in counts.items():
        found[state] += count
    return found


@router.get(STUDY)
def overview(call: Reading, request: Request) -> HTMLResponse:
    database = call.hub.database
    counts = job_counts(database, call.study)
    problem = call.problem
    tasks = list(dict.fromkeys([*problem.tasks, *(task for task, _ in counts)]))
    limits = ["limits", "trade_off"] if problem.constraints else []
    return page_of(
        call,
        request,
        "overview.html",
        states=_states(counts),
        counts=counts,
        tasks=tasks,
        problem=problem.describe(),
        resources=resource_rows(call, problem),
        pauses=pauses(call),
        events=event_rows(call, event_page(database, call.study, 0, 8, (), True)),
        drawings=drawings(call, "recommendation", "progress", *limits),
    )


def resource_rows(call: Call, problem: Problem) -> list[dict[str, Any]]:
    """What every resource does."""
    running: dict[str, list[tuple[AttemptRecord, str]]] = {name: [] for name in problem.resources}
    for attempt, task in running_attempts(call.hub.database, call.study):
        for name in attempt.resources:
            running.setdefault(name, []).append((attempt, task))
    closed = {name for kind, name in paused(call.hub.database, call.study) if kind == "resource"}
    return [
        {
            "name": name,
            "capacity": problem.resources.get(name, 0),
            "running": found,
            "paused": name in closed,
        }
        for name, found in running.items()
    ]


@router.get(STUDY + "/resources")
def resources(call: Reading, request: Request) -> HTMLResponse:
    problem = call.problem
    closed = {name for kind, name in paused(call.hub.database, call.study) if kind == "task"}
    return page_of(
        call,
        request,
        "resources.html",
        resources=resource_rows(call, problem),
        tasks={name: name in closed for name in problem.tasks},
        drawings=drawings(call, "timeline", "time"),
    )


@router.get(STUDY + "/decisions")
def decisions(call: Reading, request: Request, page: PageNumber = 1) -> HTMLResponse:
    query = JobsQuery(chosen=True, descending=True, offset=(page - 1) * PAGE_SIZE, limit=PAGE_SIZE)
    total, jobs = job_page(call.hub.database, call.study, functions_of(call.record), query)
    told = [name for job in jobs for name in job.bits]  # also whether tasks work
    return page_of(
        call,
        request,
        "decisions.html",
        jobs=jobs,
        total=total,
        page=page,
        pages=pages_of(total),
        functions=list(dict.fromkeys([*functions_of(call.record), *told])),
        drawings=drawings(call, "decisions", "evaluations", *_explained(call.problem)),
    )


def _explained(problem: Problem) -> list[str]:
    """Whether what PESC does can be drawn: over one real parameter, or two."""
    parameters = list(problem.space.parameters.values())
    drawn = len(parameters) == 2 or (
        len(parameters) == 1 and not isinstance(parameters[0], Choice | Integer)
    )
    return ["explain"] if drawn else []


def pages_of(total: int) -> int:
    return max(1, -(-total // PAGE_SIZE))


@router.get(STUDY + "/trust")
def trust(call: Reading, request: Request) -> HTMLResponse:
    shown = drawings(call, "trust", "importance", "parallel_coordinates")
    return page_of(call, request, "trust.html", drawings=shown)


@router.get(STUDY + "/changes")
def changes(
    call: Reading, request: Request, page: PageNumber = 1, everything: bool = False
) -> HTMLResponse:
    """What people did; or everything that happened."""
    database, kinds = call.hub.database, () if everything else BY_PEOPLE
    offset = (page - 1) * PAGE_SIZE
    found = event_page(database, call.study, 0, PAGE_SIZE, kinds, True, offset)
    total = count_events(database, call.study, BY_PEOPLE) if kinds else call.record.sequence
    return page_of(
        call,
        request,
        "changes.html",
        events=event_rows(call, found),
        total=total,
        page=page,
        pages=pages_of(total),
        everything=everything,
    )


# -- beliefs ----------------------------------------------------------------------------------


@router.get(STUDY + "/beliefs")
def beliefs(call: Reading, request: Request) -> HTMLResponse:
    """What is believed along x, or over x and y; the other parameters are where sliders say."""
    problem, asked = call.problem, request.query_params
    parameters = problem.space.parameters
    names = list(parameters)
    x = _chosen(asked.get("x"), names, names[0])
    others = ["", *(name for name in names if name != x)]
    y = _chosen(asked.get("y"), others, others[min(1, len(others) - 1)])
    best = call.hub.drawings.known(Wanted.of(call.study, "recommendation"))
    start = _start(problem, None if best is None else best.params)
    at = {
        name: _value_at(parameter, asked.get(f"at.{index}"), start[name])
        for index, (name, parameter) in enumerate(parameters.items())
    }
    sliders = [
        _slider(index, name, parameters[name], at[name])
        for index, name in enumerate(names)
        if name not in (x, y)
    ]
    along = [x, y] if y else [x]
    wanted = Wanted.of(call.study, "belief", at=at, along=along)
    return page_of(
        call,
        request,
        "beliefs.html",
        names=names,
        x=x,
        y=y,
        sliders=sliders,
        recommendation=drawing(call, Wanted.of(call.study, "recommendation")),
        belief=drawing(call, wanted),
    )


def _chosen(asked: str | None, names: list[str], otherwise: str) -> str:
    return asked if asked in names else otherwise


def _start(problem: Problem, best: Input | None) -> Input:
    """Where sliders are at first: at what is recommended, or in the middle."""
    if best is not None and problem.space.parameters.keys() == best.keys():
        return best
    space = problem.space
    return {name: _value_at(each, "50", None) for name, each in space.parameters.items()}


def _value_at(parameter: Parameter, place: str | None, otherwise: Any) -> Any:
    """The value at the place of a slider."""
    if place is None or _PLACE.fullmatch(place) is None:
        return otherwise
    values = _discrete(parameter)
    if values is not None:
        return values[min(int(place), len(values) - 1)]
    return parameter.decode([min(int(place), _STEPS) / _STEPS])


def _discrete(parameter: Parameter) -> list[Any] | None:
    """All values, if they are few."""
    if isinstance(parameter, Choice):
        return list(parameter.options)
    if isinstance(parameter, Integer) and parameter.high - parameter.low <= _STEPS:
        return list(range(parameter.low, parameter.high + 1))
    return None


def _slider(index: int, name: str, parameter: Parameter, value: Any) -> dict[str, Any]:
    values = _discrete(parameter)
    if values is None:
        place = round(float(parameter.encode(value)[0]) * _STEPS)
    else:
        kinds = [(type(each), each) for each in values]
        place = kinds.index((type(value), value)) if (type(value), value) in kinds else 0
    return {
        "field": f"at.{index}",
        "name": name,
        "value": value,
        "place": min(max(place, 0), _STEPS if values is None else len(values) - 1),
        "last": _STEPS if values is None else len(values) - 1,
        "options": values if isinstance(parameter, Choice) else None,
    }


# -- what is drawn ----------------------------------------------------------------------------


class _Belief(Body):
    """Over what, and at what, beliefs are drawn."""

    at: Params
    along: Annotated[list[Name], Field(min_length=1, max_length=2)]


def drawings(call: Call, *names: str) -> list[Any]:
    return [drawing(call, Wanted.of(call.study, name)) for name in names]


def drawing(call: Call, wanted: Wanted) -> Any:
    """A figure as it was drawn last; it asks for itself again when there is news."""
    sequence = study_sequence(call.hub.database, call.study) or 0
    made = call.hub.drawings.ask(wanted, sequence)
    have = -1 if made is None else made.sequence
    return {
        "id": f"drawn-{wanted.what}",
        "title": wanted.what.replace("_", " "),
        "html": None if made is None else safe(made.html),
        "sequence": have,
        "behind": sequence - have,
        "what": wanted.what,
        "options": wanted.options,
    }


@router.get(STUDY + "/drawn/{what}")
def drawn(
    call: Reading,
    request: Request,
    what: str,
    have: int = -1,
    behind: int = 0,
    options: Annotated[str, Query(max_length=20_000)] = "{}",
) -> Response:
    """A figure, if it is another one than the page has."""
    if what not in (*PLOTS, "recommendation", "belief"):
        raise UnknownStudyError("there is no such figure.")
    found = drawing(call, Wanted(call.study, what, _checked(what, options)))
    if found["sequence"] == have and (found["behind"] > 0) == (behind > 0):
        return Response(status_code=204)
    return page_of(call, request, "drawn.html", drawn=found)


def _checked(what: str, options: str) -> str:
    if what != "belief":
        return "{}"
    try:
        return json.dumps(_Belief.model_validate_json(options).model_dump())
    except ValueError:
        raise UnknownStudyError("there is no such figure.") from None


@router.get(STUDY + "/stream")
async def stream(call: Reading) -> StreamingResponse:
    """Server-sent events: `changed` when the study has, `drawn` when a figure is ready."""
    return StreamingResponse(_news(call), media_type="text/event-stream")


async def _news(call: Call) -> AsyncIterator[str]:
    seen = call.changes.seen(call.study)
    yield "event: changed\ndata: \n\n"  # after a break, whatever happened meanwhile
    while not call.changes.over:
        start = time.monotonic()
        new = await call.changes.after(call.study, seen, _ALIVE)
        try:
            await run_in_threadpool(call.check_again)
        except AccessError:
            return
        if new.sequence != seen.sequence:
            yield f"event: changed\ndata: {new.sequence}\n\n"
        if new.drawn != seen.drawn:
            yield f"event: drawn\ndata: {new.drawn}\n\n"
        if new == seen:
            yield ": alive\n\n"
        seen = new
        await asyncio.sleep(max(0.0, _LEAST - (time.monotonic() - start)))
