"""Routes that read JSON as its standard has it."""

from collections.abc import Callable, Coroutine
from typing import Any

import fastapi
from fastapi import Response
from fastapi.routing import APIRoute

from calamint.show.serve.answers import strict_json


class StrictRequest(fastapi.Request):
    async def json(self) -> Any:
        return strict_json(await self.body())


class StrictRoute(APIRoute):
    """A route that refuses NaN in a request."""

    def get_route_handler(self) -> Callable[[fastapi.Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: fastapi.Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
