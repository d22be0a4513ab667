"""Curves of repetitions: a middle with its bootstrap interval, in panels side by side."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Curve:
    """A statistic of repetitions at each moment, and its 95 % interval, all (n,)."""

    at: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def curve(
    points: Iterable[tuple[float, float]],
    statistic: Callable[..., Any] = np.median,
    resamples: int = 1000,
) -> Curve:
    """The statistic (one with `axis`) of the values (moment, value) at every moment."""
    values: dict[float, list[float]] = {}
    for at, value in points:
        values.setdefault(at, []).append(value)
    rng = np.random.default_rng(0)
    moments = sorted(values)
    middle, low, high = [], [], []
    for at in moments:
        numbers = np.array(values[at])
        drawn = numbers[rng.integers(len(numbers), size=(resamples, len(numbers)))]
        ends = np.quantile(statistic(drawn, axis=1), [0.025, 0.975])
        middle.append(float(statistic(numbers, axis=0)))
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    return Curve(moments, middle, low, high)


def draw_panels(
    panels: Mapping[str, Mapping[str, Curve]],
    colors: Mapping[str, str],
    path: Path,
    *,
    x: str = "evaluations",
    y: str = "median gap",
    bold: str | None = None,
    columns: int = 4,
    logarithmic: bool | Sequence[bool] = True,
) -> None:
    """One panel for each title, with one curve and its band for each name in `colors`.

    logarithmic  the vertical axes, all alike or one by one
    """
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = make_subplots(rows, columns, subplot_titles=list(panels), vertical_spacing=0.28 / rows)
    shown: set[str] = set()
    scales = [logarithmic] * len(panels) if isinstance(logarithmic, bool) else logarithmic
    for index, (curves, scale) in enumerate(zip(panels.values(), scales, strict=True)):
        at = {"row": 1 + index // columns, "col": 1 + index % columns}
        for name, color in colors.items():
            if name not in curves:
                continue
            found = curves[name]
            band = graph_objects.Scatter(
                x=[*found.at, *reversed(found.at)],
                y=[*found.high, *reversed(found.low)],
                fill="toself",
                fillcolor=_faint(color),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=name,
            )
            line = graph_objects.Scatter(
                x=found.at,
                y=found.middle,
                name=name,
                legendgroup=name,
                showlegend=name not in shown,
                mode="lines",
                line={"color": color, "width": 3 if name == bold else 2},
            )
            shown.add(name)
            figure.add_trace(band, **at)
            figure.add_trace(line, **at)
        if scale:
            figure.update_yaxes(type="log", exponentformat="power", dtick=1, **at)
        figure.update_xaxes(title_text=x, **at)
    figure.update_yaxes(title_text=y, col=1)
    figure.update_layout(
        template="plotly_white",
        width=max(700, 400 * columns),
        height=40 + 360 * rows,
        font={"size": 14},
        margin={"t": 50, "b": 60, "l": 60, "r": 20},
    )
    figure.write_image(path)


def _faint(color: str) -> str:
    """#rrggbb, mostly transparent."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
