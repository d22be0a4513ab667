"""Figs. 8, 9 and 10: functions are measured separately, on a virtual clock."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial

import numpy as np

from calamint import Model, Optimizer, Task
from calamint.acquire import EICD, PESC
from curves import Curve, curve, draw_panels
from figures.figure import PICTURES, Figure
from rows import median_interval
from starts import starting_points
from virtual import Experiment, Method, Row, apart, mean, prior_2d, repetition, toy

REFITTED = "γ = 0, learnt anew to recommend"
KNOWN = "γ = 0, hyper-parameters known"
DRAWN = "the same, x* drawn for every decision"
COLORS = {
    "Coupled": "#d98a1f",
    "NCD": "#8e6bb0",
    "NCD, pending jobs ignored": "#bbbbbb",
    "CD": "#1f3a5f",
    "CD-F": "#2e7d6b",
    "EIC-CD": "#222222",
    "γ = ∞": "#1f3a5f",
    "γ = 1": "#4a90c2",
    "γ = 0.1": "#2e7d6b",
    "γ = 0": "#c0392b",
    REFITTED: "#e3a6a0",
    KNOWN: "#7b241c",
    DRAWN: "#999999",
}
FUNCTIONS = {"f": "#7d5a3c", "c": "#e0559b", "c1": "#c0392b", "c2": "#4a90c2"}
PESC_10 = PESC(solutions=10)


def fig8() -> Experiment:
    names = ("f", "c1", "c2")
    seconds = dict.fromkeys(names, 1.0)
    together = {"all": Task(measures=list(names), runs_on="here")}
    own = {name: Task(measures=[name], runs_on=name) for name in names}
    competing = Method(apart("here", *names), {"here": 3}, seconds, acquisition=PESC_10)
    return Experiment(
        toy,
        {
            "Coupled": Method(together, {"here": 1}, {"all": 1.0}, acquisition=PESC_10),
            "NCD": Method(own, dict.fromkeys(names, 1), seconds, acquisition=PESC_10),
            "CD": competing,
            "CD-F": replace(competing, rationality="batch"),
            "EIC-CD": replace(competing, acquisition=EICD()),
        },
        "evaluations",
        tuple(range(12, 121, 3)),
        delta=0.01,
    )


def fig9() -> Experiment:
    names = ("f", "c")
    seconds = dict.fromkeys(names, 1.0)
    together = {"all": Task(measures=list(names), runs_on="here")}
    own = {name: Task(measures=[name], runs_on=name) for name in names}
    apart_each = Method(own, dict.fromkeys(names, 1), seconds, acquisition=PESC_10)
    return Experiment(
        prior_2d,
        {
            "Coupled": Method(together, {"here": 1}, {"all": 1.0}, acquisition=PESC_10),
            "NCD": apart_each,
            "NCD, pending jobs ignored": replace(apart_each, condition_on_pending=False),
            "CD-F": Method(apart("here", *names), {"here": 2}, seconds, "batch", {}, PESC_10),
        },
        "evaluations",
        tuple(range(8, 81, 2)),
        delta=0.05,
        model=Model("se", "map", lengthscale=0.1, amplitude=1.0, noise_variance=0.01),
    )


# What a decision took in the paper, from its Table 1: two minutes in full for 13 joint evaluations,
# and for γ = 0.1 about 5.1 minutes in partial ones.
PAPER_FULL, PAPER_PARTIAL = 8.0, 1.3


@cache
def known_model() -> Model:
    """Hyper-parameters of the toy problem, learnt from a hundred joint measurements."""
    solved, noise = toy(0), np.random.default_rng(0)
    optimizer = Optimizer(solved.problem, model=Model(hyperparameters="map", transform="none"))
    for params in starting_points(solved, 0, 100):
        optimizer.add(params, solved.measure(params, noise))
    learnt = optimizer.query().surrogate.functions
    return Model(
        transform="none",
        lengthscale={
            name: each.posterior.lengthscales[0].tolist() for name, each in learnt.items()
        },
        amplitude={
            name: math.exp(each.posterior.theta[0, -3]) * abs(each.transform.scale)
            for name, each in learnt.items()
        },
        noise_variance=0.0,
    )


def fig10(ours: float | None) -> Experiment:
    """The paper's durations with its decision times, or shrunk to ours (seconds), really taken."""
    shrunk = 1.0 if ours is None else ours / PAPER_FULL
    deciding = {"full": PAPER_FULL, "partial": PAPER_PARTIAL} if ours is None else None
    names = ("f", "c1", "c2")
    lasts = {"f": 0.0, "c1": 2.0 * shrunk, "c2": 60.0 * shrunk}
    separate = Method(apart("here", *names), {"here": 1}, lasts, math.inf, deciding, PESC_10)
    together = {"all": Task(measures=list(names), runs_on="here")}
    levels = {"∞": math.inf, "1": 1.0, "0.1": 0.1, "0": 0.0}
    unaware = replace(separate, rationality=0.0)
    # Why γ = 0 is worse, by experiment.
    why = {REFITTED: replace(unaware, refit=True)}
    if ours is None:
        why[KNOWN] = replace(unaware, model=known_model())
        # Full updates, as quick as partial ones.
        quick = {"full": PAPER_PARTIAL}
        why[DRAWN] = replace(separate, model=known_model(), deciding=quick)
    return Experiment(
        toy,
        {
            "Coupled": Method(
                together, {"here": 1}, {"all": 62.0 * shrunk}, math.inf, deciding, PESC_10
            ),
            **{f"γ = {name}": replace(separate, rationality=γ) for name, γ in levels.items()},
            **why,
        },
        "seconds",
        tuple(shrunk * second for second in range(60, 901, 60)),
        delta=0.05,
    )


