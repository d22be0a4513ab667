"""What studies hand out, as JSON and back: what a server and its clients send each other.

Numbers that JSON does not have (infinite ones, and NaN) are null in answers. A client refuses them,
except as measured values: null would mean that nothing was given.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from calamint.checks import finite, shown
from calamint.decide import FunctionPrediction, Prediction, Recommendation, Record, Suggestion
from calamint.errors import ProblemError, ResultError
from calamint.problem import Problem
from calamint.run.jobs import Job
from calamint.run.store import ProblemChange
from calamint.run.summary import Summary

T = TypeVar("T")
_REASONS = ("bits", "cost", "scores", "update", "decision_seconds")
# What a server takes in one request: bytes, rows to add, and points.
LARGEST_BODY, MOST_ROWS, MOST_POINTS = 1_000_000, 10_000, 1000


def to_json(value: Any) -> Any:
    """Dataclasses, arrays and collections as what JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(each) for each in value]
    if isinstance(value, np.generic | np.ndarray):
        return to_json(value.tolist())
    return value


def exact_json(value: Any, field: str, kind: type[ProblemError] = ProblemError) -> Any:
    """What was given to a client, as it is, in JSON; `field` is what the error calls it.

    Raises:
        ProblemError: If JSON does not have it; or another `kind` of error.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {
            str(key): exact_json(each, f"{field}[{key!r}]", kind) for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [exact_json(each, f"{field}[{i}]", kind) for i, each in enumerate(value)]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    number = finite(value)
    if number is None:
        is_float = isinstance(value, float | np.floating)
        remedy = "a finite number" if is_float else "a number, a text, True or False"
        raise kind(f"{field} is {shown(value)}: write {remedy}.")
    return int(value) if isinstance(value, Integral) else number


def values_to_json(values: Any, field: str = "values") -> dict[str, Any]:
    """Measured values: one that is not finite is null, as its measurement failed.

    Raises:
        ResultError: If they are not a dict, or JSON does not have one of them.
    """
    if not isinstance(values, Mapping):
        raise ResultError(f"{field} is {shown(values)}: write a dict, such as {{'loss': 0.5}}.")
    return {str(name): _measured(value, f"{field}[{name!r}]") for name, value in values.items()}


def _measured(value: Any, field: str) -> Any:
    number = value[0] if isinstance(value, tuple | list) and len(value) == 2 else value
    if isinstance(number, float | np.floating) and not math.isfinite(number):
        return None
    if isinstance(value, np.ndarray) and value.ndim > 0:
        raise ResultError(f"{field} is {shown(value)}: write a number, or (value, standard_error).")
    return exact_json(value, field, ResultError)


def rows_to_json(
    rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
    notes: Iterable[Mapping[str, Any]] | None,
) -> list[dict[str, Any]]:
    """Rows to add, which must be few enough for one request: all are added, or none."""
    try:
        given = [(params, values) for params, values in rows]
    except (TypeError, ValueError):
        raise ResultError("rows: write a list of pairs, parameters and values.") from None
    kept = [{}] * len(given) if notes is None else list(notes)
    if len(kept) != len(given):
        raise ProblemError(f"notes has {len(kept)} of {len(given)}: write one for each row.")
    if len(given) > MOST_ROWS:
        raise ProblemError(
            f"rows has {len(given):,}: write at most {MOST_ROWS:,} at a time, and {LARGEST_BODY:,}"
            " bytes."
        )
    return [
        {"params": params, "values": values_to_json(values, f"rows[{i}].values"), "notes": note}
        for i, ((params, values), note) in enumerate(zip(given, kept, strict=True))
    ]


def pages_of(points: Iterable[Any]) -> list[list[Any]]:
    """Points in as many parts as requests about them need; one, if there are none."""
    given = [exact_json(each, f"points[{i}]") for i, each in enumerate(points)]
    longest = max((len(json.dumps(each)) for each in given), default=0)
    page = max(1, min(MOST_POINTS, LARGEST_BODY // (longest + 2) - 1))
    return [given[i : i + page] for i in range(0, max(1, len(given)), page)]


def from_json(kind: type[T], content: Mapping[str, Any], **given: Any) -> T:
    """A dataclass from its fields, of which some may be given otherwise."""
    found = {}
    for each in fields(kind):  # type: ignore[arg-type]
        value = content.get(each.name)
        is_tuple = isinstance(value, list) and "tuple" in str(each.type)
        found[each.name] = tuple(value or ()) if is_tuple else value
    return kind(**{**found, **given})


def job_to_json(job: Job) -> dict[str, Any]:
    """A job, with why it was chosen, in words, too."""
    made = job.suggestion
    return {
        "number": job.number,
        "attempt": job.attempt,
        "task": job.task,
        "params": to_json(job.params),
        "resources": list(job.resources),
        "study": job.study,
        **{name: to_json(getattr(made, name)) for name in _REASONS},
        "warnings": list(made.warnings),
        "why": str(job),
    }


def job_from_json(content: Mapping[str, Any]) -> Job:
    number, task, params = content["number"], content["task"], content["params"]
    resources = tuple(content["resources"])
    reasons = {name: content[name] for name in _REASONS}
    made = Suggestion(
        number, task, params, resources, **reasons, warnings=tuple(content["warnings"])
    )
    study, attempt = content["study"], content["attempt"]
    return Job(number, task, dict(params), resources, attempt, suggestion=made, study=study)


def record_to_json(record: Record) -> dict[str, Any]:
    content: dict[str, Any] = to_json(record)
    del content["point"]  # in the units of the model
    return content


def record_from_json(content: Mapping[str, Any], problem: Problem) -> Record:
    point = problem.space.encode(content["params"], outside=True)
    return from_json(Record, content, point=point)


def prediction_from_json(content: Mapping[str, Any]) -> Prediction:
    functions = {
        name: from_json(FunctionPrediction, each) for name, each in content["functions"].items()
    }
    return Prediction(functions, content["probability"])


def recommendation_from_json(content: Mapping[str, Any]) -> Recommendation:
    return from_json(Recommendation, content)


def summary_from_json(content: Mapping[str, Any]) -> Summary:
    best = content["recommendation"]
    warnings: Sequence[Any] = content["warnings"]
    return from_json(
        Summary,
        content,
        recommendation=None if best is None else recommendation_from_json(best),
        warnings=[(number, words) for number, words in warnings],
    )


def change_from_json(content: Mapping[str, Any]) -> ProblemChange:
    return from_json(ProblemChange, content)
