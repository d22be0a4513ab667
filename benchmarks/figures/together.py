"""Figs. 3c, 4 and 5: everything is measured together, from the same three starts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import harness
from calamint import Model
from calamint.acquire import PESC, RS, RSDG
from calamint.testbed import SolvedProblem, gp_prior
from contestants import CalamintMaker
from curves import curve, draw_panels
from figures.figure import PICTURES, Figure
from harness import GapRow
from methods import toy, toy_known

PRIOR = Model("se", "map", lengthscale=0.1, amplitude=1.0, noise_variance=0.01)
LIKELIHOOD = Model("se", "mle", transform="none", noise_variance=0.0)
SAMPLED = Model("se", transform="none", noise_variance=0.0)
DRAWS = 10  # x*, for every method that draws them
COLORS = {
    "PESC": "#c0392b",
    "RS": "#222222",
    "RSDG": "#2e7d6b",
    "EIC": "#1f3a5f",
    "AL, f known": "#d98a1f",
    "PESC, sampled": "#e3a6a0",
}


def prior_1d(seed: int) -> SolvedProblem:
    return gp_prior(1, seed).coupled()


def prior_2d(seed: int) -> SolvedProblem:
    return gp_prior(2, seed).coupled()


def prior_8d(seed: int) -> SolvedProblem:
    return gp_prior(8, seed).coupled()


def entries(figure: str) -> dict[str, harness.Entry]:
    """The methods of a figure."""
    pesc, rsdg = PESC(solutions=DRAWS), RSDG(cells=DRAWS)
    compared: dict[str, tuple[Callable[[int], SolvedProblem], Model, int, dict[str, Any]]] = {
        "fig3c": (prior_1d, PRIOR, 30, {"PESC": pesc, "RS": RS(), "RSDG": rsdg}),
        "fig4a": (prior_2d, PRIOR, 60, {"PESC": pesc, "RSDG": rsdg, "EIC": "eic"}),
        "fig4b": (prior_8d, PRIOR, 100, {"PESC": pesc, "RSDG": rsdg, "EIC": "eic"}),
        "fig5": (
            toy,
            LIKELIHOOD,
            40,
            {"PESC": pesc, "EIC": "eic", "AL, f known": "auglag", "PESC, sampled": pesc},
        ),
    }
    solved, model, evaluations, methods = compared[figure]
    return {
        method: harness.Entry(
            figure,
            method,
            toy_known if method == "AL, f known" else solved,
            CalamintMaker(acquisition, SAMPLED if method == "PESC, sampled" else model),
            evaluations,
        )
        for method, acquisition in methods.items()
    }


def repetition(figure: str, method: str, seed: int) -> list[GapRow]:
    return harness.gaps(entries(figure)[method], seed)


def report(figure: str, looks: tuple[int, ...], mean: bool, found: list[GapRow]) -> str:
    """Curves as a picture, and a table of them after some evaluations."""
    statistic = np.mean if mean else np.median
    name = "mean" if mean else "median"
    curves = {
        method: curve(((r.evaluation, r.gap) for r in found if r.method == method), statistic)
        for method in entries(figure)
        if any(row.method == method for row in found)
    }
    draw_panels(
        {figure: curves},
        COLORS,
        PICTURES / f"{figure}.png",
        y=f"{name} gap",
        bold="PESC",
        logarithmic=figure != "fig4b",  # nothing is found there
    )
    lines = [
        f"| method | evaluations | repetitions | {name} gap | 95 % interval |",
        "|---|---|---|---|---|",
    ]
    for method, each in curves.items():
        repetitions = len({row.seed for row in found if row.method == method})
        for look in looks:
            at = list(each.at).index(look)
            lines.append(
                f"| {method} | {look} | {repetitions} | {each.middle[at]:.2e}"
                f" | {each.low[at]:.1e} – {each.high[at]:.1e} |"
            )
    return "\n".join(lines)


def _figure(
    name: str, protocol: str, looks: tuple[int, ...], repetitions: int, mean: bool = False
) -> Figure:
    return Figure(
        name,
        protocol,
        partial(report, name, looks, mean),
        tuple(entries(name)),
        partial(repetition, name),
        GapRow,
        repetitions,
    )


_PRIOR = (
    "Draws from a Gaussian process prior (squared exponential, length-scale 0.1, amplitude 1) with"
    " one constraint, noise variance 0.01, hyper-parameters known, δ = 0.05, three Latin hypercube"
    f" starts, {DRAWS} drawn x*. Median gap."
)
FIG3C = _figure("fig3c", f"{_PRIOR} One dimension.", (10, 20, 30), 100)
FIG4A = _figure("fig4a", f"{_PRIOR} Two dimensions.", (20, 40, 60), 60)
FIG4B = _figure("fig4b", f"{_PRIOR} Eight dimensions.", (25, 50, 100), 30)
FIG5 = _figure(
    "fig5",
    "The toy problem without noise: squared exponential kernel, hyper-parameters by maximum"
    f" likelihood, δ = 0.05, three Latin hypercube starts, {DRAWS} drawn x*. AL is given the"
    " objective, as in the paper. The last method samples hyper-parameters instead. Mean gap.",
    (10, 20, 30, 40),
    100,
    mean=True,
)
