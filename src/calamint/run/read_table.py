"""Measurements as tables to read: CSV and Excel files, JSON, pandas, and how people write."""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, final

from calamint.checks import did_you_mean
from calamint.decide import Record, Value
from calamint.errors import ProblemError
from calamint.problem import Choice, Integer, Parameter, Params, Problem
from calamint.run.store import Measured
from calamint.run.tables import SEM, parse_rows, unescaped

# What to do with columns that are neither parameters nor functions.
Extra = Literal["refuse", "ignore", "notes"]
OUTCOMES = {
    **dict.fromkeys(("yes", "pass", "passed", "true"), True),
    **dict.fromkeys(("no", "fail", "failed", "false"), False),
}
_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")


@final
@dataclass(frozen=True)
class TableRow:
    """A row of a table, as it was understood."""

    params: Params
    values: dict[str, Value]
    notes: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Imported:
    """What became of a table.

    Attributes:
        added: The number of rows that are new.
        skipped: The number of rows that the study had already.
    """

    added: int
    skipped: int


def read_table(problem: Problem, table: Any, extra: Extra = "refuse") -> list[TableRow]:
    """Parameters and values from the path of a CSV, Excel or JSON file, a DataFrame, or dicts.

    A column for every parameter, and for functions that were measured; `latency_sem` is the
    standard error of `latency`. Empty cells were not measured.
    """
    if extra not in ("refuse", "ignore", "notes"):
        raise ProblemError(f"extra is {extra!r}: write 'refuse', 'ignore' or 'notes'.")
    comma = False
    if isinstance(table, str | Path):
        rows, comma = _read_file(Path(table))
    else:
        rows = table.to_dict("records") if hasattr(table, "to_dict") else table
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
        raise ProblemError(
            f"the table is {type(table).__name__}: give a CSV file, a DataFrame or a list of dicts."
        )
    reader = _Reader(problem, isinstance(table, str | Path), comma, extra)
    return [reader.row(index, row) for index, row in enumerate(rows, start=1)]


def rows_to_add(
    problem: Problem, table: Any, extra: Extra, history: Iterable[Record], outside: bool = False
) -> tuple[list[tuple[Params, Measured, dict[str, Any]]], Imported]:
    """The rows of a table that a history does not have, with their notes, and how many."""
    read = read_table(problem, table, extra)
    rows = parse_rows(problem, [(row.params, row.values) for row in read], outside)
    new = new_rows(rows, history)
    chosen = [
        (*row, each.notes) for row, each, wanted in zip(rows, read, new, strict=True) if wanted
    ]
    return chosen, Imported(len(chosen), len(rows) - len(chosen))


def _read_file(path: Path) -> tuple[Any, bool]:
    """Rows, and whether their numbers may have a decimal comma."""
    try:
        if path.suffix.lower() in (".xlsx", ".xlsm"):
            return _read_excel(path), False
        with path.open(newline="", encoding="utf-8-sig") as file:
            if path.suffix == ".json":
                return json.load(file), False
            head = file.readline()
            file.seek(0)
            separator = max(",;\t", key=head.count)
            return list(csv.DictReader(file, delimiter=separator)), separator != ","
    except (OSError, ValueError, csv.Error) as error:
        raise ProblemError(f"the table {str(path)!r} cannot be read: {error}.") from error


