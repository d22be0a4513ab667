"""What people do by hand with a job: a form says what will happen, and it is done."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from calamint.decide import Record, short
from calamint.errors import JobStateError, ProblemError
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
from calamint.show.serve.render import page_of

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
        done: What the job is then.
        teaches: Whether it tells values, of which some may be mistyped.
        title: Of the page, with the number of the job; made of the verb if empty.
        said: Said afterwards; made of what the job is then, if empty.
    """

    verb: str
    explanation: str
    states: Sequence[str]
    fields: Callable[[StudyEditor, JobRecord], list[Field]]
    do: Callable[[StudyEditor, JobRecord, Form], object]
    done: str
    teaches: bool = False
    title: str = ""
    said: str = ""


_RESULTS, _INPUT = "Results", "Input, if it was not as asked"
_MUST_SAY = replace(REASON, required=True)
_HOW_TO_WRITE = "A number, such as 0.07; with its standard error, 0.07 ± 0.01"
_MORE = Field("more", "I will report the empty ones later", is_check=True, group=_RESULTS)
_LONGEST_SECONDS, _LARGEST_ERROR = 1e10, 1e150


def _counts(study: StudyEditor, job: JobRecord) -> Record | None:
    """What counts now of what a job told."""
    return next((each for each in study.history if each.job == job.number), None)


def _told_texts(study: StudyEditor, job: JobRecord) -> dict[str, str]:
    """Values that count now, as they would be written."""
    record, binary = _counts(study, job), study.replica().binary
    found: dict[str, str] = {}
    if record is None:
        return found
    for name, value in record.values.items():
        text = ("pass" if value else "fail") if name in binary else str(value)
        sem = record.sem.get(name)
        found[name] = text if sem is None else f"{text} ± {sem}"
    return found


def _value_fields(study: StudyEditor, job: JobRecord, only: Callable[[str], bool]) -> list[Field]:
    replica, told = study.replica(), _told_texts(study, job)
    fields = []
    for index, name in enumerate(replica.tellable(job.number)):
        if only(name):
            binary = name in replica.binary
            options = ["", "pass", "fail"] if binary else None
            hint = "" if binary else _HOW_TO_WRITE
            text = told.get(name, "")
            fields.append(Field(f"value.{index}", name, text, options, hint, group=_RESULTS))
    return fields


def _param_fields(study: StudyEditor, job: JobRecord) -> list[Field]:
    record, fields = _counts(study, job), []
    for index, (name, parameter) in enumerate(study.problem.space.parameters.items()):
        value = job.params.get(name)
        used = "" if record is None or name not in record.params else str(record.params[name])
        options = None
        if isinstance(parameter, Choice):
            options = ["", *map(str, parameter.options)]
        hint = "" if used else f"Only if it was not {short(value)}."
        fields.append(Field(f"param.{index}", name, used, options, hint, group=_INPUT))
    return fields


def _values(study: StudyEditor, job: JobRecord, form: Form) -> dict[str, Any]:
    """Values that were filled in, without those that count already."""
    replica, told = study.replica(), _told_texts(study, job)
    given = {
        name: form.get(f"value.{index}", "")
        for index, name in enumerate(replica.tellable(job.number))
    }
    return {
        name: _value(name, text, name in replica.binary)
        for name, text in given.items()
        if text and text != told.get(name)
    }


def _value(name: str, text: str, binary: bool) -> Any:
    """A value or an outcome as people write them."""
    try:
        value = read_measurement(name, text)
    except ProblemError:
        number, error = text.replace(",", "."), text.replace(",", " ± ")
        raise ProblemError(
            f"{name}: {text!r} has a comma. Write {number}, or, if it is a value with its standard"
            f" error, {error}."
        ) from None
    if isinstance(value, bool) != binary or isinstance(value, str):
        example = "pass or fail" if binary else "0.07, or 0.07 ± 0.01 with its standard error"
        kind = "pass or fail" if binary else "a number"
        raise ProblemError(f"{name}: {text!r} is not {kind}. Write {example}.")
    if isinstance(value, tuple) and not (len(value) == 2 and 0 <= value[1] < _LARGEST_ERROR):
        raise ProblemError(
            f"{name}: {text!r} is not a number with its standard error. Write 0.07 ± 0.01."
        )
    return value


def _some_values(study: StudyEditor, job: JobRecord, form: Form) -> dict[str, Any]:
    values = _values(study, job, form)
    if not values:
        raise ProblemError("No result was filled in. Nothing was changed.")
    return values


