"""What is believed along each parameter."""

from collections.abc import Iterable, Mapping, Sequence
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
from calamint.show.plots.plot import Control, Plot, Trace, View, panel, select_views
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    BAND,
    BLUE,
    DASHES,
    GREEN,
    MARKS,
    SERIES,
    axis_of,
    coordinate,
    figure,
    grid_of,
    label,
    limit_lines,
    scale,
    thinned,
)

# Of the most important parameters: more would make pages heavy.
_MOST_PARAMETERS = 5


@plot
def slices(
    source: Source, at: Params | None = None, parameters: Sequence[str] | None = None
) -> Plot:
    """What is believed of every function along each parameter: median, 95 % interval, limits; the
    probability of feasibility; and the bits that a measurement is expected to yield.

    Args:
        at: The input that the slices cross; the recommended one by default.
        parameters: Those to draw; by default the five most important ones.
    """
    problem = source.problem
    here, where = reference_of(source, at)
    names = by_importance(source, parameters, _MOST_PARAMETERS)
    shifts = slider_values(problem, names)
    jobs: dict[tuple[int, int, int], list[Params]] = {}
    for i, along in enumerate(names):
        values = grid_of(problem.space.parameters[along], 25 if source.is_large else 41)
        jobs[(i, i, 0)] = [{**here, along: value} for value in values]
        for j, other in enumerate(names):
            for k, shifted in enumerate(shifts[other] if j != i else ()):
                jobs[(i, j, k)] = [{**here, other: shifted, along: value} for value in values]
    found = beliefs_for(source, jobs)

    def view(i: int, j: int, k: int) -> Any:
        return drawn.get((i, j - 1, k), drawn[(i, i, 0)])

    floors = _floors(source, found.values())
    layouts = [_layout(source, name, found[(0, 0, 0)], floors) for name in names]
    marks = [_measured_marks(source, name, found[(0, 0, 0)].quantiles) for name in names]
    drawn = {
        key: View(
            [*_traces(source, names[key[0]], inputs, found[key], floors), *marks[key[0]]],
            layouts[key[0]],
        )
        for key, inputs in jobs.items()
    }
    controls: list[Control] = []
    views = None
    if len(names) > 1:
        views = select_views(view, [len(names), len(names) + 1, SLIDER])
        controls = [Control("along", names), *slider_controls(names, shifts, by=1)]
    first = jobs[(0, 0, 0)]
    rows = _slice_rows(names[0], first, found[(0, 0, 0)])
    caption = (
        f"Along one parameter through {where}: {in_words(here)}. Lines are medians, bands 95 %"
        " intervals; dashed lines are limits. Marks are measurements, also those elsewhere in the"
        " space. Bits are what a measurement is expected to yield about the constrained optimum."
        + left_out(problem, names)
    )
    return Plot(
        "slices",
        "Model along one parameter",
        caption,
        drawn[(0, 0, 0)].as_figure(),
        rows,
        controls,
        views,
    )


def _floors(source: Source, found: Iterable[Beliefs]) -> dict[str, float]:
    """Functions on a logarithmic axis, which has no place for a band that reaches zero, and from
    where they are drawn."""
    smallest = source.smallest_on_log_scale
    for each in found:
        smallest = {name: v for name, v in smallest.items() if each.quantiles[name].min() > 0}
    return {name: value / 100 for name, value in smallest.items()}


def _layout(
    source: Source, along: str, found: Beliefs, floors: Mapping[str, float]
) -> dict[str, Any]:
    """Axes and limits: a panel for every function, feasibility, and bits."""
    problem, functions = source.problem, list(found.quantiles)
    parameter = problem.space.parameters[along]
    has_limits = bool(source.query.surrogate.problem.constraints)
    heights = [170.0] * len(functions) + [110.0] * has_limits + [130.0]
    made = figure(len(heights), heights, shared_xaxes=True, gap=22.0)
    for row, name in enumerate(functions, start=1):
        binary = source.query.surrogate.functions[name].binary
        if name in problem.functions and not binary:
            log = name in floors
            limit_lines(made, *problem.limits_of(name), row, log)
            made.update_yaxes(scale(log), row=row, col=1)
        made.update_yaxes(title_text=_function_label(name, binary), row=row, col=1)
    if has_limits:
        made.update_yaxes(
            title_text="feasible with<br>probability",
            range=[-0.05, 1.05],
            row=len(heights) - 1,
            col=1,
        )
    made.update_yaxes(title_text="bits", rangemode="tozero", row=len(heights), col=1)
    for row in range(1, len(heights) + 1):
        made.update_xaxes({**axis_of(parameter, along), "title": None}, row=row, col=1)
    made.update_xaxes(title_text=label(along), row=len(heights), col=1)
    layout: dict[str, Any] = made.to_plotly_json()["layout"]
    return layout