def _read_excel(path: Path) -> list[dict[str, Any]]:
    """The first sheet, whose first row names the columns."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ProblemError(
            "Excel files need openpyxl: pip install 'calamint[excel]', or save a CSV file."
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # it raises whatever the file's parts raise
        raise ProblemError(f"the table {str(path)!r} cannot be read: {error}.") from error
    rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
    book.close()
    rows = [row for row in rows if any(cell is not None for cell in row)]
    names = [str(cell) if cell is not None else None for cell in rows[0]] if rows else []
    return [
        {name: cell for name, cell in zip(names, row, strict=False) if name is not None}
        for row in rows[1:]
    ]


@final
@dataclass(frozen=True)
class _Reader:
    """How the cells of a table are read.

    texts  whether they may be texts that mean something else
    comma  whether numbers may have a decimal comma
    """

    problem: Problem
    texts: bool
    comma: bool
    extra: Extra

    def row(self, index: int, row: Mapping[str, Any]) -> TableRow:
        problem = self.problem
        known = [
            *problem.space.parameters,
            *problem.measured,
            *(f"{name}{SEM}" for name in problem.measured),
            "task",
            "seconds",
        ]
        others = [name for name in row if name not in known]
        if others and self.extra == "refuse":
            raise ProblemError(
                f"the table has a column {others[0]!r}: {did_you_mean(str(others[0]), known)} Or"
                " keep such columns as notes (extra='notes'), or ignore them (extra='ignore')."
            )
        params: dict[str, Any] = {}
        for name, parameter in problem.space.parameters.items():
            if _empty(row.get(name)):
                raise ProblemError(f"row {index} of the table has no {name!r}: add it.")
            cell = row[name]
            params[name] = (
                read_text(parameter, self._point(unescaped(cell))) if self.texts else cell
            )
        notes = {str(name): row[name] for name in others if not _empty(row[name])}
        return TableRow(params, self._values(row), notes if self.extra == "notes" else {})

    def _values(self, row: Mapping[str, Any]) -> dict[str, Value]:
        problem = self.problem
        taken = {*problem.space.parameters, *problem.functions}
        values: dict[str, Value] = {}
        for name in problem.measured:
            if _empty(row.get(name)):
                continue
            value = self._number(row[name])
            if name in problem.binary:
                outcome = read_outcome(value)
                known = not isinstance(outcome, bool) and outcome in (0, 1)
                values[name] = bool(outcome) if known else outcome
            elif f"{name}{SEM}" in taken or _empty(row.get(f"{name}{SEM}")):
                values[name] = value
            else:
                values[name] = (value, self._number(row[f"{name}{SEM}"]))
        return values

    def _point(self, cell: Any) -> Any:
        """A decimal comma as a point, where it can be one."""
        if self.comma and isinstance(cell, str) and has_decimal_comma(cell):
            return cell.replace(",", ".")
        return cell

    def _number(self, cell: Any) -> Any:
        if self.texts and isinstance(cell, str):
            with suppress(ValueError):
                return float(self._point(cell))
        return cell


def has_decimal_comma(text: str) -> bool:
    """Whether a text is a number as most of Europe writes it."""
    return _COMMA.fullmatch(text.strip()) is not None


def read_measurement(name: str, text: str) -> Any:
    """What a text says that was measured: yes or no, a number, or 0.07+-0.01 with its standard
    error; the text itself, if it is none of these."""
    outcome = read_outcome(text)
    if isinstance(outcome, bool):
        return outcome
    if has_decimal_comma(text):
        number = text.replace(",", ".", 1)
        raise ProblemError(
            f"{name}={text} has a comma: write {name}={number}, or, if it is a value with its"
            f" standard error, {name}={text.replace(',', '+-', 1)}."
        )
    with suppress(ValueError):
        read = [float(number) for number in text.replace("±", "+-").split("+-")]
        return read[0] if len(read) == 1 else tuple(read)
    return text


def read_outcome(value: Any) -> Any:
    """Whether a test passed, in words; itself, if it is none of these."""
    return OUTCOMES.get(value.strip().lower(), value) if isinstance(value, str) else value


def new_rows(rows: Sequence[tuple[Params, Measured]], history: Iterable[Record]) -> list[bool]:
    """Which rows are not in a history, each of whose records stands for one row."""
    there = Counter(_key(record.params, record.values, record.sem) for record in history)
    new = []
    for params, measured in rows:
        values = {name: value for name, (value, _) in measured.items()}
        errors = {name: sem for name, (_, sem) in measured.items() if sem is not None}
        key = _key(params, values, errors)
        new.append(there[key] <= 0)
        there[key] -= 1
    return new


def _key(params: Params, values: Mapping[str, float], errors: Mapping[str, float]) -> Any:
    """What makes two rows the same, but for rounding."""
    return (
        tuple((name, type(value), value) for name, value in params.items()),
        tuple(sorted((name, float(value)) for name, value in values.items())),
        tuple(sorted((name, float(f"{error:.9g}")) for name, error in errors.items())),
    )


def read_text(parameter: Parameter, text: Any) -> Any:
    """What a text means as the value of a parameter; itself, if nothing."""
    if isinstance(parameter, Choice):
        options = parameter.options + parameter.former
        return next((option for option in options if str(option) == text), text)
    for kind in (int, float) if isinstance(parameter, Integer) else (float,):
        with suppress(ValueError):
            number = kind(text)
            whole = isinstance(parameter, Integer) and number == int(number)
            return int(number) if whole else number
    return text


def _empty(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, str) and value == "")
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")  # of pandas
    )
