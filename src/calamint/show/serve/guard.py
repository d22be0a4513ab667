"""What every request passes: the host that it names, the site that it comes from, its size, and how
often its address calls; and the headers of every answer."""

import asyncio
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calamint.run import LARGEST_BODY
from calamint.show.serve.answers import SECURITY_HEADERS, refusal

# Requests of one address a second; twice as many at once.
RATE = 500.0
_MOST_ADDRESSES = 10_000
# Seconds in which a body must be there.
_SLOWEST_BODY = 20.0
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]+)?", re.ASCII | re.IGNORECASE)


@final
@dataclass(frozen=True)
class Limits:
    """What a server takes.

    hosts      names by which it may be called, besides localhost and addresses
    body       bytes of a request
    rate       requests of one address a second
    """

    hosts: Collection[str] = ()
    body: int = LARGEST_BODY
    rate: float = RATE


@final
class Guard:
    """Refuses requests before anything else sees them."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._hosts = {"localhost", *(name.lower() for name in limits.hosts)}
        self._calls = Rates(limits.rate, 2 * limits.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refused(scope, headers)
        body = b""
        if refused is None and scope["method"] not in _SAFE:
            try:
                async with asyncio.timeout(_SLOWEST_BODY):
                    read = await _read(receive, self._limits.body)
            except TimeoutError:
                read = b""
                refused = 408, "the request did not arrive in time. Nothing was changed.", 0
            if read is None:
                limit = f"at most {self._limits.body:,} bytes"
                refused = 413, f"the request is too large: write {limit}. Nothing was changed.", 0
            else:
                body = read
        if refused is not None:
            status, sentence, seconds = refused
            response = refusal(scope, status, sentence)
            if seconds:
                response.headers["Retry-After"] = str(seconds)
            await response(scope, receive, answer)
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        scope["calamint.body"] = body
        await self._app(scope, replay if body or scope["method"] not in _SAFE else receive, answer)

    def _refused(self, scope: Scope, headers: Headers) -> tuple[int, str, int] | None:
        """Status, sentence, and the seconds after which to try again."""
        host = headers.get("host", "")
        if not self._is_known(host):
            return (
                400,
                (
                    f"host is {host[:100]!r}, which is not a name of this server: start it with"
                    " --allow-host to call it so."
                ),
                0,
            )
        if not _is_own_site(headers, host, scope["method"] in _SAFE):
            return 403, ("the request was made by a page of another site. Nothing was changed."), 0
        wait = self._calls.take(_address(scope))
        if wait > 0:
            return 429, "too many requests: wait a moment. Nothing was changed.", int(wait) + 1
        return None

    def _is_known(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1]
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name.lower().rstrip(".") in self._hosts
        return True  # no other site can have an address of this machine for its name


def _is_own_site(headers: Headers, host: str, is_safe: bool) -> bool:
    """Whether a request comes from a page of this server, or from no page: browsers say where it
    comes from. Pages of other sites may have links to this one, and nothing else."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return is_safe and headers.get("sec-fetch-mode") == "navigate"
    origin = headers.get("origin")
    return is_safe or origin is None or origin.partition("://")[2] == host


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _read(receive: Receive, limit: int) -> bytes | None:
    """The body of a request, or None if it is larger."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


@final
class Rates:
    """How often each address calls: so many at once, and then so many a second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> float:
        """Count a call if it may be made; otherwise, the seconds until it may."""
        now = time.monotonic()
        left, then = self._left.get(address, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if left < 1.0:
            return (1.0 - left) / self._rate
        self._left[address] = (left - 1.0, now)
        self._left.move_to_end(address)
        while len(self._left) > _MOST_ADDRESSES:
            self._left.popitem(last=False)
        return 0.0
