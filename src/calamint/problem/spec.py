"""Problems as TOML or JSON: pydantic checks the form, `Problem` checks the meaning.

Reading returns the arguments that `Problem` is made with.

A function in `known` or `cost` is written as "module:function", or "file.py:function", and imported
when it is read.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.problem.imports import imported, name_of
from calamint.problem.parameters import Choice, Integer, Parameter, Real
from calamint.problem.tasks import Task

if TYPE_CHECKING:
    from calamint.problem.problem import Problem

Arguments = dict[str, Any]
# Finds a function by its path, "module:function", for a field of the spec.
Find = Callable[[str, str], Callable[..., Any]]

_Reals = Annotated[list[float], Field(min_length=2, max_length=2)]
_Integers = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Spec(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class ParameterSpec(_Spec):
    """Exactly one of real, integer and choice."""

    real: _Reals | None = None
    integer: _Integers | None = None
    choice: list[str | bool | int | float] | None = None
    former: list[str | bool | int | float] | None = None
    log: bool | None = None


class TaskSpec(_Spec):
    measures: list[str]
    runs_on: list[str | list[str]] | None = None
    cost: float | str | None = None
    command: list[str] | None = None
    failures: str | None = None


class ProblemSpec(_Spec):
    """The settings of a study may stand beside its problem, and are none of it."""

    minimize: str | None = None
    maximize: str | None = None
    constraints: list[str] | None = None
    known: dict[str, str] | None = None
    space: dict[str, ParameterSpec]
    tasks: dict[str, TaskSpec] | None = None
    resources: dict[str, int] | None = None
    settings: dict[str, Any] | None = None


def from_toml(text: str) -> Arguments:
    _check_text(text)
    try:
        return _read(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        twice = " (a key is written twice)" if "overwrite" in str(error) else ""
        raise ProblemError(f"the spec is not TOML: {error}{twice}.") from error


def from_json(text: str) -> Arguments:
    _check_text(text)
    try:
        return _read(json.loads(text, object_pairs_hook=_distinct_keys))
    except ProblemError:
        raise
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"the spec is not JSON: {error}.") from error


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ProblemError(f"the spec is {text!r}: write its text, such as path.read_text().")
    if text.strip().endswith((".toml", ".json")) and "\n" not in text.strip():
        raise ProblemError(
            f"the spec is {text!r}, a file's name: write its text, such as path.read_text()."
        )


def to_toml(problem: "Problem") -> str:
    return tomli_w.dumps(_write(problem))


def to_json(problem: "Problem") -> str:
    return json.dumps(_write(problem), indent=2)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ProblemError(f"the spec has {key!r} twice: write it once.")
    return dict(pairs)


def _read(content: object, find: Find | None = None) -> Arguments:
    find = find or _import
    if not isinstance(content, dict):
        raise ProblemError(f"the spec is {content!r}: write a table with space and minimize.")
    try:
        spec = ProblemSpec.model_validate(content)
    except ValidationError as error:
        raise ProblemError("\n".join(_sentences(error, content))) from None
    tasks = spec.tasks
    return {
        "space": {name: _read_parameter(name, entry) for name, entry in spec.space.items()},
        "minimize": spec.minimize,
        "maximize": spec.maximize,
        "constraints": spec.constraints or (),
        "known": {name: find(path, f"known.{name}") for name, path in (spec.known or {}).items()},
        "tasks": None
        if tasks is None
        else {name: _read_task(name, entry, find) for name, entry in tasks.items()},
        "resources": spec.resources,
    }


def _read_parameter(name: str, entry: ParameterSpec) -> Parameter:
    given = [kind for kind in ("real", "integer", "choice") if getattr(entry, kind) is not None]
    if len(given) != 1:
        raise ProblemError(
            f"space.{name} has {' and '.join(given) or 'no kind'}: write exactly one of"
            " real = [low, high], integer = [low, high] or choice = [...]."
        )
    if entry.choice is not None and entry.log is not None:
        raise ProblemError(f"space.{name}.log is {entry.log!r}: leave it out for a choice.")
    if entry.choice is None and entry.former is not None:
        raise ProblemError(f"space.{name}.former is {entry.former!r}: it is for a choice only.")
    try:
        if entry.real is not None:
            return Real(entry.real[0], entry.real[1], log=entry.log or False)
        if entry.integer is not None:
            return Integer(entry.integer[0], entry.integer[1], log=entry.log or False)
        return Choice(*(entry.choice or ()), former=entry.former or ())
    except ProblemError as error:
        raise ProblemError(f"space.{name}: {error}") from None


def _read_task(name: str, entry: TaskSpec, find: Find) -> Task:
    cost: Any = 1.0 if entry.cost is None else entry.cost
    if isinstance(cost, str) and ":" in cost:
        cost = find(cost, f"tasks.{name}.cost")
    try:
        failures: Any = entry.failures or "model"
        return Task(entry.measures, entry.runs_on, cost, entry.command, failures)
    except ProblemError as error:
        raise ProblemError(f"tasks.{name}.{error}") from None


def to_content(problem: "Problem") -> dict[str, Any]:
    """The spec as a dict; functions that cannot be imported are named all the same."""
    return _write(problem, lambda function, field: name_of(function))  # noqa: ARG005


def from_content(
    content: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]], trust: bool
) -> Arguments:
    """Functions are those that are given, by their paths; others are imported only with trust."""

    def find(path: str, field: str) -> Callable[..., Any]:
        if path in functions:
            return functions[path]
        if not trust:
            raise ProblemError(
                f"{field} is {path!r}, which would have to be imported: pass the problem, or"
                " trust=True (--trust on the command line) if you trust who wrote this storage."
            )
        return _import(path, field)

    return _read(dict(content), find)


def functions_of(problem: "Problem") -> dict[str, Callable[..., Any]]:
    """The functions that a problem was given, by their paths."""
    costs = [task.cost for task in problem.tasks.values() if callable(task.cost)]
    return {name_of(function): function for function in (*problem.known.values(), *costs)}


def _write(
    problem: "Problem", named: Callable[[Callable[..., Any], str], str] | None = None
) -> dict[str, Any]:
    named = named or _path
    content: dict[str, Any] = {}
    content["maximize" if problem.objective.maximize else "minimize"] = problem.objective.name
    if problem.constraints:
        content["constraints"] = [str(constraint) for constraint in problem.constraints]
    if problem.known:
        content["known"] = {
            name: named(function, f"known.{name}") for name, function in problem.known.items()
        }
    content["space"] = {
        name: _write_parameter(parameter) for name, parameter in problem.space.parameters.items()
    }
    content["tasks"] = {
        name: _write_task(name, task, named) for name, task in problem.tasks.items()
    }
    content["resources"] = dict(problem.resources)
    return content


def _write_parameter(parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter, Choice):
        former = {"former": list(parameter.former)} if parameter.former else {}
        return {"choice": list(parameter.options), **former}
    kind = "real" if isinstance(parameter, Real) else "integer"
    entry: dict[str, Any] = {kind: [parameter.low, parameter.high]}
    return {**entry, "log": True} if parameter.log else entry


def _write_task(
    name: str, task: Task, named: Callable[[Callable[..., Any], str], str]
) -> dict[str, Any]:
    entry: dict[str, Any] = {"measures": list(task.measures)}
    entry["runs_on"] = [
        words[0] if len(words) == 1 else list(words) for words in task.runs_on or ()
    ]
    if callable(task.cost):
        entry["cost"] = named(task.cost, f"tasks.{name}.cost")
    elif task.cost != 1.0:
        entry["cost"] = task.cost
    if task.command is not None:
        entry["command"] = list(task.command)
    if task.failures != "model":
        entry["failures"] = task.failures
    return entry


def _import(path: str, field: str) -> Callable[..., Any]:
    remedy = "write 'module:function' for a function that can be imported."
    module, _, name = path.partition(":")
    if not module or not name:
        raise ProblemError(f"{field} is {path!r}: {remedy}")
    try:
        found = imported(module, name)
    except (Exception, SystemExit) as error:
        raise ProblemError(
            f"{field} is {path!r}, but importing it failed ({type(error).__name__}: {error}):"
            f" {remedy}"
        ) from error
    if not callable(found):
        raise ProblemError(f"{field} is {path!r}, which is not a function: {remedy}")
    return found


def _path(function: Callable[..., Any], field: str) -> str:
    path = name_of(function)
    try:
        named = not path.startswith("__main__") and _import(path, field) == function
    except ProblemError:
        named = False
    if not named:
        raise ProblemError(
            f"{field} is {function!r}, which a spec cannot name:"
            " define it in a module, as a function that can be imported."
        )
    return path


def _sentences(error: ValidationError, content: Mapping[str, Any]) -> list[str]:
    """One sentence a mistake: the field, the value, and what to write instead."""
    sentences: dict[str, str] = {}
    details = error.errors()
    misspelled = {detail["loc"][:-1] for detail in details if detail["type"] == "extra_forbidden"}
    for detail in details:
        places = _places(detail["loc"], content, missing=detail["type"] == "missing")
        field = ".".join(str(place) for place in places)
        if detail["type"] == "extra_forbidden":
            hint = did_you_mean(str(places[-1]), _keys(places[:-1]))
            sentences[field] = f"{field} is not a key of a spec: {hint}"
        elif detail["type"] == "missing":
            if detail["loc"][:-1] not in misspelled:
                sentences[field] = f"{field} is missing: add it to the spec."
        else:
            value = _value_at(places, content)
            sentences.setdefault(field, f"{field} is {value!r}: write {_form(places)}.")
    return list(sentences.values())


def _places(location: tuple[str | int, ...], content: Any, missing: bool) -> list[str | int]:
    """A pydantic location without the names of union members that it ends in."""
    places: list[str | int] = []
    for place in location:
        if isinstance(content, dict) and (place in content or missing):
            content = content.get(place)
        elif isinstance(content, list) and isinstance(place, int):
            content = content[place]
        else:
            break
        places.append(place)
    return places


def _value_at(places: list[str | int], content: Any) -> Any:
    for place in places:
        content = content[place]
    return content


def _keys(places: list[str | int]) -> list[str]:
    """The keys that are valid in the table at this place."""
    model: type[BaseModel] = ProblemSpec
    if places and places[0] == "space":
        model = ParameterSpec
    elif places and places[0] == "tasks":
        model = TaskSpec
    return list(model.model_fields)


_FORMS = {
    "minimize": "the name of a function, such as 'error'",
    "maximize": "the name of a function, such as 'accuracy'",
    "constraints": "a list of limits, such as ['latency_ms <= 2']",
    "known": "names with 'module:function', such as { weight = 'parts:weight' }",
    "resources": "names with whole numbers, such as { gpu = 1 }",
    "real": "two numbers, such as [0.0, 1.0]",
    "integer": "two whole numbers, such as [16, 1024]",
    "choice": "a list of texts, numbers, true or false",
    "former": "a list of texts, numbers, true or false",
    "log": "true or false",
    "measures": "a list of names, such as ['error']",
    "runs_on": "a list of resources, such as ['cpu', ['gpu', 'licence']]",
    "cost": "a positive number, 'learn' or 'module:function'",
    "command": "a list of words, such as ['python', 'train.py']",
    "failures": "'model', 'retry' or 'ignore'",
    "space": "a table such as { width = { integer = [16, 1024] } }",
    "tasks": "a table such as { train = { measures = ['error'] } }",
    "settings": "a table such as { seed = 1, delta = 0.01 }",
}


def _form(places: list[str | int]) -> str:
    named = [place for place in places if isinstance(place, str) and place in _FORMS]
    if len(places) == 2 and places[0] == "space":
        return "a table such as { real = [0.0, 1.0] }"
    if len(places) == 2 and places[0] == "tasks":
        return "a table such as { measures = ['error'] }"
    return _FORMS[named[-1]] if named else "what the documentation of specs says"
