"""Showing a token in a browser, which keeps it in a cookie that no script can read."""

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


@router.get("/login")
def ask(request: Request) -> HTMLResponse:
    return HTMLResponse(render(request, None, "login.html", error=""))


@router.post("/login")
async def login(request: Request) -> Response:
    body = (await request.body()).decode("utf-8", errors="replace")
    shown = parse_qs(body, max_num_fields=10).get("token", [""])[-1].strip()
    database = state_of(request)[2].database
    if not shown.isascii() or await run_in_threadpool(find_token, database, shown) is None:
        error = "This token is not accepted: it is wrong, or was revoked."
        return HTMLResponse(render(request, None, "login.html", error=error), 401)
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, shown, _KEPT, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/logout")
async def logout(request: Request) -> Response:
    access = state_of(request)[2]
    answer = RedirectResponse("/login", 303)
    try:
        visitor = await run_in_threadpool(access.visitor, request)
    except MissingTokenError:  # it was revoked
        answer.delete_cookie(COOKIE)
        return answer
    body = (await request.body()).decode("utf-8", errors="replace")
    access.check_form(visitor, parse_qs(body, max_num_fields=10).get("form_token", [""])[-1])
    answer.delete_cookie(COOKIE)
    return answer
