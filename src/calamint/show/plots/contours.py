"""What is believed over two parameters."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from calamint.arrays import Array
from calamint.problem import Choice, Params
from calamint.show.plots.belief import (
    MARKED,
    SLIDER,
    Beliefs,
    beliefs_for,
    in_words,
    left_out,
    reference_of,
    slider_controls,
    slider_values,
)
from calamint.show.plots.parameters import by_importance
from calamint.show.plots.plot import Control, Plot, Trace, View, select_views
from calamint.show.plots.slices import slices
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    GREY,
    MARKS,
    ORANGE,
    axis_of,
    coordinate,
    figure,
    grid_of,
    label,
    plotly,
    thinned,
)

# Of the most important parameters: more would make pages heavy.
_MOST_PARAMETERS = 4


@plot
def contours(
    source: Source, at: Params | None = None, parameters: Sequence[str] | None = None
) -> Plot:
    """What is believed over two parameters: the median of every function with its limits, the
    probability of feasibility, and the bits that a measurement is expected to yield.

    Args:
        at: The values of the other parameters; those of the recommended input by default.
        parameters: Those to draw; by default the four most important ones.
    """
    problem = source.problem
    title = "Model over two parameters"
    names = by_importance(source, parameters, _MOST_PARAMETERS)
    if len(names) < 2:
        single = slices(source, at=at, parameters=parameters)
        sentence = f"With one parameter, these are slices along {label(names[0])}. "
        return Plot("contours", title, sentence + single.caption, single.figure, single.rows)
    here, where = reference_of(source, at)
    pairs = list(combinations(names, 2))
    shifts = slider_values(problem, names)
    size = {2: 33, 3: 21}.get(len(names), 13)
    if source.is_large:
        size = {2: 33}.get(len(names), 9)
    grids = {name: grid_of(problem.space.parameters[name], size) for name in names}
    jobs: dict[tuple[int, int, int], list[Params]] = {}
    for p, (x, y) in enumerate(pairs):
        plain = [{**here, x: a, y: b} for b in grids[y] for a in grids[x]]
        jobs[(p, -1, 0)] = plain
        for j, other in enumerate(names):
            for k, shifted in enumerate(shifts[other] if other not in (x, y) else ()):
                jobs[(p, j, k)] = [{**params, other: shifted} for params in plain]
    found = beliefs_for(source, jobs)
    surfaces = _surfaces(source, found[(0, -1, 0)])
    layouts = [_layout(source, pair) for pair in pairs]
    marks = [_marks(source, pair) for pair in pairs]
    drawn: dict[tuple[int, ...], View] = {}

    def view(s: int, p: int, j: int = 0, k: int = 0) -> View:
        key = (p, j - 1, k) if (p, j - 1, k) in jobs else (p, -1, 0)
        if (s, *key) not in drawn:
            x, y = pairs[p]
            traces = _surface_traces(source, surfaces[s], (x, y), (grids[x], grids[y]), found[key])
            drawn[(s, *key)] = View([*traces, *marks[p]], layouts[p])
        return drawn[(s, *key)]

    choices = [f"{y} over {x}" for x, y in pairs]
    controls = [Control("show", [_surface_label(*each) for each in surfaces])]
    if len(names) == 2:
        views = select_views(view, [len(surfaces), 1])
        controls.append(Control("axes", choices))
    else:
        views = select_views(view, [len(surfaces), len(pairs), len(names) + 1, SLIDER])
        controls += [Control("axes", choices), *slider_controls(names, shifts, by=2)]
    x, y = pairs[0]
    rows = []
    for index, params in enumerate(jobs[(0, -1, 0)]):
        row = {x: params[x], y: params[y]}
        for surface in surfaces:
            row[_surface_label(*surface)] = float(_values(surface, found[(0, -1, 0)])[index])
        rows.append(row)
    caption = (
        f"Over two parameters, with the others as at {where}: {in_words(here)}. The dashed line is"
        f" a limit, or a probability of {1 - source.optimizer.settings.delta:g}. Marks are measured"
        " inputs, also those elsewhere in the space; the star is the recommended one."
        + left_out(problem, names)
    )
    return Plot(
        "contours", title, caption, views[next(iter(views))].as_figure(), rows, controls, views
    )


Surface = tuple[str, str]


def _surfaces(source: Source, found: Beliefs) -> list[Surface]:
    limits = source.query.surrogate.problem.constraints
    return [
        *(("median", name) for name in found.quantiles),
        *([("feasible", "")] if limits else []),
        *(("bits", name) for name in found.gains),
    ]


def _surface_label(kind: str, name: str) -> str:
    if kind == "feasible":
        return "probability of feasibility"
    return f"bits from {name}" if kind == "bits" else name


def _values(surface: Surface, found: Beliefs) -> Array:
    kind, name = surface
    if kind == "feasible":
        return found.feasible
    return found.gains[name] if kind == "bits" else found.quantiles[name][:, 1]


def _layout(source: Source, pair: tuple[str, str]) -> dict[str, Any]:
    made = figure(1, [420])
    x, y = (source.problem.space.parameters[name] for name in pair)
    made.update_xaxes(axis_of(x, pair[0]))
    made.update_yaxes(axis_of(y, pair[1]))
    layout: dict[str, Any] = made.to_plotly_json()["layout"]
    return layout


def _surface_traces(
    source: Source,
    surface: Surface,
    pair: tuple[str, str],
    grids: tuple[Sequence[Any], Sequence[Any]],
    found: Beliefs,
) -> list[Trace]:
    parameters = [source.problem.space.parameters[name] for name in pair]
    across, up = (
        [coordinate(parameter, value) for value in grid]
        for parameter, grid in zip(parameters, grids, strict=True)
    )
    z = _values(surface, found).reshape(len(up), len(across))
    if surface[0] == "bits":
        z = np.maximum(z, 0.0)
    discrete = any(isinstance(parameter, Choice) for parameter in parameters)
    plain = {"type": "heatmap" if discrete else "contour", "x": across, "y": up, "z": z}
    traces: list[Trace] = [
        {
            **plain,
            "colorscale": _colors(surface[0]),
            "colorbar": {"thickness": 12, "exponentformat": "power"},
            **({} if discrete else {"ncontours": 14, "line": {"width": 0.5}}),
        }
    ]
    levels = [] if discrete else _levels(source, surface)
    traces += [
        {
            **plain,
            "showscale": False,
            "contours": {"coloring": "none", "start": level, "end": level, "size": 1},
            "line": {"color": ORANGE, "width": 3, "dash": "dash"},
            "hoverinfo": "skip",
            "name": "limit",
        }
        for level in levels
        if float(z.min()) < level < float(z.max())
    ]
    return traces


def _colors(kind: str) -> Any:
    """A scale that browsers know, too."""
    return {
        "median": "Viridis",
        "feasible": "Cividis",
        "bits": plotly("colors").get_colorscale("Plasma"),
    }[kind]


def _marks(source: Source, pair: tuple[str, str]) -> list[Trace]:
    """What was measured, wherever in the space, and what is recommended."""
    parameters = [source.problem.space.parameters[name] for name in pair]

    def marks(inputs: Sequence[Params], mark: Mapping[str, Any], name: str) -> Trace:
        return {
            "type": "scatter",
            "x": [coordinate(parameters[0], params[pair[0]]) for params in inputs],
            "y": [coordinate(parameters[1], params[pair[1]]) for params in inputs],
            "mode": "markers",
            "marker": mark,
            "name": name,
            "hoverinfo": "skip",
        }

    traces = []
    shown = [*thinned(source.evaluations, MARKED), *thinned(source.pending, MARKED)]
    for status in MARKS:
        own = [each.params for each in shown if each.status == status]
        if own:
            # Outlined, to be seen on every colour.
            mark = {**MARKS[status], "size": 7, "line": {"color": "white", "width": 1}}
            if str(mark["symbol"]).endswith("-open"):
                filled = str(mark["symbol"]).removesuffix("-open")
                mark |= {"symbol": filled, "color": "white", "line": {"color": "#555", "width": 1}}
            traces.append(marks(own, mark, status))
    if not source.history_is_empty:
        star = {"symbol": "star", "size": 15, "color": "white"}
        line = {"color": GREY, "width": 1.5}
        traces.append(marks([source.recommendation.params], {**star, "line": line}, "recommended"))
    return traces


def _levels(source: Source, surface: Surface) -> list[float]:
    kind, name = surface
    if kind == "feasible":
        return [1 - source.optimizer.settings.delta]
    if kind == "bits" or name not in source.problem.functions:
        return []
    return [limit for limit in source.problem.limits_of(name) if math.isfinite(limit)]
