"""What is asked: parameters, functions and limits, tasks and resources, specs."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.problem.imports import imported
    from calamint.problem.limits import Constraint, read_constraint
    from calamint.problem.parameters import Choice, Integer, Parameter, Real
    from calamint.problem.problem import Objective, Problem
    from calamint.problem.space import Params, Space
    from calamint.problem.tasks import Kind, Task, TaskGraph

__all__ = [
    "Choice",
    "Constraint",
    "Integer",
    "Kind",
    "Objective",
    "Parameter",
    "Params",
    "Problem",
    "Real",
    "Space",
    "Task",
    "TaskGraph",
    "imported",
    "read_constraint",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "imports": ("imported",),
        "limits": ("Constraint", "read_constraint"),
        "parameters": ("Choice", "Integer", "Parameter", "Real"),
        "problem": ("Objective", "Problem"),
        "space": ("Params", "Space"),
        "tasks": ("TaskGraph", "Kind", "Task"),
    },
)
