"""How to decide: the settings that an optimiser, a study and its storage share."""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, final

import numpy as np

from calamint.acquire import ACQUISITIONS, EICD, PESC, Acquisition
from calamint.checks import check_integer, did_you_mean, finite
from calamint.errors import ProblemError
from calamint.model import Model, check_costs, check_known_functions
from calamint.problem import Problem
from calamint.threads import usable_cores

Rationality = float | Literal["batch", "overlap"]

# With fewer, arrays are small, and threads wait for the interpreter: benchmarks/decision.py.
_MANY = 1000
_PLAIN = (str, int, float, bool, type(None))


@final
@dataclass(frozen=True)
class Settings:
    """How to decide.

    Attributes:
        acquisition: "pesc" (expected information about the constrained optimum), another by name
            ("eic", "eicd", "ieci", "ev", "auglag", "thompson", "rs", "rsdg", "random"), or one
            with settings, such as `PESC(solutions=50)`.
        model: How functions are modelled: `cm.Model(...)`.
        seed: Same seed, same results and same durations give the same suggestions.
        initial: How many space-filling inputs every function is measured at first; by default one
            more than there are parameters, and at least three.
        delta: 1 − δ is the probability of feasibility that an incumbent must have.
        rationality: The share γ of the time that full updates may take, the others are partial;
            infinity: all are full, zero: only the first; or "batch": full after new results,
            partial while resources are being filled; or "overlap": full while jobs run, with what
            was known when the last one began, partial when the next one is wanted.
        fantasies: How often the results of pending jobs are fantasized; one takes what is expected.
        couple: If some task measures only some functions, replace all tasks by one that measures
            everything, at cost 1, on one resource.
        retries: How often a job is tried again whose task says `failures="retry"`, or, in a study,
            whose owner died.
        pause: In a study, seconds before the first retry; doubled before every further one.
        threads: How many threads decide if there are many measurements; by default as many as
            there are cores for this process. Suggestions do not depend on it, and it is not stored.
    """

    acquisition: Acquisition = field(default_factory=PESC)
    model: Model = field(default_factory=Model)
    seed: int = 0
    initial: int | None = None
    delta: float = 0.05
    rationality: Rationality = math.inf
    fantasies: int = 1
    couple: bool = False
    retries: int = 2
    pause: float = 1.0
    threads: int | None = None

    def __post_init__(self) -> None:
        pause = finite(self.pause)
        given = {
            "acquisition": read_acquisition(self.acquisition),
            "seed": check_integer(self.seed, "seed", 0),
            "initial": None if self.initial is None else check_integer(self.initial, "initial", 0),
            "delta": read_delta(self.delta),
            "rationality": _read_rationality(self.rationality),
            "fantasies": check_integer(self.fantasies, "fantasies", 1),
            "couple": bool(self.couple),
            "retries": check_integer(self.retries, "retries", 0),
            "pause": pause,
            "threads": None if self.threads is None else check_integer(self.threads, "threads", 1),
        }
        if not isinstance(self.model, Model):
            raise ProblemError(f"model is {self.model!r}: write cm.Model(...).")
        if not isinstance(self.couple, bool | np.bool_):
            raise ProblemError(f"couple is {self.couple!r}: write True or False.")
        if pause is None or pause < 0:
            raise ProblemError(f"pause is {self.pause!r}: write seconds, at least 0.")
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def of(**given: Any) -> "Settings":
        """The settings that are given; a model of None is the usual one."""
        return Settings(**{k: v for k, v in given.items() if k != "model" or v is not None})

    def initial_for(self, problem: Problem) -> int:
        """How many inputs the initial design has."""
        return max(3, len(problem.space) + 1) if self.initial is None else self.initial

    def applied(self, problem: Problem) -> Problem:
        """The problem that is solved: coupled, if that was asked for."""
        if not isinstance(problem, Problem):
            raise ProblemError(f"problem is {problem!r}: write cm.Problem(...).")
        parts = any(not measures_all(problem, task) for task in problem.tasks)
        return problem.coupled() if self.couple and parts else problem

    def check(self, problem: Problem) -> None:
        """Refuse what does not fit the problem."""
        self.model.check(problem)
        check_known_functions(problem)
        check_costs(problem)
        self.acquisition.check(problem)
        parts = [task for task in problem.tasks if not measures_all(problem, task)]
        if parts and not self.acquisition.supports_decoupled:
            able = [repr(name) for name, kind in ACQUISITIONS.items() if kind.supports_decoupled]
            raise ProblemError(
                f"acquisition is {self.acquisition.name!r}, which cannot value task {parts[0]!r}"
                f" that measures only some functions: write one of {', '.join(able)},"
                " or couple=True to measure everything at once."
            )

    def threads_for(self, measurements: int) -> int:
        """How many threads decide."""
        if measurements < _MANY:
            return 1
        return self.threads or usable_cores()

    def to_json(self) -> dict[str, Any]:
        """What is stored with a study."""
        rationality = "inf" if self.rationality == math.inf else self.rationality
        names = [field.name for field in fields(self) if field.name != "threads"]
        plain = {name: getattr(self, name) for name in names}
        return {
            **plain,
            "rationality": rationality,
            "acquisition": _write_acquisition(self.acquisition),
            "model": asdict(self.model),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Settings":
        """What `to_json` wrote."""
        rationality = content["rationality"]
        return Settings(
            **{
                **content,
                "rationality": math.inf if rationality == "inf" else rationality,
                "acquisition": _stored_acquisition(content["acquisition"]),
                "model": _stored_model(content["model"]),
            }
        )


def read_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a study that a `[settings]` table of a spec stands for.

    The acquisition is its name, or a table of its name and its own settings; the model is a table.
    """
    known = [each.name for each in fields(Settings)]
    _check_keys(table, known, "settings")
    given = dict(table)
    acquisition = given.get("acquisition")
    if isinstance(acquisition, Mapping):
        own = {key: value for key, value in acquisition.items() if key != "name"}
        kind = type(read_acquisition(acquisition.get("name", PESC.name)))
        _check_keys(own, list(inspect.signature(kind).parameters), "settings.acquisition")
        given["acquisition"] = kind(**own)
    if "model" in given:
        model = given["model"]
        if not isinstance(model, Mapping):
            raise ProblemError(f"settings.model is {model!r}: write a table, {{ kernel = 'se' }}.")
        _check_keys(model, [each.name for each in fields(Model)], "settings.model")
        given["model"] = Model(**model)
    if given.get("rationality") == "inf":
        given["rationality"] = math.inf
    return given


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise ProblemError(f"{where}.{name} is not a setting: {did_you_mean(name, known)}")


def _stored_model(content: Mapping[str, Any]) -> Model:
    """Studies of earlier versions modelled values as they were, and wrote "ml" for "mle"."""
    stored = {"transform": "none", **content}
    if stored["hyperparameters"] == "ml":
        stored["hyperparameters"] = "mle"
    return Model(**stored)


def measures_all(problem: Problem, task: str) -> bool:
    """Whether a task measures everything that can be measured."""
    return set(problem.tasks[task].measures) == set(problem.measured)


def read_acquisition(acquisition: str | Acquisition) -> Acquisition:
    """An acquisition by name, or as it is."""
    if isinstance(acquisition, str):
        if acquisition not in ACQUISITIONS:
            raise ProblemError(
                f"acquisition is {acquisition!r}: {did_you_mean(acquisition, ACQUISITIONS)}"
            )
        return ACQUISITIONS[acquisition]()
    if not isinstance(acquisition, Acquisition):
        raise ProblemError(
            f"acquisition is {acquisition!r}: write one of {', '.join(map(repr, ACQUISITIONS))}."
        )
    return acquisition


def read_delta(delta: object) -> float:
    """δ, if it can be one."""
    number = finite(delta)
    if number is None or not 0 < number < 1:
        raise ProblemError(f"delta is {delta!r}: write a number between 0 and 1.")
    return number


def _read_rationality(rationality: object) -> Rationality:
    if rationality in ("batch", "overlap"):
        return rationality
    if isinstance(rationality, float) and rationality == math.inf:
        return math.inf
    number = finite(rationality)
    if number is None or number < 0:
        raise ProblemError(
            f"rationality is {rationality!r}: write a number that is not negative, math.inf for"
            " full updates only, 'batch' or 'overlap'."
        )
    return number


def _write_acquisition(acquisition: Acquisition) -> dict[str, Any]:
    if isinstance(acquisition, EICD):
        return {"name": "eicd", "entropy": acquisition.task_chooser.name}
    plain = {name: value for name, value in vars(acquisition).items() if isinstance(value, _PLAIN)}
    return {"name": acquisition.name, **plain}


def _stored_acquisition(content: Mapping[str, Any]) -> Acquisition:
    name, given = content["name"], {k: v for k, v in content.items() if k != "name"}
    if name not in ACQUISITIONS:
        raise ProblemError(
            f"the study decides by {name!r}, which is not one of Calamint's methods:"
            " open it with cm.Study(..., acquisition=...)."
        )
    if name == "eicd":
        return EICD("pesc" if given["entropy"] == "pesc" else "monte carlo")
    return ACQUISITIONS[name](**given)
