"""Figs. 2, 3a, 3b and 7: one model in one dimension, PESC beside rejection sampling."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calamint import Model, Optimizer, Problem, Real
from calamint.acquire import PESC
from calamint.acquire.pesc.pesc import Information
from calamint.acquire.rejection import GridGains, grid_gains, optima, root_of
from calamint.arrays import Array, Index
from calamint.show import plots
from figures.figure import PICTURES, Figure

CELLS = 200
PATHS = 200_000
SOLUTIONS = 50
GRID = (np.arange(CELLS)[:, None] + 0.5) / CELLS
INK, BAND, PESC_COLOR, RS_COLOR = "#1f3a5f", "rgba(31,58,95,0.15)", "#c0392b", "#222222"
PROBLEM = Problem({"x": Real(0, 1)}, minimize="f", constraints=["c >= 0"])


@dataclass(frozen=True)
class Functions:
    """Draws of f and c from the prior, on the grid (n,), and the order in which inputs are
    measured."""

    values: Mapping[str, Array]
    order: Mapping[str, Index]
    lengthscale: float
    noise_variance: float

    def optimizer(self, seed: int, **counts: int) -> Optimizer:
        """One that was told so many measurements of each function, and knows the prior."""
        model = Model(
            "se",
            "map",
            lengthscale=self.lengthscale,
            amplitude=1.0,
            noise_variance=self.noise_variance,
        )
        made = Optimizer(PROBLEM, PESC(solutions=SOLUTIONS), model, seed=seed, initial=0)
        noise = np.random.default_rng([seed, 2])
        std = math.sqrt(self.noise_variance)
        for name, count in counts.items():
            errors = std * noise.standard_normal(CELLS)
            for cell in self.order[name][:count]:
                value = self.values[name][cell] + errors[cell]
                made.add({"x": float(GRID[cell, 0])}, {name: float(value)})
        return made


def functions(seed: int, lengthscale: float, noise_variance: float, joint: bool) -> Functions:
    rng = np.random.default_rng(seed)
    squared = (GRID - GRID.T) ** 2
    root = root_of(np.exp(-0.5 * squared / lengthscale**2))
    values = {name: root @ rng.standard_normal(CELLS) for name in ("f", "c")}
    first = rng.permutation(CELLS)
    order = {"f": first, "c": first if joint else rng.permutation(CELLS)}
    return Functions(values, order, lengthscale, noise_variance)


def truth(information: Information, seed: int) -> GridGains:
    rng = np.random.default_rng([seed, 3])
    return grid_gains(information.surrogate, GRID, PATHS, rng)


def given_cell(information: Information, cell: int, seed: int) -> dict[str, tuple[Array, Array]]:
    """Mean and std (n,) of the draws of each function whose optimum is in one cell."""
    surrogate, rng = information.surrogate, np.random.default_rng([seed, 4])
    kept: dict[str, list[Array]] = {name: [] for name in surrogate.functions}
    moments = {
        name: (
            function.posterior.mean_variance(GRID)[0][0],
            root_of(function.posterior.covariance(GRID, GRID)[0]),
        )
        for name, function in surrogate.functions.items()
    }
    for _ in range(PATHS // 20_000):
        drawn = {
            name: mean + rng.standard_normal((20_000, CELLS)) @ root.T
            for name, (mean, root) in moments.items()
        }
        best, feasible = optima(list(drawn.values()), surrogate.constraints)
        here = feasible & (best == cell)
        for name, values in drawn.items():
            kept[name].append(values[here])
    return {
        name: (np.vstack(each).mean(0), np.vstack(each).std(0, ddof=1))
        for name, each in kept.items()
    }


def report2(_: list[Any]) -> str:
    """The ten panels; the seed is the first whose f is worth more than c, as in the paper."""
    for seed in range(100):
        drawn = functions(seed, 0.07, 0.0, joint=False)
        optimizer = drawn.optimizer(seed, f=4, c=4)
        bits = optimizer.information().contributions(GRID).max(0) / math.log(2)
        if bits[0] > bits[1] > 0.05:
            break
    plots.explain(optimizer).save(PICTURES / "fig2.png")
    return f"Seed {seed}: at most {bits[0]:.3f} bits from f and {bits[1]:.3f} bits from c."


def _posteriors(figure: Any, optimizer: Optimizer, information: Information, row: int) -> None:
    """f and c with their data in the first two columns."""
    from plotly import graph_objects

    x = GRID[:, 0]
    for column, (name, function) in enumerate(information.surrogate.functions.items(), start=1):
        mean, variance = (moment[0] for moment in function.posterior.mean_variance(GRID))
        std = np.sqrt(variance)
        data = [(r.params["x"], r.values[name]) for r in optimizer.history if name in r.values]
        traces = [
            graph_objects.Scatter(
                x=[*x, *x[::-1]],
                y=[*(mean + std), *(mean - std)[::-1]],
                fill="toself",
                fillcolor=BAND,
                line={"width": 0},
                showlegend=False,
            ),
            graph_objects.Scatter(x=x, y=mean, line={"color": INK}, showlegend=False),
            graph_objects.Scatter(
                x=[at for at, _ in data],
                y=[value for _, value in data],
                mode="markers",
                marker={"color": "black", "symbol": "x", "size": 8},
                showlegend=False,
            ),
        ]
        for trace in traces:
            figure.add_trace(trace, row=row, col=column)


def _gains(figure: Any, ours: Array, true: Array, row: int, col: int, legend: bool) -> None:
    """One function's bits, by PESC and by rejection sampling."""
    from plotly import graph_objects

    for name, values, color in (("PESC", ours, PESC_COLOR), ("RS", true, RS_COLOR)):
        trace = graph_objects.Scatter(
            x=GRID[:, 0],
            y=values / math.log(2),
            name=name,
            line={"color": color},
            showlegend=legend,
        )
        figure.add_trace(trace, row=row, col=col)


