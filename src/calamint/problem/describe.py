"""A problem in words and as a small diagram, for people to check what they asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calamint.problem.limits import Constraint
from calamint.problem.parameters import Choice, Integer, Parameter
from calamint.problem.tasks import Kind

if TYPE_CHECKING:
    from calamint.problem.problem import Problem


def describe(problem: "Problem") -> str:
    """Several lines: parameters, objective, limits, the kind of graph and the graph itself."""
    verb = "Maximise" if problem.objective.maximize else "Minimise"
    lines = [f"{verb} {_named(problem, problem.objective.name)} over"]
    width = max(map(len, problem.space.parameters))
    for name, parameter in problem.space.parameters.items():
        lines.append(f"  {name:{width}}  {_in_words(parameter)}")
    if problem.constraints:
        lines.append("such that")
        for constraint in problem.constraints:
            computed = " (known)" if constraint.name in problem.known else ""
            lines.append(f"  {_limit_in_words(constraint)}{computed}")
    else:
        lines.append("with no constraints")
    return "\n".join([*lines, "", *_kind_in_words(problem), "", *_diagram(problem)])


def _limit_in_words(constraint: Constraint) -> str:
    if constraint.passes is None:
        return str(constraint)
    rate = f"{constraint.passes:.6g}" if constraint.passes != 0.5 else "one half"
    return f"{constraint.name} passes at a rate of at least {rate} (measured as pass or fail)"


def _named(problem: "Problem", name: str) -> str:
    return f"{name} (known)" if name in problem.known else name


def _in_words(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        former = f" (no more: {', '.join(map(repr, parameter.former))})" * bool(parameter.former)
        return f"one of {', '.join(map(repr, parameter.options))}{former}"
    what = "whole number" if isinstance(parameter, Integer) else "real"
    scale = ", log scale" if parameter.log else ""
    return f"{what} from {parameter.low} to {parameter.high}{scale}"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_HEADLINES = {
    Kind.COUPLED: "Coupled: one task measures everything, one job at a time.",
    Kind.PARALLEL: "Parallel: one task measures everything, several jobs at once.",
    Kind.COMPETITIVE: "Competitive decoupled: tasks compete for the same resources.",
    Kind.NON_COMPETITIVE: "Non-competitive decoupled: every task has resources of its own.",
    Kind.MIXTURE: "A mixture of the paper's cases:",
}


def _kind_in_words(problem: "Problem") -> list[str]:
    graph = problem.graph
    lines = [_HEADLINES[graph.kind]]
    if graph.kind is Kind.COUPLED:
        return lines
    for name, task in graph.tasks.items():
        if len(task.measures) > 1 and len(graph.tasks) > 1:
            lines.append(f"  {name} measures {_list(task.measures)} together (coupled)")
    for resource in graph.resources:
        users = [name for name in graph.tasks if resource in graph.usable_resources(name)]
        if len(users) > 1:
            lines.append(f"  {_list(users)} compete for {resource} (competitive)")
        elif len(graph.tasks) > 1:
            lines.append(f"  {resource} is for {users[0]} alone (non-competitive)")
    for name, task in graph.tasks.items():
        if graph.max_parallel_jobs(name) > 1:
            lines.append(
                f"  up to {graph.max_parallel_jobs(name)} jobs of {name} run at once (parallel)"
            )
        together = [words for words in task.runs_on or () if len(words) > 1]
        lines += [f"  {name} needs {_list(words)} at once" for words in together]
    return lines


def _diagram(problem: "Problem") -> list[str]:
    """One block of rows a task: functions on the left, the task, alternatives on the right."""
    rows: list[tuple[str, str, str, str, str]] = []
    for name, task in problem.tasks.items():
        places = [
            " + ".join(f"{word} ({problem.resources[word]})" for word in words)
            for words in task.runs_on or ()
        ]
        height = max(len(task.measures), len(places))
        for row in range(height):
            measured = task.measures[row] if row < len(task.measures) else ""
            place = places[row] if row < len(places) else ""
            rows.append(
                (
                    measured,
                    _joint(row, len(task.measures), "─┬─", "─┤", "─┘"),
                    name if row == 0 else "",
                    _joint(row, len(places), "─┬─", " ├─", " └─"),
                    place,
                )
            )
    left = max(len(row[0]) for row in rows)
    middle = max(len(row[2]) for row in rows)
    return [
        f"  {measured:{left}} {join:3} {name:{middle}} {fork:3} {place}".rstrip()
        for measured, join, name, fork, place in rows
    ]


def _joint(row: int, count: int, first: str, between: str, last: str) -> str:
    if row >= count:
        return ""
    if count == 1:
        return "───"
    return first if row == 0 else last if row == count - 1 else between
