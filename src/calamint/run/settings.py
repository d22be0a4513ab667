"""How a study decides, as it is stored, and what may be changed of its problem."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, final

from calamint.acquire import ACQUISITIONS, EICD, Acquisition
from calamint.decide import Clock, Optimizer
from calamint.decide.results import shown
from calamint.decide.settings import Rationality, named_acquisition
from calamint.model import Model
from calamint.problem import Choice, Problem, ProblemError
from calamint.problem.parameters import Parameter, finite, whole
from calamint.problem.spec import to_content
from calamint.run.books import Policy

_PLAIN = (str, int, float, bool, type(None))


@final
@dataclass(frozen=True)
class Settings:
    """What `Study` was created with; see there."""

    acquisition: str | Acquisition = "pesc"
    model: Model | None = None
    seed: int = 0
    initial: int | None = None
    delta: float = 0.05
    rationality: Rationality = math.inf
    fantasies: int = 1
    attempts: int = 3
    pause: float = 1.0

    def policy(self) -> Policy:
        pause = finite(self.pause)
        if pause is None or pause < 0:
            raise ProblemError(f"pause is {self.pause!r}: write seconds, at least 0.")
        return Policy(whole(self.attempts, "attempts", 1), pause)

    def optimizer(self, problem: Problem, clock: Clock) -> Optimizer:
        return Optimizer(
            problem,
            self.acquisition,
            self.model,
            self.seed,
            self.initial,
            self.delta,
            self.rationality,
            self.fantasies,
            clock,
            retries=0,  # the study itself tries again
        )

    def to_json(self) -> dict[str, Any]:
        rationality = self.rationality
        return {
            "seed": int(self.seed),
            "initial": None if self.initial is None else int(self.initial),
            "delta": float(self.delta),
            "fantasies": int(self.fantasies),
            "attempts": int(self.attempts),
            "pause": float(self.pause),
            "rationality": _write_rationality(rationality),
            "acquisition": _write_acquisition(named_acquisition(self.acquisition)),
            "model": asdict(self.model or Model()),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Settings":
        known = {field.name for field in fields(Settings)}
        given = {name: value for name, value in content.items() if name in known}
        given["rationality"] = math.inf if given["rationality"] == "inf" else given["rationality"]
        given["acquisition"] = _read_acquisition(given["acquisition"])
        given["model"] = Model(**given["model"])
        return Settings(**given)


def _write_rationality(rationality: Rationality) -> str | float:
    if isinstance(rationality, str):
        return rationality
    return "inf" if rationality == math.inf else float(rationality)


def _write_acquisition(acquisition: Acquisition) -> dict[str, Any]:
    if isinstance(acquisition, EICD):
        return {"name": "eicd", "entropy": acquisition.tells.name}
    plain = {name: value for name, value in vars(acquisition).items() if isinstance(value, _PLAIN)}
    return {"name": acquisition.name, **plain}


def _read_acquisition(content: Mapping[str, Any]) -> Acquisition:
    name, given = content["name"], {k: v for k, v in content.items() if k != "name"}
    if name not in ACQUISITIONS:
        raise ProblemError(
            f"the study decides by {name!r}, which is not one of Calamint's methods:"
            " open it with cm.Study(..., acquisition=...)."
        )
    if name == "eicd":
        return EICD("pesc" if given["entropy"] == "pesc" else "monte carlo")
    return ACQUISITIONS[name](**given)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """What differs between two specs or settings, each in a few words."""
    found = []
    for key in [*old, *(key for key in new if key not in old)]:
        name = f"{where}{key}"
        if key not in new:
            found.append(f"{name} is missing (it is {shown(old[key], 60)})")
        elif key not in old:
            found.append(f"{name} is new ({shown(new[key], 60)})")
        elif isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            found += differences(old[key], new[key], f"{name}.")
        elif json.dumps(old[key]) != json.dumps(new[key]):  # 1 is not True
            found.append(f"{name} is {shown(new[key], 60)}, and was {shown(old[key], 60)}")
    # The order of parameters and of tasks decides, too.
    if not found and list(old) != list(new):
        found.append(f"{where or 'the spec '}has another order: {', '.join(map(str, old))}")
    return found


def allowed_changes(old: Problem, new: Problem) -> list[str]:
    """The differences, if they only add: tasks, resources, capacity, other costs, wider bounds."""
    changed = differences(to_content(old), to_content(new))
    refused = [
        f"{what}: start another study"
        for what, same in (
            ("the objective is another", old.objective == new.objective),
            ("constraints differ", old.constraints == new.constraints),
            ("known functions differ", list(old.known) == list(new.known)),
            (
                "parameters differ",
                list(old.space.parameters) == list(new.space.parameters),
            ),
        )
        if not same
    ]
    for name, before in old.tasks.items():
        after = new.tasks.get(name)
        if after is None or after.measures != before.measures:
            refused.append(f"task {name!r} is gone or measures something else")
    refused += [
        f"resource {name!r} is gone: jobs may be running on it"
        for name in old.resources
        if name not in new.resources
    ]
    refused += [
        f"parameter {name!r} does not allow all that it did"
        for name, parameter in old.space.parameters.items()
        if name in new.space.parameters and not _wider(parameter, new.space.parameters[name])
    ]
    if refused:
        raise ProblemError(
            f"the problem cannot be changed so: {'; '.join(refused)}. Tasks, resources, capacity"
            " and costs may be added or changed, and bounds widened."
        )
    return changed


def _wider(old: Parameter, new: Parameter) -> bool:
    """Whether all that was allowed still is, and spaced in the same way."""
    if isinstance(old, Choice) or isinstance(new, Choice):
        both = isinstance(old, Choice) and isinstance(new, Choice)
        return both and json.dumps(new.options[: len(old.options)]) == json.dumps(old.options)  # type: ignore[union-attr]
    same = type(old) is type(new) and old.log == new.log
    return same and new.low <= old.low and new.high >= old.high
