"""What is asked: parameters, functions and limits, tasks and resources, specs."""

from calamint.problem.errors import ProblemError
from calamint.problem.limits import Constraint
from calamint.problem.parameters import Choice, Integer, Real
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
    "Params",
    "Problem",
    "ProblemError",
    "Real",
    "Space",
    "Task",
]