def _finish(figure: Any, path: Path, legend: dict[str, float]) -> None:
    figure.update_xaxes(range=[0, 1])
    figure.update_layout(
        template="plotly_white",
        width=1400,
        height=640,
        legend=legend,
        margin={"t": 40, "b": 40, "l": 40, "r": 40},
    )
    figure.write_image(path)


def report3(_: list[Any]) -> str:
    """Posteriors, what is believed if the likeliest x* were known, and the gains."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    seed = 0
    optimizer = functions(seed, 0.1, 0.01, joint=True).optimizer(seed, f=5, c=5)
    information = optimizer.information()
    true = truth(information, seed)
    ours = information.contributions(GRID)
    titles = ("f", "c", "f, given the likeliest x*", "c, given it", "bits, f and c together", "")
    shown = [titles[i] for i in (0, 1, 4, 2, 3, 5)]
    figure = make_subplots(2, 3, subplot_titles=shown, vertical_spacing=0.12)
    _posteriors(figure, optimizer, information, 1)
    cell = int(true.cells.argmax())
    star = int(np.abs(information.solutions - GRID[cell]).argmin())
    given = information.given(GRID)
    rejected = given_cell(information, cell, seed)
    for column, name in enumerate(("f", "c"), start=1):
        mean, variance = given.mean[star, :, column - 1], given.variance[star, :, column - 1]
        for centre, std, color in (
            (mean, np.sqrt(variance), PESC_COLOR),
            (*rejected[name], RS_COLOR),
        ):
            for line, dash in ((centre, "solid"), (centre - std, "dot"), (centre + std, "dot")):
                trace = graph_objects.Scatter(
                    x=GRID[:, 0], y=line, line={"color": color, "dash": dash}, showlegend=False
                )
                figure.add_trace(trace, row=2, col=column)
    _gains(figure, ours.sum(1), true.gains.sum(1), 1, 3, legend=True)
    _finish(figure, PICTURES / "fig3ab.png", legend={"x": 0.8, "y": 0.25})
    correlation = np.corrcoef(ours.sum(1), true.gains.sum(1))[0, 1]
    best = true.gains.sum(1)[ours.sum(1).argmax()] / true.gains.sum(1).max()
    return (
        f"Correlation of the two curves: {correlation:.3f}. At PESC's maximum, rejection sampling"
        f" has {best:.3f} of its own maximum."
    )


def report7(_: list[Any]) -> str:
    """The same functions with three and with six measurements of c, seven of f; the seed is the
    first with which the most informative task by rejection sampling changes from c to f."""
    from plotly.subplots import make_subplots

    for seed in range(200):
        drawn = functions(seed, 0.1, 0.01, joint=False)
        stages = []
        for measured in (3, 6):
            optimizer = drawn.optimizer(seed, f=7, c=measured)
            information = optimizer.information()
            stages.append((optimizer, information, truth(information, seed)))
        first, second = (true.gains.max(0) for _, _, true in stages)
        if first[1] > first[0] and second[0] > second[1]:
            break
    titles = ["f", "c", "bits from f", "bits from c"]
    figure = make_subplots(2, 4, subplot_titles=titles, vertical_spacing=0.1)
    lines = [
        "| c measured | function | PESC, most bits | at x | RS, most bits | at x | correlation |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, (optimizer, information, true) in enumerate(stages, start=1):
        ours = information.contributions(GRID)
        _posteriors(figure, optimizer, information, row)
        for index, name in enumerate(("f", "c")):
            mine, theirs = ours[:, index], true.gains[:, index]
            _gains(figure, mine, theirs, row, 3 + index, legend=row == 1 and index == 0)
            lines.append(
                f"| {3 * row} | {name} | {mine.max() / math.log(2):.3f}"
                f" | {GRID[mine.argmax(), 0]:.2f} | {theirs.max() / math.log(2):.3f}"
                f" | {GRID[theirs.argmax(), 0]:.2f} | {np.corrcoef(mine, theirs)[0, 1]:.3f} |"
            )
    _finish(figure, PICTURES / "fig7.png", legend={})
    return "\n".join([f"Seed {seed}.", "", *lines])


FIG2 = Figure(
    "fig2",
    "The steps of the approximation: squared exponential, length-scale 0.07, no noise, four"
    f" measurements of each function, {SOLUTIONS} drawn x*.",
    report2,
)
FIG3AB = Figure(
    "fig3ab",
    "Five joint measurements of draws from the prior (length-scale 0.1, noise variance 0.01):"
    f" beliefs, beliefs given one x*, and bits, by PESC with {SOLUTIONS} drawn x* and by rejection"
    f" sampling with {PATHS} paths (black).",
    report3,
)
FIG7 = Figure(
    "fig7",
    "Bits by function for draws from the prior (length-scale 0.1, noise variance 0.01), seven"
    " measurements of the objective and three of the constraint (above), then six (below); PESC"
    f" with {SOLUTIONS} drawn x*, rejection sampling with {PATHS} paths.",
    report7,
)
