"""Pictures of what the optimiser believes and wants to know, as Plotly figures.

Plotly is not needed for optimising: `pip install 'calamint[plots]'`.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from calamint.acquire import ACQUISITIONS, PESC, Information
from calamint.arrays import Array
from calamint.decide import Optimizer
from calamint.errors import ProblemError
from calamint.problem import Problem, Real

_TITLES = (
    "one drawn path",
    "what is believed",
    "if x* were known",
    "bits, given this x*",
    "bits, averaged",
)
_INK, _BAND, _PATH, _GAIN, _STAR = "#1f3a5f", "rgba(31,58,95,0.18)", "#7a8ba0", "#b3541e", "#c0392b"
_BAND_LEVELS = np.array([0.159, 0.5, 0.841])


def explain_1d(optimizer: Optimizer, solution: int = 0, points: int = 300) -> Any:
    """How PESC values measurements, in one dimension: the five steps for every function.

    Columns: a path drawn from the posterior, whose constrained minimiser is x*; the surrogate (mean
    and one std, with the data); the surrogate given that x*; the bits that a measurement would
    tell under it; and the bits averaged over all drawn solutions, which decide. `solution` says
    which x* to show.
    """
    make_subplots, graph = _plotly()
    problem = optimizer.problem
    _check_line(problem, "explain_1d")
    information = optimizer.information()
    count = len(information.solutions)
    if not 0 <= solution < count:
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
        to_user = function.transform.to_user

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
        line(1, to_user(path), _PATH)
        for column, centre, spread in ((2, mean, variance), (3, after_mean, after)):
            std = np.sqrt(spread)
            band = to_user(centre - std), to_user(centre), to_user(centre + std)
            for trace in _credible_band(graph, axis, *band):
                figure.add_trace(trace, row=row, col=column)
        line(4, given.gains[solution, :, row - 1] / math.log(2), _GAIN)
        line(5, gains[:, row - 1], _GAIN)
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
                        marker={"color": "black", "size": 6},
                    ),
                    row=row,
                    col=column,
                )
        for column in range(1, 6):
            figure.add_vline(x=star, line={"color": _STAR, "dash": "dot"}, row=row, col=column)
        for constraint in problem.constraints:
            if constraint.name == function_name:
                for limit in (constraint.low, constraint.high):
                    if math.isfinite(limit):
                        for column in (1, 2, 3):
                            figure.add_hline(
                                y=limit, line={"color": "#888", "width": 1}, row=row, col=column
                            )
        figure.update_yaxes(title_text=function_name, row=row, col=1)
        figure.update_yaxes(matches=None, row=row)
    figure.update_xaxes(title_text=name, row=len(names))
    figure.update_layout(
        showlegend=False,
        template="plotly_white",
        width=1500,
        height=120 + 260 * len(names),
        title=f"What a measurement would tell about the optimum (dotted: drawn x* = {star:.4g})",
        margin={"l": 60, "r": 20, "t": 90, "b": 50},
    )
    figure.update_annotations(font_size=12)
    return figure


def compare_1d(optimizer: Optimizer, points: int = 300) -> Any:
    """What the methods make of the same surrogate, in one dimension, if everything is measured.

    One panel for each function (mean and one std, with the data), then one for each method:
    its acquisition function relative to its maximum, and a line at the input that it would measure.
    Thompson sampling has a histogram of the inputs that it draws. EIC-D is EIC where everything is
    measured; random search has nothing to show.
    """
    make_subplots, graph = _plotly()
    problem = optimizer.problem
    _check_line(problem, "compare_1d")
    x = np.linspace(0, 1, points)[:, None]
    (name,) = problem.space.parameters
    axis = [problem.space.decode(point)[name] for point in x]
    left_out = {"random", "eicd"} | ({"ieci"} if problem.objective.name in problem.known else set())
    methods = [kind for kind in ACQUISITIONS if kind not in left_out]
    panels = [*problem.functions, *methods]
    figure = make_subplots((len(panels) + 1) // 2, 2, subplot_titles=panels, vertical_spacing=0.06)
    information = optimizer.acquisition_function(PESC(solutions=200))
    assert isinstance(information, Information)
    for index, panel in enumerate(panels):
        place = {"row": index // 2 + 1, "col": index % 2 + 1}
        if panel in problem.functions:
            function = information.surrogate.functions[panel]
            for trace in _credible_band(graph, axis, *function.quantiles(x, _BAND_LEVELS).T):
                figure.add_trace(trace, **place)
            records = [record for record in optimizer.history if panel in record.values]
            figure.add_trace(
                graph.Scatter(
                    x=[record.params[name] for record in records],
                    y=[record.values[panel] for record in records],
                    mode="markers",
                    marker={"color": "black", "size": 6},
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
            figure.add_trace(graph.Histogram(x=drawn, xbins=bins, marker_color=_GAIN), **place)
        else:
            acq_function = optimizer.acquisition_function(panel)
            value = acq_function.value(x)
            value = np.exp(value - value.max()) if acq_function.log_scale else _shares(value)
            figure.add_trace(graph.Scatter(x=axis, y=value, line={"color": _GAIN}), **place)
            best = axis[int(np.argmax(value))]
            figure.add_vline(x=best, line={"color": _STAR, "dash": "dot"}, **place)
    figure.update_layout(
        showlegend=False,
        template="plotly_white",
        width=1100,
        height=60 + 170 * ((len(panels) + 1) // 2),
        margin={"l": 50, "r": 20, "t": 40, "b": 40},
    )
    return figure


def _shares(value: Array) -> Array:
    """Of the highest value, where there is one above zero."""
    return value / value.max() if value.max() > 0 else np.zeros_like(value)


def _check_line(problem: Problem, what: str) -> None:
    parameters = list(problem.space.parameters.values())
    if len(parameters) != 1 or not isinstance(parameters[0], Real):
        raise ProblemError(
            f"{what} draws problems with one real parameter, and this one has"
            f" {len(parameters)}: use gains() and predict() instead."
        )


def _credible_band(
    graph: Any, axis: list[float], low: Array, centre: Array, high: Array
) -> list[Any]:
    """A median with a band of one standard deviation on either side."""
    edges = [*high, *low[::-1]]
    around = [*axis, *axis[::-1]]
    return [
        graph.Scatter(x=around, y=edges, fill="toself", fillcolor=_BAND, line={"width": 0}),
        graph.Scatter(x=axis, y=centre, line={"color": _INK, "width": 2}),
    ]


def save(figure: Any, path: str | Path) -> Path:
    """Write a figure: .html always works; .png and .svg need a Chrome or Chromium."""
    path = Path(path)
    if path.suffix == ".html":
        figure.write_html(path, include_plotlyjs=True)
        return path
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ProblemError(f"path is {str(path)!r}: write a name that ends in .html, .png or .svg.")
    try:
        figure.write_image(path)
    except Exception as error:
        raise ProblemError(
            f"{path.name} could not be drawn ({type(error).__name__}): install kaleido and Chrome"
            " or Chromium, or save as .html, which needs neither."
        ) from None
    return path


def _plotly() -> tuple[Any, Any]:
    try:
        from plotly import graph_objects
        from plotly.subplots import make_subplots
    except ImportError:
        raise ProblemError(
            "plots need Plotly, which is not installed: pip install 'calamint[plots]'."
        ) from None
    return make_subplots, graph_objects
