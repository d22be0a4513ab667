"""Parameters: how much each of them matters, and all of them side by side."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calamint.checks import did_you_mean
from calamint.decide import MeasuredInput, short
from calamint.errors import ProblemError
from calamint.problem import Choice, Parameter
from calamint.show.plots.plot import Plot
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    BLUE,
    SERIES,
    drawn_of,
    empty,
    figure,
    hover,
    label,
    option_index,
    plotly,
    thinned,
)

_SAMPLES = 256
_LINES = 200
_COLORS = 6


def shares(source: Source) -> dict[str, dict[str, float]]:
    """By function, the total-effect index of each parameter under the posterior mean.

    The share of the variance over the whole space that is left when all other parameters are
    known (Sobol; estimated as by Jansen, 1999).
    """
    space = source.problem.space
    rng = np.random.default_rng(0)
    one, other = (space.snap(rng.random((_SAMPLES, space.dimension))) for _ in range(2))
    mixed = [one]
    for columns in space.columns.values():
        changed = one.copy()
        changed[:, columns] = other[:, columns]
        mixed.append(changed)
    points = np.vstack(mixed)
    found = {}
    for name, function in source.query.surrogate.functions.items():
        mean = function.posterior.mean_variance(points)[0].mean(0).reshape(len(mixed), -1)
        variance = float(mean.var())
        # A constant function differs from place to place by rounding.
        total = 0.5 * ((mean[1:] - mean[0]) ** 2).mean(1) / variance if variance > 1e-9 else None
        found[name] = {
            parameter: 0.0 if total is None else float(total[index])
            for index, parameter in enumerate(space.parameters)
        }
    return found


def by_importance(source: Source, wanted: Sequence[str] | None, most: int) -> list[str]:
    """Parameters in the order of what they matter to any function; or those that are wanted."""
    names = list(source.problem.space.parameters)
    if wanted is not None:
        if isinstance(wanted, str) or not isinstance(wanted, Iterable) or not list(wanted):
            raise ProblemError(f"parameters is {wanted!r}: write a list of names.")
        for name in wanted:
            if name not in names:
                raise ProblemError(f"parameters has {name!r}: {did_you_mean(str(name), names)}")
        return list(dict.fromkeys(wanted))
    if len(names) <= most or source.history_is_empty:
        return names[:most]
    found = shares(source)
    highest = {name: max(each[name] for each in found.values()) for name in names}
    return sorted(names, key=lambda name: -highest[name])[:most]


@plot
def importance(source: Source) -> Plot:
    """How much each parameter matters to each function: total-effect (Sobol) indices of the
    posterior mean over the whole space."""
    graph, title = plotly(), "Importance of the parameters"
    if source.history_is_empty:
        sentence = "Nothing has been measured yet."
        return Plot("importance", title, sentence, empty(sentence), [])
    found = shares(source)
    names = list(source.problem.space.parameters)
    names.sort(key=lambda name: -max(each[name] for each in found.values()))
    rows = [
        {"parameter name": name, **{f: each[name] for f, each in found.items()}} for name in names
    ]
    shown = names[:30]
    made = figure(1, [60.0 + 16 * len(shown) * (1 + len(found))])
    for index, (function, each) in enumerate(found.items()):
        made.add_trace(
            graph.Bar(
                y=[label(name, 24) for name in shown],
                # Estimates of shares may lie outside of what shares can be.
                x=[min(max(each[name], 0.0), 1.0) for name in shown],
                orientation="h",
                name=label(function),
                marker={
                    "color": SERIES[index % len(SERIES)],
                    "pattern": {"shape": ("", "/", ".", "x", "-", "+")[index % 6], "size": 5},
                },
            )
        )
    made.update_layout(barmode="group")
    made.update_yaxes(autorange="reversed")
    made.update_xaxes(title_text="share of the variance", rangemode="tozero")
    caption = (
        "The share of the variance of each function, as it is believed to be over the whole space,"
        " that remains when all other parameters are known. Shares add up to more than one where"
        " parameters interact. What matters near the optimum can differ."
        + drawn_of(len(shown), len(names), "parameters")
    )
    return Plot("importance", title, caption, made, rows)


@plot
def parallel_coordinates(source: Source) -> Plot:
    """All measured inputs with their values, a line each; the best in the strongest colour."""
    graph, problem = plotly(), source.problem
    title, objective = "Parallel coordinates", problem.objective
    joined = [each for each in source.measured if objective.name in each.values]
    rows = [{**each.params, **each.values} for each in joined]
    if not joined:
        sentence = f"{objective.name} has not been measured yet."
        return Plot("parallel_coordinates", title, sentence, empty(sentence), rows)
    ranked = sorted(joined, key=lambda each: objective.sign * each.values[objective.name])
    shown = thinned(ranked, _LINES)
    functions = [name for name in problem.functions if any(name in each.values for each in shown)]
    axes = [*problem.space.parameters, *functions]
    made = figure(1, [380], legend=False)
    colors = plotly("colors").sample_colorscale(
        [[0, BLUE], [1, "#b4b4b4"]], [index / (_COLORS - 1) for index in range(_COLORS)]
    )
    width = max(1, -(-len(shown) // _COLORS))
    for feasible in (False, True):
        for group in range(_COLORS):
            # The worst first, so that the best lie on top.
            own = [
                each
                for each in shown[group * width : (group + 1) * width]
                if each.violates(problem) != feasible
            ]
            if own:
                made.add_trace(
                    graph.Scatter(
                        **_lines(source, own, axes),
                        mode="lines",
                        line={
                            "color": colors[group],
                            "width": (2.5 if group == 0 else 1.5) if feasible else 1,
                            "dash": "solid" if feasible else "dot",
                        },
                        opacity=0.9 if feasible else 0.5,
                        hoverinfo="text",
                        showlegend=False,
                    )
                )
    made.data = made.data[::-1]
    made.update_xaxes(
        tickvals=list(range(len(axes))),
        ticktext=[label(name, 18) for name in axes],
        range=[-0.3, len(axes) - 0.7],
        tickangle=-40 if len(axes) > 4 else 0,
    )
    made.update_yaxes(visible=False, range=[-0.16, 1.16])
    for place, name in enumerate(axes):
        low, high = _ends(source, name)
        for y, text in ((-0.07, low), (1.07, high)):
            made.add_annotation(
                x=place,
                y=y,
                text=label(text, 10),
                showarrow=False,
                font={"size": 11},
                textangle=-40 if len(axes) > 6 else 0,
            )
        made.add_vline(x=place, line={"width": 1, "color": "#999"}, layer="below")
    caption = (
        f"Every line is an input at which {label(objective.name)} was measured, from the best"
        " (blue) to the worst (grey); thin dotted lines missed a limit."
        + drawn_of(len(shown), len(rows), "inputs")
    )
    return Plot("parallel_coordinates", title, caption, made, rows)


def _lines(source: Source, inputs: Sequence[MeasuredInput], axes: Sequence[str]) -> dict[str, Any]:
    """Lines one after the other, with a gap between them."""
    x: list[float | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for each in inputs:
        heights = [_height(source, each, name) for name in axes]
        x += [*range(len(axes)), None]
        y += [*heights, None]
        said = hover({**each.values, **{name: short(v) for name, v in each.params.items()}})
        text += [said] * (len(axes) + 1)
    return {"x": x, "y": y, "text": text}


def _height(source: Source, each: MeasuredInput, name: str) -> float | None:
    """From 0 to 1 on the axis of a parameter or a function."""
    parameter = source.problem.space.parameters.get(name)
    if parameter is None:
        if name not in each.values:
            return None
        low, high = _value_range(source, name)
        return (each.values[name] - low) / (high - low) if high > low else 0.5
    if isinstance(parameter, Choice):
        place = option_index(parameter, each.params[name])
        return place / max(1, len(parameter.options) - 1)
    return float(parameter.encode(each.params[name])[0])


def _value_range(source: Source, name: str) -> tuple[float, float]:
    values = [each.values[name] for each in source.measured if name in each.values]
    return min(values), max(values)


def _ends(source: Source, name: str) -> tuple[str, str]:
    parameter: Parameter | None = source.problem.space.parameters.get(name)
    if parameter is None:
        low, high = _value_range(source, name)
        return f"{low:.3g}", f"{high:.3g}"
    if isinstance(parameter, Choice):
        return str(parameter.options[0]), str(parameter.options[-1])
    return f"{parameter.low:.4g}", f"{parameter.high:.4g}"
