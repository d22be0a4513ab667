"""What people do by hand with a job: a form says what will happen, and it is done."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, final

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from calamint.decide import short
from calamint.errors import ProblemError
from calamint.problem import Choice
from calamint.run import (
    CAUSES,
    JobRecord,
    StudyEditor,
    far_outside,
    job_details,
    read_measurement,
)
from calamint.show.serve.answers import UnknownStudyError
from calamint.show.serve.calls import Call, JobNumber, Managing
from calamint.show.serve.forms import (
    REASON,
    Field,
    Form,
    Question,
    answer_form,
    given_params,
    read_form,
    show_form,
)

router = APIRouter(include_in_schema=False)
STUDY = "/studies/{study}"


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


def _tell(study: StudyEditor, job: JobRecord, form: Form) -> None:
    seconds = form.get("seconds")
    study.tell(
        job.number,
        _values(study, job, form),
        None if not seconds else _number("seconds", seconds),
        given_params(study, form) or None,
        "more" in form,
    )


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProblemError(f"{name} is {text!r}: write a number.") from None


def _amend(study: StudyEditor, job: JobRecord, form: Form) -> None:
    values, params = _values(study, job, form), given_params(study, form)
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
            REASON,
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
    return show_form(call, request, _of_job(call, study, job, action))


def _about(call: Call, number: int, name: str) -> tuple[StudyEditor, JobRecord, Action]:
    if name not in ACTIONS:
        raise UnknownStudyError("there is no such page.")
    job = job_details(call.hub.database, call.study, number)[0]
    return call.hub.editor(call.record), job, ACTIONS[name]


def _of_job(call: Call, study: StudyEditor, job: JobRecord, action: Action) -> Question:
    back = f"/studies/{call.study}/jobs/{job.number}"
    facts: dict[str, Any] = {"task": job.task, "state": job.state, **job.params}
    facts |= {f"{name}, as told": value for name, value in job.values.items()}
    return Question(
        f"{action.verb} job {job.number}",
        action.verb,
        action.explanation,
        action.fields(study, job),
        f"{back}/{action.verb.lower()}",
        back,
        facts,
    )


@router.post(STUDY + "/jobs/{number}/{name}")
async def do_with_job(call: Managing, request: Request, number: JobNumber, name: str) -> Response:
    form = await read_form(call, request)
    study, job, action = await run_in_threadpool(_about, call, number, name)
    question = await run_in_threadpool(_of_job, call, study, job, action)

    def doubts() -> list[str]:
        return far_outside(study.history, _values(study, job, form)) if action.teaches else []

    return await answer_form(
        call,
        request,
        form,
        question,
        lambda study: action.do(study, job, form),
        doubts,
        f"Job {number} is {action.done}.",
    )
