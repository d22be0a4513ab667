"""What other methods make of the same model, in one dimension."""

import math

import numpy as np

from calamint.acquire import ACQUISITIONS, PESC, Information
from calamint.arrays import Array
from calamint.checks import check_integer
from calamint.errors import ProblemError
from calamint.problem import Problem, Real
from calamint.show.plots.explain import BAND_LEVELS, credible_band
from calamint.show.plots.plot import Plot
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    ORANGE,
    SERIES,
    label,
    plotly,
    template,
)


@plot
def compare(source: Source, points: int = 300) -> Plot:
    """What the methods make of the same surrogate, in one dimension, if everything is measured.

    One panel for each function (mean and one std, with the data), then one for each method:
    its acquisition function relative to its maximum, and a line at the input that it would measure.
    Thompson sampling has a histogram of the inputs that it draws. EIC-D is EIC where everything is
    measured; random search has nothing to show.
    """
    make_subplots, graph = plotly("subplots").make_subplots, plotly()
    optimizer, problem = source.optimizer, source.problem
    _check_line(problem)
    points = check_integer(points, "points", 2)
    x = np.linspace(0, 1, points)[:, None]
    (name,) = problem.space.parameters
    axis = [problem.space.decode(point)[name] for point in x]
    left_out = {"random", "eicd"} | ({"ieci"} if problem.objective.name in problem.known else set())
    methods = [kind for kind in ACQUISITIONS if kind not in left_out]
    panels = [*problem.functions, *methods]
    titles = [label(panel) for panel in panels]
    figure = make_subplots((len(panels) + 1) // 2, 2, subplot_titles=titles, vertical_spacing=0.06)
    information = optimizer.acquisition_function(PESC(solutions=200))
    assert isinstance(information, Information)
    rows: list[dict[str, float]] = [{name: each} for each in axis]
    for index, panel in enumerate(panels):
        place = {"row": index // 2 + 1, "col": index % 2 + 1}
        if panel in problem.functions:
            function = information.surrogate.functions[panel]
            quantiles = function.quantiles(x, BAND_LEVELS)
            for trace in credible_band(graph, axis, *quantiles.T):
                figure.add_trace(trace, **place)
            for row, median in zip(rows, quantiles[:, 1], strict=True):
                row[panel] = float(median)
            records = [record for record in optimizer.history if panel in record.values]
            figure.add_trace(
                graph.Scatter(
                    x=[record.params[name] for record in records],
                    y=[record.values[panel] for record in records],
                    mode="markers",
                    marker={"color": SERIES[2], "size": 6},
                ),
                **place,
            )
            for constraint in problem.constraints:
                for limit in (constraint.low, constraint.high):
                    if constraint.name == panel and math.isfinite(limit):
                        figure.add_hline(y=limit, line={"color": "#888", "width": 1}, **place)
        elif panel == "thompson":
            drawn = [problem.space.decode(point)[name] for point in information.solutions]
            bins = {"start": axis[0], "end": axis[-1], "size": (axis[-1] - axis[0]) / 50}
            figure.add_trace(graph.Histogram(x=drawn, xbins=bins, marker_color=ORANGE), **place)
        else:
            acq_function = optimizer.acquisition_function(panel)
            value = acq_function.value(x)
            value = np.exp(value - value.max()) if acq_function.log_scale else _shares(value)
            figure.add_trace(graph.Scatter(x=axis, y=value, line={"color": ORANGE}), **place)
            for row, share in zip(rows, value, strict=True):
                row[f"score of {panel}"] = float(share)
            best = axis[int(np.argmax(value))]
            figure.add_vline(x=best, line={"color": SERIES[3], "dash": "dot"}, **place)
    figure.update_xaxes(range=[axis[0], axis[-1]])
    figure.update_layout(
        showlegend=False,
        template=template(),
        height=60 + 170 * ((len(panels) + 1) // 2),
        margin={"l": 50, "r": 20, "t": 40, "b": 40},
    )
    caption = (
        "The surrogate of every function (median, one standard deviation and the data), and the"
        " acquisition function of every method, relative to its maximum; dotted: what it would"
        " measure next. Thompson sampling has a histogram of the inputs that it draws."
    )
    return Plot(
        "compare", "What the methods make of the same model", caption, figure, rows, min_width=700
    )


def _shares(value: Array) -> Array:
    """Of the highest value, where there is one above zero."""
    return value / value.max() if value.max() > 0 else np.zeros_like(value)


def _check_line(problem: Problem) -> None:
    parameters = list(problem.space.parameters.values())
    if len(parameters) != 1 or not isinstance(parameters[0], Real):
        raise ProblemError(
            "compare draws problems with one parameter that is real; this one has"
            f" {', '.join(type(each).__name__ for each in parameters)}: use slices() instead."
        )
