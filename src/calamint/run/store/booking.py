"""A decision on its way into a storage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from calamint.decide import Suggestion

if TYPE_CHECKING:  # reading a study's tables must not load the models
    from calamint.decide import Decision


@final
@dataclass(frozen=True)
class Booking:
    """A decision that becomes a job.

    Attributes:
        free: What was free when tasks competed for it, if they did.
        owner: The process that runs it.
        lease: Seconds after which it is given back, unless its lease is renewed.
    """

    suggestion: Suggestion
    decision: "Decision"
    free: Mapping[str, int] | None
    owner: str
    lease: float | None
