"""Pictures of what the optimiser believes and wants to know, as Plotly figures.

Plotly is not needed for optimising: `pip install 'calamint[plots]'`.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from calamint.decide import Optimizer
from calamint.model.posterior import Posterior
from calamint.problem import ProblemError, Real

_TITLES = (
    "one drawn path",
    "what is believed",
    "if x* were known",
    "bits, given this x*",
    "bits, averaged",
)
_INK, _BAND, _PATH, _GAIN, _STAR = "#1f3a5f", "rgba(31,58,95,0.18)", "#7a8ba0", "#b3541e", "#c0392b"


def explain_1d(optimizer: Optimizer, solution: int = 0, points: int = 300) -> Any:
    """How PESC values measurements, in one dimension: the five steps for every function.

    Columns: a path drawn from the posterior, whose constrained minimiser is x*; the belief (mean
    and one deviation, with the data); the belief given that x*; the bits that a measurement would
    tell under it; and the bits averaged over all drawn solutions, which decide. `solution` says
    which x* to show.
    """
    make_subplots, graph = _plotly()
    problem = optimizer.problem
    if len(problem.space) != 1 or not isinstance(
        next(iter(problem.space.parameters.values())), Real
    ):
        raise ProblemError(
            f"explain_1d draws problems with one real parameter, and this one has"
            f" {len(problem.space)}: use gains() and predict() instead."
        )
    information = optimizer.information()
    count = len(information.solutions)
    if not 0 <= solution < count:
        raise ProblemError(f"solution is {solution!r}: write a whole number from 0 to {count - 1}.")
    x = np.linspace(0, 1, points)[:, None]
    (name,) = problem.space.parameters
    axis = [problem.space.decode(point)[name] for point in x]
    star = problem.space.decode(information.solutions[solution])[name]
    given = information.conditioned.given(x)
    gains = information.gains(x) / math.log(2)
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
        function = information.belief.functions[function_name]
        sign = -1.0 if row == 1 and problem.objective.maximize else 1.0

        def outward(values: Any, function: Any = function, sign: float = sign) -> Any:
            return sign * (function.scaling.offset + function.scaling.scale * values)

        def line(column: int, values: Any, color: str, row: int = row) -> None:
            figure.add_trace(
                graph.Scatter(x=axis, y=values, line={"color": color, "width": 2}),
                row=row,
                col=column,
            )

        def band(
            column: int, mean: Any, deviation: Any, function: Any = function, row: int = row
        ) -> None:
            width = function.scaling.scale * deviation
            figure.add_trace(
                graph.Scatter(
                    x=[*axis, *axis[::-1]],
                    y=[*(mean + width), *(mean - width)[::-1]],
                    fill="toself",
                    fillcolor=_BAND,
                    line={"width": 0},
                ),
                row=row,
                col=column,
            )

        path = information.drawn.drawn[row - 1].values(x, count)[solution]
        sample = int(information.conditioned.owner[solution])
        mean, variance = (moment[sample] for moment in function.process.moments(x))
        after_mean = given.mean[solution, :, row - 1]
        after = given.variance[solution, :, row - 1]
        line(1, outward(path), _PATH)
        band(2, outward(mean), np.sqrt(variance))
        line(2, outward(mean), _INK)
        band(3, outward(after_mean), np.sqrt(after))
        line(3, outward(after_mean), _INK)
        line(4, given.gains[solution, :, row - 1] / math.log(2), _GAIN)
        line(5, gains[:, row - 1], _GAIN)
        if isinstance(function.process, Posterior):
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
