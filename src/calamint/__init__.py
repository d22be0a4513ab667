"""Calamint: which measurement to make next, at which input, on which machine."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calamint.decide import (
        Optimizer,
        Prediction,
        Recommendation,
        ResultError,
        Suggestion,
        optimize,
    )
    from calamint.model import Model
    from calamint.problem import Choice, Constraint, Integer, Problem, ProblemError, Real, Task
    from calamint.run import Job, Local, Simulated, StorageError, Study
    from calamint.show.live import Live

__version__ = "0.1.0"

__all__ = [
    "Choice",
    "Constraint",
    "Integer",
    "Job",
    "Live",
    "Local",
    "Model",
    "Optimizer",
    "Prediction",
    "Problem",
    "ProblemError",
    "Real",
    "Recommendation",
    "ResultError",
    "Simulated",
    "StorageError",
    "Study",
    "Suggestion",
    "Task",
    "optimize",
]

# Loaded when first used: importing Calamint must not cost what only a decision needs.
_ROOMS = {
    "problem": ("Choice", "Constraint", "Integer", "Problem", "ProblemError", "Real", "Task"),
    "model": ("Model",),
    "decide": (
        "Optimizer",
        "Prediction",
        "Recommendation",
        "ResultError",
        "Suggestion",
        "optimize",
    ),
    "run": ("Job", "Local", "Simulated", "StorageError", "Study"),
    "show.live": ("Live",),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "plots":
        return importlib.import_module("calamint.show.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'calamint' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calamint.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