def _traces(
    source: Source,
    along: str,
    inputs: Sequence[Params],
    found: Beliefs,
    floors: Mapping[str, float],
) -> list[Trace]:
    parameter = source.problem.space.parameters[along]
    axis = [coordinate(parameter, params[along]) for params in inputs]
    discrete = isinstance(parameter, Choice)
    traces: list[Trace] = []
    for row, (name, quantiles) in enumerate(found.quantiles.items(), start=1):
        low, median, high = quantiles.T
        if name in floors:
            low, median, high = np.maximum(quantiles.T, floors[name])
        if discrete:
            traces.append(_interval_marks(axis, low, median, high) | panel(row))
        else:
            traces += [each | panel(row) for each in _band(axis, low, median, high)]
    row = len(found.quantiles) + 1
    plain = {"type": "scatter", "x": axis, "mode": "markers" if discrete else "lines"}
    if source.query.surrogate.problem.constraints:
        line = {"color": GREEN, "width": 2}
        traces.append(
            {**plain, "y": found.feasible, "line": line, "name": "feasible", "showlegend": False}
            | panel(row)
        )
        row += 1
    for index, (name, bits) in enumerate(found.gains.items()):
        color, dash = SERIES[(index + 1) % len(SERIES)], DASHES[index % len(DASHES)]
        line = {"color": color, "width": 2, "dash": dash}
        traces.append(
            {**plain, "y": np.maximum(bits, 0.0), "line": line, "name": f"bits from {label(name)}"}
            | panel(row)
        )
    return traces


def _interval_marks(axis: list[Any], low: Array, median: Array, high: Array) -> Trace:
    return {
        "type": "scatter",
        "x": axis,
        "y": median,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": high - median,
            "arrayminus": median - low,
        },
        "mode": "markers",
        "marker": {"color": BLUE, "symbol": "line-ew-open", "size": 14, "line": {"width": 3}},
        "name": "median",
        "showlegend": False,
    }


def _band(axis: list[Any], low: Array, median: Array, high: Array) -> list[Trace]:
    return [
        {
            "type": "scatter",
            "x": [*axis, *axis[::-1]],
            "y": np.concatenate([high, low[::-1]]),
            "fill": "toself",
            "fillcolor": BAND,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        },
        {
            "type": "scatter",
            "x": axis,
            "y": median,
            "mode": "lines",
            "line": {"color": BLUE, "width": 2},
            "name": "median",
            "showlegend": False,
        },
    ]


def _measured_marks(source: Source, along: str, functions: Iterable[str]) -> list[Trace]:
    """What was measured, wherever in the space."""
    parameter = source.problem.space.parameters[along]
    traces, told = [], set()
    for row, name in enumerate(functions, start=1):
        measured = [each for each in source.evaluations if name in each.values]
        for status in ("feasible", "unconfirmed", "infeasible"):
            own = [each for each in thinned(measured, MARKED) if each.status == status]
            if own:
                traces.append(
                    {
                        "type": "scatter",
                        "x": [coordinate(parameter, each.params[along]) for each in own],
                        "y": [each.values[name] for each in own],
                        "mode": "markers",
                        "marker": {**MARKS[status], "size": 5, "opacity": 0.6},
                        "name": status,
                        "legendgroup": status,
                        "showlegend": status not in told,
                    }
                    | panel(row)
                )
                told.add(status)
    return traces


def _function_label(name: str, binary: bool) -> str:
    return f"{label(name, 24)}<br>passes with" if binary else label(name, 24)


def _slice_rows(along: str, inputs: Sequence[Params], found: Beliefs) -> list[dict[str, Any]]:
    rows = []
    for index, params in enumerate(inputs):
        row: dict[str, Any] = {along: params[along]}
        for name, each in found.quantiles.items():
            low, median, high = map(float, each[index])
            row |= {name: median, f"{name} from": low, f"{name} to": high}
        row["probability of feasibility"] = float(found.feasible[index])
        row |= {f"bits from {name}": float(bits[index]) for name, bits in found.gains.items()}
        rows.append(row)
    return rows
