"""What studies hand out, as JSON and back: what a server and its clients send each other.

Numbers that JSON does not have (infinite ones, and NaN) are null.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from calamint.decide import FunctionPrediction, Prediction, Recommendation, Record, Suggestion
from calamint.problem import Problem
from calamint.run.jobs import Job
from calamint.run.store import ProblemChange
from calamint.run.summary import Summary

T = TypeVar("T")
_REASONS = ("bits", "cost", "scores", "update", "decision_seconds")


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
