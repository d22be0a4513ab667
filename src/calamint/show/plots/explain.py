"""How PESC values measurements, step by step, and what other methods make of the same model."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from calamint.arrays import Array
from calamint.checks import check_integer
from calamint.decide import Optimizer, short
from calamint.errors import ProblemError
from calamint.model import feasibility
from calamint.problem import Choice, Real
from calamint.show.plots.plot import Plot
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    BAND,
    BLUE,
    GREY,
    MARKS,
    ORANGE,
    SERIES,
    axis_of,
    coordinate,
    grid_of,
    label,
    plotly,
    template,
)

_TITLES = (
    "one drawn path",
    "what is believed",
    "if x* were known",
    "bits, given this x*",
    "bits, averaged",
)
_GRID = 31
BAND_LEVELS = np.array([0.159, 0.5, 0.841])


@plot
def explain(source: Source, solution: int = 0) -> Plot:
    """How PESC values measurements, for problems with one or two parameters.

    With one parameter, five steps for every function: a path drawn from the posterior, whose
    constrained minimiser is x*; the surrogate, with the data; the surrogate given that x*; the bits
    that a measurement would yield under it; and the bits averaged over all drawn solutions, which
    decide. With two, the surrogate of every function with the drawn solutions, the probability of
    feasibility, and the bits that measuring each function would yield, with the best input.

    Args:
        solution: Which x* to show, with one parameter.
    """
    parameters = list(source.problem.space.parameters.values())
    if len(parameters) == 1 and isinstance(parameters[0], Real):
        return _explain_line(source.optimizer, solution)
    if len(parameters) == 2:
        return _explain_plane(source)
    raise ProblemError(
        "explain draws problems with one parameter that is real, or with two of any kind; this one"
        f" has {', '.join(type(each).__name__ for each in parameters)}: use slices() and contours()"
        " instead."
    )


def _explain_line(optimizer: Optimizer, solution: int, points: int = 300) -> Plot:
    make_subplots, graph = plotly("subplots").make_subplots, plotly()
    problem = optimizer.problem
    information = optimizer.information()
    count = len(information.solutions)
    if check_integer(solution, "solution", 0) >= count:
        raise ProblemError(f"solution is {solution!r}: write a whole number from 0 to {count - 1}.")
    x = np.linspace(0, 1, points)[:, None]
    (name,) = problem.space.parameters
    axis = [problem.space.decode(point)[name] for point in x]
    star = problem.space.decode(information.solutions[solution])[name]
    given = information.given(x)
    gains = information.contributions(x) / math.log(2)
    names = problem.functions
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    titles = [
        f"{letters[(5 * row + column) % 26]}  {title}"
        for row in range(len(names))
        for column, title in enumerate(_TITLES)
    ]
    figure = make_subplots(
        rows=len(names),
        cols=5,
        subplot_titles=titles,
        horizontal_spacing=0.045,
        vertical_spacing=0.12 if len(names) < 4 else 0.06,
    )
    for row, function_name in enumerate(names, start=1):
        function = information.surrogate.functions[function_name]
        # Of a binary constraint the probability to pass, which its outcomes are on the scale of.
        to_user = ndtr if function.binary else function.transform.to_user

        def line(column: int, values: Any, color: str, row: int = row) -> None:
            figure.add_trace(
                graph.Scatter(x=axis, y=values, line={"color": color, "width": 2}),
                row=row,
                col=column,
            )

        path = information.drawn.paths[row - 1].values(x)[solution]
        sample = int(information.drawn.row[solution])
        mean, variance = (moment[sample] for moment in function.posterior.mean_variance(x))
        after_mean = given.mean[solution, :, row - 1]
        after = given.variance[solution, :, row - 1]
        line(1, to_user(path), GREY)
        for column, centre, spread in ((2, mean, variance), (3, after_mean, after)):
            std = np.sqrt(spread)
            band = to_user(centre - std), to_user(centre), to_user(centre + std)
            for trace in credible_band(graph, axis, *band):
                figure.add_trace(trace, row=row, col=column)
        line(4, np.maximum(given.gains[solution, :, row - 1], 0.0) / math.log(2), ORANGE)
        line(5, np.maximum(gains[:, row - 1], 0.0), ORANGE)
        if function.posterior.measurable:
            measured = [
                (record.params[name], record.values[function_name])
                for record in optimizer.history
                if function_name in record.values
            ]
            for column in (1, 2, 3):
                figure.add_trace(
                    graph.Scatter(
                        x=[at for at, _ in measured],
                        y=[value for _, value in measured],
                        mode="markers",
                        marker={"color": SERIES[2], "size": 6},
                    ),
                    row=row,
                    col=column,
                )
        for column in range(1, 6):
            figure.add_vline(x=star, line={"color": SERIES[3], "dash": "dot"}, row=row, col=column)
        for constraint in problem.constraints:
            if constraint.name == function_name:
                for limit in (constraint.low, constraint.high):
                    if math.isfinite(limit):
                        for column in (1, 2, 3):
                            figure.add_hline(
                                y=limit, line={"color": "#888", "width": 1}, row=row, col=column
                            )
        figure.update_yaxes(title_text=label(function_name), row=row, col=1)
        figure.update_yaxes(matches=None, row=row)
    figure.update_xaxes(title_text=label(name), row=len(names))
    figure.update_layout(
        showlegend=False,
        template=template(),
        height=100 + 260 * len(names),
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
    )
    figure.update_annotations(font_size=12)
    rows = [
        {name: axis[i], **{f"bits from {f}": float(gains[i, j]) for j, f in enumerate(names)}}
        for i in range(points)
    ]
    caption = (
        "From left to right: a path drawn from the posterior, whose constrained optimum is x*; the"
        " surrogate (mean, one standard deviation and the data); the same if x* were known; the"
        " bits that a measurement would yield, given this x*; and their average over all drawn x*,"
        f" which decides. The dotted line is the drawn x* = {star:.4g}."
    )
    title = "Expected information about the optimum"
    return Plot("explain", title, caption, figure, rows, min_width=1300)


def credible_band(
    graph: Any, axis: list[float], low: Array, centre: Array, high: Array
) -> list[Any]:
    """A median with a band of one standard deviation on either side."""
    edges = [*high, *low[::-1]]
    around = [*axis, *axis[::-1]]
    return [
        graph.Scatter(x=around, y=edges, fill="toself", fillcolor=BAND, line={"width": 0}),
        graph.Scatter(x=axis, y=centre, line={"color": BLUE, "width": 2}),
    ]


def _explain_plane(source: Source) -> Plot:
    graph, problem = plotly(), source.problem
    pair = list(problem.space.parameters)
    parameters = list(problem.space.parameters.values())
    grids = [grid_of(parameter, _GRID) for parameter in parameters]
    inputs = [dict(zip(pair, (a, b), strict=True)) for b in grids[1] for a in grids[0]]
    points = problem.space.encode_all(inputs)
    query = source.query
    information = query.information()
    gains = query.gains(inputs)
    panels: list[tuple[str, Array, str]] = [
        (f"{label(name)}, as believed", function.quantiles(points, BAND_LEVELS)[:, 1], "Viridis")
        for name, function in query.surrogate.functions.items()
    ]
    if query.surrogate.problem.constraints:
        feasible = feasibility.probability(query.surrogate, points)
        panels.append(("probability of feasibility", feasible, "Cividis"))
    most = max((float(bits.max()) for bits in gains.values()), default=0.0)
    panels += [
        (f"bits from {label(name)} (up to {max(0.0, bits.max()):.2g})", bits, "Plasma")
        for name, bits in gains.items()
    ]
    rows_count = -(-len(panels) // 2)
    made = plotly("subplots").make_subplots(
        rows_count,
        2,
        subplot_titles=[title for title, *_ in panels],
        horizontal_spacing=0.09,
        vertical_spacing=0.26 / rows_count,
    )
    across, up = (
        [coordinate(parameter, value) for value in grid]
        for parameter, grid in zip(parameters, grids, strict=True)
    )
    discrete = any(isinstance(parameter, Choice) for parameter in parameters)
    kind = graph.Heatmap if discrete else graph.Contour
    drawn = [problem.space.decode(point) for point in information.solutions]
    best = inputs[int(np.argmax(np.sum(list(gains.values()), axis=0)))] if gains else None
    told: set[str] = set()
    for index, (title, values, colors) in enumerate(panels):
        place = {"row": index // 2 + 1, "col": index % 2 + 1}
        z = values.reshape(len(up), len(across))
        if title.startswith("bits"):
            z = np.maximum(z, 0.0)
        # Bits of all functions on one scale.
        ends = {"zmin": 0.0, "zmax": most} if title.startswith("bits") and most > 0 else {}
        made.add_trace(
            kind(x=across, y=up, z=z, colorscale=colors, showscale=False, name=title, **ends),
            **place,
        )

        def marks(
            inputs: Sequence[Any], mark: dict[str, Any], name: str, index: int = index
        ) -> None:
            made.add_trace(
                graph.Scatter(
                    x=[coordinate(parameters[0], params[pair[0]]) for params in inputs],
                    y=[coordinate(parameters[1], params[pair[1]]) for params in inputs],
                    mode="markers",
                    marker=mark,
                    name=name,
                    legendgroup=name,
                    showlegend=name not in told,
                ),
                row=index // 2 + 1,
                col=index % 2 + 1,
            )
            told.add(name)

        for status in MARKS:
            known = [*source.evaluations, *source.pending]
            own = [each.params for each in known if each.status == status]
            if own:
                marks(own, {**MARKS[status], "size": 6}, status)
        star = {
            "symbol": "cross",
            "size": 8,
            "color": "white",
            "line": {"color": "#333", "width": 1},
        }
        marks(drawn, star, "drawn x*")
        if best is not None and title.startswith("bits"):
            choice = {
                "symbol": "star",
                "size": 15,
                "color": ORANGE,
                "line": {"color": "white", "width": 1},
            }
            marks([best], choice, "most bits in all")
        made.update_xaxes({**axis_of(parameters[0], pair[0])}, **place)
        made.update_yaxes({**axis_of(parameters[1], pair[1])}, **place)
    made.update_layout(
        template=template(),
        height=110 + 330 * rows_count,
        margin={"l": 60, "r": 20, "t": 90, "b": 50},
        legend={"orientation": "h", "y": 1.0 + 60 / (330 * rows_count), "yanchor": "bottom"},
    )
    made.update_annotations(font_size=12)
    table = []
    for i, params in enumerate(inputs):
        table.append({**params, **{title: float(values[i]) for title, values, _ in panels}})
    caption = (
        "The median of every function and the probability of feasibility, with the measured inputs"
        " and the solutions x* that were drawn from the model; then the bits that measuring a"
        " function would be expected to yield about x*."
        + (
            f" Bits are on one scale; all functions together yield most at {_words(best)}."
            if best is not None
            else ""
        )
    )
    return Plot(
        "explain",
        "Expected information about the optimum",
        caption,
        made,
        table,
        min_width=640,
    )


def _words(params: dict[str, Any]) -> str:
    return ", ".join(f"{label(name)} = {label(short(value))}" for name, value in params.items())
