"""Measurements as tables: rows of parameters and values, CSV files, pandas."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from calamint.checks import did_you_mean
from calamint.decide import Record, Value, read_values
from calamint.errors import ProblemError, ResultError
from calamint.problem import Choice, Integer, Parameter, Params, Problem
from calamint.run.store import Measured

# A spreadsheet would take a cell that begins so for a formula, and run it.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
# What stands behind the name of a function in the column of its standard error.
SEM = "_sem"


def rows_of(problem: Problem, history: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for each finished job or added measurement; None where nothing was measured.

    Besides parameters and functions it has `task` and `seconds`, unless these are names of yours,
    and `latency_sem` if latency was told with its standard error.
    """
    taken = _names(problem)
    rows = []
    for record in history:
        row: dict[str, Any] = {} if "task" in taken else {"task": record.task}
        row |= {**record.params, **{name: record.values.get(name) for name in problem.measured}}
        for name, error in record.sem.items():
            if f"{name}{SEM}" not in taken:
                row[f"{name}{SEM}"] = error
        rows.append(row if "seconds" in taken else {**row, "seconds": record.seconds})
    return rows


def _names(problem: Problem) -> set[str]:
    return {*problem.space.parameters, *problem.functions}


def columns_of(problem: Problem, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of rows, in order; those of errors beside their functions."""
    found = {name for row in rows for name in row}
    columns = ["task", *problem.space.parameters]
    for name in problem.measured:
        columns += [name] if f"{name}{SEM}" not in found else [name, f"{name}{SEM}"]
    ordered = list(dict.fromkeys([*columns, "seconds"]))
    taken = _names(problem)
    return [
        name for name in ordered if name in taken or name in found or name in ("task", "seconds")
    ]


def parse_measurements(
    problem: Problem, values: Mapping[str, Value], expected: Iterable[str]
) -> tuple[Measured, dict[str, str]]:
    """Values and standard errors as they are stored, and what is not a number."""
    read, broken = read_values(values, expected, problem.binary)
    measured = {}
    for name, (value, _) in read.items():
        given = values[name]
        error = given[1] if isinstance(given, tuple | list) else None
        measured[name] = (value, None if error is None else float(error))
    return measured, {name: repr(values[name]) for name in broken}


def parse_rows(
    problem: Problem, rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]]
) -> list[tuple[Params, Measured]]:
    """Parameters and values from elsewhere; if one row is refused, all are."""
    try:
        given = [(params, values) for params, values in rows]
    except (TypeError, ValueError):
        raise ResultError("rows: write a list of pairs, parameters and values.") from None
    read = []
    for index, (params, values) in enumerate(given, start=1):
        where = f"row {index}: " if len(given) > 1 else ""
        try:
            accepted = problem.space.validate(params)
            measured, broken = parse_measurements(problem, values, problem.measured)
        except ProblemError as error:
            raise type(error)(f"{where}{error}") from None
        if broken:
            name = next(iter(broken))
            raise ResultError(
                f"{where}values[{name!r}] is {broken[name]}: write a number, or leave it out."
            )
        read.append((accepted, measured))
    return read


def write_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], file: TextIO) -> None:
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _escaped(value) for name, value in row.items()} for row in rows)


def _escaped(value: Any) -> Any:
    """Text that a spreadsheet shows and does not compute; `_unescaped` takes that back."""
    if isinstance(value, str) and value.startswith(_FORMULAS) and not _is_number(value):
        return f"'{value}"
    return value


def _unescaped(value: Any) -> Any:
    if isinstance(value, str) and value[:1] == "'" and value[1:].startswith(_FORMULAS):
        return value[1:]
    return value


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False


def write_table(problem: Problem, rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write rows to a CSV file."""
    try:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            write_csv(rows, columns_of(problem, rows), file)
    except (OSError, TypeError) as error:
        raise ProblemError(f"the table cannot be written to {path!r}: {error}.") from error


def as_dataframe(problem: Problem, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a DataFrame, if pandas is installed."""
    try:
        import pandas
    except ImportError:
        raise ProblemError("to_pandas needs pandas: pip install pandas.") from None
    return pandas.DataFrame(rows, columns=columns_of(problem, rows))


def read_table(problem: Problem, table: Any) -> list[tuple[dict[str, Any], dict[str, Value]]]:
    """Parameters and values from a CSV or JSON file's path, a DataFrame, or a list of dicts.

    A column for every parameter, and for functions that were measured; `latency_sem` is the
    standard error of `latency`. Empty cells were not measured.
    """
    texts = isinstance(table, str | Path)
    if texts:
        try:
            with Path(table).open(newline="", encoding="utf-8-sig") as file:
                texts = Path(table).suffix != ".json"
                rows: Any = list(csv.DictReader(file)) if texts else json.load(file)
        except (OSError, ValueError, csv.Error) as error:
            raise ProblemError(f"the table {str(table)!r} cannot be read: {error}.") from error
    else:
        rows = table.to_dict("records") if hasattr(table, "to_dict") else table
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
        raise ProblemError(
            f"the table is {type(table).__name__}: give a CSV file, a DataFrame or a list of dicts."
        )
    return [_read_row(problem, index, row, texts) for index, row in enumerate(rows, start=1)]


def _read_row(
    problem: Problem, index: int, row: Mapping[str, Any], texts: bool
) -> tuple[dict[str, Any], dict[str, Value]]:
    allowed = [
        *problem.space.parameters,
        *problem.measured,
        *(f"{name}{SEM}" for name in problem.measured),
        "task",
        "seconds",
    ]
    taken = _names(problem)
    for name in row:
        if name not in allowed:
            raise ProblemError(
                f"the table has a column {name!r}: {did_you_mean(str(name), allowed)}"
            )
    params: dict[str, Any] = {}
    for name, parameter in problem.space.parameters.items():
        if _empty(row.get(name)):
            raise ProblemError(f"row {index} of the table has no {name!r}: add it.")
        params[name] = read_text(parameter, _unescaped(row[name])) if texts else row[name]
    outcomes = problem.binary
    values: dict[str, Value] = {}
    for name in problem.measured:
        if _empty(row.get(name)):
            continue
        value = _number(row[name], texts)
        if name in outcomes:
            values[name] = value in (1, True) if value in (0, 1, True, False) else value
        elif f"{name}{SEM}" in taken or _empty(row.get(f"{name}{SEM}")):
            values[name] = value
        else:
            values[name] = (value, _number(row[f"{name}{SEM}"], texts))
    return params, values


def read_text(parameter: Parameter, text: Any) -> Any:
    """What a text means as the value of a parameter; itself, if nothing."""
    if isinstance(parameter, Choice):
        return next((option for option in parameter.options if str(option) == text), text)
    for kind in (int, float) if isinstance(parameter, Integer) else (float,):
        with suppress(ValueError):
            number = kind(text)
            whole = isinstance(parameter, Integer) and number == int(number)
            return int(number) if whole else number
    return text


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
    return (
        value is None
        or (isinstance(value, str) and value == "")
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")  # of pandas
    )
