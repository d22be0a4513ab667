"""A request about one study: who makes it, what they may do, and that it is done once."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, TypeVar, final

from fastapi import Depends, Header, Path, Request

from calamint.checks import did_you_mean
from calamint.errors import AccessError, ProblemError, RepeatedRequestError
from calamint.problem import Problem
from calamint.run import (
    Answered,
    Caller,
    Right,
    StudyEditor,
    StudyRecord,
    answered,
    job_details,
)
from calamint.show.serve.access import Access, Visitor
from calamint.show.serve.bodies import LARGEST_ID
from calamint.show.serve.changes import Changes
from calamint.show.serve.hub import Hub

T = TypeVar("T")
_KEY = re.compile(r"[\x21-\x7e]{1,180}")
StudyNumber = Annotated[int, Path(ge=1, le=LARGEST_ID, description="As `/api/studies` lists it.")]
JobNumber = Annotated[int, Path(ge=0, le=LARGEST_ID)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Up to 180 printable characters, another one for each request: however often a"
        " request is made with the same key, it has its effect once.",
    ),
]


@final
@dataclass(frozen=True)
class Call:
    """A request about one study."""

    hub: Hub
    changes: Changes
    access: Access
    visitor: Visitor
    record: StudyRecord
    key: str | None = None
    digest: str = ""

    @property
    def study(self) -> int:
        return self.record.id

    @cached_property
    def problem(self) -> Problem:
        """That of the study; functions that it names are not needed here."""
        return Problem.from_content(self.record.problem)

    def caller(self, part: int | None = None) -> Caller:
        """Who wants a change; a request that makes several has a key for each."""
        # No key that is given has a space.
        key = self.key if part is None or self.key is None else f"{self.key} {part}"
        return Caller(self.visitor.name, key, self.digest)

    def editor(self) -> StudyEditor:
        return self.hub.editor(self.record).on_behalf_of(self.caller())

    def once(
        self, do: Callable[[], T], again: Callable[[Answered], T], part: int | None = None
    ) -> T:
        """Do something, or say what was done when it was asked for before."""
        caller = self.caller(part)
        earlier = answered(self.hub.database, self.study, caller)
        if earlier is None:
            try:
                return do()
            except RepeatedRequestError:  # at the same moment
                earlier = answered(self.hub.database, self.study, caller)
                if earlier is None:
                    raise
            finally:
                self.changes.poke(self.study)
        return again(earlier)

    def own_attempt(self, number: int, attempt: int | None) -> int | None:
        """The attempt at a job that a request is about: the latest, unless it says which. None, of
        any attempt, for those who manage the study.

        Raises:
            AccessError: If it is neither this visitor's, nor on resources that are.
        """
        if self.visitor.may("manage"):
            return attempt
        _, attempts, _ = job_details(self.hub.database, self.study, number)
        if attempt is None and attempts:
            attempt = attempts[-1].number
        for each in attempts:
            is_ours = each.owner == f"remote:{self.visitor.name}"
            on_ours = each.resources and set(each.resources) <= set(self.visitor.resources)
            if each.number == attempt and (is_ours or on_ours):
                return attempt
        raise AccessError(
            f"job {number} was not given to token {self.visitor.name!r}. Nothing was changed."
        )

    def check_again(self) -> None:
        """Refuse what has waited since before its token was revoked.

        Raises:
            AccessError: If it was.
        """
        self.access.check_again(self.visitor)

    def check_resource(self, resource: str | None) -> None:
        """Refuse a resource that the study does not have, or that is not this visitor's."""
        known = self.record.problem["resources"]
        if resource is not None and resource not in known:
            raise ProblemError(f"resource is {resource!r}: {did_you_mean(resource, known)}")
        allowed = self.visitor.resources
        if resource is not None and allowed and resource not in allowed:
            raise AccessError(
                f"token {self.visitor.name!r} is for {', '.join(allowed)}, not {resource}."
            )


def is_key(text: str) -> bool:
    """Whether it can be an idempotency key."""
    return _KEY.fullmatch(text) is not None


def state_of(request: Request) -> tuple[Hub, Changes, Access]:
    state = request.app.state
    return state.hub, state.changes, state.access


def visitor(request: Request) -> Visitor:
    """Who makes a request."""
    return request.app.state.access.visitor(request)


def needs(right: Right) -> Any:
    """A dependency: the request, of somebody who has a right."""

    def call(request: Request, study: StudyNumber, key: IdempotencyKey = None) -> Call:
        hub, changes, access = state_of(request)
        who = access.visitor(request)
        who.check(right, study)
        if key is not None and not is_key(key):
            raise ProblemError("Idempotency-Key is not 1 to 180 printable ASCII characters.")
        where = f"{request.url.path}?{request.url.query}"
        said = f"{request.method} {where} {who.name} ".encode()
        digest = sha256(said + request.scope.get("calamint.body", b"")).hexdigest()
        return Call(hub, changes, access, who, hub.record(study), key, digest)

    return Depends(call)


Reading = Annotated[Call, needs("read")]
Working = Annotated[Call, needs("work")]
Managing = Annotated[Call, needs("manage")]
