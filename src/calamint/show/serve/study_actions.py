"""What people do by hand with a study: enqueue inputs, pause and resume tasks and resources."""

from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from calamint.decide import short
from calamint.problem import Choice
from calamint.run import StudyEditor
from calamint.show.serve.answers import UnknownStudyError
from calamint.show.serve.calls import Call, Managing
from calamint.show.serve.drawing import Wanted
from calamint.show.serve.forms import (
    REASON,
    Field,
    Question,
    answer_form,
    given_params,
    read_form,
    show_form,
)

router = APIRouter(include_in_schema=False)
STUDY = "/studies/{study}"


@router.get(STUDY + "/enqueue")
def ask_to_enqueue(call: Managing, request: Request) -> HTMLResponse:
    return show_form(call, request, _enqueue_question(call))


def _enqueue_question(call: Call) -> Question:
    problem = call.problem
    fields = [Field("task", "Task", options=list(problem.tasks), required=True)]
    best = call.hub.drawings.known(Wanted.of(call.study, "recommendation"))
    known = {} if best is None or best.params is None else best.params
    for index, (name, parameter) in enumerate(problem.space.parameters.items()):
        options = (
            [str(each) for each in parameter.options] if isinstance(parameter, Choice) else None
        )
        hint = "" if isinstance(parameter, Choice) else _between(parameter)
        value = str(known.get(name, ""))
        fields.append(Field(f"param.{index}", name, value, options, hint, required=True))
    return Question(
        "Enqueue an input",
        "Enqueue",
        "It will be measured before anything else, as soon as something is free for it."
        + (" The recommended input is filled in." if known else ""),
        fields,
        f"/studies/{call.study}/enqueue",
        f"/studies/{call.study}/jobs",
    )


def _between(parameter: Any) -> str:
    return f"From {short(parameter.low)} to {short(parameter.high)}."


@router.post(STUDY + "/enqueue")
async def enqueue(call: Managing, request: Request) -> Response:
    form = await read_form(call, request)
    question = await run_in_threadpool(_enqueue_question, call)

    def do(study: StudyEditor) -> object:
        return study.enqueue(form.get("task", ""), given_params(study, form)) >= 0

    return await answer_form(call, request, form, question, do, list, "The input was enqueued.")


Pausing = Literal["pause", "resume"]
Kind = Literal["task", "resource"]


@router.get(STUDY + "/{verb}/{kind}")
def ask_to_pause(
    call: Managing, request: Request, verb: Pausing, kind: Kind, name: str
) -> HTMLResponse:
    return show_form(call, request, _pause_question(call, verb, kind, name))


def _pause_question(call: Call, verb: Pausing, kind: Kind, name: str) -> Question:
    if name not in call.record.problem[f"{kind}s"]:
        raise UnknownStudyError(f"this study has no {kind} {name!r}.")
    effect = "No new jobs will start; running jobs finish as usual."
    return Question(
        f"{verb.title()} {kind} {name}",
        verb.title(),
        effect if verb == "pause" else "Jobs will start again.",
        [REASON] if verb == "pause" else [],
        f"/studies/{call.study}/{verb}/{kind}?{urlencode({'name': name})}",
        f"/studies/{call.study}/resources",
    )


@router.post(STUDY + "/{verb}/{kind}")
async def pause(call: Managing, request: Request, verb: Pausing, kind: Kind, name: str) -> Response:
    form = await read_form(call, request)
    question = _pause_question(call, verb, kind, name)
    which: dict[str, Any] = {kind: name}

    def do(study: StudyEditor) -> None:
        if verb == "pause":
            study.pause(**which, reason=form.get("reason", ""))
        else:
            study.resume(**which)

    said = f"{kind.title()} {name} was {verb}d."
    return await answer_form(call, request, form, question, do, list, said)