def _tell(study: StudyEditor, job: JobRecord, form: Form) -> None:
    study.tell(
        job.number,
        _some_values(study, job, form),
        _seconds(form.get("seconds", "")),
        given_params(study, form) or None,
        "more" in form,
    )


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text) if text else None
    except ValueError:
        seconds = -1.0
    if seconds is not None and not 0 <= seconds <= _LONGEST_SECONDS:
        raise ProblemError(
            f"{_SECONDS.label}: {text!r} is not a number from 0 to {_LONGEST_SECONDS:.0e}."
        )
    return seconds


def _amend(study: StudyEditor, job: JobRecord, form: Form) -> None:
    record, values = _counts(study, job), _values(study, job, form)
    used = {} if record is None else record.params
    given = given_params(study, form)
    params = {name: value for name, value in given.items() if value != used.get(name)}
    if not values and not params:
        raise ProblemError("These are the values that count already. Nothing was changed.")
    study.amend(job.number, values or None, params or None, form.get("reason", ""))


def _complete(study: StudyEditor, job: JobRecord, form: Form) -> None:
    study.complete(job.number, _some_values(study, job, form), "more" in form)


_SECONDS = Field(
    "seconds", "Seconds that it took", hint="If empty: the time since the job started."
)
ACTIONS: dict[str, Action] = {
    "tell": Action(
        "Tell",
        "Leave empty what was not measured.",
        ("running", "held"),
        lambda study, job: [
            *_value_fields(study, job, lambda _: True),
            _MORE,
            *_param_fields(study, job),
            _SECONDS,
        ],
        _tell,
        "given results",
        teaches=True,
        title="Report results of job {}",
        said="The results of job {} were recorded.",
    ),
    "complete": Action(
        "Complete",
        "Report values that arrive later, of functions that were left out or failed.",
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
        "The study goes on as if these values had been reported in the first place. What was told"
        " before is kept, and can be restored.",
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
        "Crashes and time-outs may be due to the input, so the model learns from them. After any"
        " other cause the job is tried again.",
        ("running",),
        lambda _, __: [_MUST_SAY, Field("cause", "Cause", "crashed", CAUSES)],
        lambda study, job, form: study.fail(job.number, form["reason"], form.get("cause", "")),  # type: ignore[arg-type]
        "failed",
        said="Job {} was recorded as failed.",
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
        "The job will not be measured, and its resources are free. This does not stop a process"
        " that is running it.",
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
    job, action = _about(call, number, name)
    if job.state not in action.states:
        allowed = " or ".join(action.states)
        raise JobStateError(
            f"job {number} is {job.state}: only a job that is {allowed} can be {action.done}."
        )
    study = call.hub.editor_soon(call.record)
    if study is None:
        page = page_of(call, request, "opening.html")
        page.headers["Refresh"] = "1"
        return page
    return show_form(call, request, _of_job(call, study, job, name))


def _about(call: Call, number: int, name: str) -> tuple[JobRecord, Action]:
    if name not in ACTIONS:
        raise UnknownStudyError("there is no such page.")
    job = job_details(call.hub.database, call.study, number)[0]
    return job, ACTIONS[name]


def _of_job(call: Call, study: StudyEditor, job: JobRecord, name: str) -> Question:
    action = ACTIONS[name]
    back = f"/studies/{call.study}/jobs/{job.number}"
    facts: dict[str, Any] = {"task": job.task, "state": job.state, **job.params}
    binary = call.problem.binary
    for function, value in job.values.items():
        shown = ("pass" if value else "fail") if function in binary else value
        facts[f"{function}, as told"] = shown
    return Question(
        (action.title or f"{action.verb} job {{}}").format(job.number),
        action.verb,
        action.explanation,
        action.fields(study, job),
        f"{back}/{name}",
        back,
        facts,
    )


@router.post(STUDY + "/jobs/{number}/{name}")
async def do_with_job(call: Managing, request: Request, number: JobNumber, name: str) -> Response:
    form = await read_form(call, request)
    job, action = await run_in_threadpool(_about, call, number, name)
    study = await run_in_threadpool(call.hub.editor, call.record)
    question = await run_in_threadpool(_of_job, call, study, job, name)

    def doubts() -> list[str]:
        return far_outside(study.history, _values(study, job, form)) if action.teaches else []

    return await answer_form(
        call,
        request,
        form,
        question,
        lambda study: action.do(study, job, form),
        doubts,
        (action.said or f"Job {{}} was {action.done}.").format(number),
    )
