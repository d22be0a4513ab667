"""The server: one application with two faces, pages for people and an API for programs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from calamint.run import Database
from calamint.show.serve import (
    actions,
    api,
    api_jobs,
    job_pages,
    login,
    pages,
    static,
    study_actions,
)
from calamint.show.serve.access import Access
from calamint.show.serve.answers import add_error_answers
from calamint.show.serve.changes import Changes
from calamint.show.serve.guard import Guard, Limits
from calamint.show.serve.hub import Hub

_DESCRIPTION = """Studies that are optimised under constraints, which are measured separately.

Programs ask for a job, run it, and tell what they measured. Send a token as
`Authorization: Bearer TOKEN` if the server asks for one, and another `Idempotency-Key` with each
request that changes something: it is then safe to make a request again when no answer came. Errors
are `{"error": {"kind": …, "message": …}}`, with a sentence for people.
"""


def make_app(
    database: Database,
    needs_token: bool = False,
    trust: bool = False,
    limits: Limits | None = None,
) -> FastAPI:
    """The server as an ASGI application.

    Args:
        database: Where the studies are stored.
        needs_token: Whether the user of this machine needs a token, too.
        trust: Import the functions that studies name, which runs their modules.
        limits: What it takes.
    """
    changes = Changes(database)
    hub = Hub(database, trust, changes.drew)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        changes.start()
        yield
        changes.stop()
        hub.drawings.stop()

    app = FastAPI(
        title="Calamint",
        version=version("calamint"),
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they would load scripts of other sites
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.hub = hub
    app.state.changes = changes
    app.state.access = Access(database, needs_token)
    add_error_answers(app)
    app.include_router(api.router)
    app.include_router(api_jobs.router)
    for each in (pages, job_pages, actions, study_actions, login, static):
        app.include_router(each.router)
    app.add_middleware(Guard, limits=limits or Limits())
    return app


def describe(app: FastAPI) -> dict[str, Any]:
    """Its OpenAPI description."""
    return app.openapi()
