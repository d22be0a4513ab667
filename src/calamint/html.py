"""Small tables for notebooks. Users' words are escaped."""

from collections.abc import Mapping
from html import escape


def as_table(title: str, rows: Mapping[str, object]) -> str:
    """Rows of a name and what is to be said of it; line breaks are kept."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return (
        f'<table><caption style="text-align:left">{escape(title)}</caption>'
        f"<tbody>{cells}</tbody></table>"
    )
