"""Calamint: which measurement to make next, at which input, on which machine."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calamint.problem import Choice, Constraint, Integer, Problem, ProblemError, Real, Task

__version__ = "0.1.0"

__all__ = ["Choice", "Constraint", "Integer", "Problem", "ProblemError", "Real", "Task"]

# Loaded when first used: importing Calamint must not cost what only a decision needs.
_HOMES = {
    "Choice": "problem",
    "Constraint": "problem",
    "Integer": "problem",
    "Problem": "problem",
    "ProblemError": "problem",
    "Real": "problem",
    "Task": "problem",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calamint' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calamint.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
