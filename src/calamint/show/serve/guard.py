"""What every request passes: the host that it names, the site that it comes from, its size, and how
often its sender calls; and the headers of every answer."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calamint.show.serve.answers import refusal

LARGEST_BODY = 1_000_000
# Requests of one sender a second, and at once.
RATE, BURST = 200.0, 400.0
# Tokens that are wrong, from one address: as many at once, and one every two seconds.
_WRONG, _WRONG_RATE = 20.0, 0.5
_MOST_SENDERS = 10_000
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    # Plotly sets styles of its own, which change nothing that matters; scripts are files of ours.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@final
@dataclass(frozen=True)
class Limits:
    """What a server takes.

    hosts      names by which it may be called, besides localhost and addresses
    body       bytes of a request
    rate       requests of one sender a second
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
        self._calls = Rates(limits.rate, max(BURST, limits.rate))
        self._wrong = Rates(_WRONG_RATE, _WRONG)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if message["status"] == 401:
                    self._wrong.take(_address(scope))
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refused(scope, headers)
        body = b""
        if refused is None and scope["method"] not in _SAFE:
            read = await _read(receive, self._limits.body)
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
        if scope["method"] not in _SAFE and not _is_own_site(headers, host):
            return 403, ("the request was made by a page of another site. Nothing was changed."), 0
        address = _address(scope)
        sender = headers.get("authorization") or headers.get("cookie") or ""
        wait = self._calls.take(f"{address} {sha256(sender.encode()).hexdigest()}")
        wait = max(wait, self._wrong.wait(address))
        if wait > 0:
            return 429, "too many requests: wait a moment. Nothing was changed.", int(wait) + 1
        return None

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower().rstrip(".") in self._hosts
        return True  # no other site can have an address of this machine for its name


def _is_own_site(headers: Headers, host: str) -> bool:
    """Whether a request that changes something comes from a page of this server, or from no page:
    browsers say where it comes from."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == host


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
    """How often each sender calls: so many at once, and then so many a second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def _now(self, sender: str) -> float:
        """How many more calls it has."""
        left, then = self._left.get(sender, (self._burst, 0.0))
        return min(self._burst, left + (time.monotonic() - then) * self._rate)

    def wait(self, sender: str) -> float:
        """Seconds until it may call again; 0 if it may now."""
        return max(0.0, (1.0 - self._now(sender)) / self._rate)

    def take(self, sender: str) -> float:
        """The same, and count this call if it may be made."""
        left = self._now(sender)
        if left < 1.0:
            return (1.0 - left) / self._rate
        self._left[sender] = (left - 1.0, time.monotonic())
        self._left.move_to_end(sender)
        while len(self._left) > _MOST_SENDERS:
            self._left.popitem(last=False)
        return 0.0
