"""Calamint: which measurement to make next, at which input, on which machine."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calamint.decide import Optimizer, Prediction, Recommendation, Suggestion, optimize
    from calamint.errors import CalamintError, ProblemError, ResultError, StorageError, TaskError
    from calamint.model import Model
    from calamint.problem import Choice, Constraint, Integer, Problem, Real, Task
    from calamint.run import Job, Local, Simulated, Study
    from calamint.show import Live, plots

__version__ = "0.1.0"

__all__ = [
    "CalamintError",
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
    "TaskError",
    "optimize",
    "plots",
]

# Loaded when first used: importing Calamint must not cost what only a decision needs.
_MODULES = {
    "errors": ("CalamintError", "ProblemError", "ResultError", "StorageError", "TaskError"),
    "problem": ("Choice", "Constraint", "Integer", "Problem", "Real", "Task"),
    "model": ("Model",),
    "decide": ("Optimizer", "Prediction", "Recommendation", "Suggestion", "optimize"),
    "run": ("Job", "Local", "Simulated", "Study"),
    "show": ("Live", "plots"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calamint' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calamint.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
