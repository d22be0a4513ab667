"""What people do by hand: a form that says what will happen, and the doing of it."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final
from urllib.parse import parse_qs, urlencode

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from calamint.decide import short
from calamint.errors import CalamintError, ProblemError
from calamint.problem import Choice
from calamint.run import (
    CAUSES,
    Caller,
    JobRecord,
    StudyEditor,
    far_outside,
    job_details,
    read_measurement,
    read_text,
)
from calamint.show.serve.answers import UnknownStudyError, status_of
from calamint.show.serve.calls import Call, JobNumber, Managing, state_of
from calamint.show.serve.render import page_of

router = APIRouter(include_in_schema=False)
STUDY = "/studies/{study}"
_MOST_FIELDS = 3000
Form = Mapping[str, str]


@final
@dataclass(frozen=True)
class Field:
    """Something to fill in.

    Attributes:
        name: In the form.
        label: What it is.
        value: What stands there at first.
        options: What there is to choose from; None for a text.
        hint: How to write it.
        required: Whether it must be filled in.
        is_check: Whether it is a box to tick.
    """

    name: str
    label: str
    value: str = ""
    options: Sequence[str] | None = None
    hint: str = ""
    required: bool = False
    is_check: bool = False


@final
@dataclass(frozen=True)
class Action:
    """Something to do with a job.

    Attributes:
        verb: What the button says.
        explanation: What will happen.
        states: Of jobs with which it can be done.
        fields: What to fill in, for a job of a study.
        do: Does what the form says.
        done: Said afterwards.
        teaches: Whether it tells values, of which some may be mistyped.
    """

    verb: str
    explanation: str
    states: Sequence[str]
    fields: Callable[[StudyEditor, JobRecord], list[Field]]
    do: Callable[[StudyEditor, JobRecord, Form], object]
    done: str
    teaches: bool = False


_REASON = Field("reason", "Why", hint="In words; it is kept.")
_MUST_SAY = Field("reason", "Why", hint="In words; it is kept.", required=True)
_HOW_TO_WRITE = "A number, such as 0.07; with its standard error, 0.07 ± 0.01"
_MORE = Field("more", "The functions that are left empty will follow", is_check=True)


def _value_fields(study: StudyEditor, job: JobRecord, only: Callable[[str], bool]) -> list[Field]:
    replica = study.replica()
    fields = []
    for index, name in enumerate(replica.tellable(job.number)):
        if only(name):
            binary = name in replica.binary
            options = ["", "pass", "fail"] if binary else None
            hint = "" if binary else _HOW_TO_WRITE
            fields.append(Field(f"value.{index}", name, "", options, hint))
    return fields


def _param_fields(study: StudyEditor, job: JobRecord) -> list[Field]:
    fields = []
    for index, (name, parameter) in enumerate(study.problem.space.parameters.items()):
        value = job.params.get(name)
        options = None
        if isinstance(parameter, Choice):
            options = ["", *map(str, parameter.options)]
        hint = f"Only if it was not {short(value)}."
        fields.append(Field(f"param.{index}", name, "", options, hint))
    return fields


def _values(study: StudyEditor, job: JobRecord, form: Form) -> dict[str, Any]:
    names = study.replica().tellable(job.number)
    given = {name: form.get(f"value.{index}", "") for index, name in enumerate(names)}
    return {name: read_measurement(name, text) for name, text in given.items() if text}


def _params(study: StudyEditor, form: Form) -> dict[str, Any]:
    """Parameters that were filled in."""
    return {
        name: read_text(parameter, form[f"param.{index}"])
        for index, (name, parameter) in enumerate(study.problem.space.parameters.items())
        if form.get(f"param.{index}")
    }


def _tell(study: StudyEditor, job: JobRecord, form: Form) -> None:
    seconds = form.get("seconds")
    study.tell(
        job.number,
        _values(study, job, form),
        None if not seconds else _number("seconds", seconds),
        _params(study, form) or None,
        "more" in form,
    )


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProblemError(f"{name} is {text!r}: write a number.") from None


def _amend(study: StudyEditor, job: JobRecord, form: Form) -> None:
    values, params = _values(study, job, form), _params(study, form)
    study.amend(job.number, values or None, params or None, form.get("reason", ""))


def _complete(study: StudyEditor, job: JobRecord, form: Form) -> None:
    study.complete(job.number, _values(study, job, form), "more" in form)


_SECONDS = Field("seconds", "Seconds that it took", hint="The time since it started, if empty.")
ACTIONS: dict[str, Action] = {
    "tell": Action(
        "Tell",
        "What was measured becomes part of the study. Leave empty what was not measured.",
        ("running", "held"),
        lambda study, job: [
            *_value_fields(study, job, lambda _: True),
            _SECONDS,
            *_param_fields(study, job),
            _MORE,
        ],
        _tell,
        "told",
        teaches=True,
    ),
    "complete": Action(
        "Complete",
        "Tell values that arrive later, of functions that were left out or failed.",
        ("partial", "done", "failed"),
        lambda study, job: [
            *_value_fields(study, job, lambda name: name not in job.values),
            _MORE,
        ],
        _complete,
        "completed",
        teaches=True,
    ),
    "amend": Action(
        "Amend",
        "It will be as if the right values had been told at once. What was told before is kept,"
        " and can be restored.",
        ("partial", "done", "failed"),
        lambda study, job: [
            *_value_fields(study, job, lambda name: name in job.values),
            *_param_fields(study, job),
            _REASON,
        ],
        _amend,
        "amended",
        teaches=True,
    ),
    "fail": Action(
        "Fail",
        "The job ended without a result. Only crashed and timeout can be the input's fault, and"
        " teach; others are tried again.",
        ("running",),
        lambda _, __: [_MUST_SAY, Field("cause", "Cause", "crashed", CAUSES)],
        lambda study, job, form: study.fail(job.number, form["reason"], form.get("cause", "")),  # type: ignore[arg-type]
        "failed",
    ),
    "release": Action(
        "Release",
        "The job was held, as its attempts were lost too often: it will be tried again.",
        ("held",),
        lambda _, __: [],
        lambda study, job, _: study.release(job.number),
        "released",
    ),
    "cancel": Action(
        "Cancel",
        "The job will not be measured, and its resources are free. A process that runs it is not"
        " stopped by that.",
        ("waiting", "running", "held", "partial"),
        lambda _, __: [],
        lambda study, job, _: study.cancel(job.number),
        "cancelled",
    ),
    "withdraw": Action(
        "Withdraw",
        "The result is taken back with all that it taught. It can be restored.",
        ("partial", "done", "failed"),
        lambda _, __: [_MUST_SAY],
        lambda study, job, form: study.withdraw(job.number, form["reason"]),
        "withdrawn",
    ),
    "forgive": Action(
        "Forgive",
        "The failure was not the input's fault: it is taken back with what it taught.",
        ("failed",),
        lambda _, __: [],
        lambda study, job, _: study.forgive(job.number),
        "forgiven",
    ),
    "restore": Action(
        "Restore",
        "All corrections are taken back: the result is what was first told.",
        ("partial", "done", "failed", "withdrawn"),
        lambda _, __: [],
        lambda study, job, _: study.restore(job.number),
        "restored",
    ),
}


def actions_for(job: JobRecord, measures: Collection[str], corrected: bool) -> dict[str, Action]:
    """What can be done with a job of a task that measures some functions."""
    found = {name: action for name, action in ACTIONS.items() if job.state in action.states}
    if set(measures) <= set(job.values):
        found.pop("complete", None)
    if not corrected:
        found.pop("restore", None)
    return found


@router.get(STUDY + "/jobs/{number}/{name}")
def ask_for_job(call: Managing, request: Request, number: JobNumber, name: str) -> HTMLResponse:
    study, job, action = _about(call, number, name)
    return _form(call, request, _of_job(call, study, job, action))


def _about(call: Call, number: int, name: str) -> tuple[StudyEditor, JobRecord, Action]:
    if name not in ACTIONS:
        raise UnknownStudyError("there is no such page.")
    job = job_details(call.hub.database, call.study, number)[0]
    return call.hub.editor(call.record), job, ACTIONS[name]


@final
@dataclass(frozen=True)
class _Question:
    """A form."""

    title: str
    verb: str
    explanation: str
    fields: Sequence[Field]
    action: str
    back: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def _of_job(call: Call, study: StudyEditor, job: JobRecord, action: Action) -> _Question:
    back = f"/studies/{call.study}/jobs/{job.number}"
    facts: dict[str, Any] = {"task": job.task, "state": job.state, **job.params}
    facts |= {f"{name}, as told": value for name, value in job.values.items()}
    return _Question(
        f"{action.verb} job {job.number}",
        action.verb,
        action.explanation,
        action.fields(study, job),
        f"{back}/{action.verb.lower()}",
        back,
        facts,
    )


def _form(
    call: Call,
    request: Request,
    question: _Question,
    form: Form | None = None,
    error: str = "",
    doubts: Sequence[str] = (),
    status: int = 200,
) -> HTMLResponse:
    key = secrets.token_hex(16) if form is None or error else form.get("key", "")
    return page_of(
        call,
        request,
        "form.html",
        status,
        question=question,
        given={} if form is None else form,
        error=error,
        doubts=doubts,
        key=key or secrets.token_hex(16),
    )


async def _read_form(call: Call, request: Request) -> dict[str, str]:
    """What a form says.

    Raises:
        AccessError: If it is not one of ours.
    """
    body = await request.body()
    try:
        pairs = parse_qs(body.decode("utf-8"), True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise ProblemError("the form cannot be read. Nothing was changed.") from None
    form = {name: values[-1].strip() for name, values in pairs.items()}
    state_of(request)[2].check_form(call.visitor, form.get("form_token", ""))
    return form


async def _answer(
    call: Call,
    request: Request,
    form: dict[str, str],
    question: _Question,
    do: Callable[[StudyEditor], object],
    doubts: Callable[[], list[str]],
    done: str,
) -> Response:
    """Do what a form says, or show it again with what is wrong."""
    caller = Caller(call.visitor.name, form.get("key") or None, call.digest)

    def act() -> Sequence[str]:
        if "sure" not in form and (found := doubts()):
            return found
        study = call.hub.editor(call.record).on_behalf_of(caller)
        keyed = Call(call.hub, call.changes, call.visitor, call.record, caller.key, call.digest)
        keyed.once(lambda: bool(do(study)), lambda _: True)
        return ()

    try:
        doubted = await run_in_threadpool(act)
    except CalamintError as error:
        sentence = str(error)
        status = status_of(error)
        return _form(call, request, question, form, sentence, status=status)
    if doubted:
        return _form(call, request, question, form, doubts=doubted, status=422)
    return RedirectResponse(f"{question.back}?{urlencode({'done': done})}", 303)


@router.post(STUDY + "/jobs/{number}/{name}")
async def do_with_job(call: Managing, request: Request, number: JobNumber, name: str) -> Response:
    form = await _read_form(call, request)
    study, job, action = await run_in_threadpool(_about, call, number, name)
    question = await run_in_threadpool(_of_job, call, study, job, action)

    def doubts() -> list[str]:
        return far_outside(study.history, _values(study, job, form)) if action.teaches else []

    return await _answer(
        call,
        request,
        form,
        question,
        lambda study: action.do(study, job, form),
        doubts,
        f"Job {number} is {action.done}.",
    )


# -- what is not about a job ------------------------------------------------------------------


@router.get(STUDY + "/enqueue")
def ask_to_enqueue(call: Managing, request: Request) -> HTMLResponse:
    return _form(call, request, _enqueue_question(call))


def _enqueue_question(call: Call) -> _Question:
    problem = call.hub.editor(call.record).problem
    fields = [Field("task", "Task", options=list(problem.tasks), required=True)]
    for index, (name, parameter) in enumerate(problem.space.parameters.items()):
        options = (
            [str(each) for each in parameter.options] if isinstance(parameter, Choice) else None
        )
        hint = "" if isinstance(parameter, Choice) else _between(parameter)
        fields.append(Field(f"param.{index}", name, "", options, hint, required=True))
    return _Question(
        "Enqueue an input",
        "Enqueue",
        "It will be measured before anything else, as soon as something is free for it.",
        fields,
        f"/studies/{call.study}/enqueue",
        f"/studies/{call.study}/jobs",
    )


def _between(parameter: Any) -> str:
    return f"From {short(parameter.low)} to {short(parameter.high)}."


@router.post(STUDY + "/enqueue")
async def enqueue(call: Managing, request: Request) -> Response:
    form = await _read_form(call, request)
    question = await run_in_threadpool(_enqueue_question, call)

    def do(study: StudyEditor) -> object:
        return study.enqueue(form.get("task", ""), _params(study, form)) >= 0

    return await _answer(call, request, form, question, do, list, "The input is enqueued.")


Pausing = Literal["pause", "resume"]
Kind = Literal["task", "resource"]


@router.get(STUDY + "/{verb}/{kind}")
def ask_to_pause(
    call: Managing, request: Request, verb: Pausing, kind: Kind, name: str
) -> HTMLResponse:
    return _form(call, request, _pause_question(call, verb, kind, name))


def _pause_question(call: Call, verb: Pausing, kind: Kind, name: str) -> _Question:
    if name not in call.record.problem[f"{kind}s"]:
        raise UnknownStudyError(f"this study has no {kind} {name!r}.")
    effect = "No more jobs will start; those that run end as usual."
    return _Question(
        f"{verb.title()} {kind} {name}",
        verb.title(),
        effect if verb == "pause" else "Jobs will start again.",
        [_REASON] if verb == "pause" else [],
        f"/studies/{call.study}/{verb}/{kind}?{urlencode({'name': name})}",
        f"/studies/{call.study}/resources",
    )


@router.post(STUDY + "/{verb}/{kind}")
async def pause(call: Managing, request: Request, verb: Pausing, kind: Kind, name: str) -> Response:
    form = await _read_form(call, request)
    question = _pause_question(call, verb, kind, name)
    which: dict[str, Any] = {kind: name}

    def do(study: StudyEditor) -> None:
        if verb == "pause":
            study.pause(**which, reason=form.get("reason", ""))
        else:
            study.resume(**which)

    said = f"{kind.title()} {name} is {verb}d."
    return await _answer(call, request, form, question, do, list, said)
