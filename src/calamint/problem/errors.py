"""What is said when a problem is stated wrongly: one sentence naming field, value and remedy."""

from collections.abc import Iterable
from difflib import get_close_matches


class ProblemError(ValueError):
    """A problem, a spec or a parameter value that cannot be accepted as written."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to end a sentence with: the closest known name, or the list of them."""
    names = list(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"write one of {', '.join(map(repr, names))}." if names else "there are none."


# Words that float() reads as numbers would make "inf <= x" ambiguous.
_NUMBER_WORDS = {"inf", "infinity", "nan"}


def check_name(name: object, field: str) -> str:
    """Return `name` if it can serve as a name in specs, limits and table columns."""
    if isinstance(name, str) and name.lower() in _NUMBER_WORDS:
        raise ProblemError(f"{field} is named {name!r}, which reads as a number: write another.")
    if not isinstance(name, str) or not name.isidentifier():
        raise ProblemError(
            f"{field} is named {name!r}: write letters, digits and underscores,"
            " beginning with a letter, such as 'latency_ms'."
        )
    return name


def check_distinct(names: Iterable[object], field: str) -> None:
    """Refuse the first name that occurs twice."""
    seen: list[object] = []
    for name in names:
        if name in seen:
            raise ProblemError(f"{field} contains {name!r} twice: write it once.")
        seen.append(name)
