"""Errors as answers: a status and a sentence, as JSON for programs and as a page for people."""

import json
import logging
import re
from html import escape
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Scope

from calamint.errors import (
    AccessError,
    CalamintError,
    JobStateError,
    ProblemError,
    RepeatedRequestError,
    StorageError,
    UnknownJobError,
)
from calamint.show.serve.access import MissingTokenError

LOG = logging.getLogger("calamint.serve")
# The first that fits.
_STATUS: tuple[tuple[type[CalamintError], int], ...] = (
    (MissingTokenError, 401),
    (AccessError, 403),
    (UnknownJobError, 404),
    (JobStateError, 409),
    (RepeatedRequestError, 409),
    (ProblemError, 422),
)
SECURITY_HEADERS = {
    # Plotly sets styles of its own, which change nothing that matters; scripts are files of ours.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SENTENCES = {404: "there is no such page.", 405: "this cannot be done here."}
_TITLES = {403: "Not allowed", 404: "Not found"}


class UnknownStudyError(ProblemError):
    """A study that the storage does not have."""


def refusal(scope: Scope, status: int, sentence: str, kind: str = "") -> Response:
    """An error as those who asked can read it."""
    if scope["path"].startswith("/api"):
        content = {"error": {"kind": kind or "CalamintError", "message": sentence}}
        return JSONResponse(content, status)
    title = _TITLES.get(status, "Not done")
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/static/page.css"><link rel="stylesheet"'
        f' href="/static/dashboard.css"><title>{title} – Calamint</title></head>'
        f'<body><main><h1>{title}</h1><p role="alert">{escape(sentence[:1].upper())}'
        f'{escape(sentence[1:])}</p><p><a href="/">All studies</a></p></main></body></html>',
        status,
    )


def status_of(error: CalamintError) -> int:
    if isinstance(error, UnknownStudyError):
        return 404
    if isinstance(error, StorageError):
        return 503 if error.transient else 500
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 422)


def add_error_answers(app: FastAPI) -> None:
    @app.exception_handler(CalamintError)
    def of_calamint(request: Request, error: CalamintError) -> Response:
        status = status_of(error)
        if status == 401 and not request.url.path.startswith("/api") and request.method == "GET":
            return RedirectResponse(f"/login?{urlencode({'next': request.url.path})}", 303)
        kind = type(error).__name__
        kind = {"MissingTokenError": "AccessError", "UnknownStudyError": "StorageError"}.get(
            kind, kind
        )
        response = refusal(request.scope, status, str(error), kind)
        if status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        if status == 503:
            response.headers["Retry-After"] = "1"
        return response

    @app.exception_handler(RequestValidationError)
    def of_request(request: Request, error: RequestValidationError) -> Response:
        kind = "ResultError" if "/jobs/" in request.url.path else "ProblemError"
        return refusal(request.scope, 422, _in_words(error.errors()[0]), kind)

    @app.exception_handler(HTTPException)
    def of_route(request: Request, error: HTTPException) -> Response:
        sentence = _SENTENCES.get(error.status_code, f"{error.detail}.")
        response = refusal(request.scope, error.status_code, sentence)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    def of_us(request: Request, error: Exception) -> Response:
        # The server prints it with its traceback.
        response = refusal(request.scope, 500, f"the server failed ({type(error).__name__}).")
        response.headers.update(SECURITY_HEADERS)  # no middleware sees this one
        return response


def _in_words(error: Any) -> str:
    """The first thing that is wrong with a request."""
    place = ".".join(
        str(each) for each in error["loc"] if each not in ("body", "query", "path", "header")
    )[:300]
    said = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "json_invalid":
        said = f"the request is not JSON ({error['ctx']['error']})"
    elif error["type"] == "missing":
        said = f"{place or 'a body of JSON'} is missing"
    elif error["type"] == "extra_forbidden":
        said = f"{place!r} is not a field of this request"
    elif place:
        given = repr(error["input"])
        shown = given if len(given) <= 60 else f"{given[:59]}…"
        found = re.fullmatch(r"(?:Input|String|List|Dictionary) (should .*)", said)
        said = f"{place} is {shown}: {f'it {found[1]}' if found else said}"
    end = "" if said.endswith(("?", ".")) else "."
    return f"{said}{end} Nothing was changed."


def strict_json(body: bytes) -> Any:
    """JSON as its standard has it: without NaN, infinite numbers, and endless nesting."""

    def refused(word: str) -> Any:
        raise json.JSONDecodeError(f"{word} is not a number of JSON: write null", word, 0)

    try:
        return json.loads(body, parse_constant=refused)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:  # too deep, not UTF-8, or thousands of digits
        raise json.JSONDecodeError(str(error), "", 0) from None