# Seconds of a full decision of the toy problem on the machine where fig10 was run, two cores.
OUR_FULL = 0.055
EXPERIMENTS: dict[str, Callable[[], Experiment]] = {
    "fig8": fig8,
    "fig9": fig9,
    "fig10": partial(fig10, OUR_FULL),
    "fig10_virtual": partial(fig10, None),
}


def work(name: str, method: str, seed: int) -> list[Row]:
    return repetition(name, EXPERIMENTS[name](), method, seed)


def performance(found: Iterable[Row], statistic: Callable[..., object]) -> dict[str, Curve]:
    """A gap curve for each method."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in found:
        points.setdefault(row.method, []).append((row.at, row.gap))
    return {method: curve(each, statistic) for method, each in points.items()}


def counts(found: Iterable[Row]) -> dict[str, Curve]:
    """Mean measurements of each function, less the starts."""
    found = list(found)
    functions = {"f": "f", "c": "c", "c1": "c1", "c2": "c2"}
    present = [name for name in functions if f'"{name}"' in found[0].counts]
    return {name: curve(((row.at, row.count(name)) for row in found), np.mean) for name in present}


def gap_table(name: str, found: list[Row], looks: Iterable[float], statistic: str) -> list[str]:
    """Gaps at some moments with their intervals, and what was measured."""
    experiment = EXPERIMENTS[name]()
    functions = list(experiment.solved(0).problem.functions)
    lines = [
        f"| method | {experiment.by} | repetitions | {statistic} gap | 95 % interval | infeasible |"
        f" {' | '.join(f'{function}, mean' for function in functions)} |",
        f"|---|---|---|---|---|---|{'---|' * len(functions)}",
    ]
    curves = performance(found, np.mean if statistic == "mean" else np.median)
    for method in experiment.methods:
        for look in looks:
            own = [row for row in found if row.method == method and math.isclose(row.at, look)]
            if own:
                each = curves[method]
                at = next(i for i, moment in enumerate(each.at) if math.isclose(moment, look))
                means = [
                    f"{mean(row.count(function) for row in own):.1f}" for function in functions
                ]
                lines.append(
                    f"| {method} | {look:.4g} | {len(own)} | {each.middle[at]:.2e}"
                    f" | {each.low[at]:.1e} – {each.high[at]:.1e}"
                    f" | {sum(not row.feasible for row in own)} | {' | '.join(means)} |"
                )
    return lines


def report8(found: list[Row]) -> str:
    panels = {
        "mean gap": performance(found, np.mean),
        "median gap": performance(found, np.median),
        "measurements by CD-F": counts(row for row in found if row.method == "CD-F"),
    }
    draw_panels(
        panels,
        {**COLORS, **FUNCTIONS},
        PICTURES / "fig8.png",
        x="measurements",
        y="",
        logarithmic=(True, True, False),
    )
    looks = (30, 60, 90, 120)
    return "\n".join(
        [*gap_table("fig8", found, looks, "mean"), "", *gap_table("fig8", found, looks, "median")]
    )


def report9(found: list[Row]) -> str:
    chosen = [row for row in found if row.method == "CD-F"]
    panels = {
        "median gap": performance(found, np.median),
        "CD-F, constraint active": counts(row for row in chosen if row.active),
        "CD-F, not active": counts(row for row in chosen if not row.active),
    }
    draw_panels(
        panels,
        {**COLORS, **FUNCTIONS},
        PICTURES / "fig9.png",
        x="measurements",
        y="",
        logarithmic=(True, False, False),
    )
    lines = gap_table("fig9", found, (20, 40, 60, 80), "median")
    lines += ["", "| CD-F after 80 | problems | f, mean | c, mean | c of all, 95 % |"]
    lines += ["|---|---|---|---|---|"]
    for active in (True, False):
        own = [row for row in chosen if row.active == active and row.at == 80]
        shares = [row.count("c") / (row.count("f") + row.count("c")) for row in own]
        _, low, high = median_interval(shares)
        lines.append(
            f"| constraint {'active' if active else 'not active'} | {len(own)}"
            f" | {mean(r.count('f') for r in own):.1f} | {mean(r.count('c') for r in own):.1f}"
            f" | {low:.2f} – {high:.2f} |"
        )
    return "\n".join(lines)


def report10(name: str, found: list[Row]) -> str:
    experiment = EXPERIMENTS[name]()
    panels = {"mean gap": performance(found, np.mean)}
    for method in experiment.methods:
        # Learning anew to recommend changes no decision.
        if method not in (REFITTED, KNOWN, DRAWN) and any(row.method == method for row in found):
            panels[method] = counts(row for row in found if row.method == method)
    draw_panels(
        panels,
        {**COLORS, **FUNCTIONS},
        PICTURES / f"{name}.png",
        x="seconds",
        y="",
        columns=3,
        logarithmic=[index == 0 for index in range(len(panels))],
    )
    end = experiment.at[-1]
    minutes = 15.0 / end  # of the paper's, for one second here
    lines = gap_table(name, found, (end / 3, 2 * end / 3, end), "mean")
    lines += ["", "Minutes of the paper's fifteen:", ""]
    lines += ["| method | full updates | partial updates | c1 | c2 | the paper's |"]
    lines += ["|---|---|---|---|---|---|"]
    theirs = {
        "Coupled": (2.0, 0.0, 0.4, 13.0),
        "γ = ∞": (10.2, 0.0, 1.4, 3.6),
        "γ = 1": (5.2, 3.0, 2.2, 4.7),
        "γ = 0.1": (1.5, 5.1, 2.5, 6.0),
        "γ = 0": (0.2, 1.8, 1.0, 12.5),
    }
    for method, reported in theirs.items():
        own = [row for row in found if row.method == method and math.isclose(row.at, end)]
        if not own:
            continue
        lasts = experiment.methods[method].durations
        share = {"c1": 2.0 / 62.0, "c2": 60.0 / 62.0}
        spent = [mean(row.full for row in own), mean(row.partial for row in own)]
        for task in ("c1", "c2"):
            seconds = (
                mean(row.seconds(task) for row in own)
                if task in lasts
                else share[task] * mean(row.seconds("all") for row in own)
            )
            spent.append(seconds)
        lines.append(
            f"| {method} | {' | '.join(f'{minutes * each:.1f}' for each in spent)}"
            f" | {' / '.join(f'{each:.1f}' for each in reported)} |"
        )
    if name == "fig10":
        final = [row for row in found if row.method == "γ = ∞" and math.isclose(row.at, end)]
        each = [1000 * row.full / row.fulls for row in final]
        lines += [
            "",
            f"A full update of γ = ∞ took {min(each):.1f} to {max(each):.1f} ms on average,",
        ]
        lines += ["by repetition: how quiet the machine was."]
    return "\n".join(lines)


FIG8 = Figure(
    "fig8",
    "The toy problem, one resource of capacity 3. Coupled: the three functions are measured at the"
    " same input; NCD: each once in every round, at inputs of their own; CD: every measurement is"
    " chosen, three at a time; CD-F: with partial updates for the second and third; EIC-CD: EIC"
    " chooses the input, information the task. Ten hyper-parameter samples, ten x*, δ = 0.01.",
    report8,
    tuple(fig8().methods),
    partial(work, "fig8"),
    Row,
)
FIG9 = Figure(
    "fig9",
    "Draws from a Gaussian process prior in 2-D with one constraint, noise variance 0.01,"
    " hyper-parameters known, capacity 2, ten x*, δ = 0.05. NCD decides knowing what runs; the"
    " paper's did not.",
    report9,
    tuple(fig9().methods),
    partial(work, "fig9"),
    Row,
    repetitions=60,
)
FIG10 = Figure(
    "fig10",
    "The toy problem on one resource, for the paper's 15 minutes, in which f takes no time, c1 2 s"
    f" and c2 60 s, all shrunk by {OUR_FULL}/{PAPER_FULL}, a full decision's time here and in the"
    " paper. Decisions take the time that they really take. δ = 0.05, ten x*.",
    partial(report10, "fig10"),
    tuple(fig10(OUR_FULL).methods),
    partial(work, "fig10"),
    Row,
    alone=True,
)
FIG10_VIRTUAL = Figure(
    "fig10_virtual",
    "The same with the paper's durations: full decisions take"
    f" {PAPER_FULL} s and partial ones {PAPER_PARTIAL} s of a virtual clock.",
    partial(report10, "fig10_virtual"),
    (*fig10(OUR_FULL).methods, KNOWN, DRAWN),
    partial(work, "fig10_virtual"),
    Row,
)
