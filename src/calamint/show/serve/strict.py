"""Routes that read JSON as its standard has it."""

from collections.abc import Callable, Coroutine
from typing import Any

import fastapi
from fastapi import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from calamint.show.serve.answers import strict_json


class StrictRequest(fastapi.Request):
    async def json(self) -> Any:
        return strict_json(await self.body())


class StrictRoute(APIRoute):
    """A route that refuses what is not JSON, and NaN in it."""

    def get_route_handler(self) -> Callable[[fastapi.Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: fastapi.Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and kind != "application/json" and await request.body():
                raise HTTPException(
                    415, "the request is not JSON: send 'Content-Type: application/json'"
                )
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
