"""Who calls, and what they may do: tokens, the local user, sessions and forms."""

import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import final

from starlette.requests import HTTPConnection

from calamint.errors import AccessError
from calamint.run import LOCAL_USER, RIGHTS, Database, Right, Token, find_token

COOKIE = "calamint_token"
# Of a request that came through a proxy, and so perhaps from another machine.
_FORWARDED = ("forwarded", "x-forwarded-for", "via")


class MissingTokenError(AccessError):
    """No token, or one that is not accepted."""


@final
@dataclass(frozen=True)
class Visitor:
    """Who calls.

    Attributes:
        name: Recorded with what is done.
        token: None for the user of this machine, who may do everything.
        session: What forms are tied to.
    """

    name: str
    token: Token | None
    session: str

    def check(self, right: Right, study: int | None = None) -> None:
        """Refuse what the token does not allow.

        Raises:
            AccessError: With a sentence that says what is missing.
        """
        if self.token is None:
            return
        if study is not None and self.token.study not in (None, study):
            raise AccessError(f"token {self.name!r} is for another study.")
        if not self.may(right):
            raise AccessError(
                f"token {self.name!r} may {self.token.right}, and this needs the right to {right}."
            )

    def may(self, right: Right) -> bool:
        return self.token is None or RIGHTS.index(self.token.right) >= RIGHTS.index(right)

    @property
    def resources(self) -> tuple[str, ...]:
        """Those that it is limited to; all if there are none."""
        return () if self.token is None else self.token.resources


@final
class Access:
    """Who may call.

    needs_token  whether the local user needs one, too
    """

    def __init__(self, database: Database, needs_token: bool) -> None:
        self.database, self.needs_token = database, needs_token
        self._secret = secrets.token_bytes(32)

    def visitor(self, request: HTTPConnection) -> Visitor:
        """Who makes a request. Browsers show their token in a cookie, which counts for pages only:
        they would send it with requests that other sites make them make.

        Raises:
            MissingTokenError: If nobody who may.
        """
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        shown = given.strip() if scheme.lower() == "bearer" else ""
        if scheme and not shown:
            raise MissingTokenError("Authorization is not of the form 'Bearer TOKEN'.")
        if not shown and not request.url.path.startswith("/api"):
            shown = request.cookies.get(COOKIE, "")
        if shown:
            token = find_token(self.database, shown)
            if token is None:
                raise MissingTokenError("this token is not accepted: it is wrong, or was revoked.")
            return Visitor(token.name, token, shown)
        if self.needs_token or any(each in request.headers for each in _FORWARDED):
            raise MissingTokenError(
                "a token is needed: ask whoever runs the server for one, which"
                " `calamint token create NAME` makes, and send it as"
                " 'Authorization: Bearer TOKEN'."
            )
        return Visitor(LOCAL_USER, None, LOCAL_USER)

    def check_again(self, visitor: Visitor) -> None:
        """Refuse a visitor whose token was revoked meanwhile.

        Raises:
            MissingTokenError: If it was.
        """
        if visitor.token is not None and find_token(self.database, visitor.session) is None:
            raise MissingTokenError("this token is not accepted any more.")

    def form_token(self, visitor: Visitor) -> str:
        """What a form of ours has, and one of another site cannot have."""
        return self.proof(visitor, "")

    def proof(self, visitor: Visitor, words: str) -> str:
        """That words in an address are those of this server."""
        said = f"{visitor.session}\n{words}".encode()
        return hmac.new(self._secret, said, sha256).hexdigest()

    def is_ours(self, visitor: Visitor, words: str, shown: str) -> bool:
        return hmac.compare_digest(self.proof(visitor, words).encode(), shown.encode())

    def check_form(self, visitor: Visitor, shown: str) -> None:
        if not self.is_ours(visitor, "", shown):
            raise AccessError(
                "this form was not made here, or before the server was restarted: go back, load"
                " the page again, and send it again. Nothing was changed."
            )
