"""Measurements as tables to write: rows of parameters and values, CSV files, pandas."""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from calamint.decide import Record, Value, read_values
from calamint.errors import ProblemError, ResultError
from calamint.problem import Params, Problem
from calamint.run.store import Measured

# A spreadsheet would take a cell that begins so for a formula, and run it.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
# What stands behind the name of a function in the column of its standard error.
SEM = "_sem"


def rows_of(problem: Problem, history: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for each finished job or added measurement; None where nothing was measured.

    Besides parameters and functions it has `task` and `seconds`, unless these are names of yours,
    `latency_sem` if latency was told with its standard error, and the notes of imported rows.
    """
    taken = _names(problem)
    rows = []
    for record in history:
        row: dict[str, Any] = {} if "task" in taken else {"task": record.task}
        row |= {**record.params, **{name: record.values.get(name) for name in problem.measured}}
        for name, error in record.sem.items():
            if f"{name}{SEM}" not in taken:
                row[f"{name}{SEM}"] = error
        row |= {name: note for name, note in record.notes.items() if name not in row}
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
    notes = sorted(found - {*columns, "seconds"})
    ordered = list(dict.fromkeys([*columns, "seconds", *notes]))
    taken = _names(problem)
    return [
        name for name in ordered if name in taken or name in found or name in ("task", "seconds")
    ]


def parse_measurements(
    values: Mapping[str, Value], expected: Iterable[str], binary: Collection[str]
) -> tuple[Measured, dict[str, str]]:
    """Values and standard errors as they are stored, and what is not a number."""
    read, broken = read_values(values, expected, binary)
    measured = {}
    for name, (value, _) in read.items():
        given = values[name]
        error = given[1] if isinstance(given, tuple | list) else None
        measured[name] = (value, None if error is None else float(error))
    return measured, {name: repr(values[name]) for name in broken}


def parse_numbers(
    values: Mapping[str, Value], expected: Iterable[str], binary: Collection[str]
) -> Measured:
    """Values that correct others: none of them may have failed."""
    measured, broken = parse_measurements(values, expected, binary)
    if broken:
        name = next(iter(broken))
        raise ResultError(
            f"values[{name!r}] is {broken[name]}: write a number; withdraw() takes one back."
        )
    return measured


def parse_rows(
    problem: Problem,
    rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]],
    outside: bool = False,
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
            accepted = problem.space.validate(params, outside)
            measured, broken = parse_measurements(values, problem.measured, problem.binary)
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
    """Text that a spreadsheet shows and does not compute; `unescaped` takes that back."""
    if isinstance(value, str) and _is_formula(value) and not _is_number(value):
        return f"'{value}"
    return value


def unescaped(value: Any) -> Any:
    """What `write_csv` made of a text."""
    if isinstance(value, str) and value[:1] == "'" and _is_formula(value):
        return value[1:]
    return value


def _is_formula(text: str) -> bool:
    """Or would be without the apostrophes before it: these must come back, too."""
    return text.lstrip("'").startswith(_FORMULAS)


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
