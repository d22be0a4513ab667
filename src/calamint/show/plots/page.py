"""Pages: one HTML file with everything in it, light or dark, that needs no network."""

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calamint.decide import short
from calamint.errors import StorageError
from calamint.show.plots.style import (
    plotly,
    template,
)

if TYPE_CHECKING:
    from calamint.show.plots.plot import Plot

# Rows of a table on a page; the data are complete in Python.
_MOST_ROWS = 2000
_ASSETS = Path(__file__).parents[1] / "assets"


def plot_section(plot: "Plot", heading: bool = True) -> str:
    """A figure with its controls, its caption, and its table."""
    views = plot.views
    if views is None:
        whole = plot.figure.to_plotly_json()
        shown: dict[tuple[int, ...], Any] = {(): (whole["data"], whole["layout"])}
    else:
        shown = {key: (view.traces, view.layout) for key, view in views.items()}
    traces, layouts = _Once(), _Once()
    content = {
        "views": {
            ",".join(map(str, key)): [[traces.place(each) for each in data], layouts.place(layout)]
            for key, (data, layout) in shown.items()
        },
        "traces": traces.items,
        "layouts": [
            {key: value for key, value in layout.items() if key != "template"}
            for layout in layouts.items
        ],
        "chosen": list(plot.chosen if plot.chosen is not None else next(iter(shown))),
        "controls": [
            {
                "label": control.label,
                "options": control.options,
                "slider": control.slider,
                "by": control.by,
            }
            for control in plot.controls
        ],
    }
    title = f"<h2>{plot.title}</h2>" if heading else ""
    width = f' style="min-width:{plot.min_width}px"' if plot.min_width else ""
    height = int(plot.figure.layout.height or 400)
    return (
        f'<section class="plot" id="{escape(plot.name)}">{title}'
        f'<div class="controls"></div>'
        f'<div class="scroll"><div class="figure" role="figure" aria-label="{plot.title}"'
        f" data-height={height}{width}></div></div>"
        f'<p class="caption">{plot.caption}</p>'
        f'<script type="application/json">{embedded(content)}</script>'
        f"{table(plot.data(), plot.name)}</section>"
    )


class _Once:
    """Things that are written once, however often they are used."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[int, int] = {}

    def place(self, item: Any) -> int:
        if id(item) not in self._places:
            self._places[id(item)] = len(self.items)
            self.items.append(item)
        return self._places[id(item)]


def _plain(value: Any) -> Any:
    """What JSON cannot say: arrays as Plotly's typed arrays, which are short."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isfinite(value).all():
        with np.errstate(over="ignore"):
            short_array = value.astype("<f4")
        # Half as long, where it makes no difference that can be seen.
        same = np.allclose(short_array, value, rtol=0, atol=1e-5 * np.ptp(value))
        array = short_array if same else value.astype("<f8")
        shape = {"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {}
        content = b64encode(array.tobytes()).decode()
        return {"dtype": "f4" if same else "f8", "bdata": content, **shape}
    if isinstance(value, np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written")


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def embedded(content: object) -> str:
    """JSON that cannot end the script that it is in."""
    try:
        text = json.dumps(content, separators=(",", ":"), allow_nan=False, default=_plain)
    except ValueError:
        text = json.dumps(_finite(content), separators=(",", ":"), default=_plain)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def table(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The data of a plot, which can be opened; users' words are escaped."""
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for row in rows[:_MOST_ROWS] for key in row))
    head = "".join(f'<th scope="col">{escape(str(column))}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row.get(column))}</td>" for column in columns) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )
    more = (
        f"<p>The first {_MOST_ROWS:,} of {len(rows):,} rows; <code>.data()</code> has all.</p>"
        if len(rows) > _MOST_ROWS
        else ""
    )
    return (
        f'<details id="{escape(name)}-data"><summary>Data</summary>{more}'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div></details>"
    )


def _cell(value: object) -> str:
    return "" if value is None else escape(short(value))


def write_page(path: Path, title: str, sections: Sequence[str], lead: str = "") -> Path:
    """Write a page with plots.

    Args:
        title: Escaped, or in safe words.
        sections: HTML, in which users' words are escaped.
        lead: HTML above all sections.
    """
    themes = {"light": template(), "dark": template(dark=True)}
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Nothing is asked for on a network, whatever a name or a value contains.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'\">"
        f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
        f"<style>{(_ASSETS / 'page.css').read_text()}</style></head><body>"
        f"<main><h1>{title}</h1>{lead}{''.join(sections)}</main>"
        f"<script>{plotly('offline').get_plotlyjs()}</script>"
        f"<script>const THEMES={embedded(themes)};{(_ASSETS / 'page.js').read_text()}</script>"
        "</body></html>"
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    return path
