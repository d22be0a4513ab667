"""What is asked: parameters, functions and limits, tasks and resources, specs."""

from calamint.problem.imports import imported
from calamint.problem.limits import Constraint
from calamint.problem.parameters import Choice, Integer, Parameter, Real
from calamint.problem.problem import Objective, Problem
from calamint.problem.space import Params, Space
from calamint.problem.tasks import Graph, Kind, Task

__all__ = [
    "Choice",
    "Constraint",
    "Graph",
    "Integer",
    "Kind",
    "Objective",
    "Parameter",
    "Params",
    "Problem",
    "Real",
    "Space",
    "Task",
    "imported",
]
