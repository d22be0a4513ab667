"""Measurements as tables: rows of parameters and values, CSV files, pandas."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from calamint.decide import Record
from calamint.decide.results import Value
from calamint.problem import Choice, Integer, Problem, ProblemError
from calamint.problem.errors import nearest
from calamint.problem.parameters import Parameter

# Columns that `rows_of` writes besides parameters and functions, and that are passed over.
_OWN = ("task", "seconds")
# What stands behind the name of a function in the column of its standard error.
ERROR = "_error"


def rows_of(problem: Problem, history: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for each finished job or added measurement; None where nothing was measured."""
    return [
        {
            "task": record.task,
            **record.params,
            **{name: record.values.get(name) for name in problem.measured},
            "seconds": record.seconds,
        }
        for record in history
    ]


def write_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], file: TextIO) -> None:
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def columns_of(problem: Problem) -> list[str]:
    return ["task", *problem.space.parameters, *problem.measured, "seconds"]


def read_table(problem: Problem, table: Any) -> list[tuple[dict[str, Any], dict[str, Value]]]:
    """Parameters and values from a CSV file's path, a DataFrame, or a list of dicts.

    A column for every parameter, and for functions that were measured; `latency_error` is the
    standard error of `latency`. Empty cells were not measured.
    """
    texts = isinstance(table, str | Path)
    if texts:
        try:
            with Path(table).open(newline="") as file:
                rows: Any = list(csv.DictReader(file))
        except OSError as error:
            raise ProblemError(f"the table {str(table)!r} cannot be read: {error}.") from error
    else:
        rows = table.to_dict("records") if hasattr(table, "to_dict") else table
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
        raise ProblemError(
            f"the table is {type(table).__name__}: give a CSV file, a DataFrame or a list of dicts."
        )
    return [_read_row(problem, index, row, texts) for index, row in enumerate(rows)]


def _read_row(
    problem: Problem, index: int, row: Mapping[str, Any], texts: bool
) -> tuple[dict[str, Any], dict[str, Value]]:
    allowed = [
        *problem.space.parameters,
        *problem.measured,
        *(f"{name}{ERROR}" for name in problem.measured),
        *_OWN,
    ]
    for name in row:
        if name not in allowed:
            raise ProblemError(f"the table has a column {name!r}: {nearest(str(name), allowed)}")
    params: dict[str, Any] = {}
    for name, parameter in problem.space.parameters.items():
        if _empty(row.get(name)):
            raise ProblemError(f"row {index} of the table has no {name!r}: add it.")
        params[name] = read_text(parameter, row[name]) if texts else row[name]
    verdicts = {limit.name for limit in problem.constraints if limit.passfail}
    values: dict[str, Value] = {}
    for name in problem.measured:
        if _empty(row.get(name)):
            continue
        value = _number(row[name], texts)
        if name in verdicts:
            values[name] = value in (1, True) if value in (0, 1, True, False) else value
        elif _empty(row.get(f"{name}{ERROR}")):
            values[name] = value
        else:
            values[name] = (value, _number(row[f"{name}{ERROR}"], texts))
    return params, values


def read_text(parameter: Parameter, text: Any) -> Any:
    """What a text means as the value of a parameter; itself, if nothing."""
    if isinstance(parameter, Choice):
        return next((option for option in parameter.options if str(option) == text), text)
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if isinstance(parameter, Integer) and number.is_integer() else number


def _number(value: Any, texts: bool) -> Any:
    if not texts or not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return float(value)
    except ValueError:
        return value


def _empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))
