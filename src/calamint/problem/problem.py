"""A problem, stated in the user's words: what to vary, what to optimise, what to respect, and how
each number is measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, final

from calamint.checks import check_name, did_you_mean
from calamint.errors import ProblemError
from calamint.problem.describe import describe
from calamint.problem.limits import Constraint, read_constraint
from calamint.problem.parameters import Parameter
from calamint.problem.space import Params, Space
from calamint.problem.tasks import Kind, Task, TaskGraph

Known = Callable[[Params], float]

# The one task and the one place of a problem that names none.
WHOLE_TASK = "evaluate"
ONLY_PLACE = "local"


@final
@dataclass(frozen=True)
class Objective:
    """What is optimised.

    Everything inside minimises: a model's `OutcomeTransform` and the ranking of records multiply by
    `sign`, and nothing else has to know.
    """

    name: str
    maximize: bool = False

    @property
    def sign(self) -> float:
        """What makes smaller better: 1, or −1 for an objective that is maximised."""
        return -1.0 if self.maximize else 1.0


@final
@dataclass(frozen=True, init=False)
class Problem:
    """What is asked: see `describe()` for the problem in words.

    Args:
        space: Names and what they may be: `cm.Real`, `cm.Integer`, `cm.Choice`.
        minimize: The name of the objective; or `maximize`.
        constraints: Limits such as "latency_ms <= 2", "6.5 <= ph <= 7.5"; a bare name is
            pass/fail.
        tasks: What can be run, `cm.Task`; without them one task measures everything.
        resources: Names and how many jobs each can run at once; without them one place, one job.
        known: Functions that can be computed exactly from the parameters (a dict of them).
    """

    space: Space
    objective: Objective
    constraints: tuple[Constraint, ...]
    graph: TaskGraph
    known: dict[str, Known]

    def __init__(
        self,
        space: Mapping[str, Parameter] | Space,
        minimize: str | None = None,
        maximize: str | None = None,
        constraints: Sequence[str | Constraint] = (),
        tasks: Mapping[str, Task] | None = None,
        resources: Mapping[str, int] | None = None,
        known: Mapping[str, Known] | None = None,
    ) -> None:
        space = space if isinstance(space, Space) else Space(space)
        objective = _objective(minimize, maximize)
        merged = _merge(constraints, objective)
        functions = [objective.name, *(constraint.name for constraint in merged)]
        for name in functions:
            if name in space.parameters:
                raise ProblemError(
                    f"{name!r} is both a parameter and a function: give one of them another name"
                    " (a limit on a parameter is its bounds)."
                )
        known = _known(known, functions)
        measured = [name for name in functions if name not in known]
        if not measured:
            raise ProblemError(
                f"known has all functions, {', '.join(map(repr, functions))}:"
                " leave out of it what has to be measured."
            )
        if tasks is None:
            tasks = {WHOLE_TASK: Task(measures=measured)}
        if resources is None:
            resources = _only_place(tasks)
        graph = TaskGraph(tasks, resources)  # type: ignore[arg-type]
        _check_measures(graph, functions, known)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "objective", objective)
        object.__setattr__(self, "constraints", merged)
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "known", known)

    @property
    def tasks(self) -> dict[str, Task]:
        return self.graph.tasks

    @property
    def resources(self) -> dict[str, int]:
        return self.graph.resources

    @property
    def kind(self) -> Kind:
        return self.graph.kind

    @property
    def functions(self) -> tuple[str, ...]:
        """The objective's name, then the constraints', in the order declared."""
        return (self.objective.name, *(constraint.name for constraint in self.constraints))

    @property
    def measured(self) -> tuple[str, ...]:
        """The functions that some task measures."""
        return tuple(name for name in self.functions if name not in self.known)

    @property
    def binary(self) -> frozenset[str]:
        """The functions that are measured as pass or fail."""
        return frozenset(limit.name for limit in self.constraints if limit.binary)

    def limits_of(self, name: str) -> tuple[float, float]:
        """The interval that a function must lie in; the objective has no limits."""
        found = next((limit for limit in self.constraints if limit.name == name), None)
        return (-math.inf, math.inf) if found is None else (found.low, found.high)

    def changed(self, **changes: Any) -> "Problem":
        """The same problem with other constraints, tasks, resources, space or known functions.

        What is given as None is as if it had not been written.
        """
        name, maximize = self.objective.name, self.objective.maximize
        stated = {
            "space": self.space,
            "minimize": None if maximize else name,
            "maximize": name if maximize else None,
            "constraints": self.constraints,
            "tasks": self.tasks,
            "resources": self.resources,
            "known": self.known,
        }
        return Problem(**{**stated, **changes})

    def coupled(self) -> "Problem":
        """The same problem with one task that measures everything, on one resource."""
        return self.changed(tasks=None, resources=None)

    def describe(self) -> str:
        """The problem in words, with a small diagram of its tasks and resources."""
        return describe(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.describe())}</pre>"

    # The module for specs is loaded when it is needed: pydantic takes longer than all the rest.

    def to_toml(self) -> str:
        """The problem as a TOML spec, from which `from_toml` makes an equal one."""
        from calamint.problem import spec

        return spec.to_toml(self)

    def to_json(self) -> str:
        """The problem as a JSON spec, from which `from_json` makes an equal one."""
        from calamint.problem import spec

        return spec.to_json(self)

    @staticmethod
    def from_toml(text: str) -> "Problem":
        """The problem that a TOML spec states."""
        from calamint.problem import spec

        return Problem(**spec.from_toml(text))

    @staticmethod
    def from_json(text: str) -> "Problem":
        """The problem that a JSON spec states."""
        from calamint.problem import spec

        return Problem(**spec.from_json(text))

    def to_content(self) -> dict[str, Any]:
        """The spec as a dict; functions that cannot be imported are named all the same."""
        from calamint.problem import spec

        return spec.to_content(self)

    @staticmethod
    def from_content(
        content: Mapping[str, Any], like: "Problem | None" = None, trust: bool = False
    ) -> "Problem":
        """The problem that a spec states, given as a dict.

        Args:
            content: What `to_content` returned.
            like: A problem whose functions may be used where the spec names them.
            trust: Whether other functions may be imported, which runs code.
        """
        from calamint.problem import spec

        functions = {} if like is None else spec.functions_of(like)
        return Problem(**spec.from_content(content, functions, trust))


def _only_place(tasks: object) -> dict[str, int]:
    for name, task in tasks.items() if isinstance(tasks, Mapping) else ():
        if isinstance(task, Task) and task.runs_on is not None:
            wanted = task.runs_on[0][0]
            raise ProblemError(
                f"task {name!r} runs on {wanted!r}, but resources is not given:"
                f" add resources={{{wanted!r}: 1}}, with how many jobs it can run at once."
            )
    return {ONLY_PLACE: 1}


def _objective(minimize: object, maximize: object) -> Objective:
    if (minimize is None) == (maximize is None):
        given = "neither" if minimize is None else "more than one"
        raise ProblemError(
            f"{given} of minimize and maximize is given: write one, such as minimize='error'."
        )
    field, name = ("minimize", minimize) if maximize is None else ("maximize", maximize)
    return Objective(check_name(name, f"the function in {field}"), maximize=maximize is not None)


def _merge(constraints: object, objective: Objective) -> tuple[Constraint, ...]:
    if not isinstance(constraints, list | tuple):
        raise ProblemError(
            f"constraints is {constraints!r}: write a list, such as ['latency_ms <= 2']."
        )
    merged: dict[str, Constraint] = {}
    for text in constraints:
        constraint = read_constraint(text)
        if constraint.name == objective.name:
            raise ProblemError(
                f"the constraint '{text}' limits the objective {objective.name!r}:"
                " leave it out, or optimise another function."
            )
        name = constraint.name
        merged[name] = merged[name].merge(constraint) if name in merged else constraint
    return tuple(merged.values())


def _known(known: object, functions: list[str]) -> dict[str, Known]:
    if known is None:
        return {}
    if not isinstance(known, Mapping):
        raise ProblemError(
            f"known is {known!r}: write a dict of functions of the parameters,"
            " such as {'weight': weight}."
        )
    for name, function in known.items():
        if name not in functions:
            raise ProblemError(
                f"known has {name!r}, which is neither the objective nor in a constraint:"
                f" {did_you_mean(str(name), functions)}"
            )
        if not callable(function):
            raise ProblemError(
                f"known[{name!r}] is {function!r}: write a function of the parameters (a dict)."
            )
    return dict(known)


def _check_measures(graph: TaskGraph, functions: list[str], known: Mapping[str, Known]) -> None:
    measured = {name for task in graph.tasks.values() for name in task.measures}
    unasked = [name for name in measured if name not in functions]
    for name in functions:
        if name not in measured and name not in known:
            where = "the objective" if name == functions[0] else "in a constraint"
            close = did_you_mean(name, unasked)
            hint = close if close.startswith("did") else "add it to a task's measures, or to known."
            raise ProblemError(
                f"{name!r} is {where}, but no task measures it and it is not in known: {hint}"
            )
    for task_name, task in graph.tasks.items():
        for name in task.measures:
            if name not in functions:
                raise ProblemError(
                    f"task {task_name!r} measures {name!r}, which is neither the objective nor in"
                    f" a constraint: {did_you_mean(name, functions)}"
                )
            if name in known:
                raise ProblemError(
                    f"task {task_name!r} measures {name!r}, which is in known:"
                    " leave it out of one of them."
                )
