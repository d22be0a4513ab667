"""How accurate are PESC's gains? Against rejection sampling, per function and in sum.

    .venv/bin/python benchmarks/accuracy.py [--draws 60] [--paths 100000]

One dimension, functions from a Gaussian process prior (squared exponential, ℓ = 0.1, ν = 0.01) with
known hyper-parameters: three regimes of data, one interval constraint, and a constraint that is
measured as pass or fail (the function behind it has a std of 2, and of 5); two dimensions
with two and three constraints. "exact" weighs every cell by its true probability of holding x*;
"50 drawn" uses fifty drawn solutions, "default" ten, or more while they differ. A ratio is that of
the slopes of f and of c. Written to `results/accuracy.md`, with the first draw of regimes in one
dimension as a picture beside it (which needs Plotly, Kaleido and a Chrome or Chromium).
"""

import argparse
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calamint import Model, Problem, Real
from calamint.acquire import PESC
from calamint.acquire.pesc.conditioning import blocks_of, condition, limits_of
from calamint.acquire.pesc.ep import propagate
from calamint.acquire.pesc.gains import Gains
from calamint.acquire.pesc.sites import SiteChoice, site_points
from calamint.acquire.protocol import Incumbent
from calamint.acquire.rejection import GridGains, grid_gains, regular_grid
from calamint.arrays import Array
from calamint.model import Data, Surrogate, fit

RESULTS = Path(__file__).parent / "results"
# Of the first draw: site points were chosen by looking at those with smaller seeds.
FIRST_SEED = 1000
DRAWN = {"50 drawn": 50, "default": None}


@dataclass(frozen=True)
class Case:
    """Dimension, limits, how often each function is measured, cells of the grid, length-scale, and
    the std of the function behind a constraint that is measured as pass or fail."""

    dimension: int
    limits: tuple[str, ...]
    counts: tuple[int, ...]
    cells: int
    lengthscale: float
    behind: float = 2.0


CASES = {
    "5 joint": Case(1, ("c >= 0",), (5, 5), 200, 0.1),
    "7 and 3": Case(1, ("c >= 0",), (7, 3), 200, 0.1),
    "3 and 10": Case(1, ("c >= 0",), (3, 10), 200, 0.1),
    "interval": Case(1, ("-0.7 <= c <= 0.7",), (5, 5), 200, 0.1),
    "5 and 12 outcomes": Case(1, ("c",), (5, 12), 200, 0.1),
    "5 and 12 firm outcomes": Case(1, ("c",), (5, 12), 200, 0.1, behind=5.0),
    "2-D, K = 2": Case(2, ("c >= 0", "d >= 0"), (8, 8, 8), 400, 0.25),
    "2-D, K = 3": Case(2, ("c >= 0", "d >= 0", "e >= 0"), (8, 8, 8, 8), 400, 0.25),
}

PICTURED = ("5 joint", "7 and 3", "3 and 10", "interval", "5 and 12 outcomes")


def surrogate_of(case: Case, seed: int) -> tuple[Surrogate, Array]:
    """A surrogate from noisy data of functions drawn from the prior, and the grid."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(case.dimension)]
    problem = Problem({n: Real(0, 1) for n in names}, minimize="f", constraints=case.limits)
    grid = regular_grid(problem.space, case.cells)
    squared = ((grid[:, None] - grid) ** 2).sum(-1)
    covariance = np.exp(-0.5 * squared / case.lengthscale**2) + 1e-8 * np.eye(len(grid))
    root = np.linalg.cholesky(covariance)
    joint = rng.permutation(len(grid))
    outcomes = problem.binary
    amplitude = {name: case.behind if name in outcomes else 1.0 for name in problem.functions}
    noise = {name: 0.01 for name in problem.functions if name not in outcomes}
    data = {}
    for name, count in zip(problem.functions, case.counts, strict=True):
        values = amplitude[name] * (root @ rng.standard_normal(len(grid)))
        at = joint[:count] if len(set(case.counts)) == 1 else rng.permutation(len(grid))[:count]
        noisy = values[at] + (1.0 if name in outcomes else 0.1) * rng.standard_normal(count)
        seen = (noisy > 0).astype(float) if name in outcomes else noisy
        data[name] = Data(grid[at], seen, np.full(count, np.nan))
    model = Model(
        "se", "map", lengthscale=case.lengthscale, amplitude=amplitude, noise_variance=noise
    )
    return fit(problem, model, data, rng), grid


def gains_of(
    surrogate: Surrogate, solutions: Array, weights: Array, choice: SiteChoice, grid: Array
) -> tuple[Array, float]:
    """PESC's gains on the grid, and the share of solutions whose EP converged."""
    limits = limits_of(surrogate)
    rows = np.zeros(len(solutions), dtype=int)
    z = site_points(surrogate, solutions, rows, limits, choice, np.random.default_rng(0))
    points = np.vstack([z, solutions])
    functions = [f.posterior.joint(points) for f in surrogate.functions.values()]
    blocks = blocks_of(functions, limits, len(z), rows)
    sites = propagate(blocks)
    binary = np.array([function.binary for function in surrogate.functions.values()])
    conditioned = condition(functions, blocks, sites, rows, weights, binary, kl=True)
    return Gains(conditioned).values(grid), float(sites.converged.mean())


