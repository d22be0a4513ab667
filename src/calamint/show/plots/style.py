"""How plots look: colours that can be told apart by everybody, on light and dark pages, marks that
can be told apart without colour, and users' words, which are escaped."""

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Literal, TypeVar

from calamint.decide import short
from calamint.errors import ProblemError
from calamint.problem import Choice, Integer, Parameter, Params, Real

# Contrast of at least 3 with white and with the dark page, and apart for the colour-blind.
BLUE, ORANGE, GREEN, PURPLE, OCHRE, GREY = (
    *("#2f7fc1", "#d5602a", "#1b9e77"),
    *("#a06ab4", "#b8860b", "#808080"),
)
SERIES = (BLUE, ORANGE, GREEN, PURPLE, OCHRE, "#c2528b", "#5f8f2f", "#6f7fae")
BAND = "rgba(47,127,193,0.22)"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = (
    "circle",
    "diamond",
    "square",
    "triangle-up",
    "star",
    "hexagon",
    "triangle-down",
    "bowtie",
)

Status = Literal["feasible", "unconfirmed", "infeasible", "failed", "pending"]
MARKS: Mapping[Status, Mapping[str, Any]] = {
    "feasible": {"symbol": "circle", "color": BLUE, "size": 8},
    "unconfirmed": {
        "symbol": "diamond-open",
        "color": OCHRE,
        "size": 9,
        "line": {"width": 2, "color": OCHRE},
    },
    "infeasible": {"symbol": "x", "color": ORANGE, "size": 8},
    "failed": {"symbol": "square-x-open", "color": GREY, "size": 9, "line": {"width": 1.5}},
    "pending": {
        "symbol": "triangle-up-open",
        "color": PURPLE,
        "size": 9,
        "line": {"width": 2, "color": PURPLE},
    },
}
# The most marks of one figure: browsers stay quick.
MOST = 1000
_LONGEST = 36
NOTHING = "Nothing has been measured yet."
T = TypeVar("T")


def plotly(module: str = "graph_objects") -> Any:
    """A module of Plotly, which is not needed for optimising."""
    try:
        return importlib.import_module(f"plotly.{module}")
    except ImportError:
        raise ProblemError(
            "plots need Plotly, which is not installed: pip install 'calamint[plots]'."
        ) from None


def label(text: object, longest: int = _LONGEST) -> str:
    """A user's word in a figure: not markup, and not longer than there is room for."""
    word = " ".join(str(text).split())
    if len(word) > longest:
        word = word[: longest - 1] + "…"
    return escape(word)


def hover(lines: Mapping[str, object], title: str = "") -> str:
    """What is said when pointing at a mark."""
    said = [f"<b>{label(title, 80)}</b>"] if title else []
    said += [f"{label(name)}: {label(short(value), 80)}" for name, value in lines.items()]
    return "<br>".join(said[:25])


def params_in_words(params: Params) -> dict[str, str]:
    return {name: short(value) for name, value in params.items()}


def axis_of(parameter: Parameter, name: str) -> dict[str, Any]:
    """The axis of a parameter, over all of its values."""
    axis: dict[str, Any] = {"title": {"text": label(name)}}
    if isinstance(parameter, Choice):
        return {
            **axis,
            "type": "category",
            "categoryorder": "array",
            "categoryarray": options_of(parameter),
        }
    low, high = float(parameter.low), float(parameter.high)
    if parameter.log:
        pad = 0.02 * math.log10(high / low)
        return {
            **axis,
            "type": "log",
            "range": [math.log10(low) - pad, math.log10(high) + pad],
            "dtick": 1 if high / low >= 100 else "D2",
        }
    pad = 0.02 * (high - low)
    return {**axis, "range": [low - pad, high + pad]}


def distinct_labels(words: Iterable[object], longest: int = _LONGEST) -> list[str]:
    """A label for each word, numbered where several would look the same."""
    found: list[str] = []
    for word in words:
        plain = label(word, longest)
        again = 1 + sum(each.split("\u2009")[0] == plain for each in found)
        found.append(f"{plain}\u2009({again})" if again > 1 else plain)
    return found


def options_of(parameter: Choice) -> list[str]:
    """The options as an axis names them."""
    return distinct_labels((*parameter.options, *parameter.former))


def option_index(parameter: Choice, value: Any) -> int:
    """The place of an option: 1 and True are two."""
    known = [(type(each), each) for each in (*parameter.options, *parameter.former)]
    return known.index((type(value), value))


def coordinate(parameter: Parameter, value: Any) -> Any:
    """Where a value lies on the axis of its parameter."""
    if isinstance(parameter, Choice):
        return options_of(parameter)[option_index(parameter, value)]
    return value


