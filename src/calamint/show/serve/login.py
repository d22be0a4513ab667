"""Showing a token in a browser, which keeps it in a cookie that no script can read."""

import re
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from calamint.run import find_token
from calamint.show.serve.access import COOKIE, MissingTokenError
from calamint.show.serve.calls import state_of
from calamint.show.serve.render import render

router = APIRouter(include_in_schema=False)
# Seconds after which it is asked for again.
_KEPT = 30 * 86400
# A page of this server.
_OWN_PAGE = re.compile(r"/studies/[a-z0-9/]+")


@router.get("/login")
def ask(request: Request) -> HTMLResponse:
    return _page(request, request.query_params.get("next", ""))


def _page(request: Request, following: str, error: str = "", status: int = 200) -> HTMLResponse:
    return HTMLResponse(
        render(request, None, "login.html", error=error, next=_checked(following)), status
    )


def _checked(following: str) -> str:
    return following if _OWN_PAGE.fullmatch(following) else "/"


@router.post("/login")
async def login(request: Request) -> Response:
    form = await _form(request)
    shown, following = form.get("token", "").strip(), form.get("next", "")
    database = state_of(request)[2].database
    if not shown.isascii() or await run_in_threadpool(find_token, database, shown) is None:
        error = "This token is not accepted: it is wrong, or was revoked."
        return _page(request, following, error, 401)
    answer = RedirectResponse(_checked(following), 303)
    # A proxy says so if it was encrypted.
    schemes = (request.url.scheme, request.headers.get("x-forwarded-proto"))
    secure = "https" in schemes
    answer.set_cookie(COOKIE, shown, _KEPT, httponly=True, samesite="strict", secure=secure)
    return answer


async def _form(request: Request) -> dict[str, str]:
    body = (await request.body()).decode("utf-8", errors="replace")
    try:
        return {name: values[-1] for name, values in parse_qs(body, max_num_fields=10).items()}
    except ValueError:  # no form of ours
        return {}


@router.post("/logout")
async def logout(request: Request) -> Response:
    access = state_of(request)[2]
    answer = RedirectResponse("/login", 303)
    try:
        visitor = await run_in_threadpool(access.visitor, request)
    except MissingTokenError:  # it was revoked
        answer.delete_cookie(COOKIE)
        return answer
    access.check_form(visitor, (await _form(request)).get("form_token", ""))
    answer.delete_cookie(COOKIE)
    return answer
