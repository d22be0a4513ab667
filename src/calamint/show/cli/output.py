"""Rows on a terminal, or for a program to read."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from calamint import run

_NARROWEST = 10  # characters of a column, with its border
_TALLEST = 8  # lines of a cell


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


def show_answer(answer: object, row: Mapping[str, Any], form: Format) -> None:
    """Its own sentence for a person, its row for a program."""
    if form is Format.table:
        typer.echo(str(answer))
    else:
        show_rows([row], form, single=True)


def show_rows(
    rows: Sequence[Mapping[str, Any]],
    form: Format,
    columns: Sequence[str] | None = None,
    single: bool = False,
) -> None:
    """Print rows; a single one is an object in JSON, and upright as a table."""
    if form is Format.json:
        typer.echo(json.dumps(rows[0] if single else list(rows), indent=2))
        return
    columns = list(rows[0]) if columns is None and rows else list(columns or ())
    if form is Format.csv:
        flat = [{key: _cell(value, json.dumps) for key, value in row.items()} for row in rows]
        run.write_csv(flat, columns, sys.stdout)
        return
    console = Console()
    if not rows:
        console.print("None.")
    elif single:
        cells = [(key, _cell(value, _words)) for key, value in rows[0].items()]
        console.print(_table(["", ""], cells, header=False))
    else:
        columns = [name for name in columns if any(row.get(name) not in (None, {}) for row in rows)]
        console.print(_fitting(columns, rows, console.width))


def _fitting(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int) -> Table:
    """A column for each name or, if they would be too narrow, the first and the others in words."""
    cells = [[_cell(row.get(column), _words) for column in columns] for row in rows]
    each = width // len(columns)
    if each >= _NARROWEST and all(len(cell) <= _TALLEST * each for row in cells for cell in row):
        return _table(columns, cells)
    first, *others = columns
    in_words = [
        (row[0], ", ".join(f"{a} {b}" for a, b in zip(others, row[1:], strict=True) if b))
        for row in cells
    ]
    return _table([first, "the others"], in_words)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], header: bool = True) -> Table:
    table = Table(show_header=header)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # users' words are never markup
    return table


def shown_values(study: "run.StudyView", number: int) -> str:
    """What a job measured, as it was understood."""
    binary = study.problem.binary
    errors = study.standard_errors(number)
    values = study.jobs[number].values
    found = [
        f"{name} = {'passed' if values[name] else 'failed'}"
        if name in binary
        else f"{name} = {values[name]:.6g}{f' ± {errors[name]:.3g}' if name in errors else ''}"
        for name in study.problem.measured
        if name in values
    ]
    return ", ".join(found) or "no values"


def _cell(value: Any, nested: Callable[[Any], str]) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if nested is _words else repr(value)
    return nested(value) if isinstance(value, dict | list | tuple) else str(value)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(entry, _words)}" for key, entry in value.items())
    return ", ".join(_cell(entry, _words) for entry in value)