def grid_of(parameter: Parameter, count: int) -> list[Any]:
    """Values over all of a parameter, evenly on its scale; all of them where there are few."""
    if isinstance(parameter, Choice):
        return list(parameter.options)
    if isinstance(parameter, Integer) and parameter.high - parameter.low < count:
        return list(range(parameter.low, parameter.high + 1))
    if isinstance(parameter, Integer):
        cells = [parameter.decode([index / (count - 1)]) for index in range(count)]
        return list(dict.fromkeys(cells))
    assert isinstance(parameter, Real)
    return [parameter.decode([index / (count - 1)]) for index in range(count)]


def thinned(items: Sequence[T], most: int = MOST) -> list[T]:
    """Evenly chosen items, the last among them, if there are too many to draw."""
    if len(items) <= most:
        return list(items)
    step = (len(items) - 1) / (most - 1)
    return [items[round(index * step)] for index in range(most)]


def drawn_of(shown: int, count: int, what: str) -> str:
    """A sentence about what was left out, if anything was."""
    return f" {shown:,} of {count:,} {what} are drawn." if shown < count else ""


def template(dark: bool = False) -> dict[str, Any]:
    """Colours of text, axes and background; pages bring their own background."""
    ink, grid = ("#e3e6ea", "#3a4048") if dark else ("#22303c", "#e3e7eb")
    axis = {
        "gridcolor": grid,
        "linecolor": grid,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
        "exponentformat": "power",
        "title": {"standoff": 8},
    }
    return {
        "layout": {
            "font": {"color": ink, "size": 12, "family": "system-ui, sans-serif"},
            "paper_bgcolor": "#16191d" if dark else "#ffffff",
            "plot_bgcolor": "#16191d" if dark else "#ffffff",
            "xaxis": axis,
            "yaxis": axis,
            "colorway": list(SERIES),
            "hoverlabel": {
                "bgcolor": "#262b31" if dark else "#ffffff",
                "bordercolor": grid,
                "font": {"color": ink},
                "align": "left",
            },
        }
    }


def figure(panels: int = 1, heights: Sequence[float] | None = None, **options: Any) -> Any:
    """An empty figure of panels below each other, as pages of any width have room for.

    Args:
        heights: Pixels of each panel; 300 by default.
        options: `gap`, pixels between panels; `legend`, whether there is one; and those of
            Plotly's `make_subplots`.
    """
    pixels = list(heights or [300.0] * panels)
    gap = options.pop("gap", 60.0)
    top = 64.0 if options.pop("legend", True) else 28.0
    # Plotly measures gaps as shares of the whole.
    whole = sum(pixels) + gap * (panels - 1)
    made = plotly("subplots").make_subplots(
        rows=panels,
        cols=1,
        vertical_spacing=gap / whole if panels > 1 else 0,
        row_heights=pixels,
        **options,
    )
    made.update_layout(
        template=template(),
        height=whole + top + 56,
        margin={"l": 60, "r": 16, "t": top, "b": 56},
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1 + (26 / whole),
            "x": 0,
            "xanchor": "left",
        },
        hovermode="closest",
    )
    made.update_annotations(font_size=13)
    return made


def scale(log: bool) -> dict[str, Any]:
    """Of an axis of values: logarithmic or not."""
    return {"type": "log", "dtick": "D2"} if log else {"type": "linear"}


def limit_lines(made: Any, low: float, high: float, row: int, log: bool = False) -> None:
    """Lines at the finite limits of a function, on an axis that may be logarithmic."""
    for limit, word in ((low, "≥"), (high, "≤")):
        if math.isfinite(limit):
            made.add_hline(
                y=limit,
                line={"color": ORANGE, "width": 1.5, "dash": "dash"},
                exclude_empty_subplots=False,
                row=row,
                col=1,
            )
            axis = f"{'' if row == 1 else row}"
            made.add_annotation(
                text=f"{word} {short(float(limit))}",
                font={"size": 11, "color": ORANGE},
                showarrow=False,
                xref=f"x{axis} domain",
                x=1,
                xanchor="right",
                yref=f"y{axis}",
                # Plotly wants exponents here, and values for lines.
                y=math.log10(limit) if log else limit,
                yanchor="bottom" if word == "≤" else "top",
            )


def empty(sentence: str) -> Any:
    """A figure that says why there is nothing to see."""
    made = figure(1, [100], legend=False)
    made.update_xaxes(visible=False)
    made.update_yaxes(visible=False)
    made.add_annotation(
        text=label(sentence, 200),
        showarrow=False,
        font={"size": 14},
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
    )
    return made


def time_unit(seconds: Sequence[float | None]) -> tuple[float, str]:
    """The largest unit of which the longest has at least two, and its seconds."""
    longest = max((each for each in seconds if each is not None), default=0.0)
    units = ((1.0, "seconds"), (60.0, "minutes"), (3600.0, "hours"), (86400.0, "days"))
    fitting = [(length, unit) for length, unit in units if longest >= 2 * length]
    return fitting[-1] if fitting else units[0]
