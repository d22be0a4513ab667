"""Forms: what people fill in, and the doing of what they say."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, final
from urllib.parse import parse_qs, urlencode

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from calamint.errors import CalamintError, ProblemError
from calamint.run import Caller, StudyEditor, read_text
from calamint.show.serve.answers import status_of
from calamint.show.serve.calls import Call, is_key, state_of
from calamint.show.serve.render import page_of

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
        group: The heading under which it stands with others; empty for none.
    """

    name: str
    label: str
    value: str = ""
    options: Sequence[str] | None = None
    hint: str = ""
    required: bool = False
    is_check: bool = False
    group: str = ""


@final
@dataclass(frozen=True)
class Question:
    """A form."""

    title: str
    verb: str
    explanation: str
    fields: Sequence[Field]
    action: str
    back: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def groups(self) -> list[tuple[str, list[Field]]]:
        """Fields that stand together, by heading."""
        return [(name, list(own)) for name, own in groupby(self.fields, lambda each: each.group)]

    def wrong(self, sentence: str) -> str:
        """The field that an error begins with, if any."""
        starts = [(f"{each.label}{end}", each.name) for each in self.fields for end in " :="]
        return next((name for start, name in starts if sentence.startswith(start)), "")


REASON = Field("reason", "Reason", hint="Stored with the study.")


def given_params(study: StudyEditor, form: Form) -> dict[str, Any]:
    """Parameters that were filled in."""
    return {
        name: read_text(parameter, form[f"param.{index}"])
        for index, (name, parameter) in enumerate(study.problem.space.parameters.items())
        if form.get(f"param.{index}")
    }


def show_form(
    call: Call,
    request: Request,
    question: Question,
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
        wrong=question.wrong(error),
        doubts=doubts,
        key=key or secrets.token_hex(16),
    )


async def read_form(call: Call, request: Request) -> dict[str, str]:
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


async def answer_form(
    call: Call,
    request: Request,
    form: dict[str, str],
    question: Question,
    do: Callable[[StudyEditor], object],
    doubts: Callable[[], list[str]],
    done: str,
) -> Response:
    """Do what a form says, or show it again with what is wrong."""
    missing = [each for each in question.fields if each.required and not form.get(each.name)]
    key = form.get("key") or None
    sentence = f"{missing[0].label} is empty: fill it in." if missing else ""
    if key is not None and not is_key(key):
        sentence = "The key of the form is not 1 to 180 printable ASCII characters."
    if sentence:
        return show_form(call, request, question, form, sentence, status=422)
    caller = Caller(call.visitor.name, key, call.digest)

    def act() -> Sequence[str]:
        if "sure" not in form and (found := doubts()):
            return found
        study = call.hub.editor(call.record).on_behalf_of(caller)
        keyed = replace(call, key=caller.key)
        keyed.once(lambda: bool(do(study)), lambda _: True)
        return ()

    try:
        doubted = await run_in_threadpool(act)
    except CalamintError as error:
        return show_form(call, request, question, form, str(error), status=status_of(error))
    if doubted:
        return show_form(call, request, question, form, doubts=doubted, status=422)
    proof = state_of(request)[2].proof(call.visitor, done)
    return RedirectResponse(f"{question.back}?{urlencode({'done': done, 'proof': proof})}", 303)
