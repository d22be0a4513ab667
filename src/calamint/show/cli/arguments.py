"""Reading what stands on the command line: problems with settings, names with values."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from calamint import problem, run
from calamint.checks import did_you_mean
from calamint.decide import read_settings
from calamint.errors import ProblemError


def read_problem(source: str) -> "problem.Problem":
    """A problem from a TOML or JSON file, or `module:name`."""
    return _read_spec(source)[0]


def read_problem_and_settings(
    source: str, changed: Sequence[str] = ()
) -> tuple["problem.Problem", dict[str, Any]]:
    """The problem, and settings from the spec, of which some are `changed` by name=value."""
    found, table = _read_spec(source)
    if isinstance(table.get("acquisition"), str):
        table["acquisition"] = {"name": table["acquisition"]}
    for path, text in read_pairs(changed).items():
        *places, last = path.split(".")
        inner = table
        for place in places:
            inner = inner.setdefault(place, {})
            if not isinstance(inner, dict):
                raise ProblemError(f"{path}={text}: {place!r} has no settings of its own.")
        inner[last] = _read_setting(text)
    return found, read_settings(table)


def _read_spec(source: str) -> tuple["problem.Problem", dict[str, Any]]:
    if not source.endswith((".toml", ".json")):
        found = import_name(source, "a spec ending in .toml or .json, or 'module:problem'")
        if not isinstance(found, problem.Problem):
            raise ProblemError(f"{source!r} is {type(found).__name__}: name a cm.Problem.")
        return found, {}
    try:
        text = Path(source).read_text()
    except OSError as error:
        raise ProblemError(f"the spec {source!r} cannot be read: {error.strerror}.") from error
    if source.endswith(".toml"):
        return problem.Problem.from_toml(text), tomllib.loads(text).get("settings", {})
    return problem.Problem.from_json(text), json.loads(text).get("settings") or {}


def _read_setting(text: str) -> Any:
    """A value as TOML writes it; a word needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def import_name(path: str, what: str) -> Any:
    module, _, name = path.partition(":")
    if not module or not name:
        raise ProblemError(f"{path!r} is not {what}.")
    try:
        return problem.imported(module, name)
    except (ImportError, AttributeError) as error:
        raise ProblemError(f"{path!r} cannot be imported: {error}.") from error


def read_rationality(text: str) -> Any:
    """A number, which may be inf, or "batch"; what is neither is refused where it is used."""
    with suppress(ValueError):
        return float(text)
    return text


def read_pairs(words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise ProblemError(f"{word!r} is not name=value: write such as error=0.07.")
        pairs[key] = value
    return pairs


def read_counts(words: Sequence[str]) -> dict[str, int]:
    """Numbers of jobs by resource: gpu is gpu=1."""
    counts = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not key.strip():
            raise ProblemError(f"resource is {word!r}: write its name, such as gpu or cpu=4.")
        text = text if sign else "1"
        if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
            raise ProblemError(f"{key}={text}: write how many jobs at a time, such as {key}=1.")
        counts[key] = int(text)
    return counts


def check_offered(study: "run.StudyView", offered: Mapping[str, int]) -> None:
    """Refuse resources that a study does not have."""
    known = study.problem.resources
    for name in offered:
        if name not in known:
            raise ProblemError(f"resource is {name!r}: {did_you_mean(name, known)}")


def read_values(words: Sequence[str]) -> dict[str, Any]:
    """Values by name: 0.07, or 0.07+-0.01 with its standard error, or yes, no, pass, fail."""
    return {key: run.read_measurement(key, text) for key, text in read_pairs(words).items()}


def read_params(study: "run.StudyView", words: Sequence[str]) -> dict[str, Any]:
    known = study.problem.space.parameters
    return {
        key: run.read_text(known[key], text) if key in known else text
        for key, text in read_pairs(words).items()
    }