def exact_solutions(truth: GridGains, grid: Array) -> tuple[Array, Array]:
    """Cells that may hold x*, the likeliest first, with their probabilities."""
    cells = np.argsort(-truth.cells, kind="stable")
    cells = cells[truth.cells[cells] > 2e-4]
    return grid[cells] + 1e-6, truth.cells[cells] / truth.cells[cells].sum()


def compare(gains: Array, truth: GridGains) -> list[float]:
    """Correlation of the sum and of the constraints, truth at our best over the best truth, slopes
    of the objective and of the constraints."""
    total, true_total = gains.sum(1), truth.gains.sum(1)
    slopes = [g @ t / (t @ t) for g, t in zip(gains.T, truth.gains.T, strict=True)]
    constraint = float(np.mean(slopes[1:]))
    return [
        float(np.corrcoef(total, true_total)[0, 1]),
        float(np.corrcoef(gains[:, 1:].sum(1), truth.gains[:, 1:].sum(1))[0, 1]),
        float(true_total[np.argmax(total)] / true_total.max()),
        float(slopes[0]),
        constraint,
    ]


def feasible_draws(
    case: Case, count: int, paths: int
) -> Iterator[tuple[int, tuple[Surrogate, Array, GridGains]]]:
    """So many draws that have a feasible point with a probability of at least a tenth: the seed of
    each, the surrogate, its grid and the true gains."""
    for seed in itertools.islice(itertools.count(FIRST_SEED), 10 * count):
        surrogate, grid = surrogate_of(case, seed)
        truth = grid_gains(surrogate, grid, paths, np.random.default_rng(seed))
        if truth.infeasible <= 0.9:
            yield seed, (surrogate, grid, truth)
            count -= 1
        if count == 0:
            return


def picture(curves: dict[str, tuple[Array, dict[str, Array]]]) -> None:
    """Draw gains in bits: a column for each regime, a row for each function and one for the sum."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    colours = {"rejection sampling": "#222", "witness": "#d1495b", "paper": "#00798c"}
    figure = make_subplots(3, len(curves), column_titles=list(curves), shared_xaxes=True)
    for column, (grid, found) in enumerate(curves.values(), start=1):
        for name, gains in found.items():
            rows = [gains[:, 0], gains[:, 1:].sum(1), gains.sum(1)]
            for row, values in enumerate(rows, start=1):
                figure.add_trace(
                    graph_objects.Scatter(
                        x=grid[:, 0],
                        y=values / np.log(2),
                        name=name,
                        line={"color": colours[name]},
                        showlegend=row == column == 1,
                    ),
                    row=row,
                    col=column,
                )
    for row, title in enumerate(("objective", "constraint", "both"), start=1):
        figure.update_yaxes(title_text=f"{title}, bits", row=row, col=1)
    figure.update_layout(
        template="plotly_white",
        width=1400,
        height=800,
        title="Information gains of one draw in each regime",
        legend={"orientation": "h", "y": -0.05},
    )
    figure.write_image(RESULTS / "accuracy.png")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="PESC's gains against rejection sampling.")
    parser.add_argument("--draws", type=int, default=60, help="problems in each regime (60)")
    parser.add_argument("--paths", type=int, default=100_000, help="paths for the truth")
    options = parser.parse_args(arguments)
    lines = [
        "| data | solutions | site points | draws | correlation, mean | lowest | of c alone, mean"
        " | truth at arg max | slope f | slope c | ratio | EP converged |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    curves: dict[str, tuple[Array, dict[str, Array]]] = {}
    for name, case in CASES.items():
        rows: dict[tuple[str, str], list[list[float]]] = {}
        for seed, (surrogate, grid, truth) in feasible_draws(case, options.draws, options.paths):
            solutions, weights = exact_solutions(truth, grid)
            choices: tuple[SiteChoice, ...] = ("witness", "union", "paper")
            for choice in choices:
                gains, converged = gains_of(surrogate, solutions, weights, choice, grid)
                found = [*compare(gains, truth), converged]
                rows.setdefault(("exact", choice), []).append(found)
                if name in PICTURED and choice != "union":
                    shown = curves.setdefault(name, (grid, {"rejection sampling": truth.gains}))[1]
                    shown.setdefault(choice, gains)
            for how, count in DRAWN.items():
                rng = np.random.default_rng([seed, 1])
                drawn = PESC(count).build(surrogate, Incumbent(grid[0], None), rng).drawn
                kept = drawn.points[drawn.feasible]
                equal = np.full(len(kept), 1 / len(kept))
                gains, converged = gains_of(surrogate, kept, equal, "witness", grid)
                found = [*compare(gains, truth), converged]
                rows.setdefault((how, "witness"), []).append(found)
        for (how, sites), found_rows in rows.items():
            table = np.array(found_rows)
            mean = table.mean(0)
            lines.append(
                f"| {name} | {how} | {sites} | {len(table)} | {mean[0]:.3f}"
                f" | {table[:, 0].min():.3f} | {mean[1]:.3f} | {mean[2]:.3f} | {mean[3]:.2f}"
                f" | {mean[4]:.2f} | {mean[3] / mean[4]:.2f} | {mean[5]:.1%} |"
            )
            print(lines[-1], flush=True)
    text = "\n".join(["# Accuracy of PESC's gains", "", str(__doc__), *lines, ""])
    (RESULTS / "accuracy.md").write_text(text)
    picture(curves)


if __name__ == "__main__":
    main()
